"""Clients for `acpipe run` and `acpipe serve`: one prompt each, recorded as a Turn."""
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import sandbox
from agents import NODE_BIN, QUIET
from cases import GRACE, Turn
from mock_model import PROOF

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import drive        # this also tests the example's client

LIMIT = 180      # seconds for one acpipe process


class Job:
    """One case with one agent: its directories, variables and model."""

    def __init__(self, acpipe, agent, case, model, home, log):
        self.acpipe, self.agent, self.case, self.model = acpipe, agent, case, model
        self.version = agent.package.installed()
        self.variables = agent.variables(model.url, home)   # handed over by acpipe
        self.base = {"PATH": f"{NODE_BIN}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home / "tmp"),
                     "LANG": "C.UTF-8", "TERM": "dumb", **QUIET, **agent.base}     # acpipe's own
        self.home, self.cwd = home, home / "work"
        self.log = log                                      # a Path without suffix, or None
        self.cwd.mkdir()
        (home / "tmp").mkdir()
        agent.configure(model.url, home)


class Watch:
    """A running acpipe and the processes around it. A separate thread watches them, requests the cancel at the right
    moment, and ends what takes too long."""

    def __init__(self, job):
        self.job, self.turn, self.start = job, Turn(), time.monotonic()
        self.turn.asks, self.turn.outputs = job.agent.asks, job.agent.outputs
        self.record = open(f"{job.log}.ndjson", "w") if job.log else None
        self.place = {"env": job.base, "cwd": job.home,
                      "stderr": open(f"{job.log}.stderr", "wb") if job.log else subprocess.DEVNULL}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look_around, daemon=True)
        sandbox.refuse_network()

    def begin(self, child, cancel):
        self.child, self.cancel = child, cancel
        self.turn.groups.add(child.pid)
        self.thread.start()

    def clock(self):
        return time.monotonic() - self.start

    def write_down(self, direction, what):
        if self.record:
            print(json.dumps({"ms": round(self.clock() * 1000), direction: what}, ensure_ascii=False),
                  file=self.record, flush=True)

    def take(self, chunk):
        self.turn.chunks.append(chunk)
        self.turn.ended = self.clock()

    def left(self):
        """Returns whether acpipe was asked to exit during the turn, which then may end in any way."""
        return self.job.case.abrupt and self.turn.cancelled is not None

    def _look_around(self):
        turn, when = self.turn, self.job.case.cancel_when
        while not self.over.wait(0.05):
            turn.proof = (self.job.cwd / PROOF).exists()
            turn.groups |= {p.group for p in sandbox.processes() if p.parent == self.child.pid}
            if when and turn.cancelled is None and when(turn):
                turn.cancelled = self.clock()
                self.write_down("in", "cancel")
                with contextlib.suppress(OSError, ValueError):      # acpipe has exited: the verdict reports it
                    self.cancel()
            if self.clock() > LIMIT:
                turn.notes.append(f"no end after {LIMIT} s")
                return self.child.kill()

    def finish(self):
        """Waits for the exit and counts the processes left."""
        turn = self.turn
        if turn.ended is None:
            turn.ended = self.clock()
        try:
            turn.code = self.child.wait(GRACE + 5)
            turn.exited = self.clock()
            time.sleep(0.1)         # the kernel needs time to remove killed processes
            turn.left = sandbox.processes()
            time.sleep(1 if turn.left else 0)
            there = {process.pid for process in sandbox.processes()}
            turn.stayed = [process for process in turn.left if process.pid in there]
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.over.set()
        self.thread.join()
        turn.proof = (self.job.cwd / PROOF).exists()
        sandbox.sweep()


def run(job):
    """`acpipe run`: chunks on stdout, or for the hello case the summary. SIGINT cancels, a second SIGINT kills."""
    summary = job.case.name == "hello"
    variables = [word for name, value in job.variables.items() for word in ("--env", f"{name}={value}")]
    watch = Watch(job)
    turn = watch.turn
    child = subprocess.Popen([job.acpipe, "run", "-o", "json" if summary else "chunks", "--cwd", job.cwd, *variables,
                              "--permissions", job.case.permissions, job.case.prompt, *job.agent.words()],
                             start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **watch.place)

    def stop():
        child.send_signal(signal.SIGINT)
        if job.case.abrupt:
            time.sleep(0.005)       # two signals at once would count as one
            child.send_signal(signal.SIGINT)

    watch.begin(child, stop)
    child.stdin.close()
    try:
        for line in child.stdout:
            frame = json.loads(line)
            watch.write_down("out", frame)
            if summary:
                turn.summary, turn.ended = frame, watch.clock()
            else:
                watch.take(frame)
    except ValueError:
        turn.notes.append(f"not JSON on stdout: {line[:80]!r}")
        child.terminate()
    watch.finish()
    if job.case.cancel_when and turn.code != 130:
        turn.notes.append(f"exit code {turn.code} in place of 130")
    return turn


class Watched(drive.Acpipe):
    """The example's client, with its messages logged and checked."""

    def __init__(self, watch, *options):
        super().__init__(*options, program=watch.job.acpipe, **watch.place)
        self.watch, self.position = watch, None

    def send(self, method, params=None):
        self.watch.write_down("in", {"method": method, "params": params})
        return super().send(method, params)

    def read(self):
        message, turn = super().read(), self.watch.turn
        self.watch.write_down("out", message)
        if message and message.get("method") == "session/chunk":
            seq = message["params"]["seq"]
            if self.position is not None and seq != self.position + 1:
                turn.notes.append(f"seq {seq} after {self.position}")
            self.position = seq
            self.watch.take(message["params"]["chunk"])
        elif message and "error" in message and not self.watch.left():
            turn.notes.append("error {code}, {message}".format_map(message["error"]))
        return message


def serve(job):
    """`acpipe serve` with examples/drive.py; ended by shutdown, in the exit cases by end of input."""
    watch = Watch(job)
    acpipe, turn = Watched(watch, "--permissions", job.case.permissions), watch.turn

    def stop():
        if job.case.abrupt:
            acpipe.child.stdin.close()
        else:
            acpipe.send("session/cancel")

    watch.begin(acpipe.child, stop)
    try:
        acpipe.call("initialize", {"protocolVersion": 1, "clientInfo": {"name": "acpipe-real", "version": "1"}})
        acpipe.call("agent/connect", {**job.agent.named(), "cwd": str(job.cwd), "env": job.variables})
        acpipe.call("session/ensure")           # an agent may be a process for each session
        version = acpipe.call("agent/status")["agentInfo"]["version"]
        if version != job.version:
            turn.notes.append(f"agent/status says version {version}")
        if list(acpipe.prompt(job.case.prompt)) != turn.chunks:
            turn.notes.append("prompt() gave other chunks than acpipe")
        turn.summary = acpipe.summary
        if not job.case.name.startswith("exit"):
            acpipe.call("shutdown")
    except (drive.Failed, EOFError, ValueError, OSError) as wrong:
        if not watch.left():
            turn.notes.append(f"{type(wrong).__name__}: {wrong}")
            acpipe.child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):        # finish finds out again
        acpipe.close()
    watch.finish()
    if turn.code not in (0, None):
        turn.notes.append(f"exit code {turn.code}")
    return turn
