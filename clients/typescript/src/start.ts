import { findBinary } from './binary.js';
import { Acpipe, type ClientOptions } from './client.js';
import { checkAgentName, checkOptions } from './options.js';
import { stdioConnector } from './stdio.js';

export interface StartOptions extends ClientOptions {
  /** Agent of the sessions: a name such as `claude`, or a command line such as `['gemini', '--acp']`. */
  agent?: string | string[];
  /**
   * Policy for tool calls: `approve` allows all, `ask` asks about all, `reads` allows reading and asks about the rest, `deny`
   * refuses all. `onPermission` answers, or the page of a chat; a call about which nothing answers is refused. Default: `ask`
   * with `onPermission`, otherwise that of acpipe's configuration, which is `approve` at first.
   */
  permissions?: 'approve' | 'reads' | 'ask' | 'deny';
  /** Working directory of agents and sessions. Default: that of this process. */
  cwd?: string;
  /** Environment variables, in addition to those of this process. */
  env?: Record<string, string | undefined>;
  /** Further options of `acpipe serve`, such as `['--daemon']` or `['--state-dir', 'sessions']`. */
  args?: string[];
  /** Path of the acpipe program. Default: `ACPIPE_BIN`, then the package of this platform, then `PATH`. */
  binary?: string;
  /** Receives each line that acpipe writes to stderr: notes and logs. */
  onStderr?: (line: string) => void;
}

/** Starts `acpipe serve` as a subprocess. It is started again if it exits, and exits when this process exits. */
export async function start(options: StartOptions = {}): Promise<Acpipe> {
  checkOptions('start', options, ['agent', 'permissions', 'cwd', 'env', 'args', 'binary', 'onStderr']);
  if (typeof options.agent === 'string') checkAgentName(options.agent);
  const env = { ...process.env, ...options.env };
  const permissions = options.permissions ?? (options.onPermission && 'ask');
  const { agent, args = [] } = options;
  const connector = stdioConnector({
    file: options.binary ?? findBinary(env),
    args: [
      'serve',
      ...(permissions === undefined ? [] : ['--permissions', permissions]),
      ...args,
      ...(agent === undefined ? [] : typeof agent === 'string' ? ['--agent', agent] : ['--', ...agent]),
    ],
    cwd: options.cwd,
    env,
    onStderr: options.onStderr,
  });
  return Acpipe.open(connector, { ...options, permissions, processId: process.pid, hasAgent: agent !== undefined });
}
