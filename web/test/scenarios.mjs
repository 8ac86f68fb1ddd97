// What the agent of the tests does, by the prompt: that of the mock server, and the ACP agent for a real acpipe.

import { inject, randomTexts, sendParts, sendWrongPlan, TEXTS } from './hostile.mjs';

const CODE = `The gate opens in **three** steps:

1. \`connect\` starts the agent.
2. \`prompt\` sends the message.
3. The answer streams.

\`\`\`rust
fn main() {
    println!("1 < 2 && 3 > 2");
}
\`\`\`

`;

const REST = `| step | time |
|-|-:|
| connect | 40 ms |
| prompt | 2 ms |

Tags such as <b onclick="alert(1)">this</b> are text, and so is [this](javascript:alert(1)). See [the docs](https://example.com/docs).
`;

const OPTIONS = [
  { optionId: 'once', name: 'Allow once', kind: 'allow_once' },
  { optionId: 'always', name: 'Always allow `cargo test`', kind: 'allow_always' },
  { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
];

const OLD_FILE = `use std::time::Duration;

/// Limits of a turn.
pub struct Limits {
    pub answer: Duration,
    pub open: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(60),
            open: Duration::from_secs(30),
        }
    }
}
`;
const NEW_FILE = OLD_FILE.replace('answer: Duration::from_secs(60)', 'answer: Duration::from_secs(300)').replace(
  '    pub open: Duration,\n',
  '    pub open: Duration,\n    pub restore: Duration,\n',
);

const TESTS = { toolName: 'bash', title: 'cargo test --lib', kind: 'execute', input: { command: 'cargo test --lib' } };

async function askForTests(turn, extra = {}) {
  turn.tool('call-1', TESTS);
  const { approved, chosen } = await turn.permission('call-1', TESTS, OPTIONS, { command: 'cargo test --lib', ...extra });
  if (approved) turn.toolOutput('call-1', { rawOutput: 'test result: ok. 12 passed' });
  turn.text(`Answer: ${chosen}.`);
}

const scenarios = {
  async 'explain the gate'(turn) {
    turn.setTitle('How the gate opens');
    const text = turn.beginText();
    text.add(CODE);
    await turn.gate('rest of the text');
    text.add(REST);
    text.end();
  },

  async 'think first'(turn) {
    turn.thought('The user asks for a name. **Short** names are better.');
    await turn.gate('after the thought');
    turn.text('I would call it `Link`.');
  },

  async 'change the limits'(turn) {
    const content = [{ type: 'diff', path: 'src/limits.rs', oldText: OLD_FILE, newText: NEW_FILE }];
    turn.tool('call-1', { toolName: 'edit', title: 'Edit src/limits.rs', kind: 'edit', input: { path: 'src/limits.rs' }, content });
    await turn.gate('the edit');
    turn.toolOutput('call-1', { content });
    turn.tool('call-2', { toolName: 'read', title: 'Read src/lib.rs', kind: 'read', input: { path: 'src/lib.rs' } });
    turn.toolOutput('call-2', { content: [{ type: 'content', content: { type: 'text', text: 'pub mod limits;' } }] });
    turn.tool('call-3', { toolName: 'fetch', title: 'Fetch the changelog', kind: 'fetch', input: { url: 'https://example.com' } });
    turn.toolError('call-3', 'connection refused');
    turn.text('The answer has five minutes now.');
  },

  async 'run the tests'(turn) {
    turn.tool('call-1', TESTS);
    const terminal = turn.terminal('call-1', 'term-1', '/home/me/project');
    terminal.write('\u001b[32m   Compiling\u001b[0m acpipe v0.1.0\n');
    await turn.gate('the compiler');
    terminal.write('running 2 tests\ntest lines ... \u001b[32mok\u001b[0m\ntest frames ... \u001b[31mFAILED\u001b[0m\n');
    terminal.exit(101);
    turn.toolOutput('call-1', {});
    turn.text('One test fails.');
  },

  async 'make a plan'(turn) {
    const plan = (...states) =>
      turn.plan(['Read the code', 'Write the test', 'Mend the fault'].map((content, index) => ({ content, priority: 'medium', status: states[index] })));
    plan('in_progress', 'pending', 'pending');
    turn.text('I read the code first.');
    await turn.gate('the plan');
    plan('completed', 'in_progress', 'pending');
    await turn.gate('the end of the plan');
    turn.text('The test is next.');
  },

  'ask me first': (turn) => askForTests(turn),

  /** The mock server has another client answer before the window. */
  'ask another first': (turn) => askForTests(turn, { answeredBefore: { outcome: { outcome: 'selected', optionId: OPTIONS.at(-1).optionId } } }),

  async 'ask me something'(turn) {
    const { action, content } = await turn.question({
      kind: 'form',
      message: 'How shall the store be built?',
      schema: {
        type: 'object',
        properties: {
          name: { type: 'string', title: 'Name', description: 'Of the new module', minLength: 2 },
          database: { type: 'string', title: 'Database', oneOf: [{ const: 'sqlite', title: 'SQLite', description: 'One file' }, { const: 'postgres', title: 'PostgreSQL' }] },
          size: { type: 'integer', title: 'Pool size', minimum: 1, maximum: 64, default: 8 },
          migrate: { type: 'boolean', title: 'Migrate now', default: false },
          tables: { type: 'array', title: 'Tables', items: { anyOf: [{ const: 'users', title: 'Users' }, { const: 'turns', title: 'Turns' }] } },
        },
        required: ['name', 'database'],
      },
    });
    turn.text(`Answer: ${action} ${JSON.stringify(content ?? null)}`);
  },

  async 'plan it with me'(turn) {
    const { action, content } = await turn.question({
      kind: 'plan',
      message: '## The plan\n\n1. Read\n2. Write',
      options: [{ optionId: 'go', name: 'Go ahead', kind: 'allow_once' }, { optionId: 'no', name: 'Keep planning', kind: 'reject_once' }],
    });
    turn.text(`Answer: ${action} ${content.optionId}`);
  },

  async 'count slowly'(turn) {
    const text = turn.beginText();
    text.add('One, two,');
    await turn.gate('never');
    text.add(' three.');
    text.end();
  },

  async 'tell a long story'(turn) {
    turn.text('First part of the story.');
    // A message that is read while a call is open is continued in another way than one of text alone.
    turn.tool('call-1', { toolName: 'read', title: 'Read story.md', kind: 'read', input: { path: 'story.md' } });
    await turn.gate('middle of the story');
    turn.toolOutput('call-1', { rawOutput: 'Once upon a time' });
    const text = turn.beginText();
    text.add('Second part of the story.');
    await turn.gate('end of the story');
    text.add('\n\nThe end.');
    text.end();
  },

  async 'mend the limits'(turn) {
    turn.text('I read the limits first.');
    await turn.gate('the limits are read');
    const content = [{ type: 'diff', path: 'src/limits.rs', oldText: OLD_FILE, newText: NEW_FILE }];
    turn.tool('call-1', { toolName: 'edit', title: 'Edit src/limits.rs', kind: 'edit', input: { path: 'src/limits.rs' }, content });
    turn.toolOutput('call-1', { content });
    turn.tool('call-2', TESTS);
    const { approved } = await turn.permission('call-2', TESTS, OPTIONS, { command: 'cargo test --lib' });
    if (approved) turn.toolOutput('call-2', { rawOutput: 'test result: ok. 12 passed' });
    turn.text(approved ? 'The tests pass.' : 'I did not run the tests.');
  },

  'send huge parts': sendParts,
  'send a wrong plan': sendWrongPlan,
  inject: (turn) => inject(turn, OPTIONS),

  async 'write a book'(turn) {
    const chapter = (number) =>
      `## Chapter ${number}\n\nA **bold** word, \`code\` and [a link](https://example.com/${number}).\n\n` +
      '- one\n  - two\n  - three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n\n> quoted\n\n';
    turn.text(Array.from({ length: 200 }, (_, index) => chapter(index)).join(''));
  },

  async 'ask me with hostile text'(turn) {
    const tool = { ...TESTS, title: TEXTS['one long line'], input: { command: TEXTS['open emphasis'] } };
    turn.tool('call-1', tool);
    await turn.permission('call-1', tool, OPTIONS);
    await turn.question({ kind: 'form', message: TEXTS['deep quote'] + TEXTS['open emphasis'], schema: { type: 'object', properties: {} } });
    turn.text('Both are answered.');
  },

  async fail(turn) {
    turn.text('I begin.');
    throw new Error('The AI service is temporarily unavailable. Please try again in a moment.');
  },
};

/** Scenarios whose prompt has an argument. */
const families = {
  hostile: async (turn, name) => turn.text(`${TEXTS[name]}\n\nEnd of ${name}`),

  async random(turn, seed) {
    for (const text of randomTexts(Number(seed), 12)) turn.text(text);
    turn.thought('next');
    turn.text(`End of ${seed}`);
  },
};

export function scenarioOf(prompt) {
  const [, family, argument] = prompt.match(/^(\w+): (.+)$/) ?? [];
  if (families[family]) return (turn) => families[family](turn, argument);
  return scenarios[prompt] ?? (async (turn) => turn.text(`You wrote: ${prompt}`));
}
