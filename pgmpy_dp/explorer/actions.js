// What is asked and compared: clicks, history, the address's hash, copies and files.

class Page {
  constructor(model) {
    this.model = model;
    this.cards = new Map();
    this.past = [];
    this.target = 'population';
    this.now = { given: new Map(), pinned: null };
    this.first = this.answers(this.now.given);
    for (const variable of model.shown)
      this.cards.set(variable, new Card(model, variable, this.first.of.get(variable), (s) => this.choose(variable, s)));
    document.body.classList.toggle('no-bounds', !model.bounded);
    byId('explain').hidden = !model.engine.mostProbable;
    this.boxes = document.querySelectorAll('#graph a');
    if (this.boxes.length) byId('graph').open = this.boxes.length <= 10 && innerWidth > 700;
    this.listen();
    this.read();
  }

  listen() {
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    on('undo', 'click', () => this.undo());
    on('reset', 'click', () => this.go({ given: new Map(), pinned: null }));
    on('pin', 'click', () => this.go({ given: this.now.given, pinned: this.now.pinned ? null : this.now.given }));
    on('explain', 'click', () => this.explain());
    on('target', 'change', () => { this.target = byId('target').value; this.first = this.answers(new Map()); this.show(); });
    on('order', 'change', () => this.show());
    on('search', 'input', () => this.filter());
    on('link', 'click', () => this.copy(location.href, 'The link'));
    on('python', 'click', () => this.copy(this.python(), 'The line of Python'));
    on('csv', 'click', () => this.download());
    on('print', 'click', () => print());
    for (const box of this.boxes) {
      box.addEventListener('click', () => this.find(+box.dataset.variable));
      box.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter') return;
        event.preventDefault(); // or it would choose the state that is focused next
        this.find(+box.dataset.variable);
      });
    }
    addEventListener('hashchange', () => { if (location.hash !== this.hash()) this.read(); });
    addEventListener('keydown', (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
      if ((event.ctrlKey || event.metaKey) && event.key === 'z' && !typing) { event.preventDefault(); this.undo(); }
      if (event.key === '/' && !typing) { event.preventDefault(); byId('search').focus(); }
    });
  }

  /** Bounded answers about every shown variable, or exact ones where there are no bounds; null if impossible. */
  answers(given, stream) {
    const { bounded, shown, total, variables } = this.model, at = this.model.ask(given, bounded, this.target === 'records', stream);
    if (at === null) return null;
    if (!bounded) at.records = total === null ? null : total * at.share;
    const certain = (v) => variables[v].states.map((_, s) => ({ value: +(s === given.get(v)) }));
    return { at, of: new Map(shown.map((v) => [v, given.has(v) ? certain(v) : at.of(v)])) };
  }

  choose(variable, state) {
    const given = new Map(this.now.given);
    if (given.get(variable) === state) given.delete(variable);
    else given.set(variable, state);
    this.go({ given, pinned: this.now.pinned });
  }

  /** Ask another question; one that is impossible is refused, and said so. */
  go(next, keep = true) {
    const before = this.now;
    this.now = next;
    const possible = this.show();
    if (!possible) {
      this.now = before;
      this.show();
    } else if (keep) this.past.push(before);
    byId('undo').disabled = this.past.length === 0;
    try {
      history.replaceState(null, '', this.hash() || '#');
    } catch { /* a page without an address, as in a notebook */ }
    if (!possible) this.say('No record can have all of that: take a part of it back first.');
  }

  undo() {
    const before = this.past.pop();
    if (before) this.go(before, false);
  }

  show() {
    const { given, pinned } = this.now, { model } = this;
    const found = given.size ? this.answers(given) : this.first;
    const other = found && pinned ? this.answers(pinned, 1) : null;
    if (!found || (pinned && !other)) return false;
    for (const [variable, card] of this.cards) {
      const both = other && !given.has(variable) && !pinned.has(variable);
      card.fill({
        chosen: given.get(variable), states: found.of.get(variable),
        base: this.first.of.get(variable), against: (other ?? this.first).of.get(variable),
        differences: both && model.bounded ? model.engine.difference(found.at, other.at, variable) : null,
        note: model.bounded && !given.has(variable) && !model.engine.tells(variable, given)
          ? 'Not measured together with what is given: these bounds hold if the network is right.' : '',
      });
    }
    const hidden = model.bounded && given.size > 0 && found.at.least < 1;
    document.body.classList.toggle('hidden-by-noise', hidden);
    document.body.classList.toggle('comparing', Boolean(pinned) && model.bounded);
    byId('doubt').hidden = !hidden;
    this.ask(found, other);
    this.arrange();
    for (const box of this.boxes) {
      const variable = +box.dataset.variable, moved = this.cards.get(variable)?.distance > 0.05;
      box.setAttribute('class', given.has(variable) ? 'given' : moved ? 'moved' : '');
    }
    byId('explanation').hidden = true;
    this.say('');
    return true;
  }

  /** The question as a sentence. */
  ask({ at }, other) {
    const { given, pinned } = this.now, { bounded } = this.model;
    const counted = ({ records, lower, upper, share }, size) => records === null
      ? `${percent(share)} of the records`
      : `about ${whole(records)}${size ? ` of ${whole(this.first.at.records)}` : ''} records${bounded && size ? `, ${whole(lower)} to ${whole(upper)}` : ''}`;
    const facts = (own, write) => own.size ? [...own].flatMap(([v, s], n) => [n ? ' and ' : '', write(v, s)].flat()) : ['nothing given'];
    const chips = facts(given, (v, s) => element('button', {
      type: 'button', className: 'chip', title: 'Take this back', onclick: () => this.choose(v, s),
    }, ...this.fact(v, s)));
    byId('question').replaceChildren(...(given.size ? ['Given ', ...chips, `: ${counted(at, true)}.`] : [`Nothing given: all ${counted(at, false)}.`]));
    byId('against').hidden = !pinned;
    if (pinned) byId('against').replaceChildren('Compared with ', ...facts(pinned, (v, s) => this.fact(v, s)), `: ${counted(other.at, pinned.size > 0)}.`, bounded ? ' Differences are in percentage points, with 90 % bounds.' : '');
    byId('pin').setAttribute('aria-pressed', Boolean(pinned));
    byId('pin').textContent = pinned ? 'Stop comparing' : 'Compare with this';
    byId('reset').disabled = !given.size && !pinned;
    byId('mark').lastElementChild.textContent = pinned ? 'compared with' : 'among all records';
    byId('mark').hidden = !given.size && !pinned;
  }

  fact(variable, state) {
    const { name, states } = this.model.variables[variable];
    return [named(name), ' = ', named(states[state])];
  }

  /** Order the cards: what is given first, then what moved most. */
  arrange() {
    const { given, pinned } = this.now, cards = [...this.cards.values()];
    if (byId('order').value === 'moved' && (given.size || pinned)) {
      const places = [...given.keys()], distance = (card) => given.has(card.variable) ? 2 + places.length - places.indexOf(card.variable) : card.distance;
      cards.sort((a, b) => distance(b) - distance(a));
    }
    const focused = document.activeElement;
    if (cards.some((card, n) => byId('cards').children[n] !== card.root)) byId('cards').replaceChildren(...cards.map((card) => card.root));
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  }

  filter() {
    const wanted = byId('search').value.trim().toLowerCase();
    let shown = 0;
    for (const card of this.cards.values()) {
      card.root.hidden = !card.words.includes(wanted);
      shown += !card.root.hidden;
      if (!wanted) continue;
      this.model.variables[card.variable].states.forEach((state, s) => {
        if (!card.root.hidden && !card.rows.has(s) && card.rows.size < MOST_SHOWN && state.toLowerCase().includes(wanted)) card.row(s);
      });
      card.fill(card.last);
    }
    this.say(wanted ? `${shown} of ${this.cards.size} variables have that in their name or a state.` : '');
  }

  find(variable) {
    const { root } = this.cards.get(variable) ?? {};
    if (!root) return;
    root.hidden = false;
    root.scrollIntoView({ block: 'center' });
    root.classList.remove('found');
    requestAnimationFrame(() => root.classList.add('found'));
    root.querySelector('[tabindex="0"]').focus({ preventScroll: true });
  }

  explain() {
    const { model, now: { given } } = this, found = model.engine.mostProbable(given), box = byId('explanation');
    const lines = [...found].filter(([v]) => !given.has(v) && model.shown.includes(v)).map((own) => element('li', {}, ...this.fact(...own)));
    const share = model.engine.exact(found).share / model.engine.exact(given).share;
    box.replaceChildren(element('p', {}, `The most probable combination${given.size ? ' given that' : ''}: ${share < 0.001 ? share.toExponential(1) : percent(share)} of these records have it exactly.`), element('ul', {}, ...lines));
    box.hidden = false;
    box.scrollIntoView({ block: 'nearest' });
  }

  hash() {
    const { variables } = this.model, code = (text) => encodeURIComponent(text.toWellFormed());
    const words = (given) => [...given].map(([v, s]) => `${code(variables[v].name)}=${code(variables[v].states[s])}`).join('&');
    const { given, pinned } = this.now, own = words(given) + (pinned ? `|${words(pinned)}` : '');
    return own && `#${own}`;
  }

  /** Ask what the address says; what it names and the model does not have is left out, and said so. */
  read() {
    const unknown = [];
    const [given, pinned] = location.hash.slice(1).split('|').map((words) => new Map(words.split('&').filter(Boolean).flatMap((pair) => {
      try {
        return [...this.model.given(new Map([pair.split('=').map(decodeURIComponent)]))];
      } catch {
        unknown.push(pair);
        return [];
      }
    })));
    this.go({ given, pinned: pinned ?? null }, false);
    if (unknown.length) this.say('The link names what this page does not have; that was left out.');
  }

  python() {
    const { variables, shown, bounded } = this.model, { given } = this.now;
    const state = (v, s) => variables[v].literals?.[s] ?? JSON.stringify(variables[v].states[s]);
    const evidence = [...given].map(([v, s]) => `${JSON.stringify(variables[v].name)}: ${state(v, s)}`).join(', ');
    const asked = shown.filter((v) => !given.has(v) && !this.cards.get(v).root.hidden).map((v) => JSON.stringify(variables[v].name));
    const options = bounded ? `, interval=0.9${this.target === 'records' ? ', target="records"' : ''}` : '';
    const call = (name) => `network.query([${name}], {${evidence}}${options})`;
    return asked.length === 1 ? call(asked[0]) : `{v: ${call('v')} for v in [${asked.join(', ')}]}`;
  }

  csv() {
    const runs = (text) => /^[=+@\t\r-]/.test(text) && Number.isNaN(Number(text)); // as a spreadsheet's formula
    const quoted = (text) => `"${(runs(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
    const rows = [...this.cards].flatMap(([v, { last }]) => last.states.map(({ value, lower, upper }, s) => {
      const difference = last.differences?.[s] ?? {}, numbers = [value, lower, upper];
      if (this.now.pinned) numbers.push(difference.value, difference.lower, difference.upper);
      return [quoted(this.model.variables[v].name), quoted(this.model.variables[v].states[s]), ...numbers.map((n) => n ?? '')].join();
    }));
    const heads = ['variable', 'state', 'value', 'lower', 'upper'];
    if (this.now.pinned) heads.push('difference', 'difference_lower', 'difference_upper');
    return `${[heads.join(), ...rows].join('\r\n')}\r\n`;
  }

  download() {
    const url = URL.createObjectURL(new Blob([this.csv()], { type: 'text/csv' }));
    element('a', { href: url, download: 'answers.csv' }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    this.say('Saved as answers.csv.');
  }

  async copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      this.say(`${what} is copied: ${text}`);
    } catch {
      this.say(`${what}: ${text}`);
    }
  }

  say(text) {
    byId('said').textContent = byId('said').title = text;
  }
}

window.explorer = {};
window.explorer.ready = openModel(byId('head').textContent, byId('arrays').textContent).then((model) => {
  byId('arrays').remove();
  const page = new Page(model);
  return Object.assign(window.explorer, {
    query: (...question) => model.query(...question), compare: (...questions) => model.compare(...questions), model, page,
  });
}).catch((error) => {
  byId('question').textContent = `This page could not be opened: ${error.message}`;
  throw error;
});
