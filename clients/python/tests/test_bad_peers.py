"""What the client does if the program that it started does not behave as acpipe does."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acpipe import AcpipeError, AcpipeExited, Client, InvalidMessage, PermissionRequest, QuestionRequest, find_acpipe
from acpipe.models import AgentStateParams, ChunkParams, PermissionAnswer, QuestionAnswer, ReadTextFileParams, TextFile
from tests.bad_peers import CASES, Peer, bytes_of, case_names, case_of, message
from tests.lab import Lab

LIMIT_SECONDS = 30


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    made = Peer(tmp_path)
    yield made
    made.end()


async def outcome_of(client: Client) -> Any:
    """Calls a method; returns `result`, or the kind and the message of the error."""
    try:
        await asyncio.wait_for(client.rpc.agent_list(), LIMIT_SECONDS)
    except AcpipeError as error:
        return {"kind": error.kind, "message": str(error)}
    return "result"


def check(outcome: Any, expected: Any) -> None:
    """Compares an outcome with that of a case, in which the message is a pattern."""
    if expected == "result":
        assert outcome == expected
    else:
        assert outcome["kind"] == expected["kind"]
        assert re.search(expected["message"], outcome["message"])


def check_log(caplog: pytest.LogCaptureFixture, logged: str | None) -> None:
    """Checks that a message was logged, or none, and that the log is safe and short."""
    texts = [record.getMessage() for record in caplog.records if record.name == "acpipe"]
    assert any(logged in text for text in texts) if logged else texts == []
    assert len(texts) <= 25
    for text in texts:
        assert len(text) < 2000
        assert text.isprintable()
    assert not [record for record in caplog.records if record.name != "acpipe" and record.levelno >= logging.WARNING]


@pytest.mark.parametrize("name", case_names("lines"))
async def test_bad_line_is_logged_and_others_are_read(name: str, peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    case = case_of("lines", name)
    peer.read().write(bytes_of(case["write"]))
    if case["answered"]:
        peer.answer(2, "agent/list")
    peer.read().answer(3, "agent/list")
    notified: list[Any] = []
    async with Client("demo", binary=peer.program()) as client:
        client.on(AgentStateParams, notified.append)
        client.on(ChunkParams, notified.append)
        check(await outcome_of(client), case["outcome"])
        check(await outcome_of(client), case["after"])
    assert notified == []
    check_log(caplog, case["logged"])


@pytest.mark.parametrize("name", case_names("ends"))
async def test_end_of_the_stream_settles_all_calls(name: str, peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    case = case_of("ends", name)
    peer.read().read()
    for step in case["do"]:
        peer.do(step)
    async with Client("demo", binary=peer.program()) as client:
        outcomes = [*await asyncio.gather(outcome_of(client), outcome_of(client)), await outcome_of(client)]
    for outcome in outcomes:
        check(outcome, {"kind": "acpipeExited", "message": case["message"]})
        assert len(outcome["message"]) < 2**21


@pytest.mark.parametrize("name", case_names("requests"))
async def test_bad_request_is_refused(name: str, peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    case = case_of("requests", name)
    peer.read().write(bytes_of(case["write"]))
    for _ in case["answers"]:
        peer.read()
    peer.answer(2, "agent/list").read().answer(3, "agent/list")

    async def decide(request: PermissionRequest) -> PermissionAnswer:
        if request.question_id == "wait":
            await asyncio.Event().wait()
        assert request.is_open
        return request.allow()

    def answer(request: QuestionRequest) -> QuestionAnswer:
        return request.dismiss()

    def read(request: ReadTextFileParams) -> TextFile:
        return TextFile(content=request.path)

    async with Client(
        "demo", binary=peer.program(), on_permission=decide, on_question=answer, on_read_text_file=read
    ) as client:
        assert await outcome_of(client) == "result"
        assert await outcome_of(client) == "result"
    answers: list[Any] = []
    for received in peer.received():
        if "method" in received:
            continue
        if "error" in received:
            answers.append({"id": received["id"], "code": received["error"]["code"]})
        else:
            answers.append({"id": received["id"], "option": received["result"]["outcome"]["optionId"]})
    assert answers == case["answers"]
    check_log(caplog, case["logged"])


def turn_of(peer: Peer, chunks: list[Any], summary: Any) -> Peer:
    """Makes the peer open a session, play a turn, and answer another call."""
    peer.read().answer(2, "session/ensure").read()
    for seq, chunk in enumerate(chunks, 1):
        peer.write(
            message(method="session/chunk", params={"sessionId": "s", "turnId": "t", "seq": seq, "chunk": chunk})
        )
    return peer.write(message(id=3, result=summary)).read().answer(4, "agent/list")


@pytest.mark.parametrize("name", case_names("turns"))
async def test_bad_chunk_does_not_end_the_turn(name: str, peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    case = case_of("turns", name)
    turn_of(peer, case["chunks"], CASES["results"]["session/prompt"])
    async with Client("demo", binary=peer.program()) as client:
        session = await client.session("s")
        turn = session.prompt("hi", turn_id="t")
        async for _ in turn:
            pass
        assert (await turn).text == "done"
        assert await outcome_of(client) == "result"


@pytest.mark.parametrize("name", case_names("summaries"))
async def test_bad_summary_is_an_error_of_the_turn(name: str, peer: Peer) -> None:
    turn_of(peer, [], case_of("summaries", name)["summary"])
    async with Client("demo", binary=peer.program()) as client:
        session = await client.session("s")
        turn = session.prompt("hi", turn_id="t")
        with pytest.raises(InvalidMessage, match="the response to `session/prompt`"):
            async for _ in turn:
                pass
        with pytest.raises(InvalidMessage):
            await turn
        assert await outcome_of(client) == "result"


async def test_start_fails_if_the_answer_to_initialize_is_not_valid(peer: Peer) -> None:
    program = peer.dir / "other"
    program.write_text('#!/bin/sh\nread -r line\necho \'{"id":1,"result":null}\'\nexec cat >/dev/null\n')
    program.chmod(0o755)
    with pytest.raises(InvalidMessage, match="the response to `initialize`"):
        await Client("demo", binary=program).start()


@pytest.mark.parametrize("result", ["[" * 100_000, '{"id":2,"result":' + "[" * 100_000 + "]" * 100_000 + "}"])
async def test_line_that_is_nested_too_deeply_fails_all_calls(peer: Peer, result: str) -> None:
    peer.read().write(result.encode() + b"\n")
    async with Client("demo", binary=peer.program()) as client:
        for _ in range(2):
            check(await outcome_of(client), {"kind": "invalidMessage", "message": "nested too deeply"})


async def test_pages_that_do_not_advance_are_an_error(peer: Peer) -> None:
    page: dict[str, Any] = {"sessions": [], "nextCursor": "same"}
    peer.read().write(message(id=2, result=page)).read().write(message(id=3, result=page))
    async with Client("demo", binary=peer.program()) as client:
        with pytest.raises(InvalidMessage, match="does not advance"):
            async for _ in client.sessions():
                pass


async def test_call_after_the_end_fails_at_once(peer: Peer) -> None:
    peer.read().do({"exit": 3})
    async with Client("demo", binary=peer.program()) as client:
        with pytest.raises(AcpipeExited):
            await client.rpc.agent_list()
        call = client.rpc.agent_list()
        with pytest.raises(AcpipeExited, match="code 3"):
            call.send(None)  # without a turn of the event loop


def tape_of(peer: Peer) -> list[str]:
    """Returns the command line that repeats the tape of a bad agent."""
    tape = peer.dir / "bad.tape"
    tape.write_text("".join(json.dumps(record) + "\n" for record in CASES["tape"]))
    return [str(find_acpipe()), "replay", "--at-once", str(tape)]


async def test_repeated_tape_of_a_bad_agent_ends_its_turn(
    lab: Lab, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[PermissionRequest] = []

    def decide(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return request.deny()

    async with Client(tape_of(peer), on_permission=decide) as client:
        client.on(ChunkParams, lambda params: None)
        turn = (await client.session("s", cwd=lab.project)).prompt("hi")
        async for _ in turn:
            pass
        assert (await turn).text.endswith("b")
        await client.rpc.agent_list()
    assert len(asked) == 1
    assert "cannot be read" not in caplog.text


async def test_repeated_tape_in_place_of_acpipe_fails_the_start(peer: Peer) -> None:
    program = peer.dir / "replay"
    program.write_text(f"#!/bin/sh\nexec {shlex.join(tape_of(peer))}\n")
    program.chmod(0o755)
    with pytest.raises(InvalidMessage, match="the response to `initialize`"):
        await Client("demo", binary=program).start()
