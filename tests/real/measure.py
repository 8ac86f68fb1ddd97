#!/usr/bin/env python3
"""Costs of the processes between an app and the Claude Code CLI, with and without an adapter, offline.

acpipe with the CLI's own protocol alternates with acpipe and claude-agent-acp; both use the same CLI.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True      # this folder stays as it is

import agents
import sandbox
from faces import drive

HERE = Path(__file__).resolve().parent
DELTAS, LONG_TURNS, SHORT_TURNS = 2000, 5, 5
TICKS = os.sysconf("SC_CLK_TCK")
CLI = agents.Claude.base["CLAUDE_CLI_PATH"]
WAYS = {    # name -> agent, more of its environment
    "acpipe alone": (agents.AGENTS["claude"], {}),
    "acpipe + adapter": (agents.AGENTS["claude-acp"], {"CLAUDE_CODE_EXECUTABLE": CLI}),
}
ROWS = (    # key, words, format
    ("ready", "start of acpipe to a session that takes prompts", "{:.0f} ms"),
    ("start", "start of acpipe to the first words", "{:.0f} ms"),
    ("first", "first prompt to its first words", "{:.0f} ms"),
    ("later", "later prompt to its first words", "{:.0f} ms"),
    ("pss", "memory beside the CLI, PSS", "{:.1f} MB"),
    ("rss", "memory beside the CLI, RSS", "{:.1f} MB"),
    ("cli pss", "memory of the CLI, PSS", "{:.0f} MB"),
    ("cpu", f"CPU beside the CLI for {DELTAS:,} deltas", "{:.0f} ms"),
    ("cli cpu", f"CPU of the CLI for {DELTAS:,} deltas", "{:.0f} ms"),
    ("wall", f"a turn of {DELTAS:,} deltas", "{:.0f} ms"),
)


def memory(pid, which):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(which + ":"):
            return int(line.split()[1]) / 1024
    return 0


def cpu(pid):
    """Returns the user and system time so far, in ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / TICKS


class Tree:
    """acpipe and the processes that it started, among them the CLI. No tools are used, so there are no other processes.

    The adapter briefly starts a second CLI, to find out who is signed in: this waits until that has exited.
    """

    def __init__(self, model):
        for _ in range(200):
            found = [process for process in sandbox.processes() if process.pid != model]
            self.cli = [process.pid for process in found if process.line.startswith(CLI)]
            self.beside = [process.pid for process in found if process.pid not in self.cli]
            if len(self.cli) == 1:
                return
            time.sleep(0.05)
        sys.exit(f"not one CLI but {len(self.cli)}: {[process.line[:80] for process in found]}")

    def total(self, whose, what, *more):
        return sum(what(pid, *more) for pid in whose)


def prompt(acpipe, text):
    """Returns the milliseconds to the first text and to the end."""
    start, first, count = time.monotonic(), None, 0
    for chunk in acpipe.prompt(text):
        if chunk["type"] == "text-delta":
            first = first or time.monotonic()
            count += 1
    if acpipe.summary["isError"]:
        sys.exit(f"{text}: {acpipe.summary['errors']}")
    return (first - start) * 1000, (time.monotonic() - start) * 1000, count


def sample(program, agent, more, model, url, home):
    """Measures one acpipe, from its start to its exit."""
    cwd = home / "work"
    for path in (cwd, home / "tmp"):
        path.mkdir()
    agent.configure(url, home)
    base = {"PATH": f"{agents.NODE_BIN}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home / "tmp"),
            "LANG": "C.UTF-8", "TERM": "dumb", **agents.QUIET, **agent.base}
    sandbox.refuse_network()
    found, start = {}, time.monotonic()
    acpipe = drive.Acpipe(program=program, env=base, cwd=home, stderr=subprocess.DEVNULL)
    acpipe.call("initialize", {"protocolVersion": 1, "clientInfo": {"name": "measure", "version": "1"}})
    acpipe.call("agent/connect", {**agent.named(), "cwd": str(cwd), "env": {**agent.variables(url, home), **more}})
    acpipe.call("session/ensure")
    ready = time.monotonic()
    found["first"], *_ = prompt(acpipe, "say hello")
    found["ready"], found["start"] = (ready - start) * 1000, (ready - start) * 1000 + found["first"]
    found["later"] = statistics.median(prompt(acpipe, "say hello")[0] for _ in range(SHORT_TURNS))
    tree = Tree(model)
    found["pss"], found["rss"] = tree.total(tree.beside, memory, "Pss"), tree.total(tree.beside, memory, "Rss")
    found["cli pss"] = tree.total(tree.cli, memory, "Pss")
    before = tree.total(tree.beside, cpu), tree.total(tree.cli, cpu)
    turns = [prompt(acpipe, f"big {DELTAS}") for _ in range(LONG_TURNS)]
    if any(count != DELTAS for *_, count in turns):
        print(f"{[count for *_, count in turns]} chunks of {DELTAS} deltas", file=sys.stderr)
    found["cpu"] = (tree.total(tree.beside, cpu) - before[0]) / LONG_TURNS
    found["cli cpu"] = (tree.total(tree.cli, cpu) - before[1]) / LONG_TURNS
    found["wall"] = statistics.median(turn[1] for turn in turns)
    acpipe.call("shutdown")
    acpipe.close()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--acpipe", type=Path, metavar="PATH", default=HERE.parents[1] / "target/dist/acpipe")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="samples of each way (default: 7)")
    chosen = parser.parse_args()
    chosen.acpipe = chosen.acpipe.resolve()
    if not os.access(chosen.acpipe, os.X_OK):
        parser.error(f"no binary at {chosen.acpipe}: cargo build --profile dist, or --acpipe PATH")
    missing = agents.missing(("claude", "claude-acp"))
    if missing:
        parser.error(f"not installed: {', '.join(missing)}; run {HERE / 'agents.py'} {' '.join(missing)}")
    sandbox.enter()
    port = 8500
    model = subprocess.Popen([sys.executable, "-B", HERE / "mock_model.py", str(port)], stderr=subprocess.PIPE)
    url = model.stderr.readline().decode().strip()
    load = os.getloadavg()[0]
    samples = {way: [] for way in WAYS}
    for number in range(chosen.rounds + 1):         # the first round warms the page cache and is left out
        for way, (agent, more) in WAYS.items():
            with tempfile.TemporaryDirectory(prefix="acpipe-measure-") as home:
                found = sample(chosen.acpipe, agent, more, model.pid, url, Path(home))
            print(f"{number} {way:17}", *(f"{key} {value:.1f}" for key, value in found.items()), file=sys.stderr,
                  flush=True)
            if number:
                samples[way].append(found)
    version = subprocess.run([chosen.acpipe, "--version"], capture_output=True, text=True).stdout.strip()
    print(f"{version}, medians of {chosen.rounds} in turns, {os.cpu_count()} cores, load {load:.1f} at the start\n")
    print("| | " + " | ".join(WAYS) + " | ratio |\n|-|-:|-:|-:|")
    for key, words, form in ROWS:
        alone, adapted = (statistics.median(found[key] for found in samples[way]) for way in WAYS)
        print(f"| {words} | {form.format(alone)} | {form.format(adapted)} | {adapted / max(alone, 0.001):.2f} |")


if __name__ == "__main__":
    main()
