// A client module for `acpipe serve`: calls, notifications, and requests from acpipe. Node 20+, no dependencies.
//
//   const acpipe = new Acpipe(['--permissions', 'ask']);
//   acpipe.on('session/chunk', ({ sessionId, turnId, seq, chunk }) => …);
//   acpipe.on('permission/request', (params, id) => acpipe.answer(id, { outcome: { outcome: 'cancelled' } }));
//   await acpipe.call('initialize', { protocolVersion: 1, capabilities: { permissions: true } });
import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';

export class Acpipe extends EventEmitter {
  #calls = new Map(); // id of a call → its promise
  #lastId = 0;
  #rest = '';

  /** Starts `acpipe serve` with these arguments. acpipe exits when this process exits, because its stdin closes. */
  constructor(args = []) {
    super();
    // A process group of its own (detached): Ctrl-C in a terminal reaches this process only.
    this.child = spawn('acpipe', ['serve', ...args], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
    this.child.on('error', (error) => this.#end(error)).on('close', () => this.#end(new Error('acpipe has exited')));
    this.child.stdin.on('error', () => {}); // 'close' follows
    this.child.stdout.setEncoding('utf8').on('data', (text) => {
      // Not node:readline, which also splits at U+2028 since Node 24: JSON may contain it.
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop();
      for (const line of lines) {
        // Such as a line of a wrapper, or a message that a listener cannot use: the next ones are read.
        try {
          this.#receive(JSON.parse(line));
        } catch (error) {
          console.error(`cannot use a line of acpipe: ${error.message}: ${JSON.stringify(line.slice(0, 200))}`);
        }
      }
    });
  }

  /** Calls a method. Calls may overlap. An error has a `kind` (docs/reference/errors.md). */
  call(method, params = {}) {
    return new Promise((resolve, reject) => {
      this.#calls.set(++this.#lastId, { resolve, reject });
      this.#send({ id: this.#lastId, method, params });
    });
  }

  /** Responds to a request from acpipe. */
  answer(id, result) {
    this.#send({ id, result });
  }

  #send(message) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  #receive({ id, method, params, result, error }) {
    if (method) return void this.emit(method, params, id);
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error) call?.reject(Object.assign(new Error(error.message), error.data));
    else call?.resolve(result);
  }

  #end(error) {
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
    this.emit('end', error);
  }
}
