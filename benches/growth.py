#!/usr/bin/env python3
"""Shows how the cost of acpipe grows with sessions, history and the size of chunks, as plots in docs/internals/plots.

    python3 benches/growth.py                   all plots
    python3 benches/growth.py history           one of: sessions, history, chunks
    QUICK=1                                     without the largest sizes; prints the figures and writes no plot
    ACPIPE_BIN=PATH AGENT_BIN=PATH              measures these programs instead of building them

- sessions: idle sessions of one agent in one `acpipe serve`: memory, and the time from a prompt in
  one of them to its first text
- history: a stored session: the time of `session/get` in a new process, and of `message/list` with its last 100 messages
- chunks: CPU time of `acpipe run -o chunks` for text in updates of a size
"""

import json
import os
import sys
import time
from statistics import median

from measure import HOME, ROOT, Serve, adopt_orphans, environment, note, programs, sample
from svg import plot

PLOTS = ROOT / "docs/internals/plots"
QUICK = os.environ.get("QUICK", "0") != "0"


def decades(low, high):
    return [10**exponent for exponent in range(low, high + (0 if QUICK else 1))]


def open_sessions(acpipe, agent, *options):
    """Memory in MB, and ms from a prompt in the first session to its first text, by the number of sessions."""
    serve = Serve(environment(), acpipe, "serve", *options, "--", agent, "--flood", "--updates", "1")
    opened, memory, latency = 0, [], []
    for count in decades(0, 4):
        while opened < count:
            opened += 1
            serve.call("session/ensure", sessionId=f"s{opened}", cwd=str(HOME))
        # Cards of the new sessions are still being written.
        time.sleep(0.5)
        memory.append((count, serve.memory() / 1e3))
        latency.append((count, median(serve.first_text("s1") for _ in range(100))))
        note(f"{count} sessions {' '.join(options)}: {memory[-1][1]:.1f} MB, first text after {latency[-1][1]:.2f} ms")
    serve.close()
    return memory, latency


def sessions(acpipe, agent):
    live, live_latency = open_sessions(acpipe, agent, "--max-sessions", "10000")
    some, some_latency = open_sessions(acpipe, agent)
    names = ("all live", "at most 1,024 live (default)")
    memory, latency = zip(names, (live, some)), zip(names, (live_latency, some_latency))
    return {
        "sessions-memory": plot("Memory of acpipe with open sessions", "sessions", "MB", list(memory)),
        "sessions-latency": plot("Prompt to first text beside idle sessions", "sessions", "ms", list(latency)),
    }


AT = "2026-11-01T00:00:00.000Z"
TURN = "".join(
    line + "\n"
    for line in [
        '{"record":"prompt","at":"AT","turnId":"turn@","message":{"id":"user@","role":"user","parts":[{"type":"text","text":"go on"}]}}',
        '{"record":"chunk","turnId":"turn@","seq":#1,"chunk":{"type":"start","messageId":"msg@"}}',
        '{"record":"chunk","turnId":"turn@","seq":#2,"chunk":{"type":"text-start","id":"1"}}',
        '{"record":"chunk","turnId":"turn@","seq":#3,"chunk":{"type":"text-delta","id":"1","delta":"the quick brown fox jumps"}}',
        '{"record":"chunk","turnId":"turn@","seq":#4,"chunk":{"type":"text-end","id":"1"}}',
        '{"record":"chunk","turnId":"turn@","seq":#5,"chunk":{"type":"finish"}}',
        '{"record":"end","at":"AT","turnId":"turn@","summary":{"turnId":"turn@"}}',
    ]
).replace("AT", AT)


def write_history(path, messages):
    """Writes the log of a session with this many messages, in turns of two."""
    identity = {"record": "session", "at": AT, "format": 1, "sessionId": "long", "createdAt": AT, "cwd": "/project"}
    identity.update(agent="agent", agentSessionId="long")
    # A format string takes the number of the turn, then the numbers of its chunks.
    turn = TURN.replace("%", "%%").replace("@", "%(n)d")
    for chunk in range(1, 6):
        turn = turn.replace(f"#{chunk}", f"%(c{chunk})d")
    with path.open("w", buffering=1 << 20) as log:
        log.write(json.dumps(identity) + "\n")
        for n in range(messages // 2):
            seq = n * 5
            log.write(turn % {"n": n, "c1": seq + 1, "c2": seq + 2, "c3": seq + 3, "c4": seq + 4, "c5": seq + 5})


def read_history(acpipe, env, messages):
    """Milliseconds of `session/get` and of the last page in a new process."""
    serve = Serve(env, acpipe, "serve")
    opened, info = serve.timed("session/get", sessionId="long")
    last = serve.call("message/last", sessionId="long")["message"]["id"]
    page, listed = serve.timed("message/list", sessionId="long", before=last, limit=100)
    serve.close()
    if info["messages"] != messages or len(listed["messages"]) != min(100, messages - 1):
        raise SystemExit(f"{info['messages']} messages of {messages}, a page of {len(listed['messages'])}")
    return opened, page


def history(acpipe, _agent):
    first, again, page = [], [], []
    for messages in decades(1, 6):
        firsts, agains = [], []
        for _ in range(5 if messages <= 10_000 else 1):
            env = dict(environment(), ACPIPE_STATE_DIR=str(HOME / "state"))
            (HOME / "state/sessions").mkdir(parents=True)
            write_history(HOME / "state/sessions/long.jsonl", messages)
            firsts.append(read_history(acpipe, env, messages))
            agains.append(read_history(acpipe, env, messages))
        first.append((messages, median(opened for opened, _ in firsts)))
        again.append((messages, median(opened for opened, _ in agains)))
        page.append((messages, median(listed for _, listed in agains)))
        figures = [line[-1][1] for line in (first, again, page)]
        note("{} messages: opened in {:.2f} ms, again in {:.2f} ms, page in {:.2f} ms".format(messages, *figures))
    lines = [("first opening", first), ("opening again", again), ("page of 100 messages", page)]
    return {"history": plot("A stored session of many messages", "messages", "ms", lines)}


def chunks(acpipe, agent):
    adopt_orphans()
    client = lambda words: [acpipe, "run", "-o", "chunks", "go", "--", *words]
    update, megabyte = [], []
    for size in decades(1, 7):
        # Enough for a CPU time that can be measured.
        updates = min(max(50_000_000 // size, 10), 200_000)
        runs = []
        for _ in range(3):
            start = sample(client, agent, "text", 10)["cpu"]
            runs.append(sample(client, agent, "text", updates, "--delta-bytes", str(size))["cpu"] - start)
        cpu = median(runs)
        update.append((size, cpu / updates))
        megabyte.append((size, cpu / updates / size * 1e6))
        note(f"chunks of {size} B: {update[-1][1]:.2f} µs an update, {megabyte[-1][1] / 1e3:.2f} ms a MB")
    title = "CPU time of text by the size of its updates"
    return {"chunks": plot(title, "bytes of text in an update", "µs", [("an update", update), ("a MB of text", megabyte)])}


def main():
    known = {"sessions": sessions, "history": history, "chunks": chunks}
    wanted = sys.argv[1:] or list(known)
    if odd := [name for name in wanted if name not in known]:
        raise SystemExit(f"{', '.join(odd)}: not one of {', '.join(known)}")
    acpipe, agent = programs()
    for name in wanted:
        for file, text in known[name](acpipe, agent).items():
            if not QUICK:
                PLOTS.mkdir(parents=True, exist_ok=True)
                (PLOTS / f"{file}.svg").write_text(text)


if __name__ == "__main__":
    main()
