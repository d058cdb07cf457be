"""What `analyse_many` gives for a position."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import chess
import chess.engine

from psearch.batch.positions.boards import board_of
from psearch.batch.positions.jobs import Found, Line, Task
from psearch.results import BestLine, Info, PsearchError
from psearch.text.report import score_object
from psearch.text.wdl import pov_wdl


class PositionResult(BestLine):
    """One position of `psearch.analyse_many`, searched, or the reason why it could not be.

    It has what `psearch.Result` has. Moves and scores are python-chess's types; they are made when they are asked for.
    What was not found raises PsearchError for a position with an error.
    """

    def __init__(self, id: Any, index: int, task: Task, found: Found | None, error: str | None, hand: str = "") -> None:
        self.id = id
        """as it was given; else the number of the position, from 0"""
        self.index = index
        """number of the position in the input, from 0"""
        self.error = error
        """one line; None: it was searched"""
        self.hand = hand
        """which worker searched it: the number of its process, or its machine"""
        self._task = task
        self._found = found

    def __repr__(self) -> str:
        if self._found is None:
            return f"<psearch.PositionResult id={self.id!r} error={self.error!r}>"
        line = self._found.lines[0]
        score = f"#{line.mate}" if line.mate is not None else f"{line.cp:+d}"
        return f"<psearch.PositionResult id={self.id!r} bestmove={self._found.best} score={score} depth={line.depth}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositionResult) and self._values == other._values

    def __hash__(self) -> int:
        return hash((self.index, self._task.fen))

    @property
    def _values(self) -> tuple[Any, ...]:
        return self.id, self.index, self.error, self.hand, self._task, self._found

    def _repr_html_(self) -> str | None:
        """Draw for notebooks: the board with the best move, and the lines."""
        return None if self._found is None else super()._repr_html_()

    @property
    def fen(self) -> str:
        """Of the position that was searched; the text that was given where it is no position."""
        try:
            return self.board.fen()
        except PsearchError:
            return self._task.fen

    @cached_property
    def board(self) -> chess.Board:
        """The position, with the moves before it that a search looks at. Raises PsearchError for a bad one."""
        return board_of(self._task)

    @property
    def bestmove(self) -> chess.Move | None:
        """None when the game is over on the board. Raises PsearchError for a position with an error."""
        best = self._have().best
        return None if best is None else self.board.parse_uci(best)

    @property
    def info(self) -> Info:
        """The best line. Raises PsearchError for a position with an error."""
        return self.lines[0]

    @cached_property
    def lines(self) -> list[Info]:
        """All lines, best first: `multipv` of them, if there are so many moves. Raises PsearchError for a position with
        an error."""
        found = self._have()
        return [self._info(found, number, line) for number, line in enumerate(found.lines, start=1)]

    @property
    def notes(self) -> list[str]:
        """What went wrong on the way and was mended, a line each."""
        return list(self._found.notes) if self._found is not None else []

    def as_row(self) -> dict[str, Any]:
        """Return the best line as a row of a table, as `Result.as_row`, with `id` and `error`; that alone where the
        position was not searched."""
        found = {"fen": self.fen} if self._found is None else super().as_row()
        return {"id": self.id, **found, "error": self.error}

    def as_json(self) -> dict[str, Any]:
        """Return what `psearch analyse` writes for it as a JSON line (docs/guides/analyse.md); the id must be text or a
        number."""
        return result_object(self.id, self._task, self._found, self.error)

    def _have(self) -> Found:
        if self._found is None:
            raise PsearchError(f"position {self.id!r} was not searched: {self.error}")
        return self._found

    def _info(self, found: Found, number: int, line: Line) -> Info:
        score = chess.engine.PovScore(score_of(line.cp, line.mate), self.board.turn)
        return Info(
            depth=line.depth,
            seldepth=line.seldepth,
            score=score,
            bound=line.bound,
            nodes=found.nodes,
            time_s=found.time_s,
            pv=_moves(self.board, line.pv),
            multipv=number,
            hashfull=found.hashfull,
            tbhits=found.tbhits,
            wdl=pov_wdl(score, self.board),
        )


def score_of(cp: int | None, mate: int | None) -> chess.engine.Score:
    """Return a score for the side to move, from the two numbers of which one is None."""
    return chess.engine.Cp(cp or 0) if mate is None else chess.engine.Mate(mate)


def _moves(board: chess.Board, words: list[str]) -> list[chess.Move]:
    walk = board.copy(stack=False)
    return [walk.push_uci(word) for word in words]


def result_object(id: Any, task: Task, found: Found | None, error: str | None) -> dict[str, Any]:
    """Return a result as JSON: scores for the side to move, moves in UCI, times in seconds."""
    values: dict[str, Any] = {"id": id, "fen": task.fen}
    if task.moves:
        values["moves"] = list(task.moves)
    if found is None:
        return {**values, "error": error}
    first = found.lines[0]
    values |= {
        "bestmove": found.best,
        "score": score_object(score_of(first.cp, first.mate), first.bound),
        "depth": first.depth,
        "seldepth": first.seldepth,
        "nodes": found.nodes,
        "time": found.time_s,
        "tbhits": found.tbhits,
        "pv": first.pv,
    }
    if len(found.lines) > 1:
        values["lines"] = [
            {"score": score_object(score_of(line.cp, line.mate), line.bound), "depth": line.depth, "pv": line.pv}
            for line in found.lines
        ]
    if found.notes:
        values["notes"] = list(found.notes)
    return {**values, "version": found.version}
