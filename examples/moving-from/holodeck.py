"""HoloDeck's execution interface on acpipe: ExecutionResult, AgentSession, AgentBackend. See docs/moving-from/holodeck.md."""
import asyncio
import json
import uuid
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Protocol

from acpipe_client import Acpipe, AcpipeError

PAUSES = (1, 2)                         # seconds between the attempts of invoke_once; send and send_streaming never repeat
RETRIED = {"agentExited", "agentStart", "network", "streaming", "malformed"}
CHANGING_TOOLS = ["Bash", "Write", "Edit", "WebFetch"]      # refused unless the configuration declares them


@dataclass
class ExecutionResult:
    response: str
    tool_calls: list[dict] = field(default_factory=list)        # {name, arguments, call_id}
    tool_results: list[dict] = field(default_factory=list)      # {call_id, result, is_error}
    token_usage: dict[str, int] = field(default_factory=dict)
    structured_output: Any = None
    num_turns: int = 1
    is_error: bool = False
    error_reason: str | None = None


class BackendError(Exception):
    """Base of all errors. `kind` is acpipe's kind of the error; `result` has what the turn brought before it failed."""

    def __init__(self, message, kind: str | None = None, result: ExecutionResult | None = None):
        super().__init__(message)
        self.kind = kind
        self.result = result


class BackendInitError(BackendError):
    """The backend cannot be started."""


class BackendSessionError(BackendError):
    """A session failed."""


class BackendTimeoutError(BackendError):
    """One invocation took too long."""


class AgentSession(Protocol):
    async def send(self, message: str) -> ExecutionResult: ...

    def send_streaming(self, message: str) -> AsyncIterator[str]: ...

    async def close(self) -> None: ...


class AgentBackend(Protocol):
    async def initialize(self) -> None: ...

    async def invoke_once(self, message: str, context: list[dict] | None = None) -> ExecutionResult: ...

    async def create_session(self) -> AgentSession: ...

    async def teardown(self) -> None: ...


@dataclass
class AgentConfig:
    name: str
    agent: dict = field(default_factory=lambda: {"protocol": "claude"})    # parameters of agent/register
    instructions: str | None = None
    model: str | None = None
    tools: list[str] = field(default_factory=list)              # declared tools
    mcp_servers: list[dict] = field(default_factory=list)
    working_directory: str | None = None
    response_format: dict | None = None                         # JSON Schema of the answers
    max_turns: int | None = None                                # Claude Code only; HoloDeck's own default is 20
    timeout_seconds: float | None = None                        # of one turn
    accept_all_tools: bool = False                              # unsafe: the agent may run everything


async def select_backend(config: AgentConfig) -> AgentBackend:
    """A started backend for this configuration. acpipe has one for every agent: only the command differs."""
    backend = AcpipeBackend(config)
    await backend.initialize()
    return backend


class AcpipeBackend:
    def __init__(self, config: AgentConfig):
        self.config = config
        self._acpipe: Acpipe | None = None

    async def initialize(self):
        config = self.config
        refused = [] if config.accept_all_tools else [t for t in CHANGING_TOOLS if t not in config.tools]
        options = {"model": config.model, "maxTurns": config.max_turns, "outputSchema": config.response_format,
                   "allowedTools": config.tools, "disallowedTools": refused}
        try:
            # Nothing is stored: HoloDeck's sessions end with their process.
            self._acpipe = await Acpipe.start("--persist", "never")
            await self._acpipe.call("agent/register", agent=config.name, instructions=config.instructions,
                                    options=options, cwd=config.working_directory, **config.agent)
            await self._acpipe.call("agent/connect", agent=config.name)
        except (AcpipeError, OSError) as error:
            await self.teardown()
            raise BackendInitError(str(error), getattr(error, "kind", None)) from error

    async def invoke_once(self, message, context=None):
        """One turn in a session of its own. If the process, the connection or the answer fails, tries again twice."""
        for pause in (*PAUSES, None):
            try:
                return await self._once(with_context(message, context))
            except BackendSessionError as error:
                if pause is None or error.kind not in RETRIED:
                    raise
            await asyncio.sleep(pause)

    async def _once(self, message):
        session = await self.create_session()
        try:
            result, kind = await session.run(message)
        finally:
            await session.close()
        if kind == "timeout":
            raise BackendTimeoutError(result.error_reason, kind, result)
        if kind in RETRIED:
            raise BackendSessionError(result.error_reason, kind, result)
        return result

    async def create_session(self):
        if self._acpipe is None:
            raise BackendError("the backend is not initialized: call initialize() first")
        session = AcpipeSession(self._acpipe, self.config)
        await session.open()
        return session

    async def teardown(self):
        if self._acpipe:
            await self._acpipe.close()
            self._acpipe = None


class AcpipeSession:
    def __init__(self, acpipe: Acpipe, config: AgentConfig):
        self.id = uuid.uuid4().hex
        self._acpipe = acpipe
        self._config = config

    async def open(self):
        servers = self._config.mcp_servers
        # Waits for an agent that has to stop after a failure; returns at once if the agent is ready.
        await self._call("agent/connect", agent=self._config.name)
        await self._call("session/create", sessionId=self.id, agent=self._config.name, mcpServers=servers)

    async def send(self, message):
        result, _kind = await self.run(message)
        return result

    async def send_streaming(self, message):
        """Pieces of the answer. A turn that fails raises after its last piece."""
        async with self._prompt(message) as turn:
            async for chunk in turn:
                if chunk["type"] == "text-delta":
                    yield chunk["delta"]
            result, kind = await outcome(turn)
        if result.is_error:
            raised = BackendTimeoutError if kind == "timeout" else BackendSessionError
            raise raised(result.error_reason, kind, result)

    async def run(self, message):
        """The result of a turn, and the kind of its error or None. Turns of a session never overlap: acpipe queues them."""
        async with self._prompt(message) as turn:
            return await outcome(turn)

    async def close(self):
        """Ends the agent's process of this session, and forgets its messages."""
        if self._acpipe.is_running:
            await self._call("session/clear", sessionId=self.id)

    def _prompt(self, message):
        seconds = self._config.timeout_seconds
        return self._acpipe.prompt(self.id, message, timeoutMs=seconds and int(seconds * 1000))

    async def _call(self, method, **params):
        try:
            return await self._acpipe.call(method, **params)
        except AcpipeError as error:
            raise of_call(error) from error


async def outcome(turn):
    """The result of a turn, and the kind of its error."""
    try:
        summary = await turn.summary()
    except AcpipeError as error:        # the turn did not begin
        raise of_call(error) from error
    usage = summary["usage"] or {}
    known = {"input_tokens": usage.get("inputTokens"), "output_tokens": usage.get("outputTokens"), "total_tokens": usage.get("totalTokens")}
    error = summary["errors"][0] if summary["isError"] else None
    result = ExecutionResult(
        response=summary["text"],
        tool_calls=[{"name": c["name"], "arguments": c["arguments"], "call_id": c["callId"]} for c in summary["toolCalls"]],
        tool_results=[{"call_id": r["callId"], "result": r["result"], "is_error": r["isError"]} for r in summary["toolResults"]],
        token_usage={name: count for name, count in known.items() if count is not None},
        structured_output=summary["structuredOutput"],
        num_turns=1 if summary["numTurns"] is None else summary["numTurns"],
        is_error=summary["isError"],
        error_reason=error and (summary["errorReason"] or error["message"]))
    return result, error and error["kind"]


def of_call(error):
    """The error of a call that failed, as HoloDeck's."""
    raised = BackendTimeoutError if error.kind == "timeout" else BackendSessionError
    return raised(str(error), error.kind)


def with_context(message, context):
    """The message, after the context as JSON in a text part of its own."""
    if not context:
        return message
    texts = "Context of the following message, as JSON:\n" + json.dumps(context, ensure_ascii=False), message
    return {"role": "user", "parts": [{"type": "text", "text": text} for text in texts]}
