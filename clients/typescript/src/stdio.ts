// Channel to a subprocess `acpipe serve`.
import { isUtf8 } from 'node:buffer';
import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { statSync } from 'node:fs';
import { LINE_LIMIT, tooLong, type Connector } from './connection.js';
import { AcpipeError, type ErrorKind } from './errors.js';
import { Lines } from './lines.js';

/** Time in which acpipe must exit after its stdin is closed: it gives its agents 5 s. */
const EXIT_LIMIT_MS = 10_000;

/** Time between the end of a pipe and that of the process, whichever comes first. */
const PIPES_END_MS = 1_000;

/** Exit code of acpipe if an option or the agent is not valid. */
const USAGE = 2;

/** Number of stderr lines that the error of an exit contains, and what is kept of a line. */
const STDERR_LINES = 20;
const STDERR_LIMIT = 64 * 1024;

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
      const stderr = tailOf(child.stderr, onStderr);
      let hasAnswered = false;
      let end = (code: number | null, signal: string | null) => exitError(code, signal, stderr.join('\n'), hasAnswered);
      const lines = new Lines(LINE_LIMIT);
      child.stdout.on('data', (bytes: Buffer) => {
        const complete = lines.push(bytes);
        if (lines.wasCut) {
          end = () => tooLong('acpipe wrote a line');
          child.stdout.destroy();
          return void child.kill('SIGKILL');
        }
        for (const line of complete) {
          const text = line.toString();
          if (text.trim() === '') continue;
          hasAnswered = true;
          events.message(text, isUtf8(line));
        }
      });
      child.stdout.once('end', () => {
        if (lines.rest > 0) console.warn(`acpipe: acpipe ended within a line, of which it wrote ${lines.rest} bytes`);
      });
      endTogether(child);
      child.once('error', (error) => {
        reject(new AcpipeError('binaryNotFound', `cannot start acpipe: ${error.message}; check the path of the program`));
      });
      child.once('spawn', () => {
        child.once('close', (code, signal) => events.closed(end(code, signal)));
        resolve({ send: (text) => void child.stdin.write(`${text}\n`), close: () => close(child) });
      });
    });
}

/** The last lines of stderr, so far. */
function tailOf(stream: NodeJS.ReadableStream, onLine: ((line: string) => void) | undefined): string[] {
  const tail: string[] = [];
  const lines = new Lines(STDERR_LIMIT);
  const take = (line: string) => {
    tail.push(line);
    if (tail.length > STDERR_LINES) tail.shift();
    try {
      onLine?.(line);
    } catch (error) {
      console.error('acpipe: onStderr failed', error);
    }
  };
  stream.on('data', (bytes: Buffer) => lines.push(bytes).forEach((line) => take(line.toString())));
  stream.once('end', () => lines.rest > 0 && take(lines.take().toString()));
  return tail;
}

/**
 * Makes a process and its pipes end together. Another process can hold the pipes of one that has exited, and one whose pipes
 * have ended can go on: then no response comes any more, and no end.
 */
function endTogether(child: ChildProcessWithoutNullStreams): void {
  const kill = () => void setTimeout(() => child.kill('SIGKILL'), PIPES_END_MS).unref();
  child.stdin.on('error', kill);
  child.stdout.on('error', kill).once('end', kill);
  child.stderr.on('error', () => {});
  child.once('exit', () => {
    const destroy = setTimeout(() => [child.stdout, child.stderr].forEach((stream) => stream.destroy()), PIPES_END_MS);
    child.once('close', () => clearTimeout(destroy));
  });
}

function exitError(code: number | null, signal: string | null, stderr: string, hasAnswered: boolean): AcpipeError {
  const how = signal === null ? `with the code ${code}` : `by the signal ${signal}`;
  const kind = hasAnswered ? 'disconnected' : startKind(code, stderr);
  return new AcpipeError(kind, `acpipe exited ${how}${stderr && `: ${stderr}`}`, { stderr, exitCode: code, signal });
}

/** Kind of an exit before the first answer. */
function startKind(code: number | null, stderr: string): ErrorKind {
  if (code !== USAGE) return 'acpipeExited';
  return /agent ".*" (not found|is ambiguous)/.test(stderr) ? 'agentNotFound' : 'invalidParams';
}

function close(child: ChildProcess): Promise<void> {
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
