"""A running turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from types import TracebackType
from typing import Any

from acpipe._chunks import AnyChunk
from acpipe._errors import AcpipeError, TurnFailed
from acpipe._flow import Flow
from acpipe._mailbox import Mailbox
from acpipe.models import TurnSummary


class Turn:
    """A turn of an agent: iterate over its chunks, or await it for its summary.

    The turn has begun when you get this object. It is cancelled if the task that waits for it is cancelled, at the end
    of its `async with` block, and when the last reference to it is gone, for example after a `break`.
    """

    def __init__(
        self,
        session_id: str,
        turn_id: str | None,
        response: asyncio.Future[TurnSummary],
        mailbox: Mailbox,
        flow: Flow,
        send_cancel: Callable[[], None],
    ) -> None:
        self.session_id = session_id
        """Id of the session."""
        self.id = turn_id
        """Id of the turn. `None` for `execute`, whose summary has it."""
        self._response = response
        self._mailbox = mailbox
        self._flow = flow
        self._send_cancel = send_cancel
        self._loop = asyncio.get_running_loop()

    def __aiter__(self) -> Turn:
        return self

    async def __anext__(self) -> AnyChunk:
        """Returns the next chunk. Raises `TurnFailed` after the last chunk of a turn that failed."""
        while (chunk := self._mailbox.take()) is None:
            if self._response.done():
                _checked(self._response.result())
                raise StopAsyncIteration
            with self._flow.expecting():
                try:
                    await self._mailbox.wait()
                except asyncio.CancelledError:
                    self._abandon()
                    raise
        return chunk

    def __await__(self) -> Generator[Any, None, TurnSummary]:
        return self.summary().__await__()

    async def summary(self) -> TurnSummary:
        """Waits for the end of the turn and returns its summary. Chunks that were not read are dropped.

        Raises `TurnFailed` if the turn failed, and another `AcpipeError` if it could not begin. A cancelled turn has a
        summary, too: its `stop_reason` is `cancelled`.
        """
        return _checked(await self.outcome())

    async def outcome(self) -> TurnSummary:
        """Like `summary`, but also returns the summary of a turn that failed."""
        self._mailbox.close()
        with self._flow.expecting():
            try:
                return await asyncio.shield(self._response)
            except asyncio.CancelledError:
                self._abandon()
                raise

    def cancel(self) -> None:
        """Cancels the turn. It still ends with its last chunks and its summary."""
        if not self._response.done():
            self._send_cancel()

    async def __aenter__(self) -> Turn:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._response.done():
            self._abandon()
            with suppress(AcpipeError):  # a queued prompt that is cancelled ends with an error
                await self.outcome()

    def __del__(self) -> None:
        # In any thread, and possibly after the end of the event loop, which is a RuntimeError.
        if not self._response.done():
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._send_cancel)
                self._loop.call_soon_threadsafe(self._mailbox.close)

    def _abandon(self) -> None:
        self.cancel()
        self._mailbox.close()


def _checked(summary: TurnSummary) -> TurnSummary:
    if summary.is_error:
        raise TurnFailed(summary)
    return summary
