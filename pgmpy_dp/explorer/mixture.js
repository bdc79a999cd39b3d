// Answers of a mixture (`inference/mixtures/mixture.py`), and their errors in refits (`inference/mixtures/refits.py`).

/** A block's table by component, then cell: as it is, or from the effects of states in `explorer/mixtures.py`. */
function unpackedTable({ plain, cells, base, shape, effects, rest }, ranges) {
  if (plain) return plain;
  const table = new Float64Array(ranges.at(-1)[1] * cells), size = shape.reduce((a, b) => a + b), second = shape[1] ?? 1;
  ranges.forEach(([first, end], range) => {
    for (let k = first, at = first * cells; k < end; k++)
      for (let cell = 0; cell < cells; cell++, at++) {
        let log = base[range * cells + cell] + effects[k * size + Math.floor(cell / second)];
        if (shape.length > 1) log += effects[k * size + shape[0] + cell % second];
        if (rest) log += (rest[0][at] + 256 * rest[1][at] - 32768) / 2 ** 28;
        table[at] = Math.exp(log);
      }
  });
  return table;
}

/** A mixture: weights of components, tables of blocks, and the block or the coarser variable of every variable. */
class Mixture {
  constructor({ weights, tables, variables, ranges }) {
    Object.assign(this, { weights, variables });
    this.tables = tables.map((table) => unpackedTable(table, ranges));
    this.widths = tables.map(({ cells }) => cells);
  }

  /** Cells that agree with the evidence by block, and the share of its finer states; null if none can. */
  evidence(given) {
    const coarse = new Map(), cells = new Map();
    let share = 1;
    for (const [variable, state] of given) {
      const { coarser, groups, shares } = this.variables[variable], root = coarser ?? variable;
      const own = groups ? groups[state] : state;
      if (shares) share *= shares[state];
      if (coarse.has(root) && coarse.get(root) !== own) return null;
      coarse.set(root, own);
    }
    for (const [variable, state] of coarse) {
      const { block, states } = this.variables[variable], kept = cells.get(block) ?? [...Array(this.widths[block]).keys()];
      cells.set(block, kept.filter((cell) => states[cell] === state));
    }
    return { cells, share };
  }

  /** The distributions of all variables in some ranges of components, and the probability of the evidence. */
  answer(given, ranges = [[0, this.weights.length]]) {
    const { weights, tables, widths, variables } = this, known = this.evidence(given);
    if (known === null) return null;
    const count = weights.length, logs = Float64Array.from(weights, Math.log), sums = new Map();
    for (const [block, cells] of known.cells) {
      const own = new Float64Array(count), width = widths[block], table = tables[block];
      for (let k = 0; k < count; k++) {
        for (const cell of cells) own[k] += table[k * width + cell];
        logs[k] += Math.log(own[k]);
      }
      sums.set(block, own);
    }
    const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
    if (top === -Infinity) return null;
    const raw = logs.map((log) => Math.exp(log - top)), share = known.share * Math.exp(top) * raw.reduce((a, b) => a + b);
    const answers = ranges.map(([first, end]) => {
      let total = 0;
      for (let k = first; k < end; k++) total += raw[k];
      return { total, of: variables.map(({ size }) => new Float64Array(size)) };
    });
    widths.forEach((width, block) => {
      const cells = known.cells.get(block) ?? [...Array(width).keys()], own = sums.get(block), table = tables[block];
      ranges.forEach(([first, end], range) => {
        const { total, of } = answers[range], found = new Float64Array(width);
        for (let k = first; k < end; k++) {
          const factor = raw[k] === 0 ? 0 : raw[k] / total / (own ? own[k] : 1);
          if (factor === 0) continue;
          for (const cell of cells) found[cell] += factor * table[k * width + cell];
        }
        variables.forEach(({ block: held, states }, variable) => {
          if (held === block) for (let cell = 0; cell < width; cell++) of[variable][states[cell]] += found[cell];
        });
      });
    });
    for (const { of } of answers)
      variables.forEach(({ coarser, groups, shares }, variable) => {
        if (groups) of[variable].forEach((_, s, own) => own[s] = shares[s] * of[coarser][groups[s]]);
      });
    return { answers: answers.map(({ of, total }) => (total > 0 ? of : null)), share };
  }

  /**
   * The most probable joint state of all variables: of states of some blocks, the one that may become most probable is
   * completed by the next block first. Beyond a number of steps, the ones of most blocks are, which proves nothing.
   */
  mostProbable(given) {
    const { weights, tables, widths, variables } = this, known = this.evidence(given).cells;
    const cells = widths.map((width, block) => known.get(block) ?? [...Array(width).keys()]);
    const finest = variables.map(({ coarser, groups, shares }, v) => {
      const top = coarser !== undefined && !given.has(v) && new Float64Array(variables[coarser].size);
      if (top) shares.forEach((share, s) => top[groups[s]] = Math.max(top[groups[s]], share));
      return top;
    });
    const gain = (block, cell) => variables.reduce((product, { coarser }, v) => finest[v] && variables[coarser].block === block
      ? product * finest[v][variables[coarser].states[cell]] : product, 1);
    const gains = cells.map((own, block) => own.map((cell) => gain(block, cell)));
    const value = (block, n, k) => tables[block][k * widths[block] + cells[block][n]] * gains[block][n];
    const rest = [new Float64Array(weights.length).fill(1)]; // largest factor of the blocks from each one on
    for (let block = widths.length - 1; block >= 0; block--)
      rest.unshift(rest[0].map((own, k) => own * cells[block].reduce((top, _, n) => Math.max(top, value(block, n, k)), 0)));
    const open = [{ bound: Infinity, chosen: [] }];
    for (let steps = 0; ; steps++) {
      const rank = ({ bound, chosen }) => bound + (steps > MOST_STEPS ? chosen.length : 0); // bounds are at most 1
      const at = open.reduce((best, own, n) => rank(own) > rank(open[best]) ? n : best, 0);
      const [{ chosen }] = open.splice(at, 1), block = chosen.length;
      if (block === widths.length) return { found: this.stateOf(chosen.map((n, own) => cells[own][n]), given), proven: steps <= MOST_STEPS };
      const reached = weights.map((weight, k) => chosen.reduce((product, n, own) => product * value(own, n, k), weight * rest[block + 1][k]));
      cells[block].forEach((_, n) => {
        const bound = reached.reduce((sum, own, k) => sum + own * value(block, n, k), 0);
        if (bound > 0) open.push({ bound, chosen: [...chosen, n] });
      });
    }
  }

  /** The states of all variables in a cell of each block, the finer ones the most probable. */
  stateOf(cells, given) {
    const found = new Map(this.variables.map(({ block, states }, v) => [v, states?.[cells[block]]]));
    this.variables.forEach(({ coarser, groups, shares }, v) => {
      if (coarser === undefined) return;
      const own = [...shares.keys()].filter((s) => groups[s] === found.get(coarser));
      found.set(v, given.get(v) ?? own.reduce((best, s) => shares[s] > shares[best] ? s : best));
    });
    return found;
  }
}

const STRENGTH = 4, STARTS = 0.5, DEPENDENT = 2, LEAST_VARIANCE_KEPT = 0.25, LOW = 1.645, MOST_STEPS = 5000;
const dot = (one, other) => one.reduce((sum, own, n) => sum + own * other[n], 0);

/** A mixture's answers, and their errors, from refits to simulated releases. */
class MixtureEngine {
  constructor(held, rules, total) {
    this.own = new Mixture(held);
    Object.assign(this, held.errors, { rules, total });
    this.refits = held.errors?.refits.map((refit) => new Mixture(refit));
    this.alone = this.own.answer(new Map()).answers[0];
  }

  exact(given) {
    const found = this.own.answer(given);
    return found && { given, share: found.share, of: (variable) => unbounded(found.answers[0][variable]) };
  }

  /** Everything about an evidence that the bounds of all variables need. */
  uncertain(given, ofRecords) {
    const { own, total, members, refits } = this;
    const found = own.answer(given, [[0, own.weights.length], ...members]);
    if (found === null) return null;
    const [values, ...parts] = found.answers, { share } = found, records = total * share;
    const facts = [...given];
    let squares = 0;
    const errors = refits.map((refit, number) => {
      const again = refit.answer(given), columns = this.records[number], count = columns[0].length, kept = [];
      for (let row = 0; row < count; row++) if (facts.every(([v, s]) => columns[v][row] === s)) kept.push(row);
      squares += ((again?.share ?? 0) - this.drawn(share, kept.length / count, count)) ** 2;
      return { answer: again?.answers[0] ?? this.alone, columns, kept, count };
    });
    const uncertainty = given.size ? total * Math.sqrt(squares / refits.length) : 0, half = this.width * uncertainty;
    const at = {
      given, exact: { of: (variable) => unbounded(values[variable]) }, values, parts, share, records, errors, ofRecords,
      lower: Math.max(records - half, 0), upper: records + half, least: records - LOW * uncertainty,
    };
    return { ...at, of: (variable) => this.answer(at, variable) };
  }

  answer(at, variable) {
    const { width, noise } = this, deviations = this.deviations([at], variable), possible = this.rules.possible(variable, at.given);
    return Array.from(at.values[variable], (value, s) => within(value, value - width * deviations[s],
      possible[s] ? Math.max(value + width * deviations[s], width * noise[variable]) : 0, at.records));
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
    return { refits, members: at.parts.map((part) => part ? part[variable].map((p, s) => p - answer[s]) : answer.map(() => 0)) };
  }

  /**
   * Standard deviations of the errors of a variable's distribution, or of the sum of independent parts of several; with
   * a number for each state, of the error of their mean.
   */
  deviations(answers, variable, { refits, members } = this.errorsOf(answers[0], variable), numbers) {
    const units = answers.map((at) => at.values[variable].map((p) => Math.max(p * (1 - p), 0)));
    const spread = (values) => [dot(values, numbers.map((x) => (x - dot(values, numbers)) ** 2))];
    const owns = numbers ? answers.map((at) => spread(at.values[variable])) : units;
    const sum = (parts) => parts.reduce((one, other) => one.map((own, s) => own + other[s]));
    const own = sum(owns), level = Math.max(sum(units).reduce((a, b) => a + b), 1e-12);
    const variance = (errors, freedom) => {
      const pooled = STRENGTH * errors.reduce((total, error) => total + dot(error, error), 0) / Math.max(freedom, 1) / level;
      const seen = numbers ? errors.map((error) => [dot(error, numbers)]) : errors;
      return own.map((part, s) => (seen.reduce((total, error) => total + error[s] ** 2, 0) + pooled * part) / (freedom + STRENGTH));
    };
    let found = variance(refits, refits.length);
    if (answers.some((at) => at.given.size > 1)) {
      const starts = variance(members, members.length - 1);
      found = found.map((v, s) => Math.max(v - (1 - STARTS) * starts[s], LEAST_VARIANCE_KEPT * v));
    }
    answers.forEach(({ given, records }, n) => {
      if (given.size < 2) return;
      const pairs = this.beyondPairs(given, variable), beyond = numbers ? [dot(units[n], pairs) / level] : pairs;
      found = found.map((v, s) => v + DEPENDENT * beyond[s] * owns[n][s] / Math.max(records, 1));
    });
    return found.map(Math.sqrt);
  }

  /** The mean of a number for each state. */
  mean(at, variable, numbers) {
    const value = dot(at.values[variable], numbers), [deviation] = this.deviations([at], variable, undefined, numbers);
    return { value, lower: value - this.width * deviation, upper: Math.max(value + this.width * deviation, 0) };
  }

  /** The difference of a variable's distribution between two evidences: errors are subtracted refit by refit. */
  difference(now, before, variable) {
    const [one, other] = [now, before].map((at) => this.errorsOf(at, variable));
    const apart = (key) => one[key].map((error, j) => error.map((e, s) => e - other[key][j][s]));
    const deviations = this.deviations([now, before], variable, { refits: apart('refits'), members: apart('members') });
    return Array.from(now.values[variable], (p, s) => {
      const value = p - before.values[variable][s], half = this.width * deviations[s];
      return { value, lower: value - half, upper: value + half };
    });
  }

  tells() { return true; }
  mostProbable(given) { return this.own.mostProbable(given); }

  /** The share of a state's sampling variance that tables of pairs leave open. */
  beyondPairs(given, variable) {
    const more = ([none, one, two], share) =>
      [none * share, none * (1 - share) + one * share, one * (1 - share) + two * share];
    let sizes = [1, 0, 0];
    for (const [other, state] of given) sizes = more(sizes, this.alone[other][state]);
    const sum = ([a, b, c]) => a + b + c;
    return this.alone[variable].map((share) => {
      const beyond = 1 - share - (sum(more(sizes, share)) - share * sum(sizes));
      return Math.min(Math.max(beyond / Math.max(1 - share, 1e-12), 0), 1);
    });
  }
}
