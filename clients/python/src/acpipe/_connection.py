"""JSON-RPC with an acpipe process."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from acpipe._errors import AcpipeError, AcpipeExited, InvalidMessage, reported_error
from acpipe._flow import Flow
from acpipe._frames import Bad, Failure, Notice, Request, Result, TooDeep, Unreadable, frame_of, shown
from acpipe._process import AcpipeProcess, LineTooLong

logger = logging.getLogger("acpipe")
T = TypeVar("T")

CLOSE_SECONDS = 2.0
# Bad messages that are logged; a peer that sends nothing else must not fill the log.
LOGGED = 20

_Outcome = Result | Failure | Bad | AcpipeError
_Settle = Callable[[_Outcome], None]


class Connection:
    """Sends requests to acpipe, and passes its notifications and requests on."""

    def __init__(
        self,
        process: AcpipeProcess,
        flow: Flow,
        on_notification: Callable[[str, Raw], None],
        on_request: Callable[[int | str, str, Raw], None],
    ) -> None:
        self._process = process
        self._flow = flow
        self._on_notification = on_notification
        self._on_request = on_request
        self._ids = itertools.count(1)
        self._calls: dict[int | str, _Settle] = {}
        self._logged = 0
        # Creates the error of calls after the end. Each has an error, and so a traceback, of its own.
        self._ended: Callable[[], AcpipeError] | None = None
        self._reader = asyncio.create_task(self._read())

    async def call(self, method: str, params: Any, result: type[T]) -> T:
        """Sends a request and waits for its result."""
        future = self.start(method, params, result)
        try:
            if not future.done():
                await self._process.drain()
            with self._flow.expecting():
                return await future
        finally:
            future.cancel()  # if the wait for the pipe was cancelled

    def start(self, method: str, params: Any, result: type[T]) -> asyncio.Future[T]:
        """Sends a request without waiting for its result. A result of type `dict` is not checked further."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if self._ended is not None:
            future.set_exception(self._ended())
            return future

        def settle(outcome: _Outcome) -> None:
            if future.done():  # its task was cancelled
                return
            try:
                future.set_result(_result(outcome, result, method))
            except AcpipeError as error:
                future.set_exception(error)

        number = next(self._ids)
        self._send({"id": number, "method": method, "params": {} if params is None else params})
        self._calls[number] = settle
        return future

    def respond(self, number: int | str, result: Any) -> None:
        """Answers a request of acpipe."""
        self._send({"id": number, "result": result})

    def respond_error(self, number: int | str, code: int, message: str) -> None:
        """Answers a request of acpipe with an error."""
        self._send({"id": number, "error": {"code": code, "message": message}})

    async def close(self) -> None:
        """Stops the agents and acpipe, and returns when acpipe has exited."""
        self._process.close_stdin()
        self._flow.stop()  # the last messages are read, so that acpipe never waits for a reader
        await self._process.wait()
        # Not longer: another process can hold stdout open.
        await asyncio.wait({self._reader}, timeout=CLOSE_SECONDS)
        await self._process.release()

    def _send(self, message: dict[str, Any]) -> None:
        self._process.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    async def _read(self) -> None:
        try:
            async for line in self._process.lines():
                self._receive(line)
                await self._flow.wait()
            exit = await self._process.exited()
            self._end(lambda: AcpipeExited(str(exit), exit.data))
        except LineTooLong as error:
            self._fail(str(error))
        except TooDeep:
            self._fail("it is nested too deeply")
        except asyncio.CancelledError:
            # A program can cancel all tasks of its loop, and go on.
            self._process.close_stdin()
            self._end(lambda: AcpipeExited("the task that reads acpipe was cancelled; start a new client"))
            raise

    def _fail(self, why: str) -> None:
        """Ends the connection at a message that cannot be skipped: it may be the response to any call."""
        self._process.kill()
        self._end(lambda: InvalidMessage("a message", f"{why}; the client is closed, start a new one"))

    def _end(self, error: Callable[[], AcpipeError]) -> None:
        self._ended = error
        for settle in self._calls.values():
            settle(error())
        self._calls.clear()

    def _receive(self, line: bytes) -> None:
        if not line.strip():
            return
        frame = frame_of(line)
        try:
            if isinstance(frame, Notice):
                self._on_notification(frame.method, frame.params)
            elif isinstance(frame, Request):
                self._on_request(frame.id, frame.method, frame.params)
            elif frame.id is not None and (settle := self._calls.pop(frame.id, None)):
                settle(frame)
            else:
                raise Unreadable(frame.why if isinstance(frame, Bad) else "it answers no call of this client")
        except Unreadable as error:
            self._log(str(error), line)
        except Exception:
            # A fault of this package does not stop the others.
            logger.exception("cannot handle a message of acpipe")

    def _log(self, why: str, line: bytes) -> None:
        self._logged += 1
        if self._logged <= LOGGED:
            logger.warning("acpipe sent a message that cannot be read: %s: %s", shown(why), shown(line))
        elif self._logged == LOGGED + 1:
            logger.warning("acpipe sent %s messages that cannot be read; more such messages are not logged", LOGGED)


def _result(outcome: _Outcome, expected: type[T], method: str) -> T:
    if isinstance(outcome, AcpipeError):
        raise outcome
    if isinstance(outcome, Failure):
        raise reported_error(outcome.message, outcome.data)
    what = f"the response to `{method}`"
    if isinstance(outcome, Bad):
        raise InvalidMessage(what, outcome.why)
    try:
        return msgspec.json.decode(outcome.result, type=expected)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidMessage(what, error) from error
