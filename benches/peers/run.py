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
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from measure import ROOT, TARGET, Failed, adopt_orphans, note, programs, run, sample

HERE = Path(__file__).resolve().parent
PEERS = TARGET / "peers"
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SCALE = float(os.environ.get("SCALE", "1"))
FEW = 10
LOADS = {"text": int(80_000 * SCALE), "mixed": int(30_000 * SCALE) // 10 * 10}
README_BLOCK = ("<!-- peers: benches/peers/run.py --write -->\n", "<!-- /peers -->\n")


# Peers


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
    own, agent = programs()
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
