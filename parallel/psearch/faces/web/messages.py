"""Messages of the page: their format, and checked access to their payloads.

A message in either direction is a JSON object in a text frame of the WebSocket: `{"type": "workers.watch", "payload":
{...}}`; the payload is optional. The first word of the type, before the dot, names the part of the page, whose object
in `Page` handles it. A PsearchError of a handler goes to the page as `{"type": "workers.error", "payload": {"text":
...}}`. Messages are not trusted: handlers read payloads by the functions below.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from psearch.files.safe_files import json_value
from psearch.results import PsearchError
from psearch.settings import Option
from psearch.text.values import number, shown, whole

LONGEST = 1 << 20
"""Longest message from the page, in bytes; a game with comments has about 20,000."""
_LONGEST_TYPE = 60
_LONGEST_SETTING = 400
Payload = Mapping[str, Any]
"""Content of a message, decoded from JSON but not checked."""


def parse(text: str) -> tuple[str, Payload]:
    """Return type and payload of a message. Raises PsearchError for a malformed one."""
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


def message(type: str, payload: Payload) -> str:
    """Return the text of a message to the page, in ASCII, so that lone surrogates from a page do no harm."""
    return json.dumps({"type": type, "payload": payload}, separators=(",", ":"), allow_nan=False)


def part_of(type: str) -> str:
    """Return the part of the page that a type belongs to, its first word."""
    return type.partition(".")[0]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


# -- payloads: all functions raise PsearchError with one line


def whole_of(payload: Payload, name: str, low: int, high: int) -> int:
    """Return a whole number from `low` to `high`."""
    return whole(name, payload.get(name), low, high)


def number_of(payload: Payload, name: str, low: int, high: int) -> float:
    """Return a number from `low` to `high`."""
    return number(name, payload.get(name), low, high)


def text_of(payload: Payload, name: str, longest: int = 200) -> str:
    """Return a text of at most `longest` characters."""
    value = payload.get(name)
    if not isinstance(value, str):
        raise PsearchError(f"{name} must be a text, not {shown(value)}")
    if len(value) > longest:
        raise PsearchError(f"{name} is longer than {longest:,} characters")
    return value


def choice_of(payload: Payload, name: str, choices: Collection[str]) -> str:
    """Return one of the choices."""
    value = payload.get(name)
    if not isinstance(value, str) or value not in choices:
        raise PsearchError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")
    return value


def flag_of(payload: Payload, name: str) -> bool:
    """Return a truth value."""
    value = payload.get(name)
    if not isinstance(value, bool):
        raise PsearchError(f"{name} must be true or false, not {shown(value)}")
    return value


def setting_facts(option: Option) -> dict[str, Any]:
    """Return the facts that the page needs to show a field for a setting."""
    range_ = {"low": option.low, "high": option.high, "choices": list(option.choices)}
    words = {"id": option.field, "name": option.name, "words": option.words}
    return {**words, "kind": option.kind, **range_, "free": option.takes_changes}


def setting_of(payload: Payload, option: Option) -> Any:
    """Return the value of a setting, which cannot be a file."""
    if option.kind == "spin":
        return whole_of(payload, option.field, option.low, option.high)
    if option.kind == "check":
        return flag_of(payload, option.field)
    if option.takes_changes:
        return text_of(payload, option.field, _LONGEST_SETTING).strip()
    return choice_of(payload, option.field, option.choices)


def texts_of(payload: Payload, name: str, most: int, longest: int = 20) -> list[str]:
    """Return a list of at most `most` texts, such as moves."""
    value = payload.get(name)
    if not isinstance(value, list) or len(value) > most:
        raise PsearchError(f"{name} must be a list of at most {most:,} texts, not {shown(value)}")
    if not all(isinstance(entry, str) and len(entry) <= longest for entry in value):
        raise PsearchError(f"{name} must be a list of texts of at most {longest} characters")
    return value
