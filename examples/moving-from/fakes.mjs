// Scripted agents for the tests: `fake-agent` and `fake-claude`, built beside acpipe (tests/fake_agent.rs, tests/fake_claude.rs).
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

const found = process.env.PATH.split(delimiter).map((dir) => join(dir, 'acpipe')).find((file) => existsSync(file));
const programs = found && dirname(realpathSync(found));
if (!programs || !existsSync(join(programs, 'fake-agent'))) {
  throw new Error(
    'no acpipe with fake-agent beside it in PATH: run cargo build --bins --features fake-agent, and prepend target/debug to PATH',
  );
}

/** Step of the ACP agent: text of its answer. */
export const say = (text) => ({ update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } });

/** Step of the ACP agent: an update of a tool call. */
export const tool = (kind, toolCallId, fields) => ({ update: { sessionUpdate: kind, toolCallId, ...fields } });

export const END = { reply: { stopReason: 'end_turn' } };

export const message = (text, id = `user-${Math.random()}`) => ({ id, role: 'user', parts: [{ type: 'text', text }] });

/** The text of a message's parts. */
export const textOf = (message) => message.parts.filter(({ type }) => type === 'text').map(({ text }) => text).join('');

const directories = [];
// At the exit, after every acpipe of the tests has exited: a running one may still write there.
process.on('exit', () => directories.forEach((dir) => rmSync(dir, { recursive: true, force: true })));

/** A state directory and a home for one test. */
export class World {
  #files = 0;

  constructor() {
    this.dir = realpathSync(mkdtempSync(join(tmpdir(), 'moving-')));
    directories.push(this.dir);
    this.cwd = join(this.dir, 'project');
    mkdirSync(this.cwd);
    const inside = { ACPIPE_STATE_DIR: 'state', XDG_CONFIG_HOME: 'config', CLAUDE_CONFIG_DIR: 'claude', FAKE_AGENT_LOG: 'agent.log' };
    for (const [name, value] of Object.entries(inside)) process.env[name] = join(this.dir, value);
    process.env.ACPIPE_NO_PATH_PROBE = '1';
    process.env.CLAUDE_CLI_PATH = join(programs, 'fake-claude');
    delete process.env.FAKE_CLAUDE;
  }

  /** Makes Claude Code follow a script. A prompt that is a JSON list has the steps of its turn. */
  claude(script) {
    process.env.FAKE_CLAUDE = this.file(script);
  }

  /** The command of an ACP agent with this script. */
  agent(script = {}) {
    return { command: join(programs, 'fake-agent'), args: [this.file(script)] };
  }

  file(content) {
    const path = this.mark();
    writeFileSync(path, JSON.stringify(content));
    return path;
  }

  /** The path of a file that does not exist, for `once` steps. */
  mark() {
    return join(this.dir, `file-${(this.#files += 1)}`);
  }

  /** What the agents received. */
  log() {
    const path = join(this.dir, 'agent.log');
    if (!existsSync(path)) return [];
    return readFileSync(path, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }

  /** The start records of Claude Code's sessions so far. */
  processes() {
    return this.log().filter(({ argv }) => argv?.length > 1);
  }
}
