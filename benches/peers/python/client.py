"""A client on the Python SDK that does the work of `acpipe run -o chunks`: starts an agent, sends a prompt, writes the
updates as AI SDK chunks and builds the message. `client.py AGENT ARGS…`"""

import asyncio
import json
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block


class Peer:
    def __init__(self):
        self.parts = []
        self.tools = {}
        self.block = None  # type of the open block
        self.blocks = 0
        self.batch = []

    def write(self, chunk):
        # Chunks of one turn of the event loop are written together, which is the cheapest that loses no time.
        if not self.batch:
            asyncio.get_running_loop().call_soon(self.flush)
        self.batch.append(json.dumps(chunk, separators=(",", ":"), ensure_ascii=False))

    def flush(self):
        if self.batch:
            sys.stdout.write("\n".join(self.batch) + "\n")
            sys.stdout.flush()
            self.batch.clear()

    def close_block(self):
        if self.block:
            self.write({"type": f"{self.block}-end", "id": str(self.blocks)})
            self.block = None

    def add_text(self, kind, text):
        if self.block != kind:
            self.close_block()
            self.block = kind
            self.blocks += 1
            self.parts.append({"type": kind, "text": []})
            self.write({"type": f"{kind}-start", "id": str(self.blocks)})
        self.parts[-1]["text"].append(text)
        self.write({"type": f"{kind}-delta", "id": str(self.blocks), "delta": text})

    def start_tool(self, update):
        self.close_block()
        tool = {"toolCallId": update.tool_call_id, "toolName": update.kind or "other", "title": update.title, "dynamic": True}
        self.write({"type": "tool-input-start", **tool})
        self.write({"type": "tool-input-available", **tool, "input": update.raw_input or {}})
        part = {"type": "dynamic-tool", **tool, "state": "input-available", "input": update.raw_input or {}}
        self.parts.append(part)
        self.tools[update.tool_call_id] = part

    def end_tool(self, update):
        if update.status not in ("completed", "failed"):
            return
        self.close_block()
        output = update.raw_output
        if output is None:
            output = [item.model_dump(by_alias=True, exclude_none=True) for item in update.content or []]
        failed = update.status == "failed"
        state = "output-error" if failed else "output-available"
        result = {"errorText": json.dumps(output)} if failed else {"output": output}
        self.write({"type": f"tool-{state}", "toolCallId": update.tool_call_id, **result, "dynamic": True})
        self.tools.get(update.tool_call_id, {}).update(state=state, **result)

    async def session_update(self, session_id, update, **_):
        kind = update.session_update
        if kind == "agent_message_chunk":
            self.add_text("text", update.content.text)
        elif kind == "agent_thought_chunk":
            self.add_text("reasoning", update.content.text)
        elif kind == "tool_call":
            self.start_tool(update)
        elif kind == "tool_call_update":
            self.end_tool(update)
        elif kind == "plan":
            self.close_block()
            data = [entry.model_dump(by_alias=True, exclude_none=True) for entry in update.entries]
            self.parts.append({"type": "data-plan", "data": data})
            self.write({"type": "data-plan", "data": data})

    async def request_permission(self, *_, **__):
        return {"outcome": {"outcome": "cancelled"}}

    def on_connect(self, connection):
        pass


async def main():
    peer = Peer()
    peer.write({"type": "start"})
    async with spawn_agent_process(peer, sys.argv[1], *sys.argv[2:], env=dict(os.environ)) as (connection, _):
        await connection.initialize(protocol_version=PROTOCOL_VERSION)
        session = await connection.new_session(cwd=os.getcwd(), mcp_servers=[])
        await connection.prompt(session_id=session.session_id, prompt=[text_block("go")])
        # The SDK handles each update in a task of its own; those that the response overtook end in a few turns of the loop.
        for _ in range(10):
            await asyncio.sleep(0)
    peer.close_block()
    peer.write({"type": "finish"})
    peer.flush()
    print("message of", len(json.dumps(peer.parts)), "characters", file=sys.stderr)


asyncio.run(main())
