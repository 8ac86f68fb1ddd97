"""Answers requests of acpipe."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from acpipe._handlers import Handler
from acpipe._questions import PermissionRequest, QuestionRequest, close_request

logger = logging.getLogger("acpipe")

METHOD_NOT_FOUND = -32601
RESOURCE_NOT_FOUND = -32002
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
        self._tasks: dict[int | str, asyncio.Task[None]] = {}
        # Open questions to the user.
        self._questions: dict[int | str, PermissionRequest | QuestionRequest] = {}

    def answer(self, output: Output, number: int | str, method: str, params: msgspec.Raw) -> None:
        """Starts the handler of a request."""
        handler = self._handlers.get(method)
        if handler is None:
            output.respond_error(number, METHOD_NOT_FOUND, f"the client does not answer {method}")
            return
        task = asyncio.create_task(self._run(output, number, method, handler, params))
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    def cancel(self, number: int | str) -> None:
        """Cancels the handler of a request that needs no answer any more."""
        self._close(number)
        if task := self._tasks.get(number):
            task.cancel()

    def cancel_all(self) -> None:
        """Cancels all handlers."""
        for number in list(self._tasks):
            self.cancel(number)

    async def finished(self) -> None:
        """Waits for the end of all handlers."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _run(self, output: Output, number: int | str, method: str, handler: Handler, params: msgspec.Raw) -> None:
        try:
            request = msgspec.json.decode(params, type=handler.params)
            if isinstance(request, PermissionRequest | QuestionRequest):
                self._questions[number] = request
                # So that a user sees what the agent said and did before its question.
                await self._until_read(request.session_id, request.turn_id)
            result = handler.function(request)
            if inspect.isawaitable(result):
                result = await result
            if handler.result is not None and not isinstance(result, handler.result):
                raise TypeError(f"the handler must return a {handler.result.__name__}, not {result!r}")
        except FileNotFoundError as error:
            output.respond_error(number, RESOURCE_NOT_FOUND, str(error))
        except Exception as error:
            # For a permission request, an error means that the policy decides.
            logger.exception("the handler of %s failed", method)
            output.respond_error(number, INTERNAL, f"{type(error).__name__}: {error}")
        else:
            output.respond(number, {} if handler.result is None else result)
        finally:
            self._close(number)

    def _close(self, number: int | str) -> None:
        if request := self._questions.pop(number, None):
            close_request(request)
