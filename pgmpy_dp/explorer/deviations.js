// Deviations of records from a network (`models/trees/deviations.py`): the same effects from the same random numbers.

const LEAST_COUNT_KEPT = 0.25, TINY = 1e-12;
/** The place of the cell of a state of a variable, and given states of the others, in a table. */
const placeOf = (scope, cards, given, variable, state) =>
  scope.reduce((at, v) => at * cards[v] + (v === variable ? state : given.get(v)), 0);
const ordered = (variables) => [...variables].sort((a, b) => a - b);
/** The tables whose effects an answer has: that of all its variables if it is known, else those of pairs. */
const partsOf = (scope, variable, others, known) =>
  known.has(scope.join()) ? [scope] : others.map((other) => ordered([variable, other]));

/** What measured tables say about a network's answers that they contradict. */
class Corrections {
  constructor(tables, cards) {
    Object.assign(this, { cards, factors: new Map(tables.map((table) => [table.scope.join(), table])) });
  }

  /** Shift a variable's distribution by the centres of the effects. */
  apply(values, variable, given) {
    const scope = ordered([variable, ...given.keys()]), moved = Float64Array.from(values);
    for (const part of partsOf(scope, variable, [...given.keys()], this.factors)) {
      const held = this.factors.get(part.join());
      if (held) moved.forEach((_, s) => moved[s] *= held.factors[placeOf(part, this.cards, given, variable, s)]);
    }
    const sum = sumOf(moved);
    return moved.map((value) => value / sum);
  }
}

class Deviations {
  constructor(held, cards) {
    Object.assign(this, held, { cards });
    this.streams = held.streams.map(randomNumbers);
    this.effects = new Map(held.effects.map((effect) => [effect.scope.join(), effect]));
  }

  joins(scope) {
    return this.families.some((family) => scope.every((v) => family.includes(v)));
  }

  /** Whether the release determines the error of an answer if the network's structure is wrong. */
  tells(variable, given) {
    return this.told || this.effects.has(ordered([variable, ...given.keys()]).join());
  }

  /**
   * Shift and widen draws of a variable's distribution, in place: logarithms by state, then draw, become probabilities.
   *
   * Answers that are compared read different streams, so that their effects are independent.
   */
  apply(states, variable, { given, records, ofRecords, stream }) {
    const next = this.streams[stream](), others = [...given.keys()].sort((a, b) => this.ranks[a] - this.ranks[b]);
    const scope = ordered([variable, ...others]), whole = this.effects.has(scope.join());
    const open = !whole && this.outside !== null;
    for (const part of partsOf(scope, variable, others, this.effects)) {
      const effect = this.effects.get(part.join()), joins = this.joins(part);
      const sampled = ofRecords && scope.length === part.length && !joins;
      const place = (state) => placeOf(part, this.cards, given, variable, state);
      const cell = (_, state) => this.cell(effect, place(state), sampled, ofRecords);
      if (effect) this.add(states, effect, states.map(cell), next);
      else if (joins || open) this.addNew(states, joins ? this.inside : this.outside, 1, next);
    }
    for (let size = 2; open && size < scope.length; size++) this.addNew(states, this.outside, this.higher, next);
    normaliseLogs(states);
    if (ofRecords && !whole && !this.joins(scope)) this.sample(states, Math.max(1, Math.round(records)), next);
  }

  /** A scale for every draw. */
  scalesOf(weights, states, next) {
    const place = placeAmong(weights);
    return Array.from(states[0], () => place(next()));
  }

  /** Add an effect that is new in every cell, with the scale of pairs of its kind. */
  addNew(states, weights, factor, next) {
    this.scalesOf(weights, states, next).forEach((scale, d) => {
      for (const own of states) own[d] += factor * this.scales[scale] * quantileOfLog(Math.log(next()));
    });
  }

  /** Add the effect of a measured table, whose factor is drawn before it in every cell. */
  add(states, effect, cells, next) {
    const scales = this.scalesOf(effect.weights, states, next);
    const chosen = scales.map((scale) => cells.map(({ choose }) => choose[scale](next())));
    chosen.forEach((draw, d) => draw.forEach(({ mean, spread, above }, s) => {
      const drawn = mean - spread * quantileOfLog(above + Math.log1p(-next()));
      states[s][d] += Math.log(Math.max(drawn, cells[s].least));
    }));
  }

  /** A cell of a measured table, with a choice of factors for each scale: effects are normal, truncated at `least`. */
  cell({ expected, ratio, freedom, variance }, place, sampled, ofRecords) {
    const sampling = 1 / expected[place], noise = variance * sampling ** 2 + (ofRecords ? 0 : sampling);
    const least = Math.min(LEAST_COUNT_KEPT * sampling, 0.5);
    const choose = this.scales.map((scale) => {
      const factors = this.factors.map((factor, f) => {
        const own = (scale * factor) ** 2 * freedom[place] + (sampled ? sampling : 0), total = own + noise;
        const mean = 1 + own / total * ratio[place], spread = Math.sqrt(Math.max(own / total * noise, TINY));
        const above = logNormal((mean - least) / spread), before = logNormal((1 - least) / Math.sqrt(own));
        const log = above - before - 0.5 * (Math.log(total) + ratio[place] ** 2 / total);
        return { mean, spread, above, log: Math.log(this.shares[f]) + log };
      });
      const top = Math.max(...factors.map(({ log }) => log));
      const pick = placeAmong(factors.map(({ log }) => Math.exp(log - top)));
      return (u) => factors[pick(u)];
    });
    return { least, choose };
  }

  /** Replace shares by those of as many records drawn from them. */
  sample(states, records, next) {
    const left = states[0].map(() => records), rest = states[0].map(() => 1);
    states.forEach((own, s) => own.forEach((p, d) => {
      const share = Math.min(Math.max(p / Math.max(rest[d], TINY), 0), 1);
      const drawn = s === states.length - 1 ? left[d] : binomialQuantile(next(), left[d], share);
      rest[d] -= p;
      left[d] -= drawn;
      own[d] = drawn / records;
    }));
  }
}
