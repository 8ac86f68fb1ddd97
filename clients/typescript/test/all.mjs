#!/usr/bin/env node
// Runs all tests, and fails if a process of them is left. On other systems than Linux that is not checked.
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const files = readdirSync(here).filter((name) => name.endsWith('.test.mjs')).map((name) => here + name);
// Node 20 has the WebSocket behind this option; newer versions accept it.
const options = ['--experimental-websocket', '--disable-warning=ExperimentalWarning', '--test', '--test-concurrency=2', '--test-timeout=60000'];
const mark = `ACPIPE_TS_TEST=${randomUUID()}`;
const env = { ...process.env, [mark.split('=')[0]]: mark.split('=')[1] };
const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: 'inherit', env });
if (!existsSync('/proc/self/environ')) {
  console.log('SKIPPED: whether processes are left, since this system has no /proc');
  process.exit(status ?? 1);
}
const left = readdirSync('/proc').filter((pid) => {
  try {
    return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark);
  } catch {
    return false; // it has exited, or is of another user
  }
});
for (const pid of left) {
  console.error(`left: ${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`);
  process.kill(Number(pid), 'SIGKILL');
}
process.exit(left.length > 0 ? 1 : (status ?? 1));
