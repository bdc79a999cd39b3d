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
const percent = (p) => `${(100 * p).toFixed(1)} %`;
const range = ({ lower, upper }) => `${(100 * lower).toFixed(1)} to ${(100 * upper).toFixed(1)}`;
const signed = (p) => `${p < -5e-4 ? '−' : p < 5e-4 ? '±' : '+'}${Math.abs(100 * p).toFixed(1)}`;
const apart = ({ value, lower, upper }) =>
  `${signed(value)} (${signed(Math.max(lower, -1))}, ${signed(Math.min(upper, 1))})`;
const whole = (n) => Math.round(n).toLocaleString('en');
const rounded = (x) => x.toLocaleString('en', { maximumSignificantDigits: 3 });
const day = (x) => new Date(Math.round(x) * 864e5).toISOString().slice(0, 10);
const meanOf = ({ value, lower, upper }, shown) =>
  shown(value) + (lower === undefined ? '' : ` (${shown(lower)} to ${shown(upper)})`);

/** The card of a variable: its rows are made once, and filled with every answer. */
class Card {
  constructor({ name, states, edges, kind, shape }, base, choose) {
    Object.assign(this, { name, states, kind, choose, rows: new Map() }, copied('card-template'));
    this.guess.hidden = !shape?.guess;
    this.list.ariaLabel = visible(name);
    this.list.onkeydown = (event) => this.step(event);
    this.name_box.append(named(name));
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
    const buttons = [...this.list.children].filter((button) => button.offsetParent), now = document.activeElement;
    const next = buttons[Math.min(Math.max(buttons.indexOf(now) + by, 0), buttons.length - 1)];
    for (const button of this.list.children) button.tabIndex = button === next ? 0 : -1;
    next.focus();
    event.preventDefault();
  }

  /** Show the card if its name or a state has a text, with the states that have it; return whether it has. */
  search(wanted) {
    const found = this.words.includes(wanted);
    this.root.hidden = !found;
    if (found && this.rows.size < this.states.length) {
      const states = [...this.states.keys()].filter((s) => this.states[s].toLowerCase().includes(wanted));
      for (const s of states.slice(0, MOST_SHOWN)) this.row(s);
      this.fill(this.last);
    }
    return found;
  }

  /** Move to the card. */
  find() {
    this.root.hidden = false;
    this.root.scrollIntoView({ block: 'center' });
    this.root.animate({ boxShadow: ['0 0 0 3px var(--accent)', 'none'] }, 1200);
    this.root.querySelector('[tabindex="0"]').focus({ preventScroll: true });
  }

  /** Show an answer: states with bounds, the chosen state, the mean, and differences from a pinned question. */
  fill(answer) {
    const { chosen, states, against, means, unmeasured } = answer, given = chosen !== undefined;
    this.last = answer;
    this.distance = states.reduce((sum, { value }, s) => sum + Math.abs(value - against[s].value) / 2, 0);
    this.root.classList.toggle('given', given);
    this.moved.textContent = given ? 'given' : this.distance >= 5e-4 ? `moved ${percent(this.distance)}` : '';
    this.note.hidden = !unmeasured;
    this.mean.hidden = !means.length;
    this.means.textContent = means.map((mean) => meanOf(mean, this.kind === 'date' ? day : rounded)).join(', against ');
    if (given) this.row(chosen);
    for (const [state, row] of this.rows) this.fillRow(state, row);
  }

  fillRow(state, { root, bar, base, whisker, value, bounds }) {
    const { chosen, states, differences, against } = this.last, { value: share, lower, upper } = states[state];
    const never = chosen === undefined && share === 0 && !(upper > 0), name = visible(this.states[state]);
    const known = lower !== undefined, reach = known ? range(states[state]) : '', difference = differences?.[state];
    bar.style.width = css(share);
    base.style.left = css(against[state].value);
    whisker.style = known ? `left: ${css(lower)}; width: ${css(upper - lower)}` : 'display: none';
    value.textContent = percent(share);
    bounds.textContent = difference ? apart(difference) : reach;
    bounds.classList.toggle('apart', difference?.lower * difference?.upper > 0);
    root.ariaPressed = state === chosen;
    root.ariaDisabled = never;
    const told = never ? 'cannot occur' : percent(share) + (reach && `, between ${reach} %`);
    root.ariaLabel = `${visible(this.name)}: ${name}, ${told}`;
    root.title = never ? 'This cannot occur together with what is given.' : this.states[state];
  }
}
