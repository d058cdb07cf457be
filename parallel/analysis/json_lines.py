"""Positions as JSON, one object a line, and results of the same kind: what `psearch analyse` reads and writes for
programs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import chess

from psearch.analysis.analyser import Form
from psearch.defaults import MAX_DEPTH, MAX_MOVETIME_MS, MAX_NODES
from psearch.farm.answers import result_object
from psearch.farm.jobs import Choice, Found, Line, Task
from psearch.notation.source import Source, parse_lines
from psearch.options import shown
from psearch.results import Limits, PsearchError

_MOST_LINES = 1000
_MOST_MOVES = 20_000
_LONGEST_FEN = 200
_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][nbrq]?")
_LIMITS: dict[str, int] = {"depth": MAX_DEPTH, "nodes": MAX_NODES, "movetime": MAX_MOVETIME_MS}


@dataclass(frozen=True)
class Asked:
    """A line: a position that is to be searched."""

    line: int
    """its number in the file, from 1"""
    id: str | int
    task: Task
    """its id is the key in the journal"""


def read_asked(source: Source, file: int, default: Limits) -> Iterator[Asked]:
    """The lines of a file; `file` is its number, `default` what a line without limits has. The names are those of
    docs/guides/analyse.md; others mean nothing. Raises PsearchError, naming the line, for what is none of ours."""
    return parse_lines(source, lambda text, number: _asked(text, file, number, default))


def _asked(text: str, file: int, number: int, default: Limits) -> Asked:
    values = _object(text)
    name = values.get("id", number)
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise PsearchError(f"id must be text or a whole number, not {shown(name)}")
    fen = values.get("fen", chess.STARTING_FEN)
    if not isinstance(fen, str) or len(fen) > _LONGEST_FEN:
        raise PsearchError(f"fen must be text, not {shown(fen)}")
    key = f"file {file} line {number}"
    multipv = _whole("multipv", values.get("multipv", 1), _MOST_LINES)
    return Asked(number, name, Task(key, fen, _moves(values.get("moves", [])), _limits(values, default), multipv))


def _object(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise PsearchError("not a JSON object")
    return values


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
    numbers = {name: _whole(name, value, _LIMITS[name]) for name, value in given.items()}
    return Limits(numbers.get("depth"), numbers.get("movetime"), numbers.get("nodes"))


def _whole(name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise PsearchError(f"{name} must be a whole number from 1 to {most}, not {shown(value)}")
    return value


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
    lambda found: (found.best or "", found.lines[0].pv, []),
)


def object_of(asked: Asked, found: Found | None, error: str | None) -> dict[str, Any]:
    """A result, as it is written."""
    return result_object(asked.id, asked.task, found, error)


# -- older results ---------------------------------------------------------------------------------------------------


class OlderResults:
    """Results that are there already, found by position. The file is read again when one is wanted; of each only a
    number and where it is are in memory. Raises PsearchError for a line that is no JSON object."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._places: dict[bytes, tuple[int, int, int]] = {}
        """first and last byte, and depth, by position"""
        for number, line in enumerate(source.lines(), start=1):
            if not line.text.strip():
                continue
            try:
                values = _object(line.text)
            except PsearchError as error:
                raise PsearchError(f"{source.name}, line {number}: {error}") from None
            depth, fen = values.get("depth"), values.get("fen")
            if type(depth) is int and isinstance(fen, str) and isinstance(values.get("score"), dict):
                key = _key(fen, values.get("moves", []))
                if key not in self._places or self._places[key][2] < depth:
                    self._places[key] = line.begin, line.begin + len(line.text.encode()), depth

    def __len__(self) -> int:
        return len(self._places)

    def deeper(self, task: Task, depth: int) -> dict[str, Any] | None:
        """The older result of a position if it is deeper than this, and has as many lines as are wanted."""
        place = self._places.get(_key(task.fen, list(task.moves)))
        if place is None or place[2] <= depth:
            return None
        values = _object(self._source.text_between(place[0], place[1]))
        return values if len(values.get("lines", [None])) >= task.multipv else None


def _key(fen: str, moves: Any) -> bytes:
    return hashlib.blake2b(json.dumps([fen, moves]).encode(), digest_size=12).digest()
