// Programs in place of acpipe, which write what clients/bad-peers.json lists. The tests of the Python package read it, too.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { start } from 'acpipe';
import { atEnd, World } from './support.mjs';

export const CASES = JSON.parse(readFileSync(new URL('../../bad-peers.json', import.meta.url), 'utf8'));

/** The bytes that the pieces of a case describe. */
export function bytesOf(pieces) {
  return Buffer.concat(pieces.map((piece) => {
    if (typeof piece === 'string') return Buffer.from(piece);
    return 'base64' in piece ? Buffer.from(piece.base64, 'base64') : Buffer.alloc(piece.repeat.length * piece.times, piece.repeat);
  }));
}

/** A message as a line. A piece with `repeat` in it is replaced by its text. */
export const message = (fields) =>
  JSON.stringify(fields, (_name, value) => (typeof value?.repeat === 'string' ? value.repeat.repeat(value.times) : value)) + '\n';

/** A script of the shell, which reads lines of the client and writes files. It answers `initialize` first. */
export class Peer {
  #lines = ['#!/bin/sh'];
  #files = 0;

  constructor() {
    this.dir = new World().dir;
    this.read().answer(1, 'initialize');
    atEnd(() => existsSync(join(this.dir, 'holder')) && process.kill(Number(readFileSync(join(this.dir, 'holder'))), 'SIGKILL'));
  }

  /** Reads a line. */
  read() {
    return this.#add(`IFS= read -r line; printf '%s\\n' "$line" >>'${this.dir}/received'`);
  }

  /** Writes bytes to stdout, or to another descriptor. */
  write(bytes, to = 1) {
    const file = join(this.dir, String((this.#files += 1)));
    writeFileSync(file, bytes);
    return this.#add(`cat '${file}' >&${to}`);
  }

  /** Writes a valid response. */
  answer(id, method) {
    return this.write(message({ id, result: CASES.results[method] }));
  }

  /** Does a step of a case. */
  do(step) {
    for (const [name, value] of Object.entries(step)) {
      if (name === 'write') this.write(bytesOf(value));
      else if (name === 'writeStderr') this.write(bytesOf(value), 2);
      else {
        const holder = `sleep 60 & echo $! >'${this.dir}/holder'`;
        this.#add({ exit: `exit ${value}`, holdPipes: holder, closeStdout: 'exec >&-', stay: 'exec sleep 60', signal: `kill -${value} $$` }[name]);
      }
    }
    return this;
  }

  /** Opens a session, plays a turn of it, and answers another call. */
  turn(chunks, summary) {
    this.read().answer(2, 'session/ensure').read();
    const lines = chunks.map((chunk, index) => message({ method: 'session/chunk', params: { sessionId: 's', turnId: 't', seq: index + 1, chunk } }));
    return this.write(lines.join('') + message({ id: 3, result: summary })).read().answer(4, 'agent/list');
  }

  /** Starts a client of the script, which then reads until its stdin ends. */
  async start(options = {}) {
    const binary = join(this.dir, 'peer');
    writeFileSync(binary, [...this.#lines, 'exec cat >/dev/null', ''].join('\n'), { mode: 0o755 });
    const client = await start({ binary, ...options });
    atEnd(() => client.close());
    return client;
  }

  /** The messages that the script has read. */
  received() {
    return readFileSync(join(this.dir, 'received'), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }

  #add(line) {
    this.#lines.push(line);
    return this;
  }
}
