#!/usr/bin/env python3
"""Tests real agents through acpipe, offline: every agent in every case, with `acpipe run` and `acpipe serve`."""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True      # this folder stays as it is

import agents
import sandbox
from asking import ASKING, QUESTIONS
from cases import CASES
from client_cases import ALONE, BEHIND, DIRECT, FRONT, front
from clients import CLIENTS
from differences import DIFFERENCES
from doctor import DOCTOR
from faces import Job, run, serve
from forbidden import FORBIDDEN, PLAIN
from mock_model import MockModel
from names import NAMED, ONE, PAIRS, TWO
from native import NATIVE
from recovery import RECOVERIES, recover

HERE = Path(__file__).resolve().parent
EVERY = agents.AGENTS
TABLES = (("acpipe run", CASES, run, EVERY), ("acpipe serve", CASES, serve, EVERY),
          ("Sessions that come back", RECOVERIES, recover, EVERY),
          ("What an agent may do", ASKING, recover, EVERY),
          ("Forbidden tool", FORBIDDEN, recover, PLAIN),
          ("Where agents differ", DIFFERENCES, recover, EVERY),
          ("Questions to the user", QUESTIONS, recover, {name: EVERY[name] for name in ("claude", "claude-acp", "qwen")}),
          ("Claude Code in its own protocol", NATIVE, recover, {"claude": EVERY["claude"]}),
          ("By name", ONE, recover, NAMED), ("Two named agents", TWO, recover, PAIRS),
          ("Doctor", DOCTOR, recover, NAMED),
          ("Clients through acpipe acp", BEHIND, front, FRONT), ("Clients of the agents alone", ALONE, front, DIRECT))
NAMES = list(dict.fromkeys(case.name for _, cases, *_ in TABLES for case in cases))
ROWS = list(dict.fromkeys(name for *_, whose in TABLES for name in whose))


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acpipe", type=Path, metavar="PATH", default=HERE.parents[1] / "target/release/acpipe")
    parser.add_argument("--only", action="append", choices=ROWS, metavar="AGENT",
                        help=f"one of {', '.join(ROWS)}; may be repeated; leaves RESULTS.md as it is")
    parser.add_argument("--case", action="append", choices=NAMES, metavar="CASE",
                        help=f"one of {', '.join(NAMES)}; likewise")
    parser.add_argument("--table", action="append", choices=[title for title, *_ in TABLES], metavar="TITLE",
                        help="title of a table of RESULTS.md; may be repeated; replaces only these tables there")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="agents at a time; more than 1 makes the times in the cells longer")
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)       # file to which a job writes the rows of its agent
    parser.add_argument("--keep-logs", type=Path, metavar="DIR", help="frames and stderr of every case")
    chosen = parser.parse_args()
    chosen.acpipe = chosen.acpipe.resolve()
    if not os.access(chosen.acpipe, os.X_OK):
        parser.error(f"no binary at {chosen.acpipe}: cargo build --release, or --acpipe PATH")
    wanted = [name for title, _, _, whose in tables(chosen) for name in rows_of(title, whose, chosen)]
    names = dict.fromkeys(part for name in wanted for part in name.split(" + "))
    chosen.missing = []
    for script, known in (("agents.py", EVERY), ("clients.py", CLIENTS)):
        if missing := agents.missing([name for name in names if name in known], known):
            print(f"not installed: {', '.join(missing)}; run {HERE / script} {' '.join(missing)}", file=sys.stderr)
            chosen.missing += missing
    return chosen


def tables(chosen):
    """Returns the tables to run, with their cases."""
    found = [(title, [case for case in cases if case.name in (chosen.case or NAMES)], face, whose)
             for title, cases, face, whose in TABLES if title in (chosen.table or title)]
    return [table for table in found if table[1]]


def rows_of(title, whose, chosen):
    """Returns the names of the agents, or pairs, that this table shows."""
    asked_for = chosen.only[:-1] if chosen.rows else chosen.only        # a job adds the name of its agent
    left_out = () if asked_for or title == "Forbidden tool" else agents.FURTHER
    return [name for name in whose if name in (chosen.only or ROWS) and name not in left_out]


def play(acpipe, agent, face, case, model, log):
    """Plays one cell, in a fresh home."""
    with tempfile.TemporaryDirectory(prefix="acpipe-real-") as home:
        return face(Job(acpipe, agent, case, model, Path(home), log))


def left_behind(case, turn):
    """Yields lines such as `cancel in tool: 1 (tail; left the agent's group; gone a second later)`."""
    for whose, found in turn.blame():
        if found:
            after = "still there a second later" if set(found) & set(turn.stayed) else "gone a second later"
            yield f"{case.name}: {len(found)} ({', '.join(sorted(p.name for p in found))}; {whose}; {after})"


def row(name, agent, face, cases, chosen, model):
    """Returns the row of one agent, and whether all its cells are good."""
    cells, left, good = [], [], True
    if set(name.split(" + ")) & set(chosen.missing):
        return f"| {name} | not installed |{' – |' * (len(cases) + 1)}", False
    for case in cases:
        if reason := case.not_offered(agent):
            cells.append(f"not offered ({reason})")
            continue
        log = None
        if chosen.keep_logs:
            log = chosen.keep_logs / "-".join((*name.split(" + "), face.__name__, *case.name.split()))
        turn = play(chosen.acpipe, agent, face, case, model, log)
        faults = case.faults(turn)
        cells.append("**" + "; ".join(faults).replace("|", "\\|") + "**" if faults else case.outcome(turn))
        left += left_behind(case, turn)
        good = good and not faults
        print(f"{name:10} {face.__name__:7} {case.name:15} {cells[-1]}", *left_behind(case, turn), file=sys.stderr,
              flush=True)
    words = (name, agent.package.installed(), *cells, "<br>".join(left) or "0")
    return "| " + " | ".join(words) + " |", good


def play_rows(chosen, names):
    """Plays all cases of these agents in turn. Returns table -> agent -> row, and whether every cell is good."""
    if chosen.keep_logs:
        chosen.keep_logs.mkdir(parents=True, exist_ok=True)
    log = open(chosen.keep_logs / "model.ndjson", "a") if chosen.keep_logs else None
    model, good, rows = MockModel(log=log).start(), True, {}
    for title, cases, face, whose in tables(chosen):
        for name in (name for name in rows_of(title, whose, chosen) if name in names):
            rows.setdefault(title, {})[name], well = row(name, whose[name], face, cases, chosen, model)
            good = good and well
    return rows, good


def play_jobs(chosen, names):
    """Like `play_rows`, with several agents at a time, each in a separate process and sandbox."""
    rows, good = {}, True
    with tempfile.TemporaryDirectory(prefix="acpipe-rows-") as folder, ThreadPoolExecutor(chosen.jobs) as pool:
        def play_agent(name):
            path = Path(folder) / name
            subprocess.run([sys.executable, *sys.argv, "--only", name, "--rows", path], stdout=subprocess.DEVNULL)
            return json.loads(path.read_text()) if path.exists() else None

        for name, found in zip(names, pool.map(play_agent, names)):
            if found is None:
                print(f"{name}: its process ended without a result", file=sys.stderr)
            good = good and found is not None and found[1]
            for title, lines in (found or [{}])[0].items():
                rows.setdefault(title, {}).update(lines)
    return rows, good


def commit():
    """Returns the last commit of this checkout that changed acpipe itself."""
    git = ["git", "-C", HERE.parents[1], "log", "-1", "--format=%h", "--", "src", "Cargo.toml", "Cargo.lock"]
    found = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    return f" ({found})" if found else ""


def write(sections, head, replaced):
    """Writes RESULTS.md, or replaces only these sections of it."""
    path = HERE / "RESULTS.md"
    if replaced:
        head, *old = path.read_text().split("\n## ")
        kept = {text.split("\n", 1)[0]: text.split("\n", 1)[1].strip("\n") for text in old}
        sections = kept | sections
    path.write_text("\n\n".join([head.strip("\n"), *(f"## {title}\n\n{text}" for title, text in sections.items())]) + "\n")


def main():
    # A shell ignores SIGINT in jobs in the background, and acpipe would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = options()
    shown = [rows_of(title, whose, chosen) for title, _, _, whose in tables(chosen)]
    names = [name for name in ROWS if any(name in rows for rows in shown)]
    date, load = time.strftime("%-d %B %Y", time.gmtime()), os.getloadavg()[0]
    version = subprocess.run([chosen.acpipe, "--version"], capture_output=True, text=True).stdout.strip()
    if chosen.rows:
        sandbox.enter()
        rows, good = play_rows(chosen, [chosen.only[-1]])
        chosen.rows.write_text(json.dumps([rows, good]))
        return 0 if good else 1
    build = commit()
    if chosen.jobs > 1:
        rows, good = play_jobs(chosen, names)
    else:
        sandbox.enter()
        rows, good = play_rows(chosen, names)
    at_once = f", {chosen.jobs} agents at a time" if chosen.jobs > 1 else ""
    when = f"{version}{build}, {date}, {os.cpu_count()} cores, load {load:.1f} at the start{at_once}."
    head = f"# Real agents through acpipe\n\n{when} Written by `run.py`; README.md says what the columns mean."
    sections = {}
    for title, cases, *_ in tables(chosen):
        if title in rows:
            first = "client + agent" if title.startswith("Clients") else "agent"
            titles = (first, "version", *(case.name for case in cases), "left behind")
            lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles), *rows[title].values()]
            sections[title] = "\n".join([when, "", *lines] if chosen.table else lines)
    if not chosen.only and not chosen.case:
        write(sections, head, chosen.table)
    print(head, *(f"## {title}\n\n{text}" for title, text in sections.items()), sep="\n\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
