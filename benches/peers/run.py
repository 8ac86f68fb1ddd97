#!/usr/bin/env python3
"""Compares `acpipe run -o chunks` with other clients of the same agent: CPU time, memory, time to the first chunk.

    python3 benches/peers/run.py            builds acpipe, installs the peers, measures, prints the table
    python3 benches/peers/run.py --write    also replaces the table in README.md
    ROUNDS=2 SCALE=0.1                      fewer rounds, fewer updates
    ACPIPE_BIN=PATH AGENT_BIN=PATH          measures these programs instead of building them

Needs cargo, npm, python3 with venv and /proc. Peers are installed in target/peers, in the versions of the lock files here; a
peer that cannot be installed is left out, with a message. Every client gets the same updates of the same agent, and clients
take turns in each round. CPU time is that of the client and its helpers: the agent reports its own, which is subtracted, and
so is the client's CPU time for a turn of ten updates, its start-up.
"""

import argparse
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
from statistics import median

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = (ROOT / os.environ.get("CARGO_TARGET_DIR", "target")).resolve()
PEERS = TARGET / "peers"
HOME = PEERS / "home"
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SCALE = float(os.environ.get("SCALE", "1"))
FEW = 10
LOADS = {"text": int(100_000 * SCALE), "mixed": int(50_000 * SCALE) // 10 * 10}
README_BLOCK = ("<!-- peers: benches/peers/run.py --write -->\n", "<!-- /peers -->\n")


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(*words, cwd=None, env=None):
    subprocess.run([str(word) for word in words], cwd=cwd, env=env, check=True, stdout=sys.stderr)


# Programs


def acpipe():
    """Paths of acpipe and of the agent."""
    paths = [os.environ.get(name) for name in ("ACPIPE_BIN", "AGENT_BIN")]
    if not all(paths):
        built = ["--bin", "acpipe", "--bin", "fake-agent"]
        run("cargo", "build", "--release", "--features", "fake-agent", *built, cwd=ROOT)
        paths = [path or TARGET / "release" / name for path, name in zip(paths, ("acpipe", "fake-agent"))]
    return [str(Path(path).resolve()) for path in paths]


def install_node():
    """Node and its packages, once for each version of the lock file."""
    directory = PEERS / "node"
    directory.mkdir(parents=True, exist_ok=True)
    lock = HERE / "node/package-lock.json"
    done = directory / "installed"
    shutil.copy(HERE / "node/client.mjs", directory)
    if not done.exists() or done.read_bytes() != lock.read_bytes():
        for name in (".npmrc", "package.json", "package-lock.json"):
            shutil.copy(HERE / "node" / name, directory)
        # Not `npm ci`: it refuses the lock file if a registry lacks an optional package of another platform.
        run("npm", "install", "--no-save", "--no-audit", "--no-fund", cwd=directory)
        done.write_bytes(lock.read_bytes())
    # Fails if the package could not install its program.
    run(directory / "node_modules/.bin/node", "--version")
    return directory


def typescript():
    directory = install_node()
    return lambda agent: [str(directory / "node_modules/.bin/node"), str(directory / "client.mjs"), *agent]


def acpx():
    directory = install_node()
    words = [str(directory / "node_modules/.bin/node"), str(directory / "node_modules/acpx/dist/cli.js")]
    return lambda agent: [*words, "--agent", " ".join(agent), "--format", "json", "exec", "go"]


def python():
    directory = PEERS / "python"
    requirements = HERE / "python/requirements.txt"
    done = directory / "installed"
    if not done.exists() or done.read_bytes() != requirements.read_bytes():
        run(sys.executable, "-m", "venv", "--clear", directory)
        run(directory / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements)
        done.write_bytes(requirements.read_bytes())
    return lambda agent: [str(directory / "bin/python"), str(HERE / "python/client.py"), *agent]


def rust():
    target = PEERS / "rust"
    # Otherwise a target directory in the environment would mix its artifacts with those of acpipe.
    env = dict(os.environ, CARGO_TARGET_DIR=str(target))
    run("cargo", "build", "--release", "--locked", cwd=HERE / "rust", env=env)
    return lambda agent: [str(target / "release/rust-sdk-peer"), *agent]


def lock_version(package):
    lock = json.loads((HERE / "node/package-lock.json").read_text())
    return lock["packages"][f"node_modules/{package}"]["version"]


def peers():
    """Name, kind of work, and installation of each peer."""
    node = lock_version("node").split(".")[0]
    requirements = dict(line.strip().split("==") for line in (HERE / "python/requirements.txt").open())
    crates = (HERE / "rust/Cargo.lock").read_text().split("[[package]]\n")
    crate = next(c for c in crates if c.startswith('name = "agent-client-protocol"\n'))
    python_version = "{}.{}".format(*sys.version_info)
    return [
        (f"Rust SDK {crate.split('version = ', 1)[1].split(chr(34))[1]}", rust),
        (f"TypeScript SDK {lock_version('@agentclientprotocol/sdk')}, Node {node}", typescript),
        (f"Python SDK {requirements['agent-client-protocol']}, Python {python_version}", python),
        (f"acpx {lock_version('acpx')}, Node {node}; passes updates on, no chunks", acpx),
    ]


# Measurement


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


def sample(command, agent, mix, updates):
    """Runs a client once: CPU time in µs, peak memory in KB, ms until the first delta is read."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ACPIPE_"))}
    env.update(HOME=str(HOME), FLOOD_STATS=str(HOME / "stats.json"))
    words = command([agent, "--flood", "--mix", mix, "--updates", str(updates)])
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


def measure_round(command, agent):
    starts = [sample(command, agent, "text", FEW) for _ in range(3)]
    start = median(s["cpu"] for s in starts)
    figures = {"first": median(s["first"] for s in starts)}
    for mix, updates in LOADS.items():
        flood = sample(command, agent, mix, updates)
        figures[mix] = (flood["cpu"] - start) / (updates - FEW)
        if mix == "text":
            figures["peak"] = flood["peak"] / 1024
    return figures


# Table


def digits(number):
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def table(rounds):
    """Rows in the order of the clients. Ratios are medians of the ratios of each round."""
    own = rounds["acpipe"]
    lines = [
        "| client | CPU per update, text | mixed | peak memory | start to first chunk |",
        "|-|-:|-:|-:|-:|",
    ]
    for name, figures in rounds.items():
        cells = [name]
        for mix in LOADS:
            ratio = median(f[mix] / o[mix] for f, o in zip(figures, own))
            cells.append(f"{digits(ratio)} ×" if figures is not own else f"1 ({median(f[mix] for f in own):.1f} µs)")
        cells.append(f"{digits(median(f['peak'] for f in figures))} MB")
        cells.append(f"{digits(median(f['first'] for f in figures))} ms")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_readme(text):
    readme = ROOT / "README.md"
    begin, end = README_BLOCK
    before, _, rest = readme.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"README.md has no block between {begin.strip()} and {end.strip()}")
    readme.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--write", action="store_true", help="replace the table in README.md")
    write = arguments.parse_args().write
    own, agent = acpipe()
    commands, left_out = {"acpipe": lambda words: [own, "run", "-o", "chunks", "go", "--", *words]}, []
    for name, install in peers():
        try:
            commands[name] = install()
        except (OSError, subprocess.CalledProcessError) as error:
            left_out.append(f"{name}: cannot be installed: {error}")
    adopt_orphans()
    for name in list(commands):
        try:
            sample(commands[name], agent, "mixed", FEW)
        except Failed as error:
            if name == "acpipe":
                raise
            del commands[name]
            left_out.append(f"{name}: does not work here: {error}")
    for line in left_out:
        note(f"!!! LEFT OUT: {line}")
    rounds = {name: [] for name in commands}
    for number in range(ROUNDS):
        note(f"round {number + 1} of {ROUNDS}")
        for name, command in commands.items():
            rounds[name].append(measure_round(command, agent))
    text = table(rounds)
    print(text, end="")
    for line in left_out:
        note(f"!!! LEFT OUT: {line}")
    if write and left_out:
        raise SystemExit("README.md is not changed: the table is incomplete")
    if write:
        write_readme(text)


if __name__ == "__main__":
    main()
