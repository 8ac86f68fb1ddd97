"""The turns of a client that are running."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass

import msgspec

from acpipe._chunks import decode_chunk
from acpipe._connection import Connection
from acpipe._errors import InvalidMessage
from acpipe._flow import Flow
from acpipe._frames import Unreadable, parameters
from acpipe._mailbox import Mailbox
from acpipe._turn import Turn
from acpipe.models import CancelParams, CancelResult, ExecuteParams, PromptParams, TurnSummary


class _Address(msgspec.Struct, rename="camel"):
    """The receiver of a chunk, and the chunk before it is decoded."""

    session_id: str
    turn_id: str | None
    chunk: msgspec.Raw


@dataclass(frozen=True)
class _Running:
    """A turn whose chunks go to its mailbox until its response is there."""

    mailbox: Mailbox
    response: asyncio.Future[TurnSummary]


class Turns:
    """Starts turns and passes chunks to them."""

    def __init__(self, connection: Connection, flow: Flow) -> None:
        self._connection = connection
        self._flow = flow
        # By session and turn. acpipe chooses the ids of the turns of `execute`; their sessions have no other turn.
        self._running: dict[tuple[str, str | None], _Running] = {}

    def prompt(self, params: PromptParams) -> Turn:
        """Starts a turn of a session."""
        # With an id of its own, a turn gets its chunks, and a cancel does not reach another turn.
        params.turn_id = turn_id = params.turn_id or f"turn-{uuid.uuid4().hex}"
        params.session_id = session_id = params.session_id or "default"
        return self._start("session/prompt", params, session_id, turn_id)

    def execute(self, params: ExecuteParams) -> Turn:
        """Starts a turn in a session of its own."""
        params.session_id = session_id = params.session_id or f"execute-{uuid.uuid4().hex}"
        return self._start("execute", params, session_id, None)

    def receive(self, params: msgspec.Raw) -> None:
        """Passes a chunk to its turn."""
        address = parameters("session/chunk", params, _Address)
        mailbox = self._mailbox(address.session_id, address.turn_id)
        if mailbox is not None:
            try:
                mailbox.put(decode_chunk(address.chunk))
            except InvalidMessage as error:
                raise Unreadable(f"the parameters of session/chunk: {error}") from error

    async def until_read(self, session_id: str | None, turn_id: str | None) -> None:
        """Waits until the program has read the chunks of a turn so far, with a time limit."""
        mailbox = self._mailbox(session_id, turn_id)
        if mailbox is not None:
            await mailbox.until_read()

    def _mailbox(self, session_id: str | None, turn_id: str | None) -> Mailbox | None:
        if session_id is None:
            return None
        running = self._running.get((session_id, turn_id)) or self._running.get((session_id, None))
        return running.mailbox if running else None

    def _start(self, method: str, params: PromptParams | ExecuteParams, session_id: str, turn_id: str | None) -> Turn:
        key = (session_id, turn_id)
        mailbox = Mailbox(self._flow)
        response = self._connection.start(method, params, TurnSummary)
        own = _Running(mailbox, response)
        known = self._running.get(key)
        # acpipe refuses the id of a turn that runs; that turn keeps its mailbox. One that has ended can still be here.
        if known is None or known.response.done():
            self._running[key] = own

        def ended(done: asyncio.Future[TurnSummary]) -> None:
            if self._running.get(key) is own:
                del self._running[key]
            mailbox.wake()
            if not done.cancelled():
                done.exception()  # marks it as retrieved: asyncio logs no error of a turn that the program ignores

        response.add_done_callback(ended)
        cancel = CancelParams(session_id=session_id, turn_id=turn_id)

        def send_cancel() -> None:
            result = self._connection.start("session/cancel", cancel, CancelResult)
            result.add_done_callback(lambda done: done.cancelled() or done.exception())

        return Turn(session_id, turn_id, response, mailbox, self._flow, send_cancel)
