"""A session on asyncio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acpipe._calls import Calls, SessionCalls
from acpipe._turn import Turn
from acpipe.models import PromptParams, PromptWhenBusy, Recovery, SessionResult, UserMessage

StartTurn = Callable[[PromptParams], Turn]


class Session(SessionCalls):
    """A conversation with an agent."""

    def __init__(self, calls: Calls, opened: SessionResult, start_turn: StartTurn) -> None:
        super().__init__(calls, opened.session_id)
        self.opened = opened
        """Result of the opening: ids, agent, directory and state of the session."""
        self._start_turn = start_turn

    @property
    def recovery(self) -> Recovery:
        """How the session was opened, and whether the agent remembers the conversation."""
        return self.opened.recovery

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
        """Starts a turn. Iterate over its chunks, or await it for its summary.

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
        return self._start_turn(
            PromptParams(
                message=message,
                session_id=self.id,
                turn_id=turn_id,
                rerun=rerun,
                degrade=degrade,
                retry=retry,
                retry_after_output=retry_after_output,
                timeout_ms=timeout_ms,
                context=context,
                when_busy=when_busy,
            )
        )
