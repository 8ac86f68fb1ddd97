"""Handlers and listeners that raise, block, never return, or use the client."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from acpipe import AcpipeExited, Client, PermissionRequest, sync
from acpipe.models import AgentStateParams, PermissionAnswer
from tests.lab import ECHO_ANSWER, Lab, ask_permission, end, say

ASKS = [ask_permission(), ECHO_ANSWER, end()]


def raise_cancelled() -> NoReturn:
    raise asyncio.CancelledError


def raise_stop_iteration() -> Any:
    return next(iter(()))


FAULTS: list[Callable[[], Any]] = [
    lambda: 1 / 0,
    raise_cancelled,
    raise_stop_iteration,
    lambda: None,
    lambda: {"outcome": {"outcome": "selected", "optionId": "yes"}},
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("is_async", [True, False])
async def test_fault_of_a_handler_refuses_the_call(
    lab: Lab, caplog: pytest.LogCaptureFixture, fault: Callable[[], Any], is_async: bool
) -> None:
    async def run(_: PermissionRequest) -> Any:
        return fault()

    async with Client(lab.agent(ASKS), on_permission=run if is_async else lambda _: fault()) as client:
        session = await client.session("s", cwd=lab.project)
        assert '"optionId":"no"' in (await asyncio.wait_for(session.prompt("go").summary(), 20)).text
    assert "the handler of permission/request failed" in caplog.text


@pytest.mark.parametrize("fault", [*FAULTS, sys.exit])
def test_fault_of_a_blocking_handler_refuses_the_call(
    lab: Lab, caplog: pytest.LogCaptureFixture, fault: Callable[[], Any]
) -> None:
    with sync.Client(lab.agent(ASKS), on_permission=lambda _: fault()) as client:
        session = client.session("s", cwd=lab.project)
        assert '"optionId":"no"' in session.prompt("go").summary().text
    assert "the handler of permission/request failed" in caplog.text


async def test_handler_may_close_the_client(lab: Lab) -> None:
    closed = asyncio.Event()

    async def close(request: PermissionRequest) -> PermissionAnswer:
        await client.close()
        closed.set()
        return request.allow()

    client = Client(lab.agent(ASKS), on_permission=close)
    await client.start()
    turn = (await client.session("s", cwd=lab.project)).prompt("go")
    await asyncio.wait_for(closed.wait(), 20)
    assert not (await turn.outcome()).is_error
    with pytest.raises(AcpipeExited, match="code 0"):
        await client.rpc.agent_list()


def test_blocking_handler_may_close_the_client(lab: Lab) -> None:
    closed = threading.Event()

    def close(request: PermissionRequest) -> PermissionAnswer:
        client.close()
        closed.set()
        return request.allow()

    client = sync.Client(lab.agent(ASKS), on_permission=close)
    client.start()
    turn = client.session("s", cwd=lab.project).prompt("go")
    assert closed.wait(20)
    with pytest.raises(AcpipeExited):
        turn.summary()


async def test_handlers_that_never_return_stop_nothing(lab: Lab) -> None:
    asked = asyncio.Event()

    async def never(_: PermissionRequest) -> PermissionAnswer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with Client(lab.agent(ASKS, [say("next"), end()]), on_permission=never) as client:
        waiting = (await client.session("one", cwd=lab.project)).prompt("go")
        await asked.wait()
        other = await client.session("two", cwd=lab.project)
        assert (await other.prompt("go")).text == "next"
    assert not (await waiting.outcome()).is_error


@pytest.mark.parametrize("fault", FAULTS[:2])
async def test_listener_that_raises_stops_no_other_one(
    lab: Lab, caplog: pytest.LogCaptureFixture, fault: Callable[[], Any]
) -> None:
    states: list[str] = []
    async with Client(lab.agent()) as client:
        client.on(AgentStateParams, lambda _: fault())
        client.on(AgentStateParams, lambda params: states.append(params.state))
        await client.rpc.agent_connect()
    assert states[:2] == ["starting", "ready"]
    assert "a listener of agent/state failed" in caplog.text


async def test_listener_that_would_not_be_awaited_is_refused(lab: Lab) -> None:
    async def listener(_: AgentStateParams) -> None: ...

    with pytest.raises(ValueError, match="plain function"):
        Client(lab.agent()).on(AgentStateParams, listener)


async def test_call_whose_task_is_cancelled_stops_no_other_one(lab: Lab) -> None:
    async with Client(lab.agent([say("fine"), end()])) as client:
        calls = [asyncio.create_task(client.rpc.agent_list()) for _ in range(10)]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        session = await client.session("s", cwd=lab.project)
        assert (await session.prompt("go")).text == "fine"


async def test_cancelled_reader_fails_all_calls(lab: Lab) -> None:
    before = asyncio.all_tasks()
    async with Client(lab.agent()) as client:
        tasks = asyncio.all_tasks() - before
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        with pytest.raises(AcpipeExited, match="was cancelled; start a new client"):
            await client.rpc.agent_list()
