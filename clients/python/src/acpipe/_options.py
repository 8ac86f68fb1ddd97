"""Command line options of `acpipe serve`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

PermissionMode: TypeAlias = Literal["approve", "reads", "ask", "deny"]
"""What happens to tool calls that no rule decides: allow all, allow reads and ask about others, ask, refuse all."""

Agent: TypeAlias = str | Sequence[str]
"""An agent: its name, or its command line as a list."""


def command_line(
    agent: Agent | None, permissions: PermissionMode | None, options: Sequence[str], asks: bool
) -> list[str]:
    """Returns the arguments of `acpipe serve`. `asks`: whether the client answers permission requests."""
    check_agent(agent)
    if isinstance(options, str):
        raise ValueError(f"options must be a list, such as {json.dumps(options.split())}, not {options!r}")
    if permissions not in (None, *get_args(PermissionMode)):
        raise ValueError(f"permissions must be one of {', '.join(get_args(PermissionMode))}, not {permissions!r}")
    if permissions is None and asks:
        permissions = "ask"  # without it, acpipe allows everything and the handler is never called
    arguments = ["--permissions", permissions] if permissions else []
    arguments += options
    if isinstance(agent, str):
        return [*arguments, "--agent", agent]
    return [*arguments, "--", *agent] if agent else arguments


def check_agent(agent: Agent | None) -> None:
    """Raises `ValueError` if the agent can be neither a name nor a command line."""
    if agent is None:
        return
    if not agent:
        raise ValueError(f"the agent must not be {agent!r}: pass a name, or a command line as a list")
    if isinstance(agent, str) and any(character.isspace() or character == "/" for character in agent):
        command = json.dumps(agent.split())
        raise ValueError(f"{agent!r} is not a name of an agent; pass a command line as a list: Client({command})")


def absolute(path: str | os.PathLike[str] | None) -> str | None:
    """Returns the absolute path that acpipe requires."""
    return None if path is None else os.path.abspath(path)
