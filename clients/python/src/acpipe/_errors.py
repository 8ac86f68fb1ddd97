"""Exceptions of the client."""

from __future__ import annotations

import re
import sys
from typing import Any, Literal, TypeAlias, cast, get_args

from acpipe._json import as_object
from acpipe.models import ErrorKind, TurnSummary

ClientErrorKind: TypeAlias = Literal["acpipeNotFound", "acpipeExited", "invalidMessage", "unknown"]
"""Kinds of errors that acpipe does not report itself.

- `acpipeNotFound`: The program acpipe cannot be found or started.
- `acpipeExited`: acpipe is not running.
- `invalidMessage`: A message of acpipe cannot be read.
- `unknown`: A kind of a newer acpipe, which is in `data["kind"]`.
"""

_KINDS = frozenset((*get_args(ErrorKind), *get_args(ClientErrorKind)))


class AcpipeError(Exception):
    """A call failed.

    The message is for people: it says what failed, why, and what to do. Programs use `kind`.
    """

    __module__ = "acpipe"  # the name in tracebacks is the one to import

    def __init__(self, kind: str, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        is_known = kind in _KINDS
        self.kind = cast("ErrorKind | ClientErrorKind", kind if is_known else "unknown")
        """Kind of the error. A type checker reports a comparison with a kind that does not exist."""
        self.data: dict[str, Any] = (data or {}) if is_known else {**(data or {}), "kind": kind}
        """Details of the error, such as `stderr` or `field`."""
        if sys.version_info >= (3, 11):
            self.add_note(f"kind: {kind}")


class TurnFailed(AcpipeError):
    """A turn began and failed. `kind` is that of its first error."""

    __module__ = "acpipe"

    def __init__(self, summary: TurnSummary) -> None:
        if summary.errors:
            error = summary.errors[0]
            super().__init__(error.kind, with_python_names(error.message), as_object(error.data))
        else:
            super().__init__("internal", "the turn failed, but its summary has no error; please report it")
        self.summary = summary
        """Summary of the turn, with all errors and the output before them."""


class AcpipeNotFound(AcpipeError):
    """The acpipe program cannot be found or started. `kind` is `acpipeNotFound`."""

    __module__ = "acpipe"

    def __init__(self, message: str) -> None:
        super().__init__("acpipeNotFound", message)


class AcpipeExited(AcpipeError):
    """acpipe is not running: it exited, or the client was closed. `kind` is `acpipeExited`."""

    __module__ = "acpipe"

    def __init__(self, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__("acpipeExited", message, data)


class InvalidMessage(AcpipeError):
    """acpipe sent a message that this package cannot read. `kind` is `invalidMessage`."""

    __module__ = "acpipe"

    def __init__(self, what: str, why: Exception | str) -> None:
        message = f"cannot read {what} of acpipe: {why}; install the package and the program from the same release"
        super().__init__("invalidMessage", message)


def reported_error(message: str, data: dict[str, Any]) -> AcpipeError:
    """Returns the error of a response of acpipe."""
    kind = data.get("kind")
    return AcpipeError(kind if isinstance(kind, str) else "internal", with_python_names(message), data)


def with_python_names(message: str) -> str:
    """Replaces the calls that a message advises by the methods of this package."""
    return re.sub(r"\bcall ((?:agent|session)/[a-zA-Z]+)", lambda found: f"call {_python_name(found[1])}", message)


def _python_name(method: str) -> str:
    if method == "session/ensure":
        return "client.session()"
    name = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", method.replace("/", "_"))
    return f"client.rpc.{name}()"
