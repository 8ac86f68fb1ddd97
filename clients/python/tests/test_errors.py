"""Errors: their kinds, and what a traceback shows."""

from __future__ import annotations

import sys
import traceback

import pytest

from acpipe import AcpipeError, AcpipeExited, InvalidMessage


@pytest.mark.parametrize(
    "error", [AcpipeError("busy", "why"), AcpipeExited("why"), InvalidMessage("x", KeyError("why"))]
)
def test_traceback_has_the_public_name_and_the_kind(error: AcpipeError) -> None:
    text = "".join(traceback.format_exception(error))
    assert text.startswith(f"acpipe.{type(error).__name__}: ")
    assert ("kind: " + error.kind in text) == (sys.version_info >= (3, 11))
