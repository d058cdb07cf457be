"""What `analyse_many` gives for a position."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import chess
import chess.engine

from psearch.batch.positions.answer import Answer, Line
from psearch.batch.positions.task import Task
from psearch.results import BestLine, Info, PsearchError
from psearch.text.wdl import pov_wdl


@dataclass(repr=False)
class PositionResult(BestLine):
    """One position of `psearch.analyse_many`, searched, or the reason why it could not be.

    It has what `psearch.Result` has. Moves and scores are python-chess's types; they are made when they are asked for.
    What was not found raises PsearchError for a position with an error.
    """

    id: Any
    """as it was given; else the number of the position, from 0"""
    index: int
    """number of the position in the input, from 0"""
    error: str | None
    """one line; None: it was searched"""
    hand: str
    """which worker searched it: the number of its process, or its machine"""
    _task: Task
    _answer: Answer | None

    def __repr__(self) -> str:
        if self._answer is None:
            return f"<psearch.PositionResult id={self.id!r} error={self.error!r}>"
        line = self._answer.line
        score = f"#{line.mate}" if line.mate is not None else f"{line.cp:+d}"
        return f"<psearch.PositionResult id={self.id!r} bestmove={self._answer.best} score={score} depth={line.depth}>"

    def __hash__(self) -> int:
        return hash((self.index, self._task.fen))

    def _repr_html_(self) -> str | None:
        """Draw for notebooks: the board with the best move, and the lines."""
        return None if self._answer is None else super()._repr_html_()

    @property
    def fen(self) -> str:
        """FEN of the position that was searched; the text that was given where it is no position."""
        try:
            return self.board.fen()
        except PsearchError:
            return self._task.fen

    @cached_property
    def board(self) -> chess.Board:
        """The position, with the moves before it that a search looks at. Raises PsearchError for a bad one."""
        return self._task.board()

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
        answer = self._have()
        return [self._info(answer, number, line) for number, line in enumerate(answer.lines, start=1)]

    @property
    def notes(self) -> list[str]:
        """What went wrong on the way and was mended, a line each."""
        return list(self._answer.notes) if self._answer is not None else []

    def as_row(self) -> dict[str, Any]:
        """Return the best line as a row of a table, as `Result.as_row`, with `id` and `error`; that alone where the
        position was not searched."""
        found = {"fen": self.fen} if self._answer is None else super().as_row()
        return {"id": self.id, **found, "error": self.error}

    def as_json(self) -> dict[str, Any]:
        """Return what `psearch analyse` writes for it as a JSON line (docs/guides/analyse.md); the id must be text or a
        number."""
        return result_object(self.id, self._task, self._answer, self.error)

    def _have(self) -> Answer:
        if self._answer is None:
            raise PsearchError(f"position {self.id!r} was not searched: {self.error}")
        return self._answer

    def _info(self, answer: Answer, number: int, line: Line) -> Info:
        score = chess.engine.PovScore(line.score, self.board.turn)
        walk = self.board.copy(stack=False)
        return Info(
            depth=line.depth,
            seldepth=line.seldepth,
            score=score,
            bound=line.bound,
            nodes=answer.nodes,
            time_s=answer.time_s,
            pv=[walk.push_uci(word) for word in line.pv],
            multipv=number,
            hashfull=answer.hashfull,
            tbhits=answer.tbhits,
            wdl=pov_wdl(score, self.board),
        )


def result_object(id: Any, task: Task, answer: Answer | None, error: str | None) -> dict[str, Any]:
    """Return a result as a JSON line: scores for the side to move, moves in UCI, times in seconds."""
    values: dict[str, Any] = {"id": id, "fen": task.fen}
    if task.moves:
        values["moves"] = list(task.moves)
    if answer is None:
        return {**values, "error": error}
    values |= answer.as_json()
    if answer.notes:
        values["notes"] = list(answer.notes)
    return {**values, "version": answer.version}
