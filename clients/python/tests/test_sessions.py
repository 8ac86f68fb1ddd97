"""Opening and listing sessions."""

from __future__ import annotations

import asyncio
import json

from acpipe import Client, sync
from tests.lab import Lab, end, say

PAGE = 100


async def test_stored_session_moves_to_the_agent_of_the_client(lab: Lab) -> None:
    async with Client("demo") as client:
        session = await client.session("s", cwd=lab.project)
        await session.prompt("remember 7")
    async with Client(lab.agent([say("fake"), end()])) as client:
        session = await client.session("s")
        assert (session.recovery.handed_over_from, session.opened.agent_name) == ("demo", "default")
        assert (await session.prompt("hi")).text == "fake"
    assert "remember 7" in json.dumps(lab.received("session/prompt"))


async def test_stored_session_keeps_its_agent_if_the_client_has_none(lab: Lab) -> None:
    async with Client() as client:
        await client.session("s", agent="demo", cwd=lab.project)
    async with Client(lab.agent()) as client:
        # The client's agent is for sessions that name none.
        assert (await client.session("s", agent="demo")).recovery.handed_over_from is None
    async with Client() as client:
        assert (await client.session("s")).opened.agent_name == "demo"


async def test_sessions_of_all_pages_are_listed(lab: Lab) -> None:
    async with Client("demo", options=["--max-sessions", "200"]) as client:
        opened = {f"s{number}" for number in range(PAGE + 1)}
        await asyncio.gather(*(client.session(name, cwd=lab.project) for name in opened))
        listed = [info.session_id async for info in client.sessions()]
    assert (len(listed), set(listed)) == (PAGE + 1, opened)
    with sync.Client("demo") as blocking:
        # They were never used.
        assert list(blocking.sessions()) == []


async def test_sessions_are_listed_by_directory_the_last_changed_first(lab: Lab) -> None:
    other = lab.dir / "other"
    other.mkdir()
    async with Client("demo") as client:
        old = await client.session("old", cwd=lab.project)
        await client.session("elsewhere", cwd=other)
        await client.session("new", cwd=lab.project)
        await old.prompt("hi")
        assert [info.session_id async for info in client.sessions(cwd=lab.project)] == ["old", "new"]
        assert [info.session_id async for info in client.sessions()] == ["old", "new", "elsewhere"]
    with sync.Client("demo") as blocking:
        assert [info.session_id for info in blocking.sessions()] == ["old"]
        assert list(blocking.sessions(cwd=other)) == []
