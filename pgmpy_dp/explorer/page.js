// The page: what is given and compared, and its answers.

class Page {
  constructor(model) {
    const { hash } = location, nothing = { given: new Map(), pinned: null };
    Object.assign(this, { model, past: [], now: nothing, boxes: document.querySelectorAll('#graph a') });
    this.first = this.answers(nothing.given); // beside which all others are shown
    this.cards = new Map(model.shown.map((v) =>
      [v, new Card(model.variables[v], this.first.of(v), (s) => this.choose(v, s))]));
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
    } else this.say('No record can have all of that: take a part of it back first.');
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
    byId('question').replaceChildren(given.size ? 'Given ' : '', ...this.told(now, asChip));
    byId('other').replaceChildren(...this.told(before ?? now, (v, s) => this.fact(v, s)));
    byId('reset').disabled = !given.size && !pinned;
    this.arrange();
    for (const box of this.boxes) {
      const variable = +box.dataset.variable, differs = this.cards.get(variable)?.distance > 0.05;
      box.setAttribute('class', given.has(variable) ? 'given' : differs ? 'differs' : '');
    }
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
      unmeasured: asked && engine.deviations?.[0].tells(variable, given) === false,
    };
  }

  /** A question in words: its facts as they are written, and the number of records that have them. */
  told({ given, share, records, lower, upper }, write) {
    const { bounded, total } = this.model, count = records ?? (total && total * share);
    const facts = [...given].flatMap((fact, n) => [n ? ' and ' : '', write(...fact)]);
    const of = given.size ? ` of ${whole(this.first.records ?? total)}` : '';
    const reach = bounded && given.size ? `, ${whole(lower)} to ${whole(upper)}` : '';
    const counted = count === null ? `${percent(share)} of the records` : `about ${whole(count)}${of} records${reach}`;
    return [...(given.size ? facts : ['Nothing given']), `: ${counted}.`];
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
    const { model: { engine, shown }, now: { given } } = this, { found, proven } = engine.own.mostProbable(given);
    const facts = [...found].filter(([v]) => !given.has(v) && shown.includes(v));
    const share = engine.exact(found).share / engine.exact(given).share;
    const head = proven ? 'The most probable combination' : 'The most probable combination that a search found';
    const text = `${head}: ${rounded(100 * share)} % of ${given.size ? 'these' : 'all'} records have it exactly.`;
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
