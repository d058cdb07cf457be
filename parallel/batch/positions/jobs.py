"""What a farm searches and what comes of it: plain data, for pipes, for JSON, and for other machines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from psearch.results import Limits


@dataclass(frozen=True)
class Task:
    """One position to search. The first limit that is reached ends the search; one must be set."""

    id: str | int
    """the caller's name for it"""
    fen: str
    """where the game begins whose moves follow"""
    moves: tuple[str, ...] = ()
    """played from there to the position that is searched, UCI"""
    limits: Limits = field(default_factory=Limits)
    multipv: int = 1
    """lines to find, if there are so many moves"""
    root_moves: tuple[str, ...] | None = None
    """the moves to choose from, UCI; None: all"""
    line: tuple[str, ...] = ()
    """what was played from there, UCI, the first few moves, in a game whose positions a chain searches from the last to
    the first: where the first of them may be a mistake it is compared with the best one. Empty: nothing is compared"""
    chess960: bool = False
    """how castling is written in moves: king takes rook, also where it is of normal chess"""


@dataclass(frozen=True)
class Chain:
    """Tasks that one hand searches one after the other, with the table kept between them, as in a game. Between chains
    a hand forgets everything. tasks: read once, as they are needed."""

    tasks: Iterable[Task]


class Pause(Enum):
    """In place of a chain: there is none now, and may be more later."""

    ROUND = "once outcomes have been given out"
    OUTCOME = "once something more is searched"
    INPUT = "once more has come in"


@dataclass(frozen=True)
class Piece:
    """Tasks of one chain, one after the other, with their numbers."""

    chain: int
    begins: bool
    """whether the hand is to forget what it knows first: the chain begins, or comes from a hand that was lost"""
    tasks: list[tuple[int, Task]]


@dataclass(frozen=True)
class Batch:
    """What is sent to a hand at once: sized for about a second of work."""

    pieces: list[Piece]

    @property
    def size(self) -> int:
        """Tasks."""
        return sum(len(piece.tasks) for piece in self.pieces)


@dataclass(frozen=True)
class Choice:
    """From when on the search preferred a move."""

    move: str
    """UCI"""
    time_s: float
    depth: int
    nodes: int


@dataclass(frozen=True)
class Line:
    """One of the best lines. Scores are for the side to move."""

    cp: int | None
    """centipawns; None for a mate"""
    mate: int | None
    """moves to mate, negative when being mated, 0 on the board; None otherwise"""
    bound: str
    """`exact`, `lower` or `upper`, as in `Info`"""
    depth: int
    seldepth: int
    pv: list[str]
    """UCI"""


@dataclass(frozen=True)
class Comparison:
    """The best move beside the one that was played, both with exact scores of the same depth, for the side to move."""

    depth: int
    depths: int
    """how many of the last depths agree with these scores, or differ more"""
    best: str
    """UCI; may be the move that was played"""
    cp: int | None
    """of the best move, in centipawns; None for a mate, which is in `mate`"""
    mate: int | None
    played_cp: int | None
    played_mate: int | None
    pv: list[str]
    """the line of the best move, UCI"""


@dataclass(frozen=True)
class Found:
    """What a search found."""

    best: str | None
    """UCI; None when the game is over on the board"""
    lines: list[Line]
    """best first, at least one"""
    nodes: int
    time_s: float
    hashfull: int
    """share of the transposition table written by this search, in thousandths"""
    tbhits: int
    """root moves that were looked up in endgame tables"""
    choices: list[Choice]
    """the best move and its predecessors, each where it became the best; the last one is `best`"""
    exact_cp: int | None = None
    """the last exact score of the best move, where its score is a bound and there is one; a mate is in `exact_mate`"""
    exact_mate: int | None = None
    compared: Comparison | None = None
    """with the move that was played, where that may be a mistake"""
    notes: tuple[str, ...] = ()
    """what went wrong on the way and was mended, a line each"""
    version: str = ""
    """psearch's, where it was searched"""
    threads: int = 1
    """that searched at last"""


@dataclass(frozen=True)
class Outcome:
    """What became of a task: `found`, or why there is nothing."""

    number: int
    """of the task; numbers begin at 0, in the order in which tasks are read"""
    id: str | int
    found: Found | None
    error: str | None = None
    """one line; None where something was found"""
    hand: str = ""
    """who searched it: the machine, or the number of the process"""
