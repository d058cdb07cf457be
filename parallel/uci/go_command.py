"""The `go` command: its words as numbers, flags and moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psearch.uci.numbers import whole_number

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
"""Smaller numbers are raised to these; a clock may be overdrawn, and is then at 0."""
_WORDS = {*_NUMBERS, "infinite", "ponder", "searchmoves"}


@dataclass(frozen=True)
class GoCommand:
    """What one `go` asks for. Times in milliseconds; None: not given."""

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
    searchmoves: Sequence[chess.Move] = ()

    @property
    def own_ms(self) -> tuple[int | None, int]:
        """Clock and increment of the side to move; if only the other side's are given, those."""
        white = (self.white_ms, self.white_increment_ms)
        black = (self.black_ms, self.black_increment_ms)
        own, other = (white, black) if self.board.turn else (black, white)
        clock = own[0] if own[0] is not None else other[0]
        increment = own[1] if own[1] is not None else other[1] if own[0] is None else None
        return clock, increment or 0


def parse_go(words: Sequence[str], board: chess.Board, warn: Callable[[str], None]) -> GoCommand:
    """The command for a position. What makes no sense is reported to `warn` and left out.

    >>> import chess
    >>> go = parse_go("wtime 1000 winc 10 searchmoves e2e4 d2d4 depth 3".split(), chess.Board(), print)
    >>> go.white_ms, go.white_increment_ms, [move.uci() for move in go.searchmoves], go.depth
    (1000, 10, ['e2e4', 'd2d4'], 3)
    >>> parse_go(["depth", "many"], chess.Board(), print).infinite
    go depth: a whole number is missing
    True
    """
    numbers: dict[str, int] = {}
    flags: set[str] = set()
    moves: list[chess.Move] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ("infinite", "ponder"):
            flags.add(word)
        elif word == "searchmoves":
            while rest and rest[0] not in _WORDS:
                moves += _parse_searchmove(rest.pop(0), board, warn)
        elif word in _NUMBERS:
            number = whole_number(rest[0]) if rest else None
            if number is None:
                warn(f"go {word}: a whole number is missing")
            else:
                numbers[_NUMBERS[word]] = max(number, _LEAST.get(word, 0))
            if rest and rest[0] not in _WORDS:
                rest.pop(0)
        else:
            warn(f"go: {word!a} is not known and was ignored")
    limited = numbers.keys() - {"white_increment_ms", "black_increment_ms", "moves_to_go"}
    infinite = "infinite" in flags or not (limited or flags)
    return GoCommand(board, infinite=infinite, ponder="ponder" in flags, searchmoves=tuple(moves), **numbers)


def _parse_searchmove(word: str, board: chess.Board, warn: Callable[[str], None]) -> list[chess.Move]:
    try:
        move = board.parse_uci(word)
    except ValueError:
        move = None
    if not move:
        warn(f"go searchmoves: {word!a} is not a legal move and was ignored")
        return []
    return [move]
