"""Toad, a client in a terminal: keys go to a pseudo-terminal, and its log of the protocol shows what happens."""
import ast
import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import threading
import time

import sandbox
from cases import GRACE
from sdk_clients import LIMIT, Ended, Frames, chunks

ENTER, SEND_LINES, ESCAPE, RESUME, QUIT = "\r", "\n", "\x1b", "\x12", "\x11"
SIZE = struct.pack("HHHH", 40, 120, 0, 0)
READY = "How can I help"        # in its empty input
REPEAT = 3          # seconds after which a key is pressed again if nothing happened


class ToadClient:
    """One process of Toad in a terminal, which has one session."""

    def __init__(self, trial, answer="allow"):
        self.trial, self.job, self.key = trial, trial.job, {"allow": "a", "refuse": "r"}[answer]
        self.frames, self.child = Frames(), None
        self.drawn, self.read = b"", 0      # what it drew, and the bytes of the log that were read
        self.log = self.job.home / f"toad-{time.monotonic_ns()}.log"

    def owns(self, process):
        return process.pid == self.child.pid

    def start(self, *words):
        sandbox.refuse_network()
        self.terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, SIZE)
        environment = {**self.job.base, "TERM": "xterm-256color", "TOAD_LOG": str(self.log)}
        self.child = subprocess.Popen([*map(str, self.job.agent.client.program()), *words], cwd=self.job.cwd,
                                      env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
        os.close(inner)
        for task in (self._draw, self._follow):
            threading.Thread(target=task, daemon=True).start()

    def _draw(self):
        """Keeps what Toad draws."""
        with contextlib.suppress(OSError):
            while drawn := os.read(self.terminal, 65536):
                self.drawn += drawn
                self.trial.errors.write(drawn)

    def _follow(self):
        """Reads the log, whose lines are `[client] DICT` or `[agent] JSON`."""
        rest = b""
        while True:
            over = self.child.poll() is not None
            with contextlib.suppress(FileNotFoundError), open(self.log, "rb") as log:
                log.seek(self.read)
                rest += (more := log.read())
                self.read += len(more)
            *lines, rest = rest.split(b"\n")
            for line in lines:
                self._put(line.decode())
            if over:
                return self.frames.end()
            time.sleep(0.02)

    def _put(self, line):
        sender, _, text = line.partition(" ")
        if sender not in ("[client]", "[agent]"):
            return
        read = ast.literal_eval if sender == "[client]" else json.loads
        try:
            found = read(text)
        except (ValueError, SyntaxError):
            return
        for message in found if isinstance(found, list) else [found]:
            frame = {"from": sender[1:-1], **message}
            self.trial.write_down("out", frame)
            self.frames.put(frame)
            if frame.get("method") == "session/request_permission":
                threading.Thread(target=self._answer, args=(len(self.frames.lines),), daemon=True).start()

    def _answer(self, before):
        """Presses the key for a permission request until the agent goes on."""
        for _ in range(10):
            time.sleep(0.5)             # Toad draws the question first
            if len(self.frames.lines) > before:
                return
            self.press(self.key)

    def press(self, keys):
        self.trial.write_down("in", keys)
        os.write(self.terminal, keys.encode())

    def press_until(self, keys, found, what):
        """Presses keys, again if nothing happened, until `found(lines)` returns something."""
        start = time.monotonic()
        while not (result := found(self.frames.lines)):
            if time.monotonic() - start > LIMIT or self.frames.over:
                raise EOFError(f"no {what}")
            for key in keys:
                self.press(key)
                time.sleep(0.3)         # an Escape and a key that follows at once are another key
            again = time.monotonic() + REPEAT
            while time.monotonic() < again and not found(self.frames.lines):
                time.sleep(0.05)
        return result

    def until_drawn(self, text):
        """Waits until Toad has drawn a text."""
        deadline = time.monotonic() + LIMIT
        while text.encode() not in self.drawn:
            if time.monotonic() > deadline or self.frames.over:
                raise EOFError(f"Toad does not show {text!r}")
            time.sleep(0.05)

    def ready(self):
        """Waits for the input. Toad still sets it up after it has drawn it, and loses keys meanwhile."""
        self.until_drawn(READY)
        time.sleep(1.5)

    # ---- what the cases use

    def calls(self, method):
        return [line for line in list(self.frames.lines) if line["from"] == "client" and line.get("method") == method]

    def answer(self, call):
        """Waits for the response to a call."""
        def found(lines):
            return next((line for line in lines if line["from"] == "agent" and line.get("id") == call["id"]
                         and "method" not in line), None)
        return self.frames.until(found, f"answer to {call['method']}")

    def first(self, method):
        return self.frames.until(lambda lines: self.calls(method), method)[0]

    def open(self, name=None):
        self.start("acp", " ".join(str(word) for word in self.job.agent.command(self.job)), str(self.job.cwd))
        answer = self.answer(self.first("session/new"))
        if "result" not in answer:
            raise ValueError(f"session/new: {answer['error']['message']}")
        self.ready()
        return answer["result"]["sessionId"]

    def load(self, session):
        """Resumes the newest session in Toad's list. Returns the texts that were replayed."""
        self.start(str(self.job.cwd))
        self.until_drawn("Resume")                          # in the list of keys
        self.press(RESUME)
        self.until_drawn("Not all ACP agents")              # in the list of sessions
        time.sleep(1)                                       # its rows come after that
        self.press(ENTER)
        call = self.first("session/load")
        if call["params"]["sessionId"] != session:
            self.trial.notes.append(f"session/load of {call['params']['sessionId']}, not {session}")
        if "error" in (answer := self.answer(call)):
            raise ValueError(f"session/load: {answer['error']['message']}")
        self.ready()
        updates = self.updates()
        return "".join(chunks(updates, "user_message_chunk")), "".join(chunks(updates))

    def send(self, session, text):
        before, pieces = len(self.calls("session/prompt")), len(chunks(self.updates()))
        self.press(f"\x1b[200~{text}\x1b[201~")
        key = SEND_LINES if "\n" in text else ENTER
        self.press_until([key], lambda _: len(self.calls("session/prompt")) > before, "session/prompt")
        return self.calls("session/prompt")[before], pieces

    def wait(self, turn):
        call, before = turn
        answer = self.answer(call)
        text = "".join(chunks(self.updates())[before:])
        return Ended(text, answer.get("result", {}).get("stopReason"), answer.get("error", {}).get("message"))

    def updates(self):
        return [line["params"]["update"] for line in list(self.frames.lines) if line.get("method") == "session/update"]

    def seen(self, session):
        return "".join(chunks(self.updates()))

    def until_pieces(self, turn, count):
        self.frames.until(lambda _: len(chunks(self.updates())) >= turn[1] + count, f"{count} pieces of text")

    def asked(self):
        return sum(line.get("method") == "session/request_permission" for line in self.frames.lines)

    def cancel(self, session):
        self.press_until([ESCAPE, ESCAPE], lambda _: self.calls("session/cancel"), "session/cancel")

    def kill(self):
        self.child.kill()
        self.child.wait()

    def close(self):
        self.press(QUIT)
        self.child.wait(GRACE + 5)
        os.close(self.terminal)
