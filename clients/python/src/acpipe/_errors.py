"""Exceptions of the client."""

from __future__ import annotations

from typing import Any

from acpipe._json import as_object
from acpipe.models import TurnSummary


class AcpipeError(Exception):
    """A call failed.

    The message is for people: it says what failed, why, and what to do. Programs use `kind`, one of `ErrorKind` if
    acpipe reported the error.
    """

    def __init__(self, kind: str, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        """Kind of the error."""
        self.data: dict[str, Any] = data or {}
        """Details of the error, such as `stderr` or `field`."""


class TurnFailed(AcpipeError):
    """A turn began and failed. `kind` is that of its first error."""

    def __init__(self, summary: TurnSummary) -> None:
        error = summary.errors[0]
        super().__init__(error.kind, error.message, as_object(error.data))
        self.summary = summary
        """Summary of the turn, with all errors and the output before them."""


class AcpipeNotFound(AcpipeError):
    """The acpipe program cannot be found or started. `kind` is `acpipeNotFound`."""

    def __init__(self, message: str) -> None:
        super().__init__("acpipeNotFound", message)


class AcpipeExited(AcpipeError):
    """acpipe is not running: it exited, or the client was closed. `kind` is `acpipeExited`."""

    def __init__(self, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__("acpipeExited", message, data)


class InvalidMessage(AcpipeError):
    """acpipe sent a message that this package cannot read. `kind` is `invalidMessage`."""

    def __init__(self, what: str, why: Exception) -> None:
        message = f"cannot read {what} of acpipe: {why}; install the package and the program from the same release"
        super().__init__("invalidMessage", message)
