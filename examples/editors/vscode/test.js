// Tests of client.js, and of extension.js with a stand-in for the `vscode` module, against the scripted agent of ../agent.json.
// ../check.sh sets the environment. The tests of the client share one acpipe, so that their order matters.
'use strict';

const assert = require('node:assert/strict');
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { before, test } = require('node:test');
const { AcpipeClient } = require('./client');

const { TAPE, FAKE_AGENT, AGENT_SCRIPT } = process.env;
const AGENT = ['--', FAKE_AGENT, AGENT_SCRIPT];
const GREETING = `Hello, wörld 🙂\nsecond line\n${Array.from({ length: 1000 }, (_, i) => `line ${i}\n`).join('')}`;
const QUESTIONS = ['Run cargo test [cargo test]', 'Edit main.rs', 'Read main.rs'];
const limit = { timeout: 20_000 };

let client;
let text = '';
let onText = () => {};
let choose; // set by each test
const noQuestion = () => assert.fail('no question was expected');

before(() => {
  client = new AcpipeClient({
    args: ['--record', TAPE, ...AGENT],
    cwd: process.cwd(),
    onText: (delta) => {
      text += delta;
      onText();
    },
    choose: (...args) => choose(...args),
  });
});

/** The answers of the client to permission requests, from the tape that acpipe writes. */
function answers() {
  const records = readFileSync(TAPE, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  const sent = records.filter(({ side, dir, frame }) => side === 'client' && dir === 'in' && frame.result);
  return sent.map(({ frame }) => frame.result.outcome);
}

test('text streams and questions are asked one after the other', limit, async () => {
  const prompts = [];
  let open = 0;
  choose = async (prompt, options) => {
    open += 1;
    assert.equal(open, 1);
    prompts.push(prompt);
    // While the first question is open, the second one arrives.
    if (prompts.length === 1) await new Promise((resolve) => (onText = () => text.includes('asked twice') && resolve()));
    open -= 1;
    return options[prompts.length === 1 ? 1 : 0];
  };
  assert.equal(await client.prompt('hello'), undefined);
  assert.equal(text, `${GREETING}\nasked twice\n\n`);
  assert.deepEqual(prompts, QUESTIONS);
});

test('a cancelled turn withdraws its question', limit, async () => {
  let answer;
  choose = (_, options, token) => {
    client.cancel();
    answer = new Promise((resolve) => token.onCancellationRequested(() => resolve(options[0])));
    return answer; // too late: the next test but one finds no answer
  };
  text = '';
  assert.equal(await client.prompt('delete it'), 'cancelled');
  assert.equal(text, 'working\n');
  await answer; // the token was cancelled
});

test('an error of the agent is the reason of the end', limit, async () => {
  choose = noQuestion;
  assert.match(await client.prompt('what now?'), /the model is down/);
});

test('acpipe exits when it is stopped, with one answer for each open question', limit, async () => {
  assert.equal(await client.stop(), 0);
  assert.deepEqual(answers(), ['no', 'yes', 'yes'].map((optionId) => ({ outcome: 'selected', optionId })));
  await assert.rejects(client.prompt('too late'));
});

test('a start that fails says why', limit, async () => {
  const options = { cwd: process.cwd(), onText: noQuestion, choose: noQuestion };
  const withoutAgent = new AcpipeClient({ ...options, args: ['--', '/nonexistent/agent'] });
  await assert.rejects(withoutAgent.prompt('hello'), /\/nonexistent\/agent/);
  assert.equal(await withoutAgent.stop(), 0);
  const nowhere = new AcpipeClient({ ...options, args: AGENT, cwd: 'not/absolute' });
  await assert.rejects(nowhere.prompt('hello'), /cwd/);
  assert.equal(await nowhere.stop(), 0);
  const missing = new AcpipeClient({ ...options, program: '/nonexistent/acpipe' });
  await assert.rejects(missing.prompt('hello'), /cannot start acpipe: .*\/nonexistent\/acpipe/);
  await missing.stop();
});

test('a line of a wrapper is the reason why a start fails', limit, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acpipe-vscode-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = join(folder, 'wrapper');
  writeFileSync(program, '#!/bin/sh\necho Now using node\nexec acpipe "$@"\n', { mode: 0o755 });
  const wrapped = new AcpipeClient({ program, args: AGENT, cwd: process.cwd(), onText: noQuestion, choose: noQuestion });
  await assert.rejects(wrapped.prompt('hello'), /cannot read the output of acpipe/);
  assert.equal(await wrapped.stop(), 0);
});

test('the extension shows a conversation in its output channel', limit, async (t) => {
  const { contributes } = JSON.parse(readFileSync(join(__dirname, 'package.json'), 'utf8'));
  const folder = mkdtempSync(join(tmpdir(), 'acpipe-vscode-'));
  const settings = { program: 'acpipe', args: AGENT };
  const commands = {};
  const errors = [];
  let shown = '';
  const vscode = {
    workspace: {
      workspaceFolders: [{ uri: { fsPath: folder } }],
      getConfiguration: (section) => ({
        get: (name) => (assert.ok(contributes.configuration.properties[`${section}.${name}`], name), settings[name]),
      }),
    },
    window: {
      createOutputChannel: () => ({ append: (more) => (shown += more), show: () => {} }),
      showInputBox: async () => 'hello',
      showQuickPick: async (items) => items.find(({ label }) => label === 'Allow'),
      showErrorMessage: (message) => errors.push(message),
    },
    commands: { registerCommand: (name, run) => (commands[name] = run) },
  };
  const load = Module._load;
  t.mock.method(Module, '_load', (name, ...rest) => (name === 'vscode' ? vscode : load(name, ...rest)));
  const { activate, deactivate } = require('./extension');
  activate({ subscriptions: [] });
  t.after(deactivate);
  t.after(() => rmSync(folder, { recursive: true }));

  assert.deepEqual(Object.keys(commands), contributes.commands.map(({ command }) => command));
  await Promise.all([commands['acpipe.prompt'](), commands['acpipe.prompt']()]);
  assert.ok(shown.startsWith(`\n> hello\n\n${GREETING}`), shown);
  assert.equal(errors.length, 1, 'the second prompt is refused');
  assert.match(errors[0], /a turn is running/i);

  await commands['acpipe.stop']();
  settings.args = ['--', '/nonexistent/agent'];
  shown = '';
  await commands['acpipe.prompt']();
  assert.match(shown, /^\n> hello\n\n\n\[.*\/nonexistent\/agent.*\]\n$/);
  settings.args = AGENT;
  shown = '';
  await commands['acpipe.prompt']();
  assert.ok(shown.includes(GREETING), shown);
});
