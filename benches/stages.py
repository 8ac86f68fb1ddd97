#!/usr/bin/env python3
"""Prints the cost of an update in `acpipe serve` by stage: instructions, and system calls of 1,000 updates.

    python3 benches/stages.py               builds acpipe with line numbers, measures, prints the table
    python3 benches/stages.py --write       also replaces the table in docs/internals/performance.md
    ACPIPE_BIN=PATH AGENT_BIN=PATH CLAUDE_BIN=PATH      measures these programs; acpipe needs line numbers

Needs valgrind and strace. Figures are the difference of a turn of 22,000 updates and one of 2,000 (instructions) or 10 (system
calls), so that start-up cancels out.

Instructions are counted by callgrind. `stages.txt` has the stage of each source file. Code of other crates belongs to the
acpipe function that it is compiled into. A function of another crate (memcpy, the allocator, serde_json) belongs to its
callers: its cost is divided among them as callgrind divides it. System calls belong to the stage of their file or pipe; of
three runs, the one with the median number is shown.
"""

import os
import re
import sys
from collections import defaultdict
from pathlib import Path

from measure import HOME, ROOT, TARGET, Serve, environment, note, run

STAGES = ["read", "find", "parse", "route", "translate", "log", "envelope", "write", "loop", "memory", "other"]
FLOODS = ["text", "mixed", "claude"]
START, FEW, MANY = 10, 2_000, 22_000
PAGE = ROOT / "docs/internals/performance.md"
BLOCK = ("<!-- stages: benches/stages.py --write -->\n", "<!-- /stages -->\n")


def programs():
    names = ("ACPIPE_BIN", "AGENT_BIN", "CLAUDE_BIN")
    paths = [os.environ.get(name) for name in names]
    if not all(paths):
        target = TARGET / "stages"
        lines = ["--config", 'profile.release.debug="line-tables-only"', "--config", 'profile.release.strip="none"']
        built = [word for name in ("acpipe", "fake-agent", "fake-claude") for word in ("--bin", name)]
        run("cargo", "build", "--release", "--features", "fake-agent", "--target-dir", target, *built, *lines, cwd=ROOT)
        built = (target / "release" / name for name in ("acpipe", "fake-agent", "fake-claude"))
        paths = [path or file for path, file in zip(paths, built)]
    return [str(Path(path).resolve()) for path in paths]


# A flood


def flood(prefix, paths, mix, updates):
    """Runs a turn of `acpipe serve` in another program; returns the serve, which has ended."""
    acpipe, agent, claude = paths
    env = dict(environment(), CLAUDE_CLI_PATH=claude)
    if mix == "claude":
        words, message = [], f'[{{"repeat":[{updates},[{{"delta":"{{i}} the quick brown fox jumps"}}]]}}]'
        ensure, last = {"agent": "claude"}, f"{updates - 1} the quick"
    else:
        words, message = ["--", agent, "--flood", "--mix", mix, "--updates", str(updates)], "go"
        # The last delta of a mixed flood is the sixth of ten updates.
        ensure, last = {}, f"{updates - (5 if mix == 'mixed' else 1):08}"
    serve = Serve(env, *prefix, acpipe, "serve", *words)
    serve.call("session/ensure", sessionId="s", cwd=str(HOME), **ensure)
    summary = serve.call("session/prompt", sessionId="s", message=message)
    serve.close()
    if last not in summary["text"]:
        raise SystemExit(f"of {updates} {mix} updates the last delta did not come")
    return serve


# Instructions


def stage_list():
    lines = (ROOT / "benches/stages.txt").read_text().splitlines()
    pairs = [line.split() for line in lines if line and not line.startswith("#")]
    return sorted(((prefix, stage) for stage, prefix in pairs), key=lambda pair: -len(pair[0]))


class Profile:
    """Costs of a callgrind profile by stage."""

    def __init__(self, path, stages):
        self.stages = stages
        self.known = {}
        self.own = defaultdict(float)
        # Files of acpipe without a stage: their cost and that of their calls.
        self.unlisted = defaultdict(float)
        # Functions of other crates: own cost, and cost of the calls by caller, which is ("stage", name) or ("function", name).
        self.foreign = defaultdict(float)
        self.calls = defaultdict(lambda: defaultdict(float))
        self.homes = {}
        self.read(path)
        self.divide()

    def stage(self, file):
        """Stage of a source file of acpipe; None for a file of another crate."""
        if file not in self.known:
            path = file.removeprefix(f"{ROOT}/")
            found = next((stage for prefix, stage in self.stages if path.startswith(prefix)), "other")
            self.known[file] = found if path.startswith(("src/", "crates/")) else None
        return self.known[file]

    def place(self, file, function):
        """The stage or function to which cost at a line of this file within this function belongs."""
        stage = self.stage(file) or self.stage(self.homes[function])
        return ("stage", stage) if stage else ("function", function)

    def read(self, path):
        """Reads the profile; its format is described in valgrind's manual."""
        names = {"fl": {}, "fn": {}}

        def name(space, text):
            number, _, rest = text.partition(" ")
            return names[space].setdefault(number, rest)

        file = function = home = callee = callee_file = None
        for line in path.open():
            line = line.rstrip("\n")
            key, _, value = line.partition("=")
            if key == "fl":
                file = home = name("fl", value)
            elif key in ("fi", "fe"):
                file = name("fl", value)
            elif key == "fn":
                function, file = name("fn", value), home
                self.homes.setdefault(function, home)
            elif key in ("cfi", "cfl"):
                callee_file = name("fl", value)
            elif key == "cfn":
                callee = name("fn", value)
                self.homes.setdefault(callee, callee_file or file)
                callee_file = None
            elif key == "calls":
                pass
            elif line[:1] in "0123456789+-*" and line and function:
                cost = float(line.split()[1])
                place = self.place(file, function)
                if place == ("stage", "other"):
                    self.unlisted[file if self.stage(file) else self.homes[function]] += cost
                if callee:
                    self.calls[callee][place] += cost
                    callee = None
                elif place[0] == "function":
                    self.foreign[function] += cost
                else:
                    self.own[place[1]] += cost

    def divide(self):
        """Divides the cost of foreign functions among the stages that call them, also over several functions."""
        foreign = [function for function in self.homes if self.stage(self.homes[function]) is None]
        shares = {function: {} for function in foreign}
        # Each pass goes one call further; a chain of calls between other crates is rarely longer.
        for _ in range(40):
            for function in foreign:
                share = defaultdict(float)
                for (kind, caller), cost in self.calls[function].items():
                    for stage, part in ({caller: 1.0} if kind == "stage" else shares[caller]).items():
                        share[stage] += cost * part
                whole = sum(share.values())
                shares[function] = {stage: part / whole for stage, part in share.items()} if whole else {}
        for function, cost in self.foreign.items():
            for stage, part in (shares[function] or {"other": 1.0}).items():
                self.own[stage] += cost * part


def instructions(paths, mix, updates, stages):
    out = HOME.parent / "callgrind"
    for old in HOME.parent.glob("callgrind.*"):
        old.unlink()
    serve = flood(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}.%p", "--quiet"], paths, mix, updates)
    return Profile(Path(f"{out}.{serve.process.pid}"), stages)


# System calls

MEMORY = {"brk", "madvise", "mmap", "mprotect", "mremap", "munmap"}
WAITING = {"clock_nanosleep", "epoll_ctl", "epoll_pwait", "epoll_wait", "futex", "restart_syscall", "rt_sigreturn", "sched_yield"}


def stage_of_call(name, arguments, client):
    if name in MEMORY:
        return "memory"
    if name in WAITING or "[eventfd]" in arguments or "[eventpoll]" in arguments:
        return "loop"
    if "/sessions/" in arguments:
        return "log"
    if client in arguments:
        return "write"
    if name.startswith(("read", "recv")) and ("pipe:" in arguments or "socket:" in arguments or "UNIX" in arguments):
        return "read"
    return "other"


def system_calls(paths, mix, updates):
    trace = HOME.parent / "strace"
    trace.unlink(missing_ok=True)
    serve = flood(["strace", "-f", "-b", "execve", "-y", "-qq", "-s", "8", "-o", str(trace)], paths, mix, updates)
    calls = defaultdict(int)
    threads, starting = set(), set()
    for line in trace.open(errors="replace"):
        thread, _, call = line.partition(" ")
        call = call.lstrip()
        threads = threads or {thread}
        if thread not in threads:
            continue
        # Other processes, the supervisor and the agent, are not counted.
        if "CLONE_THREAD" in call:
            starting.add(thread)
        if thread in starting and (started := re.search(r"\) = (\d+)$", call)):
            starting.discard(thread)
            threads.add(started[1])
        if made := re.match(r"(\w+)\((.*)", call):
            calls[stage_of_call(made[1], made[2], serve.output)] += 1
    return calls


def calls_per_thousand(paths, mix):
    # How many updates a read returns differs between runs: the difference of two floods could be negative.
    start, many = (system_calls(paths, mix, updates) for updates in (START, MANY))
    return {stage: max(many[stage] - start[stage], 0) * 1000 / (MANY - START) for stage in STAGES}


# Table


def table(costs):
    lines = [
        "| stage | " + " | ".join(FLOODS) + " | " + " | ".join(f"{flood}, calls" for flood in FLOODS) + " |",
        "|-|" + "-:|" * 2 * len(FLOODS),
    ]
    totals = [sum(cost.values()) for cost in costs]
    for stage in STAGES:
        if any(abs(cost.get(stage, 0)) >= 0.05 for cost in costs):
            lines.append(row(stage, [cost.get(stage, 0) for cost in costs]))
    return "\n".join([*lines, row("total", totals)]) + "\n"


def row(name, figures):
    half = len(figures) // 2
    cells = [f"{figure:,.0f}" for figure in figures[:half]] + [f"{figure:.1f}" for figure in figures[half:]]
    return f"| {name} | {' | '.join(cells)} |"


def main():
    paths, stages = programs(), stage_list()
    counted, called = [], []
    for mix in FLOODS:
        note(f"{mix}: instructions")
        few, many = (instructions(paths, mix, updates, stages) for updates in (FEW, MANY))
        counted.append({stage: (many.own[stage] - few.own[stage]) / (MANY - FEW) for stage in STAGES})
        for file, cost in many.unlisted.items():
            each = (cost - few.unlisted[file]) / (MANY - FEW)
            if each >= 10:
                note(f"  not in stages.txt: {file}, {each:.0f} an update with its calls")
        note(f"{mix}: system calls")
        called.append(sorted((calls_per_thousand(paths, mix) for _ in range(3)), key=lambda cost: sum(cost.values()))[1])
    text = table(counted + called)
    print(text, end="")
    if "--write" in sys.argv[1:]:
        before, begin, rest = PAGE.read_text().partition(BLOCK[0])
        _, end, after = rest.partition(BLOCK[1])
        if not end:
            raise SystemExit(f"{PAGE} has no block between {BLOCK[0].strip()} and {BLOCK[1].strip()}")
        PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}")


if __name__ == "__main__":
    main()
