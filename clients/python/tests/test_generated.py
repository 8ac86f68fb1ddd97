"""The generated files, and what is written by hand beside them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

import acpipe
from acpipe import _handlers, models, sync
from acpipe._calls import Calls, SessionCalls
from acpipe._sync_calls import SyncCalls, SyncSessionCalls
from generate.__main__ import SCHEMA, render
from generate.schema import python_type
from generate.text import snake

DOCUMENT = json.loads(SCHEMA.read_text(encoding="utf-8"))


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the parameters of a function with their defaults."""
    found = inspect.signature(function).parameters.items()
    return {name: parameter.default for name, parameter in found if name != "self"}


def test_generated_files_are_up_to_date() -> None:
    for path, text in render().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `python -m generate`"


@pytest.mark.parametrize("name", [method["name"] for method in DOCUMENT["methods"]])
def test_every_method_has_a_typed_call(name: str) -> None:
    (method,) = (entry for entry in DOCUMENT["methods"] if entry["name"] == name)
    described = {snake(parameter["name"]) for parameter in method["params"]}
    for calls in (Calls, SyncCalls):
        assert set(parameters(getattr(calls, snake(name)))) == described


def test_every_notification_has_a_type() -> None:
    assert set(models.NOTIFICATIONS) == {entry["name"] for entry in DOCUMENT["x-notifications"]}


def test_every_request_of_acpipe_has_a_handler() -> None:
    function = cast("Any", object())
    handlers = _handlers.Handlers(function, function, function, function, cast("Any", AllTerminals()))
    assert set(handlers.by_method()) == {entry["name"] for entry in DOCUMENT["x-requests"]}


class AllTerminals:
    """Has every method of `Terminals`."""

    create = output = wait_for_exit = kill = release = None


def test_every_type_of_chunk_is_a_variant() -> None:
    described = DOCUMENT["components"]["schemas"]["Chunk"]["discriminator"]["mapping"]
    assert {chunk.type for chunk in cast("Any", models.Chunk).__args__} == set(described)


def test_methods_of_a_session_have_the_parameters_of_the_protocol() -> None:
    prompt, ensure = parameters(Calls.session_prompt), parameters(Calls.session_ensure)
    del prompt["session_id"]
    # For a client that sends a call again after its connection was lost.
    del prompt["elapsed_ms"], ensure["elapsed_ms"]
    assert parameters(acpipe.Session.prompt) == prompt
    assert parameters(acpipe.Client.session) == ensure
    assert parameters(acpipe.Client.execute) == parameters(Calls.execute)


def public(cls: type) -> dict[str, dict[str, Any]]:
    """Returns the public methods of a class with their parameters."""
    members = inspect.getmembers(cls, inspect.isfunction)
    return {name: parameters(function) for name, function in members if not name.startswith("_")}


@pytest.mark.parametrize(
    ("asyncio_class", "blocking_class"),
    [
        (acpipe.Client, sync.Client),
        (acpipe.Session, sync.Session),
        (acpipe.Turn, sync.Turn),
        (acpipe.Terminals, sync.Terminals),
        (Calls, SyncCalls),
        (SessionCalls, SyncSessionCalls),
    ],
)
def test_blocking_classes_have_the_same_methods(asyncio_class: type, blocking_class: type) -> None:
    assert public(asyncio_class) == public(blocking_class)


def test_constructors_of_both_clients_have_the_same_parameters() -> None:
    assert parameters(acpipe.Client.__init__) == parameters(sync.Client.__init__)


def test_unknown_keyword_of_a_schema_stops_the_generator() -> None:
    with pytest.raises(ValueError, match="patternProperties"):
        python_type({"type": "object", "patternProperties": {}})
