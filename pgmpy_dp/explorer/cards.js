// Cards of bars: the distributions of variables.

const byId = (id) => document.getElementById(id);
const MOST_ROWS = 12, MOST_SHOWN = 400; // states of a card before and after "more"

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
const percent = (p, digits = 1) => `${(100 * p).toFixed(digits)} %`;
const range = ({ lower, upper }) => `${(100 * lower).toFixed(1)} to ${(100 * upper).toFixed(1)}`;
const signed = (p) => `${p < -5e-4 ? '−' : p < 5e-4 ? '±' : '+'}${Math.abs(100 * p).toFixed(1)}`;
const whole = (n) => Math.round(n).toLocaleString('en');
const rounded = (x) => x.toLocaleString('en', { maximumSignificantDigits: 3 });
const day = (x) => new Date(Math.round(x) * 864e5).toISOString().slice(0, 10);
const meanOf = ({ value, lower, upper }, kind) => {
  const shown = kind === 'date' ? day : rounded;
  return shown(value) + (lower === undefined ? '' : ` (${shown(lower)} to ${shown(upper)})`);
};

/** The card of a variable: its rows are made once, and filled with every answer. */
class Card {
  constructor({ name, states, edges }, base, choose) {
    Object.assign(this, { name, states, choose, rows: new Map() }, copied('card-template'));
    this.list.setAttribute('aria-label', visible(name));
    this.list.addEventListener('keydown', (event) => this.step(event));
    this.name_box.append(named(name));
    this.name_box.title = name;
    this.words = [name, ...states].join('\n').toLowerCase();
    const order = [...states.keys()], shown = Math.min(states.length, MOST_SHOWN);
    if (!edges) order.sort((a, b) => base[b].value - base[a].value);
    for (const state of order.slice(0, MOST_SHOWN)) this.row(state);
    this.root.classList.toggle('short', states.length > MOST_ROWS + 2);
    const beyond = states.length > shown ? `; find the other ${whole(states.length - shown)} by the search box` : '';
    this.rest.textContent = `${whole(shown - MOST_ROWS)} more${beyond}`;
    this.rest.onclick = () => this.root.classList.remove('short');
  }

  /** The row of a state, which is made where it is the first time that it is needed. */
  row(state) {
    if (this.rows.has(state)) return;
    const row = copied('state-template');
    row.label.append(named(this.states[state]));
    row.root.tabIndex = this.rows.size ? -1 : 0;
    row.root.onclick = () => this.choose(state);
    this.rows.set(state, row);
    this.list.append(row.root);
  }

  /** Move between states by the arrows. */
  step(event) {
    const by = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!by) return;
    const buttons = [...this.list.children].filter((button) => button.offsetParent), at = buttons.indexOf(document.activeElement);
    const next = buttons[Math.min(Math.max(at + by, 0), buttons.length - 1)];
    for (const button of this.list.children) button.tabIndex = button === next ? 0 : -1;
    next.focus();
    event.preventDefault();
  }

  /** Show an answer: states with bounds, the chosen state, the mean, and differences from a pinned question. */
  fill(answer) {
    this.last = answer;
    const { chosen, states, base, differences, against, note, mean } = answer;
    this.distance = states.reduce((sum, { value }, s) => sum + Math.abs(value - base[s].value) / 2, 0);
    this.root.classList.toggle('given', chosen !== undefined);
    this.moved.textContent = chosen !== undefined ? 'given' : this.distance >= 5e-4 ? `moved ${percent(this.distance)}` : '';
    this.note.textContent = note;
    this.mean.textContent = mean;
    if (chosen !== undefined) this.row(chosen);
    for (const [state, row] of this.rows) this.fillRow(row, this.states[state], state === chosen, states[state], differences?.[state], against[state]);
  }

  fillRow({ root, bar, base, whisker, value, bounds }, state, chosen, { value: share, lower, upper }, difference, against) {
    const given = this.last.chosen !== undefined, never = !given && share === 0 && !(upper > 0), known = lower !== undefined && !given;
    bar.style.width = css(share);
    base.style.left = css(against.value);
    whisker.hidden = !known;
    if (known) Object.assign(whisker.style, { left: css(lower), width: css(upper - lower) });
    value.textContent = percent(share);
    bounds.textContent = known ? range({ lower, upper }) : '';
    if (difference) bounds.textContent = `${signed(difference.value)} (${signed(Math.max(difference.lower, -1))}, ${signed(Math.min(difference.upper, 1))})`;
    bounds.classList.toggle('apart', difference?.lower * difference?.upper > 0);
    root.ariaPressed = chosen;
    root.ariaDisabled = never;
    root.ariaLabel = `${visible(this.name)}: ${visible(state)}, ${never ? 'cannot occur' : percent(share)}${known ? `, between ${range({ lower, upper })} %` : ''}`;
    root.title = never ? 'This cannot occur together with what is given.' : state;
  }
}
