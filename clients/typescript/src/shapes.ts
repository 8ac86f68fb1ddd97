// Fields on which this package relies, checked where a message arrives: protocol.ts has types only, which nothing checks
// when the program runs. Other fields may be absent, as in a message of another release.

/** Form of a value; of an object the fields, of a list its items. `or null`: the value may be `null`. */
export type Shape =
  | 'string'
  | 'number'
  | 'boolean'
  | 'object'
  | { fields: { [name: string]: Shape } }
  | { items: Shape }
  | { nullable: Shape };

const fields = (shapes: { [name: string]: Shape }): Shape => ({ fields: shapes });
const list = (items: Shape): Shape => ({ items });
const nullable = (shape: Shape): Shape => ({ nullable: shape });

const CHUNK = fields({ type: 'string' });
const SUMMARY = fields({ text: 'string', isError: 'boolean', errors: list(fields({ kind: 'string', message: 'string' })) });

/** Results by method; of other methods, any object. */
const RESULTS: ReadonlyMap<string, Shape> = new Map([
  ['initialize', fields({ defaultAgent: fields({ name: 'string' }) })],
  ['agent/list', fields({ agents: list('object') })],
  ['session/ensure', fields({ sessionId: 'string' })],
  ['session/prompt', SUMMARY],
  ['execute', SUMMARY],
  ['session/cancel', fields({ cancelled: 'boolean' })],
  ['session/attach', fields({ lastSeq: 'number', running: nullable(fields({ turnId: 'string', afterSeq: 'number' })) })],
  ['session/replay', fields({ entries: list(fields({ seq: 'number', chunk: CHUNK })), next: nullable('number') })],
  ['session/list', fields({ sessions: list(fields({ sessionId: 'string' })), nextCursor: nullable('string') })],
  ['message/list', fields({ messages: list(fields({ id: 'string' })), more: 'boolean' })],
]);

const QUESTION = { questionId: 'string' } as const;
const OPTIONS = list(fields({ optionId: 'string', kind: 'string' }));

/** Parameters of notifications and requests of acpipe, by method. Those of a newer acpipe are not checked. */
export const PARAMS: ReadonlyMap<string, Shape> = new Map([
  ['session/chunk', fields({ sessionId: 'string', seq: 'number', chunk: CHUNK })],
  ['session/events', fields({ sessionId: 'string' })],
  ['session/activity', fields({ sessionId: 'string' })],
  ['session/state', fields({ sessionId: 'string' })],
  ['session/presence', fields({ sessionId: 'string' })],
  ['session/userMessage', fields({ sessionId: 'string' })],
  ['agent/state', fields({ state: 'string' })],
  ['$/cancelRequest', fields({ id: 'string' })],
  ['permission/request', fields({ ...QUESTION, sessionId: 'string', toolCall: 'object', options: OPTIONS })],
  ['question/ask', fields({ ...QUESTION, message: 'string' })],
  ['fs/readTextFile', fields({ path: 'string' })],
  ['fs/writeTextFile', fields({ path: 'string', content: 'string' })],
  ['terminal/create', fields({ command: 'string' })],
  ...['output', 'waitForExit', 'kill', 'release'].map((name): [string, Shape] => [`terminal/${name}`, fields({ terminalId: 'string' })]),
]);

/** Why a result of a method is not valid; `undefined` if it is. */
export function faultOfResult(method: string, result: unknown): string | undefined {
  return mismatch(result, RESULTS.get(method) ?? 'object');
}

/** Answers of the program, by method; of other methods, an object or nothing. */
const ANSWERS: ReadonlyMap<string, Shape> = new Map([
  ['permission/request', fields({ outcome: 'object' })],
  ['question/ask', fields({ action: 'string' })],
  ['fs/readTextFile', fields({ content: 'string' })],
  ['terminal/create', fields({ terminalId: 'string' })],
  ['terminal/output', fields({ output: 'string' })],
  ['terminal/waitForExit', 'object'],
]);

/** Why an answer of a handler is not valid; `undefined` if it is. */
export function faultOfAnswer(method: string, answer: unknown): string | undefined {
  const shape = ANSWERS.get(method);
  return shape ? mismatch(answer, shape) : mismatch(answer ?? {}, 'object');
}

/** What a value has in place of a shape; `undefined` if it has the shape. */
export function mismatch(value: unknown, shape: Shape, name = ''): string | undefined {
  if (typeof shape === 'string') {
    const type = value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value;
    return type === shape ? undefined : `${name || 'they'} must be of the type ${shape}, not ${type}`;
  }
  if ('nullable' in shape) return value === null ? undefined : mismatch(value, shape.nullable, name);
  if ('items' in shape) {
    if (!Array.isArray(value)) return `${name} must be a list`;
    return first(value, (item, index) => mismatch(item, shape.items, `${name}[${index}]`));
  }
  const wrong = mismatch(value, 'object', name);
  if (wrong !== undefined) return wrong;
  const prefix = name && `${name}.`;
  return first(Object.entries(shape.fields), ([field, inner]) => {
    return mismatch(Object.hasOwn(value as object, field) ? (value as Record<string, unknown>)[field] : undefined, inner, prefix + field);
  });
}

/** The first result that is not `undefined`. */
function first<Item>(items: Item[], find: (item: Item, index: number) => string | undefined): string | undefined {
  for (const [index, item] of items.entries()) {
    const found = find(item, index);
    if (found !== undefined) return found;
  }
  return undefined;
}
