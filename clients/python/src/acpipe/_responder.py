"""Answers requests of acpipe."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from acpipe._frames import Unreadable, parameters
from acpipe._handlers import Handler
from acpipe._questions import PermissionRequest, QuestionRequest, close_request

logger = logging.getLogger("acpipe")

METHOD_NOT_FOUND = -32601
RESOURCE_NOT_FOUND = -32002
INVALID_PARAMS = -32602
INTERNAL = -32603


class Output(Protocol):
    """Where the answers go."""

    def respond(self, number: int | str, result: object) -> None: ...

    def respond_error(self, number: int | str, code: int, message: str) -> None: ...


UntilRead = Callable[[str | None, str | None], Awaitable[None]]
"""Waits until the program has read the chunks of a turn, named by its session and its id."""


class Responder:
    """Runs the handler of each request in a task of its own."""

    def __init__(self, handlers: dict[str, Handler], until_read: UntilRead) -> None:
        self._handlers = handlers
        self._until_read = until_read
        # Requests that wait for their answer.
        self._open: dict[int | str, tuple[asyncio.Task[None], msgspec.Struct]] = {}
        # Also of requests that wait no more: their handlers still end.
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(self, output: Output, number: int | str, method: str, params: msgspec.Raw) -> None:
        """Starts the handler of a request."""
        if number in self._open:
            raise Unreadable(f"a request with the id {number!r} is open")  # an answer would be that of the first one
        handler = self._handlers.get(method)
        if handler is None:
            output.respond_error(number, METHOD_NOT_FOUND, f"the client does not answer {method}")
            return
        try:
            request = parameters(method, params, handler.params)
        except Unreadable as error:
            output.respond_error(number, INVALID_PARAMS, str(error))
            raise
        task = asyncio.create_task(self._run(output, number, method, handler, request))
        self._open[number] = (task, request)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self, number: int | str) -> None:
        """Cancels the handler of a request that needs no answer any more, unless the handler itself calls this."""
        task = self._close(number)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    def cancel_all(self) -> None:
        """Cancels all handlers."""
        for number in list(self._open):
            self.cancel(number)

    async def finished(self) -> None:
        """Waits for the end of all handlers but the one that calls it."""
        others = [task for task in self._tasks if task is not asyncio.current_task()]
        await asyncio.gather(*others, return_exceptions=True)

    async def _run(
        self, output: Output, number: int | str, method: str, handler: Handler, request: msgspec.Struct
    ) -> None:
        result, failure = None, None
        try:
            result = await self._call(handler, request)
        except FileNotFoundError as error:
            failure = RESOURCE_NOT_FOUND, str(error)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not self._is_open(number):
                raise
            # For a permission request, an error means that the policy decides.
            logger.exception("the handler of %s failed", method)
            failure = INTERNAL, f"{type(error).__name__}: {error}"
        if not self._is_open(number):
            return
        self._close(number)
        if failure is not None:
            output.respond_error(number, *failure)
        else:
            output.respond(number, {} if handler.result is None else result)

    async def _call(self, handler: Handler, request: msgspec.Struct) -> object:
        if isinstance(request, PermissionRequest | QuestionRequest):
            # So that a user sees what the agent said and did before its question.
            await self._until_read(request.session_id, request.turn_id)
        result = handler.function(request)
        if inspect.isawaitable(result):
            result = await result
        if handler.result is not None and not isinstance(result, handler.result):
            raise TypeError(f"the handler must return a {handler.result.__name__}, not {result!r}")
        return result

    def _is_open(self, number: int | str) -> bool:
        """Whether the request of the current task waits for its answer. A later request can have the same id."""
        return number in self._open and self._open[number][0] is asyncio.current_task()

    def _close(self, number: int | str) -> asyncio.Task[None] | None:
        """Marks that a request waits no more; returns the task of its handler."""
        task, request = self._open.pop(number, (None, None))
        if isinstance(request, PermissionRequest | QuestionRequest):
            close_request(request)
        return task
