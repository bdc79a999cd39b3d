// Deviations of records from a network (`models/trees/deviations.py`): the same effects from the same random numbers.

const LEAST_COUNT_KEPT = 0.25, TINY = 1e-12;

/** Log-likelihood of a variance of effects, which are normal and truncated at `least`. */
function logOdds(ratio, variance, noise, least) {
  const total = variance + noise, kept = variance / total;
  const inside = logNormal((1 + kept * ratio - least) / Math.sqrt(Math.max(kept * noise, TINY)));
  const before = logNormal((1 - least) / Math.sqrt(variance));
  return inside - before - 0.5 * (Math.log(total) + ratio * ratio / total);
}

class Deviations {
  constructor(held, cards) {
    Object.assign(this, held, { cards });
    this.streams = held.streams.map((state) => new RandomNumbers(state));
    this.effects = new Map(held.effects.map((effect) => [effect.scope.join(), effect]));
    this.joined = new Set(held.joined.map((pair) => pair.join()));
    this.tables = new Map();
  }

  /** Whether the release determines the error of an answer if the network's structure is wrong. */
  tells(variable, given) {
    return this.outside !== null || this.effects.has(ordered([variable, ...given.keys()]).join());
  }

  joins(scope) {
    return scope.every((a, i) => scope.slice(i + 1).every((b) => this.joined.has(`${a},${b}`)));
  }

  /**
   * Shift and widen draws of a variable's distribution, in place: states, then draws.
   *
   * Answers that are compared read different streams, so that their effects are independent.
   */
  apply(draws, variable, { count, given, records, ofRecords, stream }) {
    const scope = ordered([variable, ...given.keys()]), whole = this.effects.has(scope.join());
    const others = [...given.keys()].sort((a, b) => this.ranks[a] - this.ranks[b]);
    const parts = whole ? [scope] : others.map((other) => ordered([variable, other]));
    const logs = new Float64Array(draws.length), next = this.streams[stream].reader();
    for (const part of parts) {
      const effect = this.effects.get(part.join()), joins = this.joins(part);
      const sampled = ofRecords && scope.length === part.length && !joins;
      if (effect) this.add(logs, count, effect, this.cells(effect, variable, given, sampled, ofRecords), next);
      else if (joins || this.outside !== null) this.addNew(logs, count, joins ? this.inside : this.beside, 1, next);
    }
    const open = !whole && this.outside !== null;
    if (open)
      for (let round = 0; round < scope.length - 2; round++) this.addNew(logs, count, this.outside, this.higher, next);
    for (let d = 0; d < count; d++) {
      let top = -Infinity, total = 0;
      for (let k = d; k < logs.length; k += count) if (logs[k] > top) top = logs[k];
      for (let k = d; k < logs.length; k += count) total += draws[k] *= Math.exp(logs[k] - top);
      for (let k = d; k < logs.length; k += count) draws[k] /= total;
    }
    if (open && ofRecords) this.sample(draws, count, Math.max(1, Math.round(records)), next);
  }

  /** Add an effect that is new in every cell, with the scale of pairs of its kind. */
  addNew(logs, count, weights, factor, next) {
    const scales = this.scalesOf(weights, count, next);
    for (let d = 0; d < count; d++)
      for (let k = d; k < logs.length; k += count)
        logs[k] += factor * this.scales[scales[d]] * quantileOfLog(Math.log(next()));
  }

  scalesOf(weights, count, next) {
    let total = 0;
    const sums = weights.map((weight) => total += weight);
    return Array.from({ length: count }, () => {
      const u = next();
      return sums.findIndex((sum) => sum / total > u);
    });
  }

  /** Add the effect of a measured table, whose factor is drawn before it in every cell. */
  add(logs, count, effect, cells, next) {
    const states = cells.length, scales = this.scalesOf(effect.weights, count, next);
    const chosen = Array.from({ length: count * states }, (_, at) => {
      const { sums, factors } = cells[at % states].at(scales[Math.floor(at / states)]), u = next() * sums.at(-1);
      return factors[sums.findIndex((sum) => u <= sum)];
    });
    chosen.forEach(({ mean, spread, above }, at) => {
      const s = at % states, drawn = mean - spread * quantileOfLog(above + Math.log1p(-next()));
      logs[s * count + Math.floor(at / states)] += Math.log(Math.max(drawn, cells[s].least));
    });
  }

  /** The cells of a measured table given states of its other variables, with what each scale makes of them. */
  cells(effect, variable, given, sampled, ofRecords) {
    const place = (state) => effect.scope.reduce((at, v) => at * this.cards[v] + (v === variable ? state : given.get(v)), 0);
    const key = [effect.scope, place(0), variable, sampled, ofRecords].join();
    if (!this.tables.has(key))
      this.tables.set(key, Array.from({ length: this.cards[variable] }, (_, s) =>
        this.cell(effect, place(s), sampled, ofRecords)));
    return this.tables.get(key);
  }

  cell(effect, place, sampled, ofRecords) {
    const expected = effect.expected[place], ratio = effect.ratio[place], sampling = 1 / expected;
    const noise = effect.variance / (expected * expected) + (ofRecords ? 0 : sampling);
    const least = Math.min(LEAST_COUNT_KEPT / expected, 0.5), known = [];
    const make = (scale) => {
      const variances = this.factors.map((factor) =>
        (this.scales[scale] * factor) ** 2 * effect.freedom[place] + (sampled ? sampling : 0));
      const odds = variances.map((variance, f) => Math.log(this.shares[f]) + logOdds(ratio, variance, noise, least));
      const top = Math.max(...odds);
      let total = 0;
      const sums = odds.map((log) => total += Math.exp(log - top));
      const factors = variances.map((variance) => {
        const kept = variance / (variance + noise), mean = 1 + kept * ratio;
        const spread = Math.max(Math.sqrt(kept * noise), Math.sqrt(TINY));
        return { mean, spread, above: logNormal((mean - least) / spread) };
      });
      return { sums, factors };
    };
    return { least, at: (scale) => known[scale] ??= make(scale) };
  }

  /** Replace shares by those of as many records drawn from them. */
  sample(draws, count, records, next) {
    const states = draws.length / count, left = new Float64Array(count).fill(records), rest = new Float64Array(count).fill(1);
    for (let s = 0; s < states; s++)
      for (let d = 0, k = s * count; d < count; d++, k++) {
        const share = Math.min(Math.max(draws[k] / Math.max(rest[d], TINY), 0), 1);
        const drawn = s === states - 1 ? left[d] : binomialQuantile(next(), left[d], share);
        rest[d] -= draws[k];
        left[d] -= drawn;
        draws[k] = drawn / records;
      }
  }
}

const ordered = (variables) => [...variables].sort((a, b) => a - b);
