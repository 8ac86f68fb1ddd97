"""The client for programs without asyncio: the same methods, which block."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar

from acpipe import _client, _session, _turn
from acpipe._chunks import AnyChunk
from acpipe._loop_thread import Dispatcher, LoopThread, in_thread
from acpipe._options import Agent, PermissionMode, absolute
from acpipe._questions import PermissionRequest, QuestionRequest
from acpipe._sync_calls import SyncCalls, SyncSessionCalls
from acpipe.models import (
    CreatedTerminal,
    CreateTerminalParams,
    InitializeResult,
    McpServerList,
    Notification,
    PeerInfo,
    PermissionAnswer,
    PromptWhenBusy,
    QuestionAnswer,
    ReadTextFileParams,
    Recovery,
    SessionInfo,
    SessionOptions,
    SessionResult,
    Strategy,
    TerminalExited,
    TerminalParams,
    TerminalSaid,
    TextFile,
    TurnSummary,
    UserMessage,
    WriteTextFileParams,
)

__all__ = ["Client", "Session", "Terminals", "Turn"]

P = TypeVar("P")
R = TypeVar("R")
N = TypeVar("N", bound=Notification)


class Terminals(Protocol):
    """Runs the commands of agents in terminals of the program. Each call has a thread of its own."""

    def create(self, request: CreateTerminalParams) -> CreatedTerminal:
        """Starts a command."""
        ...

    def output(self, request: TerminalParams) -> TerminalSaid:
        """Returns the output so far, and the exit status if the command has exited."""
        ...

    def wait_for_exit(self, request: TerminalParams) -> TerminalExited:
        """Waits until the command has exited."""
        ...

    def kill(self, request: TerminalParams) -> None:
        """Kills the command. Its output can still be read."""
        ...

    def release(self, request: TerminalParams) -> None:
        """Kills the command if it still runs, and forgets the terminal."""


class Client:
    """A running acpipe. Use it as `with Client(…) as client`.

    Args:
        agent: Agent of sessions that name none: a name such as `claude`, or a command line as a list. Without it, each
            session names its agent, or keeps its own, or `rpc.agent_connect` starts the default agent.
        permissions: What happens to tool calls that no rule decides. Default: `ask` with `on_permission`, otherwise
            as configured, which is to approve all.
        options: Further options of `acpipe serve`.
        env: Variables to add to the environment of acpipe.
        binary: Path of the acpipe program. Default: see `find_acpipe`.
        client_info: Name and version of your program.
        on_permission: Decides whether the agent may run a tool. It may block, as all handlers: each call has a thread
            of its own.
        on_question: Answers questions of the agent to the user.
        on_read_text_file: Reads files for the agent, with the changes that are not saved.
        on_write_text_file: Writes files for the agent.
        terminals: Runs commands for the agent.
    """

    def __init__(
        self,
        agent: Agent | None = None,
        *,
        permissions: PermissionMode | None = None,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        binary: str | os.PathLike[str] | None = None,
        client_info: PeerInfo | None = None,
        on_permission: Callable[[PermissionRequest], PermissionAnswer] | None = None,
        on_question: Callable[[QuestionRequest], QuestionAnswer] | None = None,
        on_read_text_file: Callable[[ReadTextFileParams], TextFile] | None = None,
        on_write_text_file: Callable[[WriteTextFileParams], None] | None = None,
        terminals: Terminals | None = None,
    ) -> None:
        self._client = _client.Client(
            agent,
            permissions=permissions,
            options=options,
            env=env,
            binary=binary,
            client_info=client_info,
            on_permission=_threaded(on_permission),
            on_question=_threaded(on_question),
            on_read_text_file=_threaded(on_read_text_file),
            on_write_text_file=_threaded(on_write_text_file),
            terminals=None if terminals is None else _ThreadedTerminals(terminals),
        )
        self._thread: LoopThread | None = None
        self._dispatcher: Dispatcher | None = None
        self.rpc = SyncCalls(self._client.rpc, self._run)
        """Every request of the protocol as a method."""

    def __enter__(self) -> Client:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts acpipe."""
        if self._thread is not None:
            raise RuntimeError("the client was already started; create a new one")
        self._thread = LoopThread()
        try:
            self._run(self._client.start())
        except BaseException:
            self._thread.close()
            raise

    def close(self) -> None:
        """Cancels running turns, stops the agents and acpipe, and returns when acpipe has exited."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            thread.run(self._client.close())
        finally:
            thread.close()
            if self._dispatcher is not None:
                self._dispatcher.close()

    @property
    def initialized(self) -> InitializeResult:
        """Result of `initialize`: version of acpipe, and the default agent."""
        return self._client.initialized

    @property
    def pid(self) -> int:
        """Process id of acpipe."""
        return self._client.pid

    def session(
        self,
        session_id: str | None = None,
        *,
        agent: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        mcp_servers: McpServerList | None = None,
        options: SessionOptions | None = None,
        strict: bool | None = None,
        strategy: Strategy | None = None,
        agent_session_id: str | None = None,
        fork: bool = False,
        timeout_ms: int | None = None,
    ) -> Session:
        """Opens a session: the stored one of this id, or a new one. Starts its agent if necessary.

        Args:
            session_id: Id that you choose, of one directory only. Default: the session of the directory that
                `acpipe run -c` continues, too.
            agent: Name of the agent, as `acpipe agents` lists it; `rpc.agent_connect` names a command line. A stored
                session of another agent moves to it with the conversation so far. Default: the agent of the client,
                or without one the session's own.
            cwd: Working directory. Default: the session's own, or the current directory.
            mcp_servers: MCP servers of the session.
            options: Model, mode and other options of the session.
            strict: Whether a mode or model that the agent does not offer is an error. Default: `True`.
            strategy: How to restore a session that is not live. Default: `auto`.
            agent_session_id: The agent's id of a session that the agent already has.
            fork: With `agent_session_id`: whether to leave the original unchanged.
            timeout_ms: Maximum time for the start of the agent and the opening of the session in milliseconds.
        """
        opened = self._run(
            self._client.session(
                session_id,
                agent=agent,
                cwd=cwd,
                mcp_servers=mcp_servers,
                options=options,
                strict=strict,
                strategy=strategy,
                agent_session_id=agent_session_id,
                fork=fork,
                timeout_ms=timeout_ms,
            )
        )
        return Session(opened, self._run)

    def sessions(self, *, cwd: str | os.PathLike[str] | None = None) -> Iterator[SessionInfo]:
        """Yields the stored sessions, the most recently changed first.

        Args:
            cwd: Only sessions of this directory. Default: sessions of all directories.
        """
        directory, cursor = absolute(cwd), None
        while True:
            page = self.rpc.session_list(cwd=directory, cursor=cursor)
            yield from page.sessions
            if (cursor := _client.next_cursor(page, cursor)) is None:
                return

    def execute(
        self,
        message: UserMessage,
        *,
        agent: str | None = None,
        context: dict[str, Any] | None = None,
        output_schema: Any | None = None,
        timeout_ms: int | None = None,
        max_turns: int | None = None,
        options: SessionOptions | None = None,
        cwd: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        retry: bool = True,
    ) -> Turn:
        """Runs one turn in a session of its own, which leaves nothing behind.

        Args:
            message: Message of the user: text, or a `UIMessage` of the AI SDK.
            agent: Name of the agent, as for `session`. Default: that of the client.
            context: Values that the agent is given before the message.
            output_schema: JSON schema that the answer must match; the summary's `structured_output` has the answer.
            timeout_ms: Maximum duration in milliseconds.
            max_turns: Maximum number of turns of the agent's own loop.
            options: Model, mode and other options of the session.
            cwd: Working directory. Default: that of the agent.
            session_id: Id of the session in notifications. Default: a generated id.
            retry: Whether the call is tried again if the agent crashes; the agent may then do its work twice.
        """

        async def start() -> _turn.Turn:
            return self._client.execute(
                message,
                agent=agent,
                context=context,
                output_schema=output_schema,
                timeout_ms=timeout_ms,
                max_turns=max_turns,
                options=options,
                cwd=cwd,
                session_id=session_id,
                retry=retry,
            )

        return Turn(self._run(start()), self._run)

    def on(self, kind: type[N], listener: Callable[[N], object]) -> Callable[[], None]:
        """Calls a function with each notification of a kind, such as `AgentStateParams`.

        All such functions share a thread, in which they may call the client. Returns a function that ends it.
        """
        if self._dispatcher is None:
            self._dispatcher = Dispatcher()
        put = self._dispatcher.put
        return self._client.on(kind, lambda notification: put(lambda: listener(notification)))

    def _run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        if self._thread is None:
            coroutine.close()
            raise _client.not_started()
        return self._thread.run(coroutine)


class Session(SyncSessionCalls):
    """A conversation with an agent."""

    def __init__(self, session: _session.Session, run: Any) -> None:
        super().__init__(session, run)
        self._session = session

    @property
    def opened(self) -> SessionResult:
        """Result of the opening: ids, agent, directory and state of the session."""
        return self._session.opened

    @property
    def recovery(self) -> Recovery:
        """How the session was opened, and whether the agent remembers the conversation."""
        return self._session.recovery

    def prompt(
        self,
        message: UserMessage,
        *,
        turn_id: str | None = None,
        rerun: bool = False,
        degrade: bool = False,
        retry: bool = False,
        retry_after_output: bool = False,
        timeout_ms: int | None = None,
        context: dict[str, Any] | None = None,
        when_busy: PromptWhenBusy | None = None,
    ) -> Turn:
        """Starts a turn. Iterate over its chunks, or call `summary`.

        Args:
            message: Message of the user: text, or a `UIMessage` of the AI SDK.
            turn_id: Id of the turn, new in the session. Default: a generated id.
            rerun: Whether a turn of this id is run again if only its beginning is stored.
            degrade: Whether images and audio that the agent does not accept are sent as links.
            retry: Whether the prompt is sent again, once, if the AI service fails with a transient error.
            retry_after_output: With `retry`: whether to also retry a turn that used tools or began its answer.
            timeout_ms: Maximum duration of the turn in milliseconds.
            context: Values that the agent is given before the message.
            when_busy: Behaviour while another turn runs in the session. Default: `queue`.
        """

        async def start() -> _turn.Turn:
            return self._session.prompt(
                message,
                turn_id=turn_id,
                rerun=rerun,
                degrade=degrade,
                retry=retry,
                retry_after_output=retry_after_output,
                timeout_ms=timeout_ms,
                context=context,
                when_busy=when_busy,
            )

        return Turn(self._run(start()), self._run)


class Turn:
    """A turn of an agent: iterate over its chunks, or call `summary`.

    The turn has begun when you get this object. It is cancelled if an exception such as Ctrl-C ends the wait for it, at
    the end of its `with` block, and when the last reference to it is gone, for example after a `break`.
    """

    def __init__(self, turn: _turn.Turn, run: Any) -> None:
        self._turn = turn
        self._run = run

    @property
    def session_id(self) -> str:
        """Id of the session."""
        return self._turn.session_id

    @property
    def id(self) -> str | None:
        """Id of the turn. `None` for `execute`, whose summary has it."""
        return self._turn.id

    def __iter__(self) -> Turn:
        return self

    def __next__(self) -> AnyChunk:
        """Returns the next chunk. Raises `TurnFailed` after the last chunk of a turn that failed."""
        chunk: AnyChunk | None = self._run(self._next())
        if chunk is None:
            raise StopIteration
        return chunk

    def summary(self) -> TurnSummary:
        """Waits for the end of the turn and returns its summary. Chunks that were not read are dropped.

        Raises `TurnFailed` if the turn failed, and another `AcpipeError` if it could not begin. A cancelled turn has a
        summary, too: its `stop_reason` is `cancelled`.
        """
        summary: TurnSummary = self._run(self._turn.summary())
        return summary

    def outcome(self) -> TurnSummary:
        """Like `summary`, but also returns the summary of a turn that failed."""
        summary: TurnSummary = self._run(self._turn.outcome())
        return summary

    def cancel(self) -> None:
        """Cancels the turn. It still ends with its last chunks and its summary."""

        async def cancel() -> None:
            self._turn.cancel()

        self._run(cancel())

    def __enter__(self) -> Turn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._turn.__aexit__(kind, error, trace))

    async def _next(self) -> AnyChunk | None:
        # A coroutine cannot raise StopIteration, which ends the loop of the caller.
        try:
            return await self._turn.__anext__()
        except StopAsyncIteration:
            return None


def _threaded(function: Callable[[P], R] | None) -> Callable[[P], Coroutine[Any, Any, R]] | None:
    """Returns the asyncio form of a function that may block."""
    if function is None:
        return None
    blocking = function

    async def run(argument: P) -> R:
        return await in_thread(blocking, argument)

    return run


class _ThreadedTerminals:
    """The asyncio form of `Terminals`."""

    def __init__(self, terminals: Terminals) -> None:
        self._terminals = terminals

    async def create(self, request: CreateTerminalParams) -> CreatedTerminal:
        return await in_thread(self._terminals.create, request)

    async def output(self, request: TerminalParams) -> TerminalSaid:
        return await in_thread(self._terminals.output, request)

    async def wait_for_exit(self, request: TerminalParams) -> TerminalExited:
        return await in_thread(self._terminals.wait_for_exit, request)

    async def kill(self, request: TerminalParams) -> None:
        await in_thread(self._terminals.kill, request)

    async def release(self, request: TerminalParams) -> None:
        await in_thread(self._terminals.release, request)
