"""Programs in place of acpipe, which write what `clients/bad-peers.json` lists.

The tests of the npm package read the file, too.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

CASES: dict[str, Any] = json.loads((Path(__file__).parents[2] / "bad-peers.json").read_text())


def case_names(kind: str) -> list[Any]:
    """Returns the names of the cases of a kind."""
    return [case["name"] for case in CASES[kind]]


def case_of(kind: str, name: str) -> Any:
    """Returns a case by its name."""
    return next(case for case in CASES[kind] if case["name"] == name)


def bytes_of(pieces: list[Any]) -> bytes:
    """Returns the bytes that the pieces of a case describe."""
    return b"".join(
        piece.encode()
        if isinstance(piece, str)
        else base64.b64decode(piece["base64"])
        if "base64" in piece
        else piece["repeat"].encode() * piece["times"]
        for piece in pieces
    )


def message(**fields: Any) -> bytes:
    """Returns a message as a line. A piece with `repeat` in it is replaced by its text."""

    text = json.dumps(fields)
    repeated = re.compile(r'\{"repeat": "(.)", "times": (\d+)\}')
    return repeated.sub(lambda found: f'"{found[1] * int(found[2])}"', text).encode() + b"\n"


class Peer:
    """A script of the shell, which reads lines of the client and writes files. It answers `initialize` first."""

    def __init__(self, directory: Path) -> None:
        self.dir = directory
        self._lines = ["#!/bin/sh"]
        self._files = 0
        self.read().answer(1, "initialize")

    def read(self) -> Peer:
        """Reads a line."""
        return self._add(f"IFS= read -r line; printf '%s\\n' \"$line\" >>'{self.dir}/received'")

    def write(self, content: bytes, to: int = 1) -> Peer:
        """Writes bytes to stdout, or to another descriptor."""
        self._files += 1
        (self.dir / str(self._files)).write_bytes(content)
        return self._add(f"cat '{self.dir}/{self._files}' >&{to}")

    def answer(self, number: int, method: str) -> Peer:
        """Writes a valid response."""
        return self.write(message(id=number, result=CASES["results"][method]))

    def do(self, step: dict[str, Any]) -> Peer:
        """Does a step of a case."""
        for name, value in step.items():
            if name == "write":
                self.write(bytes_of(value))
            elif name == "writeStderr":
                self.write(bytes_of(value), to=2)
            else:
                commands = {
                    "exit": f"exit {value}",
                    "holdPipes": f"sleep 60 & echo $! >'{self.dir}/holder'",
                    "closeStdout": "exec >&-",
                    "stay": "exec sleep 60",
                    "signal": f"kill -{value} $$",
                }
                self._add(commands[name])
        return self

    def program(self) -> Path:
        """Writes the script, which then reads until its stdin ends."""
        path = self.dir / "peer"
        path.write_text("\n".join([*self._lines, "exec cat >/dev/null", ""]))
        path.chmod(0o755)
        return path

    def received(self) -> list[Any]:
        """Returns the messages that the script has read."""
        return [json.loads(line) for line in (self.dir / "received").read_text().splitlines()]

    def end(self) -> None:
        """Ends the process that holds the pipes."""
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((self.dir / "holder").read_text()), signal.SIGKILL)

    def _add(self, line: str) -> Peer:
        self._lines.append(line)
        return self
