// The junction tree's program (`inference/trees/kernel.py`) on logarithms, for many networks at a time: a cell of the
// buffer has a lane for each network.

const [ASSIGN, MULTIPLY, , , SUM_OUT, FILL, , NORMALISE_ROOT, DIVIDE] = Array(9).keys();

/** The logarithm of the sum of every so-many-th value. */
function logSum(x, start, count, step) {
  let top = -Infinity, total = 0;
  for (let n = 0, k = start; n < count; n++, k += step) if (x[k] > top) top = x[k];
  if (top === -Infinity) return top;
  for (let n = 0, k = start; n < count; n++, k += step) total += Math.exp(x[k] - top);
  return top + Math.log(total);
}

/**
 * Calibrate a buffer that begins with log-potentials; marginals follow them, without a common scale.
 *
 * With `most`, sums are maxima. Returns the log-partition function of every lane.
 */
function calibrate({ program, maps }, x, lanes, most) {
  const logs = new Float64Array(lanes), sums = new Float64Array(x.length);
  const assign = (b, s) => { for (let l = 0; l < lanes; l++) x[b + l] = x[s + l]; };
  const add = (b, s) => { for (let l = 0; l < lanes; l++) x[b + l] += x[s + l]; };
  const max = (b, s) => { for (let l = 0; l < lanes; l++) if (x[b + l] > x[s + l]) x[s + l] = x[b + l]; };
  const sum = (b, s) => { for (let l = 0; l < lanes; l++) if (x[b + l] > -Infinity) sums[s + l] += Math.exp(x[b + l] - x[s + l]); };
  for (let row = 0; row < program.length; row += 9) {
    const [operation, big, cells, small, block, stride, start, smallCells] = program.subarray(row, row + 9);
    const first = small * lanes, end = (small + smallCells) * lanes;
    const over = (visit) => {
      for (let outer = 0, b = big * lanes; outer < cells / block; outer++) {
        let s = (small + maps[start + outer]) * lanes;
        for (let k = 0; k < block; k++, b += lanes, s += stride * lanes) visit(b, s);
      }
    };
    if (operation === ASSIGN) over(assign);
    else if (operation === MULTIPLY) over(add);
    else if (operation === FILL) x.fill(0, big * lanes, (big + cells) * lanes);
    else if (operation <= SUM_OUT) {
      x.fill(-Infinity, first, end);
      over(max);
      if (most) continue;
      sums.fill(0, first, end);
      over(sum);
      for (let k = first; k < end; k++) x[k] += Math.log(sums[k]);
    } else if (operation === DIVIDE) {
      for (let k = 0; k < cells * lanes; k++) if (x[first + k] > -Infinity) x[first + k] = x[big * lanes + k] - x[first + k];
    } else if (operation === NORMALISE_ROOT) {
      for (let l = 0; l < lanes; l++) logs[l] += logSum(x, big * lanes + l, cells, lanes);
    }
  }
  return logs;
}

/** Networks that share a tree. The first tables of its layout are those of its variables, in their order. */
class Networks {
  constructor(tree, potentials, count) {
    Object.assign(this, { tree, potentials, count, starts: [0] }); // potentials by cell, then network
    for (const states of tree.cards) this.starts.push(this.starts.at(-1) + states);
  }

  /** A calibrated buffer for some of the networks, given states by variable, and their log-partition functions. */
  calibrated(given, first, lanes, most = false) {
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
    const { tree, count, starts } = this;
    const answers = new Float64Array(starts.at(-1) * count), shares = new Float64Array(count);
    const most = Math.max(1, Math.min(count, Math.floor(262144 / tree.buffer), 64));
    for (let first = 0; first < count; first += most) {
      const lanes = Math.min(most, count - first), [x, logs] = this.calibrated(given, first, lanes);
      if (logs.includes(-Infinity)) return null;
      shares.set(logs.map(Math.exp), first);
      tree.cards.forEach((states, variable) => {
        for (let l = 0; l < lanes; l++) {
          const at = (tree.size + starts[variable]) * lanes + l, scale = logSum(x, at, states, lanes);
          for (let s = 0; s < states; s++)
            answers[(starts[variable] + s) * count + first + l] = Math.exp(x[at + s * lanes] - scale);
        }
      });
    }
    return { answers, shares };
  }

  /** The most probable joint state of all variables; among equals the first, in their order. */
  mostProbable(given) {
    const found = new Map(given);
    for (let variable = 0; variable < this.tree.cards.length; variable++) {
      if (found.has(variable)) continue;
      const [x] = this.calibrated(found, 0, 1, true), begin = this.tree.size + this.starts[variable];
      const own = x.subarray(begin, begin + this.tree.cards[variable]), top = Math.max(...own);
      found.set(variable, own.findIndex((value) => value >= top - 1e-9));
    }
    return found;
  }
}
