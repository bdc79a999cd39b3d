// Answers of a mixture (`inference/mixtures/mixture.py`).

const MOST_STEPS = 5000; // of a search

/** A block's table by component, then cell: as it is, or from the effects of states in `explorer/mixtures.py`. */
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
