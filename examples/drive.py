#!/usr/bin/env python3
"""A small, complete client of `acpipe serve`: a program, and a module with one class.

    examples/drive.py "list the files here"                         the built-in demo agent answers
    examples/drive.py --cwd ~/code/app "fix the tests" -- opencode acp

The answer goes to stdout, everything else to stderr. Ctrl-C cancels the turn, a second one stops acpipe.
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
    """An error response of acpipe: `kind` is for programs, the message for users."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.kind = error.get("data", {}).get("kind")


class Acpipe:
    """A running acpipe. Each message is one line of JSON, read only while a response is awaited."""

    def __init__(self, *options, program="acpipe", **popen):
        # A process session of its own: Ctrl-C in the terminal reaches this program only, which sends a cancel.
        # acpipe is never left behind: it exits when its stdin closes.
        self.child = subprocess.Popen([program, "serve", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      start_new_session=True, **popen)
        self.numbers = itertools.count(1)
        self.summary = None             # of the last turn: text, stop reason, tool calls, usage, errors …

    def send(self, method, params=None):
        """Sends a request without waiting for its response; returns its id."""
        number = next(self.numbers)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self.child.stdin.write(json.dumps(request).encode() + b"\n")
        self.child.stdin.flush()
        return number

    def read(self):
        """The next message, or None if acpipe has exited. Other lines, such as one of a wrapper, are skipped."""
        while line := self.child.stdout.readline():
            with contextlib.suppress(ValueError, RecursionError):
                message = json.loads(line)
                if isinstance(message, dict) and isinstance(message.get("params", {}), dict):
                    return message
            note(f"cannot use a line of acpipe: {line[:200]!r}")
        return None

    def until_answered(self, number):
        """Every message up to the response to request `number`, which is the last."""
        while (message := self.read()) is not None:
            answer = "method" not in message and message.get("id") == number
            if answer and "error" in message:
                raise Failed(message["error"])
            yield message
            if answer:
                return
        raise EOFError("acpipe exited before it responded")

    def call(self, method, params=None):
        """Sends a request, waits for its response, returns the result. Ignores notifications received meanwhile."""
        *_, answer = self.until_answered(self.send(method, params))
        return answer["result"]

    def prompt(self, message, session="default"):
        """Starts a turn at once; iterate over its chunks as they arrive. `summary` is set after the last."""
        return self._chunks(self.send("session/prompt", {"sessionId": session, "message": message}), session)

    def _chunks(self, number, session):
        for message in self.until_answered(number):
            # Ignored: agent/state, session/state, session/activity, the response to a cancel, other sessions.
            params = message.get("params", {})
            if message.get("method") == "session/chunk" and params.get("sessionId") == session:
                yield params["chunk"]
        self.summary = message["result"]

    def close(self):
        """Stops acpipe and its agent, as `shutdown` does. Returns the exit code."""
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.stdout.read()                # the last messages, so that acpipe never waits for a reader
        return self.child.wait(timeout=10)      # an agent that does not exit is killed after 5 seconds


def show(chunk):
    """Prints a chunk of the AI SDK. A UI of the SDK takes all of them as they are; a terminal needs only a few."""
    kind = chunk["type"]
    if kind == "text-delta":
        print(chunk["delta"], end="", flush=True)
    elif kind == "text-end":
        print(flush=True)
    elif kind == "tool-input-available":        # again when more of the call is known
        note(f"{chunk['toolName']}: {chunk.get('title', '')}")
    elif kind in ("tool-approval-response", "abort", "tool-output-error", "error"):
        note(chunk.get("reason") or chunk["errorText"])


def note(text):
    print(f"  [{text}]", file=sys.stderr, flush=True)


def drive(options, command):
    """Runs one prompt, from the start of acpipe to its exit; returns the exit code."""
    acpipe = Acpipe("--permissions", options.permissions, program=options.acpipe)
    try:
        acpipe.call("initialize", {"protocolVersion": 1, "clientInfo": {"name": "drive.py"}})
        where = {"cwd": os.path.abspath(options.cwd)}
        agent = {"command": command[0], "args": command[1:]} if command else {}     # without a command: the default agent
        acpipe.call("agent/connect", {**agent, **where})
        session = acpipe.call("session/ensure", where)["sessionId"]    # the default session of the directory
        chunks = acpipe.prompt(options.prompt, session)

        def interrupted(*_):
            signal.signal(signal.SIGINT, signal.default_int_handler)    # the next one is a KeyboardInterrupt
            acpipe.send("session/cancel")       # the turn still ends as usual: last chunks, then the summary

        signal.signal(signal.SIGINT, interrupted)
        for chunk in chunks:
            show(chunk)
        acpipe.call("shutdown")                 # responds when the agent has exited
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
    split = words.index("--") if "--" in words else len(words)      # everything after it is the agent's command line
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage="%(prog)s [OPTIONS] PROMPT [-- COMMAND ARGS...]")
    parser.add_argument("prompt")
    parser.add_argument("--acpipe", default="acpipe", metavar="PATH", help="the program (default: acpipe in PATH)")
    parser.add_argument("--permissions", choices=("approve", "deny"), default="approve",
                        help="the answer to the agent's permission requests (default: approve)")
    parser.add_argument("--cwd", default=".", metavar="DIR", help="where the agent works (default: here)")
    try:
        return drive(parser.parse_args(words[:split]), words[split + 1:])
    except BrokenPipeError:                     # the reader of stdout has exited, as in | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except FileNotFoundError as problem:
        parser.error(f"cannot find {problem.filename}: pass the path of acpipe with --acpipe PATH")


if __name__ == "__main__":
    sys.exit(main())
