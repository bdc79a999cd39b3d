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

// Deviations of records from a network (`models/deviations.py`): the same effects from the same random numbers.

const LEAST_COUNT_KEPT = 0.25, TINY = 1e-12;
/** The place of the cell of a state of a variable, and given states of the others, in a table. */
const placeOf = (scope, cards, given, variable, state) =>
  scope.reduce((at, v) => at * cards[v] + (v === variable ? state : given.get(v)), 0);
const ordered = (variables) => [...variables].sort((a, b) => a - b);
/** The tables whose effects an answer has: that of all its variables if it is known, else those of pairs. */
const partsOf = (scope, variable, others, known) =>
  known.has(scope.join()) ? [scope] : others.map((other) => ordered([variable, other]));

/** Factors by which measured tables correct a network's answers that they contradict. */
class Corrections {
  constructor(tables, cards) {
    Object.assign(this, { cards, factors: new Map(tables.map((table) => [table.scope.join(), table])) });
  }

  /** Shift a variable's distribution by the centres of the effects. */
  apply(values, variable, given) {
    const scope = ordered([variable, ...given.keys()]), moved = Float64Array.from(values);
    for (const part of partsOf(scope, variable, [...given.keys()], this.factors)) {
      const table = this.factors.get(part.join());
      if (table) moved.forEach((_, s) => moved[s] *= table.factors[placeOf(part, this.cards, given, variable, s)]);
    }
    const sum = sumOf(moved);
    return moved.map((value) => value / sum);
  }
}

class Deviations {
  constructor(content, cards) {
    Object.assign(this, content, { cards });
    this.streams = content.streams.map(randomNumbers);
    this.effects = new Map(content.effects.map((effect) => [effect.scope.join(), effect]));
  }

  joins(scope) {
    return this.families.some((family) => scope.every((v) => family.includes(v)));
  }

  /** Whether the release determines the error of an answer if the network's structure is wrong. */
  informs(variable, given) {
    return this.informative || this.effects.has(ordered([variable, ...given.keys()]).join());
  }

  /**
   * Shift and widen draws of a variable's distribution, in place: logarithms by state, then draw, become probabilities.
   *
   * Answers that are compared read different streams, so that their effects are independent.
   */
  apply(states, variable, { given, records, ofRecords, stream }) {
    const next = this.streams[stream](), others = [...given.keys()].sort((a, b) => this.ranks[a] - this.ranks[b]);
    const scope = ordered([variable, ...others]), whole = this.effects.has(scope.join());
    const open = !whole && this.outside !== null;
    for (const part of partsOf(scope, variable, others, this.effects)) {
      const effect = this.effects.get(part.join()), joins = this.joins(part);
      const sampled = ofRecords && scope.length === part.length && !joins;
      const place = (state) => placeOf(part, this.cards, given, variable, state);
      const cell = (_, state) => this.cell(effect, place(state), sampled, ofRecords);
      if (effect) this.add(states, effect, states.map(cell), next);
      else if (joins || open) this.addNew(states, joins ? this.inside : this.outside, 1, next);
    }
    for (let size = 2; open && size < scope.length; size++) this.addNew(states, this.outside, this.higher, next);
    normaliseLogs(states);
    if (ofRecords && !whole && !this.joins(scope)) this.sample(states, Math.max(1, Math.round(records)), next);
  }

  /** A scale for every draw. */
  scalesOf(weights, states, next) {
    const place = placeAmong(weights);
    return Array.from(states[0], () => place(next()));
  }

  /** Add an effect that is new in every cell, with the scale of pairs of its kind. */
  addNew(states, weights, factor, next) {
    this.scalesOf(weights, states, next).forEach((scale, d) => {
      for (const own of states) own[d] += factor * this.scales[scale] * quantileOfLog(Math.log(next()));
    });
  }

  /** Add the effect of a measured table, whose factor is drawn before it in every cell. */
  add(states, effect, cells, next) {
    const scales = this.scalesOf(effect.weights, states, next);
    const chosen = scales.map((scale) => cells.map(({ choose }) => choose[scale](next())));
    chosen.forEach((draw, d) => draw.forEach(({ mean, spread, above }, s) => {
      const drawn = mean - spread * quantileOfLog(above + Math.log1p(-next()));
      states[s][d] += Math.log(Math.max(drawn, cells[s].least));
    }));
  }

  /** A cell of a measured table, with a choice of factors for each scale: effects are normal, truncated at `least`. */
  cell({ expected, ratio, freedom, variance }, place, sampled, ofRecords) {
    const sampling = 1 / expected[place], noise = variance * sampling ** 2 + (ofRecords ? 0 : sampling);
    const least = Math.min(LEAST_COUNT_KEPT * sampling, 0.5);
    const choose = this.scales.map((scale) => {
      const factors = this.factors.map((factor, f) => {
        const own = (scale * factor) ** 2 * freedom[place] + (sampled ? sampling : 0), total = own + noise;
        const mean = 1 + own / total * ratio[place], spread = Math.sqrt(Math.max(own / total * noise, TINY));
        const above = logNormal((mean - least) / spread), before = logNormal((1 - least) / Math.sqrt(own));
        const log = above - before - 0.5 * (Math.log(total) + ratio[place] ** 2 / total);
        return { mean, spread, above, log: Math.log(this.shares[f]) + log };
      });
      const top = Math.max(...factors.map(({ log }) => log));
      const pick = placeAmong(factors.map(({ log }) => Math.exp(log - top)));
      return (u) => factors[pick(u)];
    });
    return { least, choose };
  }

  /** Replace shares by those of as many records drawn from them. */
  sample(states, records, next) {
    const left = states[0].map(() => records), rest = states[0].map(() => 1);
    states.forEach((own, s) => own.forEach((p, d) => {
      const share = Math.min(Math.max(p / Math.max(rest[d], TINY), 0), 1);
      const drawn = s === states.length - 1 ? left[d] : binomialQuantile(next(), left[d], share);
      rest[d] -= p;
      left[d] -= drawn;
      own[d] = drawn / records;
    }));
  }
}

// Answers of a network by its junction tree: exact, or from its draws (`networks/fitted_network.py`).

class TreeEngine {
  constructor(tree, possible) {
    Object.assign(this, { possible, own: new Networks(tree, tree.own, 1), totals: tree.totals });
    this.whole = this.own.answer(new Map()).shares[0];
    this.corrections = new Corrections(tree.corrections, tree.cards);
    if (!tree.totals) return;
    this.banks = [tree.population, tree.records].map((bank) => new Networks(tree, bank, tree.totals.length));
    this.deviations = tree.deviations.map((own) => new Deviations(own, tree.cards)); // the records' are the last
  }

  /** An answer; `of` gives the distribution of a variable. */
  exact(given) {
    const found = this.own.answer(given);
    if (!found) return null;
    found.of.forEach(normaliseLogs);
    const plain = (variable) => found.of[variable].map(([value]) => value);
    const corrected = once((variable) => this.corrections.apply(plain(variable), variable, given));
    const of = (variable) => Array.from(corrected(variable), (value) => ({ value }));
    return { given, share: found.shares[0] / this.whole, of };
  }

  uncertain(given, ofRecords, stream) {
    const exact = this.exact(given), alone = ofRecords || this.deviations.length > 1; // some borrowed
    const drawn = (alone ? [ofRecords] : [false, true]).map((target) => this.drawn(given, target, stream));
    if (!exact || drawn.includes(null)) return null;
    const { records } = drawn[0], { lower, upper } = summary(drawn[0].counts);
    const at = { given, records, lower, upper, exact, drawn };
    at.of = once((variable) => exact.of(variable).map(({ value }, s) =>
      within(held(value, drawn.map((own) => own.of(variable)[s])), records)));
    return at;
  }

  /** Draws of the numbers of records with an evidence, their mean, and draws of answers. */
  drawn(given, ofRecords, stream) {
    const found = this.banks[+ofRecords].answer(given);
    if (!found) return null;
    const counts = this.totals.map((n, d) => given.size ? n * found.shares[d] : n), records = summary(counts).value;
    const at = { given, ofRecords, stream, records };
    return { counts, records, of: once((variable) => this.widened(found.of[variable], variable, at)) };
  }

  /** Draws of a variable's distribution by state, from those of the networks, whose logarithms they replace. */
  widened(states, variable, at) {
    this.deviations.at(-at.ofRecords).apply(states, variable, at); // which ignores rules
    this.possible(variable, at.given).forEach((may, s) => may || states[s].fill(0));
    normalise(states);
    return states;
  }

  mostProbable(given) { return this.own.mostProbable(given); }

  /** Whether the release determines the error of an answer if the network's structure is wrong. */
  informs(variable, given) {
    return !this.deviations || this.deviations[0].informs(variable, given);
  }

  /** The standard deviation of effects of the evidence that the release does not tell. */
  unknownEffects({ given }, variable) {
    const deviations = this.deviations.at(-1), others = [...given.keys()];
    const { outside, inside, scales, higher, effects } = deviations;
    if (outside === null || effects.has(ordered([variable, ...others]).join())) return 0;
    const square = (weights) => weights.reduce((sum, weight, s) => sum + weight * Math.sqrt(scales[s]), 0) ** 4;
    const pairs = others.map((other) => ordered([variable, other])).filter((pair) => !effects.has(pair.join()));
    const own = pairs.reduce((sum, pair) => sum + square(deviations.joins(pair) ? inside : outside), 0);
    return Math.sqrt(own + (others.length - 1) * higher ** 2 * square(outside));
  }

  /** The difference of a variable's distribution between two evidences, draw by draw. */
  difference(now, before, variable) {
    const values = before.exact.of(variable), others = before.drawn.map((own) => own.of(variable));
    return now.exact.of(variable).map(({ value }, s) => held(value - values[s].value, now.drawn.map((own, n) =>
      own.of(variable)[s].map((draw, d) => draw - others[n][s][d]))));
  }

  /** The mean of a number for each state. */
  mean(at, variable, numbers) {
    const mean = (states) => states[0].map((_, d) => states.reduce((sum, own, s) => sum + numbers[s] * own[d], 0));
    const value = dot(numbers, at.exact.of(variable).map((own) => own.value));
    return held(value, at.drawn.map((own) => mean(own.of(variable))));
  }
}

/** A value with bounds that hold all of some draws, and the value. */
function held(value, draws) {
  const found = draws.map(bounded), ends = (key) => found.map((own) => own[key]);
  return { value, lower: Math.min(value, ...ends('lower')), upper: Math.max(value, ...ends('upper')) };
}
