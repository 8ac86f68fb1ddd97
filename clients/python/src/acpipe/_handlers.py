"""Functions of the program that answer requests of acpipe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from acpipe._questions import PermissionRequest, QuestionRequest
from acpipe.models import (
    ClientCapabilities,
    CreatedTerminal,
    CreateTerminalParams,
    FileCapabilities,
    PermissionAnswer,
    QuestionAnswer,
    ReadTextFileParams,
    TerminalExited,
    TerminalParams,
    TerminalSaid,
    TextFile,
    WriteTextFileParams,
)

OnPermission = Callable[[PermissionRequest], Awaitable[PermissionAnswer] | PermissionAnswer]
OnQuestion = Callable[[QuestionRequest], Awaitable[QuestionAnswer] | QuestionAnswer]
OnReadTextFile = Callable[[ReadTextFileParams], Awaitable[TextFile] | TextFile]
OnWriteTextFile = Callable[[WriteTextFileParams], Awaitable[None] | None]


class Terminals(Protocol):
    """Runs the commands of agents in terminals of the program."""

    async def create(self, request: CreateTerminalParams) -> CreatedTerminal:
        """Starts a command."""
        ...

    async def output(self, request: TerminalParams) -> TerminalSaid:
        """Returns the output so far, and the exit status if the command has exited."""
        ...

    async def wait_for_exit(self, request: TerminalParams) -> TerminalExited:
        """Waits until the command has exited."""
        ...

    async def kill(self, request: TerminalParams) -> None:
        """Kills the command. Its output can still be read."""
        ...

    async def release(self, request: TerminalParams) -> None:
        """Kills the command if it still runs, and forgets the terminal."""


@dataclass
class Handler:
    """A function for one request, and the types of its parameter and its result."""

    params: type[msgspec.Struct]
    result: type[msgspec.Struct] | None
    function: Callable[[Any], Any]
    """Returns the result, or an awaitable of it."""


@dataclass
class Handlers:
    """The functions of a client. acpipe sends only the requests that have one."""

    permission: OnPermission | None = None
    question: OnQuestion | None = None
    read_text_file: OnReadTextFile | None = None
    write_text_file: OnWriteTextFile | None = None
    terminals: Terminals | None = None

    def capabilities(self) -> ClientCapabilities:
        """Returns what the client declares in `initialize`."""
        return ClientCapabilities(
            permissions=self.permission is not None,
            questions=self.question is not None,
            fs=FileCapabilities(
                read_text_file=self.read_text_file is not None, write_text_file=self.write_text_file is not None
            ),
            terminal=self.terminals is not None,
        )

    def by_method(self) -> dict[str, Handler]:
        """Returns the handler of each request."""
        found: dict[str, Handler] = {}
        if self.permission is not None:
            found["permission/request"] = Handler(PermissionRequest, PermissionAnswer, self.permission)
        if self.question is not None:
            found["question/ask"] = Handler(QuestionRequest, QuestionAnswer, self.question)
        if self.read_text_file is not None:
            found["fs/readTextFile"] = Handler(ReadTextFileParams, TextFile, self.read_text_file)
        if self.write_text_file is not None:
            found["fs/writeTextFile"] = Handler(WriteTextFileParams, None, self.write_text_file)
        if self.terminals is not None:
            found["terminal/create"] = Handler(CreateTerminalParams, CreatedTerminal, self.terminals.create)
            found["terminal/output"] = Handler(TerminalParams, TerminalSaid, self.terminals.output)
            found["terminal/waitForExit"] = Handler(TerminalParams, TerminalExited, self.terminals.wait_for_exit)
            found["terminal/kill"] = Handler(TerminalParams, None, self.terminals.kill)
            found["terminal/release"] = Handler(TerminalParams, None, self.terminals.release)
        return found
