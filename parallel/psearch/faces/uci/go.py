"""Parses a `go` command, and tracks it from the command to the answer in a small state machine.

The reading and the searching thread share the state machine; only it knows whether an answer is still owed and may be
given. This module imports neither python-chess nor numba.
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
_LEAST = {"depth": 1, "nodes": 1, "mate": 1, "perft": 1}
"""Least values, to which smaller numbers are raised; others, such as an overdrawn clock, are raised to 0."""
_MOST = {"depth": DEPTH.high}
_MOST_ELSE = 10**18
"""Largest value, to which larger numbers are lowered: more than any search needs, and sums do not overflow."""
_MOST_COMPLAINTS = 5
_WORDS = {*_NUMBERS, "infinite", "ponder", "searchmoves"}


@dataclass(frozen=True)
class GoCommand:
    """Parameters of a `go`, named as in the protocol. Times are in milliseconds; None means not given."""

    board: chess.Board
    """Position to search; without pieces if the last position was refused, and then nothing is searched."""
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
        """Return clock and increment of the side to move, or the other side's if only those are given."""
        white, black = (self.wtime, self.winc), (self.btime, self.binc)
        own, other = (white, black) if self.board.turn else (black, white)
        clock = own[0] if own[0] is not None else other[0]
        increment = own[1] if own[1] is not None else other[1] if own[0] is None else None
        return clock, increment or 0


def parse_go(words: Sequence[str], board: chess.Board, warn: Callable[[str], None]) -> GoCommand:
    """Parse the words after `go`. Words that make no sense are ignored and reported to `warn`, in a few lines.

    Raises PsearchError for a perft that is too deep, since a smaller depth would give another number.

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
        raise PsearchError(f"go perft: at most {MAX_DEPTH} plies, not {numbers['perft']}; nothing is counted")
    if numbers.get("movestogo") == 0:
        del numbers["movestogo"]  # as many programs say that the clock is not reset
    limited = numbers.keys() - {"winc", "binc", "movestogo"}
    infinite = "infinite" in flags or not (limited or flags)
    return GoCommand(board, infinite=infinite, ponder="ponder" in flags, searchmoves=tuple(moves), **numbers)


def _take_searchmoves(rest: deque[str], board: chess.Board, complaints: list[str]) -> list[chess.Move]:
    """Remove the words after `searchmoves` from `rest`; return the legal moves among them."""
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


class State(enum.IntEnum):
    """State of a `go`, which never goes back."""

    WAITING = enum.auto()
    """In the queue: kernels are loading, or an earlier search has not ended."""
    SEARCHING = enum.auto()
    """Searching; the answer is held back until `stop` or `ponderhit`."""
    MAY_ANSWER = enum.auto()
    """Searching; the answer follows as soon as the move is known."""
    ANSWERED = enum.auto()
    """Answered or given up: nothing more is printed about it."""


class Go:
    """A `go` command with its state.

    The searching thread calls `begin`, `start_clock`, `say` and `answer`; the reading thread calls `stop`, `ponderhit`
    and `give_up`; any thread may read the properties. `say` takes whole lines. The clock runs from `start_clock`.

    With `infinite` or `ponder` the answer is held back until it is released, before or after `begin`. A perft is never
    held back.
    """

    def __init__(self, command: GoCommand, say: Say) -> None:
        self.command = command
        self.control = SearchControl()
        """Stop requests and clock of the search."""
        self.asked_at = time.perf_counter()
        """Time when our clock began to run: that of the `go`, or of the `ponderhit`."""
        self._say = say
        self.state = State.WAITING
        self._is_held = (command.infinite or command.ponder) and command.perft is None
        self._changed = threading.Condition()
        """Guards `state` and `_is_held`."""
        self._speaking = threading.Lock()
        """Held while a line is printed, taken before `_changed`, so that nothing follows the answer. A separate lock
        lets `stop` work while a line waits for a slow reader."""

    @property
    def is_under_way(self) -> bool:
        """Tell whether the search has begun and is not answered yet."""
        return self.state in (State.SEARCHING, State.MAY_ANSWER)

    @property
    def is_answered(self) -> bool:
        """Tell whether the command was answered or given up."""
        return self.state is State.ANSWERED

    @property
    def is_pondering(self) -> bool:
        """Tell whether it ponders, queued or searching: neither `stop` nor `ponderhit` has arrived."""
        return self.command.ponder and self._is_held and not self.is_answered

    def stop(self) -> None:
        """Stop the search; it is answered as soon as there is a move."""
        self.control.stop()
        self._release()

    def ponderhit(self) -> None:
        """Turn pondering into a normal search: the expected move was played. Ignored if it does not ponder."""
        if self.is_pondering:
            self.asked_at = time.perf_counter()
            self.control.ponderhit()
            if not self.command.infinite:
                self._release()

    def give_up(self) -> None:
        """End the search without an answer, unless it is answered already."""
        with self._speaking, self._changed:
            if not self.is_answered:
                self._enter(State.ANSWERED)
        self.control.stop()

    def begin(self) -> bool:
        """Begin the search; return False if it was given up meanwhile. Called once."""
        with self._changed:
            if not self.is_answered:
                self._enter(State.SEARCHING if self._is_held else State.MAY_ANSWER)
            return not self.is_answered

    def start_clock(self) -> float:
        """Start the clock of the search, now that everything is ready; return the seconds since it was requested."""
        now = self.control.asked_at = time.perf_counter()
        return now - self.asked_at

    @property
    def clock_ran_s(self) -> float:
        """Return the seconds that our clock has run, since the `go` or the `ponderhit`."""
        return time.perf_counter() - self.asked_at

    def rest(self, until_s: float) -> None:
        """Wait until our clock has run for `until_s` seconds, or until a stop."""
        with self._changed:
            self._changed.wait_for(lambda: self.control.is_stopped or self.is_answered, until_s - self.clock_ran_s)

    def say(self, line: str) -> None:
        """Print a line about this search, unless it is answered."""
        with self._speaking:
            if not self.is_answered:
                self._say(line)

    def answer(self, line: str) -> None:
        """Print the answer as soon as it may be given. Only the first answer is printed. Call `begin` first."""
        with self._changed:
            if self.state is State.WAITING:
                raise AssertionError("an answer before the search has begun")
            self._changed.wait_for(lambda: self.state is not State.SEARCHING)
        with self._speaking, self._changed:
            if self.is_answered:
                return
            self._enter(State.ANSWERED)
        self._say(line)  # printed last: a `go` that follows at once must find this one answered

    def _release(self) -> None:
        with self._changed:
            self._is_held = False
            self._changed.notify_all()
            if self.state is State.SEARCHING:
                self._enter(State.MAY_ANSWER)

    def _enter(self, state: State) -> None:
        """Change the state, here only; the caller holds `_changed`."""
        if state <= self.state:
            raise AssertionError(f"a `go` cannot become {state.name} when it is {self.state.name}")
        self.state = state
        self._changed.notify_all()
