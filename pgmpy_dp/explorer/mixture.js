// Answers of a mixture (`inference/mixtures/mixture.py`).

const MOST_STEPS = 5000; // of a search

/** A block's table by component, then cell: as it is, or from the effects of states in `explorer/mixtures.py`. */
function unpackedTable({ plain, cells, starts, base, shape, effects, rest }, count) {
  if (plain) return plain;
  const table = new Float64Array(count * cells), size = shape.reduce((a, b) => a + b), second = shape[1] ?? 1;
  for (let k = 0, run = -1, at = 0; k < count; k++) {
    if (k === starts[run + 1]) run++;
    for (let cell = 0; cell < cells; cell++, at++) {
      let log = base[run * cells + cell] + effects[k * size + Math.floor(cell / second)];
      if (shape.length > 1) log += effects[k * size + shape[0] + cell % second];
      if (rest) log += (rest[0][at] + 256 * rest[1][at] - 32767) / 2 ** 31;
      table[at] = Math.exp(log);
    }
  }
  return table;
}

/** A mixture: weights of components, tables of blocks, and the block or the coarser variable of every variable. */
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
      const { coarser: root = variable, groups, shares } = this.variables[variable], own = groups?.[state] ?? state;
      const { block, states } = this.variables[root];
      cells[block] = cells[block].filter((cell) => states[cell] === own);
      share *= shares?.[state] ?? 1;
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
    const raw = logs.map((log) => Math.exp(log - top)), total = (values) => values.reduce((a, b) => a + b, 0);
    const answers = ranges.map(([first, end]) => {
      const whole = total(raw.subarray(first, end));
      if (whole === 0) return null;
      const found = tables.map((table, block) => {
        const own = new Float64Array(widths[block]);
        for (let k = first; k < end; k++) {
          const factor = raw[k] && raw[k] / whole / sums[block][k];
          for (const cell of cells[block]) own[cell] += factor * table[k * widths[block] + cell];
        }
        return own;
      });
      const of = variables.map(({ size, block, states }) => {
        const own = new Float64Array(size);
        found[block]?.forEach((share, cell) => own[states[cell]] += share);
        return own;
      });
      return variables.map(({ coarser, groups, shares }, v) =>
        groups ? shares.map((share, s) => share * of[coarser][groups[s]]) : of[v]);
    });
    return { answers, share: share * Math.exp(top) * total(raw) };
  }

  /**
   * The most probable joint state of all variables: of states of some blocks, the one that may become most probable is
   * completed by the next block first. Beyond a number of steps, the ones of most blocks are, which proves nothing.
   */
  mostProbable(given) {
    const { weights, tables, widths, variables } = this, { cells } = this.evidence(given);
    const gains = widths.map((width) => new Float64Array(width).fill(1)); // by the most probable finer states
    variables.forEach(({ coarser, groups, shares }, v) => {
      if (!groups || given.has(v)) return;
      const { block, states, size } = variables[coarser], top = new Float64Array(size);
      shares.forEach((share, s) => top[groups[s]] = Math.max(top[groups[s]], share));
      states.forEach((state, cell) => gains[block][cell] *= top[state]);
    });
    const value = (block, cell, k) => tables[block][k * widths[block] + cell] * gains[block][cell];
    const rest = [weights.map(() => 1)]; // largest factor of the blocks from each one on
    for (let block = widths.length - 1; block >= 0; block--) {
      const largest = (k) => cells[block].reduce((top, cell) => Math.max(top, value(block, cell, k)), 0);
      rest.unshift(rest[0].map((own, k) => own * largest(k)));
    }
    const open = [{ bound: Infinity, chosen: [] }];
    for (let steps = 0; ; steps++) {
      const rank = ({ bound, chosen }) => bound + (steps > MOST_STEPS ? chosen.length : 0); // bounds are at most 1
      const at = open.reduce((best, own, n) => rank(own) > rank(open[best]) ? n : best, 0);
      const [{ chosen }] = open.splice(at, 1), block = chosen.length;
      if (block === widths.length) return { found: this.stateOf(chosen, given), proven: steps <= MOST_STEPS };
      const reached = weights.map((weight, k) =>
        chosen.reduce((product, cell, own) => product * value(own, cell, k), weight * rest[block + 1][k]));
      for (const cell of cells[block]) {
        const bound = reached.reduce((sum, own, k) => sum + own * value(block, cell, k), 0);
        if (bound > 0) open.push({ bound, chosen: [...chosen, cell] });
      }
    }
  }

  /** The states of all variables in a cell of each block, the finer ones the most probable. */
  stateOf(cells, given) {
    const { variables } = this, coarse = (v) => variables[v].states[cells[variables[v].block]];
    return new Map(variables.map(({ coarser, groups, shares }, v) => {
      if (!groups) return [v, coarse(v)];
      const own = [...shares.keys()].filter((s) => groups[s] === coarse(coarser));
      return [v, given.get(v) ?? own.reduce((best, s) => shares[s] > shares[best] ? s : best)];
    }));
  }
}
