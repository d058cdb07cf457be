"""The `go` command: its words as numbers, flags and moves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psearch.defaults import MAX_DEPTH
from psearch.results import PsearchError
from psearch.settings import DEPTH
from psearch.text.values import quoted, whole_number

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
_MOST = {"depth": DEPTH.high}
_MOST_ELSE = 10**18
"""Larger numbers are lowered to these: nodes, moves and milliseconds that no search needs and sums of which fit."""
_MOST_COMPLAINTS = 5
_WORDS = {*_NUMBERS, "infinite", "ponder", "searchmoves"}


@dataclass(frozen=True)
class GoCommand:
    """What one `go` asks for. Times in milliseconds; None: not given."""

    board: chess.Board
    """without pieces where the position was refused: nothing is searched"""
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
    """Return the command for a position. What makes no sense is reported to `warn`, in a few lines, and left out.

    Raises PsearchError for a perft that is too deep: another depth would be another number.

    >>> import chess
    >>> go = parse_go("wtime 1000 winc 10 searchmoves e2e4 d2d4 depth 3".split(), chess.Board(), print)
    >>> go.white_ms, go.white_increment_ms, [move.uci() for move in go.searchmoves], go.depth
    (1000, 10, ['e2e4', 'd2d4'], 3)
    >>> parse_go(["depth", "many"], chess.Board(), print).infinite
    go depth: a whole number is missing
    True
    """
    complaints = _Complaints(warn)
    numbers: dict[str, int] = {}
    flags: set[str] = set()
    moves: dict[chess.Move, None] = {}
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if word in ("infinite", "ponder"):
            flags.add(word)
        elif word == "searchmoves":
            moves |= dict.fromkeys(_take_searchmoves(rest, board, complaints.add))
        elif word in _NUMBERS:
            number = whole_number(rest[0]) if rest else None
            if number is None:
                complaints.add(f"go {word}: a whole number is missing")
            else:
                numbers[_NUMBERS[word]] = max(min(number, _MOST.get(word, _MOST_ELSE)), _LEAST.get(word, 0))
            if rest and rest[0] not in _WORDS:
                rest.popleft()
        else:
            complaints.add(f"go: {quoted(word)} is not known and was ignored")
    complaints.finish()
    if numbers.get("perft", 0) > MAX_DEPTH:
        raise PsearchError(f"go perft: {MAX_DEPTH} plies at most, not {numbers['perft']}; nothing is counted")
    limited = numbers.keys() - {"white_increment_ms", "black_increment_ms", "moves_to_go"}
    infinite = "infinite" in flags or not (limited or flags)
    return GoCommand(board, infinite=infinite, ponder="ponder" in flags, searchmoves=tuple(moves), **numbers)


class _Complaints:
    """Passes on the first few; of the others it tells how many there were."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._count = 0

    def add(self, text: str) -> None:
        self._count += 1
        if self._count <= _MOST_COMPLAINTS:
            self._warn(text)

    def finish(self) -> None:
        if self._count > _MOST_COMPLAINTS:
            self._warn(f"go: {self._count - _MOST_COMPLAINTS:,} more words make no sense and were ignored")


def _take_searchmoves(rest: deque[str], board: chess.Board, complain: Callable[[str], None]) -> list[chess.Move]:
    """Take the words behind `searchmoves`; the moves that are legal."""
    words = []
    while rest and rest[0] not in _WORDS:
        words.append(rest.popleft())
    moves = []
    for word in dict.fromkeys(words):
        try:
            move = board.parse_uci(word)
        except ValueError:
            move = None
        if move:
            moves.append(move)
        else:
            complain(f"go searchmoves: {quoted(word)} is not a legal move and was ignored")
    return moves
