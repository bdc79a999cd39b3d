// The junction tree's program (`inference/trees/kernel.py`) on logarithms, for many networks at a time: a cell of the
// buffer has a lane for each network. Nothing is normalised, and what is to be filled with 1 is 0 from the start.

const [ASSIGN, MULTIPLY, , , SUM_OUT, , , , DIVIDE] = Array(9).keys();

/** Calibrate a buffer that begins with log-potentials; marginals follow them. With `most`, sums are maxima. */
function calibrate({ program, maps }, x, lanes, most) {
  const sums = new Float64Array(x.length);
  const assign = (b, s) => { for (let l = 0; l < lanes; l++) x[b + l] = x[s + l]; };
  const add = (b, s) => { for (let l = 0; l < lanes; l++) x[b + l] += x[s + l]; };
  const max = (b, s) => { for (let l = 0; l < lanes; l++) if (x[b + l] > x[s + l]) x[s + l] = x[b + l]; };
  const sum = (b, s) => {
    for (let l = 0; l < lanes; l++) if (x[b + l] > -Infinity) sums[s + l] += Math.exp(x[b + l] - x[s + l]);
  };
  for (let row = 0; row < program.length; row += 9) {
    const [operation, big, cells, small, block, stride, start, smallCells] = program.subarray(row, row + 9);
    const from = big * lanes, first = small * lanes, end = first + smallCells * lanes;
    const over = (visit) => {
      for (let outer = 0, b = from; outer < cells / block; outer++) {
        let s = (small + maps[start + outer]) * lanes;
        for (let k = 0; k < block; k++, b += lanes, s += stride * lanes) visit(b, s);
      }
    };
    if (operation === ASSIGN) over(assign);
    else if (operation === MULTIPLY) over(add);
    else if (operation === DIVIDE) {
      for (let k = 0; k < cells * lanes; k++) if (x[first + k] > -Infinity) x[first + k] = x[from + k] - x[first + k];
    } else if (operation <= SUM_OUT) {
      x.fill(-Infinity, first, end);
      over(max);
      if (most) continue;
      sums.fill(0, first, end);
      over(sum);
      for (let k = first; k < end; k++) x[k] += Math.log(sums[k]);
    }
  }
}

/** Networks that share a tree. The first tables of its layout are those of its variables, in their order. */
class Networks {
  constructor(tree, potentials, count) {
    Object.assign(this, { tree, potentials, count }); // potentials by cell, then network
  }

  /** Logarithms of calibrated marginals of some of the networks, given some states: by variable, state and lane. */
  calibrated(given, first, lanes, most = false) {
    const { tree, count, potentials } = this, x = new Float64Array(tree.buffer * lanes);
    for (let cell = 0, at = first; cell < tree.size; cell++, at += count)
      x.set(potentials.subarray(at, at + lanes), cell * lanes);
    let cell = 0;
    const found = tree.cards.map((states, variable) => Array.from({ length: states }, (_, state) => {
      if ((given.get(variable) ?? state) !== state) x.fill(-Infinity, cell * lanes, (cell + 1) * lanes);
      const at = (tree.size + cell++) * lanes;
      return x.subarray(at, at + lanes);
    }));
    calibrate(tree, x, lanes, most);
    return found;
  }

  /** Logarithms of probabilities of the evidence and a state, by variable, state and network, and of the evidence's. */
  answer(given) {
    const { tree, count } = this, most = Math.max(1, Math.min(Math.floor(262144 / tree.buffer), 64));
    const of = tree.cards.map((states) => Array.from({ length: states }, () => new Float64Array(count)));
    for (let first = 0; first < count; first += most)
      this.calibrated(given, first, Math.min(most, count - first)).forEach((states, variable) =>
        states.forEach((own, state) => of[variable][state].set(own, first)));
    // Variables of different components of the tree are independent.
    const shares = of[0][0].map((_, d) => tree.components.reduce((product, variable) =>
      product * of[variable].reduce((sum, own) => sum + Math.exp(own[d]), 0), 1));
    return shares.includes(0) ? null : { of, shares };
  }

  /** The most probable joint state of all variables; among equals the first, in their order. */
  mostProbable(given) {
    const found = new Map(given);
    this.tree.cards.forEach((_, variable) => {
      if (found.has(variable)) return;
      const own = this.calibrated(found, 0, 1, true)[variable].map(([log]) => log);
      const top = own.reduce((a, b) => Math.max(a, b));
      found.set(variable, own.findIndex((value) => value >= top - 1e-9));
    });
    return { found, proven: true };
  }
}
