#!/usr/bin/env node
// The command `acpipe` of this package: runs the program of the platform's package.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { findBinary } from '../dist/esm/binary.js';

let program;
try {
  program = findBinary();
} catch (error) {
  console.error(error.message);
  process.exit(127);
}
// A terminal sends Ctrl-C and its end to the program as well, and a second signal would shorten its shutdown.
const ofTerminal = [0, 1, 2].some((fd) => isatty(fd)) ? ['SIGINT', 'SIGQUIT', 'SIGHUP'] : [];
// Before the start: from then on, no signal ends this process alone.
for (const signal of ['SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGTERM']) {
  process.on(signal, () => ofTerminal.includes(signal) || child.kill(signal));
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
child.on('error', (error) => {
  console.error(`cannot start acpipe: ${error.message}`);
  process.exit(126);
});
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
