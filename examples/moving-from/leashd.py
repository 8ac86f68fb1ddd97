"""leashd's agent interface on acpipe: execute, cancel, shutdown. See docs/moving-from/leashd.md."""
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Protocol

from acpipe_client import Acpipe, AcpipeError

CANCELLED = "Execution cancelled by user"
FRIENDLY = {        # kind of an error → text for users; all other errors have their own message
    "agentExited": "The agent stopped unexpectedly. Please try again.",
    "acpipeExited": "The agent stopped unexpectedly. Please try again.",
    "timeout": "The agent took too long and was stopped. Please try again.",
    "streaming": "The agent's answer ended early. Please try again.",
}
CLAUDE_MODES = {"plan": "plan", "default": "default"}       # every other mode of leashd accepts edits
TRANSIENT = "The AI service is temporarily unavailable."    # begins the message that acpipe gives such an error


@dataclass(frozen=True)
class AgentResponse:
    content: str
    session_id: str | None = None       # the agent's own id
    cost: float = 0.0
    duration_ms: int = 0
    num_turns: int = 0
    tools_used: list[str] = field(default_factory=list)
    is_error: bool = False


@dataclass(frozen=True)
class ToolActivity:
    tool_name: str
    description: str


@dataclass(frozen=True)
class Allow:
    updated_input: dict | None = None
    behavior: str = "allow"


@dataclass(frozen=True)
class Deny:
    message: str = ""
    behavior: str = "deny"


@dataclass
class Session:
    """What the adapter reads of the application's session."""
    session_id: str
    working_directory: str
    mode: str = "default"
    agent_session_id: str | None = None     # stored by the application before it moved to acpipe


@dataclass
class Config:
    agent: dict = field(default_factory=lambda: {"protocol": "claude"})    # parameters of agent/register
    system_prompt: str | None = None
    max_turns: int | None = None            # Claude Code only; leashd's own default is 250
    allowed_tools: list[str] = field(default_factory=list)
    disallowed_tools: list[str] = field(default_factory=list)
    timeout_seconds: int = 3600
    approval_timeout_seconds: int = 300


CanUseTool = Callable[[str, dict, Any], Awaitable[Allow | Deny]]


class BaseAgent(Protocol):
    async def execute(self, prompt: str, session: Session, *, can_use_tool: CanUseTool | None = None,
                      on_text_chunk: Callable[[str], Awaitable[None]] | None = None,
                      on_tool_activity: Callable[[ToolActivity | None], Awaitable[None]] | None = None,
                      ) -> AgentResponse: ...

    async def cancel(self, session_id: str) -> None: ...

    async def shutdown(self) -> None: ...


class AcpipeAgent:
    """A BaseAgent for Claude Code, or for any agent that acpipe drives."""

    def __init__(self, config: Config | None = None):
        self.config = config or Config()
        self._acpipe: Acpipe | None = None
        self._rewrites = False      # whether the agent runs tools with another input than its own
        self._gates: dict[str, CanUseTool | None] = {}      # id of a session → the callback of its execution

    async def execute(self, prompt, session, *, can_use_tool=None, on_text_chunk=None, on_tool_activity=None):
        self._gates[session.session_id] = can_use_tool

        async def on_activity(activity):
            if on_tool_activity:
                known = activity and ToolActivity(activity["toolName"], activity["description"])
                await on_tool_activity(known)

        try:
            acpipe = await self._started()
            await self._open(acpipe, session)
            limit = self.config.timeout_seconds * 1000
            async with acpipe.prompt(session.session_id, prompt, retry=True, timeoutMs=limit,
                                     on_activity=on_activity) as turn:
                async for chunk in turn:
                    if chunk["type"] == "text-delta" and on_text_chunk:
                        await on_text_chunk(chunk["delta"])
                summary = await turn.summary()
            details = await acpipe.call("session/get", sessionId=session.session_id)
            return response(summary, details["agentSessionId"])
        except AcpipeError as error:
            return AgentResponse(content=error_text(error), is_error=True)
        finally:
            self._gates.pop(session.session_id, None)

    async def cancel(self, session_id):
        if self._acpipe and self._acpipe.is_running:
            try:
                await self._acpipe.call("session/cancel", sessionId=session_id)
            except AcpipeError:         # acpipe does not know the session: nothing runs in it
                pass

    async def shutdown(self):
        if self._acpipe:
            await self._acpipe.close()
            self._acpipe = None

    async def _started(self):
        if self._acpipe is None or not self._acpipe.is_running:
            acpipe = await Acpipe.start("--permissions", "ask", "--timeout", f"answer={self.config.approval_timeout_seconds}s",
                                        capabilities={"permissions": True, "questions": True})
            acpipe.answer("permission/request", self._permission)
            acpipe.answer("question/ask", self._question)
            await acpipe.call("agent/register", agent="leashd", instructions=self.config.system_prompt, options={
                "maxTurns": self.config.max_turns, "allowedTools": self.config.allowed_tools,
                "disallowedTools": self.config.disallowed_tools}, **self.config.agent)
            self._acpipe = acpipe
        return self._acpipe

    async def _open(self, acpipe, session):
        """Opens the session: acpipe's own if it has one, else the stored one of the agent, else a new one."""
        mode = None
        if self.config.agent.get("protocol") == "claude":
            mode = CLAUDE_MODES.get(session.mode, "acceptEdits")
        wanted = {"sessionId": session.session_id, "agent": "leashd", "cwd": session.working_directory,
                  "options": {"mode": mode}}
        known = await find(acpipe, session.session_id)
        if known and known["state"] == "live":
            if mode and known["mode"] != mode:
                await acpipe.call("session/setMode", sessionId=session.session_id, mode=mode)
            return
        # Waits for an agent that has to stop after a failure; returns at once if the agent is ready.
        connected = await acpipe.call("agent/connect", agent="leashd")
        self._rewrites = connected["capabilities"].get("updatedInput", False)
        if known is None and session.agent_session_id:
            try:
                await acpipe.call("session/ensure", **wanted, agentSessionId=session.agent_session_id)
                return
            except AcpipeError:         # any error while resuming: the stored id is stale
                pass
        await acpipe.call("session/ensure", **wanted)

    async def _permission(self, asked):
        tool, gate = asked["toolCall"], self._gates.get(asked["sessionId"])
        answer = Deny("no can_use_tool callback") if gate is None else await gate(tool["toolName"], tool["input"] or {}, asked)
        rewritten = getattr(answer, "updated_input", None) if answer.behavior == "allow" else None
        if rewritten == tool["input"]:
            rewritten = None
        if rewritten is not None and not self._rewrites:
            answer = Deny("the input of this agent's tools cannot be rewritten")    # never run what was not approved
        kind = "allow_once" if answer.behavior == "allow" else "reject_once"
        for option in asked["options"]:
            if option["kind"] == kind:
                outcome = {"outcome": "selected", "optionId": option["optionId"]}
                if kind == "reject_once" and answer.message:
                    outcome["message"] = answer.message
                elif rewritten is not None:
                    outcome["updatedInput"] = rewritten
                return {"outcome": outcome}
        return {"outcome": {"outcome": "cancelled"}}

    async def _question(self, asked):
        """A plan is the tool ExitPlanMode to can_use_tool; all other questions are declined."""
        gate = self._gates.get(asked["sessionId"])
        if asked["kind"] != "plan" or gate is None:
            return {"action": "decline"}
        answer = await gate("ExitPlanMode", (asked["toolCall"] or {}).get("input") or {"plan": asked["message"]}, asked)
        if answer.behavior == "allow":
            return {"action": "accept"}
        return {"action": "decline", "content": {"feedback": answer.message}}


async def find(acpipe, session_id):
    """The state of a session, or None if acpipe does not know it."""
    try:
        return await acpipe.call("session/get", sessionId=session_id)
    except AcpipeError as error:
        if error.kind == "sessionNotFound":
            return None
        raise


def response(summary, agent_session_id):
    """An AgentResponse of a turn's summary."""
    content = summary["text"]
    is_cancelled = summary["stopReason"] == "cancelled"
    if is_cancelled:
        content = CANCELLED
    elif summary["isError"]:
        content = error_text(AcpipeError.of_turn(summary["errors"][0]))
    return AgentResponse(
        content=content, session_id=agent_session_id, cost=summary["cost"] or 0.0, duration_ms=summary["durationMs"],
        num_turns=summary["numTurns"] or 0, tools_used=summary["toolsUsed"],
        is_error=summary["isError"] or is_cancelled)


def error_text(error):
    """The text that users see instead of an error."""
    message = str(error)
    if message.startswith(TRANSIENT):
        return message
    return FRIENDLY.get(error.kind) or "Agent error: " + message[:200]
