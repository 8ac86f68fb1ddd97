// The package itself: generated types, the look-up of the program, entries for browsers and type checkers.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findBinary, isKind, platformPackage } from 'acpipe';
import { atEnd, programs } from './support.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

/** An empty project with this package in node_modules. */
function project() {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'acpipe-ts-')));
  atEnd(() => rmSync(dir, { recursive: true, force: true }));
  const installed = join(dir, 'node_modules/acpipe');
  mkdirSync(installed, { recursive: true });
  cpSync(join(ROOT, 'dist'), join(installed, 'dist'), { recursive: true });
  cpSync(join(ROOT, 'bin'), join(installed, 'bin'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(installed, 'package.json'));
  return dir;
}

/** The command of the package in a project, as npm links it. */
function command(dir) {
  const link = join(dir, 'node_modules/.bin/acpipe');
  mkdirSync(dirname(link), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync('../acpipe/bin/acpipe.mjs', link);
  chmodSync(join(dir, 'node_modules/acpipe/bin/acpipe.mjs'), 0o755);
  return link;
}

function program(file, content = '#!/bin/sh\n') {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  chmodSync(file, 0o755);
  return file;
}

test('generated types are those of the OpenRPC document', () => {
  const { status, stderr } = spawnSync(process.execPath, ['generate.mjs', '--check'], { cwd: ROOT, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});

test('program is found by ACPIPE_BIN, then in PATH', () => {
  const dir = project();
  const [chosen, inPath] = [program(join(dir, 'chosen')), program(join(dir, 'bin/acpipe'))];
  assert.equal(findBinary({ ACPIPE_BIN: chosen, PATH: join(dir, 'bin') }), chosen);
  assert.equal(findBinary({ PATH: `/none:${join(dir, 'bin')}` }), inPath);
});

test('program that is not found is an error that names the remedy', () => {
  const missing = (env, words) => assert.throws(() => findBinary(env), (error) => isKind(error, 'binaryNotFound') && words.test(error.message));
  missing({ ACPIPE_BIN: '/none', PATH: programs }, /ACPIPE_BIN is "\/none".*correct or unset/);
  missing({ PATH: '/none' }, /not in PATH; install this package with its optional dependencies, install acpipe, or set ACPIPE_BIN/);
});

test('package of the platform comes before PATH, from both formats', () => {
  const dir = project();
  const platform = platformPackage().replace('@acpipe/', '');
  const target = join(dir, 'node_modules', platformPackage());
  const args = ['platform-package.mjs', join(programs, 'acpipe'), platform, target];
  execFileSync(process.execPath, args, { cwd: ROOT });
  const print = 'console.log(findBinary({ PATH: "/none" }))';
  writeFileSync(join(dir, 'esm.mjs'), `import { findBinary } from 'acpipe';\n${print}`);
  writeFileSync(join(dir, 'cjs.cjs'), `const { findBinary } = require('acpipe');\n${print}`);
  for (const file of ['esm.mjs', 'cjs.cjs']) {
    const found = execFileSync(process.execPath, [file], { cwd: dir, encoding: 'utf8' }).trim();
    assert.equal(found, join(target, 'bin/acpipe'), file);
    assert.match(execFileSync(found, ['--version'], { encoding: 'utf8' }), /^acpipe /);
  }
  // npm skips a package of another platform.
  const { os, cpu } = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8'));
  assert.deepEqual([os, cpu], [[process.platform], [process.arch]]);
});

test('published package depends on the programs of the platforms in its own version', () => {
  const dir = join(project(), 'published');
  execFileSync(process.execPath, ['package.mjs', dir], { cwd: ROOT, env: { ...process.env, ACPIPE_REPOSITORY: 'https://example.org/acpipe' } });
  const manifest = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
  const platforms = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];
  assert.deepEqual(manifest.optionalDependencies, Object.fromEntries(platforms.map((name) => [`@acpipe/${name}`, manifest.version])));
  assert.deepEqual(manifest.repository, { type: 'git', url: 'git+https://example.org/acpipe.git' });
  for (const key of ['private', 'scripts', 'devDependencies', 'dependencies']) assert.ok(!(key in manifest), key);
  for (const file of ['bin/acpipe.mjs', 'dist/esm/index.js', 'dist/cjs/index.js', 'README.md', 'LICENSE']) assert.ok(existsSync(join(dir, file)), file);
});

test('command of the package runs the program with its arguments, streams and exit code', () => {
  const dir = project();
  const file = join(dir, 'node_modules', platformPackage(), 'bin/acpipe');
  writeFileSync(join(dirname(program(file, '#!/bin/sh\necho "$@"; cat; exit 7\n')), '../package.json'), '{}');
  const { status, stdout } = spawnSync(command(dir), ['run', 'a b'], { input: 'stdin', encoding: 'utf8' });
  assert.deepEqual([status, stdout], [7, 'run a b\nstdin']);
});

test('command of the package passes a signal on, and its end by a signal is an exit code', { timeout: 20_000 }, async () => {
  const dir = project();
  const file = program(join(dir, 'slow'), '#!/bin/sh\necho ready\nexec sleep 60\n');
  const child = spawn(command(dir), { env: { ...process.env, ACPIPE_BIN: file }, stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [128 + 15, null]);
});

test('command of the package does not find itself', () => {
  const dir = project();
  const env = { PATH: dirname(command(dir)) };
  // Not by its first line, which wants Node also under Bun.
  const { status, stderr } = spawnSync(process.execPath, [command(dir)], { env, encoding: 'utf8', timeout: 20_000 });
  assert.equal(status, 127);
  assert.match(stderr, /^cannot start acpipe: the program is not in the package .* and not in PATH/);
  // That of a global installation is a link to the package.
  const global = join(dir, 'global/acpipe');
  mkdirSync(dirname(global));
  symlinkSync(join(dir, 'node_modules/acpipe/bin/acpipe.mjs'), global);
  const there = program(join(dir, 'bin/acpipe'));
  assert.equal(findBinary({ PATH: `${dirname(global)}:${dirname(there)}` }), there);
});

test('entries of browsers import nothing of Node', () => {
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const source = readFileSync(file, 'utf8');
    for (const [, name] of source.matchAll(/from '([^']+)'/g)) {
      assert.ok(name.startsWith('.'), `${file} imports ${name}`);
      visit(join(dirname(file), name));
    }
  };
  visit(join(ROOT, 'dist/esm/browser.js'));
  visit(join(ROOT, 'dist/esm/ai/index.js'));
  assert.ok(seen.size > 10);
});

/** Type-checks files; returns the output of the compiler, which is empty if there are no errors. */
function check(dir, files, options = []) {
  const args = [TSC, '--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', '', ...options, ...files];
  return spawnSync(process.execPath, args, { cwd: dir, encoding: 'utf8' }).stdout;
}

const USE = `
  export async function use(): Promise<string> {
    const client = await start({ agent: ['gemini', '--acp'], onPermission: (request) => request.allow() });
    const session = await client.session({ cwd: '/' });
    for await (const chunk of session.prompt('hi')) {
      if (chunk.type === 'text-delta') chunk.delta.toUpperCase();
      // @ts-expect-error: not a field of all chunks
      chunk.delta;
    }
    // @ts-expect-error: not a parameter
    await client.call('session/get', { bogus: 1 });
    // @ts-expect-error: a required parameter
    await client.call('session/setMode', {});
    client.on('agent/state', ({ state }) => state === 'ready');
    return (await session.prompt('hi').summary()).text;
  }
`;

const USE_AI = `
  export const handler = toNodeHandler(createChatHandler(() => start()));
  export async function read(session: Session): Promise<string[]> {
    const messages = await session.messages();
    return messages.filter(({ role }) => role === 'user').flatMap(({ parts }) => parts.map((part) => part.text));
  }
  export async function send(transport: HttpChatTransport): Promise<void> {
    const request = { chatId: 'x', messages: [], trigger: 'submit-message', messageId: undefined, abortSignal: undefined } as const;
    const { value } = await (await transport.sendMessages({ ...request, messages: [] })).getReader().read();
    if (value?.type === 'text-delta') value.delta.toUpperCase();
  }
`;

test('types are checked strictly from both formats, without other packages', () => {
  const dir = project();
  const ai = 'createChatHandler, HttpChatTransport, toNodeHandler';
  writeFileSync(
    join(dir, 'esm.mts'),
    `import { start, type Session } from 'acpipe';\nimport { ${ai} } from 'acpipe/ai';${USE}${USE_AI}`,
  );
  writeFileSync(
    join(dir, 'cjs.cts'),
    `import acpipe = require('acpipe');\nimport ai = require('acpipe/ai');
    const { start } = acpipe;\nconst { createChatHandler, toNodeHandler } = ai;
    type HttpChatTransport = ai.HttpChatTransport;\ntype Session = acpipe.Session;${USE}${USE_AI}`,
  );
  // The declarations of the package are checked, too.
  assert.equal(check(dir, ['esm.mts', 'cjs.cts'], ['--skipLibCheck', 'false']), '');
  assert.equal(check(dir, ['esm.mts'], ['--module', 'esnext', '--moduleResolution', 'bundler']), '');
  // A project of Node without the types of browsers.
  symlinkSync(join(ROOT, 'node_modules/@types'), join(dir, 'node_modules/@types'));
  assert.equal(check(dir, ['esm.mts', 'cjs.cts'], ['--skipLibCheck', 'false', '--lib', 'es2023', '--types', 'node']), '');
});

test('TypeScript examples of the README are checked strictly', () => {
  const dir = project();
  symlinkSync(join(ROOT, 'node_modules/ai'), join(dir, 'node_modules/ai'));
  const blocks = [...readFileSync(join(ROOT, 'README.md'), 'utf8').matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, code]) => code);
  assert.ok(blocks.length >= 3);
  const files = blocks.map((code, index) => {
    writeFileSync(join(dir, `example${index}.mts`), `declare const token: string;\ndeclare const Bun: { serve(options: object): void };\n${code}`);
    return `example${index}.mts`;
  });
  assert.equal(check(dir, files, ['--skipLibCheck', 'true']), '');
});

test('types of acpipe/react fit @ai-sdk/react', () => {
  const dir = project();
  for (const name of ['@ai-sdk', '@types', 'ai', 'react']) symlinkSync(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name));
  writeFileSync(join(dir, 'hook.mts'), `
    import { HttpChatTransport, type ChatData } from 'acpipe/ai';
    import { useAcpipeChat } from 'acpipe/react';
    import type { UIMessage } from 'ai';
    type Message = UIMessage<unknown, ChatData>;
    export function use(): string[] {
      const chat = useAcpipeChat<Message>({ id: 'x', api: '/api/chat', onData: ({ type }) => type.toUpperCase() });
      const given = useAcpipeChat<Message>({ id: 'x', transport: new HttpChatTransport<Message>() });
      for (const { id } of chat.requests) void chat.approve(id, { approved: true });
      void given.sendMessage({ text: 'hi' });
      // @ts-expect-error: the id is needed
      useAcpipeChat({});
      return chat.messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'data-permission' ? [part.data.reason ?? ''] : [])));
    }
  `);
  assert.equal(check(dir, ['hook.mts'], ['--skipLibCheck', 'true', '--types', 'node', '--lib', 'es2023,dom,dom.iterable']), '');
});

for (const [major, name] of [[7, 'ai'], [6, 'ai6'], [5, 'ai5']]) {
  test(`types of acpipe/ai fit ai ${major}`, () => {
    const dir = project();
    // The compiler finds the package's own dependencies beside its real path.
    symlinkSync(join(ROOT, 'node_modules', name), join(dir, 'node_modules/ai'));
    symlinkSync(join(ROOT, 'node_modules/@types'), join(dir, 'node_modules/@types'));
    writeFileSync(join(dir, 'chat.mts'), `
      import { createServer } from 'node:http';
      import { createUIMessageStreamResponse, type ChatTransport, type UIMessage } from 'ai';
      import type { Acpipe, Session } from 'acpipe';
      import { ClientChatTransport, createChatHandler, HttpChatTransport, toNodeHandler, type ChatData } from 'acpipe/ai';
      type Own = UIMessage<{ tokens: number }>;
      export const http: ChatTransport<Own> = new HttpChatTransport<Own>({ token: 'x' });
      export const inProcess = (client: Acpipe): ChatTransport<UIMessage> => new ClientChatTransport(client);
      export const respond = (session: Session) => createUIMessageStreamResponse({ stream: session.prompt('hi').stream() });
      export const send = (session: Session, message: UIMessage) => session.prompt(message);
      export const messages = (session: Session): Promise<UIMessage[]> => session.messages();
      export const own = (session: Session) => session.messages<Own>();
      // As \`useChat\` has it: the messages keep the type of the AI SDK.
      declare function useChat<M extends UIMessage = UIMessage>(options: { transport?: ChatTransport<M> }): { messages: M[] };
      export const parts: UIMessage['parts'] = useChat({ transport: new HttpChatTransport() }).messages[0]!.parts;
      export const tokens: number = useChat({ transport: new HttpChatTransport<Own>() }).messages[0]!.metadata!.tokens;
      // With the data parts of acpipe.
      type Message = UIMessage<unknown, ChatData>;
      export const chat = useChat<Message>({ transport: new HttpChatTransport() });
      for (const part of chat.messages[0]!.parts) {
        if (part.type === 'data-permission') part.data.options.map(({ name }) => name.toUpperCase());
        if (part.type === 'data-permission' && part.data.approved === undefined) part.data.toolCall?.title?.toUpperCase();
        if (part.type === 'data-recovery') part.data.memory === 'lost';
        if (part.type === 'data-tool-call') part.data.status?.toUpperCase();
        // @ts-expect-error: not a field
        if (part.type === 'data-permission') part.data.option;
        // @ts-expect-error: not a part
        if (part.type === 'data-permissions') part;
      }
      export const stored: Promise<Message[]> = createChatHandler(async () => null as never).messages<Message>('x');
      export const listener = createServer(toNodeHandler(createChatHandler(async () => null as never)));
      export const POST: (request: Request) => Promise<Response> = createChatHandler(async () => null as never);
    `);
    assert.equal(check(dir, ['chat.mts'], ['--skipLibCheck', 'true', '--types', 'node']), '');
    if (major < 7) return;
    // Without the types of browsers. Declarations of the AI SDK itself have errors then.
    const output = check(dir, ['chat.mts'], ['--skipLibCheck', 'false', '--lib', 'es2023', '--types', 'node']);
    assert.deepEqual(output.split('\n').filter((line) => /^(chat\.mts|node_modules\/acpipe)/.test(line)), []);
  });
}
