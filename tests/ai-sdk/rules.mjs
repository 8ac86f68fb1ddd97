// Rules of a stream that the SDK's reader does not enforce. A stream that breaks one loses content, leaves a part
// open, makes a stored message invalid, or breaks clients with another release.

const TOOL = 'toolCallId providerExecuted dynamic toolMetadata@6';
const OPENING = `${TOOL} toolName title@6`;

/** Fields of each chunk; `@6` names the first major that has the field or the chunk. */
const FIELDS = fields({
  'start': 'messageId messageMetadata',
  'finish': 'finishReason messageMetadata',
  'abort': 'reason@6',
  'error': 'errorText',
  'message-metadata': 'messageMetadata',
  'start-step': '',
  'finish-step': '',
  'text-start': 'id providerMetadata',
  'text-delta': 'id delta providerMetadata',
  'text-end': 'id providerMetadata citations@7',
  'reasoning-start': 'id providerMetadata',
  'reasoning-delta': 'id delta providerMetadata',
  'reasoning-end': 'id providerMetadata',
  'tool-input-start': `${OPENING} inputEncoding@6 providerMetadata@6`,
  'tool-input-delta': 'toolCallId inputTextDelta',
  'tool-input-available': `${OPENING} input providerMetadata`,
  'tool-input-error': `${OPENING} input errorText providerMetadata`,
  'tool-output-available': `${TOOL} output preliminary providerMetadata@6`,
  'tool-output-error': `${TOOL} errorText providerMetadata@6`,
  'tool-output-denied@6': 'toolCallId',
  'tool-approval-request@6': 'approvalId toolCallId approvalDescriptor inputSchemaInput signature reason@7 isAutomatic@7',
  'tool-approval-response@7': 'approvalId approved reason providerExecuted providerMetadata',
  'source-url': 'sourceId url title providerMetadata',
  'source-document': 'sourceId mediaType title filename providerMetadata',
  'file': 'url mediaType providerMetadata',
  'reasoning-file@7': 'url mediaType providerMetadata',
  'custom@7': 'kind providerMetadata',
  'steering-message@7': 'id parts',
  'reset-step@7': '',
  'data-': 'id data transient',
});

/** Finish reasons that all majors know. */
const REASONS = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'];

/** Fields that are present even if they are null. */
const NULLABLE = ['input', 'output', 'data'];

function fields(table) {
  const since = word => [word.split('@')[0], Number(word.split('@')[1] ?? 5)];
  const read = ([type, names]) => {
    const [name, major] = since(type);
    return [name, { major, fields: new Map(names.split(' ').filter(Boolean).map(since)) }];
  };
  return new Map(Object.entries(table).map(read));
}

const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value);

/** Returns the rules that a message's chunks break, for clients of this major of the SDK. */
export function breaches(chunks, major) {
  const found = [];
  const state = { step: 0, open: new Set(), tools: new Map(), questions: new Map(), end: undefined };
  chunks.forEach((chunk, n) => {
    const tell = text => found.push(`chunk ${n} (${chunk.type}): ${text}`);
    shape(chunk, major, tell);
    if ((chunk.type === 'start') !== (n === 0)) tell('start is the first chunk and no other');
    if (state.end) tell(`nothing follows ${state.end}`);
    if (chunk.type.startsWith('tool-')) tool(chunk, major, state, tell);
    else frame(chunk, state, tell);
  });
  if (!state.end) found.push('the message has no finish, abort or error');
  return found;
}

function shape(chunk, major, tell) {
  const known = FIELDS.get(chunk.type.startsWith('data-') ? 'data-' : chunk.type);
  if (!known) return tell('no chunk of the table');
  if (known.major > major) tell(`${major} does not know this chunk`);
  for (const [name, value] of Object.entries(chunk)) {
    if (name === 'type') continue;
    const since = known.fields.get(name);
    if (since === undefined) tell(`there is no field ${name}`);
    if (since > major) tell(`${major} does not know the field ${name}`);
    if (value === null && !NULLABLE.includes(name)) tell(`${name} is null and should be absent`);
    if (/Metadata$/.test(name) && !isObject(value)) tell(`${name} is no object`);
  }
  if (!Object.values(chunk.providerMetadata ?? {}).every(isObject)) tell('providerMetadata has two levels');
  if (chunk.finishReason !== undefined && !REASONS.includes(chunk.finishReason)) {
    tell(`${chunk.finishReason} is no reason that all majors know`);
  }
}

function frame(chunk, state, tell) {
  const block = `${chunk.type.split('-')[0]} ${chunk.id}`;
  switch (chunk.type) {
    case 'start':
      if (!chunk.messageId) tell('there is no messageId');
      break;
    case 'start-step':
      if (state.inStep) tell('a step is open');
      state.inStep = true;
      state.step += 1;
      break;
    case 'finish-step':
      if (!state.inStep) tell('no step is open');
      if (state.open.size > 0) tell(`open: ${[...state.open]}`);
      state.inStep = false;
      break;
    case 'text-start':
    case 'reasoning-start':
      if (state.open.has(block)) tell('the block is open already');
      state.open.add(block);
      break;
    case 'text-delta':
    case 'reasoning-delta':
      if (!state.open.has(block)) tell('the block is not open');
      break;
    case 'text-end':
    case 'reasoning-end':
      if (!state.open.delete(block)) tell('the block is not open');
      break;
    case 'file':
    case 'reasoning-file':
      if (!URL.canParse(chunk.url)) tell('the URL is not absolute');
      break;
    case 'finish':
    case 'abort':
    case 'error':
      if (state.inStep) tell('a step is open');
      if (state.open.size > 0) tell(`open: ${[...state.open]}`);
      for (const [id, call] of state.tools) if (!call.settled) tell(`tool ${id} is not settled`);
      state.end = chunk.type;
      break;
  }
}

function tool(chunk, major, state, tell) {
  const { type } = chunk;
  if (type === 'tool-approval-response') {
    const call = state.questions.get(chunk.approvalId);
    if (!call) tell('nobody asked');
    else if (call.answer !== undefined) tell('answered twice');
    else call.answer = chunk.approved;
    return;
  }
  let call = state.tools.get(chunk.toolCallId);
  const opening = type.startsWith('tool-input-') && type !== 'tool-input-delta';
  if (!call) {
    if (!opening) return tell('the call was never shown');
    call = { step: state.step, name: chunk.toolName };
    state.tools.set(chunk.toolCallId, call);
  }
  // In 6 no chunk contains the answer: the following chunks show it.
  const refused = call.asked && major > 6 && call.answer !== true;
  if (opening || type === 'tool-output-available' || type === 'tool-output-error') {
    if (chunk.dynamic !== true || chunk.providerExecuted !== true) tell('dynamic and providerExecuted are missing');
  }
  if (opening) {
    if (call.output || call.settled) tell('it takes an output away');
    if (call.asked) tell('after a question only results are valid');
    if (call.step !== state.step) tell('in a later step it makes a second part');
    if (call.name !== chunk.toolName) tell(`the name was ${call.name}`);
  }
  switch (type) {
    case 'tool-input-start':
      if (call.input) tell('the input was shown already');
      break;
    case 'tool-input-available':
      call.input = true;
      break;
    case 'tool-input-error':
      call.settled = 'error';
      break;
    case 'tool-approval-request':
      if (!call.input || call.output || call.settled) tell('a question needs an input and no output');
      if (call.asked) tell('asked twice');
      call.asked = true;
      state.questions.set(chunk.approvalId, call);
      break;
    case 'tool-output-available':
    case 'tool-output-error':
      if (!call.input) tell('there is no input');
      if (refused) tell('the permission was not given');
      if (call.settled === 'error' || call.settled === 'denied') tell(`the call is settled: ${call.settled}`);
      if (call.settled && chunk.preliminary) tell('preliminary after the result');
      call.output = true;
      call.settled = chunk.preliminary ? undefined : type === 'tool-output-error' ? 'error' : 'output';
      break;
    case 'tool-output-denied':
      if (major > 6 ? call.answer !== false : !call.asked || call.output) tell('nothing was refused');
      call.settled = 'denied';
      break;
  }
}
