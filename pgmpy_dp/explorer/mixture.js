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
}

const STRENGTH = 4, STARTS = 0.5, DEPENDENT = 2, LEAST_VARIANCE_KEPT = 0.25, LOW = 1.645;

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
    return found && { share: found.share, of: (variable) => unbounded(found.answers[0][variable]) };
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
      given, values, parts, share, records, errors, ofRecords,
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

  /** Standard deviations of the errors of a variable's distribution, or of the sum of independent parts of several. */
  deviations(answers, variable, { refits, members } = this.errorsOf(answers[0], variable)) {
    const units = answers.map((at) => at.values[variable].map((p) => Math.max(p * (1 - p), 0)));
    const unit = units.reduce((one, other) => one.map((own, s) => own + other[s]));
    const level = Math.max(unit.reduce((a, b) => a + b), 1e-12);
    const variance = (errors, freedom) => {
      let whole = 0;
      for (const error of errors) for (const e of error) whole += e * e;
      return unit.map((own, s) => {
        let squares = STRENGTH * whole / Math.max(freedom, 1) / level * own;
        for (const error of errors) squares += error[s] * error[s];
        return squares / (freedom + STRENGTH);
      });
    };
    let found = variance(refits, refits.length);
    if (answers.some((at) => at.given.size > 1)) {
      const starts = variance(members, members.length - 1);
      found = found.map((v, s) => Math.max(v - (1 - STARTS) * starts[s], LEAST_VARIANCE_KEPT * v));
    }
    answers.forEach(({ given, records }, n) => {
      if (given.size < 2) return;
      const beyond = this.beyondPairs(given, variable);
      found = found.map((v, s) => v + DEPENDENT * beyond[s] * units[n][s] / Math.max(records, 1));
    });
    return found.map(Math.sqrt);
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
