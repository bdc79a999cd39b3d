// Answers of a mixture with bounds, from refits to simulated releases (`inference/mixtures/refits.py`).

const STRENGTH = 4, STARTS = 0.5, DEPENDENT = 2, LEAST_VARIANCE_KEPT = 0.25, LOW = 1.645;
const around = (value, half) => ({ value, lower: value - half, upper: value + half });
const valuesOf = (answers) => (variable) => Array.from(answers[variable], (value) => ({ value }));
const dot = (one, other) => one.reduce((sum, own, n) => sum + own * other[n], 0);

/** A mixture's answers, and their errors, from refits to simulated releases. */
class MixtureEngine {
  constructor({ errors, ...own }, possible, total) {
    Object.assign(this, errors, { own: new Mixture(own), possible, total });
    this.refits = errors?.refits.map((refit) => new Mixture(refit));
    this.alone = this.own.answer(new Map()).answers[0];
  }

  exact(given) {
    const found = this.own.answer(given);
    return found && { given, share: found.share, of: valuesOf(found.answers[0]) };
  }

  /** Everything about an evidence that the bounds of all variables need. */
  uncertain(given, ofRecords) {
    const { own, total, members, refits, records: drawn } = this;
    const found = own.answer(given, [[0, own.weights.length], ...members]);
    if (found === null) return null;
    const { answers: [values, ...parts], share } = found, records = total * share, facts = [...given];
    const errors = refits.map((refit, number) => {
      const again = refit.answer(given), columns = drawn[number], count = columns[0].length;
      const kept = [...columns[0].keys()].filter((row) => facts.every(([v, s]) => columns[v][row] === s));
      const missed = (again?.share ?? 0) - this.drawn(share, kept.length / count, count);
      return { answer: again?.answers[0] ?? this.alone, columns, kept, count, missed };
    });
    const square = errors.reduce((sum, { missed }) => sum + missed ** 2, 0) / refits.length;
    const uncertainty = given.size ? total * Math.sqrt(square) : 0, half = this.width * uncertainty;
    const at = { given, ofRecords, values, parts, share, errors, exact: { of: valuesOf(values) }, records,
      lower: Math.max(records - half, 0), upper: records + half, least: records - LOW * uncertainty };
    return Object.assign(at, { of: (variable) => this.answer(at, variable) });
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
  drawn(expected, share, count) {
    const near = Math.min(Math.sqrt(count / this.total), 1);
    return (1 - near) * expected + near * share;
  }

  /** The errors of a variable's distribution in every refit, and in every member. */
  errorsOf(at, variable) {
    const answer = at.values[variable];
    const refits = at.errors.map(({ answer: again, columns, kept, count }) => {
      let truth = answer;
      if (at.ofRecords) {
        const counted = new Float64Array(answer.length), column = columns[variable];
        for (const row of kept) counted[column[row]] += 1 / count;
        truth = answer.map((p, s) => this.total * this.drawn(at.share * p, counted[s], count));
        const all = truth.reduce((a, b) => a + b) + 1;
        truth = truth.map((drawn, s) => (drawn + answer[s]) / all);
      }
      return again[variable].map((p, s) => p - truth[s]);
    });
    const members = at.parts.map((part) => answer.map((p, s) => part ? part[variable][s] - p : 0));
    return { refits, members };
  }

  /**
   * Standard deviations of the errors of a variable's distribution, or of the sum of independent parts of several; with
   * a number for each state, of the error of their mean.
   */
  spreads(answers, variable, { refits, members } = this.errorsOf(answers[0], variable), numbers) {
    const sum = (parts) => parts.reduce((one, other) => one.map((own, s) => own + other[s]));
    const units = answers.map((at) => at.values[variable].map((p) => Math.max(p * (1 - p), 0)));
    const spread = (values) => [dot(values, numbers.map((x) => (x - dot(values, numbers)) ** 2))];
    const owns = numbers ? answers.map((at) => spread(at.values[variable])) : units;
    const own = sum(owns), level = Math.max(sum(units).reduce((a, b) => a + b), 1e-12);
    const variance = (errors, freedom) => {
      const whole = errors.reduce((total, error) => total + dot(error, error), 0) / Math.max(freedom, 1) / level;
      const squares = sum(errors.map((error) => (numbers ? [dot(error, numbers)] : error).map((e) => e ** 2)));
      return own.map((part, s) => (squares[s] + STRENGTH * whole * part) / (freedom + STRENGTH));
    };
    let found = variance(refits, refits.length);
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
    const [one, other] = [now, before].map((at) => this.errorsOf(at, variable));
    const apart = (key) => one[key].map((error, j) => error.map((e, s) => e - other[key][j][s]));
    const spreads = this.spreads([now, before], variable, { refits: apart('refits'), members: apart('members') });
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
