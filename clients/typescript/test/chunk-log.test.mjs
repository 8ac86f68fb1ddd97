// The order of chunks over reconnects, without acpipe.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChunkLog } from '../dist/esm/chunk-log.js';

const entry = (seq, delta = `${seq}`) => ({ seq, turnId: 't', chunk: { type: 'text-delta', id: 'x', delta } });

async function* pages(...numbers) {
  for (const seq of numbers) yield entry(seq);
}

async function deltas(log) {
  log.end();
  const read = [];
  for await (const { chunk } of log.read()) read.push(chunk.delta);
  return read;
}

test('chunks of a repeated turn are added once', async () => {
  const log = new ChunkLog();
  for (const seq of [1, 2, 1, 2, 3, 1, 2, 3, 4]) log.push(entry(seq));
  assert.deepEqual(await deltas(log), ['1', '2', '3', '4']);
});

test('chunks that share a number are all added', async () => {
  const log = new ChunkLog();
  for (const [seq, delta] of [[1, 'a'], [1, 'b'], [3, 'c'], [3, 'd']]) log.push(entry(seq, delta));
  assert.deepEqual(await deltas(log), ['a', 'b', 'c', 'd']);
});

test('live chunks wait for the stored ones before them', async () => {
  const log = new ChunkLog();
  log.push(entry(1));
  log.hold();
  log.push(entry(4));
  const caughtUp = log.catchUp(() => pages(1, 2, 3, 4));
  log.push(entry(5));
  await caughtUp;
  log.push(entry(6));
  assert.deepEqual(await deltas(log), ['1', '2', '3', '4', '5', '6']);
});

test('live chunks do not enter after a failed catch-up', async () => {
  const log = new ChunkLog();
  log.push(entry(1));
  const failing = log.catchUp(async function* () {
    yield entry(2);
    throw new Error('lost');
  });
  log.push(entry(5));
  await assert.rejects(failing, /lost/);
  log.push(entry(6));
  await log.catchUp(() => pages(3, 4, 5, 6));
  assert.deepEqual(await deltas(log), ['1', '2', '3', '4', '5', '6']);
});

test('waiting chunks of a turn that is repeated as a whole are dropped', async () => {
  const log = new ChunkLog();
  log.hold();
  log.push(entry(3));
  await log.catchUp(async function* () {
    log.dropHeld(3);
  });
  for (const seq of [1, 2, 3]) log.push(entry(seq));
  assert.deepEqual(await deltas(log), ['1', '2', '3']);
});

test('reader gets the error after the last chunk', async () => {
  const log = new ChunkLog();
  log.push(entry(1));
  log.end(new Error('failed'));
  log.push(entry(2));
  const reader = log.read();
  assert.equal((await reader.next()).value.seq, 1);
  await assert.rejects(reader.next(), /failed/);
});
