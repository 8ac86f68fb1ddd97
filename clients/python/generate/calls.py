"""Renders the classes with a method for each call: on asyncio, and blocking."""

from __future__ import annotations

import re
from dataclasses import dataclass

from generate.models import default_value, optional_type
from generate.schema import Document, Method, python_type, quoted
from generate.text import NOTICE, docstring, fill, snake, statement

CALLS_HEADER = '''\
"""A method for each request of acpipe's protocol."""

from __future__ import annotations

import typing
from typing import Any, TypeVar, cast

@MODELS@

T = TypeVar("T")


class Caller(typing.Protocol):
    """Sends a request and returns its result."""

    async def __call__(self, method: str, params: Model | None, result: type[T]) -> T: ...


'''
SYNC_HEADER = '''\
"""Blocking forms of the calls."""

from __future__ import annotations

import typing
from collections.abc import Coroutine
from typing import Any, TypeVar

from acpipe._calls import Calls, SessionCalls
@MODELS@

T = TypeVar("T")


class Runner(typing.Protocol):
    """Runs a coroutine on the event loop of the client and waits for its result."""

    def __call__(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


'''
CALLS = '''\
class Calls:
    """Every request of acpipe's protocol as a method.

    The methods raise `AcpipeError` if acpipe responds with an error. `Client` and `Session` offer the same in a more
    convenient form; `session_prompt` and `execute` return the summary of the turn without its chunks.
    """

    def __init__(self, call: Caller) -> None:
        self._call = call
'''
SESSION_CALLS = '''\
class SessionCalls:
    """Every request about one session as a method."""

    def __init__(self, calls: Calls, session_id: str) -> None:
        self._calls = calls
        self.id = session_id
        """Id of the session."""
'''
SYNC_CALLS = '''\
class SyncCalls:
    """Every request of acpipe's protocol as a method.

    The methods raise `AcpipeError` if acpipe responds with an error. `Client` and `Session` offer the same in a more
    convenient form; `session_prompt` and `execute` return the summary of the turn without its chunks.
    """

    def __init__(self, calls: Calls, run: Runner) -> None:
        self._calls = calls
        self._run = run
'''
SYNC_SESSION_CALLS = '''\
class SyncSessionCalls:
    """Every request about one session as a method."""

    def __init__(self, calls: SessionCalls, run: Runner) -> None:
        self._calls = calls
        self._run = run
        self.id = calls.id
        """Id of the session."""
'''


@dataclass
class Parameter:
    """A parameter of a generated method."""

    name: str
    annotation: str
    default: str | None
    text: str

    @property
    def declaration(self) -> str:
        return f"{self.name}: {self.annotation}" + (f" = {self.default}" if self.default is not None else "")


def render_calls(document: Document) -> str:
    calls = "".join("\n" + render_call(document, method) for method in document.methods)
    session_calls = "".join("\n" + render_session_call(document, method) for method in session_methods(document))
    return with_imports(document, CALLS_HEADER, CALLS + calls + "\n\n" + SESSION_CALLS + session_calls, ["Model"])


def render_sync_calls(document: Document) -> str:
    calls = "".join("\n" + render_sync(document, method, snake(method.name)) for method in document.methods)
    session_calls = "".join(
        "\n" + render_sync(document, method, session_name(method), skip="session_id")
        for method in session_methods(document)
    )
    return with_imports(document, SYNC_HEADER, SYNC_CALLS + calls + "\n\n" + SYNC_SESSION_CALLS + session_calls, [])


def with_imports(document: Document, header: str, body: str, names: list[str]) -> str:
    """Returns the module with imports of the types that it uses. `Protocol` of `typing` has the name of one of them."""
    code = re.sub(r'""".*?"""', "", body, flags=re.DOTALL)
    used = {name for name in document.types if re.search(rf"\b{name}\b", code)}
    imports = statement("from acpipe.models import ", "(", sorted(used | set(names), key=str.lower), ")", "")
    return NOTICE + header.replace("@MODELS@\n", imports) + body


def session_methods(document: Document) -> list[Method]:
    """Returns the calls about an existing session. `Session.prompt`, which has chunks, is not generated."""
    return [
        method
        for method in document.methods
        if method.name.startswith(("session/", "message/"))
        and method.name not in ("session/ensure", "session/create", "session/prompt")
        and "sessionId" in document.types[method.params].get("properties", {})
    ]


def session_name(method: Method) -> str:
    return snake(method.name.removeprefix("session/"))


def parameters(document: Document, method: Method, skip: str | None = None) -> list[Parameter]:
    """Returns the parameters of a method, the required ones first."""
    schema = document.types[method.params]
    found: list[Parameter] = []
    for wire, field in schema.get("properties", {}).items():
        required = wire in schema.get("required", [])
        annotation = python_type(field) if required else optional_type(field)
        default = None if required else default_value(field)
        found.append(Parameter(snake(wire), annotation, default, field.get("description", "")))
    return sorted((item for item in found if item.name != skip), key=lambda item: item.default is not None)


def signature(items: list[Parameter]) -> list[str]:
    """Returns the declarations. Parameters with a default are passed by name only."""
    positional = ["self", *(item.declaration for item in items if item.default is None)]
    named = [item.declaration for item in items if item.default is not None]
    return positional + (["*", *named] if named else [])


def result_type(document: Document, method: Method) -> str:
    assert method.result is not None
    return "None" if document.is_empty(method.result) else method.result


def documentation(method: Method, items: list[Parameter]) -> str:
    text = docstring(method.summary, "        ")
    described = [item for item in items if item.text]
    if not described:
        return text
    lines = [fill(f"{item.name}: {item.text}", " " * 12, " " * 16) for item in described]
    arguments = "\n".join(lines).replace("\\", "\\\\")
    return f'        """{method.summary}\n\n        Args:\n{arguments}\n        """\n'


def head(prefix: str, name: str, items: list[Parameter], result: str) -> str:
    return statement(f"{prefix} {name}", "(", signature(items), f") -> {result}:", "    ")


def render_call(document: Document, method: Method) -> str:
    items = parameters(document, method)
    result = result_type(document, method)
    text = head("async def", snake(method.name), items, result) + documentation(method, items)
    params = "None"
    if items:
        values = [f"{item.name}={item.name}" for item in items]
        text += statement(f"params = {method.params}", "(", values, ")", " " * 8)
        params = "params"
    if result == "None":
        return text + f"        await self._call({quoted(method.name)}, {params}, dict)\n"
    assert method.result is not None
    if not document.is_model(method.result):
        return (
            text + f"        return cast({quoted(result)}, await self._call({quoted(method.name)}, {params}, dict))\n"
        )
    return text + f"        return await self._call({quoted(method.name)}, {params}, {result})\n"


def render_session_call(document: Document, method: Method) -> str:
    items = parameters(document, method, skip="session_id")
    result = result_type(document, method)
    values = passed(items, first=["session_id=self.id"])
    text = head("async def", session_name(method), items, result) + documentation(method, items)
    keyword = "await" if result == "None" else "return await"
    return text + statement(f"{keyword} self._calls.{snake(method.name)}", "(", values, ")", " " * 8)


def render_sync(document: Document, method: Method, name: str, skip: str | None = None) -> str:
    items = parameters(document, method, skip)
    result = result_type(document, method)
    text = head("def", name, items, result) + documentation(method, items)
    keyword = "" if result == "None" else "return "
    return text + statement(f"{keyword}self._run(self._calls.{name}", "(", passed(items, []), "))", " " * 8)


def passed(items: list[Parameter], first: list[str]) -> list[str]:
    """Returns the arguments that pass the parameters on to another method."""
    positional = [item.name for item in items if item.default is None]
    return positional + first + [f"{item.name}={item.name}" for item in items if item.default is not None]
