"""The unread chunks of a turn."""

from __future__ import annotations

import asyncio
from collections import deque

from acpipe._chunks import AnyChunk
from acpipe._flow import UNREAD_LIMIT, Flow

# Time that a program has to read the chunks before a question. It may not read at all, or wait for the question first.
READ_SECONDS = 1.0


class Mailbox:
    """Holds the chunks of a turn until they are read."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._chunks: deque[AnyChunk] = deque()
        self._changed = asyncio.Event()
        self._read = asyncio.Event()
        self._is_open = True

    def __len__(self) -> int:
        return len(self._chunks)

    def put(self, chunk: AnyChunk) -> None:
        """Adds a chunk, unless the reader has left."""
        if self._is_open:
            self._chunks.append(chunk)
            self._changed.set()
            self._read.clear()
            if len(self._chunks) == UNREAD_LIMIT + 1:
                self._flow.add_full(1)

    def take(self) -> AnyChunk | None:
        """Removes the oldest chunk."""
        if not self._chunks:
            return None
        chunk = self._chunks.popleft()
        if len(self._chunks) == UNREAD_LIMIT:
            self._flow.add_full(-1)
        return chunk

    def wake(self) -> None:
        """Ends a wait: there is a chunk, or there will be none."""
        self._changed.set()

    async def wait(self) -> None:
        """Waits for a chunk or for `wake`."""
        self._changed.clear()
        self._read.set()
        await self._changed.wait()

    async def until_read(self) -> None:
        """Waits until the reader has come back for a further chunk, or has left, but no longer than `READ_SECONDS`."""
        limit = asyncio.get_running_loop().call_later(READ_SECONDS, self._read.set)
        try:
            await self._read.wait()
        finally:
            limit.cancel()

    def close(self) -> None:
        """Drops all chunks, also later ones."""
        if len(self._chunks) > UNREAD_LIMIT:
            self._flow.add_full(-1)
        self._chunks.clear()
        self._is_open = False
        self._read.set()
