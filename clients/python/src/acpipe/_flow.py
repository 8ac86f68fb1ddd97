"""Backpressure: whether acpipe is read."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

# Unread chunks of a turn from which acpipe is not read any more. acpipe then slows the agent down.
UNREAD_LIMIT = 1000


class Flow:
    """Pauses the reading of acpipe while a turn has many unread chunks, unless a task waits for a message.

    All messages come through one pipe, so a response can be behind unread chunks of another turn. While a task waits
    for a message, reading continues, and the unread chunks are kept in memory.
    """

    def __init__(self) -> None:
        self._waiting = 0
        self._full = 0
        self._open = asyncio.Event()
        self._open.set()

    @property
    def is_open(self) -> bool:
        """Whether acpipe is read."""
        return self._open.is_set()

    async def wait(self) -> None:
        """Waits until acpipe is to be read."""
        await self._open.wait()

    @contextmanager
    def expecting(self) -> Generator[None]:
        """Marks that the caller waits for a message."""
        self._waiting += 1
        self._update()
        try:
            yield
        finally:
            self._waiting -= 1
            self._update()

    def add_full(self, change: int) -> None:
        """Changes the number of turns with more than `UNREAD_LIMIT` unread chunks."""
        self._full += change
        self._update()

    def stop(self) -> None:
        """Ends all backpressure, for the end of the connection."""
        self._waiting += 1
        self._update()

    def _update(self) -> None:
        if self._waiting or not self._full:
            self._open.set()
        else:
            self._open.clear()
