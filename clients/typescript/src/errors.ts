import type { ErrorKinds, TurnSummary } from './protocol.js';

/** Kind of an error: those of acpipe, and those of this package. */
export type ErrorKind =
  | keyof ErrorKinds
  /** The connection to acpipe was lost, or acpipe exited while it was used. */
  | 'disconnected'
  /** acpipe exited before it was ready; the message has what it wrote to stderr. */
  | 'acpipeExited'
  /** The acpipe program was not found. */
  | 'binaryNotFound'
  /** A message of acpipe cannot be read. */
  | 'invalidMessage';

/** Error of a call, of a turn, or of the connection. */
export class AcpipeError extends Error {
  override readonly name = 'AcpipeError';
  /** Kind of the error. A newer acpipe can have kinds that this type does not list. */
  readonly kind: ErrorKind;
  /** Details for programs, such as `stderr`, `authMethods` or `violations`. */
  readonly data: Record<string, unknown>;
  /** Summary of the turn, if a turn failed: text and tool calls from before the failure. */
  readonly summary: TurnSummary | undefined;

  constructor(kind: ErrorKind, message: string, data: Record<string, unknown> = {}, summary?: TurnSummary) {
    super(message);
    this.kind = kind;
    this.data = data;
    this.summary = summary;
  }

  /** Whether the value is such an error, also of another copy of this package: each bundle of a Next.js app has its own. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isError(value) && value.name === 'AcpipeError';
  }

  /** Returns the error of a turn that failed. */
  static ofTurn(summary: TurnSummary): AcpipeError {
    const [first] = summary.errors;
    return new AcpipeError(
      (first?.kind as ErrorKind | undefined) ?? 'internal',
      first?.message ?? 'the turn failed, but its summary has no error; please report it',
      (first?.data ?? {}) as Record<string, unknown>,
      summary,
    );
  }
}

const isError = (value: unknown): value is Error => value instanceof Error;

/** Whether the value is an error of this kind. */
export function isKind(error: unknown, kind: ErrorKind): error is AcpipeError {
  return error instanceof AcpipeError && error.kind === kind;
}

/** Returns the error of an option, a parameter or a request that is not valid. */
export function invalid(message: string): AcpipeError {
  return new AcpipeError('invalidParams', message);
}

/** Returns the error of a message of acpipe that cannot be read. */
export function invalidMessage(what: string, why: string): AcpipeError {
  const advice = 'install the package and the program from the same release';
  return new AcpipeError('invalidMessage', `cannot read ${what} of acpipe: ${why}; ${advice}`);
}
