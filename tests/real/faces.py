"""The two ways to use acpipe, `run` and `serve`: one prompt each, seen from outside as a Turn."""
import json
import os
import queue
import signal
import subprocess
import threading
import time

import sandbox
from agents import NODE_BIN, QUIET
from cases import GRACE, Turn
from mock_model import PROOF

LIMIT = 90      # seconds for one acpipe process


class Wrong(Exception):
    """acpipe broke its contract so that the case cannot go on."""


class Job:
    """One case with one agent: where it runs and with what."""

    def __init__(self, acpipe, agent, case, model, home, log):
        self.acpipe, self.case = acpipe, case
        self.command = [str(word) for word in agent.command()]
        self.version = agent.package.installed()
        self.variables = agent.variables(model.url, home)   # handed over by acpipe
        self.base = {"PATH": f"{NODE_BIN}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home / "tmp"),
                     "LANG": "C.UTF-8", "TERM": "dumb", **QUIET}     # acpipe's own
        self.home, self.cwd = home, home / "work"
        self.log = log                                      # a Path without suffix, or None
        self.cwd.mkdir()
        (home / "tmp").mkdir()
        agent.configure(model.url, home)


class Acpipe:
    """A running acpipe, its frames, and the processes around it."""

    def __init__(self, job, *arguments):
        self.job, self.turn = job, Turn()
        self.start = time.monotonic()
        self.frames = queue.Queue()
        self.record = open(f"{job.log}.ndjson", "w") if job.log else None
        errors = open(f"{job.log}.stderr", "wb") if job.log else subprocess.DEVNULL
        sandbox.refuse_network()
        self.child = subprocess.Popen([job.acpipe, *arguments], env=job.base, cwd=job.home, start_new_session=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        self.turn.groups.add(self.child.pid)
        threading.Thread(target=self._read, daemon=True).start()

    def clock(self):
        return time.monotonic() - self.start

    def _read(self):
        for line in self.child.stdout:
            self.frames.put((self.clock(), line))
        self.frames.put((self.clock(), None))

    def write_down(self, direction, what):
        if self.record:
            print(json.dumps({"ms": round(self.clock() * 1000), direction: what}, ensure_ascii=False),
                  file=self.record, flush=True)

    def receive(self):
        """Frames as they come, None between them so that the caller can look around; ends with acpipe's output."""
        while True:
            try:
                at, line = self.frames.get(timeout=0.05)
            except queue.Empty:
                if self.clock() > LIMIT:
                    raise Wrong(f"no end after {LIMIT} s") from None
                yield self.clock(), None
                continue
            if line is None:
                return
            try:
                frame = json.loads(line)
            except ValueError:
                raise Wrong(f"not JSON on stdout: {line[:80]!r}") from None
            self.write_down("out", frame)
            yield at, frame

    def take(self, at, chunk):
        self.turn.chunks.append(chunk)
        self.turn.ended = at

    def look_around(self, cancel):
        """Notes the agent's process group; cancels when the moment has come."""
        turn, when = self.turn, self.job.case.cancel_when
        turn.proof = (self.job.cwd / PROOF).exists()
        turn.groups |= {p.group for p in sandbox.processes() if p.parent == self.child.pid}
        if when and turn.cancelled is None and when(turn):
            turn.cancelled = self.clock()
            self.write_down("in", "cancel")
            cancel()

    def close(self):
        """Waits for the exit and counts what is left."""
        turn = self.turn
        if turn.ended is None:
            turn.ended = self.clock()
        try:
            turn.code = self.child.wait(GRACE + 5)
            turn.exited = self.clock()
            time.sleep(0.1)         # the kernel buries the killed in its own time
            turn.left = sandbox.processes()
            time.sleep(1 if turn.left else 0)
            there = {process.pid for process in sandbox.processes()}
            turn.stayed = [process for process in turn.left if process.pid in there]
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        turn.proof = (self.job.cwd / PROOF).exists()
        sandbox.sweep()


def run(job):
    """`acpipe run`: chunks on stdout, or for the hello case the summary; SIGINT cancels, the second one kills."""
    summary = job.case.name == "hello"
    variables = [word for name, value in job.variables.items() for word in ("--env", f"{name}={value}")]
    acpipe = Acpipe(job, "run", "-o", "json" if summary else "chunks", "--cwd", job.cwd, *variables,
                    "--permissions", job.case.permissions, job.case.prompt, "--", *job.command)
    turn = acpipe.turn

    def stop():
        os.kill(acpipe.child.pid, signal.SIGINT)
        if job.case.abrupt:
            time.sleep(0.005)       # two at once would count as one
            os.kill(acpipe.child.pid, signal.SIGINT)

    try:
        acpipe.child.stdin.close()
        for at, frame in acpipe.receive():
            if frame and summary:
                turn.summary, turn.ended = frame, at
            elif frame:
                acpipe.take(at, frame)
            acpipe.look_around(stop)
    except Wrong as wrong:
        turn.notes.append(str(wrong))
        acpipe.child.terminate()
    acpipe.close()
    if job.case.cancel_when and turn.code != 130:
        turn.notes.append(f"exit code {turn.code} in place of 130")
    return turn


def serve(job):
    """`acpipe serve`: JSON-RPC, chunks as notifications; ended by shutdown, in the exit cases by end of input."""
    acpipe = Acpipe(job, "serve", "--permissions", job.case.permissions)
    turn, frames, numbers = acpipe.turn, acpipe.receive(), iter(range(1, 100))

    def send(method, params):
        number = next(numbers)
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        acpipe.write_down("in", frame)
        acpipe.child.stdin.write(json.dumps(frame).encode() + b"\n")
        acpipe.child.stdin.flush()
        return number

    def stop():
        if job.case.abrupt:
            acpipe.child.stdin.close()
        else:
            send("session/cancel", {})

    def left():
        return job.case.abrupt and turn.cancelled is not None

    def said(error):
        return f"error {error.get('code')}, {error.get('message')}"

    def call(method, params):
        number, position = send(method, params), None
        for at, frame in frames:
            acpipe.look_around(stop)
            if not frame:
                continue
            if frame.get("method") == "session/chunk":
                seq = frame["params"]["seq"]
                if position is not None and seq != position + 1:
                    turn.notes.append(f"seq {seq} after {position}")
                position = seq
                acpipe.take(at, frame["params"]["chunk"])
            elif frame.get("id") == number:
                if "error" in frame and not left():
                    raise Wrong(f"{method}: {said(frame['error'])}")
                return frame.get("result")
            elif "error" in frame:
                turn.notes.append(said(frame["error"]))
        if not left():
            raise Wrong(f"output ended before the answer to {method}")

    try:
        call("initialize", {"protocolVersion": 1, "clientInfo": {"name": "acpipe-real", "version": "1"}})
        call("agent/connect", {"command": job.command[0], "args": job.command[1:], "cwd": str(job.cwd),
                               "env": job.variables})
        version = call("agent/status", {})["agentInfo"]["version"]
        if version != job.version:
            turn.notes.append(f"agent/status says version {version}")
        call("session/ensure", {})
        turn.summary = call("session/prompt", {"message": job.case.prompt})
        if not job.case.name.startswith("exit"):
            call("shutdown", {})
        acpipe.child.stdin.close()
        for _ in frames:
            pass
    except (Wrong, BrokenPipeError) as wrong:
        turn.notes.append(str(wrong))
        acpipe.child.terminate()
    acpipe.close()
    if turn.code not in (0, None):
        turn.notes.append(f"exit code {turn.code}")
    return turn


FACES = {"run": run, "serve": serve}
