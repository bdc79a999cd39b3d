// Answers of a mixture with bounds, from refits to simulated releases (`inference/mixtures/refits.py`).

const STRENGTH = 4, STARTS = 0.5, DEPENDENT = 2, LEAST_VARIANCE_KEPT = 0.25;
const around = (value, half) => ({ value, lower: value - half, upper: value + half });
const added = (parts) => parts.reduce((one, other) => one.map((own, s) => own + other[s]));

/** A mixture's answers, and their errors. */
class MixtureEngine {
  constructor({ errors, ...own }, possible, total) {
    Object.assign(this, errors, { own: new Mixture(own), possible, total });
    this.refits = errors?.refits.map((refit) => new Mixture(refit));
    this.alone = this.own.answer(new Map()).answers[0];
  }

  exact(given) {
    const found = this.own.answer(given);
    return found && this.answerOf(found.answers[0], given, found.share);
  }

  answerOf(values, given, share) {
    return { given, share, of: (variable) => Array.from(values[variable], (value) => ({ value })) };
  }

  /** Everything about an evidence that the bounds of all variables need. */
  uncertain(given, ofRecords) {
    const found = this.own.answer(given, [[0, this.own.weights.length], ...this.members]);
    if (found === null) return null;
    const { answers: [values, ...parts], share } = found, records = this.total * share, facts = [...given];
    const drawn = this.refits.map((refit, number) => {
      const again = refit.answer(given), columns = this.records[number], count = columns[0].length;
      const kept = [...columns[0].keys()].filter((row) => facts.every(([v, s]) => columns[v][row] === s));
      const missed = (again?.share ?? 0) - this.scaled(share, kept.length / count, count);
      return { answer: again?.answers[0] ?? this.alone, columns, kept, count, missed };
    });
    const square = sumOf(drawn.map(({ missed }) => missed ** 2)) / drawn.length;
    const half = given.size ? this.width * this.total * Math.sqrt(square) : 0;
    const at = { ...around(records, half), given, values, records, exact: this.answerOf(values, given, share) };
    at.lower = Math.max(at.lower, 0);
    at.errors = once((variable) => this.errorsOf(variable, values[variable], parts, drawn, share, ofRecords));
    at.of = once((variable) => this.answer(at, variable));
    return at;
  }

  answer(at, variable) {
    const spreads = this.spreads([at], variable), hidden = this.width * this.noise[variable];
    const possible = this.possible(variable, at.given);
    return Array.from(at.values[variable], (share, s) => {
      const { value, lower, upper } = around(share, this.width * spreads[s]);
      return within({ value, lower, upper: possible[s] ? Math.max(upper, hidden) : 0 }, at.records);
    });
  }

  /** Scale the deviation of some records' share to that of more records. */
  scaled(expected, share, count) {
    const near = Math.min(Math.sqrt(count / this.total), 1);
    return (1 - near) * expected + near * share;
  }

  /**
   * The errors of a variable's distribution in every refit, and in every member: relative to the distribution of the
   * drawn records, of which a share has the evidence, and to the one that they were drawn from unless `ofRecords`.
   */
  errorsOf(variable, values, parts, drawn, share, ofRecords) {
    const population = drawn.map(({ answer }) => answer[variable].map((p, s) => p - values[s]));
    const records = drawn.map(({ answer, columns, kept, count }) => {
      const counted = new Float64Array(values.length);
      for (const row of kept) counted[columns[variable][row]] += 1 / count;
      const truth = values.map((p, s) => this.total * this.scaled(share * p, counted[s], count));
      const all = sumOf(truth) + 1; // with one that matches the mixture, since there may be none
      return answer[variable].map((p, s) => p - (truth[s] + values[s]) / all);
    });
    const members = parts.map((part) => values.map((p, s) => part ? part[variable][s] - p : 0));
    return { records, population: ofRecords ? records : population, members };
  }

  /**
   * Standard deviations of the errors of a variable's distribution, or of the sum of independent parts of several; with
   * a number for each state, of the error of their mean.
   */
  spreads(answers, variable, { records, population, members } = answers[0].errors(variable), numbers) {
    const units = answers.map((at) => at.values[variable].map((p) => Math.max(p * (1 - p), 0)));
    const spread = (shares) => [dot(shares, numbers.map((x) => (x - dot(shares, numbers)) ** 2))];
    const owns = numbers ? answers.map((at) => spread(at.values[variable])) : units;
    const own = added(owns), level = Math.max(sumOf(added(units)), 1e-12);
    const variance = (errors, freedom) => {
      const whole = sumOf(errors.map((error) => dot(error, error))) / Math.max(freedom, 1) / level;
      const squares = added(errors.map((error) => (numbers ? [dot(error, numbers)] : error).map((e) => e ** 2)));
      return own.map((part, s) => (squares[s] + STRENGTH * whole * part) / (freedom + STRENGTH));
    };
    const [one, other] = [records, population].map((errors) => variance(errors, errors.length));
    let found = one.map((v, s) => Math.max(v, other[s]));
    if (answers.some((at) => at.given.size > 1)) {
      const starts = variance(members, members.length - 1);
      found = found.map((v, s) => Math.max(v - (1 - STARTS) * starts[s], LEAST_VARIANCE_KEPT * v));
    }
    answers.forEach(({ given, records }, n) => {
      const beyond = DEPENDENT * this.beyondPairs(given) / Math.max(records, 1);
      found = found.map((v, s) => v + beyond * owns[n][s]);
    });
    return found.map(Math.sqrt);
  }

  /** The mean of a number for each state. */
  mean(at, variable, numbers) {
    const value = dot(at.values[variable], numbers), [spread] = this.spreads([at], variable, undefined, numbers);
    return around(value, this.width * spread);
  }

  /** The difference of a variable's distribution between two evidences: errors are subtracted refit by refit. */
  difference(now, before, variable) {
    const [one, other] = [now, before].map((at) => at.errors(variable));
    const apart = (key) => one[key].map((error, j) => error.map((e, s) => e - other[key][j][s]));
    const errors = { records: apart('records'), population: apart('population'), members: apart('members') };
    const spreads = this.spreads([now, before], variable, errors);
    return Array.from(now.values[variable], (p, s) => around(p - before.values[variable][s], this.width * spreads[s]));
  }

  /** The share of sampling variance that tables of pairs leave open: that of sets of two or more of the evidence. */
  beyondPairs(given) {
    let none = 1, one = 0;
    for (const [variable, state] of given) {
      const share = this.alone[variable][state];
      one = one * share + none * (1 - share);
      none *= share;
    }
    return Math.max(1 - none - one, 0);
  }
}
