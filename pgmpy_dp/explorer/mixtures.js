// Answers of a mixture (`inference/mixtures/mixture.py`).

const MOST_STEPS = 5000; // of a search

/** A block's table by component, then cell: as it is, or from the effects of states in `explorer/content.py`. */
function unpackedTable({ plain, cells, starts, base, shape, effects, rest }, count) {
  if (plain) return plain;
  const table = new Float64Array(count * cells), size = shape.reduce((a, b) => a + b);
  let step = cells, start = 0;
  const places = shape.map((states) => {
    const first = start, own = step /= states;
    start += states;
    return Array.from({ length: cells }, (_, cell) => first + Math.floor(cell / own) % states);
  });
  for (let k = 0, run = -1, at = 0; k < count; k++) {
    if (k === starts[run + 1]) run++;
    for (let cell = 0; cell < cells; cell++, at++) {
      let log = base[run * cells + cell];
      for (const own of places) log += effects[k * size + own[cell]];
      if (rest) log += (rest[0][at] + 256 * rest[1][at] - 32767) / 2 ** 30;
      table[at] = Math.exp(log);
    }
  }
  return table;
}

/**
 * A mixture: weights of components, and tables of blocks. A variable has the group of every cell of its block, and the
 * group of every state, with its share of it.
 */
class Mixture {
  constructor({ weights, tables, variables }) {
    Object.assign(this, { weights, variables, widths: tables.map(({ cells }) => cells) });
    this.tables = tables.map((table) => unpackedTable(table, weights.length));
  }

  /** Cells that agree with the evidence by block, and the share of its finer states within them. */
  evidence(given) {
    const cells = this.widths.map((width) => [...Array(width).keys()]);
    let share = 1;
    for (const [variable, state] of given) {
      const { block, cellGroups, groups, shares } = this.variables[variable];
      cells[block] = cells[block].filter((cell) => cellGroups[cell] === groups[state]);
      share *= shares[state];
    }
    return { cells, share };
  }

  /** The distributions of all variables in some ranges of components, and the probability of the evidence. */
  answer(given, ranges = [[0, this.weights.length]]) {
    const { weights, tables, widths, variables } = this, { cells, share } = this.evidence(given);
    const sums = tables.map((table, block) => weights.map((_, k) => {
      if (cells[block].length === widths[block]) return 1;
      let sum = 0;
      for (const cell of cells[block]) sum += table[k * widths[block] + cell];
      return sum;
    }));
    const logs = weights.map((weight, k) => sums.reduce((log, own) => log + Math.log(own[k]), Math.log(weight)));
    const top = logs.reduce((a, b) => Math.max(a, b));
    if (share === 0 || top === -Infinity) return null;
    const raw = logs.map((log) => Math.exp(log - top));
    const answers = ranges.map(([first, end]) => {
      const whole = sumOf(raw.subarray(first, end));
      if (whole === 0) return null;
      const found = tables.map((table, block) => {
        const own = new Float64Array(widths[block]);
        for (let k = first; k < end; k++) {
          const factor = raw[k] && raw[k] / whole / sums[block][k];
          for (const cell of cells[block]) own[cell] += factor * table[k * widths[block] + cell];
        }
        return own;
      });
      return variables.map(({ block, size, cellGroups, groups, shares }) => {
        const own = new Float64Array(size);
        found[block].forEach((share, cell) => own[cellGroups[cell]] += share);
        return shares.map((share, s) => share * own[groups[s]]);
      });
    });
    return { answers, share: share * Math.exp(top) * sumOf(raw) };
  }

  /**
   * The most probable joint state of all variables: states of some blocks are completed by the next block, first by the
   * cell that may become most probable, and only if it may exceed the best state so far. Beyond a number of steps the
   * search ends, which proves nothing.
   */
  mostProbable(given) {
    const { weights, tables, widths, variables } = this, { cells } = this.evidence(given);
    const gains = widths.map((width) => new Float64Array(width).fill(1)); // by the most probable finer states
    variables.forEach(({ block, size, cellGroups, groups, shares }, v) => {
      if (given.has(v)) return;
      const top = new Float64Array(size);
      shares.forEach((share, s) => top[groups[s]] = Math.max(top[groups[s]], share));
      cellGroups.forEach((group, cell) => gains[block][cell] *= top[group]);
    });
    const value = (block, cell, k) => tables[block][k * widths[block] + cell] * gains[block][cell];
    const rest = [weights.map(() => 1)]; // largest factor of the blocks from each one on
    for (let block = widths.length - 1; block >= 0; block--) {
      const largest = (k) => cells[block].reduce((top, cell) => Math.max(top, value(block, cell, k)), 0);
      rest.unshift(rest[0].map((own, k) => own * largest(k)));
    }
    let best = { bound: 0 }, steps = 0;
    const complete = (bound, chosen, reached) => {
      const block = chosen.length;
      if (block === widths.length) return best = { bound, chosen };
      const most = reached.map((weight, k) => weight * rest[block + 1][k]);
      const boundOf = (cell) => most.reduce((sum, own, k) => sum + own * value(block, cell, k), 0);
      const next = cells[block].map((cell) => [boundOf(cell), cell]).sort(([one], [other]) => other - one);
      for (const [bound, cell] of next)
        if (bound > best.bound && steps++ < MOST_STEPS)
          complete(bound, [...chosen, cell], reached.map((weight, k) => weight * value(block, cell, k)));
    };
    complete(1, [], weights);
    return { found: this.stateOf(best.chosen, given), proven: steps <= MOST_STEPS };
  }

  /** The states of all variables in a cell of each block, the finer ones the most probable. */
  stateOf(cells, given) {
    return new Map(this.variables.map(({ block, cellGroups, groups, shares }, v) => {
      const own = [...shares.keys()].filter((s) => groups[s] === cellGroups[cells[block]]);
      return [v, given.get(v) ?? own.reduce((best, s) => shares[s] > shares[best] ? s : best)];
    }));
  }
}

// Answers of a mixture with bounds, from refits to simulated releases (`inference/mixtures/refits.py`).

const STRENGTH = 4, STARTS = 0.5, DEPENDENT = 2, MIN_VARIANCE_KEPT = 0.25, MIN_SHARE = 1e-6;
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

  mostProbable(given) { return this.own.mostProbable(given); }

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
      found = found.map((v, s) => Math.max(v - (1 - STARTS) * starts[s], MIN_VARIANCE_KEPT * v));
    }
    answers.forEach(({ given, records }, n) => {
      const shares = [...given].map(([v, s]) => this.alone[v][s]);
      const hidden = this.missing * sumOf(shares.map((share) => (1 - share) / Math.max(share, MIN_SHARE)));
      const more = DEPENDENT * this.beyondPairs(given) / Math.max(records, 1) + hidden;
      found = found.map((v, s) => v + more * owns[n][s]);
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
