#!/usr/bin/env python3
"""The smallest pleasant client of `acpipe serve`: a program, and a module with one class.

    examples/drive.py "list the files here"                         the built-in demo agent answers
    examples/drive.py --cwd ~/code/app "fix the tests" -- opencode acp

The answer goes to stdout, all else to stderr. Ctrl-C cancels the turn, a second one ends acpipe.
"""
import argparse
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys


class Failed(Exception):
    """acpipe answered a call with an error: `kind` is for programs, the text for people."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.kind = error.get("data", {}).get("kind")


class Acpipe:
    """A running acpipe. A message is a line of JSON; we read whenever we wait for an answer."""

    def __init__(self, *options, program="acpipe", **popen):
        # In a session of its own, because Ctrl-C reaches every program of a terminal's foreground: acpipe shall
        # hear of it from us, as a cancel. It is never left behind: when its stdin closes, it ends.
        self.child = subprocess.Popen([program, "serve", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      start_new_session=True, **popen)
        self.numbers = itertools.count(1)
        self.summary = None             # of the last turn: text, stop reason, tools, usage, errors …

    def send(self, method, params=None):
        """Asks without waiting; returns the number by which the answer will be known."""
        number = next(self.numbers)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self.child.stdin.write(json.dumps(request).encode() + b"\n")
        self.child.stdin.flush()
        return number

    def read(self):
        """The next message, or None when acpipe has ended."""
        line = self.child.stdout.readline()
        return json.loads(line) if line else None

    def until_answered(self, number):
        """Every message until request `number` is answered; the answer is the last."""
        while (message := self.read()) is not None:
            answer = "method" not in message and message["id"] == number
            if answer and "error" in message:
                raise Failed(message["error"])
            yield message
            if answer:
                return
        raise EOFError("acpipe ended before it answered")

    def call(self, method, params=None):
        """Asks, waits, returns the result. Notifications that come meanwhile are passed over."""
        *_, answer = self.until_answered(self.send(method, params))
        return answer["result"]

    def prompt(self, message, session="default"):
        """Starts a turn at once; iterate over its chunks as they come. Then `summary` says how it went."""
        return self._chunks(self.send("session/prompt", {"sessionId": session, "message": message}), session)

    def _chunks(self, number, session):
        for message in self.until_answered(number):
            # Not for us: agent/state, session/state, session/activity, the answer to a cancel, other sessions.
            if message.get("method") == "session/chunk" and message["params"]["sessionId"] == session:
                yield message["params"]["chunk"]
        self.summary = message["result"]

    def close(self):
        """Ends acpipe and with it the agent, as `shutdown` does. Returns the exit code."""
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.stdout.read()                # it may still have something to say
        return self.child.wait(timeout=10)      # an agent that does not leave is killed after 5 seconds


def show(chunk):
    """Chunks are those of the AI SDK: its UIs take them as they are, a terminal needs only a few."""
    kind = chunk["type"]
    if kind == "text-delta":
        print(chunk["delta"], end="", flush=True)
    elif kind == "text-end":
        print(flush=True)
    elif kind == "tool-input-available":        # more than once, where more of the call becomes known
        note(f"{chunk['toolName']}: {chunk.get('title', '')}")
    elif kind in ("tool-approval-response", "abort", "tool-output-error", "error"):
        note(chunk.get("reason") or chunk["errorText"])


def note(text):
    print(f"  [{text}]", file=sys.stderr, flush=True)


def drive(options, command):
    """One prompt, from the start of acpipe to its end; returns the exit code."""
    acpipe = Acpipe("--permissions", options.permissions, program=options.acpipe)
    try:
        acpipe.call("initialize", {"protocolVersion": 1, "clientInfo": {"name": "drive.py"}})
        where = {"cwd": os.path.abspath(options.cwd)}
        agent = {"command": command[0], "args": command[1:]} if command else {}     # none: the default agent
        acpipe.call("agent/connect", {**agent, **where})
        session = acpipe.call("session/ensure", where)["sessionId"]    # the default session of the directory
        chunks = acpipe.prompt(options.prompt, session)

        def interrupted(*_):
            signal.signal(signal.SIGINT, signal.default_int_handler)    # the next one is a KeyboardInterrupt
            acpipe.send("session/cancel")       # the turn still ends in order: last chunks, then its summary

        signal.signal(signal.SIGINT, interrupted)
        for chunk in chunks:
            show(chunk)
        acpipe.call("shutdown")                 # answered when the agent is gone
        return 1 if acpipe.summary["isError"] else 0
    except (Failed, EOFError) as problem:
        note(problem)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        acpipe.close()


def main():
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)      # what follows is the agent's, untouched
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage="%(prog)s [OPTIONS] PROMPT [-- COMMAND ARGS...]")
    parser.add_argument("prompt")
    parser.add_argument("--acpipe", default="acpipe", metavar="PATH", help="the program (default: acpipe in PATH)")
    parser.add_argument("--permissions", choices=("approve", "deny"), default="approve",
                        help="the answer when the agent asks whether it may run a tool")
    parser.add_argument("--cwd", default=".", metavar="DIR", help="where the agent works (default: here)")
    try:
        return drive(parser.parse_args(words[:split]), words[split + 1:])
    except BrokenPipeError:                     # nobody reads our answer any more, as with | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except FileNotFoundError as problem:
        parser.error(f"{problem.filename} is not there: --acpipe PATH says where acpipe is")


if __name__ == "__main__":
    sys.exit(main())
