"""What a line of acpipe is: a response, a request, a notification, or none of them.

`clients/bad-peers.json` lists what both packages do with a line that is none of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acpipe._json import as_object

T = TypeVar("T")

# Longest piece of a bad line in the log.
SHOWN = 200


class Result(NamedTuple):
    """A response with a result, which is decoded when its type is known."""

    id: int | str
    result: Raw


class Failure(NamedTuple):
    """A response with an error."""

    id: int | str
    message: str
    data: dict[str, Any]


class Request(NamedTuple):
    """A request of acpipe."""

    id: int | str
    method: str
    params: Raw


class Notice(NamedTuple):
    """A notification of acpipe."""

    method: str
    params: Raw


class Bad(NamedTuple):
    """Another line. With the id of a call, it is the only response that the call gets."""

    why: str
    id: int | str | None = None


Frame: TypeAlias = Result | Failure | Request | Notice | Bad


class TooDeep(Exception):
    """A line is nested so deeply that nothing of it can be read, also not the id of its call."""


class Unreadable(Exception):
    """A message has a form that this package cannot read. It is logged and dropped."""


class _Line(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decoder = msgspec.json.Decoder(_Line)


def frame_of(line: bytes) -> Frame:
    """Classifies a line."""
    try:
        return _frame_of(line)
    except RecursionError as error:
        raise TooDeep from error


def _frame_of(line: bytes) -> Frame:
    try:
        line.decode()  # msgspec does not check the text of what it leaves encoded
    except UnicodeDecodeError:
        return Bad("it is not valid UTF-8", _explain(line.decode(errors="replace")).id)
    try:
        return _classify(_decoder.decode(line))
    except msgspec.DecodeError:
        return _explain(line.decode())


def _classify(line: _Line) -> Frame:
    result, error = _present(line.result), _present(line.error)
    if line.method is not None:
        if result or error:
            return Bad("it has a method and a result or an error", line.id)
        # A method without required parameters accepts an empty object.
        params = line.params if isinstance(line.params, Raw) else Raw(b"{}")
        return Notice(line.method, params) if line.id is None else Request(line.id, line.method, params)
    if line.id is None:
        return Bad("it has neither a method nor an id")
    if error is None:
        if isinstance(line.result, Raw):
            return Result(line.id, line.result)
        return Bad("it has neither a result nor an error", line.id)
    if result:
        return Bad("it has a result and an error", line.id)
    fields = as_object(msgspec.json.decode(error))
    if not isinstance(fields.get("message"), str):
        return Bad("the error is not an object with a message", line.id)
    return Failure(line.id, fields["message"], as_object(fields.get("data")))


def _present(value: Raw | UnsetType) -> Raw | None:
    return value if isinstance(value, Raw) and bytes(value) != b"null" else None


def _explain(line: str) -> Bad:
    """Says why a line is no message, and which call it answers."""
    try:
        value: Any = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return Bad("it is not JSON")
    if not isinstance(value, dict):
        return Bad("it is not an object")
    fields = as_object(value)
    number = fields.get("id")
    if isinstance(number, bool) or not isinstance(number, int | str | None):
        return Bad("the id is neither text nor an integer")
    return Bad("the method is not text", number)


def parameters(method: str, params: Raw, expected: type[T]) -> T:
    """Decodes the parameters of a message."""
    try:
        return msgspec.json.decode(params, type=expected)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(f"the parameters of {method}: {error}") from error


def shown(text: bytes | str) -> str:
    """Returns the beginning of a text for the log, without characters that control a terminal."""
    text = text[:SHOWN].decode(errors="replace") if isinstance(text, bytes) else text[:SHOWN]
    return printable(text.rstrip("\r\n"))


def printable(text: str) -> str:
    """Escapes characters that control a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
