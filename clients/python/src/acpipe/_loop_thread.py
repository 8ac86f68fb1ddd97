"""An event loop in a thread, for the blocking client."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from acpipe._questions import PermissionRequest, QuestionRequest

logger = logging.getLogger("acpipe")
P = TypeVar("P")
T = TypeVar("T")

# Time that a handler has to return after its question was closed.
RETURN_SECONDS = 1.0


class LoopThread:
    """Runs coroutines in a thread with an event loop.

    The thread does not keep the program alive: acpipe exits when the program does, because its stdin closes.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="acpipe", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine and waits for its result. An exception in the caller, such as Ctrl-C, cancels it."""
        if threading.current_thread() is self._thread or self._loop.is_closed():
            coroutine.close()
            raise RuntimeError("the client was closed, or is called by one of its own callbacks")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Ends the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run_loop(self) -> None:
        try:
            self._loop.run_forever()
            # A close that Ctrl-C interrupted is cancelled here, and kills acpipe.
            if tasks := asyncio.all_tasks(self._loop):
                for task in tasks:
                    task.cancel()
                self._loop.run_until_complete(asyncio.wait(tasks))
        finally:
            self._loop.close()


async def in_thread(function: Callable[[P], T], argument: P) -> T:
    """Runs a function that may block in a thread of its own.

    Not `asyncio.to_thread`: its threads keep the program alive, for example while a user does not answer.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if future.done():  # its task was cancelled
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = function(argument)
        except BaseException as error:
            failure = _as_exception(error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failure)

    def warn() -> None:
        if thread.is_alive():
            logger.warning(
                "a handler still runs although its question was closed, and can take input that is meant for the next "
                "one; let it return when `request.is_open` is false"
            )

    thread = threading.Thread(target=run, name="acpipe handler", daemon=True)
    thread.start()
    try:
        return await future
    except asyncio.CancelledError:
        if isinstance(argument, PermissionRequest | QuestionRequest):  # a thread cannot be stopped
            loop.call_later(RETURN_SECONDS, warn)
        raise


def _as_exception(error: BaseException) -> Exception:
    """Returns what a future can carry to the loop: `sys.exit()` in a handler ends its thread alone."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    failure = RuntimeError(f"{type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


class Dispatcher:
    """Calls functions one after the other in a thread, in which they may call the client."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="acpipe notifications", daemon=True).start()

    def put(self, function: Callable[[], object]) -> None:
        self._queue.put(function)

    def close(self) -> None:
        """Ends the thread after the functions that are queued."""
        self._queue.put(None)

    def _run(self) -> None:
        while function := self._queue.get():
            try:
                function()
            except Exception:
                # One listener that fails does not stop the others.
                logger.exception("a listener failed")
