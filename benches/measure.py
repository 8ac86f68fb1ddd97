"""Programs under measurement: clients of the flooding agent, measured from outside, and `acpipe serve`. Needs /proc."""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = (ROOT / os.environ.get("CARGO_TARGET_DIR", "target")).resolve()
HOME = TARGET / "bench-home"


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(*words, cwd=None, env=None):
    subprocess.run([str(word) for word in words], cwd=cwd, env=env, check=True, stdout=sys.stderr)


def programs():
    """Paths of acpipe and of the agent: built, or those of ACPIPE_BIN and AGENT_BIN."""
    paths = [os.environ.get(name) for name in ("ACPIPE_BIN", "AGENT_BIN")]
    if not all(paths):
        built = ["--bin", "acpipe", "--bin", "fake-agent"]
        run("cargo", "build", "--release", "--features", "fake-agent", *built, cwd=ROOT)
        paths = [path or TARGET / "release" / name for path, name in zip(paths, ("acpipe", "fake-agent"))]
    return [str(Path(path).resolve()) for path in paths]


def environment():
    """An empty home, and the environment of a program that uses it."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ACPIPE_"))}
    return dict(env, HOME=str(HOME))


class Failed(Exception):
    pass


def adopt_orphans():
    """Makes processes that a client leaves behind children of this one, so that their CPU time is counted."""
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def children(pid):
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def peak_kb(pid, agent):
    """Sum of the peak memory of a process and its descendants without the agent."""
    try:
        if os.readlink(f"/proc/{pid}/exe") == agent:
            return 0
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    own = status.partition("VmHWM:")[2].split()
    return (int(own[0]) if own else 0) + sum(peak_kb(child, agent) for child in children(pid))


def reap(first):
    """Waits for all children; returns the status of the first one."""
    status, deadline = None, time.monotonic() + 20
    while True:
        try:
            pid, one = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == first:
            status = one
        if pid == 0:
            if time.monotonic() > deadline:
                for left in children(os.getpid()):
                    os.kill(left, signal.SIGKILL)
                raise Failed("it left processes, or did not exit")
            time.sleep(0.001)


def sample(command, agent, mix, updates, *more):
    """Runs a client once: CPU time in µs, peak memory in KB, ms until the first delta is read."""
    env = dict(environment(), FLOOD_STATS=str(HOME / "stats.json"))
    words = command([agent, "--flood", "--mix", mix, "--updates", str(updates), *more])
    # The last delta of a mixed flood is the sixth of ten updates.
    first, last = b"%08d" % 0, b"%08d" % (updates - (5 if mix == "mixed" else 1))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    with (HOME / "stderr").open("wb") as stderr:
        client = subprocess.Popen(words, cwd=HOME, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr)
    first_ms, complete, peak, sampled, end = None, False, 0, 0.0, b""
    while data := os.read(client.stdout.fileno(), 1 << 18):
        now = time.monotonic()
        data, end = end + data, data[-16:]
        if first_ms is None and first in data:
            first_ms = (now - begin) * 1e3
        complete = complete or last in data
        if now - sampled > 0.01:
            sampled = now
            peak = max(peak, peak_kb(client.pid, agent))
    peak = max(peak, peak_kb(client.pid, agent))
    client.stdout.close()
    client.returncode = reap(client.pid)
    if client.returncode != 0 or not complete:
        text = (HOME / "stderr").read_text(errors="replace")[-500:]
        raise Failed(f"status {client.returncode}, last delta {'came' if complete else 'did not come'}: {text}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6
    return {"cpu": cpu - json.loads((HOME / "stats.json").read_text())["cpuUs"], "peak": peak, "first": first_ms}


class Serve:
    """An `acpipe serve` and its calls."""

    def __init__(self, env, *words):
        pipe = subprocess.PIPE
        with (HOME / "stderr").open("ab") as stderr:
            self.process = subprocess.Popen(words, env=env, cwd=HOME, stdin=pipe, stdout=pipe, stderr=stderr)
        # As /proc and strace name the pipe of its output.
        self.output = f"pipe:[{os.fstat(self.process.stdout.fileno()).st_ino}]"
        self.calls = 0
        self.call("initialize", protocolVersion=1)

    def call(self, method, **params):
        """The result of a call. Notes when the first text came."""
        self.calls += 1
        request = {"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        self.text_at = None
        # Only the response is parsed: other lines must not delay it.
        mark = b'"id":%d,' % self.calls
        for line in self.process.stdout:
            if self.text_at is None and b'"text-delta"' in line:
                self.text_at = time.perf_counter()
            if mark in line[:60] and b'"method"' not in line[:60]:
                response = json.loads(line)
                if "error" in response:
                    raise SystemExit(f"{method}: {response['error']}")
                return response["result"]
        raise SystemExit(f"{method}: acpipe exited")

    def first_text(self, session):
        """Milliseconds from a prompt to its first text. The end of the turn, which waits for the disk, is not counted."""
        begin = time.perf_counter()
        self.call("session/prompt", sessionId=session, message="go")
        return (self.text_at - begin) * 1e3

    def timed(self, method, **params):
        """Milliseconds until the response, and the response."""
        begin = time.perf_counter()
        result = self.call(method, **params)
        return (time.perf_counter() - begin) * 1e3, result

    def memory(self):
        """Resident memory in KB."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise SystemExit(f"acpipe serve exited with {self.process.returncode}")
