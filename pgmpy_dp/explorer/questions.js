// Questions to the model by names of variables and states: what `query` answers in Python.

/** Answers of a network, exact or from its draws; `of` gives the distribution of a variable. */
class TreeEngine {
  constructor(tree, rules) {
    this.own = new Networks(tree, tree.own, 1);
    this.rules = rules;
    if (!tree.totals) return;
    this.totals = tree.totals;
    this.banks = [tree.population, tree.records].map((bank) => new Networks(tree, bank, tree.totals.length));
    this.deviations = new Deviations(tree.deviations, tree.cards);
  }

  exact(given) {
    const found = this.own.answer(given);
    if (found === null) return null;
    const { starts } = this.own, whole = this.whole ??= this.own.answer(new Map()).shares[0];
    const of = (variable) => unbounded(found.answers.slice(starts[variable], starts[variable + 1]));
    return { given, share: found.shares[0] / whole, of };
  }

  uncertain(given, ofRecords, stream) {
    const networks = this.banks[+ofRecords], { count } = networks, found = networks.answer(given);
    if (found === null) return null;
    const counts = this.totals.map((total, d) => given.size ? total * found.shares[d] : total);
    const { value: records, lower, upper } = summary(counts), least = quantile(counts.sort(), LOWER, 'linear');
    const at = { given, ofRecords, stream, count, records, lower, upper, least, answers: found.answers, known: new Map() };
    at.exact = this.exact(given);
    return { ...at, of: (variable) => this.answer(at, variable) };
  }

  /** Draws of a variable's distribution by state. */
  drawn(at, variable) {
    if (at.known.has(variable)) return at.known.get(variable);
    const { starts } = this.own, { count } = at;
    const draws = at.answers.slice(starts[variable] * count, starts[variable + 1] * count);
    this.deviations.apply(draws, variable, at);
    const possible = this.rules.possible(variable, at.given);
    if (this.rules.tables.length)
      for (let d = 0; d < count; d++) {
        let total = 0;
        possible.forEach((may, s) => total += draws[s * count + d] *= may);
        possible.forEach((_, s) => draws[s * count + d] /= total);
      }
    const states = Array.from(possible, (_, s) => draws.subarray(s * count, (s + 1) * count));
    at.known.set(variable, states);
    return states;
  }

  answer(at, variable) {
    const possible = this.rules.possible(variable, at.given);
    return this.drawn(at, variable).map((draws, s) => {
      const { value, lower, upper } = summary(draws);
      return within(value, lower, possible[s] ? upper : 0, at.records);
    });
  }

  /** The difference of a variable's distribution between two evidences, draw by draw. */
  difference(now, before, variable) {
    const others = this.drawn(before, variable);
    return this.drawn(now, variable).map((draws, s) => summary(draws.map((draw, d) => draw - others[s][d])));
  }

  /** The mean of a number for each state. */
  mean(at, variable, numbers) {
    const draws = new Float64Array(at.count);
    this.drawn(at, variable).forEach((own, s) => own.forEach((draw, d) => draws[d] += numbers[s] * draw));
    return summary(draws);
  }

  tells(variable, given) { return this.deviations.tells(variable, given); }
  mostProbable(given) { return { found: this.own.mostProbable(given), proven: true }; }
}

/** The mean of draws, and bounds that hold with 90 %. */
function summary(draws) {
  const sorted = draws.slice().sort(), value = draws.reduce((a, b) => a + b) / draws.length;
  return { value, lower: quantile(sorted, LOWER), upper: quantile(sorted, 1 - LOWER) };
}

const unbounded = (values) => Array.from(values, (value) => ({ value }));

/** Clip bounds to [0, 1], to 0 or 1 within half a record of them, and to the value's side of it. */
function within(value, lower, upper, records) {
  value = Math.min(value, 1);
  lower = Math.max(lower, 0);
  upper = Math.min(upper, 1);
  if (lower * records < 0.5) lower = 0;
  if ((1 - upper) * records < 0.5) upper = 1;
  return { value, lower: Math.min(lower, value), upper: Math.max(upper, value) };
}

/** Rules of the schema, as tables of what may occur. */
class Rules {
  constructor(tables, sizes) {
    Object.assign(this, { tables, sizes });
  }

  /** Which states of a variable the rules about it and the evidence alone allow. */
  possible(variable, given) {
    const found = new Uint8Array(this.sizes[variable]).fill(1);
    for (const { scope, allowed } of this.tables)
      if (scope.every((v) => v === variable || given.has(v)))
        found.forEach((_, s) => {
          const place = scope.reduce((at, v) => at * this.sizes[v] + (v === variable ? s : given.get(v)), 0);
          found[s] &= allowed[place];
        });
    return found;
  }
}

const LOWER = 0.05; // of bounds that hold with 90 %

/** A published model. */
class Model {
  constructor(head) {
    Object.assign(this, head);
    this.places = new Map(head.variables.map(({ name }, v) => [name, v]));
    this.states = head.variables.map(({ states }) => new Map(states.map((state, s) => [state, s])));
    this.shapes = head.variables.map(({ shape }) => shape && new Shape(shape));
    const rules = new Rules(head.rules, head.variables.map(({ states }) => states.length));
    this.engine = head.tree ? new TreeEngine(head.tree, rules) : new MixtureEngine(head.mixture, rules, head.total);
  }

  variable(name) {
    const found = this.places.get(name);
    if (found === undefined) throw new Error(`Unknown variable ${JSON.stringify(name)}.`);
    return found;
  }

  /** The place of a state, of the bin that holds a number. */
  state(variable, value) {
    const { name, states, edges, kind } = this.variables[variable], found = this.states[variable].get(String(value));
    if (found !== undefined) return found;
    const number = kind === 'date' ? Date.parse(/^\d{4}-\d\d-\d\d/.exec(value)) / 864e5 : typeof value === 'number' ? value : NaN;
    const bin = edges ? edges.findIndex((edge, s) => edge <= number && number < edges[s + 1]) : -1;
    if (bin >= 0) return bin;
    throw new Error(`Variable ${JSON.stringify(name)} has no state ${JSON.stringify(value)}; it has ${states.slice(0, 20).join(', ')}.`);
  }

  given(evidence) {
    const pairs = evidence instanceof Map ? [...evidence] : Object.entries(evidence ?? {});
    return new Map(pairs.map(([name, value]) => {
      const variable = this.variable(name);
      return [variable, this.state(variable, value)];
    }));
  }

  /** Distributions of variables given evidence, with bounds unless `interval` is null. */
  query(names, evidence, options) {
    const at = this.answered(evidence, options);
    return this.byName(names, at, (variable) => this.byState(variable, at.of(variable)));
  }

  /** Means of numbers in bins given evidence, with bounds unless `interval` is null. */
  expectation(names, evidence, options) {
    const at = this.answered(evidence, options);
    return this.byName(names, at, (variable, name) => {
      if (!this.shapes[variable]) throw new Error(`Variable ${JSON.stringify(name)} has no bins.`);
      return this.mean(at, variable);
    });
  }

  /** The differences of distributions between two evidences, the second one's being subtracted. */
  compare(names, evidence, other, options) {
    const [now, before] = [evidence, other].map((own, stream) => this.answered(own, { interval: 0.9, ...options }, stream));
    return this.byName(names, now, (variable) => this.byState(variable, this.engine.difference(now, before, variable)));
  }

  answered(evidence, { interval = this.bounded ? 0.9 : null, target = 'population' } = {}, stream = 0) {
    if (interval !== null && interval !== 0.9) throw new Error('This page has bounds for interval 0.9 only.');
    if (!['population', 'records'].includes(target)) throw new Error("target is 'population' or 'records'.");
    const at = this.ask(this.given(evidence), interval !== null, target === 'records', stream);
    if (at === null) throw new Error('The evidence has probability zero in the model: leave a part of it out.');
    return at;
  }

  /** The mean of a variable's numbers in an answer: with bounds, those of the bins and of the means within them. */
  mean(at, variable) {
    const exact = (at.exact ?? at).of(variable).map(({ value }) => value);
    const { value, known, numbers, low, high } = this.shapes[variable].mean(exact, at.given.size > 0);
    if (!at.exact) return { value };
    const found = this.engine.mean(at, variable, numbers), least = Math.min(...numbers), most = Math.max(...numbers);
    const mean = value + found.value / known;
    const below = Math.max(found.value - Math.max(found.lower, least), 0) / known;
    const above = Math.max(Math.min(found.upper, most) - found.value, 0) / known;
    return { value: mean, lower: mean - Math.hypot(below, value - low), upper: mean + Math.hypot(above, high - value) };
  }

  /** The distributions given an evidence, null if it is impossible. Answers that are compared are of different streams. */
  ask(given, bounded, ofRecords, stream = 0) {
    if (bounded && !this.bounded) throw new Error('This page has no bounds: its model has no release.');
    return bounded ? this.engine.uncertain(given, ofRecords, stream) : this.engine.exact(given);
  }

  byName(names, { given }, answer) {
    return keyed(names.map((name) => {
      const variable = this.variable(name);
      if (given.has(variable)) throw new Error(`Variable ${JSON.stringify(name)} is both asked for and given.`);
      return [name, answer(variable, name)];
    }));
  }

  byState(variable, answers) {
    return keyed(this.variables[variable].states.map((state, s) => [state, answers[s]]));
  }
}

/** An object without a prototype, so that every name may be a key. */
const keyed = (pairs) => Object.setPrototypeOf(Object.fromEntries(pairs), null);

/** Read the page's head, in which packed arrays have places, and the arrays. */
async function openModel(head, text) {
  const letters = atob(text), packed = new Uint8Array(letters.length);
  for (let place = 0; place < packed.length; place++) packed[place] = letters.charCodeAt(place);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  const bytes = await new Response(stream).arrayBuffer();
  const kinds = { Float64Array, Float32Array, Int32Array, Int16Array, Uint16Array, Uint8Array };
  return new Model(JSON.parse(head, (_, held) => {
    const [kind, place, length] = held?.packed ?? [];
    return kind ? new kinds[kind](bytes, place, length) : held;
  }));
}
