"""Limits and results of a search, as plain data. Importing this module loads nothing heavy."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import chess
    import chess.engine

WON_CP = 20_000
"""Score of a won position whose distance to mate is not known, in centipawns."""
BOUND_MARKS = {"exact": "", "lower": ">=", "upper": "<="}
_MOVES_SHOWN = 6
_PICTURE_SIZE = 320


class PsearchError(Exception):
    """An error that the caller or the user can correct. Its text is one line."""


class WorkerDied(PsearchError):
    """Worker processes died repeatedly, or could not be replaced, before the search had a result.

    A single death does not raise this: the search continues with new workers, and `Result.notes` reports it.
    """


def relative_text(score: chess.engine.Score, bound: str = "exact") -> str:
    """Return a relative score as text: `+0.31` in pawns, `#5` for mate in 5 moves, `#-3` for mated in 3, `won` or
    `lost` if the distance to mate is unknown; a bound has `>=` or `<=` before it."""
    mate, value = score.mate(), score.score() or 0
    if abs(value) == WON_CP:
        return "won" if value > 0 else "lost"
    return BOUND_MARKS[bound] + (f"#{mate}" if mate is not None else f"{value / 100:+.2f}")


@dataclass(frozen=True)
class Limits:
    """Limits of a search. The first one reached ends the search; None is no limit.

    `depth` is in plies, `movetime_ms` in milliseconds, `nodes` counts the nodes of all workers. `mate` stops the search
    when a mate in at most this many moves, for either side, has been found.
    """

    depth: int | None = None
    movetime_ms: float | None = None
    nodes: int | None = None
    mate: int | None = None


@dataclass(frozen=True)
class WorkerStats:
    """Counters of one worker, since the search began.

    - nodes: nodes searched.
    - splits: open nodes that had a helper and that this worker was the last to leave.
    - joins: how often this worker joined an open node as a helper.
    - aborted_nodes: nodes searched in subtrees that a cutoff or a stop made useless.
    - idle_share: share of the wall time without work, 0 to 1.
    """

    nodes: int
    splits: int
    joins: int
    aborted_nodes: int
    idle_share: float


@dataclass(frozen=True, repr=False)
class Info:
    """The state of a search at one moment: after an iteration, after an aspiration failure, or at the end.

    - depth, seldepth: depth of the iteration, and of the deepest line, in plies.
    - score: score of the line; bound: `exact`, `lower` (an aspiration fail high) or `upper` (a fail low).
    - nodes: nodes searched by all workers; time_s: seconds since the search began.
    - pv: the line, as moves; multipv: its rank among the best lines, from 1.
    - workers: counters of each worker.
    - hashfull: share of the transposition table that this search has written, in thousandths.
    - is_live: True when only clocks, counters and the current move are new since the last report.
    - currmove, currmovenumber: the root move being searched, and its number from 1, in live reports.
    - tbhits: root moves that were looked up in endgame tables.
    - wdl: chances to win, draw and lose by psearch's own model, in results of the Python API.
    """

    depth: int
    seldepth: int
    score: chess.engine.PovScore
    bound: str
    nodes: int
    time_s: float
    pv: list[chess.Move] = field(default_factory=list)
    workers: list[WorkerStats] = field(default_factory=list)
    multipv: int = 1
    hashfull: int = 0
    is_live: bool = False
    currmove: chess.Move | None = None
    currmovenumber: int = 0
    tbhits: int = 0
    wdl: chess.engine.PovWdl | None = None

    def __repr__(self) -> str:
        return f"<psearch.Info {self._summary()}>"

    def _summary(self) -> str:
        line = " ".join(move.uci() for move in self.pv[:_MOVES_SHOWN]) + " ..." * (len(self.pv) > _MOVES_SHOWN)
        score = relative_text(self.score.relative, self.bound)
        return f"score={score} depth={self.depth} nodes={self.nodes} pv={line or None}"

    @property
    def nps(self) -> int:
        """Nodes per second of wall time over all workers."""
        return round(self.nodes / self.time_s) if self.time_s > 0 else 0

    def as_dict(self) -> chess.engine.InfoDict:
        """Return a dictionary like those of python-chess's engines, with a key for everything that is known."""
        info: chess.engine.InfoDict = {
            "depth": self.depth,
            "seldepth": self.seldepth,
            "multipv": self.multipv,
            "score": self.score,
            "nodes": self.nodes,
            "nps": self.nps,
            "hashfull": self.hashfull,
            "tbhits": self.tbhits,
            "time": self.time_s,
            "pv": list(self.pv),
        }
        if self.wdl is not None:
            info["wdl"] = self.wdl
        if self.bound != "exact":  # python-chess sets these keys too, without declaring them
            info[f"{self.bound}bound"] = True  # type: ignore[literal-required]  # one of two keys
        if self.currmove is not None:
            info["currmove"] = self.currmove
            info["currmovenumber"] = self.currmovenumber
        return info


class BestLine:
    """Figures of the best line, which all results have."""

    if TYPE_CHECKING:

        @property
        def bestmove(self) -> chess.Move | None: ...

        @property
        def board(self) -> chess.Board | None: ...

        @property
        def info(self) -> Info: ...

        @property
        def lines(self) -> list[Info]: ...

        @property
        def notes(self) -> list[str]: ...

    @property
    def score(self) -> chess.engine.PovScore:
        """Score of the best move."""
        return self.info.score

    @property
    def depth(self) -> int:
        """Depth of the last finished iteration, in plies."""
        return self.info.depth

    @property
    def pv(self) -> list[chess.Move]:
        """The best line, as moves."""
        return self.info.pv

    @property
    def nodes(self) -> int:
        """Nodes searched by all workers."""
        return self.info.nodes

    @property
    def time_s(self) -> float:
        """Duration in seconds."""
        return self.info.time_s

    @property
    def wdl(self) -> chess.engine.PovWdl | None:
        """Chances to win, draw and lose, by psearch's own model."""
        return self.info.wdl

    @property
    def ponder(self) -> chess.Move | None:
        """Expected reply to `bestmove`."""
        return self.pv[1] if len(self.pv) > 1 else None

    def as_dict(self) -> chess.engine.InfoDict:
        """Return the best line as a dictionary like those of `Engine.analyse`."""
        found = self.info.as_dict()
        if self.notes:
            found["string"] = "; ".join(self.notes)
        return found

    def as_row(self) -> dict[str, Any]:
        """Return the result as a row of a table: numbers and text by name.

        Either `cp` (centipawns) or `mate` is None; both are for the side to move, `cp_white` and `mate_white` are not.
        `win`, `draw` and `loss` are the chances of the side to move per mille, if they are known. Moves are in UCI
        notation. The second of several lines is in `cp_2`, `mate_2` and `pv_2`, and so on.
        """
        score, white, wdl = self.score.relative, self.score.white(), self.wdl
        others = {
            f"{name}_{line.multipv}": value
            for line in self.lines[1:]
            for name, value in (
                ("cp", line.score.relative.score()),
                ("mate", line.score.relative.mate()),
                ("pv", " ".join(move.uci() for move in line.pv)),
            )
        }
        return {
            "fen": None if self.board is None else self.board.fen(),
            "bestmove": None if self.bestmove is None else self.bestmove.uci(),
            "cp": score.score(),
            "mate": score.mate(),
            "cp_white": white.score(),
            "mate_white": white.mate(),
            "win": None if wdl is None else wdl.relative.wins,
            "draw": None if wdl is None else wdl.relative.draws,
            "loss": None if wdl is None else wdl.relative.losses,
            "bound": self.info.bound,
            "depth": self.depth,
            "seldepth": self.info.seldepth,
            "nodes": self.nodes,
            "time_s": self.time_s,
            "pv": " ".join(move.uci() for move in self.pv),
            **others,
        }

    def _repr_html_(self) -> str | None:
        """Return HTML for notebooks: the board with the best move, and the lines."""
        if self.board is None:
            return None
        import chess.svg

        board = self.board
        picture = chess.svg.board(
            board,
            orientation=board.turn,
            lastmove=board.peek() if board.move_stack else None,
            arrows=[chess.svg.Arrow(self.bestmove.from_square, self.bestmove.to_square)] if self.bestmove else [],
            check=board.king(board.turn) if board.is_check() else None,
            size=_PICTURE_SIZE,
        )
        texts = (
            f"{relative_text(line.score.relative, line.bound)}, depth {line.depth}: {board.variation_san(line.pv)}"
            for line in self.lines or [self.info]
        )
        return "".join([picture, *(f"<div>{html.escape(text)}</div>" for text in texts)])


@dataclass(frozen=True, repr=False)
class Result(BestLine):
    """The result of a search.

    - bestmove: the best move; None when the game is already over on the board.
    - info: all figures of the best line.
    - interrupted: True when the caller stopped the search, not a limit.
    - lines: the best lines, best first, each with another first move; at most as many as were wanted.
    - notes: problems that were solved during the search, one line each: workers that were lost and replaced.
    - board: the position, in results of `psearch.search`.
    """

    bestmove: chess.Move | None
    info: Info
    interrupted: bool = False
    lines: list[Info] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    board: chess.Board | None = None

    def __repr__(self) -> str:
        move = self.bestmove.uci() if self.bestmove else None
        more = f" lines={len(self.lines)}" * (len(self.lines) > 1) + " interrupted" * self.interrupted
        return f"<psearch.Result bestmove={move} {self.info._summary()}{more}>"
