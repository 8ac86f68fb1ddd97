"""A sandbox without a network: a Linux namespace with only loopback, in which this program is process 1."""
import fcntl
import os
import shutil
import signal
import socket
import struct
import sys
import time
from pathlib import Path

INSIDE = "ACPIPE_REAL_INSIDE"


def enter():
    """Starts this program again inside the sandbox, and returns only there."""
    if os.environ.get(INSIDE) and os.getpid() == 1:
        loopback_up()
        return refuse_network()
    if not shutil.which("unshare"):
        sys.exit("needs unshare (util-linux) on Linux")
    as_root = [] if os.getuid() == 0 else ["--map-root-user"]
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", *as_root, "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                          sys.executable, "-B", *sys.argv])


def loopback_up():
    up_and_running = 0x1 | 0x40
    set_flags = 0x8914                                  # SIOCSIFFLAGS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh22x", b"lo", up_and_running))


def refuse_network():
    """Exits if any network interface but loopback is visible. Called before every start of an agent."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    others = {line.split(":")[0].strip() for line in lines} - {"lo"}
    if others or not os.environ.get(INSIDE) or os.getpid() != 1:
        sys.exit(f"refused: no agent is started outside the sandbox (interfaces: {sorted(others) or 'lo'})")


class Process:
    def __init__(self, pid):
        head, tail = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)
        self.pid, self.name = pid, head.split("(", 1)[1]
        self.state, parent, group = tail.split()[:3]
        self.parent, self.group = int(parent), int(group)
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        self.line = " ".join(words).strip() or self.name


def processes():
    """Returns all live processes of the sandbox, except this one."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and entry != "1":
            try:
                found.append(Process(int(entry)))
            except (FileNotFoundError, ProcessLookupError):
                pass
    return [process for process in found if process.state not in "ZX"]


def reap(children):
    """Reaps the ended processes that process 1 inherited, but none of its own children, whose exit codes are wanted."""
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and int(entry) not in children and Process(entry).state == "Z":
                os.waitpid(int(entry), os.WNOHANG)
        except (FileNotFoundError, ProcessLookupError, ChildProcessError):
            pass                        # it is gone, or its parent is another process


def sweep():
    """Kills all processes left, and reaps those that process 1 inherited."""
    for _ in range(100):
        left = processes()
        for process in left:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        if not left:
            return
        time.sleep(0.02)
