"""Messages of the page: their text, and what their payloads say.

A message is one JSON object in a text frame of the WebSocket: `{"type": "workers.watch", "payload": {...}}`
(the payload may be left out). What comes back has the same form. The first word of a type, up to the dot, is the part
of the page it belongs to, whose object in `Page` handles it. What a handler raises as PsearchError goes to the page as
`{"type": "workers.error", "payload": {"text": ...}}`. Nothing in a message has been checked by its sender: handlers
read a payload by `whole_of` and the like.
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
"""Bytes of a message of the page: a game with comments has some 20,000."""
_LONGEST_TYPE = 60
_LONGEST_SETTING = 400
Payload = Mapping[str, Any]
"""What a message says, as JSON gives it: nothing in it has been checked."""


def parse(text: str) -> tuple[str, Payload]:
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


def message(type: str, payload: Payload) -> str:
    """Return the text of a message to the page, in ASCII: half a surrogate pair that came from a page is no problem."""
    return json.dumps({"type": type, "payload": payload}, separators=(",", ":"), allow_nan=False)


def part_of(type: str) -> str:
    """Return the part of the page that a type belongs to: its first word."""
    return type.partition(".")[0]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


# -- payloads: PsearchError has one line for what is wrong


def whole_of(payload: Payload, name: str, low: int, high: int) -> int:
    """Return a whole number from low to high."""
    return whole(name, payload.get(name), low, high)


def number_of(payload: Payload, name: str, low: int, high: int) -> float:
    """Return a number from low to high."""
    return number(name, payload.get(name), low, high)


def text_of(payload: Payload, name: str, longest: int = 200) -> str:
    """Return a text of so many characters at most."""
    value = payload.get(name)
    if not isinstance(value, str):
        raise PsearchError(f"{name} must be a text, not {shown(value)}")
    if len(value) > longest:
        raise PsearchError(f"{name} is longer than {longest:,} characters")
    return value


def choice_of(payload: Payload, name: str, choices: Collection[str]) -> str:
    """Return one of these names."""
    value = payload.get(name)
    if not isinstance(value, str) or value not in choices:
        raise PsearchError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")
    return value


def flag_of(payload: Payload, name: str) -> bool:
    """Return true or false."""
    value = payload.get(name)
    if not isinstance(value, bool):
        raise PsearchError(f"{name} must be true or false, not {shown(value)}")
    return value


def setting_facts(option: Option) -> dict[str, Any]:
    """Return what a page needs to know of a setting to show a field for it."""
    range_ = {"low": option.low, "high": option.high, "choices": list(option.choices)}
    words = {"id": option.field, "name": option.name, "words": option.words}
    return {**words, "kind": option.kind, **range_, "free": option.takes_changes}


def setting_of(payload: Payload, option: Option) -> Any:
    """Return the value of a setting; never a file."""
    if option.kind == "spin":
        return whole_of(payload, option.field, option.low, option.high)
    if option.kind == "check":
        return flag_of(payload, option.field)
    if option.takes_changes:
        return text_of(payload, option.field, _LONGEST_SETTING).strip()
    return choice_of(payload, option.field, option.choices)


def texts_of(payload: Payload, name: str, most: int, longest: int = 20) -> list[str]:
    """Return a list of so many texts at most, such as moves."""
    value = payload.get(name)
    if not isinstance(value, list) or len(value) > most:
        raise PsearchError(f"{name} must be a list of at most {most:,} texts, not {shown(value)}")
    if not all(isinstance(entry, str) and len(entry) <= longest for entry in value):
        raise PsearchError(f"{name} must be a list of texts of at most {longest} characters")
    return value
