"""Encoding and decoding of the types."""

from __future__ import annotations

import msgspec
import pytest

from acpipe import AcpipeError, InvalidMessage, UnknownChunk, decode_chunk, encode_chunk
from acpipe.models import (
    ConnectParams,
    DataAcpChunk,
    EnsureParams,
    ExecuteParams,
    ListMessagesResult,
    PermissionAnswer,
    PromptParams,
    SelectedPermissionOutcome,
    TextDeltaChunk,
    ToolResult,
    ToolState,
)


def test_parameters_that_are_not_given_are_left_out() -> None:
    assert msgspec.to_builtins(PromptParams(message="hi", turn_id="t")) == {"message": "hi", "turnId": "t"}
    assert msgspec.to_builtins(EnsureParams()) == {}


def test_a_default_of_true_can_be_changed() -> None:
    assert msgspec.to_builtins(ExecuteParams(message="hi", retry=False)) == {"message": "hi", "retry": False}


def test_variable_is_unset_with_none() -> None:
    assert msgspec.to_builtins(ConnectParams(env={"A": None})) == {"env": {"A": None}}


def test_variant_of_a_union_is_encoded_with_its_tag() -> None:
    answer = PermissionAnswer(outcome=SelectedPermissionOutcome(option_id="yes"))
    assert msgspec.to_builtins(answer) == {"outcome": {"outcome": "selected", "optionId": "yes"}}


def test_chunk_is_decoded_to_its_class() -> None:
    chunk = decode_chunk(b'{"type": "text-delta", "id": "1", "delta": "a", "field": "of a newer acpipe"}')
    assert isinstance(chunk, TextDeltaChunk)
    assert (chunk.type, chunk.id, chunk.delta) == ("text-delta", "1", "a")


def test_chunk_of_a_replay_is_decoded_from_a_dictionary() -> None:
    chunk = decode_chunk({"type": "data-acp", "data": {"update": {}}})
    assert chunk == DataAcpChunk(data={"update": {}})


def test_chunk_of_an_unknown_type_is_kept() -> None:
    content = {"type": "hologram", "size": 3}
    assert decode_chunk(msgspec.json.encode(content)) == UnknownChunk("hologram", content)
    assert decode_chunk(content) == UnknownChunk("hologram", content)
    assert msgspec.json.decode(encode_chunk(decode_chunk(content))) == content


def test_value_that_is_not_a_chunk_is_an_error() -> None:
    with pytest.raises(InvalidMessage, match="cannot read a chunk"):
        decode_chunk(b"[]")


def test_field_with_a_name_that_python_does_not_allow_is_renamed() -> None:
    assert msgspec.to_builtins(ToolState(meta={"a": 1})) == {"_meta": {"a": 1}}


def test_kind_of_a_newer_acpipe_is_in_the_data() -> None:
    error = AcpipeError("newKind", "something new", {"exitCode": 3})
    assert (error.kind, error.data) == ("unknown", {"kind": "newKind", "exitCode": 3})


def test_type_checker_reports_a_kind_that_does_not_exist() -> None:
    error = AcpipeError("busy", "the session is busy")
    # mypy fails if the comment is not necessary.
    assert error.kind != "bussy"  # type: ignore[comparison-overlap]
    assert error.kind == "busy"


def test_values_are_what_a_browser_gets() -> None:
    result = ToolResult(name="read", call_id="c", result="text", is_error=False)
    page = ListMessagesResult(messages=[{"id": "m"}], more=False, total=1)
    assert dict(result) == {"name": "read", "callId": "c", "result": "text", "isError": False}
    assert dict(page) == {"messages": [{"id": "m"}], "more": False, "total": 1}
