"""A client on the Python SDK. Its protocol is that of ../sdk_clients.py.

    python.py allow|refuse COMMAND [ARGS...]        with the Python of the SDK's virtual environment
"""
import asyncio
import json
import os
import sys

import acp
from acp.schema import DeniedOutcome, Implementation, RequestPermissionResponse, AllowedOutcome
from acp.stdio import spawn_agent_process

ANSWER, COMMAND, *ARGS = sys.argv[1:]
LINE = 50 * 1024 * 1024     # bytes: the default of asyncio is 64 KiB


def say(**line):
    print(json.dumps(line), flush=True)


def raw(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True) if model else {}


class Client:
    async def session_update(self, session_id, update, **_):
        say(session=session_id, update=raw(update))

    async def request_permission(self, session_id, tool_call, options, **_):
        say(session=session_id, asked={"toolCall": raw(tool_call), "options": [raw(option) for option in options]})
        wanted = "allow_once" if ANSWER == "allow" else "reject_once"
        chosen = next((option.option_id for option in options if option.kind == wanted), None)
        outcome = (AllowedOutcome(option_id=chosen, outcome="selected") if chosen
                   else DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=outcome)


async def perform(agent, call, session=None, cwd=None, text=None):
    if call == "new":
        return await agent.new_session(cwd=cwd, mcp_servers=[])
    if call == "load":
        return await agent.load_session(cwd=cwd, session_id=session, mcp_servers=[])
    if call == "prompt":
        return await agent.prompt(session_id=session, prompt=[acp.text_block(text)])
    return await agent.cancel(session_id=session)


async def answer(agent, number, **wish):
    try:
        say(number=number, result=raw(await perform(agent, **wish)))
    except Exception as wrong:      # of any kind: the test judges it
        say(number=number, error=f"{type(wrong).__name__}: {wrong}")


async def main():
    lines = asyncio.StreamReader(limit=LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with spawn_agent_process(Client(), COMMAND, *ARGS, env=dict(os.environ),
                                   transport_kwargs={"limit": LINE, "stderr": None}) as (agent, process):
        started = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION,
                                         client_info=Implementation(name="acpipe-real-python", version="1"))
        say(number=0, result=raw(started))
        tasks = set()
        async for line in lines:
            tasks.add(asyncio.create_task(answer(agent, **json.loads(line))))
    say(exited=process.returncode)


asyncio.run(main())
