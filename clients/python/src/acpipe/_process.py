"""The acpipe process."""

from __future__ import annotations

import asyncio
import logging
import os
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress

from acpipe._errors import AcpipeExited, AcpipeNotFound
from acpipe._frames import printable

logger = logging.getLogger("acpipe")

# acpipe writes lines of up to 64 MiB; asyncio's own limit is 64 KiB.
LINE_LIMIT = 2**27
# Of a line of stderr; the rest is dropped.
STDERR_LIMIT = 2**16
# acpipe needs at most 5 s to stop its agents; a machine under load needs longer.
EXIT_SECONDS = 30.0
STDERR_LINES = 20
# Lines of stderr that are kept for the log until acpipe has started.
HELD_LINES = 1000
# Time between the end of a pipe and that of the process, whichever comes first.
END_SECONDS = 1.0
# Exit code for a command line that acpipe does not accept.
USAGE = 2


class LineTooLong(Exception):
    """acpipe wrote a line over the limit."""


class _Ends(SubprocessStreamProtocol):
    """Makes the process and its pipes end together.

    Another process can hold the pipes of one that has exited, and one whose pipes have ended can go on: then no
    response comes any more, and no end.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=LINE_LIMIT, loop=loop)
        self.has_exited = asyncio.Event()
        self.is_closing = False
        self._child: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._child = transport
        super().connection_made(transport)

    def process_exited(self) -> None:
        super().process_exited()
        self.has_exited.set()
        asyncio.get_running_loop().call_later(END_SECONDS, self.close_pipes)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        super().pipe_connection_lost(fd, exc)
        if fd == 1 or (fd == 0 and not self.is_closing):
            asyncio.get_running_loop().call_later(END_SECONDS, self.kill)

    def kill(self) -> None:
        """Kills the process, unless it has exited."""
        if self._child is not None:
            with suppress(ProcessLookupError):
                self._child.kill()

    def close_pipes(self) -> None:
        """Closes the pipes from the process."""
        for number in (1, 2):
            if self._child is not None and (pipe := self._child.get_pipe_transport(number)):
                pipe.close()


class AcpipeProcess:
    """A running `acpipe serve`, and the end of its stderr."""

    def __init__(self, child: Process, ends: _Ends) -> None:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        self.stdin = child.stdin
        self._stdout = child.stdout
        self._child = child
        self._ends = ends
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        # Lines that are not logged yet: if acpipe does not start, the text of the error has them.
        self._held: deque[str] | None = deque(maxlen=HELD_LINES)
        self._log = asyncio.create_task(self._read_stderr(child.stderr))
        self._write_lock = asyncio.Lock()

    @classmethod
    async def start(cls, program: str, arguments: Sequence[str], env: Mapping[str, str] | None) -> AcpipeProcess:
        loop = asyncio.get_running_loop()
        try:
            # A process session of its own: Ctrl-C in a terminal reaches the Python program only, which then closes the
            # client. acpipe is never left behind: it exits when its stdin closes.
            transport, ends = await loop.subprocess_exec(
                lambda: _Ends(loop),
                program,
                "serve",
                *arguments,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=None if env is None else {**os.environ, **env},
                start_new_session=True,
            )
        except OSError as error:
            raise AcpipeNotFound(
                f"cannot start acpipe: `{program}` failed to start: {error.strerror}; "
                "set ACPIPE_BIN to a program for this machine"
            ) from error
        return cls(Process(transport, ends, loop), ends)

    @property
    def pid(self) -> int:
        return self._child.pid

    def log_stderr(self) -> None:
        """Logs stderr from now on, and what acpipe has written before."""
        held, self._held = self._held, None
        for line in held or ():
            logger.warning("%s", line)

    def write(self, line: bytes) -> None:
        """Queues a line. After the exit of acpipe it has no effect."""
        self.stdin.write(line)

    async def drain(self) -> None:
        """Waits until acpipe has read most of what is queued."""
        async with self._write_lock:  # before Python 3.11, asyncio allows one waiter only
            with suppress(ConnectionError):  # the end of stdout reports the exit
                await self.stdin.drain()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yields the lines of stdout. A last one without its end is logged: it may be a part of a message."""
        while True:
            try:
                line = await self._stdout.readline()
            except ValueError:
                raise LineTooLong(f"it has more than {LINE_LIMIT // 2**20} MiB") from None
            if not line.endswith(b"\n"):
                break
            yield line
        if line:
            logger.warning("acpipe ended within a line, of which it wrote %s bytes", len(line))

    async def exited(self) -> AcpipeExited:
        """Waits for the exit of acpipe and returns it as an error."""
        await self._ends.has_exited.wait()
        code = self._child.returncode
        await self._end_of_stderr()
        stderr = "\n".join(self._stderr)
        # What acpipe refuses, such as an option or the name of an agent, it reports with what to do.
        if code == USAGE:
            return AcpipeExited(f"acpipe exited with code {code}: {stderr}", {"exitCode": code, "stderr": stderr})
        message = f"acpipe exited with code {code}; start a new client"
        if code == 0:
            self.log_stderr()
        elif stderr:
            message += f". Its last output:\n{stderr}"
        return AcpipeExited(message, {"exitCode": code, "stderr": stderr})

    def close_stdin(self) -> None:
        """Makes acpipe cancel its turns, stop its agents and exit."""
        self._ends.is_closing = True
        self.stdin.close()

    def kill(self) -> None:
        """Kills acpipe, without waiting for its exit. The processes of its agents do not outlive it."""
        self._ends.kill()

    async def wait(self) -> None:
        """Waits for the exit of acpipe; kills it if that takes too long, or if the caller is cancelled meanwhile."""
        try:
            await asyncio.wait_for(self._ends.has_exited.wait(), EXIT_SECONDS)
        except asyncio.TimeoutError:
            logger.warning("acpipe did not exit within %s s and is killed", EXIT_SECONDS)
        finally:
            if not self._ends.has_exited.is_set():
                await self._killed()

    async def release(self) -> None:
        """Closes what is left of the pipes: another process can hold them open, or what acpipe wrote was not read."""
        self._ends.close_pipes()
        await asyncio.sleep(0)  # the loop may end with the caller

    async def _killed(self) -> None:
        self.kill()
        cancelled: asyncio.CancelledError | None = None
        while not self._ends.has_exited.is_set():
            try:
                await (
                    self._ends.has_exited.wait()
                )  # short; a cancellation must not leave a process that is not waited for
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _end_of_stderr(self) -> None:
        # Not longer: a daemon that acpipe started can hold stderr open.
        await asyncio.wait({self._log}, timeout=1.0)

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        async for line in _cut_lines(stderr):
            text = printable(line.decode(errors="replace").rstrip())
            self._stderr.append(text)
            if self._held is None:
                logger.warning("%s", text)
            else:
                self._held.append(text)


async def _cut_lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yields the lines of a stream without what is beyond `STDERR_LIMIT`."""
    rest = b""
    while data := await stream.read(STDERR_LIMIT):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line[:STDERR_LIMIT]
        rest = rest[:STDERR_LIMIT]
    if rest:
        yield rest
