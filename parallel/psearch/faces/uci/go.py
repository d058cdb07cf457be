"""One `go` from the command to its answer: a small state machine, used by the thread that reads and the one that
searches.

It alone knows whether an answer is still owed and whether it may be given. Nothing here imports python-chess or numba.
"""

from __future__ import annotations

import enum
import threading
import time
from typing import TYPE_CHECKING

from psearch.processes.control import SearchControl

if TYPE_CHECKING:
    from psearch.faces.uci.go_command import GoCommand
    from psearch.faces.uci.uci_streams import Say


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
        self._state = State.WAITING
        self._is_held = (command.infinite or command.ponder) and command.perft is None
        self._changed = threading.Condition()
        """guards the two fields above"""
        self._speaking = threading.Lock()
        """Held while a line goes out, taken before `_changed`: nothing follows the answer. Of its own, so that a
        `stop` is heard while a line waits for a slow reader."""

    @property
    def state(self) -> State:
        return self._state

    @property
    def is_under_way(self) -> bool:
        """Whether it was begun and is not answered yet."""
        return self._state in (State.SEARCHING, State.MAY_ANSWER)

    @property
    def may_answer(self) -> bool:
        return self._state is State.MAY_ANSWER

    @property
    def is_answered(self) -> bool:
        return self._state is State.ANSWERED

    @property
    def is_pondering(self) -> bool:
        """Whether it ponders, in the queue or under way: no `stop` and no `ponderhit` has come."""
        return self.command.ponder and self._is_held and not self.is_answered

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` or `give_up` was called."""
        return self.control.is_stopped

    # -- the thread that reads ---------------------------------------------------------------------------------------

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

    # -- the thread that searches ------------------------------------------------------------------------------------

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
            if self._state is State.WAITING:
                raise AssertionError("an answer before the search has begun")
            self._changed.wait_for(lambda: self._state is not State.SEARCHING)
        with self._speaking, self._changed:
            if self.is_answered:
                return
            self._enter(State.ANSWERED)
        self._say(line)  # the next `go` may follow at once: it must find this one answered

    # -- transitions -------------------------------------------------------------------------------------------------

    def _release(self) -> None:
        with self._changed:
            self._is_held = False
            if self._state is State.SEARCHING:
                self._enter(State.MAY_ANSWER)

    def _enter(self, state: State) -> None:
        """The one place where the state changes; `_changed` is held."""
        if state not in _NEXT[self._state]:
            raise AssertionError(f"a `go` cannot become {state.value} when it is {self._state.value}")
        self._state = state
        self._changed.notify_all()
