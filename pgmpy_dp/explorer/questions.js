// Questions to the model by names of variables and states: what `query` answers in Python.

/** Distributions given an evidence; `bounds` are null in exact answers, `distributions` holds every variable. */
class TreeEngine {
  constructor(held, array, rules) {
    const tree = { ...held, program: array(held.program), maps: array(held.maps) };
    this.own = new Networks(tree, array(held.own), 1);
    this.rules = rules;
    if (!held.totals) return;
    this.totals = array(held.totals);
    this.banks = [held.population, held.records].map((bank) => new Networks(tree, array(bank), this.totals.length));
    this.deviations = new Deviations(held.deviations, held.cards, array);
  }

  exact(given) {
    const found = this.own.answer(given);
    if (found === null) return null;
    const { starts } = this.own;
    const values = starts.slice(1).map((end, v) => found.answers.slice(starts[v], end));
    const whole = this.whole ??= this.own.answer(new Map()).shares[0];
    return { values, share: found.shares[0] / whole };
  }

  /** Draws of every variable's distribution, from which `drawn` takes those of one. */
  uncertain(given, ofRecords, stream = 0) {
    const networks = this.banks[+ofRecords], found = networks.answer(given);
    if (found === null) return null;
    const count = networks.count, counts = this.totals.map((total, d) => given.size ? total * found.shares[d] : total);
    const sorted = Float64Array.from(counts).sort(), records = counts.reduce((a, b) => a + b) / count;
    return {
      given, ofRecords, stream, count, records, answers: found.answers, cached: new Map(),
      least: quantile(sorted, 0.05, 'linear'), lower: quantile(sorted, LOWER), upper: quantile(sorted, 1 - LOWER),
    };
  }

  drawn(at, variable) {
    if (at.cached.has(variable)) return at.cached.get(variable);
    const { starts } = this.own, { count } = at;
    const draws = at.answers.slice(starts[variable] * count, starts[variable + 1] * count);
    this.deviations.apply(draws, count, variable, at.given, at.records, at.ofRecords, at.stream);
    const possible = this.rules.possible(variable, at.given);
    if (this.rules.any)
      for (let d = 0; d < count; d++) {
        let total = 0;
        possible.forEach((may, s) => total += draws[s * count + d] *= may);
        possible.forEach((_, s) => draws[s * count + d] /= total);
      }
    at.cached.set(variable, draws);
    return draws;
  }

  answer(at, variable) {
    const draws = this.drawn(at, variable), { count } = at;
    const possible = this.rules.possible(variable, at.given);
    return Array.from(possible, (may, s) => {
      const own = draws.slice(s * count, (s + 1) * count), value = own.reduce((a, b) => a + b) / count;
      own.sort();
      return within(value, quantile(own, LOWER), may ? quantile(own, 1 - LOWER) : 0, at.records);
    });
  }

  /** The difference of a variable's distribution between two evidences, draw by draw. */
  difference(now, before, variable) {
    const draws = [now, before].map((at) => this.drawn(at, variable)), { count } = now;
    return Array.from({ length: draws[0].length / count }, (_, s) => {
      const own = Float64Array.from({ length: count }, (_, d) => draws[0][s * count + d] - draws[1][s * count + d]);
      const value = own.reduce((a, b) => a + b) / count;
      own.sort();
      return { value, lower: quantile(own, LOWER), upper: quantile(own, 1 - LOWER) };
    });
  }

  tells(variable, given) { return this.deviations.tells(variable, given); }
  mostProbable(given) { return this.own.mostProbable(given); }
}

class MixtureEngine {
  constructor(held, array, rules, total) {
    this.own = new Mixture(held, array);
    this.rules = rules;
    if (held.errors) this.errors = new MixtureErrors(this.own, held.errors, array, total);
  }

  exact(given) {
    const found = this.own.answer(given);
    return found && { values: found.answers[0], share: found.share };
  }

  uncertain(given, ofRecords) {
    const at = this.errors.given(given, ofRecords);
    if (at === null) return null;
    const width = this.errors.width * at.uncertainty;
    return { ...at, lower: Math.max(at.records - width, 0), upper: at.records + width };
  }

  answer(at, variable) {
    const { errors, rules } = this, deviations = errors.deviations([at], variable), { width } = errors;
    const possible = rules.possible(variable, at.given);
    return Array.from(at.values[variable], (value, s) => within(value, value - width * deviations[s],
      possible[s] ? Math.max(value + width * deviations[s], width * errors.noise[variable]) : 0, at.records));
  }

  difference(now, before, variable) {
    const deviations = this.errors.ofDifference(now, before, variable);
    return Array.from(now.values[variable], (p, s) => {
      const value = p - before.values[variable][s], width = this.errors.width * deviations[s];
      return { value, lower: value - width, upper: value + width };
    });
  }

  tells() { return true; }
}

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
  constructor(held, sizes, array) {
    this.tables = held.map(({ scope, allowed }) => ({ scope, allowed: array(allowed) }));
    this.sizes = sizes;
    this.any = held.length > 0;
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
  constructor(head, array) {
    Object.assign(this, head);
    this.places = new Map(head.variables.map(({ name }, v) => [name, v]));
    this.states = head.variables.map(({ states }) => new Map(states.map((state, s) => [state, s])));
    this.edges = head.variables.map(({ edges }) => edges && array(edges));
    const rules = new Rules(head.rules, head.variables.map(({ states }) => states.length), array);
    this.engine = head.tree ? new TreeEngine(head.tree, array, rules) : new MixtureEngine(head.mixture, array, rules, head.total);
  }

  variable(name) {
    const found = this.places.get(name);
    if (found === undefined) throw new Error(`Unknown variable ${JSON.stringify(name)}.`);
    return found;
  }

  /** The place of a state, of the bin that holds a number. */
  state(variable, value) {
    const found = this.states[variable].get(String(value)), edges = this.edges[variable];
    if (found !== undefined) return found;
    const bin = edges && typeof value === 'number' ? edges.findIndex((edge, s) => edge <= value && value < edges[s + 1]) : -1;
    if (bin >= 0) return bin;
    const { name, states } = this.variables[variable];
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
  query(names, evidence = {}, { interval = this.bounded ? 0.9 : null, target = 'population' } = {}) {
    if (interval !== null && interval !== 0.9) throw new Error('This page has bounds for interval 0.9 only.');
    if (interval !== null && !this.bounded) throw new Error('This page has no bounds: its model has no release.');
    if (!['population', 'records'].includes(target)) throw new Error("target is 'population' or 'records'.");
    const given = this.given(evidence), found = Object.create(null);
    const at = interval === null ? this.engine.exact(given) : this.engine.uncertain(given, target === 'records');
    if (at === null) throw new Error('The evidence has probability zero in the model: leave a part of it out.');
    for (const name of names) {
      const variable = this.variable(name);
      if (given.has(variable)) throw new Error(`Variable ${JSON.stringify(name)} is both asked for and given.`);
      const own = interval === null ? Array.from(at.values[variable], (value) => ({ value })) : this.engine.answer(at, variable);
      found[name] = Object.create(null);
      this.variables[variable].states.forEach((state, s) => found[name][state] = own[s]);
    }
    return found;
  }

  /** The differences of distributions between two evidences, the second one's being subtracted. */
  compare(names, evidence, other, { target = 'population' } = {}) {
    const [now, before] = [evidence, other].map((own, stream) => this.engine.uncertain(this.given(own), target === 'records', stream));
    if (now === null || before === null) throw new Error('The evidence has probability zero in the model.');
    const found = Object.create(null);
    for (const name of names) {
      const own = this.engine.difference(now, before, this.variable(name));
      found[name] = Object.create(null);
      this.variables[this.variable(name)].states.forEach((state, s) => found[name][state] = own[s]);
    }
    return found;
  }
}

/** Read the page's head and its packed arrays. */
async function openModel(head, text) {
  const letters = atob(text), packed = new Uint8Array(letters.length);
  for (let place = 0; place < packed.length; place++) packed[place] = letters.charCodeAt(place);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  const bytes = await new Response(stream).arrayBuffer();
  const kinds = { Float64Array, Float32Array, Int32Array, Int16Array, Uint16Array, Uint8Array };
  return new Model(head, ([kind, place, length]) => new kinds[kind](bytes, place, length));
}
