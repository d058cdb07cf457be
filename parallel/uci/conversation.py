"""The UCI engine's conversation: the thread that reads commands, answers at once what can be, and leaves the rest to a
second one.

This thread imports nothing heavy, so `uciok` comes before python-chess or numba are loaded; the second (`player.py`)
loads the kernels and does what takes time. `isready`, `stop`, `ponderhit` and `quit` are answered while it searches.
The way of a `go`: `Uci._go`, `parse_go`, `Player.search`, in the second thread `Turn.run` and `Supervisor.search`; and
back: `Turn`, `Go.answer`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from psearch.uci.options import OPTIONS, OptionValues
from psearch.uci.player import Player
from psearch.uci.position import CurrentPosition
from psearch.version import __version__

if TYPE_CHECKING:
    import chess

    from psearch.uci.messages import Say

_NEW_RESOURCES = ("Threads", "Hash", "SyzygyPath", "BookFile", "Trace")
"""Options that take time to settle: at once, and not on the clock of the next `go`."""


class Uci:
    """One conversation. `say` takes whole lines, without the end of the last one, from two threads."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._values = OptionValues()
        self._debug = False
        self._position = CurrentPosition()
        self._player = Player(say, self._values)
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "uci": self._uci,
            "debug": self._set_debug,
            "isready": self._isready,
            "setoption": self._setoption,
            "register": lambda words: None,
            "ucinewgame": self._ucinewgame,
            "position": self._set_position,
            "go": self._go,
            "stop": self._stop,
            "ponderhit": self._ponderhit,
        }
        self._own_commands: dict[str, Callable[[list[str]], None]] = {
            "d": self._show_board,
            "eval": self._evaluate,
            "bench": self._bench,
        }

    def run(self, lines: Iterable[str]) -> None:
        """Obey commands until `quit` or the end of the input. No worker is left; a thread that compiles may be."""
        try:
            for line in lines:
                if not self._obey(line.split()):
                    break
        finally:
            self._stop([])
            self._player.close()

    def _obey(self, words: list[str]) -> bool:
        """One command; False for `quit`. Unknown words before a command are passed over, as the protocol demands."""
        unknown: list[str] = []
        while words and words[0] not in self._commands and words[0] != "quit":
            if not unknown and words[0] in self._own_commands:
                self._own_commands[words[0]](words[1:])
                return True
            unknown.append(words.pop(0))
        if unknown:
            self._warn(f"unknown command: {' '.join(unknown)[:80]!a}")
        if not words:
            return True
        if words[0] == "quit":
            return False
        self._commands[words[0]](words[1:])
        return True

    def _warn(self, text: str) -> None:
        self._say(f"info string {text}")

    # -- the protocol's commands -------------------------------------------------------------------------------------

    def _uci(self, words: list[str]) -> None:
        lines = [f"id name psearch {__version__}", "id author the psearch authors"]
        self._say("\n".join([*lines, *(option.declaration() for option in OPTIONS), "uciok"]))
        self._player.start()

    def _set_debug(self, words: list[str]) -> None:
        if words not in (["on"], ["off"]):
            self._warn("debug takes on or off")
        else:
            self._debug = words == ["on"]

    def _isready(self, words: list[str]) -> None:
        self._player.ready()

    def _setoption(self, words: list[str]) -> None:
        if not words or words[0] != "name":
            self._warn("setoption: `name` is missing")
            return
        end = words.index("value") if "value" in words else len(words)
        name, text = " ".join(words[1:end]), " ".join(words[end + 1 :])
        try:
            option = self._values.set(name, text)
        except ValueError as error:
            self._warn(f"setoption: {error}")
            return
        if option.name == "Clear Hash":
            self._player.new_game()
        elif option.name in _NEW_RESOURCES:
            self._player.settle()

    def _ucinewgame(self, words: list[str]) -> None:
        self._player.new_game()

    def _set_position(self, words: list[str]) -> None:
        from psearch.results import PsearchError

        try:
            self._position.set_up(words, self._is_chess960)
        except PsearchError as error:
            self._warn(f"position: {error}; the position is left as it was")

    def _go(self, words: list[str]) -> None:
        from psearch.uci.go import Go
        from psearch.uci.go_command import parse_go

        # after a stop the next go may come before the answer (polyglot does that): it waits for its turn
        running = self._player.latest
        if running is not None and not running.is_answered:
            if running.is_pondering:
                # python-chess may forget its ponder search without a stop, and expects one answer only
                running.give_up()
                self._warn("the ponder search is given up: another go has come")
            elif not running.is_stopped:
                self._warn("a search is running already: go was ignored")
                return
        command = parse_go(words, self._board(), self._warn)
        self._player.search(Go(command, self._say), self._debug)

    def _stop(self, words: list[str]) -> None:
        if self._player.latest is not None:
            self._player.latest.stop()

    def _ponderhit(self, words: list[str]) -> None:
        if self._player.latest is not None:
            self._player.latest.ponderhit()

    # -- commands of our own -----------------------------------------------------------------------------------------

    def _show_board(self, words: list[str]) -> None:
        board = self._board()
        self._say(f"{board}\nFEN: {board.fen()}")

    def _evaluate(self, words: list[str]) -> None:
        self._player.evaluate(self._board())

    def _bench(self, words: list[str]) -> None:
        self._player.bench()

    @property
    def _is_chess960(self) -> bool:
        return self._values.flag("UCI_Chess960")

    def _board(self) -> chess.Board:
        return self._position.board(self._is_chess960)


def read_lines(stream: BinaryIO | None) -> Iterator[str]:
    """Lines of the input as they come, whatever bytes they hold."""
    while stream is not None and (line := stream.readline()):
        yield line.decode("utf-8", "replace")


def line_writer() -> Say:
    """Writes to stdout, whole lines at a time, from any thread."""
    lock = threading.Lock()

    def say(text: str) -> None:
        with lock:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    return say


def run_uci() -> None:
    """Talk UCI on stdin and stdout, until `quit` or the end of the input."""
    stream = None if sys.stdin is None else sys.stdin.buffer
    Uci(line_writer()).run(read_lines(stream))
