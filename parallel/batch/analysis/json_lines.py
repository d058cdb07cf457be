"""Positions as JSON, one object a line, and results of the same kind: what `psearch analyse` reads and writes for
programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import chess

from psearch.batch.analysis.analyser import Form
from psearch.batch.analysis.json_objects import json_object_of
from psearch.batch.positions.answers import result_object
from psearch.batch.positions.jobs import Choice, Found, Line, Task
from psearch.results import Limits, PsearchError
from psearch.settings import DEPTH, MOVETIME, MULTIPV, NODES, Option
from psearch.text.source import Source, Stream, parse_lines, parse_stream
from psearch.text.values import shown

_MOST_MOVES = 20_000
_LONGEST_FEN = 200
_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][nbrq]?")
_LIMITS = {option.name: option for option in (DEPTH, NODES, MOVETIME)}


@dataclass(frozen=True)
class Asked:
    """A line: a position that is to be searched."""

    line: int
    """its number in the file, from 1"""
    id: str | int
    task: Task
    """its id is the key in the journal"""


def read_asked(source: Source, file: int, default: Limits) -> Iterator[Asked]:
    """Return the lines of a file; `file` is its number, `default` what a line without limits has. The names are those
    of docs/guides/analyse.md; others mean nothing. Raises PsearchError, naming the line, for what is none of ours."""
    return parse_lines(source, lambda text, number: _asked(text, file, number, default))


def asked_by(stream: Stream, default: Limits) -> Iterator[Asked | None]:
    """Yield the lines of a pipe; None where the next line is not there yet."""
    return parse_stream(stream, lambda text, number: _asked(text, 1, number, default))


def _asked(text: str, file: int, number: int, default: Limits) -> Asked:
    values = json_object_of(text)
    name = values.get("id", number)
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise PsearchError(f"id must be text or a whole number, not {shown(name)}")
    fen = values.get("fen", chess.STARTING_FEN)
    if not isinstance(fen, str) or len(fen) > _LONGEST_FEN:
        raise PsearchError(f"fen must be text, not {shown(fen)}")
    key = f"file {file} line {number}"
    multipv = _whole(MULTIPV, values.get("multipv", 1))
    return Asked(number, name, Task(key, fen, _moves(values.get("moves", [])), _limits(values, default), multipv))


def _moves(value: Any) -> tuple[str, ...]:
    moves = value.split() if isinstance(value, str) else value
    if not isinstance(moves, list) or len(moves) > _MOST_MOVES:
        raise PsearchError(f"moves must be a list of moves in UCI notation, not {shown(value)}")
    for move in moves:
        if not isinstance(move, str) or not _MOVE.fullmatch(move):
            raise PsearchError(f"moves must be in UCI notation, as e2e4, not {shown(move)}")
    return tuple(moves)


def _limits(values: dict[str, Any], default: Limits) -> Limits:
    given = values.get("limits")
    if given is None:
        return default
    if not isinstance(given, dict) or not given or not set(given) <= set(_LIMITS):
        raise PsearchError(f"limits must be an object with depth, nodes or movetime, not {shown(given)}")
    numbers = {name: _whole(_LIMITS[name], value) for name, value in given.items()}
    return Limits(numbers.get("depth"), numbers.get("movetime"), numbers.get("nodes"))


def _whole(option: Option, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PsearchError(f"{option.key} must be {option.wanted}, not {shown(value)}")
    found: int = option.of_value(value, option.key)
    return found


# -- what is kept ----------------------------------------------------------------------------------------------------


def _load(values: dict[str, Any]) -> Found:
    return Found(
        **{
            **values,
            "lines": [Line(**line) for line in values["lines"]],
            "choices": [Choice(**choice) for choice in values["choices"]],
            "notes": tuple(values["notes"]),
        }
    )


def check_found(value: Any) -> None:
    """Raise ValueError unless these are the fields of a `Found`, as JSON has them."""
    try:
        found = _load(value)
        first = found.lines[0]
        is_score = type(first.cp) is int if first.mate is None else type(first.mate) is int
        if not (is_score and type(found.nodes) is int and type(first.depth) is int and isinstance(first.pv, list)):
            raise ValueError
        if not all(isinstance(move, str) for move in first.pv):
            raise ValueError
    except (TypeError, KeyError, IndexError, AttributeError):
        raise ValueError from None


RESULTS: Form[Found] = Form(
    lambda found: found,
    asdict,
    _load,
    lambda found: [(found.best or "", found.lines[0].pv, [])],
    lambda found: found.lines[0].depth,
)


def object_of(asked: Asked, found: Found | None, error: str | None) -> dict[str, Any]:
    """Return a result, as it is written."""
    return result_object(asked.id, asked.task, found, error)
