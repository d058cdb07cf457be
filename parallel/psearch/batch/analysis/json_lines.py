"""JSON lines that `psearch analyse` reads: positions that are asked for, and results that are there already.

What it writes are the objects of `psearch.batch.positions.position_result`, of suites and of games.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import chess

from psearch.batch.positions.answer import Answer
from psearch.batch.positions.task import Task, uci_words
from psearch.files.safe_files import json_object
from psearch.results import Limits, PsearchError
from psearch.settings import DEPTH, MOVETIME, MULTIPV, NODES, Option
from psearch.text.source import Source, Stream, parse_lines, parse_stream
from psearch.text.source import TextLine as SourceLine
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


# -- older results ----------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a result is in the file."""

    number: int
    """of its line, from 1"""
    begin: int
    """bytes before it"""
    end: int
    depth: int


class OlderResults:
    """Results found by position, or by game. The file is read again when one is wanted; of each only a number and where
    it is are in memory. Raises PsearchError for a line that is no JSON object."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._places: dict[bytes, _Place] = {}
        """the deepest, by position; by game the one that is deeper in the sum"""
        lines = itertools.chain(source.lines(), [SourceLine(source.size, "")])
        for number, (line, after) in enumerate(itertools.pairwise(lines), start=1):
            if not line.text.strip():
                continue
            try:
                values = json_object(line.text)
            except ValueError as error:
                text = f"{source.name}, line {number}: {error}"
                raise PsearchError(f"{text}; what is merged is JSON lines, or what --json has written") from None
            key, depth = _is_of(values)
            if key is not None and (key not in self._places or self._places[key].depth < depth):
                self._places[key] = _Place(number, line.begin, after.begin, depth)

    def __len__(self) -> int:
        return len(self._places)

    def of_position(self, task: Task, fen: str | None = None) -> Answer | None:
        """Return the older result of a position, if it has as many lines as are wanted. fen: as it has been written, if
        not as in the task, and then without moves. Raises PsearchError for what cannot be one."""
        key = _position_key(task.fen, task.moves) if fen is None else _position_key(fen, [])
        place = self._places.get(key)
        if place is None:
            return None
        answer = self._answer(place, self._values(place), task.board())
        return answer if len(answer.lines) >= task.multipv else None

    def of_game(self, board: chess.Board, moves: Iterable[chess.Move]) -> dict[int, Answer]:
        """Return the older results of a game that has begun so, with these moves: by the moves played before each.
        Raises PsearchError for what cannot be one."""
        words = list(uci_words(board, moves))
        place = self._places.get(_game_key(board.fen(), words))
        if place is None:
            return {}
        walk = board.copy(stack=False)
        found = {}
        for ply, values in enumerate(self._values(place)["positions"]):
            # without a comparison there would be no mark: what was written before there were any is searched again
            if _has_result(values) and (ply >= len(words) or "compared" in values):
                found[ply] = self._answer(place, values, walk)
            if ply < len(words):
                walk.push_uci(words[ply])
        return found

    def _values(self, place: _Place) -> dict[str, Any]:
        return json_object(self._source.text_between(place.begin, place.end).removeprefix("\ufeff"))

    def _answer(self, place: _Place, values: dict[str, Any], board: chess.Board) -> Answer:
        try:
            answer = Answer.from_json(values)
            answer.check(board)
        except ValueError as error:
            text = f"not a result for {board.fen()}: {error}"
            raise PsearchError(f"{self._source.name}, line {place.number}: {text}") from None
        return answer


def _is_of(values: dict[str, Any]) -> tuple[bytes | None, int]:
    """Return the key of a result, and its depth; None: it is none."""
    positions = values.get("positions")
    if isinstance(positions, list):
        if not positions or not all(isinstance(one, dict) for one in positions):
            return None, 0
        moves = [one["move"] for one in positions if "move" in one]
        return _game_key(positions[0].get("fen"), moves), sum(one["depth"] for one in positions if _has_result(one))
    if not _has_result(values):
        return None, 0
    moves = values.get("moves", [])
    return (_position_key(values.get("fen"), moves), values["depth"]) if isinstance(moves, (list, str)) else (None, 0)


def _has_result(values: dict[str, Any]) -> bool:
    return type(values.get("depth")) is int and isinstance(values.get("score"), dict)


def _position_key(fen: Any, moves: Sequence[Any]) -> bytes:
    return _digest(["position", fen, list(moves) if not isinstance(moves, str) else moves.split()])


def _game_key(fen: Any, moves: Sequence[Any]) -> bytes:
    return _digest(["game", fen, moves])


def _digest(values: list[Any]) -> bytes:
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=12).digest()
