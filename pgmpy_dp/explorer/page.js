// Cards of bars: the distributions of variables.

const byId = (id) => document.getElementById(id);
const MOST_ROWS = 12; // of a card before "more"

/** Make an element; children are elements or texts, which are never markup. */
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Copy a template of the page: its element, and the parts of it by their classes. */
function copied(id) {
  const root = byId(id).content.firstElementChild.cloneNode(true);
  const parts = [...root.querySelectorAll('[class]')].map((part) => [part.classList[0], part]);
  return { root, ...Object.fromEntries(parts) };
}

/** A name or state, set apart so that it cannot turn the text around it. */
const named = (text) => element('bdi', { textContent: visible(text), title: text });
const visible = (text) => {
  const short = text.length > 80 ? `${text.slice(0, 60)}…${text.slice(-15)}` : text;
  return short.trim() ? short : `(blank) ${JSON.stringify(text)}`;
};

const css = (p) => `${100 * p}%`;
const points = (p) => (100 * p).toFixed(1);
const percent = (p) => `${points(p)} %`;
const signed = (p) => (Math.abs(p) < 5e-4 ? '' : p < 0 ? '−' : '+') + points(Math.min(Math.abs(p), 1));
const whole = (n) => Math.round(n).toLocaleString('en');
const rounded = (x) => x.toLocaleString('en', { maximumSignificantDigits: 3 });

/** The card of a variable: its rows are made once, and filled with every answer. */
class Card {
  constructor({ name, states, edges, dates, shape }, ordered, base, choose) {
    const form = dates && new DateForm(dates, edges[0]);
    const shown = form ? (x) => form.written(x) : rounded;
    Object.assign(this, { name, states, shown }, copied('card-template'));
    this.guess.textContent = shape?.guess ? ` The release hardly identifies it: ${shape.guess}.` : '';
    this.list.ariaLabel = visible(name);
    this.list.onkeydown = (event) => this.step(event);
    this.name_box.append(named(name));
    const order = [...states.keys()];
    if (!ordered) order.sort((a, b) => base[b].value - base[a].value);
    this.rows = order.map((state, place) => {
      const row = copied('state-template');
      row.label.append(named(states[state]));
      row.root.tabIndex = place ? -1 : 0;
      row.root.onclick = () => choose(state);
      return { state, ...row };
    });
    this.list.append(...this.rows.map(({ root }) => root));
    this.root.classList.toggle('short', states.length > MOST_ROWS + 2);
    this.rest.textContent = `${whole(states.length - MOST_ROWS)} more`;
    this.rest.onclick = () => this.root.classList.remove('short');
  }

  /** Move between states by the arrows. */
  step(event) {
    const by = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!by) return;
    const buttons = [...this.list.children].filter((button) => button.offsetParent), now = document.activeElement;
    const next = buttons[Math.min(Math.max(buttons.indexOf(now) + by, 0), buttons.length - 1)];
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
    event.preventDefault();
  }

  /** Show the card if its name or a state has a text, with the states that have it; return whether it has. */
  search(wanted) {
    const has = (text) => text.toLowerCase().includes(wanted);
    for (const { root, state } of this.rows) root.classList.toggle('found', wanted && has(this.states[state]));
    this.root.hidden = ![this.name, ...this.states].some(has);
    return !this.root.hidden;
  }

  /** Move to the card. */
  find() {
    this.root.hidden = false;
    this.root.scrollIntoView({ block: 'center' });
    this.root.animate({ boxShadow: ['0 0 0 3px var(--accent)', 'none'] }, 1200);
    this.root.querySelector('[tabindex="0"]').focus({ preventScroll: true });
  }

  /** Show an answer: states with bounds, the chosen state, the mean, and the answer that it is compared with. */
  fill(answer) {
    const { chosen, states, against, means, unmeasured } = answer, given = chosen !== undefined;
    this.last = answer;
    this.distance = given ? 2 : sumOf(states.map(({ value }, s) => Math.abs(value - against[s].value))) / 2;
    this.root.classList.toggle('given', given);
    this.differs.textContent = given ? 'given' : this.distance >= 5e-4 ? `differs ${percent(this.distance)}` : '';
    this.note.hidden = !unmeasured;
    this.mean.hidden = !means.length;
    this.means.textContent = means.map(({ value, lower, upper }) => this.shown(value)
      + (lower === undefined ? '' : ` (${this.shown(lower)} to ${this.shown(upper)})`)).join(', against ');
    for (const row of this.rows) this.fillRow(row);
  }

  fillRow({ state, root, bar, base, whisker, value, bounds }) {
    const { chosen, states, against, compared, differences } = this.last, difference = differences?.[state];
    const { value: share, lower, upper } = states[state], other = against[state].value;
    const reach = lower === undefined ? '' : `${points(lower)} to ${points(upper)}`;
    const never = chosen === undefined && share === 0 && !(upper > 0);
    bar.style.width = css(share);
    base.style.left = css(other);
    whisker.style = reach && `left: ${css(lower)}; width: ${css(upper - lower)}`;
    value.textContent = compared ? `${points(share)} against ${percent(other)}` : percent(share);
    bounds.textContent = difference
      ? `${signed(difference.value)} (${signed(difference.lower)}, ${signed(difference.upper)})` : reach;
    bounds.classList.toggle('apart', difference?.lower * difference?.upper > 0);
    root.ariaPressed = state === chosen;
    root.ariaDisabled = never;
    root.title = never ? 'This cannot occur together with what is given.' : '';
    const text = never ? 'cannot occur' : percent(share) + (reach && `, between ${reach} %`);
    root.ariaLabel = `${visible(this.name)}: ${visible(this.states[state])}, ${text}`;
  }
}

// What is taken along: a question as an address or a line of Python, and its answers as CSV.

/** The hash of a question's address. */
function addressOf({ variables }, { given, pinned }) {
  const facts = (own) => new URLSearchParams([...own].map(([v, s]) => [variables[v].name, variables[v].states[s]]));
  return given.size || pinned ? `#${facts(given)}${pinned ? `|${facts(pinned)}` : ''}` : '';
}

/** The question of an address, and whether it names what the model does not have, which is left out. */
function questionOf(model, hash) {
  const known = ([name, state]) => model.variables.find((own) => own.name === name)?.states.includes(state);
  const parts = hash.slice(1).split('|').map((words) => [...new URLSearchParams(words)]);
  const read = (facts) => new Map(facts.filter(known).map((own) => model.fact(...own)));
  const [given, pinned = null] = parts.map(read);
  return { given, pinned, unknown: !parts.flat().every(known) };
}

/** The line of Python that asks a question about some variables. */
function pythonOf({ variables, bounded }, { given }, asked, target) {
  const name = (v) => JSON.stringify(variables[v].name);
  const state = (v, s) => variables[v].literals?.[s] ?? JSON.stringify(variables[v].states[s]);
  const evidence = [...given].map(([v, s]) => `${name(v)}: ${state(v, s)}`).join(', ');
  const options = (bounded ? ', interval=0.9' : '') + (bounded && target === 'records' ? ', target="records"' : '');
  const call = (v) => `network.query([${v}], {${evidence}}${options})`;
  return asked.length === 1 ? call(name(asked[0])) : `{v: ${call('v')} for v in [${asked.map(name).join(', ')}]}`;
}

/** The answers on cards as a table. */
function csvOf(cards, compared) {
  const runs = (text) => /^[=+@\t\r-]/.test(text) && Number.isNaN(Number(text)); // as a spreadsheet's formula
  const quoted = (text) => `"${(runs(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  const numbers = ({ value = '', lower = '', upper = '' } = {}) => [value, lower, upper];
  const heads = ['variable', 'state', 'value', 'lower', 'upper'];
  const rows = cards.flatMap(({ name, states, last: { states: answers, differences } }) => states.map((state, s) =>
    [quoted(name), quoted(state), ...numbers(answers[s]), ...numbers(differences?.[s])]));
  if (compared) heads.push('difference', 'difference_lower', 'difference_upper');
  return [heads, ...rows].map((row) => `${row.slice(0, heads.length).join()}\r\n`).join('');
}

// The page: what is given and compared, and its answers.

class Page {
  constructor(model) {
    const { hash } = location, nothing = { given: new Map(), pinned: null };
    Object.assign(this, { model, past: [], now: nothing, boxes: document.querySelectorAll('#graph a') });
    this.first = this.answers(nothing.given); // beside which all others are shown
    this.cards = new Map(model.shown.map((v) =>
      [v, new Card(model.variables[v], model.ordered.includes(v), this.first.of(v), (s) => this.choose(v, s))]));
    this.listen();
    this.go(nothing, false);
    this.read(hash);
  }

  listen() {
    const clicks = {
      undo: () => this.go(this.past.pop(), false), reset: () => this.go({ given: new Map(), pinned: null }),
      pin: () => this.go({ ...this.now, pinned: this.now.given }), unpin: () => this.go({ ...this.now, pinned: null }),
      link: () => this.copy(location.href, 'The link'), python: () => this.copy(this.python(), 'The line of Python'),
      csv: () => this.download(), print: () => print(),
    };
    for (const [id, act] of Object.entries(clicks)) byId(id).onclick = act;
    byId('explanation').onbeforetoggle = ({ newState }) => newState === 'open' && this.explain();
    byId('target').onchange = () => {
      this.first = this.answers(new Map());
      this.show(this.asked(this.now));
    };
    byId('order').onchange = () => this.arrange();
    byId('search').oninput = () => this.filter();
    for (const box of this.boxes) box.onclick = (event) => {
      event.preventDefault();
      const card = this.cards.get(+box.dataset.variable);
      setTimeout(() => card?.find()); // or Enter would choose the state that is focused next
    };
    addEventListener('hashchange', () => location.hash === this.hash() || this.read(location.hash));
    addEventListener('keydown', (event) => {
      if (/^(INPUT|SELECT)$/.test(document.activeElement.tagName)) return;
      if ((event.ctrlKey || event.metaKey) && event.key === 'z') byId('undo').click();
      else if (event.key === '/') byId('search').focus();
      else return;
      event.preventDefault();
    });
  }

  /** Bounded answers, or exact ones where there are no bounds; null if the evidence is impossible. */
  answers(given, stream) {
    return this.model.ask(given, this.model.bounded, byId('target').value === 'records', stream);
  }

  /** The answers to a question and to another one that it is compared with; null if one is impossible. */
  asked({ given, pinned }) {
    const other = pinned && pinned !== given, now = given.size ? this.answers(given) : this.first;
    const before = other ? this.answers(pinned, 1) : null;
    return now && (before || !other) ? { now, before } : null;
  }

  /** Ask another question; one that is impossible is refused, and said so. */
  go(next, keep = true) {
    const found = this.asked(next);
    if (found) {
      if (keep) this.past.push(this.now);
      this.now = next;
      this.show(found);
    } else this.say(`None of the ${this.model.counted} can have all of that: remove some of it first.`);
    byId('undo').disabled = this.past.length === 0;
    try {
      history.replaceState(null, '', this.hash() || '#');
    } catch { /* a page without an address, as in a notebook */ }
  }

  choose(variable, state) {
    const given = new Map(this.now.given).set(variable, state);
    if (this.now.given.get(variable) === state) given.delete(variable);
    this.go({ ...this.now, given });
  }

  /** Ask what the address says. */
  read(hash) {
    const { unknown, ...asked } = questionOf(this.model, hash);
    this.go(asked, false);
    if (unknown) this.say('The link names what this page does not have; that was left out.');
  }

  show({ now, before }) {
    const { given, pinned } = this.now;
    for (const [variable, card] of this.cards) card.fill(this.answer(variable, now, before));
    const hidden = this.model.bounded && given.size && now.lower < 1;
    const known = { 'hidden-by-noise': hidden, comparing: before, pinned, asking: given.size };
    for (const [name, holds] of Object.entries(known)) document.body.classList.toggle(name, Boolean(holds));
    const chip = { type: 'button', className: 'chip', title: 'Take this back' };
    const asChip = (v, s) => this.fact(v, s, 'button', { ...chip, onclick: () => this.choose(v, s) });
    byId('question').replaceChildren(given.size ? 'Given ' : '', ...this.sentence(now, asChip));
    byId('other').replaceChildren(...this.sentence(before ?? now, (v, s) => this.fact(v, s)));
    byId('reset').disabled = !given.size && !pinned;
    this.arrange();
    for (const box of this.boxes) {
      const variable = +box.dataset.variable, differs = this.cards.get(variable)?.distance > 0.05;
      box.setAttribute('class', given.has(variable) ? 'given' : differs ? 'differs' : '');
    }
    if (byId('explanation').matches(':popover-open')) this.explain();
    this.say('');
  }

  /** What a card shows. */
  answer(variable, now, before) {
    const { model, first, now: { given, pinned } } = this, { bounded, engine, variables } = model;
    const certain = (own) => variables[variable].states.map((_, s) => ({ value: +(s === own) }));
    const shares = (at) => at.given.has(variable) ? certain(at.given.get(variable)) : at.of(variable);
    const asked = !given.has(variable), compared = before && asked && !pinned.has(variable);
    const meant = asked && variables[variable].shape ? [now, before].slice(0, compared ? 2 : 1) : [];
    return {
      chosen: given.get(variable), states: shares(now), against: shares(before ?? first), compared,
      differences: compared && bounded ? engine.difference(now, before, variable) : null,
      means: meant.map((at) => model.mean(at, variable)),
      unmeasured: asked && engine.informs?.(variable, given) === false,
    };
  }

  /** A question in words: its facts as they are written, and the number of records that have them. */
  sentence({ given, exact, share = exact.share, records, lower = -Infinity, upper = Infinity }, write) {
    const { bounded, total, counted } = this.model, all = total ?? this.first.records;
    const count = total === null ? records : Math.min(Math.max(total * share, lower), upper);
    const facts = [...given].flatMap((fact, n) => [n ? ' and ' : '', write(...fact)]);
    const of = given.size ? ` of ${whole(all)}` : '', reach = `, ${whole(lower)} to ${whole(upper)}`;
    const about = `about ${whole(count)}${of} ${counted}${bounded && given.size ? reach : ''}`;
    const answer = count === undefined ? `${percent(share)} of the ${counted}` : about;
    return [...(given.size ? facts : ['Nothing given']), `: ${answer}.`];
  }

  fact(variable, state, tag = 'span', properties = {}) {
    const { name, states } = this.model.variables[variable];
    return element(tag, properties, named(name), ' = ', named(states[state]));
  }

  /** Order the cards: what is given first, then what differs most. */
  arrange() {
    const cards = [...this.cards.values()], focused = document.activeElement;
    if (byId('order').value === 'differs') cards.sort((one, other) => other.distance - one.distance);
    const roots = cards.map(({ root }) => root);
    if (roots.some((root, n) => byId('cards').children[n] !== root)) byId('cards').replaceChildren(...roots);
    focused.focus({ preventScroll: true });
  }

  /** Show the cards whose variable or state has the text that is searched for. */
  filter() {
    const wanted = byId('search').value.trim().toLowerCase(), cards = [...this.cards.values()];
    const shown = cards.filter((card) => card.search(wanted)).length;
    this.say(wanted && `${shown} of ${cards.length} variables have that in their name or a state.`);
  }

  explain() {
    const { model: { engine, shown }, now: { given } } = this, { found, proven } = engine.mostProbable(given);
    const facts = [...found].filter(([v]) => !given.has(v) && shown.includes(v));
    const share = engine.exact(found).share / engine.exact(given).share;
    const head = proven ? 'The most probable combination' : 'The most probable combination that a search found';
    const text = `${head}: ${rounded(100 * share)} % of ${given.size ? 'these' : 'all'} ${this.model.counted} have it exactly.`;
    const list = element('ul', {}, ...facts.map(([v, s]) => this.fact(v, s, 'li')));
    byId('explanation').replaceChildren(element('p', {}, text), list);
  }

  hash() { return addressOf(this.model, this.now); }

  python() {
    const asked = [...this.cards].filter(([v, { root }]) => !this.now.given.has(v) && !root.hidden).map(([v]) => v);
    return pythonOf(this.model, this.now, asked, byId('target').value);
  }

  csv() { return csvOf([...this.cards.values()], this.now.pinned); }

  download() {
    const href = URL.createObjectURL(new Blob([this.csv()], { type: 'text/csv' }));
    element('a', { href, download: 'answers.csv' }).click();
    this.say('The answers are downloaded as answers.csv.');
  }

  async copy(text, what) {
    const copied = await navigator.clipboard?.writeText(text).then(() => ' is copied', () => '') ?? '';
    this.say(`${what}${copied}: ${text}`);
  }

  say(text) {
    byId('said').textContent = byId('said').title = text;
  }
}

window.explorer = {};
window.explorer.ready = openModel(byId('head').textContent, byId('arrays').textContent).then((model) => {
  byId('arrays').remove();
  const calls = ['query', 'compare', 'expectation'].map((name) => [name, (...asked) => model[name](...asked)]);
  return Object.assign(window.explorer, Object.fromEntries(calls), { model, page: new Page(model) });
}).catch((error) => {
  byId('question').textContent = `This page could not be opened: ${error.message}`;
  throw error;
});
