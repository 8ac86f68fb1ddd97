// What an agent may send to stall or to blank the page.

const many = (text, times) => text.repeat(times);
const numbered = (count, line) => Array.from({ length: count }, (_, index) => line(index)).join('\n');

/** Markdown that is deep, or that takes a parser the square of its size. */
export const TEXTS = {
  'deep quote': many('>', 2_000),
  'deeper quote': many('> ', 20_000),
  'open emphasis': many('*a _b ', 20_000),
  'deep list': numbered(3_000, (index) => `${many('  ', index)}- item ${index}`),
  'list in a line': many('- ', 20_000),
  'quotes and lists': many('> - ', 5_000),
  'open brackets': many('[', 50_000),
  'nested links': many('[a](', 20_000),
  'open images': many('![a](b ', 20_000),
  'growing ticks': numbered(500, (index) => `${many('`', index + 1)}a`).replaceAll('\n', ' '),
  'open cdata': many('<![CDATA[', 20_000),
  'open tags': many('<a b="', 20_000),
  'open strikes': many('~a ~~b ', 20_000),
  'long word before @': `${many('a', 100_000)}@`,
  'blanks in a line': `a${many(' ', 100_000)}b`,
  'wide table': `|${many('a|', 2_000)}\n|${many('-|', 2_000)}\n${many(`|${many('a|', 20)}\n`, 5_000)}`,
  'lazy quotes': many('> a\nb\n', 5_000),
  'lazy lists': many('> - a\nb\n', 3_000),
  'lines in a list': `- ${many('a\n  ', 30_000)}`,
  'many breaks': many('a\n', 50_000),
  'many blocks': many('# a\n', 50_000),
  'many elements': many('*a* ', 50_000),
  'one long line': many('word ', 400_000),
};

const PIECES = [
  ...['>', '> ', '- ', '* ', '1. ', '  ', '    ', '\t', '\n', '\n\n', '#', '# ', '---', '===', '***', '|', '|-', ':', '```', '~~~', '`', '``'],
  ...['*', '**', '_', '__', '~', '~~', '[', ']', '](', '(', ')', '![', '<', '</', '>', '<!--', '-->', '<![CDATA[', '<?', '<a b="', '<div>', '&', '&amp;'],
  ...['\\', '@', 'http://', 'www.', 'a@b.', '[ ] ', '[a]: ', '"', "'", 'a', 'word ', '1', '\u200b', '\ud83d\ude00', '\ud83d', '\u0000', '\u202e', 'e\u0301', ' '],
];

/** Random texts with this seed: pieces of Markdown, and repeated phrases of them. */
export function randomTexts(seed, count) {
  let state = (seed + 1) * 0x9e3779b1;
  const next = (below) => {
    // xorshift32
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
  const phrase = () => Array.from({ length: 1 + next(6) }, () => PIECES[next(PIECES.length)]).join('');
  const run = () => many(phrase(), 2 ** next(13));
  return Array.from({ length: count }, () => Array.from({ length: 1 + next(4) }, run).join('').slice(0, 60_000));
}

const lines = (count) => numbered(count, (index) => `line ${index}`);

/** Parts that are huge, or that have another type than their views expect. */
export async function sendParts(turn) {
  const long = many('x', 2_000_000);
  turn.tool('call-1', { toolName: 'read', title: `Title ${many('t', 200_000)}`, kind: 'read', input: { long, list: Array(20_000).fill(1) } });
  turn.toolOutput('call-1', { content: [{ type: 'content', content: { type: 'text', text: long } }] });
  const content = [{ type: 'diff', path: 'a', oldText: lines(20_000), newText: lines(20_000).replaceAll('1', '2') }];
  turn.tool('call-2', { toolName: 'edit', title: 'Huge change', kind: 'edit', input: {}, content });
  turn.toolOutput('call-2', { content });
  turn.tool('call-3', { toolName: 'execute', title: 'Huge output', kind: 'execute', input: {} });
  const terminal = turn.terminal('call-3', 'term-1', '/');
  terminal.write(`${many('\u001b[31m#', 100_000)}\n${lines(50_000)}\nlast line`);
  terminal.exit(0);
  turn.toolOutput('call-3', {});
  turn.plan(Array.from({ length: 5_000 }, (_, index) => ({ content: `entry ${index}`, priority: 'medium', status: 'pending' })));
  turn.text('All parts were sent.');
}

const HTML = '<script>window.injected=1</script><img src=x onerror="window.injected=1"><b onclick="window.injected=1" style="color:red">b</b>';
const SVG = btoa('<svg xmlns="http://www.w3.org/2000/svg" onload="window.injected=1"><script>window.injected=1</script></svg>');

/** HTML, scripts and addresses in every place that shows text of agents. */
export async function inject(turn, options) {
  turn.text(
    `${HTML}\n\n<div>${HTML}</div>\n\n<iframe src="https://example.com"></iframe>\n\n` +
      '[a](javascript:window.injected=1) [b](data:text/html,x) [c](/api/chat) [d](&#106;avascript:window.injected=1)\n\n' +
      '![e](https://example.com/x.png) ![f](javascript:x) <https://example.com/> <javascript:x> [g](mailto:a@example.com)\n\n' +
      `| ${HTML} |\n|-|\n| ${HTML} |\n\n\`\`\`${HTML}\n${HTML}\n\`\`\`\n\n[h]: javascript:x\n\n[h]`,
  );
  turn.thought(HTML);
  turn.setTitle(HTML);
  const content = [
    { type: 'content', content: { type: 'text', text: HTML } },
    { type: 'content', content: { type: 'image', mimeType: 'image/svg+xml', data: SVG } },
    { type: 'diff', path: HTML, oldText: HTML, newText: `${HTML}${HTML}` },
  ];
  const tool = { toolName: 'edit', title: HTML, kind: 'edit', input: { html: HTML }, content };
  turn.tool('call-1', tool);
  await turn.permission('call-1', tool, options, { command: HTML });
  turn.tool('call-2', tool);
  turn.toolOutput('call-2', { content });
  const terminal = turn.terminal('call-2', 'term-1', '/');
  terminal.write(HTML);
  terminal.exit(0);
  turn.plan([{ content: HTML, priority: 'medium', status: 'pending' }]);
  turn.text('All of it was sent.');
}

/** A plan whose entries are no text. */
export async function sendWrongPlan(turn) {
  turn.text('Before the plan.');
  turn.plan([{ content: { text: { deep: [] } }, priority: 'medium', status: 'pending' }]);
  turn.text('Behind the plan.');
}
