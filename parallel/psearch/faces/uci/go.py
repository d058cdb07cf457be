"""One `go`: its words as numbers, flags and moves, and its way from the command to the answer, a small state machine
used by the thread that reads and the one that searches.

It alone knows whether an answer is still owed and whether it may be given. Nothing here imports python-chess or numba.
"""

from __future__ import annotations

import enum
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psearch.defaults import MAX_DEPTH
from psearch.processes.control import SearchControl
from psearch.results import PsearchError
from psearch.settings import DEPTH
from psearch.text.values import quoted, whole_number

if TYPE_CHECKING:
    import chess

    from psearch.faces.uci.uci_streams import Say

_NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "mate", "movetime", "perft")
_LEAST = {"movestogo": 1, "depth": 1, "nodes": 1, "mate": 1, "perft": 1}
"""Smaller numbers are raised to these; a clock may be overdrawn, and is then at 0."""
_MOST = {"depth": DEPTH.high}
_MOST_ELSE = 10**18
"""Larger numbers are lowered to these: nodes, moves and milliseconds that no search needs and sums of which fit."""
_MOST_COMPLAINTS = 5
_WORDS = {*_NUMBERS, "infinite", "ponder", "searchmoves"}


@dataclass(frozen=True)
class GoCommand:
    """What one `go` asks for, in the words of the protocol. Times in milliseconds; None: not given."""

    board: chess.Board
    """without pieces where the position was refused: nothing is searched"""
    wtime: int | None = None
    btime: int | None = None
    winc: int | None = None
    binc: int | None = None
    movestogo: int | None = None
    depth: int | None = None
    nodes: int | None = None
    mate: int | None = None
    movetime: int | None = None
    perft: int | None = None
    infinite: bool = False
    ponder: bool = False
    searchmoves: Sequence[chess.Move] = ()

    @property
    def own_ms(self) -> tuple[int | None, int]:
        """Clock and increment of the side to move; if only the other side's are given, those."""
        white, black = (self.wtime, self.winc), (self.btime, self.binc)
        own, other = (white, black) if self.board.turn else (black, white)
        clock = own[0] if own[0] is not None else other[0]
        increment = own[1] if own[1] is not None else other[1] if own[0] is None else None
        return clock, increment or 0


def parse_go(words: Sequence[str], board: chess.Board, warn: Callable[[str], None]) -> GoCommand:
    """Return the command for a position. What makes no sense is reported to `warn`, in a few lines, and left out.

    Raises PsearchError for a perft that is too deep: another depth would be another number.

    >>> import chess
    >>> go = parse_go("wtime 1000 winc 10 searchmoves e2e4 d2d4 depth 3".split(), chess.Board(), print)
    >>> go.wtime, go.winc, [move.uci() for move in go.searchmoves], go.depth
    (1000, 10, ['e2e4', 'd2d4'], 3)
    >>> parse_go(["depth", "many"], chess.Board(), print).infinite
    go depth: a whole number is missing
    True
    """
    complaints: list[str] = []
    numbers: dict[str, int] = {}
    flags: set[str] = set()
    moves: dict[chess.Move, None] = {}
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if word in ("infinite", "ponder"):
            flags.add(word)
        elif word == "searchmoves":
            moves |= dict.fromkeys(_take_searchmoves(rest, board, complaints))
        elif word in _NUMBERS:
            number = whole_number(rest[0]) if rest else None
            if number is None:
                complaints.append(f"go {word}: a whole number is missing")
            else:
                numbers[word] = max(min(number, _MOST.get(word, _MOST_ELSE)), _LEAST.get(word, 0))
            if rest and rest[0] not in _WORDS:
                rest.popleft()
        else:
            complaints.append(f"go: {quoted(word)} is not known and was ignored")
    for complaint in complaints[:_MOST_COMPLAINTS]:
        warn(complaint)
    if len(complaints) > _MOST_COMPLAINTS:
        warn(f"go: {len(complaints) - _MOST_COMPLAINTS:,} more words make no sense and were ignored")
    if numbers.get("perft", 0) > MAX_DEPTH:
        raise PsearchError(f"go perft: {MAX_DEPTH} plies at most, not {numbers['perft']}; nothing is counted")
    limited = numbers.keys() - {"winc", "binc", "movestogo"}
    infinite = "infinite" in flags or not (limited or flags)
    return GoCommand(board, infinite=infinite, ponder="ponder" in flags, searchmoves=tuple(moves), **numbers)


def _take_searchmoves(rest: deque[str], board: chess.Board, complaints: list[str]) -> list[chess.Move]:
    """Take the words behind `searchmoves`; return the moves that are legal."""
    words: dict[str, None] = {}
    while rest and rest[0] not in _WORDS:
        words[rest.popleft()] = None
    moves = []
    for word in words:
        try:
            move = board.parse_uci(word)
        except ValueError:
            move = None
        if move:
            moves.append(move)
        else:
            complaints.append(f"go searchmoves: {quoted(word)} is not a legal move and was ignored")
    return moves


class State(enum.Enum):
    """Where a `go` stands. There is no way back."""

    WAITING = "waiting"
    """in the queue: kernels are loading, or the search before it has not ended"""
    SEARCHING = "searching"
    """under way, and the answer is held back until `stop` or `ponderhit`"""
    MAY_ANSWER = "may answer"
    """under way, and answered as soon as the move is known"""
    ANSWERED = "answered"
    """or given up: nothing is said about it any more"""


_NEXT = {
    State.WAITING: (State.SEARCHING, State.MAY_ANSWER, State.ANSWERED),
    State.SEARCHING: (State.MAY_ANSWER, State.ANSWERED),
    State.MAY_ANSWER: (State.ANSWERED,),
    State.ANSWERED: (),
}


class Go:
    """A `go` command and its state.

    `begin`, `start_clock`, `say` and `answer` belong to the thread that searches; `stop`, `ponderhit` and `give_up` to
    the one that reads; the properties may be read from anywhere. `say` takes whole lines. The clock counts from
    `start_clock`.

    With `infinite` or `ponder` the answer is held back until it is released, be it before or after `begin`. A perft has
    no answer to hold back.
    """

    def __init__(self, command: GoCommand, say: Say) -> None:
        self.command = command
        self.control = SearchControl()
        """what the search listens to"""
        self._asked_at = time.perf_counter()
        """or the time of the `ponderhit`: when our clock began to run"""
        self._say = say
        self.state = State.WAITING
        self._is_held = (command.infinite or command.ponder) and command.perft is None
        self._changed = threading.Condition()
        """guards the two fields above"""
        self._speaking = threading.Lock()
        """Held while a line goes out, taken before `_changed`: nothing follows the answer. Of its own, so that a
        `stop` is heard while a line waits for a slow reader."""

    @property
    def is_under_way(self) -> bool:
        """Whether it was begun and is not answered yet."""
        return self.state in (State.SEARCHING, State.MAY_ANSWER)

    @property
    def is_answered(self) -> bool:
        return self.state is State.ANSWERED

    @property
    def is_pondering(self) -> bool:
        """Whether it ponders, in the queue or under way: no `stop` and no `ponderhit` has come."""
        return self.command.ponder and self._is_held and not self.is_answered

    def stop(self) -> None:
        """Answer as soon as there is a move."""
        self.control.stop()
        self._release()

    def ponderhit(self) -> None:
        """Make it a normal search from now on: the expected move was played. Without effect if it does not ponder."""
        if self.command.ponder:
            self._asked_at = time.perf_counter()
            self.control.ponderhit()
            if not self.command.infinite:
                self._release()

    def give_up(self) -> None:
        """End the search without an answer. Without effect on one that is answered."""
        with self._speaking, self._changed:
            if not self.is_answered:
                self._enter(State.ANSWERED)
        self.control.stop()

    def begin(self) -> bool:
        """Begin its turn. Returns False if it has been given up: there is nothing to do. Called once."""
        with self._changed:
            if not self.is_answered:
                self._enter(State.SEARCHING if self._is_held else State.MAY_ANSWER)
            return not self.is_answered

    def start_clock(self) -> float:
        """Count the search's time from now on, since all that it needs is there. Returns the seconds since it was asked
        for."""
        now = self.control.asked_at = time.perf_counter()
        return now - self._asked_at

    @property
    def clock_ran_s(self) -> float:
        """Seconds that our clock has run, after a `go` that does not ponder or a `ponderhit`."""
        return time.perf_counter() - self._asked_at

    def say(self, line: str) -> None:
        """Say something about this search, unless it has been answered."""
        with self._speaking:
            if not self.is_answered:
                self._say(line)

    def answer(self, line: str) -> None:
        """Wait until the answer may be given, then give it. Only the first one is said. Not before `begin`."""
        with self._changed:
            if self.state is State.WAITING:
                raise AssertionError("an answer before the search has begun")
            self._changed.wait_for(lambda: self.state is not State.SEARCHING)
        with self._speaking, self._changed:
            if self.is_answered:
                return
            self._enter(State.ANSWERED)
        self._say(line)  # the next `go` may follow at once: it must find this one answered

    def _release(self) -> None:
        with self._changed:
            self._is_held = False
            if self.state is State.SEARCHING:
                self._enter(State.MAY_ANSWER)

    def _enter(self, state: State) -> None:
        """The one place where the state changes; `_changed` is held."""
        if state not in _NEXT[self.state]:
            raise AssertionError(f"a `go` cannot become {state.value} when it is {self.state.value}")
        self.state = state
        self._changed.notify_all()
