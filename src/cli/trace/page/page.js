'use strict';

// Text of clients and agents is untrusted: it reaches the page as textContent only.

const KINDS = ['request', 'response', 'notification', 'error', 'event'];
const ROW = 24; // px, as --row in the style
const MARGIN = 10; // rows drawn above and below the visible part
const LONG_GAP = 1000; // ms
const MOST_SHOWN = 200000; // characters of a frame or of folded text
const FIRST_ROWS = 'first-rows'; // performance mark that tests read

const at = id => document.getElementById(id);
const json = id => JSON.parse(at(id).textContent);

const about = json('about');
const rows = json('rows').map(
  ([t, side, dir, kind, title, detail, session, pair, took, fold, agent]) =>
    ({ t, side, dir, kind, title, detail, session, pair, took, fold, agent }),
);
const frames = at('frames').textContent.split('\n');
const list = at('list');

let session = null;
let query = '';
const kinds = new Set(KINDS);
const open = new Set(); // folds
let visible = []; // entries: n is row n, ~n is fold n
let chosen = 0; // index into visible
let haystack = null; // frames in lower case, made at the first search

// --- the entries that are shown

const rowOf = entry => rows[entry < 0 ? about.folds[~entry].first : entry];
const foldOf = entry => (entry < 0 ? about.folds[~entry] : null);

function refresh() {
  const kept = visible[chosen];
  const found = query === '' ? null : search(query);
  visible = [];
  rows.forEach((row, n) => {
    if (!kinds.has(row.kind) || (session !== null && row.session !== session)) return;
    if (found) {
      if (found(n)) visible.push(n);
      return;
    }
    if (row.fold === null) return visible.push(n);
    if (about.folds[row.fold].first === n) visible.push(~row.fold);
    if (open.has(row.fold)) visible.push(n);
  });
  const same = kept === undefined ? -1 : visible.indexOf(kept);
  const parent = kept >= 0 && same < 0 && rows[kept].fold !== null ? visible.indexOf(~rows[kept].fold) : same;
  at('space').style.height = `${visible.length * ROW}px`;
  list.setAttribute('aria-rowcount', visible.length);
  const isFiltered = found || session !== null || kinds.size < KINDS.length;
  const total = `${rows.length.toLocaleString('en')} frames`;
  at('count').textContent = isFiltered ? `${visible.length.toLocaleString('en')} rows of ${total}` : total;
  choose(Math.max(parent, 0));
}

// Returns a test for rows whose frame or label has the text.
function search(text) {
  haystack ??= frames.map(readable);
  const plain = text.toLowerCase();
  const inJson = JSON.stringify(plain).slice(1, -1);
  return n => haystack[n].includes(inJson) || `${rows[n].title} ${rows[n].detail}`.toLowerCase().includes(plain);
}

// Frames may spell characters as \u00e9; quotes and control characters stay escaped, as JSON.stringify has them.
function readable(frame) {
  const text = frame.includes('\\u')
    ? frame.replace(/\\(?:u([0-9a-f]{4})|.)/gi, (whole, hex) => {
        const code = hex ? parseInt(hex, 16) : 0;
        return code < 32 || code === 34 || code === 92 ? whole : String.fromCharCode(code);
      })
    : frame;
  return text.toLowerCase();
}

// --- drawing

function element(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

const seconds = ms => (ms / 1000).toFixed(3);
const duration = ms => (ms === null ? '' : ms < 1000 ? `${ms} ms` : `${seconds(ms)} s`);

function draw() {
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - MARGIN);
  const end = Math.min(visible.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + MARGIN);
  const drawn = [at('space')];
  for (let n = first; n < end; n++) drawn.push(drawRow(n));
  list.replaceChildren(...drawn);
}

function drawRow(n) {
  const entry = visible[n];
  const [row, fold] = [rowOf(entry), foldOf(entry)];
  const before = n === 0 ? null : timeAfter(visible[n - 1]);
  const gap = row.t === null || before === null ? 0 : row.t - before;
  const line = element('div', 'row');
  line.id = `row-${n}`;
  line.dataset.n = n;
  line.style.top = `${n * ROW}px`;
  line.setAttribute('role', 'row');
  line.setAttribute('aria-rowindex', n + 1);
  line.setAttribute('aria-selected', n === chosen);
  if (fold) line.setAttribute('aria-expanded', open.has(~entry));
  if (!fold && row.fold !== null && query === '') line.classList.add('member');
  const partner = rowOf(visible[chosen]).pair;
  if (partner !== null && entry === partner) line.classList.add('partner');
  const cells = [
    element('span', 'time', row.t === null ? '' : seconds(row.t)),
    element('span', gap >= LONG_GAP ? 'gap long' : 'gap', gap > 0 ? `+${seconds(gap)}` : ''),
    lanes(row),
    text(entry, row, fold),
    isUnanswered(row) ? element('span', 'took missing', 'no response') : element('span', 'took', duration(row.took)),
  ];
  cells.forEach(cell => cell.setAttribute('role', 'gridcell'));
  line.append(...cells);
  return line;
}

const isUnanswered = row => row.kind === 'request' && row.pair === null;
const timeAfter = entry => {
  const fold = foldOf(entry);
  return fold && !open.has(~entry) ? rows[fold.last].t : rowOf(entry).t;
};

// From and to, for readers of the screen and the panel.
function ends(row) {
  if (row.dir === null) return `event: ${row.side}`;
  return row.dir === 'in' ? `${row.side} → acpipe` : `acpipe → ${row.side}`;
}

function lanes(row) {
  const cell = element('span', 'lanes');
  const toRight = (row.side === 'client') === (row.dir === 'in');
  const mark = row.dir === null ? `dot ${row.side}` : `arrow ${row.side} ${toRight ? 'right' : 'left'}`;
  cell.append(element('span', `${mark} ${row.kind}`));
  cell.setAttribute('aria-label', `${row.kind}, ${ends(row)}`);
  return cell;
}

function text(entry, row, fold) {
  const cell = element('span', 'text');
  if (fold) cell.append(element('span', 'fold', open.has(~entry) ? '▾' : '▸'));
  cell.append(element('span', `title ${row.kind}`, heading(row)));
  const detail = fold ? `${fold.count.toLocaleString('en')} updates ${fold.text.slice(0, 300)}` : row.detail;
  cell.append(element('span', 'detail', detail));
  return cell;
}

function heading(row) {
  const isResponse = row.pair !== null && row.kind !== 'request';
  return isResponse ? `${row.title} ${row.kind === 'error' ? '✕ failed' : '✓'}` : row.title;
}

// --- the panel with the chosen row

function showPanel() {
  const panel = at('panel');
  panel.replaceChildren();
  const entry = visible[chosen];
  if (entry === undefined) return panel.append(element('p', '', 'No frames match.'));
  const [row, fold] = [rowOf(entry), foldOf(entry)];
  panel.append(element('h2', row.kind, heading(row)));
  const facts = element('dl');
  const fact = (name, value) => {
    if (value) facts.append(element('dt', '', name), element('dd', '', value));
  };
  fact('kind', fold ? `${fold.count} updates` : row.kind);
  fact('time', row.t === null ? '' : `${seconds(row.t)} s${fold ? ` to ${seconds(rows[fold.last].t)} s` : ''}`);
  fact('path', ends(row));
  fact('agent', row.agent);
  fact('session', row.session === null ? '' : about.sessions[row.session]);
  fact('took', isUnanswered(row) ? 'no response in the recording' : duration(row.took));
  panel.append(facts);
  if (row.pair !== null && !fold) panel.append(button(`Show the ${row.kind === 'request' ? 'response' : 'request'}`, jump));
  if (fold) panel.append(button(open.has(~entry) ? 'Fold' : 'Show each update', () => toggle(~entry)));
  panel.append(element('pre', '', shortened(fold ? fold.text : pretty(frames[entry]))));
}

function button(label, press) {
  const made = element('button', '', label);
  made.addEventListener('click', press);
  return made;
}

function pretty(frame) {
  try {
    return JSON.stringify(JSON.parse(frame), null, 2);
  } catch {
    // A frame nested too deeply for the browser is shown as it is.
    return frame;
  }
}

function shortened(text) {
  const missing = text.length - MOST_SHOWN;
  return missing > 0 ? `${text.slice(0, MOST_SHOWN)}\n… ${missing.toLocaleString('en')} more characters` : text;
}

// --- actions

function choose(n) {
  chosen = Math.min(Math.max(n, 0), Math.max(visible.length - 1, 0));
  const top = chosen * ROW;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
  list.setAttribute('aria-activedescendant', `row-${chosen}`);
  draw();
  showPanel();
}

function toggle(fold) {
  if (!open.delete(fold)) open.add(fold);
  refresh();
}

function toggleChosen() {
  const entry = visible[chosen];
  if (entry === undefined || query !== '') return;
  if (entry < 0) toggle(~entry);
  else if (rows[entry].fold !== null) toggle(rows[entry].fold);
}

// Goes to the other row of a pair, and removes filters that hide it.
function jump() {
  const entry = visible[chosen];
  const partner = entry === undefined || entry < 0 ? null : rows[entry].pair;
  if (partner === null) return;
  if (!visible.includes(partner)) clear();
  choose(visible.indexOf(partner));
}

function clear() {
  query = at('search').value = '';
  session = null;
  at('session').value = '';
  KINDS.forEach(kind => kinds.add(kind));
  for (const each of at('kinds').children) each.setAttribute('aria-pressed', 'true');
  refresh();
}

const page = () => Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
const KEYS = {
  j: () => choose(chosen + 1),
  ArrowDown: () => choose(chosen + 1),
  k: () => choose(chosen - 1),
  ArrowUp: () => choose(chosen - 1),
  PageDown: () => choose(chosen + page()),
  PageUp: () => choose(chosen - page()),
  g: () => choose(0),
  Home: () => choose(0),
  G: () => choose(visible.length - 1),
  End: () => choose(visible.length - 1),
  Enter: toggleChosen,
  p: jump,
  '/': () => at('search').select(),
  Escape: clear,
};

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inField = ['INPUT', 'SELECT', 'BUTTON'].includes(event.target.tagName);
  if (inField && event.key !== 'Escape') {
    if (event.target === at('search') && event.key === 'Enter') list.focus();
    return;
  }
  // The panel scrolls with its own keys.
  if (event.target === at('panel') && event.key.length > 1 && event.key !== 'Escape') return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
  if (event.key === 'Escape') list.focus();
});

list.addEventListener('scroll', () => requestAnimationFrame(draw), { passive: true });
list.addEventListener('click', event => {
  const line = event.target.closest('.row');
  if (!line) return;
  const n = Number(line.dataset.n);
  choose(n);
  if (event.target.classList.contains('fold')) toggleChosen();
});
list.addEventListener('dblclick', toggleChosen);
addEventListener('resize', draw);

let typing;
at('search').addEventListener('input', event => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    query = event.target.value.trim();
    refresh();
  }, 120);
});
at('session').addEventListener('change', event => {
  session = event.target.value === '' ? null : Number(event.target.value);
  refresh();
});

// --- start

function start() {
  document.title = `${about.name} · acpipe trace`;
  at('name').textContent = about.name;
  const facts = about.facts.map(([name, value]) => `${name} ${value}`);
  const last = rows.findLast(row => row.t !== null);
  if (last) facts.push(`length ${seconds(last.t)} s`);
  const errors = rows.filter(row => row.kind === 'error').length;
  if (errors) facts.push(`errors ${errors}`);
  const unanswered = rows.filter(isUnanswered).length;
  if (unanswered) facts.push(`without response ${unanswered}`);
  if (about.unreadable) facts.push(`unreadable lines ${about.unreadable}`);
  at('facts').textContent = facts.join(' · ');
  const option = (value, label) => Object.assign(element('option', '', label), { value });
  at('session').append(option('', 'All sessions'), ...about.sessions.map((id, n) => option(n, id)));
  at('session').hidden = about.sessions.length < 2;
  for (const kind of KINDS) {
    const toggleKind = button(kind, () => {
      if (!kinds.delete(kind)) kinds.add(kind);
      toggleKind.setAttribute('aria-pressed', kinds.has(kind));
      refresh();
    });
    toggleKind.className = kind;
    toggleKind.setAttribute('aria-pressed', 'true');
    at('kinds').append(toggleKind);
  }
  refresh();
  list.focus();
  performance.mark(FIRST_ROWS);
}

start();
