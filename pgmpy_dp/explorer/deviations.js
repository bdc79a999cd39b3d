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
  constructor(held, cards, array) {
    Object.assign(this, held);
    this.cards = cards;
    this.streams = held.streams.map((state) => new RandomNumbers(state));
    this.effects = new Map(held.effects.map((effect) => [effect.scope.join(), {
      ...effect, expected: array(effect.expected), ratio: array(effect.ratio), freedom: array(effect.freedom),
    }]));
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
  apply(draws, count, variable, given, records, ofRecords, stream = 0) {
    const states = this.cards[variable], scope = ordered([variable, ...given.keys()]);
    const whole = this.effects.has(scope.join());
    const others = [...given.keys()].sort((a, b) => this.ranks[a] - this.ranks[b]);
    const parts = whole ? [scope] : others.map((other) => ordered([variable, other]));
    const logs = new Float64Array(states * count), numbers = { at: 0, next() { return random.at(this.at++); } };
    const random = this.streams[stream];
    for (const part of parts) {
      const sampled = ofRecords && scope.length === part.length && !this.joins(part);
      this.add(logs, count, part, variable, given, sampled, ofRecords, numbers);
    }
    if (!whole && this.outside !== null)
      for (let round = 0; round < scope.length - 2; round++) this.addNew(logs, count, this.outside, this.higher, numbers);
    for (let d = 0; d < count; d++) {
      let top = -Infinity, total = 0;
      for (let k = d; k < logs.length; k += count) if (logs[k] > top) top = logs[k];
      for (let k = d; k < logs.length; k += count) total += draws[k] *= Math.exp(logs[k] - top);
      for (let k = d; k < logs.length; k += count) draws[k] /= total;
    }
    if (ofRecords && this.outside !== null && !whole) this.sample(draws, count, Math.max(1, Math.round(records)), numbers);
  }

  /** Add an effect that is new in every cell, with the scale of pairs of its kind. */
  addNew(logs, count, weights, factor, numbers) {
    const scales = this.scalesOf(weights, count, numbers), states = logs.length / count;
    for (let d = 0; d < count; d++)
      for (let s = 0; s < states; s++)
        logs[s * count + d] += factor * this.scales[scales[d]] * normalQuantile(numbers.next());
  }

  scalesOf(weights, count, numbers) {
    let total = 0;
    const sums = weights.map((weight) => total += weight);
    return Array.from({ length: count }, () => {
      const u = numbers.next(), place = sums.findIndex((sum) => sum / total > u);
      return place < 0 ? sums.length - 1 : place;
    });
  }

  add(logs, count, part, variable, given, sampled, ofRecords, numbers) {
    const effect = this.effects.get(part.join()), joins = this.joins(part);
    if (effect === undefined) {
      if (joins || this.outside !== null) this.addNew(logs, count, joins ? this.inside : this.beside, 1, numbers);
      return;
    }
    const states = this.cards[variable], cells = this.cells(effect, variable, given, sampled, ofRecords);
    const scales = this.scalesOf(effect.weights, count, numbers), chosen = new Int32Array(count * states);
    for (let d = 0, at = 0; d < count; d++)
      for (let s = 0; s < states; s++, at++) {
        const { sums } = cells[s].at(scales[d]), u = numbers.next() * sums[sums.length - 1];
        let place = 0;
        while (place < sums.length - 1 && u > sums[place]) place++;
        chosen[at] = place;
      }
    for (let d = 0, at = 0; d < count; d++)
      for (let s = 0; s < states; s++, at++) {
        const { mean, spread, above } = cells[s].at(scales[d]).factors[chosen[at]];
        const drawn = mean - spread * quantileOfLog(above + Math.log1p(-numbers.next()));
        logs[s * count + d] += Math.log(Math.max(drawn, cells[s].least));
      }
  }

  /** The cells of a measured table given states of its other variables, with what each scale makes of them. */
  cells(effect, variable, given, sampled, ofRecords) {
    const shape = effect.scope.map((v) => this.cards[v]);
    let base = 0, stride = 0, step = 1;
    for (let axis = shape.length - 1; axis >= 0; step *= shape[axis--]) {
      if (effect.scope[axis] === variable) stride = step;
      else base += given.get(effect.scope[axis]) * step;
    }
    const key = [effect.scope, base, variable, sampled, ofRecords].join();
    if (!this.tables.has(key))
      this.tables.set(key, Array.from({ length: this.cards[variable] }, (_, s) =>
        this.cell(effect, base + s * stride, sampled, ofRecords)));
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
  sample(draws, count, records, numbers) {
    const states = draws.length / count, left = new Float64Array(count).fill(records), rest = new Float64Array(count).fill(1);
    for (let s = 0; s < states; s++)
      for (let d = 0, k = s * count; d < count; d++, k++) {
        const share = Math.min(Math.max(draws[k] / Math.max(rest[d], TINY), 0), 1);
        const drawn = s === states - 1 ? left[d] : binomialQuantile(numbers.next(), left[d], share);
        rest[d] -= draws[k];
        left[d] -= drawn;
        draws[k] = drawn / records;
      }
  }
}

const ordered = (variables) => [...variables].sort((a, b) => a - b);
