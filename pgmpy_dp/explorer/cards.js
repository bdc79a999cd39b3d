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
const day = (x) => new Date(Math.round(x) * 864e5).toISOString().slice(0, 10);

/** The card of a variable: its rows are made once, and filled with every answer. */
class Card {
  constructor({ name, states, edges, kind, shape }, base, choose) {
    Object.assign(this, { name, states, shown: kind === 'date' ? day : rounded }, copied('card-template'));
    this.guess.textContent = shape?.guess ? ` The release hardly tells it: ${shape.guess}.` : '';
    this.list.ariaLabel = visible(name);
    this.list.onkeydown = (event) => this.step(event);
    this.name_box.append(named(name));
    const order = [...states.keys()];
    if (!edges) order.sort((a, b) => base[b].value - base[a].value);
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
    const told = never ? 'cannot occur' : percent(share) + (reach && `, between ${reach} %`);
    root.ariaLabel = `${visible(this.name)}: ${visible(this.states[state])}, ${told}`;
  }
}
