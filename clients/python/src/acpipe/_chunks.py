"""Decodes chunks."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from acpipe._errors import InvalidMessage
from acpipe._json import as_object
from acpipe.models import Chunk


class UnknownChunk(msgspec.Struct, frozen=True):
    """A chunk of a type that this version of the package does not know."""

    type: str
    """Type of the chunk."""

    content: dict[str, Any]
    """The whole chunk."""


AnyChunk: TypeAlias = Chunk | UnknownChunk
"""A chunk of a turn."""

_decoder: msgspec.json.Decoder[Chunk] = msgspec.json.Decoder(Chunk)


def encode_chunk(chunk: AnyChunk) -> bytes:
    """Encodes a chunk as the JSON that acpipe sent: for a browser with the AI SDK, or a log."""
    return msgspec.json.encode(chunk.content if isinstance(chunk, UnknownChunk) else chunk)


def decode_chunk(chunk: bytes | msgspec.Raw | dict[str, Any]) -> AnyChunk:
    """Decodes a chunk: JSON, or a dictionary as in the entries of `Session.replay`."""
    try:
        if isinstance(chunk, dict):
            known: Chunk = msgspec.convert(chunk, Chunk)
            return known
        return _decoder.decode(chunk)
    except msgspec.ValidationError as error:
        content = as_object(chunk if isinstance(chunk, dict) else msgspec.json.decode(chunk))
        if not isinstance(content.get("type"), str):
            raise InvalidMessage("a chunk", error) from error
        return UnknownChunk(content["type"], content)
