// Answers of a network by its junction tree: exact, or from its draws (`models/trees/answers.py`).

class TreeEngine {
  constructor(tree, possible) {
    Object.assign(this, { possible, own: new Networks(tree, tree.own, 1), totals: tree.totals });
    this.whole = this.own.answer(new Map()).shares[0];
    this.corrections = new Corrections(tree.corrections, tree.cards);
    if (!tree.totals) return;
    this.banks = [tree.population, tree.records].map((bank) => new Networks(tree, bank, tree.totals.length));
    this.deviations = tree.deviations.map((own) => new Deviations(own, tree.cards)); // the records' are the last
  }

  /** An answer; `of` gives the distribution of a variable. */
  exact(given) {
    const found = this.own.answer(given);
    if (!found) return null;
    found.of.forEach(normaliseLogs);
    const plain = (variable) => found.of[variable].map(([value]) => value);
    const corrected = once((variable) => this.corrections.apply(plain(variable), variable, given));
    const of = (variable) => Array.from(corrected(variable), (value) => ({ value }));
    return { given, share: found.shares[0] / this.whole, of };
  }

  uncertain(given, ofRecords, stream) {
    const exact = this.exact(given), alone = ofRecords || this.deviations.length > 1; // some borrowed
    const drawn = (alone ? [ofRecords] : [false, true]).map((target) => this.drawn(given, target, stream));
    if (!exact || drawn.includes(null)) return null;
    const { value: records, lower, upper } = summary(drawn[0].counts);
    const at = { given, records, lower, upper, exact, drawn };
    at.of = once((variable) => exact.of(variable).map(({ value }, s) =>
      within(held(value, drawn.map((own) => own.of(variable)[s])), records)));
    return at;
  }

  /** Draws of the numbers of records with an evidence, and of answers. */
  drawn(given, ofRecords, stream) {
    const found = this.banks[+ofRecords].answer(given);
    if (!found) return null;
    const counts = this.totals.map((n, d) => given.size ? n * found.shares[d] : n), records = summary(counts).value;
    const at = { given, ofRecords, stream, records };
    return { counts, of: once((variable) => this.widened(found.of[variable], variable, at)) };
  }

  /** Draws of a variable's distribution by state, from those of the networks, whose logarithms they replace. */
  widened(states, variable, at) {
    this.deviations.at(-at.ofRecords).apply(states, variable, at); // which ignores rules
    this.possible(variable, at.given).forEach((may, s) => may || states[s].fill(0));
    normalise(states);
    return states;
  }

  /** The standard deviation of effects of the evidence that the release does not tell. */
  unknownEffects({ given }, variable) {
    const { outside, inside, scales, higher, effects, joined } = this.deviations.at(-1), others = [...given.keys()];
    if (outside === null || effects.has(ordered([variable, ...others]).join())) return 0;
    const square = (weights) => weights.reduce((sum, weight, s) => sum + weight * Math.sqrt(scales[s]), 0) ** 4;
    const pairs = others.map((other) => ordered([variable, other]).join()).filter((pair) => !effects.has(pair));
    const own = pairs.reduce((sum, pair) => sum + square(joined.has(pair) ? inside : outside), 0);
    return Math.sqrt(own + (others.length - 1) * higher ** 2 * square(outside));
  }

  /** The difference of a variable's distribution between two evidences, draw by draw. */
  difference(now, before, variable) {
    const values = before.exact.of(variable), others = before.drawn.map((own) => own.of(variable));
    return now.exact.of(variable).map(({ value }, s) => held(value - values[s].value, now.drawn.map((own, n) =>
      own.of(variable)[s].map((draw, d) => draw - others[n][s][d]))));
  }

  /** The mean of a number for each state. */
  mean(at, variable, numbers) {
    const mean = (states) => states[0].map((_, d) => states.reduce((sum, own, s) => sum + numbers[s] * own[d], 0));
    const value = dot(numbers, at.exact.of(variable).map((own) => own.value));
    return held(value, at.drawn.map((own) => mean(own.of(variable))));
  }
}

/** A value with bounds that hold all of some draws, and the value. */
function held(value, draws) {
  const found = draws.map(summary), ends = (key) => found.map((own) => own[key]);
  return { value, lower: Math.min(value, ...ends('lower')), upper: Math.max(value, ...ends('upper')) };
}
