"""Renders `models.py`: a class for each object, an alias for each other type."""

from __future__ import annotations

from generate.schema import Document, Schema, python_type, quoted, references, union
from generate.text import NOTICE, camel, docstring, fill, snake, statement

HEADER = '''\
"""Types of acpipe's protocol.

An object is a class with the fields in `snake_case`. A field that a message leaves out is `None`. Values of type
`Any` are plain JSON: dictionaries, lists, strings, numbers, booleans and `None`. The documentation of a type names
fields and values as in JSON: `toolCallId`, `null`, `true`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec


class Model(msgspec.Struct, rename="camel", omit_defaults=True):
    """Base class of the types of the protocol.

    Iterating yields the members as in JSON, so that `dict(value)` is what a browser gets, and an endpoint of FastAPI
    can return a value as it is.
    """

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(msgspec.to_builtins(self).items())


'''


def render_models(document: Document) -> str:
    names = document.reachable()
    # Empty objects carry nothing: calls return `None` in their place, and `NoParams` becomes no parameters.
    names = [name for name in names if not document.is_empty(name)]
    models = [name for name in names if document.is_model(name)]
    tags = tag_fields(document)
    classes = [render_class(name, document.types[name], tags.get(name)) for name in models]
    aliases = [render_alias(name, document.types[name]) for name in ordered_aliases(document, set(names) - set(models))]
    return NOTICE + HEADER + "\n\n".join(classes) + "\n\n" + "\n".join(aliases) + "\n" + render_tables(document)


def tag_fields(document: Document) -> dict[str, str]:
    """Returns the name of the field that tells the variants of a union apart, for each variant."""
    unions = [schema for schema in document.types.values() if "discriminator" in schema]
    return {name: schema["discriminator"]["propertyName"] for schema in unions for name in references(schema["oneOf"])}


def render_class(name: str, schema: Schema, tag_field: str | None) -> str:
    properties: dict[str, Schema] = schema["properties"]
    options = "kw_only=True"
    if tag_field is not None:
        options += f", tag_field={quoted(tag_field)}, tag={quoted(properties[tag_field]['const'])}"
    body = docstring(schema.get("description", name), "    ")
    for wire, field in properties.items():
        if wire == tag_field:
            value = quoted(field["const"])
            body += f"\n    {snake(wire)}: ClassVar[Literal[{value}]] = {value}\n"
        else:
            body += f"\n    {render_field(wire, field, wire in schema.get('required', []))}\n"
        if field.get("description"):
            body += docstring(field["description"], "    ")
    return f"class {name}(Model, {options}):\n{body}"


def render_field(wire: str, schema: Schema, required: bool) -> str:
    name = snake(wire)
    annotation = python_type(schema) if required else optional_type(schema)
    default = None if required else default_value(schema)
    if camel(name) != wire:
        value = f" = msgspec.field(name={quoted(wire)}{'' if required else f', default={default}'})"
    else:
        value = "" if required else f" = {default}"
    return f"{name}: {annotation}{value}"


def optional_type(schema: Schema) -> str:
    """Returns the annotation of a field that may be absent: `None` stands for its absence."""
    return python_type(schema) if isinstance(schema.get("default"), bool) else union([python_type(schema), "None"])


def default_value(schema: Schema) -> str:
    """Returns the default of a field that may be absent. acpipe's own defaults apply to a field that is left out."""
    default = schema.get("default")
    return str(default) if isinstance(default, bool) else "None"


def ordered_aliases(document: Document, names: set[str]) -> list[str]:
    """Returns the aliases so that each one follows those that it contains."""
    ordered: list[str] = []

    def add(name: str) -> None:
        for other in references(document.types[name]):
            if other in names:
                add(other)
        if name not in ordered:
            ordered.append(name)

    for name in document.types:
        if name in names:
            add(name)
    return ordered


def render_alias(name: str, schema: Schema) -> str:
    text = schema.get("description", "")
    if "properties" in schema:
        fields = schema["properties"].items()
        text += "\n\nAn object with these fields, and any other:\n\n"
        text += "\n".join(fill(f"- `{field}`: {value.get('description', '')}", "", "  ") for field, value in fields)
    if "oneOf" in schema:
        variants = [python_type(variant) for variant in schema["oneOf"]]
        line = f"{name}: TypeAlias = (\n    " + "\n    | ".join(variants) + "\n)\n"
    elif "enum" in schema:
        values = [quoted(value) for value in schema["enum"]]
        line = statement(f"{name}: TypeAlias = Literal", "[", values, "]", "")
    else:
        line = f"{name}: TypeAlias = {python_type(schema)}\n"
    return line + (docstring(text, "") if text else "")


def render_tables(document: Document) -> str:
    kinds = [quoted(error["data"]["kind"]) for error in document.errors]
    meanings = "\n".join(f"- `{error['data']['kind']}`: {error['message']}" for error in document.errors)
    text = "\n" + statement("ErrorKind: TypeAlias = Literal", "[", kinds, "]", "")
    text += docstring(f"Kinds of errors.\n\n{meanings}", "")
    params = [method.params for method in document.notifications]
    text += "\nNotification: TypeAlias = (\n    " + "\n    | ".join(params) + "\n)\n"
    text += docstring("Parameters of a notification of acpipe.", "")
    entries = "".join(f"    {quoted(method.name)}: {method.params},\n" for method in document.notifications)
    text += f"\nNOTIFICATIONS: dict[str, type[Notification]] = {{\n{entries}}}\n"
    return text + docstring("Type of the parameters of each notification.", "")
