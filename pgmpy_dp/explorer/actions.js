// What is asked and compared: clicks, history, the address's hash, copies and files.

class Page {
  constructor(model) {
    Object.assign(this, { model, past: [], target: 'population', now: { given: new Map(), pinned: null } });
    this.first = this.answers(this.now.given);
    this.cards = new Map(model.shown.map((v) =>
      [v, new Card(model.variables[v], this.first.of.get(v), (s) => this.choose(v, s))]));
    document.body.classList.toggle('no-bounds', !model.bounded);
    this.boxes = document.querySelectorAll('#graph a');
    this.listen();
    this.read();
  }

  listen() {
    const clicks = {
      undo: () => this.undo(), reset: () => this.go({ given: new Map(), pinned: null }), explain: () => this.explain(),
      pin: () => {
        this.go({ given: this.now.given, pinned: this.now.pinned ? null : this.now.given });
        if (this.now.pinned) this.say('Now click another state: its answers are compared with these.');
      },
      link: () => this.copy(location.href, 'The link'), python: () => this.copy(this.python(), 'The line of Python'),
      csv: () => this.download(), print: () => print(),
    };
    for (const [id, act] of Object.entries(clicks)) byId(id).onclick = act;
    byId('target').onchange = () => {
      this.target = byId('target').value;
      this.first = this.answers(new Map());
      this.show();
    };
    byId('order').onchange = () => this.show();
    byId('search').oninput = () => this.filter();
    for (const box of this.boxes) {
      box.onclick = () => this.find(+box.dataset.variable);
      box.onkeydown = (event) => {
        if (event.key !== 'Enter') return;
        event.preventDefault(); // or it would choose the state that is focused next
        box.onclick();
      };
    }
    addEventListener('hashchange', () => { if (location.hash !== this.hash()) this.read(); });
    addEventListener('keydown', (event) => {
      if (/^(INPUT|SELECT)$/.test(document.activeElement.tagName)) return;
      if ((event.ctrlKey || event.metaKey) && event.key === 'z') this.undo();
      else if (event.key === '/') byId('search').focus();
      else return;
      event.preventDefault();
    });
  }

  /** Bounded answers about every shown variable, or exact ones where there are no bounds; null if impossible. */
  answers(given, stream) {
    const { bounded, shown, variables } = this.model, at = this.model.ask(given, bounded, this.target === 'records', stream);
    const certain = (v) => variables[v].states.map((_, s) => ({ value: +(s === given.get(v)) }));
    return at && { at, of: new Map(shown.map((v) => [v, given.has(v) ? certain(v) : at.of(v)])) };
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
      this.say('No record can have all of that: take a part of it back first.');
    } else if (keep) this.past.push(before);
    byId('undo').disabled = this.past.length === 0;
    try {
      history.replaceState(null, '', this.hash() || '#');
    } catch { /* a page without an address, as in a notebook */ }
  }

  undo() {
    if (this.past.length) this.go(this.past.pop(), false);
  }

  /** Show the answers, and whether the question is possible. */
  show() {
    const { given, pinned } = this.now, { model } = this, { bounded, engine } = model;
    const found = given.size ? this.answers(given) : this.first;
    const other = found && pinned ? this.answers(pinned, 1) : null;
    if (!found || (pinned && !other)) return false;
    for (const [variable, card] of this.cards) {
      const asked = !given.has(variable), both = other && asked && !pinned.has(variable);
      const mean = (own) => meanOf(model.mean(own.at, variable), model.variables[variable].kind);
      const guess = model.variables[variable].shape?.guess ? '. How far the widest bin reaches, and so the mean, is mostly a guess' : '';
      card.fill({
        chosen: given.get(variable), states: found.of.get(variable),
        base: this.first.of.get(variable), against: (other ?? this.first).of.get(variable),
        differences: both && bounded ? engine.difference(found.at, other.at, variable) : null,
        mean: asked && model.variables[variable].shape ? `Mean ${mean(found)}${both ? `, against ${mean(other)}` : ''}${guess}.` : '',
        note: bounded && asked && !engine.tells(variable, given)
          ? 'Not measured together with what is given: these bounds hold if the network is right.' : '',
      });
    }
    const hidden = bounded && given.size > 0 && found.at.least < 1;
    document.body.classList.toggle('hidden-by-noise', hidden);
    document.body.classList.toggle('comparing', Boolean(pinned) && bounded);
    byId('doubt').hidden = !hidden;
    this.ask(found.at, other?.at);
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
  ask(now, before) {
    const { given, pinned } = this.now, { bounded, total } = this.model;
    const counted = ({ given: { size }, records = total === null ? null : total * now.share, lower, upper, share }) => {
      if (records === null) return `${percent(share)} of the records.`;
      const of = size ? ` of ${whole(this.first.at.records ?? total)}` : '', bounds = bounded && size ? `, ${whole(lower)} to ${whole(upper)}` : '';
      return `about ${whole(records)}${of} records${bounds}.`;
    };
    const facts = (own, write) => [...own].flatMap((fact, n) => [n ? ' and ' : '', write(...fact)].flat());
    const chips = facts(given, (v, s) => element('button', {
      type: 'button', className: 'chip', title: 'Take this back', onclick: () => this.choose(v, s),
    }, ...this.fact(v, s)));
    byId('question').replaceChildren(...(given.size ? ['Given ', ...chips, ': '] : ['Nothing given: all ']), counted(now));
    byId('against').hidden = byId('mark').hidden = !pinned;
    byId('mark').hidden = !pinned && !given.size;
    byId('mark').lastElementChild.textContent = pinned ? 'compared with' : 'among all records';
    byId('pin').ariaPressed = Boolean(pinned);
    byId('pin').textContent = pinned ? 'Stop comparing' : 'Compare with this';
    byId('reset').disabled = !given.size && !pinned;
    if (!pinned) return;
    const own = pinned.size ? facts(pinned, (v, s) => this.fact(v, s)) : ['nothing given'];
    byId('against').replaceChildren('Compared with ', ...own, `: ${counted(before)}`, bounded ? ' Differences are in percentage points, with 90 % bounds.' : '');
  }

  fact(variable, state) {
    const { name, states } = this.model.variables[variable];
    return [named(name), ' = ', named(states[state])];
  }

  /** Order the cards: what is given first, then what moved most. */
  arrange() {
    const { given, pinned } = this.now, cards = [...this.cards], places = [...given.keys()];
    const distance = ([v, card]) => given.has(v) ? 2 + places.length - places.indexOf(v) : card.distance;
    if (byId('order').value === 'moved' && (given.size || pinned)) cards.sort((a, b) => distance(b) - distance(a));
    const focused = document.activeElement, roots = cards.map(([, { root }]) => root);
    if (roots.some((root, n) => byId('cards').children[n] !== root)) byId('cards').replaceChildren(...roots);
    focused.focus({ preventScroll: true });
  }

  /** Show the cards whose variable or state has the text that is searched for. */
  filter() {
    const wanted = byId('search').value.trim().toLowerCase(), cards = [...this.cards.values()];
    byId('cards').classList.toggle('searching', Boolean(wanted));
    for (const card of cards) {
      card.root.hidden = !card.words.includes(wanted);
      if (card.root.hidden || card.rows.size === card.states.length) continue;
      const states = [...card.states.keys()].filter((s) => card.states[s].toLowerCase().includes(wanted));
      for (const s of states.slice(0, MOST_SHOWN)) card.row(s);
      card.fill(card.last);
    }
    const shown = cards.filter((card) => !card.root.hidden).length;
    this.say(wanted ? `${shown} of ${cards.length} variables have that in their name or a state.` : '');
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
    const { model: { engine, shown }, now: { given } } = this, { found, proven } = engine.mostProbable(given);
    const lines = [...found].filter(([v]) => !given.has(v) && shown.includes(v)).map((own) => element('li', {}, ...this.fact(...own)));
    const share = engine.exact(found).share / engine.exact(given).share;
    const head = `${proven ? 'The most probable combination' : 'The most probable combination that a search found'}${given.size ? ' given that' : ''}`;
    const text = `${head}: ${share < 0.001 ? `${(100 * share).toPrecision(2)} %` : percent(share)} of these records have it exactly.`;
    byId('explanation').replaceChildren(element('p', {}, text), element('ul', {}, ...lines));
    byId('explanation').hidden = false;
    byId('explanation').scrollIntoView({ block: 'nearest' });
  }

  hash() {
    const { variables } = this.model, code = (text) => encodeURIComponent(text.toWellFormed());
    const words = (given) => [...given].map(([v, s]) => `${code(variables[v].name)}=${code(variables[v].states[s])}`).join('&');
    const { given, pinned } = this.now, own = words(given) + (pinned ? `|${words(pinned)}` : '');
    return own && `#${own}`;
  }

  /** Ask what the address says; what it names and the model does not have is left out, and said so. */
  read() {
    let unknown = '';
    const known = (pair) => {
      try {
        return [...this.model.given(new Map([pair.split('=').map(decodeURIComponent)]))];
      } catch {
        unknown = 'The link names what this page does not have; that was left out.';
        return [];
      }
    };
    const [given, pinned = null] = location.hash.slice(1).split('|').map((words) => new Map(words.split('&').filter(Boolean).flatMap(known)));
    this.go({ given, pinned }, false);
    if (unknown) this.say(unknown);
  }

  python() {
    const { variables, shown, bounded } = this.model, { given } = this.now, name = (v) => JSON.stringify(variables[v].name);
    const state = (v, s) => variables[v].literals?.[s] ?? JSON.stringify(variables[v].states[s]);
    const evidence = [...given].map(([v, s]) => `${name(v)}: ${state(v, s)}`).join(', ');
    const asked = shown.filter((v) => !given.has(v) && !this.cards.get(v).root.hidden).map(name);
    const options = bounded ? `, interval=0.9${this.target === 'records' ? ', target="records"' : ''}` : '';
    const call = (v) => `network.query([${v}], {${evidence}}${options})`;
    return asked.length === 1 ? call(asked[0]) : `{v: ${call('v')} for v in [${asked.join(', ')}]}`;
  }

  csv() {
    const runs = (text) => /^[=+@\t\r-]/.test(text) && Number.isNaN(Number(text)); // as a spreadsheet's formula
    const quoted = (text) => `"${(runs(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
    const numbers = ({ value = '', lower = '', upper = '' } = {}) => [value, lower, upper], { pinned } = this.now;
    const rows = [...this.cards.values()].flatMap(({ name, states, last }) => states.map((state, s) =>
      [quoted(name), quoted(state), ...numbers(last.states[s]), ...(pinned ? numbers(last.differences?.[s]) : [])]));
    const heads = ['variable', 'state', 'value', 'lower', 'upper', ...(pinned ? ['difference', 'difference_lower', 'difference_upper'] : [])];
    return [heads, ...rows].map((row) => `${row.join()}\r\n`).join('');
  }

  download() {
    const url = URL.createObjectURL(new Blob([this.csv()], { type: 'text/csv' }));
    element('a', { href: url, download: 'answers.csv' }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    this.say('Saved as answers.csv.');
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
  const calls = Object.fromEntries(['query', 'compare', 'expectation'].map((name) => [name, (...asked) => model[name](...asked)]));
  return Object.assign(window.explorer, calls, { model, page: new Page(model) });
}).catch((error) => {
  byId('question').textContent = `This page could not be opened: ${error.message}`;
  throw error;
});
