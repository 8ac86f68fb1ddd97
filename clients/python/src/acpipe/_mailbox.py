"""The unread chunks of a turn."""

from __future__ import annotations

import asyncio
from collections import deque

from acpipe._chunks import AnyChunk
from acpipe._flow import UNREAD_LIMIT, Flow


class Mailbox:
    """Holds the chunks of a turn until they are read."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._chunks: deque[AnyChunk] = deque()
        self._changed = asyncio.Event()
        self._is_open = True

    def __len__(self) -> int:
        return len(self._chunks)

    def put(self, chunk: AnyChunk) -> None:
        """Adds a chunk, unless the reader has left."""
        if self._is_open:
            self._chunks.append(chunk)
            self._changed.set()
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
        await self._changed.wait()

    def close(self) -> None:
        """Drops all chunks, also later ones."""
        if len(self._chunks) > UNREAD_LIMIT:
            self._flow.add_full(-1)
        self._chunks.clear()
        self._is_open = False
