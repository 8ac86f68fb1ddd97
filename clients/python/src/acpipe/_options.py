"""Command line options of `acpipe serve`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypeAlias

PermissionMode: TypeAlias = Literal["approve", "reads", "ask", "deny"]
"""What happens to tool calls that no rule decides: allow all, allow reads and ask about others, ask, refuse all."""

Agent: TypeAlias = str | Sequence[str]
"""An agent: its name, or its command line as a list."""


def command_line(
    agent: Agent | None, permissions: PermissionMode | None, options: Sequence[str], asks: bool
) -> list[str]:
    """Returns the arguments of `acpipe serve`. `asks`: whether the client answers permission requests."""
    if permissions is None and asks:
        permissions = "ask"  # without it, acpipe allows everything and the handler is never called
    arguments = ["--permissions", permissions] if permissions else []
    arguments += options
    if isinstance(agent, str):
        return [*arguments, "--agent", agent]
    return [*arguments, "--", *agent] if agent else arguments


def absolute(path: str | os.PathLike[str] | None) -> str | None:
    """Returns the absolute path that acpipe requires."""
    return None if path is None else os.path.abspath(path)
