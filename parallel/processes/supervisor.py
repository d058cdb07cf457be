"""The parent's side: starts worker processes, runs searches and perft on them, and notices deaths."""

from __future__ import annotations

import atexit
import os
import select
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait

import chess
import chess.engine
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import SearchOptions
from psearch.core.board.bridge import set_position
from psearch.core.records import position_dtype
from psearch.kernels import load_kernels
from psearch.processes.control import SearchControl
from psearch.processes.launcher import WorkerProcess, fork_is_safe, launch
from psearch.processes.watch import OnInfo, SearchRequest, Watch
from psearch.processes.worker import PERFT, QUIT, READY
from psearch.results import Info, Limits, PsearchError, Result, WorkerDied
from psearch.scheduler.entries import request_stop
from psearch.trace.recorder import Recorder, trace_capacity

_START_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 1.0
_CLOSE_TIMEOUT_S = 2.0
_WAKE = -1
"""Among the events of the poll: somebody called `wake`."""


def safe_start_method() -> str:
    """For multiprocess: fork is quick and inherits the compiled kernels, but is unsafe once there are threads."""
    return "fork" if fork_is_safe() else "spawn"


_LIVE: weakref.WeakSet[Supervisor] = weakref.WeakSet()


def _close_all() -> None:
    """At exit: a supervisor somebody forgot to close."""
    for supervisor in list(_LIVE):
        supervisor.close()


atexit.register(_close_all)  # after the import of the launcher, so run before its nursery goes


class Supervisor:
    """Worker processes with their shared memory; a context manager.

    threads: 1 .. 1024; hash_mb: MiB of transposition table; start_method: `fork`, `nursery` or None to choose; trace:
    each search is recorded, and `recorder` writes the last one to a file, also after WorkerDied. Raises PsearchError
    when the memory is not there. Search histories and the table last from search to search. One search or perft at a
    time; `close` and the request's control may be used from any thread.
    """

    def __init__(
        self, threads: int = 1, hash_mb: int = 64, start_method: str | None = None, trace: bool = False
    ) -> None:
        load_kernels()
        self.arena = Arena(threads, hash_mb, trace_events=trace_capacity(threads) if trace else 0)
        self.recorder = Recorder(self.arena) if trace else None
        self.workers: list[WorkerProcess] = []
        self._owner = os.getpid()
        self._is_open = True
        self.is_broken = False
        """a worker has died or does not answer: only `close` is left"""
        self._lock = threading.Lock()
        self._busy_thread: int | None = None
        self._is_counting = False
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.epoll()
        self._poll.register(self._wake_fd, select.EPOLLIN)
        self._indexes: dict[int, int] = {self._wake_fd: _WAKE}
        _LIVE.add(self)
        try:
            self._start(start_method)
        except OSError as error:
            self.close()
            raise PsearchError(f"cannot start {threads} worker processes: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def _start(self, start_method: str | None) -> None:
        launch(self.arena, self.workers, start_method)
        for index, worker in enumerate(self.workers):
            for descriptor in (worker.pipe.fileno(), worker.sentinel):
                if descriptor is not None:
                    self._poll.register(descriptor, select.EPOLLIN)
                    self._indexes[descriptor] = index
        deadline = time.monotonic() + _START_TIMEOUT_S
        for index in range(len(self.workers)):
            self.receive(index, READY, deadline - time.monotonic())

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_is_open", False) and self._owner == os.getpid():
            warnings.warn("an engine was not closed", ResourceWarning, stacklevel=2, source=self)
            self.close()

    def close(self) -> None:
        """End the workers and give the memory back. May be called twice, and while another thread searches."""
        if not self._is_open or self._owner != os.getpid():
            return
        self._is_open = False
        mine = self._busy_thread == threading.get_ident()
        locked = False
        if not mine and not (locked := self._lock.acquire(blocking=False)):
            request_stop(self.arena.context)
            if self._is_counting or not (locked := self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)):
                self._kill()  # it notices, and lets go
                locked = self._lock.acquire(timeout=_CLOSE_TIMEOUT_S)
        for worker in self.workers:
            try:
                worker.pipe.send_bytes(QUIT)
            except OSError:
                continue
        deadline = time.monotonic() + 1.0
        for worker in self.workers:
            worker.join(deadline - time.monotonic())
        self._kill()
        self._poll.close()
        for worker in self.workers:
            worker.close()
        os.close(self._wake_fd)
        self.arena.close()
        if locked:
            self._lock.release()

    def _kill(self) -> None:
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.join(_ANSWER_TIMEOUT_S)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One search or perft at a time; raises PsearchError when there is one, or when this is closed."""
        if not self._lock.acquire(blocking=False):
            raise PsearchError("this engine is searching already")
        try:
            if not self._is_open:
                raise PsearchError("this engine is closed")
            if self.is_broken:
                raise PsearchError("a worker of this engine has died: close it and make another")
            self._busy_thread = threading.get_ident()
            yield
        finally:
            self._busy_thread = None
            self._lock.release()

    @property
    def is_usable(self) -> bool:
        """Whether it can search: not closed, and no worker is lost."""
        return self._is_open and not self.is_broken

    # -- talking to workers ----------------------------------------------------------------------------------------

    def _died(self, index: int) -> WorkerDied:
        """A worker is gone: nothing shared can be trusted any more, so all go."""
        worker = self.workers[index]
        worker.join(_ANSWER_TIMEOUT_S)
        code = worker.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"exited with code {code}"
        self.is_broken = True
        self._kill()
        return WorkerDied(f"worker {index} {how}; the search was stopped")

    def silent(self, index: int) -> WorkerDied:
        """A worker does not answer: it may be anywhere, so all go."""
        self.is_broken = True
        self._kill()
        return WorkerDied(f"worker {index} did not answer in time; the search was stopped")

    def send(self, index: int, message: bytes) -> None:
        """A command to a worker. Raises WorkerDied."""
        try:
            self.workers[index].pipe.send_bytes(message)
        except OSError:
            raise self._died(index) from None

    def receive(self, index: int, expected: bytes | None, timeout_s: float = _ANSWER_TIMEOUT_S) -> bytes:
        """A worker's answer. Raises WorkerDied."""
        pipe = self.workers[index].pipe
        try:
            if not pipe.poll(max(0.0, timeout_s)):
                raise self.silent(index)
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            raise self._died(index) from None
        if expected is not None and message != expected:
            raise PsearchError(f"worker {index} sent {message!r} instead of {expected!r}")
        return message

    def wait_for_workers(self, timeout_s: float) -> list[int]:
        """Workers whose answer is there; at the latest after `timeout_s` seconds, or when `wake` is called.

        Raises WorkerDied when one has ended.
        """
        answered = []
        for descriptor, _ in self._poll.poll(timeout_s, len(self._indexes)):
            index = self._indexes[descriptor]
            if index == _WAKE:
                self.clear_wakes()
            elif descriptor == self.workers[index].sentinel:
                raise self._died(index)
            else:
                answered.append(index)
        return answered

    def wake(self) -> None:
        """End the present or the next wait of `wait_for_workers`. From any thread."""
        os.eventfd_write(self._wake_fd, 1)

    def clear_wakes(self) -> None:
        """Forget calls of `wake`."""
        try:
            os.eventfd_read(self._wake_fd)
        except BlockingIOError:
            return

    # -- searching ---------------------------------------------------------------------------------------------------

    def search(
        self,
        board: chess.Board,
        limits: Limits,
        on_info: OnInfo | None = None,
        stop: threading.Event | None = None,
        options: SearchOptions | None = None,
        only: Sequence[chess.Move] | None = None,
        multipv: int = 1,
        control: SearchControl | None = None,
        on_answer: Callable[[Result], None] | None = None,
    ) -> Result:
        """Search a valid position until a limit is reached, `stop` is set, or `control` says so.

        `on_info` is called in this thread after every iteration and about ten times a second. `only`: legal moves to
        choose from, None for all; `multipv`: lines to find. The first iteration is finished in any case, if that
        takes no more than 50 ms. `on_answer` is called with the answer, once, when workers are slow to stop; what is
        returned later may differ. Raises WorkerDied when a worker process ends; the supervisor can only be closed then.
        """
        if not any(board.legal_moves):
            return _terminal_result(board)
        control = control or SearchControl()
        options = options or SearchOptions()
        request = SearchRequest(board, limits, options, only, multipv, on_info, stop, control, on_answer)
        with self._alone():
            return Watch(self, request).run()

    def perft(self, board: chess.Board, depth: int) -> tuple[dict[chess.Move, int], float]:
        """Leaves at `depth` plies below each legal move, the moves shared out to the workers, and the seconds."""
        start = time.perf_counter()
        counts: dict[chess.Move, int] = {}
        if depth == 0:
            return counts, 0.0
        with self._alone():
            self._is_counting = True
            try:
                self._share_out(board, list(board.legal_moves), depth - 1, counts)
            except BaseException:
                self.close()  # workers may be at it for hours, and their answers would be read by the next call
                raise
            finally:
                self._is_counting = False
        return counts, time.perf_counter() - start

    def forget(self) -> None:
        """Empty the transposition table and everything learnt: as new."""
        with self._alone():
            self.arena.clear_table()
            self.arena.clear_learning()

    def _share_out(self, board: chess.Board, todo: list[chess.Move], depth: int, counts: dict[chess.Move, int]) -> None:
        """Count below each move, on whichever worker is free."""
        busy: dict[Connection, tuple[int, chess.Move]] = {}
        free = list(range(len(self.workers)))
        while todo or busy:
            while todo and free:
                index = free.pop()
                move = todo.pop()
                self.send(index, PERFT + self._perft_request(board, move, depth))
                busy[self.workers[index].pipe] = (index, move)
            for pipe in wait(list(busy)):
                index, move = busy.pop(pipe)  # type: ignore[call-overload]  # wait gives back what it was given
                answer = self.receive(index, None)
                counts[move] = int.from_bytes(answer, "little")
                free.append(index)

    def _perft_request(self, board: chess.Board, move: chess.Move, depth: int) -> bytes:
        child = board.copy(stack=False)
        child.push(move)
        position = np.zeros(1, position_dtype)
        set_position(self.arena.tables, position, child)
        return depth.to_bytes(8, "little") + position.tobytes()


def _terminal_result(board: chess.Board) -> Result:
    score = chess.engine.Mate(0) if board.is_check() else chess.engine.Cp(0)
    return Result(None, Info(0, 0, chess.engine.PovScore(score, board.turn), "exact", 0, 0.0))
