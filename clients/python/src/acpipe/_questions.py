"""Requests of acpipe to the user, with methods for their answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from acpipe.models import (
    CancelledPermissionOutcome,
    FeedbackDelivery,
    OfferedKind,
    OfferedOption,
    PermissionAnswer,
    PermissionParams,
    QuestionAnswer,
    QuestionParams,
    SelectedPermissionOutcome,
)


class _Closable:
    """Whether a request still waits for its answer."""

    _is_open = True

    @property
    def is_open(self) -> bool:
        """Whether an answer still has an effect: not after a timeout, a cancelled turn, or another client's answer.

        A handler on asyncio is also cancelled then. The thread of one of `acpipe.sync` goes on.
        """
        return self._is_open


def close_request(request: PermissionRequest | QuestionRequest) -> None:
    """Marks that a request does not wait for its answer any more."""
    request._is_open = False  # pyright: ignore[reportPrivateUsage]


_ASKS_LESS = re.compile(
    r"\b(auto|autopilot|bypass|dangerously|unrestricted|yolo|accept edits|full access|skip permissions)\b"
)


def _asks_less(option: OfferedOption) -> bool:
    """Whether the agent asks less in general after this option: it changes the agent's mode."""

    def words(text: str) -> str:
        text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"`[^`]*`", " ", text))
        return re.sub(r"[\W_]+", " ", text).lower()

    return any(_ASKS_LESS.search(words(text)) for text in (option.option_id, option.name))


def _chosen(options: Sequence[OfferedOption], kinds: tuple[OfferedKind, OfferedKind]) -> OfferedOption | None:
    """Chooses an option by its kind: the first that rejects, or the only one that allows."""
    for kind in kinds:
        found = [option for option in options if option.kind == kind]
        if kind.startswith("allow"):
            found = [option for option in found if not _asks_less(option)]
            if len(found) > 1:
                if kind == "allow_once":  # what allows more is not a substitute
                    return None
                continue
        if found:
            return found[0]
    return None


class PermissionRequest(_Closable, PermissionParams, kw_only=True):
    """Asks whether the agent may run a tool. Return what one of the methods returns."""

    def allow(self) -> PermissionAnswer:
        """Allows this call once."""
        return self._choose(("allow_once", "allow_always"), None, None)

    def allow_always(self) -> PermissionAnswer:
        """Allows this call, and lets the agent remember that if it offers to."""
        return self._choose(("allow_always", "allow_once"), None, None)

    def deny(self, message: str | None = None, *, next_prompt: bool = False) -> PermissionAnswer:
        """Rejects this call once.

        Args:
            message: Reason for the agent. Only Claude Code receives it with the refusal.
            next_prompt: Whether an agent that cannot receive the reason gets it with the next prompt.
        """
        return self._choose(("reject_once", "reject_always"), message, "nextPrompt" if next_prompt else None)

    def select(
        self, option_id: str, *, message: str | None = None, updated_input: dict[str, Any] | None = None
    ) -> PermissionAnswer:
        """Chooses one of `options`.

        Args:
            option_id: Id of the option.
            message: Text of the user for the agent.
            updated_input: Input with which the tool runs in place of its own, for Claude Code.
        """
        outcome = SelectedPermissionOutcome(option_id=option_id, message=message, updated_input=updated_input)
        return PermissionAnswer(outcome=outcome)

    def dismiss(self) -> PermissionAnswer:
        """Refuses without a choice. Some agents then end the turn."""
        return PermissionAnswer(outcome=CancelledPermissionOutcome())

    def _choose(
        self, kinds: tuple[OfferedKind, OfferedKind], message: str | None, delivery: FeedbackDelivery | None
    ) -> PermissionAnswer:
        option = _chosen(self.options, kinds)
        if option is not None:
            selected = SelectedPermissionOutcome(
                option_id=option.option_id, message=message, feedback_delivery=delivery
            )
            return PermissionAnswer(outcome=selected)
        return PermissionAnswer(outcome=CancelledPermissionOutcome(message=message, feedback_delivery=delivery))


class QuestionRequest(_Closable, QuestionParams, kw_only=True):
    """A question of the agent to the user: a form, an address to open, or a plan to approve."""

    def accept(self, content: dict[str, Any] | None = None) -> QuestionAnswer:
        """Answers or approves.

        Args:
            content: The values of a form, or `optionId` and `feedback` of a plan.
        """
        return QuestionAnswer(action="accept", content=content)

    def decline(self) -> QuestionAnswer:
        """Refuses to answer."""
        return QuestionAnswer(action="decline")

    def dismiss(self) -> QuestionAnswer:
        """Dismisses the question. Claude Code then ends the turn."""
        return QuestionAnswer(action="cancel")
