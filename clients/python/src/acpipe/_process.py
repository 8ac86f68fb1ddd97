"""The acpipe process."""

from __future__ import annotations

import asyncio
import logging
import os
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

from acpipe._errors import AcpipeExited, AcpipeNotFound

logger = logging.getLogger("acpipe")

# acpipe writes lines of up to 64 MiB; asyncio's own limit is 64 KiB.
LINE_LIMIT = 2**27
# acpipe needs at most 5 s to stop its agents; a machine under load needs longer.
EXIT_SECONDS = 30.0
STDERR_LINES = 20
# Exit code for a command line that acpipe does not accept.
USAGE = 2


class AcpipeProcess:
    """A running `acpipe serve`, and the end of its stderr."""

    def __init__(self, child: Process) -> None:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        self.stdin = child.stdin
        self.stdout = child.stdout
        self._child = child
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        # Lines that are not logged yet: if acpipe does not start, the text of the error has them.
        self._held: list[str] | None = []
        self._log = asyncio.create_task(self._read_stderr(child.stderr))
        self._write_lock = asyncio.Lock()

    @classmethod
    async def start(cls, program: str, arguments: Sequence[str], env: Mapping[str, str] | None) -> AcpipeProcess:
        try:
            # A process session of its own: Ctrl-C in a terminal reaches the Python program only, which then closes the
            # client. acpipe is never left behind: it exits when its stdin closes.
            child = await asyncio.create_subprocess_exec(
                program,
                "serve",
                *arguments,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                limit=LINE_LIMIT,
                env=None if env is None else {**os.environ, **env},
                start_new_session=True,
            )
        except OSError as error:
            raise AcpipeNotFound(
                f"cannot start acpipe: `{program}` failed to start: {error.strerror}; "
                "set ACPIPE_BIN to a program for this machine"
            ) from error
        return cls(child)

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

    async def exited(self) -> AcpipeExited:
        """Waits for the exit of acpipe and returns it as an error."""
        code = await self._child.wait()
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
        self.stdin.close()

    async def wait(self) -> None:
        """Waits for the exit of acpipe; kills it if that takes too long, or if the caller is cancelled meanwhile."""
        try:
            await asyncio.wait_for(self._child.wait(), EXIT_SECONDS)
        except asyncio.TimeoutError:
            logger.warning("acpipe did not exit within %s s and is killed", EXIT_SECONDS)
        finally:
            if self._child.returncode is None:
                await self._kill()

    async def _kill(self) -> None:
        """Kills acpipe. The processes of its agents do not outlive it."""
        self._child.kill()
        cancelled: asyncio.CancelledError | None = None
        while self._child.returncode is None:
            try:
                await self._child.wait()  # short; a cancellation must not leave a process that is not waited for
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _end_of_stderr(self) -> None:
        # Not longer: a daemon that acpipe started can hold stderr open.
        await asyncio.wait({self._log}, timeout=1.0)

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        while line := await stderr.readline():
            text = line.decode(errors="replace").rstrip()
            self._stderr.append(text)
            if self._held is None:
                logger.warning("%s", text)
            else:
                self._held.append(text)
