// Channel to a subprocess `acpipe serve`.
import { spawn, type ChildProcess } from 'node:child_process';
import { statSync } from 'node:fs';
import type { Connector } from './connection.js';
import { AcpipeError, type ErrorKind } from './errors.js';
import { Lines } from './lines.js';

/** Time in which acpipe must exit after its stdin is closed: it gives its agents 5 s. */
const EXIT_LIMIT_MS = 10_000;

/** Exit code of acpipe if an option or the agent is not valid. */
const USAGE = 2;

/** Number of stderr lines that the error of an exit contains. */
const STDERR_LINES = 20;

export interface Program {
  file: string;
  args: string[];
  cwd: string | undefined;
  env: Record<string, string | undefined>;
  /** Receives each line of stderr. */
  onStderr: ((line: string) => void) | undefined;
}

export function stdioConnector({ file, args, cwd, env, onStderr }: Program): Connector {
  return (events) =>
    new Promise((resolve, reject) => {
      // The system reports a missing directory as a missing program.
      if (cwd !== undefined && !statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
        return reject(new AcpipeError('invalidParams', `cannot start acpipe: cwd is "${cwd}", which is not a directory`));
      }
      // A process group of its own (detached): Ctrl-C reaches this program only. acpipe exits with it all the same,
      // because its stdin closes.
      const child = spawn(file, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'], detached: true, windowsHide: true });
      const stderr: string[] = [];
      forEachLine(child.stderr, (line) => {
        stderr.push(line);
        if (stderr.length > STDERR_LINES) stderr.shift();
        onStderr?.(line);
      });
      let hasAnswered = false;
      forEachLine(child.stdout, (line) => {
        if (line === '') return;
        hasAnswered = true;
        events.message(line);
      });
      child.stdin.on('error', () => {}); // 'close' follows
      child.once('error', (error) => {
        reject(new AcpipeError('binaryNotFound', `cannot start acpipe: ${error.message}; check the path of the program`));
      });
      child.once('spawn', () => {
        child.once('close', (code, signal) => events.closed(exitError(code, signal, stderr, hasAnswered)));
        resolve({ send: (text) => void child.stdin.write(`${text}\n`), close: () => end(child) });
      });
    });
}

function forEachLine(stream: NodeJS.ReadableStream, take: (line: string) => void): void {
  const lines = new Lines();
  stream.setEncoding('utf8').on('data', (text: string) => lines.push(text).forEach(take));
}

function exitError(code: number | null, signal: string | null, stderr: string[], hasAnswered: boolean): AcpipeError {
  const how = signal === null ? `with the code ${code}` : `by the signal ${signal}`;
  const output = stderr.join('\n');
  const kind = hasAnswered ? 'disconnected' : startKind(code, output);
  return new AcpipeError(kind, `acpipe exited ${how}${output && `: ${output}`}`, { stderr: output, exitCode: code, signal });
}

/** Kind of an exit before the first answer. */
function startKind(code: number | null, stderr: string): ErrorKind {
  if (code !== USAGE) return 'acpipeExited';
  return /agent ".*" (not found|is ambiguous)/.test(stderr) ? 'agentNotFound' : 'invalidParams';
}

function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const limit = setTimeout(() => child.kill('SIGKILL'), EXIT_LIMIT_MS);
    child.once('close', () => {
      clearTimeout(limit);
      resolve();
    });
    child.stdin!.end();
  });
}
