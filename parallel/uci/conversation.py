"""The UCI engine's conversation: reads commands, answers at once what can be, leaves the rest to a second thread.

The reading thread imports nothing heavy, so `uciok` comes before python-chess or numba are loaded; a second thread
then loads the kernels (`uci_player.py`) and does what takes time, one job after the other. `isready`, `stop`,
`ponderhit` and `quit` are answered while it searches. Everything goes out in whole lines.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from psearch.uci.options import OPTIONS, OptionValues
from psearch.version import __version__

if TYPE_CHECKING:
    import chess

    from psearch.uci.go import Go
    from psearch.uci.player import Player

Say = Callable[[str], None]

_PROGRESS_INTERVAL_S = 2.0
_LOAD_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 0.5
_QUIT_TIMEOUT_S = 5.0
_TRACE_TIMEOUT_S = 60.0
"""How long `quit` waits for a trace that is being written."""


class Uci:
    """One conversation. `say` takes whole lines, without their end, from two threads."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._values = OptionValues()
        self._debug = False
        self._base: tuple[str, ...] = ()
        self._moves: list[str] = []
        self._board: chess.Board | None = None
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._player: Player | None = None
        self._is_compiling = False
        self._is_loaded = threading.Event()
        self._go: Go | None = None
        self._readyok_owed = 0
        self._is_searching = False
        self._is_leaving = False
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "uci": self._uci,
            "debug": self._set_debug,
            "isready": self._isready,
            "setoption": self._setoption,
            "register": lambda words: None,
            "ucinewgame": self._ucinewgame,
            "position": self._position,
            "go": self._start_go,
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
            self._end()

    def _obey(self, words: list[str]) -> bool:
        """One command; False for `quit`. Unknown words before a command are passed over, as the protocol demands."""
        unknown: list[str] = []
        while words and words[0] not in self._commands and words[0] != "quit":
            if not unknown and words[0] in self._own_commands:
                self._own_commands[words[0]](words[1:])
                return True
            unknown.append(words.pop(0))
        if unknown:
            self._complain(f"unknown command: {' '.join(unknown)[:80]!a}")
        if not words:
            return True
        if words[0] == "quit":
            return False
        self._commands[words[0]](words[1:])
        return True

    def _complain(self, text: str) -> None:
        self._say(f"info string {text}")

    # -- commands ----------------------------------------------------------------------------------------------------

    def _uci(self, words: list[str]) -> None:
        lines = [f"id name psearch {__version__}", "id author the psearch authors"]
        self._say("\n".join([*lines, *(option.declaration() for option in OPTIONS), "uciok"]))
        self._start()

    def _set_debug(self, words: list[str]) -> None:
        if words not in (["on"], ["off"]):
            self._complain("debug takes on or off")
        else:
            self._debug = words == ["on"]

    def _isready(self, words: list[str]) -> None:
        with self._lock:
            at_once = self._is_searching
            self._readyok_owed += not at_once
        if at_once:
            self._say("readyok")
        else:
            self._submit(self._settle)
            self._submit(self._answer_ready)

    def _setoption(self, words: list[str]) -> None:
        if not words or words[0] != "name":
            self._complain("setoption: `name` is missing")
            return
        end = words.index("value") if "value" in words else len(words)
        name, text = " ".join(words[1:end]), " ".join(words[end + 1 :])
        try:
            option = self._values.set(name, text)
        except ValueError as error:
            self._complain(f"setoption: {error}")
            return
        if option.name == "Clear Hash":
            self._submit(lambda: self._with_player(lambda player: player.new_game()))
        elif self._thread is not None and option.name in ("Threads", "Hash", "SyzygyPath", "BookFile", "Trace"):
            self._submit(self._settle)

    def _ucinewgame(self, words: list[str]) -> None:
        self._submit(lambda: self._with_player(lambda player: player.new_game()))

    def _position(self, words: list[str]) -> None:
        from psearch.results import PsearchError

        cut = words.index("moves") if "moves" in words else len(words)
        base, moves = tuple(words[:cut]), words[cut + 1 :]
        try:
            board = self._set_up(base, moves)
        except PsearchError as error:
            self._complain(f"position: {error}; the position is left as it was")
            return
        self._board, self._base, self._moves = board, base, moves

    def _set_up(self, base: tuple[str, ...], moves: list[str]) -> chess.Board:
        """The position a command describes. Only the new moves are played if it goes on from the last one."""
        from psearch.notation.fen import parse_position
        from psearch.results import PsearchError

        known = len(self._moves)
        if self._board is not None and base == self._base and moves[:known] == self._moves:
            board = self._board.copy()
        else:
            known = 0
            if base == ("startpos",):
                board = parse_position("startpos")
            elif base[:1] == ("fen",):
                board = parse_position(list(base[1:]))
            else:
                raise PsearchError("startpos or fen is missing")
        board.chess960 = board.chess960 or self._values.flag("UCI_Chess960")
        for number, word in enumerate(moves[known:], start=known + 1):
            try:
                move = board.parse_uci(word)
            except ValueError:
                move = None
            if not move:
                raise PsearchError(f"move {number}, {word[:10]!a}, is not legal in {board.fen()}")
            board.push(move)
        return board

    def _present_board(self) -> chess.Board:
        if self._board is None:
            self._obey(["position", "startpos"])
        if self._board is None:
            raise AssertionError("the initial position was refused")
        board = self._board.copy()
        board.chess960 = board.chess960 or self._values.flag("UCI_Chess960")
        return board

    def _start_go(self, words: list[str]) -> None:
        from psearch.uci.go import parse_go

        # after a stop the next go may come before the answer (polyglot does that): it waits for its turn
        running = self._go
        if running is not None and running.is_pondering:
            # python-chess may forget its ponder search without a stop, and expects one answer only
            running.take_answer()
            running.stop()
            self._complain("the ponder search is given up: another go has come")
        elif running is not None and not running.control.is_stopped:
            self._complain("a search is running already: go was ignored")
            return
        go = parse_go(words, self._present_board(), self._complain)
        self._go = go
        values, debug = self._values.copy(), self._debug
        self._submit(lambda: self._search(go, values, debug))

    def _stop(self, words: list[str]) -> None:
        go = self._go
        if go is not None:
            go.stop()

    def _ponderhit(self, words: list[str]) -> None:
        go = self._go
        if go is not None:
            go.ponderhit()

    def _show_board(self, words: list[str]) -> None:
        board = self._present_board()
        self._say(f"{board}\nFEN: {board.fen()}")

    def _evaluate(self, words: list[str]) -> None:
        board = self._present_board()
        self._submit(lambda: self._with_player(lambda player: player.evaluate(board)))

    def _bench(self, words: list[str]) -> None:
        self._submit(lambda: self._with_player(lambda player: player.bench()))

    # -- the second thread ---------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="psearch-uci", daemon=True)
            self._thread.start()

    def _submit(self, job: Callable[[], None]) -> None:
        self._start()
        self._jobs.put(job)

    def _work(self) -> None:
        """Load, then do one job after the other. Whatever fails is reported; the conversation goes on."""
        self._guarded(self._load)
        while (job := self._jobs.get()) is not None:
            self._guarded(job)
        if self._player is not None:
            self._guarded(self._player.close)

    def _guarded(self, job: Callable[[], None]) -> None:
        from psearch.results import PsearchError

        try:
            job()
        except PsearchError as error:
            self._complain(str(error))
        except Exception as error:
            traceback.print_exc()
            with contextlib.suppress(OSError):  # nobody reads any more
                self._complain(f"internal error: {type(error).__name__}: {error}")

    def _load(self) -> None:
        from psearch.uci.player import Player

        last = -_PROGRESS_INTERVAL_S

        def progress(text: str) -> None:
            nonlocal last
            self._is_compiling = True
            if time.monotonic() - last >= _PROGRESS_INTERVAL_S:
                last = time.monotonic()
                self._complain(text)

        self._player = Player(self._say, progress)
        if self._is_compiling:
            self._complain(f"kernels compiled in {self._player.load_s:.0f} s, they are kept for the next start")
            self._is_compiling = False
        self._is_loaded.set()
        self._settle()

    def _settle(self) -> None:
        """Workers, table, tablebases and book as the options say."""
        self._with_player(lambda player: player.settle(self._values.copy()))

    def _with_player(self, job: Callable[[Player], None]) -> None:
        if self._player is not None:
            job(self._player)

    def _answer_ready(self) -> None:
        with self._lock:
            owed, self._readyok_owed = self._readyok_owed, 0
        for _ in range(owed):
            self._say("readyok")

    def _search(self, go: Go, values: OptionValues, debug: bool) -> None:
        with self._lock:
            self._is_searching = True
        self._answer_ready()  # what was asked before the search began must not wait for its end
        try:
            self._with_player(
                lambda player: player.search(
                    go, values, debug, lambda line: self._answer(go, line), self._is_trace_wanted
                )
            )
        finally:
            # if all else failed: a game is not to be lost for want of a move
            any_move = next(map(go.board.uci, go.board.legal_moves), "(none)")
            self._answer(go, "" if go.perft else f"bestmove {any_move}")

    def _is_trace_wanted(self) -> bool:
        """Asked when the answer is out: the next search has a clock that runs."""
        return self._go is None and not self._is_leaving

    def _answer(self, go: Go, line: str) -> None:
        """Say it when it may be said; only the first answer to a `go` counts."""
        go.may_answer.wait()
        if not go.take_answer():
            return
        with self._lock:
            self._is_searching = False
            if self._go is go:
                self._go = None  # before it is said: the next `go` may follow at once
        self._answer_ready()
        if line:
            self._say(line)

    def _end(self) -> None:
        """Stop searching, close everything."""
        self._stop([])
        self._jobs.put(None)
        thread = self._thread
        if thread is None:
            return
        if not self._is_loaded.is_set():
            deadline = time.monotonic() + _LOAD_TIMEOUT_S
            while not self._is_compiling and thread.is_alive() and time.monotonic() < deadline:
                if self._is_loaded.wait(0.05):
                    break
        if self._is_loaded.is_set():
            thread.join(_STOP_TIMEOUT_S)
            self._wait_for_trace(thread)
            if thread.is_alive() and self._player is not None:
                self._player.close()  # it is counting, or clearing a large table
                thread.join(_QUIT_TIMEOUT_S)

    def _wait_for_trace(self, thread: threading.Thread) -> None:
        """What was asked for is not thrown away because of a `quit`, unless the disk keeps us waiting."""
        deadline = time.monotonic() + _TRACE_TIMEOUT_S
        while self._player is not None and self._player.is_writing_trace:
            self._is_leaving = time.monotonic() > deadline
            thread.join(0.05)
            if time.monotonic() > deadline + _STOP_TIMEOUT_S:
                return


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
