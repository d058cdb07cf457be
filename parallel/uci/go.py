"""The `go` command: its words as numbers, and what other commands may say to the search that it began."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psearch.processes.control import SearchControl

if TYPE_CHECKING:
    import chess

_NUMBERS = {
    "wtime": "white_ms",
    "btime": "black_ms",
    "winc": "white_increment_ms",
    "binc": "black_increment_ms",
    "movestogo": "moves_to_go",
    "depth": "depth",
    "nodes": "nodes",
    "mate": "mate",
    "movetime": "movetime_ms",
    "perft": "perft",
}
_LEAST = {"movestogo": 1, "depth": 1, "nodes": 1, "mate": 1, "perft": 1}
"""Smaller numbers are taken for these; a clock may be overdrawn, and is then at 0."""
_WORDS = {*_NUMBERS, "infinite", "ponder", "searchmoves"}


@dataclass
class Go:
    """One `go`. Times in milliseconds."""

    board: chess.Board
    white_ms: int | None = None
    black_ms: int | None = None
    white_increment_ms: int | None = None
    black_increment_ms: int | None = None
    moves_to_go: int | None = None
    depth: int | None = None
    nodes: int | None = None
    mate: int | None = None
    movetime_ms: int | None = None
    perft: int | None = None
    infinite: bool = False
    ponder: bool = False
    searchmoves: list[chess.Move] = field(default_factory=list)
    control: SearchControl = field(default_factory=lambda: SearchControl(asked_at=time.perf_counter()))
    may_answer: threading.Event = field(default_factory=threading.Event)
    """set when the answer need not be held back any more"""
    is_answered: bool = False
    """or given up: nothing is said about it any more"""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if not (self.infinite or self.ponder):
            self.may_answer.set()

    @property
    def own_ms(self) -> tuple[int | None, int]:
        """Clock and increment of the side to move; if only the other side's are given, those."""
        white = (self.white_ms, self.white_increment_ms)
        black = (self.black_ms, self.black_increment_ms)
        own, other = (white, black) if self.board.turn else (black, white)
        clock = own[0] if own[0] is not None else other[0]
        increment = own[1] if own[1] is not None else other[1] if own[0] is None else None
        return clock, increment or 0

    def tell(self, say: Callable[[str], None], line: str) -> None:
        """Say something about this search, unless it has been answered."""
        with self._lock:
            if not self.is_answered:
                say(line)

    def take_answer(self) -> bool:
        """Whether an answer is still owed; from now on none is."""
        with self._lock:
            owed, self.is_answered = not self.is_answered, True
        return owed

    @property
    def is_pondering(self) -> bool:
        """Whether nobody waits for the answer yet: no stop and no ponderhit has come."""
        return self.ponder and not self.may_answer.is_set()

    def stop(self) -> None:
        """Answer as soon as there is a move."""
        self.control.stop()
        self.may_answer.set()

    def ponderhit(self) -> None:
        """The expected move was played: from now on it is a normal search."""
        if self.ponder:
            self.control.ponderhit()
            if not self.infinite:
                self.may_answer.set()


def parse_go(words: Sequence[str], board: chess.Board, complain: Callable[[str], None]) -> Go:
    """The command for a position. What makes no sense is reported and left out.

    >>> import chess
    >>> go = parse_go("wtime 1000 winc 10 searchmoves e2e4 d2d4 depth 3".split(), chess.Board(), print)
    >>> go.white_ms, go.white_increment_ms, [move.uci() for move in go.searchmoves], go.depth
    (1000, 10, ['e2e4', 'd2d4'], 3)
    >>> parse_go(["depth", "many"], chess.Board(), print).infinite
    go depth: a whole number is missing
    True
    """
    numbers: dict[str, int] = {}
    flags: dict[str, bool] = {}
    moves: list[chess.Move] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ("infinite", "ponder"):
            flags[word] = True
        elif word == "searchmoves":
            while rest and rest[0] not in _WORDS:
                moves += _parse_searchmove(rest.pop(0), board, complain)
        elif word in _NUMBERS:
            if rest and re.fullmatch("[+-]?[0-9]{1,18}", rest[0]):
                numbers[_NUMBERS[word]] = max(int(rest.pop(0)), _LEAST.get(word, 0))
            else:
                complain(f"go {word}: a whole number is missing")
                if rest and rest[0] not in _WORDS:
                    rest.pop(0)
        else:
            complain(f"go: {word!a} is not known and was ignored")
    limited = numbers.keys() - {"white_increment_ms", "black_increment_ms", "moves_to_go"}
    infinite = flags.get("infinite", False) or not (limited or flags)
    go = Go(board, infinite=infinite, ponder=flags.get("ponder", False), searchmoves=moves)
    for name, number in numbers.items():
        setattr(go, name, number)
    return go


def _parse_searchmove(word: str, board: chess.Board, complain: Callable[[str], None]) -> list[chess.Move]:
    try:
        move = board.parse_uci(word)
    except ValueError:
        move = None
    if not move:
        complain(f"go searchmoves: {word!a} is not a legal move and was ignored")
        return []
    return [move]
