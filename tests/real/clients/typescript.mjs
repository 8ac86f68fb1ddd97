// A client on the TypeScript SDK. Its protocol is that of ../sdk_clients.py.
//
//     node typescript.mjs SDK allow|refuse COMMAND [ARGS...]      SDK: path of the SDK's module
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";

const [sdk, answer, command, ...args] = process.argv.slice(2);
const acp = await import(sdk);
const { agent: calls, client: requests } = acp.methods;
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((done) => agent.on("exit", (code, signal) => done(signal ?? code)));
agent.on("error", (error) => say({ failed: error.message }));

function decide({ sessionId, toolCall, options }) {
  const wanted = answer === "allow" ? "allow_once" : "reject_once";
  const option = options.find(({ kind }) => kind === wanted);
  say({ session: sessionId, asked: { toolCall, options } });
  return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
}

function perform(agent, { call, session, cwd, text }) {
  switch (call) {
    case "new":
      return agent.request(calls.session.new, { cwd, mcpServers: [] });
    case "load":
      return agent.request(calls.session.load, { sessionId: session, cwd, mcpServers: [] });
    case "prompt":
      return agent.request(calls.session.prompt, { sessionId: session, prompt: [{ type: "text", text }] });
    case "cancel":
      return agent.notify(calls.session.cancel, { sessionId: session });
  }
}

async function serve(agent) {
  const result = await agent.request(calls.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
    clientInfo: { name: "acpipe-real-typescript", version: "1" },
  });
  say({ number: 0, result });
  for await (const line of createInterface({ input: process.stdin })) {
    const wish = JSON.parse(line);
    perform(agent, wish).then(
      (result) => say({ number: wish.number, result: result ?? {} }),
      (error) => say({ number: wish.number, error: error.message ?? String(error) }),
    );
  }
}

const client = acp
  .client({ name: "acpipe-real-typescript" })
  .onRequest(requests.session.requestPermission, ({ params }) => decide(params))
  .onNotification(requests.session.update, ({ params }) => say({ session: params.sessionId, update: params.update }));
try {
  await client.connectWith(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), serve);
} catch (error) {
  say({ failed: error.message ?? String(error) });
}
agent.stdin.end();
const late = setTimeout(() => agent.kill(), 5000);
say({ exited: await ended });
clearTimeout(late);
process.exit(0);
