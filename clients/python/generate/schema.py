"""Reads the OpenRPC document: its types, and the Python type of each schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

Schema = dict[str, Any]

# A keyword that is not listed here stops the generator: ignoring it could generate a wrong type.
# Limits of numbers (`format`, `minimum`, `maximum`) are checked by acpipe, not by the client.
KNOWN = {
    "$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "description", "discriminator", "enum",
    "format", "items", "maximum", "minimum", "oneOf", "properties", "required", "title", "type",
}  # fmt: skip
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


@dataclass
class Method:
    """A request or a notification: its name, and the names of its types."""

    name: str
    summary: str
    params: str
    result: str | None


class Document:
    """The OpenRPC document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.types: dict[str, Schema] = document["components"]["schemas"]
        self.errors: list[dict[str, Any]] = document["x-errors"]
        self._by_params = {self._parameters(schema): name for name, schema in self._params_types()}
        self.methods = [self._method(entry) for entry in document["methods"]]
        self.notifications = [self._method(entry) for entry in document["x-notifications"]]
        self.requests = [self._method(entry) for entry in document["x-requests"]]

    def reachable(self) -> list[str]:
        """Returns the names of the types that some message contains, in the order of the document."""
        found: set[str] = set()
        for method in [*self.methods, *self.notifications, *self.requests]:
            for name in (method.params, method.result):
                if name is not None:
                    self._reach(name, found)
        return [name for name in self.types if name in found]

    def is_model(self, name: str) -> bool:
        """Whether the type becomes a class. An object that may have any field becomes a dictionary."""
        schema = self.types[name]
        return "properties" in schema and schema.get("additionalProperties") is not True

    def is_empty(self, name: str) -> bool:
        """Whether the type is an object without any field."""
        return set(self.types[name]) <= {"type", "title", "description"}

    def _reach(self, name: str, found: set[str]) -> None:
        if name not in found:
            found.add(name)
            for other in references(self.types[name]):
                self._reach(other, found)

    def _params_types(self) -> list[tuple[str, Schema]]:
        return [(name, schema) for name, schema in self.types.items() if name.endswith("Params")]

    def _method(self, entry: dict[str, Any]) -> Method:
        wanted = [(param["name"], param["schema"]) for param in entry["params"]]
        result = target(entry["result"]["schema"]) if "result" in entry else None
        return Method(entry["name"], entry["summary"], self._by_params[repr(sorted(wanted, key=str))], result)

    @staticmethod
    def _parameters(schema: Schema) -> str:
        """A key by which the parameters of a method, which OpenRPC lists one by one, are found as a type."""
        return repr(sorted(schema.get("properties", {}).items(), key=str))


def references(schema: Any) -> list[str]:
    """Returns the names of the types that a schema refers to."""
    if isinstance(schema, list):
        return [name for item in cast("Sequence[Any]", schema) for name in references(item)]
    if not isinstance(schema, dict):
        return []
    fields = cast("Mapping[str, Any]", schema)
    found = [target(fields)] if isinstance(fields.get("$ref"), str) else []
    # The mapping of a discriminator repeats the variants as plain strings.
    return found + [name for key, value in fields.items() if key != "discriminator" for name in references(value)]


def target(schema: Mapping[str, Any]) -> str:
    """Returns the name of the type that a `$ref` names."""
    return str(schema["$ref"]).rpartition("/")[2]


def python_type(schema: Any) -> str:
    """Returns the annotation for a schema."""
    if schema is True:
        return "Any"
    if unknown := set(schema) - KNOWN:
        raise ValueError(f"cannot generate a type: unknown keyword {sorted(unknown)} in {schema}")
    if "$ref" in schema:
        return target(schema)
    if "enum" in schema:
        return f"Literal[{', '.join(quoted(value) for value in schema['enum'])}]"
    if "const" in schema:
        return f"Literal[{quoted(schema['const'])}]"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            if key == "allOf" and len(schema[key]) != 1:
                raise ValueError(f"cannot generate a type: allOf with several schemas in {schema}")
            return union([python_type(variant) for variant in schema[key]])
    kinds: str | list[str] = schema.get("type", [])
    if isinstance(kinds, str):
        return _typed(kinds, schema)
    return union([_typed(kind, schema) for kind in kinds]) if kinds else "Any"


def _typed(kind: str, schema: Schema) -> str:
    if kind == "array":
        return f"list[{python_type(schema['items'])}]"
    if kind == "object":
        return f"dict[str, {python_type(schema.get('additionalProperties', True))}]"
    return SCALARS[kind]


def union(types: list[str]) -> str:
    """Returns the annotation for one of several types, with `None` at the end."""
    parts = [part for annotation in types for part in annotation.split(" | ")]
    unique = sorted(dict.fromkeys(parts), key=lambda part: part == "None")
    return "Any" if "Any" in unique else " | ".join(unique)


def quoted(text: str) -> str:
    """Returns a string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
