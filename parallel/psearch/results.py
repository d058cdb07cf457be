"""What goes into a search and what comes out of it, as plain data.

Nothing here imports anything heavy, so the command line can import it before any kernel is loaded.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import chess
    import chess.engine

WON_CP = 20_000
"""The score of a position that is won, where nothing is known of how long it takes."""
_MOVES_SHOWN = 6
_PICTURE_SIZE = 320


class PsearchError(Exception):
    """A condition the user can do something about; its text is one line fit for stderr."""


class WorkerDied(PsearchError):
    """Worker processes ended again and again, or others could not be had, and nothing had been found by then.

    A death alone does not raise this: the search goes on with new workers, and `Result.notes` tells of it.
    """


@dataclass(frozen=True)
class Limits:
    """When to stop a search. Every limit that is set applies; the first one reached ends the search."""

    depth: int | None = None
    movetime_ms: float | None = None
    nodes: int | None = None
    mate: int | None = None
    """stop when a mate in this many moves, given or taken, has been found"""


@dataclass(frozen=True)
class WorkerStats:
    """One worker's counters, summed since the search began."""

    nodes: int
    splits: int
    """nodes in which a helper took part and that this worker was the last to leave"""
    joins: int
    """times this worker joined an open node as a helper"""
    aborted_nodes: int
    """nodes this worker entered in subtrees that a cutoff or a stop threw away"""
    idle_share: float
    """share of the search's wall time spent without a stack to work on, 0 to 1"""


@dataclass(frozen=True, repr=False)
class Info:
    """The state of a search at one moment: after an iteration, after an aspiration failure, or at the end."""

    depth: int
    seldepth: int
    score: chess.engine.PovScore
    bound: str
    """`exact`, `lower` (an aspiration fail high) or `upper` (a fail low)"""
    nodes: int
    time_s: float
    pv: list[chess.Move] = field(default_factory=list)
    workers: list[WorkerStats] = field(default_factory=list)
    multipv: int = 1
    """number of this line among the best, from 1"""
    hashfull: int = 0
    """share of the transposition table written by this search, in thousandths"""
    is_live: bool = False
    """only clocks, counters and what follows are new since the last report"""
    currmove: chess.Move | None = None
    """the move being searched at the root; in live reports"""
    currmovenumber: int = 0
    """its number at the root, from 1"""
    tbhits: int = 0
    """root moves that were looked up in endgame tables"""
    wdl: chess.engine.PovWdl | None = None
    """chances by psearch's own model, in what callers of the Python API get"""

    def __repr__(self) -> str:
        return f"<psearch.Info {self._summary()}>"

    def _score_text(self) -> str:
        return {"lower": ">=", "upper": "<="}.get(self.bound, "") + str(self.score.relative)

    def _summary(self) -> str:
        line = " ".join(move.uci() for move in self.pv[:_MOVES_SHOWN]) + " ..." * (len(self.pv) > _MOVES_SHOWN)
        return f"score={self._score_text()} depth={self.depth} nodes={self.nodes} pv={line or None}"

    @property
    def nps(self) -> int:
        """Nodes per second of wall time over all workers."""
        return round(self.nodes / self.time_s) if self.time_s > 0 else 0

    def as_dict(self) -> chess.engine.InfoDict:
        """Return the same as python-chess's engines report it: a dictionary with a key for everything that is known."""
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
    """What all results have alike: the figures of the best line."""

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
        """Depth that was reached."""
        return self.info.depth

    @property
    def pv(self) -> list[chess.Move]:
        """The best line."""
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
        """Chances by psearch's own model."""
        return self.info.wdl

    @property
    def ponder(self) -> chess.Move | None:
        """The reply that is expected to `bestmove`."""
        return self.pv[1] if len(self.pv) > 1 else None

    def as_dict(self) -> chess.engine.InfoDict:
        """Return the best line as `Engine.analyse` does: in the dictionary of python-chess's engines."""
        found = self.info.as_dict()
        if self.notes:
            found["string"] = "; ".join(self.notes)
        return found

    def as_row(self) -> dict[str, Any]:
        """Return the best line as a row of a table: numbers and text by name. `cp` (centipawns) and `mate` are for the
        side to move, one of them is None; moves are UCI."""
        score = self.score.relative
        return {
            "fen": None if self.board is None else self.board.fen(),
            "bestmove": None if self.bestmove is None else self.bestmove.uci(),
            "cp": score.score(),
            "mate": score.mate(),
            "bound": self.info.bound,
            "depth": self.depth,
            "seldepth": self.info.seldepth,
            "nodes": self.nodes,
            "time_s": self.time_s,
            "pv": " ".join(move.uci() for move in self.pv),
        }

    def _repr_html_(self) -> str | None:
        """Draw for notebooks: the board with the best move, and the lines."""
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
            f"{line._score_text()}, depth {line.depth}: {board.variation_san(line.pv)}"
            for line in self.lines or [self.info]
        )
        return "".join([picture, *(f"<div>{html.escape(text)}</div>" for text in texts)])


@dataclass(frozen=True, repr=False)
class Result(BestLine):
    """The answer to a search."""

    bestmove: chess.Move | None
    """None when the game is already over on the board"""
    info: Info
    interrupted: bool = False
    """True when the caller's stop request, not a limit, ended the search"""
    lines: list[Info] = field(default_factory=list)
    """the best lines, best first, each with another first move: as many as were requested, if there are so many"""
    notes: list[str] = field(default_factory=list)
    """what went wrong on the way, a line each: workers that were lost and replaced"""

    board: chess.Board | None = None
    """what was searched, if `psearch.search` was asked"""

    def __repr__(self) -> str:
        move = self.bestmove.uci() if self.bestmove else None
        more = f" lines={len(self.lines)}" * (len(self.lines) > 1) + " interrupted" * self.interrupted
        return f"<psearch.Result bestmove={move} {self.info._summary()}{more}>"
