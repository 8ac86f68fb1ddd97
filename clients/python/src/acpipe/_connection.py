"""JSON-RPC with an acpipe process."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acpipe._errors import AcpipeError, AcpipeExited, InvalidMessage, reported_error
from acpipe._flow import Flow
from acpipe._json import as_object
from acpipe._process import AcpipeProcess

logger = logging.getLogger("acpipe")
T = TypeVar("T")

CLOSE_SECONDS = 2.0


class _ErrorBody(msgspec.Struct):
    code: int
    message: str
    data: Any = None


class _Message(msgspec.Struct):
    """A message of acpipe. The content is decoded when its type is known."""

    id: int | str | None = None
    method: str | None = None
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: _ErrorBody | None = None


_Settle = Callable[[_Message | AcpipeError], None]


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
        self._decoder = msgspec.json.Decoder(_Message)
        self._exit: AcpipeExited | None = None
        self._reader = asyncio.create_task(self._read())

    async def call(self, method: str, params: Any, result: type[T]) -> T:
        """Sends a request and waits for its result."""
        future = self.start(method, params, result)
        await self._process.drain()
        with self._flow.expecting():
            return await future

    def start(self, method: str, params: Any, result: type[T]) -> asyncio.Future[T]:
        """Sends a request without waiting for its result. A result of type `dict` is not checked further."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if self._exit is not None:
            future.set_exception(AcpipeExited(str(self._exit), self._exit.data))
            return future

        def settle(outcome: _Message | AcpipeError) -> None:
            if future.done():  # its task was cancelled
                return
            try:
                future.set_result(_result(outcome, result, method))
            except AcpipeError as error:
                future.set_exception(error)

        number = next(self._ids)
        self._calls[number] = settle
        self._send({"id": number, "method": method, "params": {} if params is None else params})
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

    def _send(self, message: dict[str, Any]) -> None:
        self._process.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    async def _read(self) -> None:
        while line := await self._process.stdout.readline():
            try:
                self._receive(self._decoder.decode(line))
            except Exception:
                # One message that cannot be handled does not stop the others.
                logger.exception("cannot handle a message of acpipe")
            await self._flow.wait()
        self._exit = await self._process.exited()
        for settle in self._calls.values():
            settle(AcpipeExited(str(self._exit), self._exit.data))
        self._calls.clear()

    def _receive(self, message: _Message) -> None:
        if message.method is None:
            settle = None if message.id is None else self._calls.pop(message.id, None)
            if settle is None:
                logger.warning("acpipe sent a response without a request: %s", message.error)
            else:
                settle(message)
            return
        params = message.params if isinstance(message.params, Raw) else Raw(b"{}")
        if message.id is None:
            self._on_notification(message.method, params)
        else:
            self._on_request(message.id, message.method, params)


def _result(outcome: _Message | AcpipeError, expected: type[T], method: str) -> T:
    if isinstance(outcome, AcpipeError):
        raise outcome
    if outcome.error is not None:
        raise reported_error(outcome.error.message, as_object(outcome.error.data))
    try:
        return msgspec.json.decode(outcome.result if isinstance(outcome.result, Raw) else b"null", type=expected)
    except msgspec.ValidationError as error:
        raise InvalidMessage(f"the response to `{method}`", error) from error
