// A WebSocket of the mock server: text messages, ping, close. No dependencies, no fragments, no extensions.

import { createHash } from 'node:crypto';
import { EventEmitter } from 'node:events';

const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const [TEXT, CLOSE, PING, PONG] = [1, 8, 9, 10];

function frame(opcode, payload) {
  const length = payload.length;
  const head = length < 126 ? Buffer.alloc(2) : length < 65536 ? Buffer.alloc(4) : Buffer.alloc(10);
  head[0] = 0x80 | opcode;
  if (length < 126) head[1] = length;
  else if (length < 65536) {
    head[1] = 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
}

/** Reads one frame of a client; `null` if it is not complete yet. */
function parse(buffer) {
  if (buffer.length < 6) return null;
  let length = buffer[1] & 0x7f;
  let at = 2;
  if (length === 126) {
    length = buffer.readUInt16BE(2);
    at = 4;
  } else if (length === 127) {
    if (buffer.length < 14) return null;
    length = Number(buffer.readBigUInt64BE(2));
    at = 10;
  }
  if (buffer.length < at + 4 + length) return null;
  const mask = buffer.subarray(at, at + 4);
  const payload = Buffer.from(buffer.subarray(at + 4, at + 4 + length));
  for (let index = 0; index < length; index++) payload[index] ^= mask[index % 4];
  return { opcode: buffer[0] & 0x0f, payload, size: at + 4 + length };
}

/** Emits `message` with the text of each message, and `close` once. */
export class WebSocketConnection extends EventEmitter {
  #socket;
  #buffer = Buffer.alloc(0);

  constructor(request, socket, protocol) {
    super();
    this.#socket = socket;
    const accept = createHash('sha1').update(request.headers['sec-websocket-key'] + MAGIC).digest('base64');
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`,
    );
    socket.on('data', (data) => this.#receive(data));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.emit('close'));
  }

  send(text) {
    if (this.#socket.writable) this.#socket.write(frame(TEXT, Buffer.from(text)));
  }

  destroy() {
    this.#socket.destroy();
  }

  #receive(data) {
    this.#buffer = Buffer.concat([this.#buffer, data]);
    for (let next = parse(this.#buffer); next; next = parse(this.#buffer)) {
      this.#buffer = this.#buffer.subarray(next.size);
      if (next.opcode === TEXT) this.emit('message', next.payload.toString());
      else if (next.opcode === PING) this.#socket.write(frame(PONG, next.payload));
      else if (next.opcode === CLOSE) this.#socket.end(frame(CLOSE, next.payload));
    }
  }
}
