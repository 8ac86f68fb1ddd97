// A client on the TypeScript SDK that does the work of `acpipe run -o chunks`: starts an agent, sends a prompt, writes the
// updates as AI SDK chunks and builds the message. `node client.mjs AGENT ARGS…`

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const message = { role: "assistant", parts: [] };
const tools = new Map();
let block = null; // the open text or reasoning block: {type, id, part}
let blocks = 0;
let batch = [];

// Chunks of one turn of the event loop are written together, which is the cheapest that loses no time.
function write(chunk) {
  if (batch.length === 0) setImmediate(flush);
  batch.push(JSON.stringify(chunk));
}

function flush() {
  if (batch.length === 0) return;
  process.stdout.write(batch.join("\n") + "\n");
  batch = [];
}

function closeBlock() {
  if (block) write({ type: `${block.type}-end`, id: block.id });
  block = null;
}

function addText(type, content) {
  if (content.type !== "text") return;
  if (block?.type !== type) {
    closeBlock();
    const part = { type, text: "" };
    message.parts.push(part);
    block = { type, id: String(++blocks), part };
    write({ type: `${type}-start`, id: block.id });
  }
  block.part.text += content.text;
  write({ type: `${type}-delta`, id: block.id, delta: content.text });
}

function startTool({ toolCallId, kind, title, rawInput }) {
  closeBlock();
  const tool = { toolCallId, toolName: kind ?? "other", title, dynamic: true };
  write({ type: "tool-input-start", ...tool });
  write({ type: "tool-input-available", ...tool, input: rawInput ?? {} });
  const part = { type: "dynamic-tool", ...tool, state: "input-available", input: rawInput ?? {} };
  message.parts.push(part);
  tools.set(toolCallId, part);
}

function endTool({ toolCallId, status, rawOutput, content }) {
  if (status !== "completed" && status !== "failed") return;
  closeBlock();
  const output = rawOutput ?? content ?? null;
  const failed = status === "failed";
  const state = failed ? "output-error" : "output-available";
  const result = failed ? { errorText: JSON.stringify(output) } : { output };
  write({ type: `tool-${state}`, toolCallId, ...result, dynamic: true });
  Object.assign(tools.get(toolCallId) ?? {}, { state, ...result });
}

function translate(update) {
  switch (update.sessionUpdate) {
    case "agent_message_chunk":
      return addText("text", update.content);
    case "agent_thought_chunk":
      return addText("reasoning", update.content);
    case "tool_call":
      return startTool(update);
    case "tool_call_update":
      return endTool(update);
    case "plan":
      closeBlock();
      message.parts.push({ type: "data-plan", data: update.entries });
      return write({ type: "data-plan", data: update.entries });
  }
}

const [command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const exited = once(agent, "exit");

write({ type: "start" });
await client({ name: "peer" })
  .onNotification(methods.client.session.update, ({ params }) => translate(params.update))
  .connectWith(ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (connection) => {
    await connection.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await connection.request(methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
    await connection.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "go" }] });
  });
closeBlock();
write({ type: "finish" });
flush();
console.error(`message of ${JSON.stringify(message).length} characters`);
agent.stdin.end();
await exited;
