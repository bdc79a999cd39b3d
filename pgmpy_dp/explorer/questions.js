// Means of numbers within bins (`models/numbers.py`): the density leans with the probabilities of the bins.

const LEAST_CHANCE = 1e-12, MOST_TILT = 2, MISSED = 0.25, TREND = 0.4, QUANTILE = 1.6448536269514722;
const clip = (value, most) => Math.min(Math.max(value, -most), most);

/** The slope of the log-density in each bin: that of the bins' probabilities, relative to those without evidence. */
function leanings({ knots, centres, logs, most }, chances) {
  const found = most.map(() => 0), log = (chance) => chance > 0 ? Math.log(Math.max(chance, LEAST_CHANCE)) : NaN;
  const heights = knots.map((bin, k) => log(chances[bin]) - logs[k]);
  const slopes = heights.slice(1).map((height, k) =>
    (height - heights[k]) / Math.max(centres[k + 1] - centres[k], LEAST_CHANCE));
  knots.forEach((bin, k) => {
    const below = slopes[k - 1] ?? slopes[k], above = slopes[k] ?? below;
    found[bin] = clip(((below || 0) + (above || 0)) / 2, most[bin]);
  });
  return found;
}

/** The mean of all numbers, bounds of it, the share of records that have one, and means of states relative to it. */
function meanWithin(shape, chances, leaning) {
  const { owners, offsets, middles, ends, most, rows } = shape;
  const slopes = leaning ? leanings(shape, chances) : most.map(() => 0);
  const tilt = offsets.map((offset, cell) => Math.exp(clip(slopes[owners[cell]] * offset, MOST_TILT)));
  const known = Math.max(most.reduce((sum, _, bin) => sum + chances[bin], 0), LEAST_CHANCE);
  const means = (row, numbers) => {
    const masses = most.map(() => 0), sums = most.map(() => 0);
    row.forEach((share, cell) => {
      masses[owners[cell]] += share * tilt[cell];
      sums[owners[cell]] += share * tilt[cell] * numbers[cell];
    });
    return sums.map((sum, bin) => sum / masses[bin]);
  };
  const whole = (own) => own.reduce((sum, mean, bin) => sum + mean * chances[bin], 0) / known;
  const inside = means(rows[0], middles), value = whole(inside);
  const { lower, upper } = summary(Float64Array.from(rows.slice(1), (row) => whole(means(row, middles))));
  const apart = means(rows[0], middles.map((x, cell) => Math.abs(x - inside[owners[cell]])));
  const within = apart.map((x) => x * Math.sqrt(Math.PI / 2)), square = (list) => whole(list.map((x) => x * x));
  const missed = (records, trend) => QUANTILE * Math.sqrt((MISSED * whole(within)) ** 2 +
    square(within) / Math.max(records, 1) + TREND * trend ** 2 * square(inside.map((x) => x - value)));
  return {
    value, known, numbers: chances.map((_, s) => (s < most.length ? inside[s] - value : 0)),
    drawn: [Math.max(value - lower, 0), Math.max(upper - value, 0)],
    unseen: ends.map((end) => Math.abs(value - whole(means(rows[0], end)))),
    missed: leaning ? missed : () => 0,
  };
}

// Questions to the model by names of variables and states: what `query` answers in Python.

/** Clip bounds to [0, 1], to 0 or 1 within half a record of them, and to the value's side of it. */
function within({ value, lower, upper }, records) {
  value = Math.min(value, 1);
  lower = lower * records < 0.5 ? 0 : lower;
  upper = (1 - upper) * records < 0.5 ? 1 : upper;
  return { value, lower: Math.max(Math.min(lower, value), 0), upper: Math.min(Math.max(upper, value), 1) };
}

/** A function of a variable and evidence: which of its states the rules about them alone allow. */
const possibleBy = (rules, sizes) => (variable, given) => {
  const own = rules.filter(({ scope }) => scope.every((v) => v === variable || given.has(v)));
  return Array.from({ length: sizes[variable] }, (_, s) =>
    own.every(({ scope, allowed }) => allowed[placeOf(scope, sizes, given, variable, s)]));
};

const MONTHS = ('January February March April May June July August September October November December').split(' ');
const daysOf = (year, month, day) => {
  const time = new Date(0);
  time.setUTCFullYear(year, month, day);
  return year > 0 && time.getUTCMonth() === month && time.getUTCDate() === day ? time / 864e5 : undefined;
};

const ISO = '(?<Y>\\d{4})-(?<m>\\d\\d)-(?<d>\\d\\d)(?:[T ](?<H>\\d\\d):(?<M>\\d\\d)(?::(?<S>\\d\\d)(?:\\.\\d+)?)?Z?)?';

/** A form in which dates are written, as `schema/date_format.py` has it, and numbers of `unit` seconds since 1970. */
class DateForm {
  constructor({ format, expression = ISO, unit }, first) {
    Object.assign(this, { format, unit, first, expression: new RegExp(`^(?:${expression})$`, 'i') });
    this.format ??= unit > 1 ? '%Y-%m-%d' : '%Y-%m-%dT%H:%M:%S';
  }

  /** The number of a text; undefined if it writes no date in this form. */
  number(text) {
    const parts = this.expression.exec(text)?.groups ?? { H: 99 }, { H = 0, I = 12, p = 'am', M = 0, S = 0 } = parts;
    const hour = parts.I ? I % 12 + (p.toLowerCase() === 'pm' ? 12 : 0) : +H;
    if (hour > 23 || I < 1 || I > 12 || M > 59 || S > 59) return undefined;
    const day = this.day(parts);
    return day === undefined ? day : Math.floor((day * 86400 + hour * 3600 + M * 60 + +S) / this.unit);
  }

  /** The days since 1970 of the parts of a date. */
  day({ Y, y, m, b, B, d = 1 }) {
    const name = (B ?? b)?.toLowerCase(), named = MONTHS.map((own) => (B ? own : own.slice(0, 3)).toLowerCase());
    const month = m ? m - 1 : name ? named.indexOf(name) : 0;
    if (month < 0 || month > 11) return undefined;
    if (Y) return daysOf(+Y, month, +d);
    const first = Math.floor(this.first * this.unit / 86400), start = new Date(first * 864e5).getUTCFullYear();
    const year = start + ((y - start % 100 + 100) % 100), found = daysOf(year, month, +d);
    return found >= first ? found : daysOf(year + 100, month, +d);
  }

  /** The date of the nearest whole number, in this form. */
  written(number) {
    const time = new Date(Math.round(number) * this.unit * 1000), month = MONTHS[time.getUTCMonth()];
    const hour = time.getUTCHours();
    const two = (n) => String(n).padStart(2, '0'), year = time.getUTCFullYear();
    const parts = {
      Y: String(year).padStart(4, '0'), y: two(year % 100), m: two(time.getUTCMonth() + 1), d: two(time.getUTCDate()),
      b: month.slice(0, 3), B: month, H: two(hour), I: two((hour + 11) % 12 + 1), p: hour < 12 ? 'AM' : 'PM',
      M: two(time.getUTCMinutes()), S: two(time.getUTCSeconds()), f: '000000', '%': '%',
    };
    return this.format.replace(/%(.)/gs, (all, letter) => parts[letter] ?? all);
  }
}

/** A published model. */
class Model {
  constructor(head) {
    Object.assign(this, head);
    const { tree, mixture, groups, rules, total } = head;
    const possible = possibleBy(rules, tree ? tree.cards : head.variables.map(({ states }) => states.length));
    if (groups) this.engine = new GroupedEngine(tree, possible, groups);
    else this.engine = tree ? new TreeEngine(tree, possible) : new MixtureEngine(mixture, possible, total);
  }

  variable(name) {
    const found = this.variables.findIndex((own) => own.name === name);
    if (found < 0) throw new Error(`Unknown variable ${JSON.stringify(name)}.`);
    return found;
  }

  /** The places of a variable and of its state, or of the bin that holds a number. */
  fact(name, value) {
    const variable = this.variable(name), { states, edges, dates, missing } = this.variables[variable];
    const lacks = value === null || Number.isNaN(value) || missing?.texts.includes(value);
    if (lacks && missing) return [variable, missing.state];
    const number = dates ? new DateForm(dates, edges[0]).number(value) : value;
    const holds = (s) => typeof number === 'number' && edges?.[s] <= number && number < edges[s + 1];
    const found = states.indexOf(String(value)), state = found < 0 ? states.findIndex((_, s) => holds(s)) : found;
    if (state >= 0) return [variable, state];
    const known = states.slice(0, 20).join(', ');
    throw new Error(`Variable ${JSON.stringify(name)} has no state ${JSON.stringify(value)}; it has ${known}.`);
  }

  given(evidence) {
    return new Map(Object.entries(evidence ?? {}).map((own) => this.fact(...own)));
  }

  /** Distributions of variables given evidence, with bounds unless `interval` is null. */
  query(names, evidence, options) {
    return this.byName(names, this.answered(evidence, options), (variable, at) => at.of(variable));
  }

  /** Means of numbers in bins given evidence, with bounds unless `interval` is null. */
  expectation(names, evidence, options) {
    return this.byName(names, this.answered(evidence, options), (variable, at) => {
      if (this.variables[variable].shape) return this.mean(at, variable);
      throw new Error(`Variable ${JSON.stringify(this.variables[variable].name)} has no bins.`);
    });
  }

  /** The differences of distributions between two evidences, the second one's being subtracted. */
  compare(names, evidence, other, options) {
    const ask = (own, stream) => this.answered(own, { interval: 0.9, ...options }, stream), before = ask(other, 1);
    return this.byName(names, ask(evidence), (variable, now) => this.engine.difference(now, before, variable));
  }

  answered(evidence, { interval = this.bounded ? 0.9 : null, target = 'population' } = {}, stream = 0) {
    if (interval !== null && interval !== 0.9) throw new Error('This page has bounds for interval 0.9 only.');
    if (!['population', 'records'].includes(target)) throw new Error("target is 'population' or 'records'.");
    const at = this.ask(this.given(evidence), interval !== null, target === 'records', stream);
    if (at === null) throw new Error('The evidence has probability zero in the model: remove some of it.');
    return at;
  }

  /** The mean of a variable's numbers in an answer: with bounds, those of the bins and of the means within them. */
  mean(at, variable) {
    const exact = (at.exact ?? at).of(variable).map(({ value }) => value);
    const held = meanWithin(this.variables[variable].shape, exact, at.given.size > 0), { value, known, numbers } = held;
    if (!at.exact) return { value };
    const found = this.engine.mean(at, variable, numbers), least = Math.min(...numbers), most = Math.max(...numbers);
    const mean = value + found.value / known;
    const below = Math.max(found.value - Math.max(found.lower, least), 0) / known;
    const above = Math.max(Math.min(found.upper, most) - found.value, 0) / known;
    const [low, high] = [below, above].map((end, side) =>
      held.unseen[side] + Math.hypot(end, held.drawn[side], held.missed(at.records, this.engine.unknownEffects?.(at, variable) ?? 0)));
    return { value: mean, lower: mean - low, upper: mean + high };
  }

  /** The distributions given an evidence, null if it is impossible. Answers of different streams are compared. */
  ask(given, bounded, ofRecords, stream = 0) {
    if (bounded && !this.bounded) throw new Error('This page has no bounds: its model has no release.');
    return bounded ? this.engine.uncertain(given, ofRecords, stream) : this.engine.exact(given);
  }

  /** What is found about each variable; a list by state has the names of the states. */
  byName(names, at, answer) {
    return keyed(names.map((name) => {
      const variable = this.variable(name), { states } = this.variables[variable];
      if (at.given.has(variable)) throw new Error(`Variable ${JSON.stringify(name)} is both asked for and given.`);
      const found = answer(variable, at);
      return [name, Array.isArray(found) ? keyed(states.map((state, s) => [state, found[s]])) : found];
    }));
  }
}

/** An object without a prototype, so that every name may be a key. */
const keyed = (pairs) => Object.setPrototypeOf(Object.fromEntries(pairs), null);

/** Read the page's head, in which packed arrays have places, and the arrays. */
async function openModel(head, text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  const bytes = await new Response(stream).arrayBuffer();
  return new Model(JSON.parse(head, (_, held) => {
    const [kind, place, length] = held?.packed ?? [];
    return kind ? new globalThis[kind](bytes, place, length) : held;
  }));
}
