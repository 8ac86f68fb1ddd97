"""Agents that follow scripts, and the steps of these scripts.

`fake-agent` is built beside acpipe: `cargo build --bins --features fake-agent`. Its scripts are described in
`tests/fake_agent.rs`.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import uuid
from pathlib import Path
from typing import Any

import acpipe

Step = dict[str, Any]

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def say(text: str) -> Step:
    """The agent sends text."""
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}


def ask(method: str, **params: Any) -> Step:
    """The agent sends a request and waits for the answer."""
    return {"ask": {"method": method, "params": params}}


def ask_permission() -> Step:
    """The agent asks whether it may run a command."""
    call = {"toolCallId": "call-1", "title": "Run make", "kind": "execute", "rawInput": {"command": "make"}}
    return ask("session/request_permission", toolCall=call, options=OPTIONS)


def wait_for(method: str) -> Step:
    """The agent waits until it has received a message."""
    return {"wait": method}


def end(reason: str = "end_turn") -> Step:
    """The agent ends the turn."""
    return {"reply": {"stopReason": reason}}


ECHO_ANSWER: Step = {"echoAnswer": True}
UNTIL_CANCELLED = [say("working"), wait_for("session/cancel"), end("cancelled")]


class Lab:
    """The files of a test."""

    def __init__(self, directory: Path) -> None:
        self.dir = directory
        self.project = directory / "project"
        self.project.mkdir()

    def environment(self) -> dict[str, str]:
        """Returns the variables that keep acpipe away from the user's files."""
        names = {"ACPIPE_STATE_DIR": "state", "XDG_CONFIG_HOME": "config", "FAKE_AGENT_LOG": "agent.log"}
        found = {name: str(self.dir / value) for name, value in names.items()}
        # Programs that a test starts import the package that is tested.
        return found | {"ACPIPE_NO_PATH_PROBE": "1", "PYTHONPATH": str(Path(acpipe.__file__).parent.parent)}

    def agent(self, *turns: list[Step], **runs: Any) -> list[str]:
        """Returns the command line of an agent whose n-th turn performs the n-th list of steps."""
        script: dict[str, Any] = dict(runs)
        if turns:
            script["session/prompt"] = list(turns)
        path = self.dir / f"{uuid.uuid4().hex}.json"
        path.write_text(json.dumps(script))
        return [fake_agent(), str(path)]

    def received(self, method: str) -> list[Any]:
        """Returns the parameters of the messages of a method that the agents have received."""
        path = self.dir / "agent.log"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line.get("params") for line in lines if line.get("method") == method]


def fake_agent() -> str:
    """Returns the path of the scripted agent."""
    program = shutil.which("acpipe")
    found = Path(program).resolve().parent / "fake-agent" if program else None
    if found is None or not found.exists():
        raise RuntimeError(
            "cannot run the tests: no acpipe in PATH that has fake-agent beside it; run "
            "`cargo build --bins --features fake-agent` and add target/debug to PATH"
        )
    return str(found)


class Watched:
    """A process that is not a child, observed by a descriptor: its id cannot be reused meanwhile."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)

    def kill(self) -> None:
        """Kills the process."""
        signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def has_exited(self, within: float = 0) -> bool:
        """Whether the process has exited, or exits within a number of seconds."""
        return bool(select.select([self._descriptor], [], [], within)[0])

    def __del__(self) -> None:
        os.close(self._descriptor)
