"""Values of decoded JSON."""

from __future__ import annotations

from typing import Any, cast


def as_object(value: Any) -> dict[str, Any]:
    """Returns a value that is an object, and an empty object for any other."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
