// The junction tree's program (`inference/trees/kernel.py`) in log space, for many networks at a time: a cell of the
// buffer has a lane for each network.

const [ASSIGN, MULTIPLY, SUM_UP, , SUM_OUT, FILL, NORMALISE, , DIVIDE] = Array(9).keys();

/** Visit the cells of an instruction's big table with their cells of the small one, as places in a buffer of lanes. */
function walk(maps, [, , cells, , block, stride, start], lanes, big, small, visit) {
  for (let outer = 0, to = big * lanes; outer < cells / block; outer++) {
    let from = (small + maps[start + outer]) * lanes;
    for (let k = 0; k < block; k++, to += lanes, from += stride * lanes) visit(to, from);
  }
}

/**
 * Calibrate a buffer that begins with log-potentials; marginals follow them.
 *
 * With `most`, sums are maxima and marginals are logarithms of the largest probability of any joint state.
 * Returns the log-partition function of every lane, minus infinity if a network forbids everything.
 */
function calibrate(tree, x, lanes, most = false) {
  const { program, maps } = tree, logs = new Float64Array(lanes);
  const assign = (b, s) => { for (let l = 0; l < lanes; l++) x[b + l] = x[s + l]; };
  const add = (b, s) => { for (let l = 0; l < lanes; l++) x[b + l] += x[s + l]; };
  const multiply = (b, s) => { for (let l = 0; l < lanes; l++) x[b + l] *= x[s + l]; };
  const sum = (b, s) => { for (let l = 0; l < lanes; l++) x[s + l] += x[b + l]; };
  const max = (b, s) => { for (let l = 0; l < lanes; l++) if (x[b + l] > x[s + l]) x[s + l] = x[b + l]; };
  let up = true;
  for (let row = 0; row < program.length; row += 9) {
    const at = program.subarray(row, row + 9);
    const [operation, big, cells, small, , , , smallCells, belief] = at;
    const over = (visit) => walk(maps, at, lanes, big, small, visit);
    const fill = (start, count, value) => x.fill(value, start * lanes, (start + count) * lanes);
    if (operation === ASSIGN) over(assign);
    else if (operation === MULTIPLY) over(up || most ? add : multiply);
    else if (operation === FILL) fill(big, cells, 0);
    else if (operation === SUM_UP && !most) condition(tree, x, lanes, at, belief);
    else if (operation <= SUM_OUT) {
      up = up && operation === SUM_UP;
      fill(small, smallCells, most ? -Infinity : 0);
      over(most ? max : sum);
    } else if (operation === DIVIDE) {
      for (let k = 0; k < cells * lanes; k++) {
        const before = x[small * lanes + k];
        x[small * lanes + k] = !most ? x[big * lanes + k] : before === -Infinity ? before : x[big * lanes + k] - before;
      }
    } else normalise(x, lanes, at, logs, most || operation === NORMALISE);
  }
  return logs;
}

/** Replace a table by its shares given the separator, and the separator by the logarithms of their sums. */
function condition({ maps }, x, lanes, at, belief) {
  const [, big, , small, , , , smallCells] = at;
  const top = belief * lanes, sums = small * lanes, end = smallCells * lanes;
  x.fill(-Infinity, top, top + end);
  x.fill(0, sums, sums + end);
  walk(maps, at, lanes, big, belief, (b, s) => { for (let l = 0; l < lanes; l++) if (x[b + l] > x[s + l]) x[s + l] = x[b + l]; });
  for (let k = top; k < top + end; k++) if (x[k] === -Infinity) x[k] = 0;
  walk(maps, at, lanes, big, belief, (b, s) => {
    for (let l = 0; l < lanes; l++) {
      const value = Math.exp(x[b + l] - x[s + l]);
      x[b + l] = value;
      x[s - top + sums + l] += value;
    }
  });
  for (let k = 0; k < end; k++) {
    const total = x[sums + k];
    x[sums + k] = x[top + k] + Math.log(total);
    x[top + k] = total > 0 ? 1 / total : 0;
  }
  walk(maps, at, lanes, big, belief, (b, s) => { for (let l = 0; l < lanes; l++) x[b + l] *= x[s + l]; });
}

/** Divide a table by its largest cell, or a root's belief by its sum, and add the logarithm to `logs`. */
function normalise(x, lanes, [, big, cells], logs, message) {
  for (let l = 0; l < lanes; l++) {
    let top = -Infinity, total = 0;
    for (let k = big * lanes + l, n = 0; n < cells; n++, k += lanes) if (x[k] > top) top = x[k];
    logs[l] += top;
    if (top === -Infinity) continue;
    for (let k = big * lanes + l, n = 0; n < cells; n++, k += lanes) x[k] -= top;
    if (message) continue;
    for (let k = big * lanes + l, n = 0; n < cells; n++, k += lanes) total += x[k] = Math.exp(x[k]);
    logs[l] += Math.log(total);
    for (let k = big * lanes + l, n = 0; n < cells; n++, k += lanes) x[k] /= total;
  }
}

/** Networks that share a tree. The first tables of its layout are those of its variables, in their order. */
class Networks {
  constructor(tree, potentials, count) {
    this.tree = tree;
    this.potentials = potentials; // by cell, then network
    this.count = count;
    this.starts = [0];
    for (const states of tree.cards) this.starts.push(this.starts.at(-1) + states);
  }

  /** A calibrated buffer for some of the networks, given states by variable, and their log-partition functions. */
  calibrated(given, first, lanes, most) {
    const { tree, count } = this, x = new Float64Array(tree.buffer * lanes);
    for (let cell = 0, from = first; cell < tree.size; cell++, from += count)
      for (let l = 0; l < lanes; l++) x[cell * lanes + l] = this.potentials[from + l];
    for (const [variable, state] of given)
      for (let cell = this.starts[variable]; cell < this.starts[variable + 1]; cell++)
        if (cell !== this.starts[variable] + state) x.fill(-Infinity, cell * lanes, (cell + 1) * lanes);
    return [x, calibrate(tree, x, lanes, most)];
  }

  /** The distribution of every variable in every network (cells, then networks), and probabilities of the evidence. */
  answer(given) {
    const { tree, count } = this, cells = this.starts.at(-1);
    const answers = new Float64Array(cells * count), shares = new Float64Array(count);
    const most = Math.max(1, Math.min(count, Math.floor(262144 / tree.buffer), 64));
    for (let first = 0; first < count; first += most) {
      const lanes = Math.min(most, count - first), [x, logs] = this.calibrated(given, first, lanes);
      for (let cell = 0; cell < cells; cell++)
        for (let l = 0; l < lanes; l++) answers[cell * count + first + l] = x[(tree.size + cell) * lanes + l];
      for (let l = 0; l < lanes; l++) shares[first + l] = Math.exp(logs[l]);
      if (logs.some((log) => log === -Infinity)) return null;
    }
    return { answers, shares };
  }

  /** The most probable joint state of all variables; among equals the first, in their order. */
  mostProbable(given) {
    const found = new Map(given);
    for (let variable = 0; variable < this.tree.cards.length; variable++) {
      if (found.has(variable)) continue;
      const [x, [log]] = this.calibrated(found, 0, 1, true);
      if (log === -Infinity) return null;
      const begin = this.tree.size + this.starts[variable];
      const own = x.subarray(begin, begin + this.tree.cards[variable]), top = Math.max(...own);
      found.set(variable, own.findIndex((value) => value >= top - 1e-9));
    }
    return found;
  }
}
