"""Positions as JSON, one object a line, as `psearch analyse` reads them. Their results are those of
`psearch.batch.positions.position_result`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import chess

from psearch.batch.positions.task import Task
from psearch.files.json_text import json_object
from psearch.results import Limits, PsearchError
from psearch.searcher.declared import DEPTH, MOVETIME, MULTIPV, NODES, Option
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
    try:
        values = json_object(text)
    except ValueError as error:
        raise PsearchError(str(error)) from None
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
