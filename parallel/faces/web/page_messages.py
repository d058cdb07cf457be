"""What comes over the WebSocket and what goes, as text. Nothing in a message has been checked by its sender."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from psearch.files.json_text import json_value
from psearch.results import PsearchError

LONGEST = 1 << 20
"""Bytes of a message of the page: a game with comments has some 20,000."""
_LONGEST_TYPE = 60


def parse(text: str) -> tuple[str, Mapping[str, Any]]:
    """Return type and payload of a message. Raises PsearchError when it is none."""
    if len(text) > LONGEST:
        raise PsearchError(f"a message is longer than {LONGEST:,} characters")
    try:
        message = json_value(text, _no_constant)
    except ValueError as error:
        raise PsearchError(f"a message is not JSON: {str(error)[:100]}") from None
    if not isinstance(message, dict):
        raise PsearchError("a message is not an object")
    type, payload = message.get("type"), message.get("payload", {})
    if not isinstance(type, str) or not 0 < len(type) <= _LONGEST_TYPE:
        raise PsearchError("a message has no type")
    if not isinstance(payload, dict):
        raise PsearchError("the payload of a message is not an object")
    return type, payload


def message(type: str, payload: Mapping[str, Any]) -> str:
    """Return the text of a message to the page, in ASCII: half a surrogate pair that came from a page is no problem."""
    return json.dumps({"type": type, "payload": payload}, separators=(",", ":"), allow_nan=False)


def part_of(type: str) -> str:
    """Return the part of the page that a type belongs to: its first word."""
    return type.partition(".")[0]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
