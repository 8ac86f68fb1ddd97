"""The blocking client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from acpipe import AcpipeError, AcpipeExited, AcpipeNotFound, PermissionRequest, TurnFailed, _loop_thread
from acpipe.models import (
    AgentStateParams,
    ChunkParams,
    CreatedTerminal,
    CreateTerminalParams,
    PermissionAnswer,
    StartChunk,
    TerminalExited,
    TerminalParams,
    TerminalSaid,
    TextDeltaChunk,
)
from acpipe.sync import Client
from tests.lab import ECHO_ANSWER, UNTIL_CANCELLED, Lab, Watched, ask, ask_permission, end, say


def test_turn_is_an_iterator_of_chunks_with_a_summary(lab: Lab) -> None:
    with Client(lab.agent([say("Hello, "), say("world"), end()])) as client:
        session = client.session("s", cwd=lab.project)
        turn = session.prompt("hi")
        chunks = list(turn)
        assert isinstance(chunks[0], StartChunk)
        assert "".join(chunk.delta for chunk in chunks if isinstance(chunk, TextDeltaChunk)) == "Hello, world"
        assert turn.summary().text == "Hello, world"
        assert session.message_list(limit=10).total == 2
        assert client.rpc.session_get(session_id="s").activity == "idle"


def test_stored_session_moves_to_the_agent_of_the_client(lab: Lab) -> None:
    with Client("demo") as client:
        client.session("s", cwd=lab.project).prompt("hi").summary()
    with Client(lab.agent([say("fake"), end()])) as client:
        session = client.session("s")
        assert session.recovery.handed_over_from == "demo"
        assert session.prompt("hi").summary().text == "fake"


def test_execute_returns_a_turn(lab: Lab) -> None:
    with Client(lab.agent([say("4"), end()])) as client:
        assert client.execute("2+2?", cwd=lab.project).summary().text == "4"


def test_errors_are_those_of_the_asyncio_client(lab: Lab) -> None:
    with Client(lab.agent([say("half"), {"exit": 1}])) as client:
        with pytest.raises(TurnFailed) as failed:
            list(client.session("s", cwd=lab.project).prompt("hi"))
        assert failed.value.kind == "agentExited"
        with pytest.raises(AcpipeError) as missing:
            client.rpc.session_get(session_id="no such session")
        assert missing.value.kind == "sessionNotFound"
    with pytest.raises(AcpipeExited):
        client.rpc.agent_list()


def test_client_that_cannot_start_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACPIPE_BIN", "/nowhere")
    before = threading.active_count()
    with pytest.raises(AcpipeNotFound), Client("demo"):
        pass
    assert threading.active_count() == before


def test_handler_may_block_and_use_the_client(lab: Lab) -> None:
    threads: list[threading.Thread] = []

    def on_permission(request: PermissionRequest) -> PermissionAnswer:
        threads.append(threading.current_thread())
        info = client.rpc.session_get(session_id=request.session_id)
        return request.allow() if info.activity == "waiting" else request.deny()

    client = Client(lab.agent([ask_permission(), ECHO_ANSWER, end()]), on_permission=on_permission)
    with client:
        text = client.session("s", cwd=lab.project).prompt("go").summary().text
    assert '"optionId":"yes"' in text
    assert threads[0] is not threading.main_thread()


def cancel_when_asked(client: Client, lab: Lab, asked: threading.Event) -> None:
    turn = client.session("s", cwd=lab.project).prompt("go")
    assert asked.wait(10)
    turn.cancel()
    assert turn.summary().stop_reason == "cancelled"


def test_handler_sees_that_its_question_was_closed(lab: Lab) -> None:
    asked, seen = threading.Event(), threading.Event()

    def on_permission(request: PermissionRequest) -> PermissionAnswer:
        asked.set()
        while request.is_open:
            threading.Event().wait(0.01)
        seen.set()
        return request.allow()

    with Client(lab.agent([ask_permission(), end("cancelled")]), on_permission=on_permission) as client:
        cancel_when_asked(client, lab, asked)
        assert seen.wait(10)


def test_handler_that_goes_on_after_its_question_is_reported(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_loop_thread, "RETURN_SECONDS", 0)
    asked, may_return, reported = threading.Event(), threading.Event(), threading.Event()

    def report(message: str) -> None:
        reported.set()

    monkeypatch.setattr(_loop_thread.logger, "warning", report)

    def on_permission(request: PermissionRequest) -> PermissionAnswer:
        asked.set()
        may_return.wait(30)
        return request.allow()

    with Client(lab.agent([ask_permission(), end("cancelled")]), on_permission=on_permission) as client:
        cancel_when_asked(client, lab, asked)
        assert reported.wait(10)
        may_return.set()


class OneTerminal:
    """A terminal whose command has printed `done` and exited."""

    def create(self, request: CreateTerminalParams) -> CreatedTerminal:
        return CreatedTerminal(terminal_id="term-1")

    def output(self, request: TerminalParams) -> TerminalSaid:
        return TerminalSaid(output="done")

    def wait_for_exit(self, request: TerminalParams) -> TerminalExited:
        return TerminalExited(exit_code=0)

    def kill(self, request: TerminalParams) -> None:
        pass

    def release(self, request: TerminalParams) -> None:
        pass


def test_handler_runs_commands_in_terminals(lab: Lab) -> None:
    steps = [
        ask("terminal/create", command="make", args=[]),
        ask("terminal/wait_for_exit", terminalId="term-1"),
        ask("terminal/kill", terminalId="term-1"),
        ask("terminal/output", terminalId="term-1"),
        ECHO_ANSWER,
        ask("terminal/release", terminalId="term-1"),
        end(),
    ]
    with Client(lab.agent(steps), terminals=OneTerminal()) as client:
        assert '"output":"done"' in client.session("s", cwd=lab.project).prompt("go").summary().text


def test_listener_may_use_the_client(lab: Lab) -> None:
    done = threading.Event()
    states: list[str] = []

    def on_state(params: AgentStateParams) -> None:
        states.append(params.state)
        if params.state == "ready":
            client.rpc.agent_list()
            done.set()

    with Client(lab.agent()) as client:
        client.on(AgentStateParams, on_state)
        client.rpc.agent_connect()
        assert done.wait(10)
    assert states[:2] == ["starting", "ready"]


def test_listener_that_raises_does_not_stop_the_others(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def on_state(params: AgentStateParams) -> None:
        if params.state == "ready":
            done.set()
        raise LookupError(f"broken at {params.state}")

    with Client(lab.agent()) as client:
        client.on(AgentStateParams, on_state)
        client.rpc.agent_connect()
        assert done.wait(10)
    assert "LookupError: broken at starting" in caplog.text


def test_ctrl_c_cancels_the_turn(lab: Lab) -> None:
    with Client(lab.agent(UNTIL_CANCELLED, [say("next"), end()])) as client:
        session = client.session("s", cwd=lab.project)

        def interrupt(params: ChunkParams) -> None:
            if isinstance(params.chunk, TextDeltaChunk):
                os.kill(os.getpid(), signal.SIGINT)

        remove = client.on(ChunkParams, interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.prompt("hi").summary()
        remove()
        assert session.prompt("again").summary().text == "next"
    assert len(lab.received("session/cancel")) == 1


def test_ctrl_c_while_the_client_closes_kills_acpipe(lab: Lab) -> None:
    agent = lab.agent(start=[{"ignoreTerm": True}], eof=[{"hang": True}])

    def interrupt(params: AgentStateParams) -> None:
        if params.state == "stopping":
            os.kill(os.getpid(), signal.SIGINT)

    client = Client(agent)
    client.start()
    client.on(AgentStateParams, interrupt)
    client.rpc.agent_connect()
    acpipe = Watched(client.pid)
    with pytest.raises(KeyboardInterrupt):
        client.close()
    assert acpipe.has_exited()


def test_break_and_the_end_of_a_block_cancel_a_turn(lab: Lab) -> None:
    with Client(lab.agent(UNTIL_CANCELLED, UNTIL_CANCELLED, [say("next"), end()])) as client:
        session = client.session("s", cwd=lab.project)
        for chunk in session.prompt("one"):
            if isinstance(chunk, TextDeltaChunk):
                break
        with session.prompt("two") as turn:
            for chunk in turn:
                if isinstance(chunk, TextDeltaChunk):
                    break
        assert turn.outcome().stop_reason == "cancelled"
        assert session.prompt("three").summary().text == "next"
    assert len(lab.received("session/cancel")) == 2


def test_cancel_from_another_thread_ends_the_turn(lab: Lab) -> None:
    with Client(lab.agent(UNTIL_CANCELLED)) as client:
        turn = client.session("s", cwd=lab.project).prompt("hi")
        begun = threading.Event()

        def cancel() -> None:
            begun.wait()
            turn.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        for chunk in turn:
            if isinstance(chunk, TextDeltaChunk):
                begun.set()
        thread.join()
        assert turn.summary().stop_reason == "cancelled"


NOT_CLOSED = """
import sys, threading
from acpipe.sync import Client

def never(request):
    print(client.pid, flush=True)
    threading.Event().wait()

client = Client(sys.argv[1:], on_permission=never)
client.start()
turn = client.session("s").prompt("go")
sys.stdin.readline()
"""


def test_program_that_ends_without_closing_leaves_no_process(lab: Lab) -> None:
    command = [sys.executable, "-c", NOT_CLOSED, *lab.agent([ask_permission(), end()])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=lab.project
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        acpipe = Watched(int(program.stdout.readline()))
        program.stdin.write("\n")
        program.stdin.flush()
        # The handler still blocks in its thread, which does not keep the program alive.
        assert program.wait(timeout=20) == 0
    assert acpipe.has_exited(within=10)
