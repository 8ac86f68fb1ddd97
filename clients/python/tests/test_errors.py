"""Errors: their kinds, and what a traceback shows."""

from __future__ import annotations

import sys
import traceback

import pytest

from acpipe import AcpipeError, AcpipeExited, Client, InvalidMessage
from acpipe._errors import with_python_names
from tests.lab import Lab


@pytest.mark.parametrize("how", ["session", "execute", "connect"])
@pytest.mark.parametrize(
    ("name", "why"), [("no-such-agent", "not found"), ("on", "is ambiguous; use one of one, one-b")]
)
async def test_name_that_means_no_agent_has_the_kind_agent_not_found(lab: Lab, how: str, name: str, why: str) -> None:
    async with Client() as client:
        for added in ("one", "one-b"):
            await client.rpc.agent_register(added, command="acpipe")
        with pytest.raises(AcpipeError, match=f'^agent "{name}" {why}') as caught:
            if how == "session":
                await client.session("s", agent=name, cwd=lab.project)
            elif how == "execute":
                await client.execute("hi", agent=name)
            else:
                await client.rpc.agent_connect(agent=name)
    assert caught.value.kind == caught.value.data["kind"] == "agentNotFound"
    assert "agent/" not in str(caught.value)


async def test_other_arguments_of_agents_keep_their_kind(lab: Lab) -> None:
    async with Client() as client:
        with pytest.raises(AcpipeError) as caught:
            await client.rpc.agent_register("no name", command="acpipe")
    assert (caught.value.kind, caught.value.data["field"]) == ("invalidParams", "agent")


async def test_session_without_an_agent_is_told_to_name_one(lab: Lab) -> None:
    async with Client() as client:
        with pytest.raises(AcpipeError, match=r"name an agent, or call client\.rpc\.agent_connect\(\)") as caught:
            await client.session("s", cwd=lab.project)
    assert caught.value.kind == "outOfOrder"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('session "s" not found; call session/ensure first', 'session "s" not found; call client.session() first'),
        ("call session/setModel", "call client.rpc.session_set_model()"),
        ("cannot read session/ensure in /agent/connect", "cannot read session/ensure in /agent/connect"),
    ],
)
def test_message_advises_methods_of_this_package(message: str, shown: str) -> None:
    assert with_python_names(message) == shown


@pytest.mark.parametrize(
    "error", [AcpipeError("busy", "why"), AcpipeExited("why"), InvalidMessage("x", KeyError("why"))]
)
def test_traceback_has_the_public_name_and_the_kind(error: AcpipeError) -> None:
    text = "".join(traceback.format_exception(error))
    assert text.startswith(f"acpipe.{type(error).__name__}: ")
    assert ("kind: " + error.kind in text) == (sys.version_info >= (3, 11))
