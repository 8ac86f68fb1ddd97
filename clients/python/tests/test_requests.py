"""Requests of acpipe: permissions, questions, files and terminals. Notifications."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from acpipe import Client, PermissionRequest, QuestionRequest, _mailbox
from acpipe._questions import _chosen  # pyright: ignore[reportPrivateUsage]
from acpipe.models import (
    AgentStateParams,
    CreatedTerminal,
    CreateTerminalParams,
    OfferedKind,
    OfferedOption,
    PermissionAnswer,
    QuestionAnswer,
    ReadTextFileParams,
    TerminalExited,
    TerminalParams,
    TerminalSaid,
    TextDeltaChunk,
    TextFile,
    ToolInputAvailableChunk,
    WriteTextFileParams,
)
from tests.lab import ECHO_ANSWER, Lab, ask, ask_permission, end, say


async def answer_of(client: Client, lab: Lab) -> Any:
    """Runs a turn and returns the answer that the agent received and repeated."""
    session = await client.session("s", cwd=lab.project)
    return json.loads((await session.prompt("go")).text)


Decision = Callable[[PermissionRequest], PermissionAnswer]
DECISIONS: list[tuple[Decision, str]] = [
    (lambda request: request.allow(), "yes"),
    (lambda request: request.allow_always(), "always"),
    (lambda request: request.deny("not now"), "no"),
    (lambda request: request.select("always"), "always"),
]


@pytest.mark.parametrize(("decide", "chosen"), DECISIONS)
async def test_handler_decides_on_a_tool_call(lab: Lab, decide: Decision, chosen: str) -> None:
    seen: list[PermissionRequest] = []

    async def on_permission(request: PermissionRequest) -> PermissionAnswer:
        seen.append(request)
        return decide(request)

    async with Client(lab.agent([ask_permission(), ECHO_ANSWER, end()]), on_permission=on_permission) as client:
        answer = await answer_of(client, lab)
    assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": chosen}
    assert (seen[0].tool_call.title, seen[0].command) == ("Run make", "make")


async def test_dismissed_request_has_no_choice(lab: Lab) -> None:
    async def on_permission(request: PermissionRequest) -> PermissionAnswer:
        return request.dismiss()

    async with Client(lab.agent([ask_permission(), ECHO_ANSWER, end()]), on_permission=on_permission) as client:
        answer = await answer_of(client, lab)
    assert answer["result"]["outcome"] == {"outcome": "cancelled"}


async def test_without_a_handler_acpipe_decides_by_its_policy(lab: Lab) -> None:
    agent = lab.agent([ask_permission(), ECHO_ANSWER, end()])
    async with Client(agent, permissions="deny") as client:
        assert (await answer_of(client, lab))["result"]["outcome"]["optionId"] == "no"


async def test_handler_that_raises_leaves_the_decision_to_the_policy(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    async def on_permission(request: PermissionRequest) -> PermissionAnswer:
        raise LookupError("no user")

    async with Client(lab.agent([ask_permission(), ECHO_ANSWER, end()]), on_permission=on_permission) as client:
        assert (await answer_of(client, lab))["result"]["outcome"]["optionId"] == "no"
    (record,) = caplog.records  # not another one for the line that acpipe logs
    assert record.message == "the handler of permission/request failed"
    assert "LookupError: no user" in caplog.text


async def test_handler_that_returns_no_answer_is_reported(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    async def on_permission(request: PermissionRequest) -> Any:
        request.allow()

    async with Client(lab.agent([ask_permission(), ECHO_ANSWER, end()]), on_permission=on_permission) as client:
        assert (await answer_of(client, lab))["result"]["outcome"]["optionId"] == "no"
    assert "the handler must return a PermissionAnswer, not None" in caplog.text


async def test_handler_is_cancelled_when_the_request_is_withdrawn(lab: Lab) -> None:
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def on_permission(request: PermissionRequest) -> PermissionAnswer:
        asked.set()
        assert request.is_open
        try:
            await asyncio.Event().wait()
        finally:
            if not request.is_open:
                withdrawn.set()
        return request.allow()

    async with Client(lab.agent([ask_permission(), end("cancelled")]), on_permission=on_permission) as client:
        session = await client.session("s", cwd=lab.project)
        turn = session.prompt("go")
        await asked.wait()
        turn.cancel()
        await withdrawn.wait()
        assert (await turn).stop_reason == "cancelled"


async def test_handler_may_use_the_client_while_the_agent_waits(lab: Lab) -> None:
    async def on_permission(request: PermissionRequest) -> PermissionAnswer:
        info = await client.rpc.session_get(session_id=request.session_id)
        return request.allow() if info.activity == "waiting" else request.deny()

    client = Client(lab.agent([ask_permission(), ECHO_ANSWER, end()]), on_permission=on_permission)
    async with client:
        assert (await answer_of(client, lab))["result"]["outcome"]["optionId"] == "yes"


async def test_handler_answers_a_form(lab: Lab) -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    asks = ask("elicitation/create", mode="form", message="Which database?", requestedSchema=form)

    async def on_question(request: QuestionRequest) -> QuestionAnswer:
        assert (request.kind, request.message) == ("form", "Which database?")
        return request.accept({"name": "sqlite"})

    async with Client(lab.agent([asks, ECHO_ANSWER, end()]), on_question=on_question) as client:
        answer = await answer_of(client, lab)
    assert answer["result"] == {"action": "accept", "content": {"name": "sqlite"}}


@pytest.mark.parametrize("how", ["prompt", "execute"])
async def test_question_comes_after_the_chunks_before_it(lab: Lab, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(_mailbox, "READ_SECONDS", 3600)
    events: list[str] = []

    def on_permission(request: PermissionRequest) -> PermissionAnswer:
        events.append("asked")
        return request.allow()

    steps = [say("before"), ask_permission(), end()]
    async with Client(lab.agent(steps), on_permission=on_permission) as client:
        session = await client.session("s", cwd=lab.project)
        async for chunk in session.prompt("go") if how == "prompt" else client.execute("go", cwd=lab.project):
            await client.rpc.agent_status()  # a slow reader: the question has arrived meanwhile
            if isinstance(chunk, TextDeltaChunk | ToolInputAvailableChunk):
                events.append(chunk.type)
    assert events == ["text-delta", "tool-input-available", "asked"]


async def test_question_does_not_wait_for_chunks_that_are_dropped(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_mailbox, "READ_SECONDS", 3600)
    agent = lab.agent([say("before"), ask_permission(), ECHO_ANSWER, end()])
    async with Client(agent, on_permission=lambda request: request.allow()) as client:
        assert '"optionId":"yes"' in (await client.execute("go", cwd=lab.project)).text


async def test_reader_may_wait_for_the_question(lab: Lab) -> None:
    asked = asyncio.Event()

    def on_permission(request: PermissionRequest) -> PermissionAnswer:
        asked.set()
        return request.allow()

    async with Client(lab.agent([ask_permission(), end()]), on_permission=on_permission) as client:
        turn = (await client.session("s", cwd=lab.project)).prompt("go")
        await turn.__anext__()
        await asked.wait()
        assert (await turn).stop_reason == "end_turn"


async def test_handlers_may_be_plain_functions(lab: Lab) -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    asks = ask("elicitation/create", mode="form", message="Which?", requestedSchema=form)
    path = str(lab.project / "a.txt")
    client = Client(
        lab.agent(
            [ask_permission(), ECHO_ANSWER, end()],
            [asks, ECHO_ANSWER, end()],
            [ask("fs/read_text_file", path=path), ECHO_ANSWER, end()],
            [ask("fs/write_text_file", path=path, content="x"), ECHO_ANSWER, end()],
        ),
        on_permission=lambda request: request.allow(),
        on_question=lambda request: request.accept({"name": "sqlite"}),
        on_read_text_file=lambda request: TextFile(content="unsaved"),
        on_write_text_file=lambda request: None,
    )
    async with client:
        answers = [(await answer_of(client, lab))["result"] for _ in range(4)]
    assert answers[0]["outcome"]["optionId"] == "yes"
    assert answers[1:] == [{"action": "accept", "content": {"name": "sqlite"}}, {"content": "unsaved"}, {}]


async def test_handlers_read_and_write_files(lab: Lab) -> None:
    path = str(lab.project / "a.txt")
    buffers = {path: "unsaved"}

    async def read(request: ReadTextFileParams) -> TextFile:
        if request.path not in buffers:
            raise FileNotFoundError(f"{request.path} does not exist")
        return TextFile(content=buffers[request.path])

    async def write(request: WriteTextFileParams) -> None:
        buffers[request.path] = request.content

    steps = [
        ask("fs/write_text_file", path=path, content="changed"),
        ask("fs/read_text_file", path=path),
        ECHO_ANSWER,
        end(),
    ]
    missing = [ask("fs/read_text_file", path=path + ".no"), ECHO_ANSWER, end()]
    async with Client(lab.agent(steps, missing), on_read_text_file=read, on_write_text_file=write) as client:
        assert await answer_of(client, lab) == {"result": {"content": "changed"}}
        assert (await answer_of(client, lab))["error"]["code"] == -32002
    assert buffers == {path: "changed"}


class OneTerminal:
    """A terminal whose command has printed `done` and exited."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def create(self, request: CreateTerminalParams) -> CreatedTerminal:
        self.calls.append(f"create {request.command} {request.args}")
        return CreatedTerminal(terminal_id="term-1")

    async def output(self, request: TerminalParams) -> TerminalSaid:
        self.calls.append("output")
        return TerminalSaid(output="done", exit_status=TerminalExited(exit_code=0))

    async def wait_for_exit(self, request: TerminalParams) -> TerminalExited:
        self.calls.append("wait")
        return TerminalExited(exit_code=0)

    async def kill(self, request: TerminalParams) -> None:
        self.calls.append("kill")

    async def release(self, request: TerminalParams) -> None:
        self.calls.append(f"release {request.terminal_id}")


async def test_handler_runs_commands_in_terminals(lab: Lab) -> None:
    steps = [
        ask("terminal/create", command="make", args=["test"]),
        ask("terminal/wait_for_exit", terminalId="term-1"),
        ask("terminal/output", terminalId="term-1"),
        ECHO_ANSWER,
        ask("terminal/kill", terminalId="term-1"),
        ask("terminal/release", terminalId="term-1"),
        end(),
    ]
    terminal = OneTerminal()
    async with Client(lab.agent(steps), terminals=terminal) as client:
        answer = await answer_of(client, lab)
    assert answer["result"]["output"] == "done"
    assert terminal.calls == ["create make ['test']", "wait", "output", "kill", "release term-1"]


async def test_listener_gets_notifications_until_it_is_removed(lab: Lab) -> None:
    states: list[str] = []
    async with Client(lab.agent()) as client:
        remove = client.on(AgentStateParams, lambda params: states.append(params.state))
        await client.rpc.agent_connect()
        assert states == ["starting", "ready"]
        remove()
        await client.rpc.agent_disconnect()
    assert states == ["starting", "ready"]


async def test_listener_that_raises_does_not_stop_the_client(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: AgentStateParams) -> None:
        raise LookupError("broken")

    async with Client(lab.agent([say("fine"), end()])) as client:
        client.on(AgentStateParams, fail)
        session = await client.session("s", cwd=lab.project)
        assert (await session.prompt("go")).text == "fine"
    assert "LookupError: broken" in caplog.text


async def test_message_parts_and_context_reach_the_agent(lab: Lab) -> None:
    async with Client(lab.agent([say("fine"), end()])) as client:
        session = await client.session("s", cwd=lab.project)
        message = {"role": "user", "parts": [{"type": "text", "text": "hello"}]}
        await session.prompt(message, context={"branch": "main"})
    texts = json.dumps(lab.received("session/prompt")[0]["prompt"])
    assert "hello" in texts
    assert "main" in texts


def test_none_of_several_options_that_allow_is_taken_by_its_position() -> None:
    def chosen(kinds: tuple[OfferedKind, OfferedKind], *offers: tuple[str, str, OfferedKind]) -> str | None:
        options = [OfferedOption(option_id=id, name=name, kind=kind) for id, name, kind in offers]
        option = _chosen(options, kinds)
        return option.option_id if option else None

    once: tuple[OfferedKind, OfferedKind] = ("allow_once", "allow_always")
    plan: list[tuple[str, str, OfferedKind]] = [
        ("auto", "Yes, and use auto mode", "allow_always"),
        ("x", "Yes, and bypass permissions", "allow_always"),
    ]
    assert chosen(once, *plan) is None
    assert chosen(once, *plan, ("default", "Yes, manually approve edits", "allow_once")) == "default"
    assert chosen(once, ("acceptEdits", "Yes", "allow_always")) is None
    assert chosen(once, ("a", "Always in this project", "allow_always"), ("b", "Always", "allow_always")) is None
    assert chosen(once, ("a", "Always for `auto x`", "allow_always")) == "a"
    assert chosen(("reject_once", "reject_always"), ("n", "No", "reject_once"), ("m", "No", "reject_once")) == "n"
