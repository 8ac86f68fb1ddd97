"""Test cases with scripted agents: `fake-agent` and `fake-claude`, built beside acpipe (tests/fake_agent.rs, tests/fake_claude.rs)."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest
import uuid
from unittest import mock


def programs():
    """The directory of the build that has acpipe and the scripted agents."""
    found = shutil.which("acpipe")
    directory = pathlib.Path(found).resolve().parent if found else None
    if directory is None or not (directory / "fake-agent").exists():
        raise RuntimeError("no acpipe with fake-agent beside it in PATH: run cargo build --bins --features fake-agent, "
                           "and prepend target/debug to PATH")
    return directory


def say(text):
    """Step of the ACP agent: text of its answer."""
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}


def tool(call, **fields):
    """Step of the ACP agent: a tool call."""
    return {"update": {"sessionUpdate": "tool_call", "toolCallId": call, **fields}}


END = {"reply": {"stopReason": "end_turn"}}


class Case(unittest.IsolatedAsyncioTestCase):
    """A test with a state directory and a home of its own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = pathlib.Path(directory.name).resolve()
        self.project = self.dir / "project"
        self.project.mkdir()
        env = {"ACPIPE_STATE_DIR": "state", "XDG_CONFIG_HOME": "config", "CLAUDE_CONFIG_DIR": "claude", "FAKE_AGENT_LOG": "agent.log"}
        env = {name: str(self.dir / value) for name, value in env.items()} | {"ACPIPE_NO_PATH_PROBE": "1"}
        patch = mock.patch.dict(os.environ, env)
        patch.start()
        self.addCleanup(patch.stop)

    def claude(self, script=None):
        """Claude Code with this script, as parameters of agent/register. A prompt that is a JSON list has the steps of its turn."""
        os.environ["CLAUDE_CLI_PATH"] = str(programs() / "fake-claude")
        os.environ["FAKE_CLAUDE"] = self.file("claude.json", script or {})
        return {"protocol": "claude"}

    def agent(self, *turns, **script):
        """An ACP agent that performs these lists of steps, one for each turn, as parameters of agent/register."""
        if turns:
            script["session/prompt"] = list(turns)
        return {"command": str(programs() / "fake-agent"), "args": [self.file(self.mark(), script)]}

    def file(self, name, content):
        path = self.dir / name
        path.write_text(json.dumps(content))
        return str(path)

    def mark(self):
        """The path of a file that does not exist, for `once` steps."""
        return str(self.dir / uuid.uuid4().hex)

    def log(self):
        """What the agents received."""
        path = self.dir / "agent.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def arguments(self):
        """The command lines of Claude Code's sessions so far."""
        return [line["argv"] for line in self.log() if len(line.get("argv", [])) > 1]
