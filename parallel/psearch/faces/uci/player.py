"""The UCI engine's second thread, which runs slow jobs one after the other in the order of the commands.

Importing this module loads neither python-chess nor numba; the thread does so when it starts.
"""

from __future__ import annotations

import contextlib
import math
import queue
import select
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from psearch.faces.uci.go import Go
from psearch.faces.uci.uci_options import OptionValues
from psearch.faces.uci.uci_streams import NO_POSITION, Say, info_string
from psearch.processes.control import Wake
from psearch.results import PsearchError, WorkerDied
from psearch.searcher.notices import Notices

if TYPE_CHECKING:
    import chess

    from psearch.faces.uci.resources import Resources

_PROGRESS_INTERVAL_S = 2.0
_LOAD_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 0.5
_QUIT_TIMEOUT_S = 5.0
_TRACE_TIMEOUT_S = 60.0
"""Time for which `close` waits for a trace to be written, in seconds."""
_QUICK_S = 0.5
"""Longest failed load that is retried on the clock of a `go`, in seconds."""
_RESTORE_INTERVAL_S = 1.0
_KERNELS = "loading kernels"


class Player:
    """Runs jobs from the reading thread in a thread of its own, in order.

    values: the options, which the reading thread may change. Settling uses the current values, a search those at the
    time of its command. The public methods are for the reading thread and return at once, except for `close`.
    """

    def __init__(self, say: Say, values: OptionValues) -> None:
        self._say = say
        self._notices = Notices(lambda text: say(info_string(text)))
        self._values = values
        self.latest: Go | None = None
        """Last `go` that was submitted."""
        self._current: Go | None = None
        """Last `go` that was begun."""
        self._jobs: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._wake = Wake()
        """Set when there is a new job."""
        self._thread: threading.Thread | None = None
        self._resources: Resources | None = None
        """None until they are imported."""
        self._is_compiling = False
        self._progress_at = -math.inf
        self._is_loaded = threading.Event()
        """Set when the kernels are loaded, or the first attempt has failed."""
        self._failed_after_s: float | None = None
        """Seconds until the last attempt to load kernels failed; None if it did not fail."""
        self._is_closing = False
        self._breaks_off = False
        self._benches: list[None] = []
        """An entry for each bench that has not ended."""
        self._is_leaving = False
        """Set when a trace is no longer waited for."""
        self._readyok_lock = threading.Lock()
        self._readyok_owed = 0

    def start(self) -> None:
        """Start the thread, which loads the kernels first. Does nothing when called again."""
        if self._thread is None:
            self._put(self._load)
            self._thread = threading.Thread(target=self._work, name="psearch-uci", daemon=True)
            self._thread.start()

    def search(self, go: Go, debug: bool) -> None:
        """Search and answer; with `debug` also print how the work was shared."""
        self.latest = go
        self._submit(partial(self._search, go, self._values.copy(), debug))

    def settle(self) -> None:
        """Apply the options to workers, table, tablebases, book and policy."""
        self._submit(self._settle)

    def ready(self) -> None:
        """Print `readyok` when all jobs so far are done; at once during a search."""
        # This thread counts first and then looks for a running search; the other begins a search and then looks at the
        # count. So one of them sees the other, and `readyok` never waits for the end of a search.
        with self._readyok_lock:
            self._readyok_owed += 1
        if self._current is not None and self._current.is_under_way:
            self._say_ready()
        else:
            self._submit(self._load_again)
            self._submit(self._settle)
            self._submit(self._say_ready)

    def new_game(self) -> None:
        """Forget everything learnt, and retry what has failed."""
        self._submit(self._load_again)
        self._submit_for(lambda resources: resources.new_game())

    def clear_hash(self) -> None:
        """Forget everything learnt."""
        self._submit_for(lambda resources: resources.forget())

    def evaluate(self, board: chess.Board) -> None:
        """Print the static evaluation."""
        values = self._values.copy()

        def run(resources: Resources) -> None:
            from psearch.faces.uci.turn import evaluation_line

            self._settle(values)
            self._say(evaluation_line(resources.searcher.supervisor, board, resources.search_options(values)))

        self._submit_for(run)

    def bench(self) -> None:
        """Run `psearch bench` in this process and print its result."""

        def run() -> None:
            from psearch.bench import run_bench

            try:
                nodes, seconds = run_bench(lambda text: self._say(f"info string {text}"))
                self._say(f"{nodes} nodes {round(nodes / max(seconds, 1e-9))} nps")
            finally:
                self._benches.pop()

        self._benches.append(None)
        self._submit(run)

    def close(self) -> None:
        """Finish the jobs and end the workers. Stop a search first. A perft is broken off, a trace and a bench are
        waited for. No worker remains, but a compiling thread may."""
        thread = self._thread
        if thread is None:
            self._wake.close()
            return
        self._is_closing = True
        self._put(self._close)
        self._put(None)
        deadline = time.monotonic() + _LOAD_TIMEOUT_S
        while thread.is_alive() and not self._is_loaded.wait(0.05):
            if not self._benches and (self._is_compiling or time.monotonic() > deadline):
                break
        if self._is_loaded.is_set():
            thread.join(_STOP_TIMEOUT_S)
            # a `quit` does not discard a trace, unless the disk is too slow
            deadline = time.monotonic() + _TRACE_TIMEOUT_S
            while self._resources is not None and self._resources.is_writing_trace:
                self._is_leaving = time.monotonic() > deadline
                thread.join(0.05)
                if time.monotonic() > deadline + _STOP_TIMEOUT_S:
                    break
            while self._benches and thread.is_alive():
                thread.join(0.05)
            if thread.is_alive():
                self._breaks_off = True
                self._close()  # the thread counts, or clears a large table
                thread.join(_QUIT_TIMEOUT_S)
        if not thread.is_alive():
            self._wake.close()

    def _submit(self, job: Callable[[], object]) -> None:
        self.start()
        self._put(job)

    def _submit_for(self, job: Callable[[Resources], None]) -> None:
        """Submit a job that needs the resources; it does nothing without them."""
        self._submit(lambda: None if self._resources is None else job(self._resources))

    def _put(self, job: Callable[[], object] | None) -> None:
        self._jobs.put(job)
        self._wake.set()

    def _work(self) -> None:
        """Run the jobs in order. Failures are reported, and the conversation continues."""
        while (job := self._next_job()) is not None:
            try:
                job()
            except Exception as error:
                self._report(error)

    def _next_job(self) -> Callable[[], object] | None:
        """Wait for a job, and replace workers that die meanwhile."""
        restored_at = -math.inf
        is_watching = True
        while True:
            self._wake.clear()
            with contextlib.suppress(queue.Empty):
                return self._jobs.get_nowait()
            poll = select.poll()
            poll.register(self._wake.fileno(), select.POLLIN)
            watched = self._resources.watched if self._resources is not None and is_watching else None
            if watched is not None:
                poll.register(watched, select.POLLIN)
            if any(descriptor == watched for descriptor, _ in poll.poll()) and self._restore():
                # workers that die right after their start are not restarted forever
                is_watching = time.monotonic() > restored_at + _RESTORE_INTERVAL_S
                restored_at = time.monotonic()

    def _report(self, error: Exception) -> None:
        if isinstance(error, WorkerDied):
            self._notices.tell(str(error))
        elif isinstance(error, PsearchError):
            self._notices.fails(str(error), str(error))
        else:
            self._notices.internal_error(error)

    def _load(self) -> None:
        """Load the kernels and apply the options. A failure is reported once; later jobs retry."""
        since = time.monotonic()
        try:
            if self._resources is None:
                from psearch.faces.uci.resources import Resources

                self._resources = Resources(self._notices)
                self._settle()  # reports bad options before kernels are compiled
            seconds = self._resources.load_kernels(self._tell_progress)
            if self._is_compiling:
                self._notices.tell(f"kernels compiled in {seconds:.0f} s and kept for the next start")
            from psearch.faces.uci import turn  # noqa: F401  # not on the clock of the first `go`
        except Exception as error:  # any error: a `go` is answered nevertheless
            self._failed_after_s = time.monotonic() - since
            reason = str(error) if isinstance(error, PsearchError) else f"{type(error).__name__}: {error}"
            self._notices.fails(_KERNELS, f"cannot search: {reason}")
        else:
            self._failed_after_s = None
            if self._notices.works(_KERNELS):
                self._notices.tell("kernels could be loaded now")
        finally:
            self._is_compiling = False
            self._is_loaded.set()
        self._settle()

    def _tell_progress(self, text: str) -> None:
        self._is_compiling = True
        if time.monotonic() - self._progress_at >= _PROGRESS_INTERVAL_S:
            self._progress_at = time.monotonic()
            self._notices.tell(text)

    def _load_again(self, most_s: float = math.inf) -> None:
        """Load the kernels again if the last attempt failed within `most_s` seconds."""
        if self._failed_after_s is not None and self._failed_after_s <= most_s:
            self._load()

    def _settle(self, values: OptionValues | None = None) -> None:
        """Apply the options (by default the current ones), and report failures."""
        if self._resources is not None:
            try:
                self._resources.settle(values or self._values.copy())
            except Exception as error:  # the search has other ways to answer
                self._report(error)

    def _say_ready(self) -> None:
        with self._readyok_lock:
            owed, self._readyok_owed = self._readyok_owed, 0
        for _ in range(owed):
            self._say("readyok")

    def _search(self, go: Go, values: OptionValues, debug: bool) -> None:
        """Answer one `go`, even if everything fails."""
        self._load_again(_QUICK_S)
        self._current = go
        if not go.begin():
            return
        self._say_ready()
        try:
            self._find_answer(go, values, debug)
        except Exception as error:
            self._report(error)
        finally:
            if go.command.perft is not None:
                go.give_up()
            elif not go.is_answered:  # any legal move is better than losing the game
                from psearch.faces.uci.turn import bestmove_line

                self._notices.fails(_KERNELS + " and all else", "no search is possible: playing any legal move")
                go.answer(bestmove_line(*list(go.command.searchmoves or go.command.board.legal_moves)[:1]))
        self._restore()  # after the answer, so that it costs no thinking time

    def _restore(self) -> bool:
        """Replace lost workers unless closing; return whether any were lost."""
        try:
            return not self._is_closing and self._resources is not None and self._resources.restore(self._jobs.empty)
        except Exception as error:
            if not self._is_closing:
                self._report(error)
            return True

    def _find_answer(self, go: Go, values: OptionValues, debug: bool) -> None:
        from psearch.faces.uci.turn import Turn, bestmove_line, count_moves
        from psearch.text.report import finished_result

        board, depth = go.command.board, go.command.perft
        if not board.occupied:
            go.say(info_string(NO_POSITION))
            go.answer("bestmove 0000")
        elif depth is None and finished_result(board) is not None:
            go.say(f"info depth 0 score {'mate 0' if board.is_check() else 'cp 0'}")
            go.answer(bestmove_line())
        elif self._resources is not None:
            self._settle(values)
            if depth is None:
                if Turn(go, values, debug, self._resources, self._report).run():
                    # after the answer, but the clock of the next search may run
                    how = {name.casefold(): values[name] for name in ("Policy", "Driver")}
                    self._resources.write_trace(board, how, lambda: self.latest is go and not self._is_leaving)
                return
            try:
                threads = values["Threads"]
                go.answer(
                    count_moves(
                        board, depth, threads, self._tell_progress, lambda: self._breaks_off or go.control.is_stopped
                    )
                )
            finally:
                self._is_compiling = False

    def _close(self) -> None:
        """End the workers. A running job fails."""
        if self._resources is not None:
            self._resources.searcher.close()
