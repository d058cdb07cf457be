"""What a page says, checked: a payload is whatever JSON can be. Raises PsearchError with one line for what is wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from psearch.results import PsearchError
from psearch.settings import Option
from psearch.text.values import number, shown, whole

_LONGEST_SETTING = 400


def whole_of(payload: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Return a whole number from low to high."""
    return whole(name, payload.get(name), low, high)


def number_of(payload: Mapping[str, Any], name: str, low: int, high: int) -> float:
    """Return a number from low to high."""
    return number(name, payload.get(name), low, high)


def text_of(payload: Mapping[str, Any], name: str, longest: int = 200) -> str:
    """Return a text of so many characters at most."""
    value = payload.get(name)
    if not isinstance(value, str):
        raise PsearchError(f"{name} must be a text, not {shown(value)}")
    if len(value) > longest:
        raise PsearchError(f"{name} is longer than {longest:,} characters")
    return value


def choice_of(payload: Mapping[str, Any], name: str, choices: Collection[str]) -> str:
    """Return one of these names."""
    value = payload.get(name)
    if not isinstance(value, str) or value not in choices:
        raise PsearchError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")
    return value


def flag_of(payload: Mapping[str, Any], name: str) -> bool:
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


def setting_of(payload: Mapping[str, Any], option: Option) -> Any:
    """Return the value of a setting; never a file."""
    if option.kind == "spin":
        return whole_of(payload, option.field, option.low, option.high)
    if option.kind == "check":
        return flag_of(payload, option.field)
    if option.takes_changes:
        return text_of(payload, option.field, _LONGEST_SETTING).strip()
    return choice_of(payload, option.field, option.choices)


def texts_of(payload: Mapping[str, Any], name: str, most: int, longest: int = 20) -> list[str]:
    """Return a list of so many texts at most, such as moves."""
    value = payload.get(name)
    if not isinstance(value, list) or len(value) > most:
        raise PsearchError(f"{name} must be a list of at most {most:,} texts, not {shown(value)}")
    if not all(isinstance(entry, str) and len(entry) <= longest for entry in value):
        raise PsearchError(f"{name} must be a list of texts of at most {longest} characters")
    return value
