"""The client on asyncio."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from acpipe._binary import find_acpipe
from acpipe._calls import Calls
from acpipe._connection import Connection
from acpipe._errors import AcpipeError, AcpipeExited, InvalidMessage
from acpipe._flow import Flow
from acpipe._frames import parameters
from acpipe._handlers import Handlers, OnPermission, OnQuestion, OnReadTextFile, OnWriteTextFile, Terminals
from acpipe._options import Agent, PermissionMode, absolute, command_line
from acpipe._process import AcpipeProcess
from acpipe._responder import Responder
from acpipe._session import Session
from acpipe._turn import Turn
from acpipe._turns import Turns
from acpipe.models import (
    NOTIFICATIONS,
    CancelRequestParams,
    ExecuteParams,
    InitializeResult,
    ListSessionsResult,
    McpServerList,
    Model,
    Notification,
    PeerInfo,
    PromptParams,
    SessionInfo,
    SessionOptions,
    Strategy,
    UserMessage,
)

logger = logging.getLogger("acpipe")
T = TypeVar("T")
N = TypeVar("N", bound=Notification)
Listener = Callable[[Any], object]

PROTOCOL_VERSION = 1
# The form of the chunks that the types describe, whatever the configuration of the user says.
CHUNK_PROFILE = 7


class Client:
    """A running acpipe. Use it as `async with Client(…) as client`.

    Args:
        agent: Agent of sessions that name none: a name such as `claude`, or a command line as a list. Without it, each
            session names its agent, or keeps its own, or `rpc.agent_connect` starts the default agent.
        permissions: What happens to tool calls that no rule decides. Default: `ask` with `on_permission`, otherwise
            as configured, which is to approve all.
        options: Further options of `acpipe serve`.
        env: Variables to add to the environment of acpipe.
        binary: Path of the acpipe program. Default: see `find_acpipe`.
        client_info: Name and version of your program.
        on_permission: Decides whether the agent may run a tool: an `async def` function, as all handlers, or a plain
            function that returns at once.
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
        on_permission: OnPermission | None = None,
        on_question: OnQuestion | None = None,
        on_read_text_file: OnReadTextFile | None = None,
        on_write_text_file: OnWriteTextFile | None = None,
        terminals: Terminals | None = None,
    ) -> None:
        self._handlers = Handlers(on_permission, on_question, on_read_text_file, on_write_text_file, terminals)
        self._agent = agent
        self._arguments = command_line(agent, permissions, options, asks=on_permission is not None)
        self._env = env
        self._binary = None if binary is None else os.fspath(binary)
        self._client_info = client_info
        self._responder = Responder(self._handlers.by_method(), self._until_read)
        self._listeners: dict[type[Model], list[Listener]] = {}
        self._flow = Flow()
        self._process: AcpipeProcess | None = None
        self._connection: Connection | None = None
        self._turns: Turns | None = None
        self._initialized: InitializeResult | None = None
        self.rpc = Calls(self._call)
        """Every request of the protocol as a method."""

    async def __aenter__(self) -> Client:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts acpipe."""
        if self._process is not None:
            raise RuntimeError("the client was already started; create a new one")
        self._process = await AcpipeProcess.start(self._binary or find_acpipe(), self._arguments, self._env)
        self._connection = Connection(self._process, self._flow, self._notified, self._requested)
        self._turns = Turns(self._connection, self._flow)
        try:
            self._initialized = await self.rpc.initialize(
                PROTOCOL_VERSION,
                client_info=self._client_info,
                process_id=os.getpid(),  # acpipe exits with this process, even if another one holds the pipes
                capabilities=self._handlers.capabilities(),
                chunk_profile=CHUNK_PROFILE,
            )
        except AcpipeExited as error:
            await self.close()
            raise self._agent_not_found(error) or error from None
        except BaseException:
            await self.close()
            raise
        self._process.log_stderr()

    async def close(self) -> None:
        """Cancels running turns, stops the agents and acpipe, and returns when acpipe has exited."""
        if self._connection is not None:
            self._responder.cancel_all()
            await self._connection.close()
            await self._responder.finished()

    @property
    def initialized(self) -> InitializeResult:
        """Result of `initialize`: version of acpipe, and the default agent."""
        if self._initialized is None:
            raise not_started()
        return self._initialized

    @property
    def pid(self) -> int:
        """Process id of acpipe."""
        if self._process is None:
            raise not_started()
        return self._process.pid

    async def session(
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
        if agent is None and self._agent is not None:
            agent = self.initialized.default_agent.name
        opened = await self.rpc.session_ensure(
            session_id=session_id,
            agent=agent,
            cwd=absolute(cwd),
            mcp_servers=mcp_servers,
            options=options,
            strict=strict,
            strategy=strategy,
            agent_session_id=agent_session_id,
            fork=fork,
            timeout_ms=timeout_ms,
        )
        return Session(self.rpc, opened, self._running_turns().prompt)

    async def sessions(self, *, cwd: str | os.PathLike[str] | None = None) -> AsyncIterator[SessionInfo]:
        """Yields the stored sessions, the most recently changed first.

        Args:
            cwd: Only sessions of this directory. Default: sessions of all directories.
        """
        directory, cursor = absolute(cwd), None
        while True:
            page = await self.rpc.session_list(cwd=directory, cursor=cursor)
            for info in page.sessions:
                yield info
            if (cursor := next_cursor(page, cursor)) is None:
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
        return self._running_turns().execute(
            ExecuteParams(
                message=message,
                agent=agent,
                context=context,
                output_schema=output_schema,
                timeout_ms=timeout_ms,
                max_turns=max_turns,
                options=options,
                cwd=absolute(cwd),
                session_id=session_id,
                retry=retry,
            )
        )

    def on(self, kind: type[N], listener: Callable[[N], object]) -> Callable[[], None]:
        """Calls a function with each notification of a kind, such as `AgentStateParams`.

        The function must return soon: no other message is read meanwhile. It is a plain function, which may start a
        task. Returns a function that ends it.
        """
        if inspect.iscoroutinefunction(listener):
            raise ValueError("a listener must be a plain function, which may start a task; it is not awaited")
        listeners = self._listeners.setdefault(kind, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    async def _call(self, method: str, params: Model | None, result: type[T]) -> T:
        if self._connection is None:
            raise not_started()
        # A prompt is a turn, which is cancelled with the task that waits for it.
        if isinstance(params, ExecuteParams):
            return await self._running_turns().execute(params).outcome()  # type: ignore[return-value]
        if isinstance(params, PromptParams):
            return await self._running_turns().prompt(params).outcome()  # type: ignore[return-value]
        return await self._connection.call(method, params, result)

    def _running_turns(self) -> Turns:
        if self._turns is None:
            raise not_started()
        return self._turns

    def _agent_not_found(self, error: AcpipeExited) -> AcpipeError | None:
        """Returns the error of an unknown name of an agent, for which acpipe exits as for an option."""
        prefix, begin = "acpipe: ", f'acpipe: agent "{self._agent}" '
        for line in str(error.data.get("stderr", "")).splitlines():
            if line.startswith((f"{begin}not found", f"{begin}is ambiguous")):
                return AcpipeError("agentNotFound", line.removeprefix(prefix), error.data)
        return None

    async def _until_read(self, session_id: str | None, turn_id: str | None) -> None:
        await self._running_turns().until_read(session_id, turn_id)

    def _notified(self, method: str, params: msgspec.Raw) -> None:
        kind = NOTIFICATIONS.get(method)
        if kind is None:
            return  # of a newer acpipe
        if method == "session/chunk" and self._turns is not None:
            self._turns.receive(params)
        listeners = self._listeners.get(kind, [])
        if not listeners and kind is not CancelRequestParams:
            return
        notification = parameters(method, params, kind)
        if isinstance(notification, CancelRequestParams):
            self._responder.cancel(notification.id)
        for listener in list(listeners):
            try:
                listener(notification)
            except (Exception, asyncio.CancelledError):
                # One listener that fails does not stop the others.
                logger.exception("a listener of %s failed", method)

    def _requested(self, number: int | str, method: str, params: msgspec.Raw) -> None:
        assert self._connection is not None
        self._responder.answer(self._connection, number, method, params)


def next_cursor(page: ListSessionsResult, cursor: str | None) -> str | None:
    """Returns the cursor of the next page. The same one again would be an endless list."""
    if page.next_cursor is not None and page.next_cursor == cursor:
        raise InvalidMessage("a page of `session/list`", "its cursor does not advance")
    return page.next_cursor


def not_started() -> AcpipeExited:
    """Returns the error of a client that was not started, or that was closed."""
    return AcpipeExited("acpipe is not running: use the client in its `async with` or `with` block, or call `start`")
