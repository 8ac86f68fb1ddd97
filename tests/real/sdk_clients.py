"""Clients on the SDKs of ACP: small programs in `clients/` with one protocol on stdin and stdout, a JSON object a line.

    test -> client      {"number", "call": "new" | "load" | "prompt" | "cancel", "session", "cwd", "text"}
    client -> test      {"number", "result"} or {"number", "error"}, number 0 being `initialize`
                        {"session", "update"}, {"session", "asked": {"toolCall", "options"}}, {"exited"}, {"failed"}

The first argument, `allow` or `refuse`, answers permission requests; the agent's command line follows. At the end of
stdin a client ends its agent as its SDK does.
"""
import json
import subprocess
import threading

import sandbox
from cases import GRACE

LIMIT = 120     # seconds for one call


class Ended:
    """The end of a prompt."""

    def __init__(self, text, stop, error=None):
        self.text, self.stop, self.error = text, stop, error

    def __str__(self):
        return f"error: {self.error}" if self.error else str(self.stop)


class Frames:
    """What a client reports, in order, read by a separate thread."""

    def __init__(self):
        self.lines, self.over, self.changed = [], False, threading.Condition()

    def put(self, line):
        with self.changed:
            self.lines.append(line)
            self.changed.notify_all()

    def end(self):
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def until(self, found, what):
        """Waits until `found(lines)` returns something true, and returns that."""
        with self.changed:
            self.changed.wait_for(lambda: self.over or found(self.lines), LIMIT)
            if result := found(self.lines):
                return result
        raise EOFError(f"the client ended before {what}" if self.over else f"no {what} after {LIMIT} s")

    def of(self, key, session=None):
        with self.changed:
            return [line[key] for line in self.lines if key in line and session in (None, line.get("session"))]


def chunks(updates, kind="agent_message_chunk"):
    """Returns the texts of these updates."""
    return [update["content"].get("text", "") for update in updates if update["sessionUpdate"] == kind]


class SdkClient:
    """One process of a client, and the agent that it starts."""

    def __init__(self, trial, answer="allow"):
        job = trial.job
        sandbox.refuse_network()
        self.trial, self.frames, self.number = trial, Frames(), 0
        words = [*job.agent.client.program(), answer, *job.agent.command(job)]
        self.child = subprocess.Popen([str(word) for word in words], cwd=job.cwd, env=job.base, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=trial.errors, text=True, start_new_session=True)
        threading.Thread(target=self._read, daemon=True).start()
        self.can = self.answer(0, "initialize")["agentCapabilities"]

    def _read(self):
        for line in self.child.stdout:
            line = json.loads(line)
            self.trial.write_down("out", line)
            self.frames.put(line)
        self.frames.end()

    def owns(self, process):
        """Returns whether the process belongs to the client itself."""
        return process.pid == self.child.pid

    def call(self, call, **wish):
        self.number += 1
        line = {"number": self.number, "call": call, **wish}
        self.trial.write_down("in", line)
        self.child.stdin.write(json.dumps(line) + "\n")
        self.child.stdin.flush()
        return self.number

    def answer(self, number, what):
        def found(lines):
            for line in lines:
                if line.get("number") == number or "failed" in line:
                    return line
        line = self.frames.until(found, f"answer to {what}")
        if "result" not in line:
            raise ValueError(f"{what}: {line.get('error') or line.get('failed')}")
        return line["result"]

    # ---- what the cases use

    def open(self, name=None):
        """Creates a session and returns its id."""
        return self.answer(self.call("new", cwd=str(self.trial.job.cwd)), "session/new")["sessionId"]

    def load(self, session):
        """Loads a session. Returns the texts of the user and the agent that were replayed."""
        before = len(self.frames.of("update", session))
        self.answer(self.call("load", session=session, cwd=str(self.trial.job.cwd)), "session/load")
        updates = self.frames.of("update", session)[before:]
        return "".join(chunks(updates, "user_message_chunk")), "".join(chunks(updates))

    def send(self, session, text):
        """Starts a turn and returns its handle."""
        before = len(self.pieces(session))
        return self.call("prompt", session=session, text=text), session, before

    def wait(self, turn):
        number, session, before = turn
        try:
            stop, error = self.answer(number, "session/prompt").get("stopReason"), None
        except ValueError as wrong:
            stop, error = None, str(wrong)
        return Ended("".join(self.pieces(session)[before:]), stop, error)

    def pieces(self, session):
        """Returns the pieces of the agent's text so far."""
        return chunks(self.frames.of("update", session))

    def seen(self, session):
        """Returns all text of the agent that the client received in the session."""
        return "".join(self.pieces(session))

    def until_pieces(self, turn, count):
        number, session, before = turn
        self.frames.until(lambda lines: any(line.get("number") == number for line in lines)
                          or sum(line.get("session") == session and "update" in line
                                 and line["update"]["sessionUpdate"] == "agent_message_chunk"
                                 for line in lines) >= before + count, f"{count} pieces of text")

    def asked(self):
        return len(self.frames.of("asked"))

    def cancel(self, session):
        self.call("cancel", session=session)

    def kill(self):
        self.child.kill()
        self.child.wait()

    def close(self):
        self.child.stdin.close()
        self.child.wait(GRACE + 5)
