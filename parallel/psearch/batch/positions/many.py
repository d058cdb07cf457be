"""`psearch.analyse_many`: any number of positions, on all cores."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import math
import threading
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias, Unpack

import chess
import chess.engine

from psearch.api.api_log import LOG
from psearch.api.asynchronous import in_thread
from psearch.api.checked_arguments import Place, RootMoves, board_of, check_cluster, moves_of
from psearch.api.question import bounded, to_limits
from psearch.arena.control_groups import usable_cores
from psearch.arena.system_calls import Owner
from psearch.batch.positions.position_pool import make_pool, rounds
from psearch.batch.positions.position_result import PositionResult
from psearch.batch.positions.position_worker import WorkerSettings
from psearch.batch.positions.task import Outcome, Pause, Task, TaskList
from psearch.defaults import JOB_HASH_MB, MAX_THREADS
from psearch.options import Settings
from psearch.results import Limits, PsearchError
from psearch.settings import HASH, MULTIPV, THREADS, SearchKeywords, lists_settings
from psearch.text.values import shown

_ENTRIES_PER_MIB = 1 << 16
_ENTRIES_PER_NODE = 2
"""Room for about every node that a search may store, twice."""
_NODES_PER_MS = 1_000
"""More than a worker searches."""
MOST_USEFUL_HASH_MB = JOB_HASH_MB
DEPTH_HASH_MB = 16
_END = object()
"""Stands for the end of the positions."""
_LATER = object()
"""Stands for a position that is not there yet."""
_READ_S = 0.05
"""How long an asynchronous iterable is waited for, before results that have come meanwhile are given out."""
_MOST_HELD = 4_096
"""Most outcomes that wait for those before them, where order matters: then nothing more is read."""
_CLOSED = "these results were closed before all were there"


@dataclass(frozen=True)
class Position:
    """A position for `psearch.analyse_many` with an id, or with wishes of its own; what is None is as for all."""

    position: Place
    id: Any = None
    """None: its number"""
    limit: chess.engine.Limit | None = None
    multipv: int | None = None
    root_moves: RootMoves | None = None
    """moves to choose from, UCI notation, SAN or moves; None: all"""


Entry: TypeAlias = "Place | Position | tuple[Any, Place]"


@dataclass(frozen=True)
class _Wanted:
    """The arguments of `analyse_many`, checked."""

    limits: Limits
    multipv: int
    workers: int
    ordered: bool
    assist: int
    settings: WorkerSettings
    cluster: str | None


class _Closed(Exception):
    """Meanwhile somebody has closed the results."""


class _Search:
    """The search behind `ManyResults`. Nothing here refers to that one, so it is closed when nobody has it any more.

    One thread at a time is inside, by `enter` and `leave`, but that positions are read outside: that may take long, and
    another thread may want to close everything meanwhile.
    """

    def __init__(self, workers: int, wanted: _Wanted) -> None:
        self._wanted = wanted
        self.is_stopped = False
        self.inside: int | None = None
        """the thread that is, of `threading.get_ident`"""
        # reentrant: the handler of a signal may run between two steps of `enter`
        self._lock = threading.RLock()
        self._failure: Exception | None = None
        """what reading positions has raised: that is the end of them"""
        self._given: dict[int, tuple[Any, Task, str | None]] = {}
        """what has been read and has no result yet, by number: id, task, what is wrong with it"""
        self._held: dict[int, Outcome] = {}
        """outcomes that wait for those before them, by number"""
        self.pool = make_pool(workers, wanted.settings, wanted.cluster)

    def enter(self) -> None:
        """Let only one thread in, the others wait."""
        self._lock.acquire()
        self.inside = threading.get_ident()

    def leave(self) -> None:
        """Let the next in."""
        self.inside = None
        self._lock.release()

    def results(self, positions: Iterable[object]) -> Iterator[PositionResult]:
        """Yield results, from inside."""
        wanted = self._wanted
        lists = self._lists(positions)
        first = 0
        """number of the next one, where order matters"""
        for outcomes in rounds(self.pool, lists, assist=wanted.assist, is_stopped=lambda: self.is_stopped):
            if self.is_stopped:
                return
            if not wanted.ordered:
                yield from map(self._result, outcomes)
                continue
            self._held.update((outcome.number, outcome) for outcome in outcomes)
            while (outcome := self._held.pop(first, None)) is not None:
                first += 1
                yield self._result(outcome)
        if self._failure is not None:
            raise self._failure

    def _lists(self, positions: Iterable[object]) -> Iterator[TaskList | Pause]:
        entries = iter(positions)
        numbers = itertools.count()
        while (entry := self._read(entries)) is not _END:
            if entry is _LATER:
                yield Pause.OUTCOME
                continue
            number = next(numbers)
            id, task, error = read_entry(number, entry, self._wanted.limits, self._wanted.multipv)
            self._given[number] = id, task, error
            yield TaskList([task if error is None else Task(number, "")])  # so that it has its place
            while len(self._held) >= _MOST_HELD:
                yield Pause.OUTCOME

    def _read(self, entries: Iterator[object]) -> object:
        """Return the next entry, or _END; _LATER: it is not there yet. Raises _Closed."""
        self.leave()
        try:
            return next(entries, _END)
        except Exception as error:  # raised behind the results of what came before
            self._failure = error
            return _END
        finally:
            self.enter()
            if self.is_stopped:
                raise _Closed

    def _result(self, outcome: Outcome) -> PositionResult:
        id, task, error = self._given.pop(outcome.number)
        answer = outcome.answer if error is None else None
        return PositionResult(id, outcome.number, error or outcome.error, outcome.worker, task, answer)


class ManyResults(Iterator[PositionResult]):
    """The results of `psearch.analyse_many`, one by one; a context manager. For one thread at a time, but for `close`.

    Positions are searched while the caller does other things, as far as they have been handed out: a second or two
    ahead. `close`, or the end of the `with` block, ends everything, at once.
    """

    def __init__(self, positions: Iterable[Entry], wanted: _Wanted) -> None:
        if isinstance(positions, Mapping):
            raise PsearchError("positions is a mapping: give its items(), which are pairs of an id and a position")
        if isinstance(positions, (str, chess.Board)) or not isinstance(positions, Iterable):
            raise PsearchError(f"positions must be an iterable of FENs or boards, not {shown(positions)}")
        workers = wanted.workers
        if isinstance(positions, Sized):
            workers = max(1, min(workers, len(positions)))
        self._owner = Owner("analysis")
        self._is_over = False
        """all results have been given out, or it has failed"""
        self._closer: int | None = None
        """the thread that has closed it"""
        self._search = _Search(workers, wanted)
        self._results: Iterator[PositionResult] = self._search.results(positions)

    def __enter__(self) -> ManyResults:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_search"):
            self._search.pool.close()

    def __iter__(self) -> ManyResults:
        return self

    def __next__(self) -> PositionResult:
        result = self._take()
        if result is not None:
            return result
        if not self._is_over and self._closer != threading.get_ident():
            raise PsearchError(_CLOSED)
        raise StopIteration

    def _take(self) -> PositionResult | None:
        """Return the next result. None: there are no more, or this is closed."""
        self._owner.check()
        search = self._search
        search.enter()
        result: PositionResult | None = None
        try:
            if not search.is_stopped:
                result = next(self._results, None)
                self._is_over = result is None and not search.is_stopped
        except _Closed:
            result = None
        except BaseException:
            self._is_over = True
            search.pool.close()
            raise
        finally:
            search.leave()
        if result is None:
            search.pool.close()
        return result

    def close(self) -> None:
        """End all searches and workers. There are no more results then. May be called twice, and from any thread: one
        that waits for a result gets a PsearchError, unless it has had all of them."""
        if not self._owner.is_here:
            return
        if self._closer is None:
            self._closer = threading.get_ident()
        search = self._search
        search.is_stopped = True
        if search.inside == threading.get_ident():
            return  # a signal has come while this thread waits for a result: it comes back soon, and closes
        search.enter()
        try:
            self._results = iter(())
            search.pool.close()
        finally:
            search.leave()

    def _stop(self) -> None:
        """Let `_take` come back soon, in whatever thread; there will be no more results."""
        self._search.is_stopped = True


@lists_settings
def analyse_many(
    positions: Iterable[Entry],
    limit: chess.engine.Limit | None = None,
    *,
    workers: int | None = None,
    threads_per_position: int = 1,
    multipv: int = 1,
    ordered: bool = False,
    reproducible: bool = False,
    hash_mb: int | None = None,
    syzygy: str = "",
    cluster: str | None = None,
    **settings: Unpack[SearchKeywords],
) -> ManyResults:
    """Search any number of positions, several at a time, and return an iterator of a `PositionResult` for each.

    `positions` are FENs, boards (whose move stack counts), nodes of games, pairs of an id and one of these, or
    `psearch.Position`s, which may have a limit, root moves and lines of their own; from any iterable, which is read as
    it is needed: a generator of millions is fine. Results come as they are done, or with `ordered` in
    the order of the input. A position that is malformed or illegal, or that the processes die of three times, has a
    result with `error`; no position ends the others.

    `limit` is that of each position: time, depth, nodes or mate; without any 5 seconds. `workers` processes search one
    position each (None: as many as there are usable cores, for `threads_per_position` of them each), with nothing known
    from other positions. When fewer positions are left than workers, the free cores join the searches that go on; with
    `reproducible` they do not, and with one thread and a limit of depth or nodes every answer is the same each time.
    `hash_mb` is MiB of table for each worker (None: what such a search can use, `useful_hash_mb`); `syzygy` folders of
    endgame tables, asked about the root. Settings of all searches are keywords, too; with a cluster, files are paths
    that all machines have:

    SETTINGS

    `cluster` has other machines do it, by Ray (docs/guides/cluster.md): `auto`, `local`, `HOST:PORT` or
    `ray://HOST[:PORT]`. `workers` then are at most so many, None all that there is room for; cores do not join others.
    What happens to machines is logged as a warning of the logger `psearch`.

    Raises PsearchError for a bad argument, `psearch.WorkerDied` when no processes can be had, and what the iterable
    raises, behind the results of what came before. When the results are closed everything ends at once.

    >>> import chess.engine, psearch
    >>> fens = ["6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1", "7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"]
    >>> with psearch.analyse_many(fens, chess.engine.Limit(depth=4), ordered=True) as results:
    ...     [str(result.bestmove) for result in results]
    ['e1e8', 'g5g7']
    """
    limits = limits_of(limit)
    threads = THREADS.of_value(threads_per_position, "threads_per_position")
    if cluster is not None:
        check_cluster(cluster)
    if workers is None:  # on a cluster: as many as there are
        workers = MAX_THREADS if cluster is not None else max(1, usable_cores() // threads)
    workers = THREADS.of_value(workers, "workers")
    if syzygy and cluster is None:
        from psearch.text.syzygy import RootProber

        with RootProber(syzygy) as prober:
            for problem in prober.problems:
                LOG.warning(problem)
    size = useful_hash_mb(limits, threads) if hash_mb is None else HASH.of_value(hash_mb, "hash_mb")
    wanted = _Wanted(
        limits,
        MULTIPV.of_value(multipv, "multipv"),
        workers,
        bool(ordered),
        0 if reproducible or cluster is not None else workers * threads,
        WorkerSettings(threads, size, Settings.of(**settings).search, syzygy),
        cluster,
    )
    return ManyResults(positions, wanted)


def useful_hash_mb(limits: Limits, threads: int = 1) -> int:
    """Return a table that is large enough for such searches. A larger one only takes longer to be emptied between them.

    A power of two, 1 to 64 MiB; where only the depth is limited 16 MiB.
    """
    nodes = math.inf
    if limits.nodes is not None:
        nodes = limits.nodes
    if limits.movetime_ms is not None:
        nodes = min(nodes, limits.movetime_ms * _NODES_PER_MS * threads)
    if nodes == math.inf:
        return DEPTH_HASH_MB
    wanted = min(nodes * _ENTRIES_PER_NODE / _ENTRIES_PER_MIB, MOST_USEFUL_HASH_MB)
    return 1 << max(0, math.ceil(math.log2(wanted)))


def limits_of(limit: chess.engine.Limit | None) -> Limits:
    """Return the limits of each search; 5 seconds where there is none. Raises PsearchError."""
    if limit is None:
        limit = chess.engine.Limit()
    limits = to_limits(limit)
    if limit.white_clock is not None or limit.black_clock is not None:
        raise PsearchError("a limit of analyse_many has no clock: give time, depth, nodes or mate")
    time_s = bounded(limit, chess.WHITE).time
    return Limits(limits.depth, None if time_s is None else time_s * 1000, limits.nodes, limits.mate)


def read_entry(number: int, entry: object, limits: Limits, multipv: int) -> tuple[Any, Task, str | None]:
    """Return its id, what is to be searched, and what is wrong with it; limits, multipv: where it has none of its
    own."""
    if isinstance(entry, Position):
        asked, id = entry, number if entry.id is None else entry.id
    elif isinstance(entry, (tuple, list)) and len(entry) == 2:
        asked, id = Position(entry[1]), entry[0]
    else:
        asked, id = Position(entry), number  # type: ignore[arg-type]  # it is looked at here
    try:
        return id, _task(number, asked, limits, multipv), None
    except PsearchError as error:
        return id, Task(number, _text(asked.position)), str(error)


def _task(number: int, asked: Position, limits: Limits, multipv: int) -> Task:
    """Return the task. Raises PsearchError. What is only text is looked at where it is searched."""
    if asked.limit is not None:
        limits = limits_of(asked.limit)
    if asked.multipv is not None:
        multipv = MULTIPV.of_value(asked.multipv, "multipv")
    place = asked.position
    if isinstance(place, str) and asked.root_moves is None:
        return Task(number, place, (), limits, multipv)
    board = board_of(place)
    only = moves_of(board, asked.root_moves)
    words = None if only is None else tuple(board.uci(move) for move in only)
    return replace(Task.of_board(number, board, limits, multipv=multipv), root_moves=words)


def _text(place: object) -> str:
    """Return a position that is wrong, as far as it can be shown."""
    if isinstance(place, str):
        return place
    return place.fen() if isinstance(place, chess.Board) else ""


class _FromLoop(Iterator[object]):
    """An asynchronous iterable, read from another thread than that of its loop, which must be running now."""

    def __init__(self, source: AsyncIterable[Entry]) -> None:
        self._source = aiter(source)
        self._loop = asyncio.get_running_loop()
        self._awaited: concurrent.futures.Future[object] | None = None

    def __next__(self) -> object:
        """Return the next, or _LATER."""
        if self._awaited is None:
            self._awaited = asyncio.run_coroutine_threadsafe(self._read(), self._loop)
        try:
            entry = self._awaited.result(_READ_S)
        except concurrent.futures.TimeoutError:
            if not self._awaited.done():
                return _LATER
            raise  # the iterable's own
        self._awaited = None
        if entry is _END:
            raise StopIteration
        return entry

    async def _read(self) -> object:
        return await anext(self._source, _END)

    def give_up(self) -> None:
        """Note that nobody waits for more."""
        if self._awaited is not None:
            self._awaited.cancel()


class AsyncManyResults:
    """The results of `psearch.analyse_many_async`: an asynchronous iterator and context manager.

    An await that is cancelled ends the analysis.
    """

    def __init__(self, positions: Iterable[Entry] | AsyncIterable[Entry], make: partial[ManyResults]) -> None:
        self._make = make
        self._positions = positions
        self._bridge: _FromLoop | None = None
        self._results: ManyResults | None = None
        self._is_closed = False
        self._closer: asyncio.Task[Any] | None = None
        """the task that has closed it"""
        self._opening = threading.Lock()
        """held by the thread that starts or ends the analysis"""

    async def __aenter__(self) -> AsyncManyResults:
        self._build_bridge()
        await in_thread(self._open, self._end)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncManyResults:
        return self

    async def __anext__(self) -> PositionResult:
        self._build_bridge()
        result = await in_thread(self._next, self._end)
        if result is not None:
            return result
        is_over = self._results is not None and self._results._is_over
        if not is_over and self._closer not in (None, asyncio.current_task()):
            raise PsearchError(_CLOSED)
        raise StopAsyncIteration

    async def close(self) -> None:
        """End all searches and workers. There are no more results then. May be called twice, and from any task: one
        that waits for a result gets a PsearchError, unless it has had all of them."""
        if self._closer is None:
            self._closer = asyncio.current_task()
        self._end()
        await in_thread(self._close)

    def _end(self) -> None:
        """At once, from the loop: what goes on in threads ends soon."""
        self._is_closed = True
        if self._results is not None:
            self._results._stop()
        if self._bridge is not None:
            self._bridge.give_up()

    def _build_bridge(self) -> None:
        """An asynchronous iterable is read by its loop, which is the running one."""
        if self._bridge is None and isinstance(self._positions, AsyncIterable):
            self._bridge = _FromLoop(self._positions)

    def _open(self) -> ManyResults | None:
        with self._opening:
            if self._results is None and not self._is_closed:
                self._results = self._make(self._bridge or self._positions)
            return self._results

    def _next(self) -> PositionResult | None:
        results = self._open()
        return None if results is None or self._is_closed else results._take()

    def _close(self) -> None:
        with self._opening:
            if self._results is not None:
                self._results.close()


def analyse_many_async(
    positions: Iterable[Entry] | AsyncIterable[Entry], limit: chess.engine.Limit | None = None, **arguments: Any
) -> AsyncManyResults:
    """Analyse many positions on asyncio, as `psearch.analyse_many` does: the same arguments, an asynchronous iterator
    and context manager.

    The loop is never blocked: `positions` is read in other threads, or by the loop if it is an asynchronous iterable.

    >>> import asyncio, chess.engine, psearch
    >>> async def main():
    ...     limit = chess.engine.Limit(depth=4)
    ...     async with psearch.analyse_many_async(["7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"], limit) as results:
    ...         return [str(result.bestmove) async for result in results]
    >>> asyncio.run(main())
    ['g5g7']
    """
    return AsyncManyResults(positions, partial(analyse_many, limit=limit, **arguments))
