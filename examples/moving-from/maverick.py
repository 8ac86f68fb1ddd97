"""Maverick's base agent on acpipe: MaverickAgent, registry, result, errors. See docs/moving-from/maverick.md."""
import abc
import builtins
import uuid
from dataclasses import dataclass, field
from typing import Any

from acpipe_client import Acpipe, AcpipeError

BUILTIN_TOOLS = {"Read", "Write", "Edit", "Bash", "Glob", "Grep", "NotebookEdit", "WebFetch", "WebSearch", "TodoWrite", "Task",
                 "ExitPlanMode"}


# Errors

class AgentError(Exception):
    """Any failure of an agent. `kind` is acpipe's."""

    def __init__(self, message, kind=None, data=None):
        super().__init__(message)
        self.kind = kind
        self.data = data or {}


class CLINotFoundError(AgentError):
    """The agent's program is not installed."""


class ProcessError(AgentError):
    """The agent's process failed."""

    @property
    def exit_code(self):
        return self.data.get("exitCode")

    @property
    def stderr(self):
        return self.data.get("stderr")


class TimeoutError(AgentError, builtins.TimeoutError):
    """A time limit passed."""


class NetworkError(AgentError):
    """The agent cannot reach its model."""


class StreamingError(AgentError):
    """The answer ended early, after the messages that were delivered."""


class MalformedResponseError(AgentError):
    """The agent's answer is not valid."""

    @property
    def raw_response(self):
        return self.data.get("raw")


class InvalidToolError(AgentError):
    """A tool does not exist."""


class DuplicateAgentError(AgentError):
    """The name of an agent is taken."""


ERRORS = {
    "agentNotFound": CLINotFoundError, "agentStart": ProcessError, "agentExited": ProcessError, "acpipeExited": ProcessError,
    "timeout": TimeoutError, "network": NetworkError, "streaming": StreamingError, "malformed": MalformedResponseError,
    "initialize": MalformedResponseError, "invalidTool": InvalidToolError, "duplicateAgent": DuplicateAgentError,
}


def wrapped(error):
    """An error of acpipe as one of Maverick's."""
    return ERRORS.get(error.kind, AgentError)(str(error), error.kind, error.data)


# Values

@dataclass(frozen=True)
class AgentUsage:
    """Figures of one execution; None for what the agent does not report."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_cost_usd: float | None = None
    duration_ms: int = 0

    def __post_init__(self):
        for name, value in vars(self).items():
            if value is not None and value < 0:
                raise ValueError(f"{name} must not be negative: {value}")


@dataclass(frozen=True)
class AgentContext:
    cwd: str
    branch: str | None = None
    config: Any = None
    extra: dict = field(default_factory=dict)


@dataclass(frozen=True)
class AgentResult:
    success: bool
    output: str
    usage: AgentUsage
    metadata: dict = field(default_factory=dict)
    errors: list[AgentError] = field(default_factory=list)

    def __post_init__(self):
        if not self.success and not self.errors:
            raise ValueError("a failed result needs at least one error")


@dataclass(frozen=True)
class TextBlock:
    text: str


@dataclass(frozen=True)
class ToolUseBlock:
    id: str
    name: str
    input: Any


@dataclass(frozen=True)
class ToolResultBlock:
    tool_use_id: str
    content: Any
    is_error: bool = False


@dataclass(frozen=True)
class AssistantMessage:
    content: list


@dataclass(frozen=True)
class ResultMessage:
    """Last message of a query that did not fail."""
    usage: AgentUsage
    metadata: dict


def extract_text(message):
    """The text of an assistant's message, one line for each block; nothing of its tools."""
    return "\n".join(block.text for block in getattr(message, "content", []) if isinstance(block, TextBlock))


def extract_all_text(messages):
    """The text of all messages, with an empty line between them."""
    return "\n\n".join(text for text in map(extract_text, messages) if text)


# Agents

class MaverickAgent(abc.ABC):
    """Base of agents: a subclass needs a name, a system prompt and `execute`."""

    def __init__(self, name, system_prompt, allowed_tools=(), model=None, *, mcp_servers=(), permission_mode="allowlist",
                 agent=None, timeout_seconds=None):
        self.name = name
        self.system_prompt = system_prompt
        self.allowed_tools = list(allowed_tools)
        self.model = model
        self.mcp_servers = list(mcp_servers)
        self.permission_mode = permission_mode      # allowlist, auto_approve or deny_dangerous
        self.agent = agent or {"protocol": "claude"}    # parameters of agent/register
        self.timeout_seconds = timeout_seconds
        self._acpipe = None
        self._check_tools()

    @abc.abstractmethod
    async def execute(self, context: AgentContext) -> AgentResult:
        """Does the agent's work; usually returns `await self.run(prompt, context)`."""

    async def run(self, prompt, context):
        """One query as a result. Failures of the agent are its errors; nothing is repeated."""
        messages, usage, metadata, errors = [], AgentUsage(), {}, []
        try:
            async for message in self.query(prompt, cwd=context.cwd):
                messages.append(message)
        except AgentError as error:
            errors.append(error)
            usage, metadata = getattr(error, "usage", usage), getattr(error, "metadata", metadata)
        else:
            usage, metadata = messages[-1].usage, messages[-1].metadata
        metadata = metadata | ({"branch": context.branch} if context.branch else {})
        return AgentResult(not errors, extract_all_text(messages), usage, metadata, errors)

    async def query(self, prompt, cwd=None):
        """The agent's messages as they are completed. A query that fails raises after what it delivered."""
        session, delivered = uuid.uuid4().hex, False
        try:
            acpipe = await self._started()
            # Waits for an agent that has to stop after a failure; returns at once if the agent is ready.
            await acpipe.call("agent/connect", agent=self.name)
            await acpipe.call("session/create", sessionId=session, agent=self.name, cwd=cwd, mcpServers=self.mcp_servers)
            try:
                limit = self.timeout_seconds and int(self.timeout_seconds * 1000)
                async with acpipe.prompt(session, prompt, timeoutMs=limit) as turn:
                    async for message in messages_of(turn):
                        delivered = True
                        yield message
                    summary = await turn.summary()
            finally:
                if acpipe.is_running:
                    await acpipe.call("session/clear", sessionId=session)
        except AcpipeError as error:
            raise wrapped(error) from error
        tokens = summary["usage"] or {}
        usage = AgentUsage(tokens.get("inputTokens"), tokens.get("outputTokens"), summary["cost"], summary["durationMs"])
        metadata = {"stop_reason": summary["stopReason"], "num_turns": summary["numTurns"], "tools_used": summary["toolsUsed"]}
        if summary["isError"]:
            error = wrapped(AcpipeError.of_turn(summary["errors"][0]))
            if delivered and isinstance(error, (ProcessError, NetworkError)):
                cause, error = error, StreamingError(str(error), error.kind, error.data)
                error.__cause__ = cause
            error.usage, error.metadata = usage, metadata
            raise error
        yield ResultMessage(usage, metadata)

    async def close(self):
        """Stops the agent's processes."""
        if self._acpipe:
            await self._acpipe.close()
            self._acpipe = None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    def _check_tools(self):
        servers = [server["name"] for server in self.mcp_servers]
        for tool in self.allowed_tools:
            if tool not in BUILTIN_TOOLS and not any(tool.startswith(f"mcp__{server}__") for server in servers):
                known = ", ".join(sorted(BUILTIN_TOOLS) + [f"mcp__{server}__*" for server in servers])
                raise InvalidToolError(f"tool {tool!r} does not exist; there are: {known}", "invalidTool")

    async def _started(self):
        if self._acpipe is None or not self._acpipe.is_running:
            permissions = "deny" if self.permission_mode == "allowlist" else "approve"
            refused = ["Bash", "Write", "Edit", "NotebookEdit"] if self.permission_mode == "deny_dangerous" else []
            try:
                self._acpipe = await Acpipe.start("--persist", "never", "--permissions", permissions)
            except FileNotFoundError as error:
                raise CLINotFoundError("cannot start acpipe: not found in PATH; install it", "agentNotFound") from error
            await self._acpipe.call("agent/register", agent=self.name, instructions=self.system_prompt, options={
                "model": self.model, "allowedTools": self.allowed_tools, "disallowedTools": refused}, **self.agent)
        return self._acpipe


async def messages_of(turn):
    """The blocks of a turn, each as a message when it is complete. A block that the failed turn left open is closed by acpipe."""
    texts, shown = {}, set()
    async for chunk in turn:
        match chunk:
            case {"type": "text-start", "id": block}:
                texts[block] = ""
            case {"type": "text-delta", "id": block, "delta": delta}:
                texts[block] += delta
            case {"type": "text-end", "id": block} if text := texts.pop(block):
                yield AssistantMessage([TextBlock(text)])
            case {"type": "tool-input-available", "toolCallId": call, "toolName": name} if call not in shown:
                shown.add(call)
                yield AssistantMessage([ToolUseBlock(call, name, chunk["input"])])
            case {"type": "tool-output-available", "toolCallId": call, "output": output} if not chunk.get("preliminary"):
                yield AssistantMessage([ToolResultBlock(call, output)])
            case {"type": "tool-output-error", "toolCallId": call, "errorText": text}:
                yield AssistantMessage([ToolResultBlock(call, text, is_error=True)])
            case {"type": "tool-output-denied", "toolCallId": call}:
                yield AssistantMessage([ToolResultBlock(call, "denied", is_error=True)])


class AgentRegistry:
    """Agent classes by their unique names."""

    def __init__(self):
        self._classes = {}

    def register(self, name, agent_class=None):
        """Registers a class; without one, a decorator."""
        if agent_class is None:
            return lambda decorated: self.register(name, decorated)
        if name in self._classes:
            raise DuplicateAgentError(f"agent {name!r} exists already: {self._classes[name].__name__}", "duplicateAgent")
        self._classes[name] = agent_class
        return agent_class

    def get(self, name):
        if name not in self._classes:
            raise AgentError(f"agent {name!r} not found; there are: {', '.join(self.list_agents())}", "invalidParams")
        return self._classes[name]

    def create(self, name, **config):
        """An agent of the class with this name."""
        return self.get(name)(**config)

    def list_agents(self):
        return sorted(self._classes)
