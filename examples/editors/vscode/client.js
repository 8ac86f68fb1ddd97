// A client of `acpipe serve` with one session, on vscode-jsonrpc. It does not use the `vscode` module: extension.js does.
'use strict';

const { spawn } = require('node:child_process');
const { createMessageConnection, ResponseError, StreamMessageReader, StreamMessageWriter } = require('vscode-jsonrpc/node');

class AcpipeClient {
  #child;
  #connection;
  #exit; // resolves to the exit code of acpipe
  #failed; // rejects when acpipe exits, or cannot open the session
  #lastQuestion = Promise.resolve();

  /**
   * Starts acpipe and opens the session of the directory `cwd`. `onText(text)` receives what the agent writes.
   * `choose(prompt, options, token)` asks the user; it resolves to one of `options`, or to undefined. The token is cancelled
   * when acpipe withdraws the question.
   */
  constructor({ program = 'acpipe', args = [], cwd, onText, choose }) {
    // detached: in a process group of its own, Ctrl-C in a terminal does not reach acpipe. Its log (stderr) is dropped.
    const stdio = ['pipe', 'pipe', 'ignore'];
    this.#child = spawn(program, ['serve', '--permissions', 'ask', ...args], { stdio, detached: true });
    this.#exit = new Promise((resolve) => this.#child.on('close', resolve));
    this.#child.stdin.on('error', () => {}); // 'close' follows
    const { stdout, stdin } = this.#child;
    this.#connection = createMessageConnection(new StreamMessageReader(stdout), new StreamMessageWriter(stdin));
    this.#connection.onNotification('session/chunk', ({ chunk }) => {
      if (chunk.type === 'text-delta') onText(chunk.delta);
      if (chunk.type === 'text-end') onText('\n');
    });
    this.#connection.onRequest('permission/request', (params, token) => {
      // One question at a time: a second quick pick would close the first.
      const answer = this.#lastQuestion.then(() => this.#ask(params, token, choose));
      this.#lastQuestion = answer.catch(() => {});
      return answer;
    });
    this.#connection.listen();
    this.#failed = new Promise((_, reject) => {
      this.#child.on('error', (error) => reject(new Error(`cannot start acpipe: ${error.message}`)));
      this.#exit.then((code) => reject(new Error(`acpipe has exited with code ${code}`)));
      // Such as a line of a wrapper: nothing after it can be read, and no call would end.
      this.#connection.onError(([error]) => reject(new Error(`cannot read the output of acpipe: ${error.message}`)));
      this.#open(cwd).catch(reject);
    });
    this.#failed.catch(() => {}); // prompt() rejects with it
  }

  /** acpipe handles the three calls in order, so that none waits for the one before it. A prompt need not wait either. */
  #open(cwd) {
    return Promise.all([
      this.#send('initialize', { protocolVersion: 1, processId: process.pid, capabilities: { permissions: true } }),
      this.#send('agent/connect'),
      this.#send('session/ensure', { cwd }),
    ]);
  }

  #send(method, params = {}) {
    return this.#connection.sendRequest(method, params);
  }

  async #ask({ toolCall, command, options }, token, choose) {
    const prompt = (toolCall.title ?? toolCall.toolName) + (command ? ` [${command}]` : '');
    const option = token.isCancellationRequested ? undefined : await choose(prompt, options, token);
    // vscode-jsonrpc cancels the token when `$/cancelRequest` arrives. It responds even then; acpipe ignores the error.
    if (token.isCancellationRequested) throw new ResponseError(-32800, 'the request was withdrawn');
    return { outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' } };
  }

  /** Runs a turn and returns undefined, or the reason why the turn did not end normally. */
  async prompt(message) {
    const { errors, stopReason } = await Promise.race([this.#send('session/prompt', { message }), this.#failed]);
    return errors[0]?.message ?? (stopReason === 'end_turn' ? undefined : stopReason);
  }

  /** Cancels the running turn, which then ends with the stop reason `cancelled`. */
  cancel() {
    return this.#send('session/cancel');
  }

  /** Closes stdin of acpipe, which then cancels its turns, stops the agent and exits. Returns its exit code. */
  stop() {
    this.#child.stdin.end();
    return this.#exit;
  }
}

module.exports = { AcpipeClient };
