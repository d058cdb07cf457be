"""JSON as a user's file or another program has it: whatever is wrong with the text is a ValueError."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def json_value(text: str | bytes | bytearray, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Return the value of a JSON text. parse_constant: as `json.loads` has it. Raises ValueError, also for lists inside
    lists without end, which `json.loads` answers with RecursionError."""
    try:
        return json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def json_object(text: str) -> dict[str, Any]:
    """Return the values of a JSON object by name. Raises ValueError for any other text."""
    try:
        values = json_value(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    return values
