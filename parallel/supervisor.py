"""The parent's side: starts worker processes, runs searches on them, reports, stops, and notices deaths."""

from __future__ import annotations

import atexit
import os
import resource
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

import chess
import chess.engine
import multiprocess
import multiprocess.util  # registers its exit handler now: ours, registered later, runs before it
import numpy as np

from psearch.arena import Arena
from psearch.core.boards import set_position, to_chess_move
from psearch.core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, MATE_IN_MAX_PLY
from psearch.core.records import INFO_RING, position_dtype
from psearch.kernels import load_kernels
from psearch.processes import DONE, GO, PERFT, QUIT, READY, worker_main
from psearch.results import Info, Limits, PsearchError, Result, WorkerDied, WorkerStats
from psearch.root import request_stop
from psearch.setup import SearchOptions, write_search
from psearch.trace import Recorder, trace_capacity

OnInfo = Callable[[Info], None]

_POLL_S = 0.01
_LIVE_INTERVAL_S = 0.1
_START_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 10.0
_FILES_PER_WORKER = 4
_OTHER_FILES = 256
_BOUND_NAMES = {BOUND_EXACT: "exact", BOUND_LOWER: "lower", BOUND_UPPER: "upper"}


def to_score(value: int, turn: chess.Color) -> chess.engine.PovScore:
    """Centipawns or mate distance, from the view of the side to move."""
    if abs(value) < MATE_IN_MAX_PLY:
        return chess.engine.PovScore(chess.engine.Cp(value), turn)
    moves = (MATE - abs(value) + 1) // 2
    return chess.engine.PovScore(chess.engine.Mate(moves if value > 0 else -moves), turn)


def safe_start_method() -> str:
    """fork is quick and inherits the compiled kernels, but is unsafe once this process has threads."""
    return "fork" if threading.active_count() == 1 else "spawn"


def _allow_open_files(more: int) -> None:
    """Raise this process's own limit of open files, if it is in the way, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = more + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


_LIVE: weakref.WeakSet[Supervisor] = weakref.WeakSet()


def _close_all() -> None:
    """At exit, before multiprocess waits for its children: a supervisor somebody forgot to close."""
    for supervisor in list(_LIVE):
        supervisor.close()


atexit.register(_close_all)  # after the import of multiprocess, so run before its own


class Supervisor:
    """Worker processes with their shared memory; a context manager.

    threads: 1 .. 1024; hash_mb: MiB of transposition table; start_method: `fork`, `spawn` or None to choose; trace:
    each search is recorded, and `recorder` writes the last one to a file, also after WorkerDied. Raises PsearchError
    when the memory is not there. Search histories and the table last from search to search.
    """

    def __init__(
        self, threads: int = 1, hash_mb: int = 64, start_method: str | None = None, trace: bool = False
    ) -> None:
        load_kernels()
        self.arena = Arena(threads, hash_mb, trace_events=trace_capacity(threads) if trace else 0)
        self.recorder = Recorder(self.arena) if trace else None
        self._processes: list[Any] = []
        self._pipes: list[Connection] = []
        _LIVE.add(self)
        try:
            _allow_open_files(_FILES_PER_WORKER * threads)
            self._start(multiprocess.get_context(start_method or safe_start_method()), threads)
        except OSError as error:
            self.close()
            raise PsearchError(f"cannot start {threads} worker processes: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def _start(self, context: Any, threads: int) -> None:
        forking = context.get_start_method() == "fork"
        for index in range(threads):
            ours, theirs = context.Pipe()
            self._pipes.append(ours)
            inherited = list(self._pipes) if forking else []
            arguments = (self.arena, index, theirs, inherited, os.getpid())
            process = context.Process(target=worker_main, args=arguments, name=f"psearch-{index}", daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
        deadline = time.monotonic() + _START_TIMEOUT_S
        for index in range(threads):
            self._receive(index, READY, deadline)

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers and give the memory back. May be called twice."""
        for pipe in self._pipes:
            try:
                pipe.send_bytes(QUIT)
            except OSError:
                continue
        deadline = time.monotonic() + 1.0
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
        self._kill()
        for pipe in self._pipes:
            pipe.close()
        if self._pipes or not self._processes:
            self._pipes = []
            if hasattr(self.arena, "header"):
                self.arena.close()
        self._processes = []

    def _kill(self) -> None:
        for process in self._processes:
            if process.is_alive():
                process.kill()
            process.join()

    # -- talking to workers ----------------------------------------------------------------------------------------

    def _died(self, index: int) -> WorkerDied:
        """A worker is gone: nothing shared can be trusted any more, so all go."""
        process = self._processes[index]
        process.join(1.0)
        code = process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"exited with code {code}"
        self._kill()
        return WorkerDied(f"worker {index} {how}; the search was stopped")

    def _send(self, index: int, message: bytes) -> None:
        try:
            self._pipes[index].send_bytes(message)
        except OSError:
            raise self._died(index) from None

    def _receive(self, index: int, expected: bytes | None, deadline: float) -> bytes:
        pipe = self._pipes[index]
        try:
            if not pipe.poll(max(0.0, deadline - time.monotonic())):
                self._kill()
                raise WorkerDied(f"worker {index} did not answer in time; the search was stopped")
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            raise self._died(index) from None
        if expected is not None and message != expected:
            raise PsearchError(f"worker {index} sent {message!r} instead of {expected!r}")
        return message

    # -- searching ---------------------------------------------------------------------------------------------------

    def search(
        self,
        board: chess.Board,
        limits: Limits,
        on_info: OnInfo | None = None,
        stop: threading.Event | None = None,
        options: SearchOptions | None = None,
    ) -> Result:
        """Search a valid position until a limit is reached or `stop` is set.

        `on_info` is called in this thread after every iteration and about ten times a second. Raises WorkerDied when
        a worker process ends; the supervisor can only be closed then.
        """
        if board.is_checkmate() or not any(board.legal_moves):
            return _terminal_result(board)
        return _Search(self, board, limits, on_info, stop, options or SearchOptions()).run()

    def perft(self, board: chess.Board, depth: int) -> tuple[dict[chess.Move, int], float]:
        """Leaves at `depth` plies below each legal move, the moves shared out to the workers, and the seconds."""
        start = time.perf_counter()
        counts: dict[chess.Move, int] = {}
        if depth == 0:
            return counts, 0.0
        try:
            self._share_out(board, list(board.legal_moves), depth - 1, counts)
        except BaseException:
            self.close()  # workers may be at it for hours, and their answers would be read by the next call
            raise
        return counts, time.perf_counter() - start

    def _share_out(self, board: chess.Board, todo: list[chess.Move], depth: int, counts: dict[chess.Move, int]) -> None:
        """Count below each move, on whichever worker is free."""
        busy: dict[Connection, tuple[int, chess.Move]] = {}
        free = list(range(len(self._pipes)))
        while todo or busy:
            while todo and free:
                index = free.pop()
                move = todo.pop()
                self._send(index, PERFT + self._perft_request(board, move, depth))
                busy[self._pipes[index]] = (index, move)
            for pipe in wait(list(busy)):
                index, move = busy.pop(pipe)  # type: ignore[call-overload]  # wait gives back what it was given
                answer = self._receive(index, None, time.monotonic() + 1.0)
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


class _Search:
    """One search: watches the header while the workers search."""

    def __init__(
        self,
        supervisor: Supervisor,
        board: chess.Board,
        limits: Limits,
        on_info: OnInfo | None,
        stop: threading.Event | None,
        options: SearchOptions,
    ) -> None:
        self.supervisor = supervisor
        self.arena = supervisor.arena
        self.board = board
        self.limits = limits
        self.on_info = on_info
        self.stop_event = stop
        self.options = options
        self.working: list[int] = []
        self.most_nodes = 0
        self.interrupted = False
        self.reported = 0
        self.latest = Info(0, 0, to_score(0, board.turn), "exact", 0, 0.0)

    def run(self) -> Result:
        recorder = self.supervisor.recorder
        if recorder is None:
            return self._run()
        recorder.begin()
        try:
            return self._run()
        finally:
            recorder.end()

    def _run(self) -> Result:
        supervisor = self.supervisor
        write_search(self.arena, self.board, self.limits, self.options)
        self.start = time.perf_counter()
        try:
            for index in range(self.arena.workers):
                self.working.append(index)
                supervisor._send(index, GO)
            self._watch()
            self._collect()
        except BaseException:
            # an exception in the caller's callback, or Ctrl-C: leave no worker running and no answer unread
            request_stop(self.arena.context)
            self._collect(ignore_errors=True)
            raise
        self._drain_infos()
        best = to_chess_move(int(self.arena.header[0]["best_move"]), self.board)
        info = self._now()
        if not info.pv:
            info = Info(**{**info.__dict__, "pv": [best]})
        return Result(best, info, self.interrupted)

    def _watch(self) -> None:
        """Until the root is done: pass on reports, keep the limits, notice deaths."""
        supervisor = self.supervisor
        header = self.arena.header
        movetime = self.limits.movetime_ms
        deadline = None if movetime is None else self.start + movetime / 1000
        sentinels = {process.sentinel: i for i, process in enumerate(supervisor._processes)}
        stopping = False
        last_live = self.start
        while not header["done"][0]:
            now = time.perf_counter()
            self._drain_infos()
            if not stopping:
                self.interrupted = self.stop_event is not None and self.stop_event.is_set()
                if self.interrupted or (deadline is not None and now >= deadline):
                    request_stop(self.arena.context)
                    stopping = True
            if self.on_info and now - last_live >= _LIVE_INTERVAL_S and self.latest.depth:
                last_live = now
                self.on_info(self._now())
            pause = _POLL_S if deadline is None or stopping else min(_POLL_S, max(deadline - now, 0.0))
            # a worker that has finished says so on its pipe, one that dies by its sentinel
            ready = wait([supervisor._pipes[0], *sentinels], pause)
            for item in ready:
                if item in sentinels:
                    raise supervisor._died(sentinels[item])

    def _collect(self, ignore_errors: bool = False) -> None:
        """Every worker has left the search."""
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while self.working:
            try:
                self.supervisor._receive(self.working[-1], DONE, deadline)
            except PsearchError:
                if not ignore_errors:
                    raise
            self.working.pop()

    def _drain_infos(self) -> None:
        """Turn new reports in the ring into `Info`s."""
        header = self.arena.header[0]
        count = int(header["info_count"])
        self.reported = max(self.reported, count - INFO_RING + 8)
        while self.reported < count:
            record = header["infos"][self.reported % INFO_RING]
            self.reported += 1
            self.latest = Info(
                depth=int(record["depth"]),
                seldepth=int(record["seldepth"]),
                score=to_score(int(record["score"]), self.board.turn),
                bound=_BOUND_NAMES[int(record["bound"])],
                nodes=self._never_less(int(record["nodes"])),
                time_s=time.perf_counter() - self.start,
                pv=self._line(record),
                workers=self._worker_stats(),
            )
            if self.on_info:
                self.on_info(self.latest)

    def _never_less(self, nodes: int) -> int:
        """A report waits in the ring while the live count goes on: what is shown does not go back."""
        self.most_nodes = max(self.most_nodes, nodes)
        return self.most_nodes

    def _line(self, record: Any) -> list[chess.Move]:
        board = self.board.copy(stack=False)
        line = []
        for code in record["pv"][: int(record["pv_length"])]:
            move = to_chess_move(int(code), board)
            line.append(move)
            board.push(move)
        return line

    def _worker_stats(self) -> list[WorkerStats]:
        return [
            WorkerStats(
                nodes=int(worker["nodes"]),
                splits=int(worker["splits"]),
                joins=int(worker["joins"]),
                aborted_nodes=int(worker["aborted_nodes"]),
                idle_share=int(worker["idle_cycles"]) / max(int(worker["search_cycles"]), 1),
            )
            for worker in self.arena.worker
        ]

    def _now(self) -> Info:
        """The latest report with present counters."""
        latest = self.latest
        return Info(
            depth=latest.depth,
            seldepth=max(latest.seldepth, int(self.arena.worker["seldepth"].max())),
            score=latest.score,
            bound=latest.bound,
            nodes=self._never_less(int(self.arena.worker["nodes"].sum())),
            time_s=time.perf_counter() - self.start,
            pv=latest.pv,
            workers=self._worker_stats(),
        )
