"""Backpressure."""

from __future__ import annotations

import asyncio

from acpipe import Client, UnknownChunk
from acpipe._flow import UNREAD_LIMIT, Flow
from acpipe._mailbox import Mailbox
from tests.lab import Lab, end, say

CHUNK = UnknownChunk("test", {})


def filled(flow: Flow) -> Mailbox:
    """Returns a mailbox with one chunk more than the limit."""
    mailbox = Mailbox(flow)
    for _ in range(UNREAD_LIMIT + 1):
        mailbox.put(CHUNK)
    return mailbox


async def test_reading_stops_at_the_limit_and_continues_below_it() -> None:
    flow = Flow()
    mailbox = Mailbox(flow)
    for _ in range(UNREAD_LIMIT):
        mailbox.put(CHUNK)
    assert flow.is_open
    mailbox.put(CHUNK)
    assert not flow.is_open
    mailbox.take()
    assert flow.is_open


async def test_reading_continues_while_a_task_waits_for_a_message() -> None:
    flow = Flow()
    mailbox = filled(flow)
    with flow.expecting():
        assert flow.is_open
    assert not flow.is_open
    mailbox.close()
    assert flow.is_open


async def test_closed_mailbox_keeps_no_chunks() -> None:
    flow = Flow()
    mailbox = filled(flow)
    mailbox.close()
    for _ in range(2 * UNREAD_LIMIT):
        mailbox.put(CHUNK)
    assert flow.is_open
    assert mailbox.take() is None


async def test_two_full_mailboxes_are_both_counted() -> None:
    flow = Flow()
    first, second = filled(flow), filled(flow)
    first.close()
    assert not flow.is_open
    second.take()
    assert flow.is_open


async def test_reading_pauses_while_a_long_turn_is_not_read(lab: Lab) -> None:
    updates = 20 * UNREAD_LIMIT
    async with Client(lab.agent([{"repeat": {"times": updates, "steps": [say("{i} ")]}}, end()])) as client:
        session = await client.session("s", cwd=lab.project)
        turn = session.prompt("count")
        while client._flow.is_open:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.01)
        assert len(turn._mailbox) == UNREAD_LIMIT + 1  # pyright: ignore[reportPrivateUsage]
        assert (await turn).text.endswith(f" {updates - 1} ")
