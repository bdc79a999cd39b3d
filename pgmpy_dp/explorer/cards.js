// Cards of bars: the distributions of variables.

const byId = (id) => document.getElementById(id);
const MOST_ROWS = 12, MOST_SHOWN = 400; // states of a card before and after "more"

/** Make an element; children are elements or texts, which are never markup. */
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** A name or state, set apart so that it cannot turn the text around it. */
const named = (text) => element('bdi', { textContent: visible(text), title: text });
const visible = (text) => {
  const short = text.length > 80 ? `${text.slice(0, 60)}…${text.slice(-15)}` : text;
  return short.trim() ? short : `(blank) ${JSON.stringify(text)}`;
};

const css = (p) => `${100 * p}%`;
const percent = (p, digits = 1) => `${(100 * p).toFixed(digits)} %`;
const range = ({ lower, upper }) => `${(100 * lower).toFixed(1)} to ${(100 * upper).toFixed(1)}`;
const signed = (p) => `${p < -5e-4 ? '−' : p < 5e-4 ? '±' : '+'}${Math.abs(100 * p).toFixed(1)}`;
const whole = (n) => Math.round(n).toLocaleString('en');

/** The card of a variable: its rows are made once, and filled with every answer. */
class Card {
  constructor(model, variable, base, choose) {
    const { name, states, edges } = model.variables[variable];
    Object.assign(this, { variable, name, states, choose });
    this.moved = element('small');
    this.note = element('p', { className: 'note', hidden: true });
    this.list = element('div');
    this.list.setAttribute('role', 'group');
    this.list.setAttribute('aria-label', visible(name));
    this.list.addEventListener('keydown', (event) => this.step(event));
    const title = element('h2', {}, element('span', { className: 'name-box', title: name }, named(name)));
    this.root = element('section', { className: 'card' }, element('div', { className: 'head' }, title, this.moved), this.list, this.note);
    this.order = [...states.keys()];
    if (!edges) this.order.sort((a, b) => base[b].value - base[a].value);
    this.rows = new Map();
    this.more = element('button', { type: 'button', className: 'rest', onclick: () => { this.add(MOST_SHOWN); this.fill(this.last); } });
    if (states.length > MOST_ROWS + 2) this.root.append(this.more);
    this.words = [name, ...states].join('\n').toLowerCase();
    this.add(states.length > MOST_ROWS + 2 ? MOST_ROWS : states.length);
  }

  add(count) {
    const waiting = this.order.filter((state) => !this.rows.has(state)); // a search or a choice may have added any
    for (const state of waiting.slice(0, Math.max(count - this.rows.size, 0))) this.row(state);
    const left = this.states.length - this.rows.size, next = Math.min(left, MOST_SHOWN - this.rows.size);
    this.more.textContent = next > 0 ? `${whole(next)} more` : left ? `and ${whole(left)} more: find one by the search box` : '';
    this.more.disabled = next <= 0;
  }

  row(state) {
    const [bar, base, whisker] = ['bar', 'base', 'whisker'].map((className) => element('i', { className }));
    const [value, bounds] = ['value', 'bounds'].map((className) => element('span', { className }));
    const button = element('button', { type: 'button', className: 'state', onclick: () => this.choose(state) },
      element('span', { className: 'label' }, named(this.states[state])), element('span', { className: 'track' }, bar, base, whisker), value, bounds);
    button.tabIndex = this.rows.size ? -1 : 0;
    this.rows.set(state, { button, bar, base, whisker, value, bounds });
    this.list.append(button);
  }

  /** Move between states by the arrows. */
  step(event) {
    const by = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!by) return;
    const buttons = [...this.list.children], at = buttons.indexOf(document.activeElement);
    const next = buttons[Math.min(Math.max(at + by, 0), buttons.length - 1)];
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
    event.preventDefault();
  }

  /** Show an answer: states with bounds, the chosen state, and differences from a pinned question. */
  fill(answer) {
    this.last = answer;
    const { chosen, states, base, differences, against, note } = answer;
    this.distance = 0;
    states.forEach(({ value }, s) => this.distance += Math.abs(value - base[s].value) / 2);
    this.root.classList.toggle('given', chosen !== undefined);
    this.moved.textContent = chosen !== undefined ? 'given' : this.distance >= 5e-4 ? `moved ${percent(this.distance)}` : '';
    this.note.textContent = note;
    this.note.hidden = !note;
    if (chosen !== undefined && !this.rows.has(chosen)) this.row(chosen);
    for (const [state, row] of this.rows) this.fillRow(state, row, states[state], chosen, differences?.[state], against[state]);
  }

  fillRow(state, { button, bar, base, whisker, value, bounds }, { value: share, lower, upper }, chosen, difference, against) {
    const never = chosen === undefined && share === 0 && !(upper > 0), known = lower !== undefined && chosen === undefined;
    bar.style.width = css(share);
    base.style.left = css(against.value);
    whisker.hidden = !known;
    if (known) Object.assign(whisker.style, { left: css(lower), width: css(upper - lower) });
    value.textContent = percent(share);
    bounds.textContent = difference ? `${signed(difference.value)} (${signed(Math.max(difference.lower, -1))}, ${signed(Math.min(difference.upper, 1))})` : known ? range({ lower, upper }) : '';
    bounds.classList.toggle('apart', Boolean(difference) && difference.lower * difference.upper > 0);
    button.setAttribute('aria-pressed', state === chosen);
    button.setAttribute('aria-disabled', never);
    button.setAttribute('aria-label', `${visible(this.name)}: ${visible(this.states[state])}, ${never ? 'cannot occur' : percent(share)}${known ? `, between ${range({ lower, upper })} %` : ''}`);
    button.title = never ? 'This cannot occur together with what is given.' : this.states[state];
  }
}
