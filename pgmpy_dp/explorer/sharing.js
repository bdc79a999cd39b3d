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
