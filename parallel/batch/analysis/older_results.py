"""Results that are there already, as JSON that psearch has written: of lines, of suites, of games."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import chess

from psearch.batch.analysis.analysis_journal import check_moves
from psearch.batch.analysis.json_objects import json_object_of
from psearch.batch.positions.boards import board_of
from psearch.batch.positions.jobs import Choice, Comparison, Found, Line, Task
from psearch.results import PsearchError
from psearch.text.source import Source
from psearch.text.source import TextLine as SourceLine


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
                values = json_object_of(line.text)
            except PsearchError as error:
                text = (
                    f"{source.name}, line {number}: {error}; what is merged is JSON lines, or what --json has written"
                )
                raise PsearchError(text) from None
            key, depth = _is_of(values)
            if key is not None and (key not in self._places or self._places[key].depth < depth):
                self._places[key] = _Place(number, line.begin, after.begin, depth)

    def __len__(self) -> int:
        return len(self._places)

    def of_position(self, task: Task, fen: str | None = None) -> Found | None:
        """Return the older result of a position, if it has as many lines as are wanted. fen: as it has been written, if
        not as in the task, and then without moves. Raises PsearchError for what cannot be one."""
        key = _position_key(task.fen, task.moves) if fen is None else _position_key(fen, [])
        place = self._places.get(key)
        if place is None:
            return None
        values = self._values(place)
        found = self._found(place, values, board_of(task))
        return found if len(found.lines) >= task.multipv else None

    def of_game(self, board: chess.Board, moves: Iterable[chess.Move]) -> dict[int, Found]:
        """Return the older results of a game that has begun so, with these moves: by the moves played before each.
        Raises PsearchError for what cannot be one."""
        walk = board.copy(stack=False)
        words = list(_words(walk, moves))
        place = self._places.get(_game_key(board.fen(), words))
        if place is None:
            return {}
        walk = board.copy(stack=False)
        found = {}
        positions = self._values(place)["positions"]
        for ply, values in enumerate(positions):
            # without a comparison there would be no mark: what was written before there were any is searched again
            if _has_result(values) and (ply >= len(words) or "compared" in values):
                found[ply] = self._found(place, values, walk)
            if ply < len(words):
                walk.push_uci(words[ply])
        return found

    def _values(self, place: _Place) -> dict[str, Any]:
        return json_object_of(self._source.text_between(place.begin, place.end).removeprefix("\ufeff"))

    def _found(self, place: _Place, values: dict[str, Any], board: chess.Board) -> Found:
        try:
            found = _found_of(values)
            if found.best is not None:
                check_moves(board, found.best, found.lines[0].pv, [])
                if found.compared is not None:
                    check_moves(board, found.compared.best, found.compared.pv, [])
            elif any(board.legal_moves):
                raise ValueError("no move")
            return found
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            text = f"not a result for {board.fen()}: {error}"
            raise PsearchError(f"{self._source.name}, line {place.number}: {text}") from None


def _is_of(values: dict[str, Any]) -> tuple[bytes | None, int]:
    """The key of a result, and its depth; None: it is none."""
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


def _found_of(values: dict[str, Any]) -> Found:
    """What was written of a search. Raises what values of other kinds lead to."""
    best, nodes, time_s = values["bestmove"], values["nodes"], values["time"]
    lines = [_line_of(line, values["seldepth"]) for line in values.get("lines", [values])]
    if not (lines and (best is None or isinstance(best, str))):
        raise ValueError("a move is missing")
    since = values.get("solution", values)
    if not all(_is_number(one[name]) for one in (values, since) for name in ("time", "depth", "nodes")):
        raise ValueError("a number is missing")
    return Found(
        best=best,
        lines=lines,
        nodes=nodes,
        time_s=time_s,
        hashfull=0,
        tbhits=values.get("tbhits", 0),
        choices=[] if best is None else [Choice(best, since["time"], since["depth"], since["nodes"])],
        compared=_comparison_of(values.get("compared")),
        notes=tuple(map(str, values.get("notes", ()))),
        version=str(values.get("version", "")),
    )


def _comparison_of(values: dict[str, Any] | None) -> Comparison | None:
    if values is None:
        return None
    best = _line_of(values, 0)
    played = _line_of({**values, "score": values["played"]}, 0)
    depths = values["depths"]
    if depths not in (1, 2, 3):
        raise ValueError("its depths are none")
    return Comparison(best.depth, depths, values["bestmove"], best.cp, best.mate, played.cp, played.mate, best.pv)


def _line_of(values: dict[str, Any], seldepth: int) -> Line:
    score, pv = values["score"], values["pv"]
    cp, mate, bound = score.get("cp"), score.get("mate"), score.get("bound", "exact")
    is_score = type(cp if mate is None else mate) is int and bound in ("exact", "lower", "upper")
    is_line = isinstance(pv, list) and all(isinstance(move, str) for move in pv)
    if not (is_score and is_line and type(values["depth"]) is int and type(seldepth) is int):
        raise ValueError("its score, depth or pv is none")
    return Line(cp if mate is None else None, mate, bound, values["depth"], seldepth, pv)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0


def _words(walk: chess.Board, moves: Iterable[chess.Move]) -> Iterator[str]:
    for move in moves:
        yield walk.uci(move)
        walk.push(move)


def _position_key(fen: Any, moves: Sequence[Any]) -> bytes:
    return _digest(["position", fen, list(moves) if not isinstance(moves, str) else moves.split()])


def _game_key(fen: Any, moves: Sequence[Any]) -> bytes:
    return _digest(["game", fen, moves])


def _digest(values: list[Any]) -> bytes:
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=12).digest()
