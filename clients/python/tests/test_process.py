"""The acpipe process: start, exit, and what is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from acpipe import AcpipeError, AcpipeExited, Client, find_acpipe
from acpipe.models import TextDeltaChunk
from tests.lab import UNTIL_CANCELLED, Lab, Watched, end, say


async def agent_process(client: Client) -> Watched:
    """Returns the process of the connected agent."""
    pid = (await client.rpc.agent_status()).pid
    assert pid is not None
    return Watched(pid)


async def test_close_leaves_no_process(lab: Lab) -> None:
    async with Client(lab.agent()) as client:
        await client.rpc.agent_connect()
        acpipe, agent = Watched(client.pid), await agent_process(client)
        assert not acpipe.has_exited()
    assert acpipe.has_exited()
    assert agent.has_exited()


async def test_close_ends_a_running_turn(lab: Lab) -> None:
    async with Client(lab.agent(UNTIL_CANCELLED)) as client:
        session = await client.session("s", cwd=lab.project)
        turn = session.prompt("hi")
        async for chunk in turn:
            if isinstance(chunk, TextDeltaChunk):
                break
    assert (await turn.outcome()).stop_reason == "cancelled"


async def test_close_under_cancellation_leaves_no_process(lab: Lab) -> None:
    watched: list[Watched] = []
    begun = asyncio.Event()

    async def work() -> None:
        async with Client(lab.agent(UNTIL_CANCELLED)) as client:
            session = await client.session("s", cwd=lab.project)
            watched.extend([Watched(client.pid), await agent_process(client)])
            async for chunk in session.prompt("hi"):
                if isinstance(chunk, TextDeltaChunk):
                    begun.set()

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [process.has_exited() for process in watched] == [True, True]


async def test_second_cancellation_kills_acpipe(lab: Lab) -> None:
    stays = {"ignoreTerm": True}
    agent = lab.agent(start=[stays], eof=[{"hang": True}])
    opened, closing = asyncio.Event(), asyncio.Event()
    watched: list[Watched] = []
    clients: list[Client] = []

    async def work() -> None:
        async with Client(agent) as client:
            await client.rpc.agent_connect()
            watched.extend([Watched(client.pid), await agent_process(client)])
            clients.append(client)
            opened.set()
            try:
                await asyncio.Event().wait()
            finally:
                closing.set()

    task = asyncio.create_task(work())
    await opened.wait()
    task.cancel()
    await closing.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert watched[0].has_exited()
    assert watched[1].has_exited(within=10)
    with pytest.raises(AcpipeExited, match="code -9"):
        await clients[0].rpc.agent_list()


async def test_exit_of_acpipe_ends_turns_and_calls_with_an_error(lab: Lab) -> None:
    async with Client(lab.agent(UNTIL_CANCELLED)) as client:
        session = await client.session("s", cwd=lab.project)
        turn = session.prompt("hi")
        async for chunk in turn:
            if isinstance(chunk, TextDeltaChunk):
                break
        Watched(client.pid).kill()
        with pytest.raises(AcpipeExited, match="acpipe exited with code -9; start a new client") as caught:
            await turn
        assert caught.value.kind == "acpipeExited"
        with pytest.raises(AcpipeExited):
            await session.get()


async def test_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    silent = tmp_path / "acpipe"
    # Reads `initialize`, and does not respond.
    silent.write_text(f"#!/bin/sh\nread -r line\necho $$ > {fifo}\nexec cat > /dev/null\n")
    silent.chmod(0o755)
    task = asyncio.create_task(Client("demo", binary=silent).start())
    program = Watched(int(await asyncio.to_thread(fifo.read_text)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert program.has_exited()


async def test_ctrl_c_in_a_terminal_does_not_reach_acpipe(lab: Lab) -> None:
    async with Client(lab.agent()) as client:
        # The terminal sends SIGINT to the process group of the program.
        assert os.getpgid(client.pid) != os.getpgid(0)


async def test_option_that_acpipe_refuses_is_in_the_error_and_not_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(AcpipeExited, match="unexpected argument '--bogus'") as caught:
        await Client("demo", options=["--bogus"]).start()
    assert caught.value.data["exitCode"] == 2
    assert caplog.text == ""


async def test_unknown_name_of_an_agent_is_an_error_of_its_own_kind(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(AcpipeError, match='agent "no-such-agent" not found') as caught:
        await Client("no-such-agent").start()
    assert caught.value.kind == "agentNotFound"
    assert str(caught.value).startswith("agent")
    assert caplog.text == ""


@pytest.mark.parametrize("exit_code", [0, 1])
async def test_stderr_of_a_start_that_fails_without_a_cause_is_shown_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, exit_code: int
) -> None:
    broken = tmp_path / "acpipe"
    broken.write_text(f"#!/bin/sh\necho the cause >&2\nexit {exit_code}\n")
    broken.chmod(0o755)
    with pytest.raises(AcpipeExited, match=f"acpipe exited with code {exit_code}; start a new client") as caught:
        await Client("demo", binary=broken).start()
    assert (str(caught.value) + caplog.text).count("the cause") == 1


async def test_exit_during_a_turn_shows_the_last_output(lab: Lab, tmp_path: Path) -> None:
    failing = tmp_path / "acpipe"
    failing.write_text(f'#!/bin/sh\n{find_acpipe()} "$@"\necho out of memory >&2\nexit 1\n')
    failing.chmod(0o755)
    async with Client(lab.agent(UNTIL_CANCELLED), binary=failing) as client:
        turn = (await client.session("s", cwd=lab.project)).prompt("hi")
        await turn.__anext__()
        Watched(int(Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text())).kill()
        with pytest.raises(AcpipeExited, match="exited with code 1; start a new client") as caught:
            await turn
    assert ". Its last output:\n" in str(caught.value)
    assert str(caught.value).endswith("\nout of memory")


async def test_stderr_before_the_end_of_the_start_is_logged_after_it(
    lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    noted = tmp_path / "acpipe"
    noted.write_text(f'#!/bin/sh\necho a note >&2\nexec {find_acpipe()} "$@"\n')
    noted.chmod(0o755)
    async with Client(lab.agent(), binary=noted):
        pass
    assert "a note" in caplog.text


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("acpipe demo-agent", r'pass a command line as a list: Client\(\["acpipe", "demo-agent"\]\)'),
        ("/bin/cat", r'pass a command line as a list: Client\(\["/bin/cat"\]\)'),
        ("", "must not be ''"),
        ([], r"must not be \[\]"),
    ],
)
def test_agent_that_can_be_no_name_and_no_command_line_is_an_error(agent: str | list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Client(agent)


def test_options_in_one_string_are_an_error() -> None:
    with pytest.raises(ValueError, match=r'options must be a list, such as \["--timeout", "answer=2s"\]'):
        Client("demo", options="--timeout answer=2s")


async def test_client_that_was_not_started_is_an_error() -> None:
    client = Client("demo")
    with pytest.raises(AcpipeExited, match="not running"):
        await client.session("s")
    with pytest.raises(AcpipeExited, match="not running"):
        client.execute("hi")
    await client.close()


async def test_client_that_was_closed_is_an_error(lab: Lab) -> None:
    async with Client(lab.agent()) as client:
        pass
    with pytest.raises(AcpipeExited):
        await client.rpc.agent_list()
    await client.close()


async def test_shutdown_is_answered(lab: Lab) -> None:
    async with Client(lab.agent()) as client:
        await client.rpc.agent_connect()
        await client.rpc.shutdown()
        with pytest.raises(AcpipeError):
            await client.rpc.agent_connect()


async def test_environment_is_added_to_that_of_the_program(lab: Lab) -> None:
    state = lab.dir / "other-state"
    async with Client(lab.agent([say("x"), end()]), env={"ACPIPE_STATE_DIR": str(state)}) as client:
        session = await client.session("s", cwd=lab.project)
        await session.prompt("hi")
    assert state.exists()
    assert lab.received("session/prompt"), "the agent has no FAKE_AGENT_LOG of the environment"


async def test_long_line_is_read(lab: Lab) -> None:
    text = "x" * 300_000
    async with Client(lab.agent([say(text), end()])) as client:
        session = await client.session("s", cwd=lab.project)
        assert (await session.prompt("hi")).text == text


async def test_text_with_unicode_line_separators_is_one_message(lab: Lab) -> None:
    async with Client(lab.agent([say("a\u2028b\u2029c\u0085d"), end()])) as client:
        session = await client.session("s", cwd=lab.project)
        assert (await session.prompt("hi")).text == "a\u2028b\u2029c\u0085d"


KILLED = """
import asyncio, sys
from acpipe import Client

async def main():
    async with Client(sys.argv[1:]) as client:
        await client.rpc.agent_connect()
        print(client.pid, (await client.rpc.agent_status()).pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


INTERRUPTED = """
import asyncio, sys
from acpipe import Client
from acpipe.models import TextDeltaChunk

async def main():
    async with Client(sys.argv[1:]) as client:
        session = await client.session("s")
        async for chunk in session.prompt("hi"):
            if isinstance(chunk, TextDeltaChunk):
                print(client.pid, flush=True)

asyncio.run(main())
"""


def test_ctrl_c_cancels_the_turn_and_stops_acpipe(lab: Lab) -> None:
    command = [sys.executable, "-c", INTERRUPTED, *lab.agent(UNTIL_CANCELLED)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=lab.project
    ) as program:
        assert program.stdout is not None
        acpipe = Watched(int(program.stdout.readline()))
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=20) == -signal.SIGINT
        assert program.stderr is not None
        assert program.stderr.read().rstrip().endswith("KeyboardInterrupt")
    assert acpipe.has_exited()
    assert len(lab.received("session/cancel")) == 1


def test_killed_program_leaves_no_process(lab: Lab) -> None:
    command = [sys.executable, "-c", KILLED, *lab.agent()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        acpipe, agent = (Watched(int(pid)) for pid in program.stdout.readline().split())
        program.kill()
    assert acpipe.has_exited(within=10)
    assert agent.has_exited(within=10)
