"""Turns: chunks, summaries, failures and cancelling."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from acpipe import AcpipeError, Client, Session, Turn, TurnFailed
from acpipe._flow import UNREAD_LIMIT, Flow
from acpipe._turns import Turns
from acpipe.models import ChunkParams, FinishChunk, PromptParams, StartChunk, TextDeltaChunk
from tests.lab import UNTIL_CANCELLED, Lab, end, say


async def opened(client: Client, lab: Lab, session_id: str = "s") -> Session:
    return await client.session(session_id, cwd=lab.project)


async def test_turn_is_an_iterator_of_chunks_with_a_summary(lab: Lab) -> None:
    async with Client(lab.agent([say("Hello, "), say("world"), end()])) as client:
        turn = (await opened(client, lab)).prompt("hi")
        chunks = [chunk async for chunk in turn]
        summary = await turn
    assert isinstance(chunks[0], StartChunk)
    assert isinstance(chunks[-1], FinishChunk)
    assert "".join(chunk.delta for chunk in chunks if isinstance(chunk, TextDeltaChunk)) == "Hello, world"
    assert (summary.text, summary.turn_id, summary.session_id) == ("Hello, world", turn.id, "s")


async def test_summary_can_be_awaited_without_the_chunks(lab: Lab) -> None:
    async with Client(lab.agent([say("one"), end()], [say("two"), end()])) as client:
        session = await opened(client, lab)
        assert (await session.prompt("1")).text == "one"
        assert (await session.prompt("2").summary()).text == "two"


async def test_chunks_of_sessions_side_by_side_are_kept_apart(lab: Lab) -> None:
    async def text(session: Session) -> str:
        turn = session.prompt(f"I am {session.id}")
        return "".join([chunk.delta async for chunk in turn if isinstance(chunk, TextDeltaChunk)])

    echo = [say("{session}"), end()]
    async with Client(lab.agent(echo)) as client:
        sessions = [await opened(client, lab, name) for name in ("a", "b", "c")]
        texts = await asyncio.gather(*(text(session) for session in sessions))
    assert texts == [session.opened.agent_session_id for session in sessions]


async def test_failed_turn_raises_after_its_last_chunk(lab: Lab) -> None:
    async with Client(lab.agent([say("half an ans"), {"exit": 3}])) as client:
        turn = (await opened(client, lab)).prompt("hi")
        kinds: list[str] = []
        with pytest.raises(TurnFailed, match="exited") as caught:
            async for chunk in turn:
                kinds.append(chunk.type)
        assert kinds[-1] == "error"
        assert caught.value.kind == "agentExited"
        assert caught.value.data["exitCode"] == 3
        assert caught.value.summary.text == "half an ans"
        assert (await turn.outcome()).is_error
        with pytest.raises(TurnFailed):
            await turn


async def test_turn_that_cannot_begin_raises_the_error_of_the_call(lab: Lab) -> None:
    async with Client(lab.agent(UNTIL_CANCELLED)) as client:
        session = await opened(client, lab)
        async with session.prompt("first") as first:
            await first.__anext__()
            with pytest.raises(AcpipeError) as caught:
                await session.prompt("second", when_busy="reject")
            assert caught.value.kind == "busy"
            assert not isinstance(caught.value, TurnFailed)


async def test_cancelled_turn_ends_with_its_summary(lab: Lab) -> None:
    async with Client(lab.agent(UNTIL_CANCELLED)) as client:
        turn = (await opened(client, lab)).prompt("hi")
        kinds: list[str] = []
        async for chunk in turn:
            kinds.append(chunk.type)
            if isinstance(chunk, TextDeltaChunk):
                turn.cancel()
        summary = await turn
    assert kinds[-1] == "abort"
    assert summary.stop_reason == "cancelled"


@pytest.mark.parametrize("how", ["iterate", "await"])
async def test_cancelled_task_cancels_its_turn(lab: Lab, how: str) -> None:
    begun = asyncio.Event()
    turns: list[Turn] = []  # so that it is not the end of the object that cancels the turn

    async def follow(session: Session) -> None:
        turn = session.prompt("hi")
        turns.append(turn)
        async for chunk in turn:
            if isinstance(chunk, TextDeltaChunk):
                begun.set()
                if how == "await":
                    await turn

    async with Client(lab.agent(UNTIL_CANCELLED, [say("next"), end()])) as client:
        session = await opened(client, lab)
        task = asyncio.create_task(follow(session))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The session runs one turn at a time: the next one runs because the cancelled one has ended.
        assert (await session.prompt("again")).text == "next"
    assert len(lab.received("session/cancel")) == 1


async def test_leaving_the_block_of_a_turn_cancels_it_and_waits_for_its_end(lab: Lab) -> None:
    async with Client(lab.agent(UNTIL_CANCELLED)) as client:
        session = await opened(client, lab)
        async with session.prompt("hi") as turn:
            async for chunk in turn:
                if isinstance(chunk, TextDeltaChunk):
                    break
        assert (await session.get()).activity == "idle"
        assert (await turn.outcome()).stop_reason == "cancelled"


async def test_break_cancels_a_turn_without_other_references(lab: Lab) -> None:
    async with Client(lab.agent(UNTIL_CANCELLED, [say("next"), end()])) as client:
        session = await opened(client, lab)
        async for chunk in session.prompt("hi"):
            if isinstance(chunk, TextDeltaChunk):
                break
        assert (await session.prompt("again")).text == "next"
    assert len(lab.received("session/cancel")) == 1


async def test_cancel_of_a_queued_prompt_does_not_reach_the_running_turn(lab: Lab) -> None:
    async with Client(lab.agent(UNTIL_CANCELLED)) as client:
        session = await opened(client, lab)
        running = session.prompt("first")
        async for chunk in running:
            if isinstance(chunk, TextDeltaChunk):
                break
        queued = session.prompt("second")
        queued.cancel()
        with pytest.raises(AcpipeError) as caught:
            await queued
        assert caught.value.kind == "cancelled"
        assert (await session.get()).turn_id == running.id
        assert lab.received("session/cancel") == []


async def test_turn_ids_are_those_of_a_session(lab: Lab) -> None:
    async with Client(lab.agent([say("{session}"), end()])) as client:
        sessions = [await opened(client, lab, name) for name in ("a", "b")]
        turns = [session.prompt("hi", turn_id="t1") for session in sessions]
        for session, turn in zip(sessions, turns, strict=True):
            text = "".join([chunk.delta async for chunk in turn if isinstance(chunk, TextDeltaChunk)])
            assert text == session.opened.agent_session_id


async def test_prompt_with_the_id_of_a_running_turn_does_not_take_its_chunks(lab: Lab) -> None:
    async with Client(lab.agent(UNTIL_CANCELLED)) as client:
        session = await opened(client, lab)
        turn = session.prompt("hi", turn_id="t1")
        kinds = [(await turn.__anext__()).type]
        with pytest.raises(AcpipeError) as caught:
            await session.prompt("hi", turn_id="t1")
        assert caught.value.kind == "busy"
        turn.cancel()
        kinds += [chunk.type async for chunk in turn]
    assert kinds[0] == "start"
    assert kinds[-1] == "abort"


async def test_ended_turn_is_repeated_under_its_id(lab: Lab) -> None:
    async with Client(lab.agent([say("once"), end()], [say("twice"), end()])) as client:
        session = await opened(client, lab)
        first = [chunk async for chunk in session.prompt("hi", turn_id="t1")]
        again = session.prompt("hi", turn_id="t1")
        assert [chunk async for chunk in again] == first
        assert (await again).text == "once"


class _Responses:
    """Connection that answers no call by itself."""

    def __init__(self) -> None:
        self.last: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def start(self, *_: object) -> asyncio.Future[Any]:
        self.last = asyncio.get_running_loop().create_future()
        return self.last


async def test_repeated_turn_gets_its_chunks_also_at_once_after_the_first() -> None:
    connection = _Responses()
    turns = Turns(cast("Any", connection), Flow())
    prompt = PromptParams(message="hi", session_id="s", turn_id="t")
    first = turns.prompt(prompt)
    connection.last.set_result(None)  # its callbacks have not run yet
    again = turns.prompt(prompt)
    for chunk_type in ("start-step", "finish-step"):
        turns.receive(msgspec.Raw(b'{"sessionId":"s","turnId":"t","chunk":{"type":"%s"}}' % chunk_type.encode()))
        assert (await anext(again)).type == chunk_type
        await asyncio.sleep(0)  # the callbacks of the first turn
    connection.last.set_result(None)
    del first


async def test_chunks_have_the_form_that_the_types_describe_whatever_the_options_say(lab: Lab) -> None:
    async with Client(lab.agent(), options=["--chunk-profile", "5"]) as client:
        assert client.initialized.chunk_profile == 7


async def test_execute_streams_chunks_and_leaves_no_session(lab: Lab) -> None:
    async with Client(lab.agent([say('{"ok": true}'), end()])) as client:
        turn = client.execute("is it?", output_schema={"type": "object"}, cwd=lab.project)
        text = "".join([chunk.delta async for chunk in turn if isinstance(chunk, TextDeltaChunk)])
        assert text == '{"ok": true}'
        assert (await turn).structured_output == {"ok": True}
        assert (await client.rpc.session_list()).sessions == []


async def test_cancelled_task_cancels_execute_and_prompts_of_the_raw_calls(lab: Lab) -> None:
    begun = asyncio.Event()
    async with Client(lab.agent(UNTIL_CANCELLED)) as client:
        session = await opened(client, lab)
        client.on(ChunkParams, lambda params: begun.set() if isinstance(params.chunk, TextDeltaChunk) else None)
        calls = [client.rpc.session_prompt("hi", session_id=session.id), client.rpc.execute("hi")]
        for number, call in enumerate(calls, start=1):
            begun.clear()
            task = asyncio.create_task(call)
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while len(lab.received("session/cancel")) < number:
                await client.rpc.agent_status()


async def test_calls_are_answered_while_a_turn_is_not_read(lab: Lab) -> None:
    updates = 3 * UNREAD_LIMIT
    steps = [{"repeat": {"times": updates, "steps": [say("{i} ")]}}, end()]
    async with Client(lab.agent(steps)) as client:
        session = await opened(client, lab)
        turn = session.prompt("count")
        # Its response is behind unread chunks.
        assert (await session.get()).session_id == "s"
        text = "".join([chunk.delta async for chunk in turn if isinstance(chunk, TextDeltaChunk)])
    assert text == "".join(f"{number} " for number in range(updates))
