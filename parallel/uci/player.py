"""The UCI engine's second thread: does what takes time, one job after the other, in the order of the commands.

Importing this module loads neither python-chess nor numba: the thread does that when it starts.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from psearch.uci.go import Go
from psearch.uci.options import OptionValues

if TYPE_CHECKING:
    import chess

    from psearch.uci.messages import Say
    from psearch.uci.resources import Resources

_PROGRESS_INTERVAL_S = 2.0
_LOAD_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 0.5
_QUIT_TIMEOUT_S = 5.0
_TRACE_TIMEOUT_S = 60.0
"""How long `close` waits for a trace that is being written."""


class Player:
    """Takes jobs from the thread that reads, and does them in one of its own.

    values: the options, which the other thread may change; settling uses them as they are then, a search as they were
    when it was asked for. The public methods are for the other thread, and return at once (`close` excepted).
    """

    def __init__(self, say: Say, values: OptionValues) -> None:
        self._say = say
        self._values = values
        self.latest: Go | None = None
        """the last `go` that was submitted"""
        self._current: Go | None = None
        """the last one that was begun"""
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._resources: Resources | None = None
        """None until they are loaded, and if that failed"""
        self._is_compiling = False
        self._is_loaded = threading.Event()
        self._is_leaving = False
        self._readyok_lock = threading.Lock()
        self._readyok_owed = 0

    # -- jobs --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load, unless that has been done."""
        if self._thread is None:
            self._jobs.put(self._load)
            self._thread = threading.Thread(target=self._work, name="psearch-uci", daemon=True)
            self._thread.start()

    def search(self, go: Go, debug: bool) -> None:
        """Search and answer; with `debug` also say how the work was shared."""
        self.latest = go
        self._submit(partial(self._search, go, self._values.copy(), debug))

    def settle(self) -> None:
        """Workers, table, tablebases and book as the options say. Before the start there is no need to ask."""
        if self._thread is not None:
            self._submit(self._settle)

    def ready(self) -> None:
        """Say `readyok` when all jobs so far are done; at once while a search is under way."""
        # Counted before looking whether a search is under way; the other thread begins one before it looks for what is
        # owed. So one of the two sees it, and none waits for the end of a search.
        with self._readyok_lock:
            self._readyok_owed += 1
        if self._current is not None and self._current.is_under_way:
            self._say_ready()
        else:
            self._submit(self._settle)
            self._submit(self._say_ready)

    def new_game(self) -> None:
        """Forget what was learnt."""
        self._submit(self._new_game)

    def evaluate(self, board: chess.Board) -> None:
        """Print the static evaluation."""
        self._submit(partial(self._evaluate, board))

    def bench(self) -> None:
        """Run and print what `psearch bench` does, in this process."""
        self._submit(self._bench)

    def close(self) -> None:
        """Finish the jobs, end the workers. A search must have been stopped before; a count is broken off, a trace is
        waited for. No worker is left; a thread that compiles may be."""
        thread = self._thread
        if thread is None:
            return
        self._jobs.put(self._close)
        self._jobs.put(None)
        if not self._is_loaded.is_set():
            deadline = time.monotonic() + _LOAD_TIMEOUT_S
            while not self._is_compiling and thread.is_alive() and time.monotonic() < deadline:
                if self._is_loaded.wait(0.05):
                    break
        if self._is_loaded.is_set():
            thread.join(_STOP_TIMEOUT_S)
            self._wait_for_trace(thread)
            if thread.is_alive():
                self._close()  # it is counting, or clearing a large table
                thread.join(_QUIT_TIMEOUT_S)

    def _wait_for_trace(self, thread: threading.Thread) -> None:
        """What was asked for is not thrown away because of a `quit`, unless the disk keeps us waiting."""
        deadline = time.monotonic() + _TRACE_TIMEOUT_S
        while self._resources is not None and self._resources.is_writing_trace:
            self._is_leaving = time.monotonic() > deadline
            thread.join(0.05)
            if time.monotonic() > deadline + _STOP_TIMEOUT_S:
                return

    # -- the thread --------------------------------------------------------------------------------------------------

    def _submit(self, job: Callable[[], None]) -> None:
        self.start()
        self._jobs.put(job)

    def _work(self) -> None:
        """One job after the other. Whatever fails is reported; the conversation goes on."""
        from psearch.results import PsearchError

        while (job := self._jobs.get()) is not None:
            try:
                job()
            except PsearchError as error:
                self._say(f"info string {error}")
            except Exception as error:
                traceback.print_exc()
                with contextlib.suppress(OSError):  # nobody reads any more
                    self._say(f"info string internal error: {type(error).__name__}: {error}")

    def _load(self) -> None:
        from psearch.uci.resources import Resources

        last = -_PROGRESS_INTERVAL_S

        def progress(text: str) -> None:
            nonlocal last
            self._is_compiling = True
            if time.monotonic() - last >= _PROGRESS_INTERVAL_S:
                last = time.monotonic()
                self._say(f"info string {text}")

        self._resources = Resources(self._say, progress)
        if self._is_compiling:
            seconds = self._resources.load_s
            self._say(f"info string kernels compiled in {seconds:.0f} s, they are kept for the next start")
            self._is_compiling = False
        self._is_loaded.set()
        self._settle()

    def _settle(self) -> None:
        if self._resources is not None:
            self._resources.settle(self._values.copy())

    def _say_ready(self) -> None:
        with self._readyok_lock:
            owed, self._readyok_owed = self._readyok_owed, 0
        for _ in range(owed):
            self._say("readyok")

    def _new_game(self) -> None:
        if self._resources is not None:
            self._resources.new_game()

    def _search(self, go: Go, values: OptionValues, debug: bool) -> None:
        """One `go`. If all else fails, a legal move is played: a game is not to be lost for want of one."""
        from psearch.uci.messages import bestmove_line

        self._current = go
        if not go.begin():
            return
        self._say_ready()
        try:
            if self._resources is not None:
                self._resources.settle(values)
                self._find_answer(go, values, debug, self._resources)
        finally:
            if go.command.perft is not None:
                go.give_up()
            else:
                board = go.command.board
                go.answer(bestmove_line(board, next(iter(board.legal_moves), None)))

    def _find_answer(self, go: Go, values: OptionValues, debug: bool, resources: Resources) -> None:
        from psearch.notation.report import finished_result
        from psearch.uci.extras import count_moves
        from psearch.uci.messages import bestmove_line
        from psearch.uci.turn import Turn

        board = go.command.board
        if go.command.perft is not None:
            go.answer(count_moves(resources.supervisor, board, go.command.perft))
        elif finished_result(board) is not None:
            go.say(f"info depth 0 score {'mate 0' if board.is_check() else 'cp 0'}")
            go.answer(bestmove_line(board, None))
        elif Turn(go, values, debug, resources).run():
            facts = {"position": board.fen(), "policy": values.text("Policy")}
            # the next search has a clock that runs
            resources.write_trace(facts, is_wanted=lambda: self.latest is go and not self._is_leaving)

    def _evaluate(self, board: chess.Board) -> None:
        from psearch.uci.extras import evaluation_line

        if self._resources is not None:
            self._say(evaluation_line(self._resources.supervisor, board))

    def _bench(self) -> None:
        from psearch.uci.extras import bench_line

        if self._resources is not None:
            self._say(bench_line(lambda text: self._say(f"info string {text}")))

    def _close(self) -> None:
        if self._resources is not None:
            self._resources.close()
