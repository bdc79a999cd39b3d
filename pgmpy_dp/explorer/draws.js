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
    const found = this.banks[+ofRecords].answer(given), exact = this.exact(given);
    if (!found || !exact) return null;
    const { value: records, lower, upper } = summary(this.totals.map((n, d) => given.size ? n * found.shares[d] : n));
    const at = { given, ofRecords, stream, records, lower, upper, exact };
    at.drawn = once((variable) => this.widened(found.of[variable], variable, at));
    at.of = once((variable) => exact.of(variable).map(({ value }, s) =>
      within({ ...summary(at.drawn(variable)[s]), value }, records)));
    return at;
  }

  /** Draws of a variable's distribution by state, from those of the networks, whose logarithms they replace. */
  widened(states, variable, at) {
    this.deviations.at(-at.ofRecords).apply(states, variable, at); // which ignores rules
    this.possible(variable, at.given).forEach((may, s) => may || states[s].fill(0));
    normalise(states);
    return states;
  }

  /** The difference of a variable's distribution between two evidences, draw by draw. */
  difference(now, before, variable) {
    const others = before.drawn(variable), values = before.exact.of(variable);
    return now.exact.of(variable).map(({ value }, s) => {
      const { lower, upper } = summary(now.drawn(variable)[s].map((draw, d) => draw - others[s][d]));
      value -= values[s].value;
      return { value, lower: Math.min(lower, value), upper: Math.max(upper, value) };
    });
  }

  /** The mean of a number for each state. */
  mean(at, variable, numbers) {
    const states = at.drawn(variable), value = dot(numbers, at.exact.of(variable).map((own) => own.value));
    return { ...summary(states[0].map((_, d) => states.reduce((sum, own, s) => sum + numbers[s] * own[d], 0))), value };
  }
}
