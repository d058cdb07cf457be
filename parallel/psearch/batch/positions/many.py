"""`psearch.analyse_many`: any number of positions, on all cores, and its asynchronous twin."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import math
import threading
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias, Unpack

import chess
import chess.engine

from psearch.api import LOG
from psearch.api.asynchronous import in_thread
from psearch.api.question import Place, RootMoves, board_of, bounded, moves_of, to_limits
from psearch.arena.blocks import MIB
from psearch.arena.control_groups import usable_cores
from psearch.arena.system_calls import Owner
from psearch.batch.positions.position_pool import WorkerSettings, make_pool, rounds
from psearch.batch.positions.task import Answer, Outcome, Pause, Task, TaskList, result_object
from psearch.defaults import JOB_HASH_MB, MAX_THREADS
from psearch.options import Settings
from psearch.results import BestLine, Info, Limits, PsearchError
from psearch.settings import HASH, MULTIPV, THREADS, SearchKeywords, lists_settings
from psearch.text.values import shown
from psearch.text.wdl import pov_wdl

_BYTES_PER_NODE = 32
"""Room in a table for about every node that a search may store, twice: an entry has 16 bytes."""
_NODES_PER_MS = 1_000
"""More than a worker searches."""
_DEPTH_HASH_MB = 16
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
    """A position for `psearch.analyse_many` with an id, a limit or other wishes; what is None is as for all."""

    position: Place
    id: Any = None
    """None: its number"""
    limit: chess.engine.Limit | None = None
    multipv: int | None = None
    root_moves: RootMoves | None = None
    """moves to choose from, UCI notation, SAN or moves; None: all"""


Entry: TypeAlias = "Place | Position | tuple[Any, Place]"


@dataclass(repr=False)
class PositionResult(BestLine):
    """One position of `psearch.analyse_many`, searched, or the reason why it could not be.

    It has what `psearch.Result` has. Moves and scores are python-chess's types; they are made when they are asked for.
    What was not found raises PsearchError for a position with an error.
    """

    id: Any
    """as it was given; else the number of the position, from 0"""
    index: int
    """number of the position in the input, from 0"""
    error: str | None
    """one line; None: it was searched"""
    worker: str
    """which worker searched it: the number of its process, or its machine"""
    _task: Task
    _answer: Answer | None

    def __repr__(self) -> str:
        if self._answer is None:
            return f"<psearch.PositionResult id={self.id!r} error={self.error!r}>"
        line = self._answer.line
        best, score = self._answer.best, line.score
        return f"<psearch.PositionResult id={self.id!r} bestmove={best} score={score} depth={line.depth}>"

    def __hash__(self) -> int:
        return hash((self.index, self._task.fen))

    def _repr_html_(self) -> str | None:
        """Draw for notebooks: the board with the best move, and the lines."""
        return None if self._answer is None else super()._repr_html_()

    @property
    def fen(self) -> str:
        """FEN of the position that was searched; the text that was given where it is no position."""
        try:
            return self.board.fen()
        except PsearchError:
            return self._task.fen

    @cached_property
    def board(self) -> chess.Board:
        """The position, with the moves before it that a search looks at. Raises PsearchError for a bad one."""
        return self._task.board()

    @property
    def bestmove(self) -> chess.Move | None:
        """None when the game is over on the board. Raises PsearchError for a position with an error."""
        best = self._have().best
        return None if best is None else self.board.parse_uci(best)

    @property
    def info(self) -> Info:
        """The best line. Raises PsearchError for a position with an error."""
        return self.lines[0]

    @cached_property
    def lines(self) -> list[Info]:
        """All lines, best first: at most `multipv` of them. Raises PsearchError for a position with
        an error."""
        answer, found = self._have(), []
        for number, line in enumerate(answer.lines, start=1):
            score, walk = chess.engine.PovScore(line.score, self.board.turn), self.board.copy(stack=False)
            info = Info(
                depth=line.depth,
                seldepth=line.seldepth,
                score=score,
                bound=line.bound,
                nodes=answer.nodes,
                time_s=answer.time_s,
                pv=[walk.push_uci(word) for word in line.pv],
                multipv=number,
                hashfull=answer.hashfull,
                tbhits=answer.tbhits,
                wdl=pov_wdl(score, self.board),
            )
            found.append(info)
        return found

    @property
    def notes(self) -> list[str]:
        """What went wrong on the way and was mended, a line each."""
        return list(self._answer.notes) if self._answer is not None else []

    def as_row(self) -> dict[str, Any]:
        """Return the best line as a row of a table, as `Result.as_row`, with `id` and `error`; that alone where the
        position was not searched."""
        found = {"fen": self.fen} if self._answer is None else super().as_row()
        return {"id": self.id, **found, "error": self.error}

    def as_json(self) -> dict[str, Any]:
        """Return what `psearch analyse` writes for it as a JSON line (docs/guides/analyse.md); the id must be text or a
        number."""
        return result_object(self.id, self._task, self._answer, self.error)

    def _have(self) -> Answer:
        if self._answer is None:
            raise PsearchError(f"position {self.id!r} was not searched: {self.error}")
        return self._answer


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
    """The results were closed meanwhile."""


class _Search:
    """The search behind `ManyResults`. Nothing here refers to that one: it is closed with the last reference to it.

    One thread at a time is inside, by `enter` and `leave`, but that positions are read outside: that may take long, and
    another thread may want to close everything meanwhile.
    """

    def __init__(self, workers: int, wanted: _Wanted) -> None:
        self.wanted = wanted
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
        lists = self._lists(iter(positions))
        first = 0
        """number of the next one, where order matters"""
        for outcomes in rounds(self.pool, lists, assist=self.wanted.assist, is_stopped=lambda: self.is_stopped):
            if self.is_stopped:
                return
            if not self.wanted.ordered:
                yield from map(self._result, outcomes)
                continue
            self._held.update((outcome.number, outcome) for outcome in outcomes)
            while (outcome := self._held.pop(first, None)) is not None:
                first += 1
                yield self._result(outcome)
        if self._failure is not None:
            raise self._failure

    def _lists(self, entries: Iterator[object]) -> Iterator[TaskList | Pause]:
        numbers = itertools.count()
        while (entry := self._read(entries)) is not _END:
            if entry is _LATER:
                yield Pause.OUTCOME
                continue
            number = next(numbers)
            id, task, error = _read_entry(number, entry, self.wanted)
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
        most = max(1, len(positions)) if isinstance(positions, Sized) else wanted.workers
        self._owner = Owner("analysis")
        self._is_over = False
        """all results have been given out, or it has failed"""
        self._closer: int | None = None
        """the thread that has closed it"""
        self._search = _Search(min(wanted.workers, most), wanted)
        self._results: Iterator[PositionResult] = self._search.results(positions)

    def __enter__(self) -> ManyResults:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_search"):
            self._search.pool.close()

    def __iter__(self) -> ManyResults:
        return self

    def __next__(self) -> PositionResult:
        result = self._take()
        if result is None:
            if not self._is_over and self._closer != threading.get_ident():
                raise PsearchError(_CLOSED)
            raise StopIteration
        return result

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
    `ray://HOST[:PORT]`. There are at most `workers` then, None: as many as there is room for; cores do not join others.
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
        from psearch.remote.cluster_processes import cluster_address

        if not isinstance(cluster, str):
            raise PsearchError(f"cluster must be an address, as 'auto', not {shown(cluster)}")
        cluster_address(cluster, "cluster ")  # which raises where it is none, and where there is no Ray
    if workers is None:  # on a cluster: as many as there are
        workers = MAX_THREADS if cluster is not None else max(1, usable_cores() // threads)
    workers = THREADS.of_value(workers, "workers")
    if syzygy and cluster is None:
        from psearch.text.chess_files import RootProber

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
    nodes = [limits.nodes] if limits.nodes is not None else []
    if limits.movetime_ms is not None:
        nodes.append(math.ceil(limits.movetime_ms * _NODES_PER_MS * threads))
    if not nodes:
        return _DEPTH_HASH_MB
    wanted = min(min(nodes) * _BYTES_PER_NODE / MIB, JOB_HASH_MB)
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


def _read_entry(number: int, entry: Any, wanted: _Wanted) -> tuple[Any, Task, str | None]:
    """Return its id, what is to be searched, and what is wrong with it. What is only text is looked at where it is
    searched."""
    match entry:
        case Position():
            asked, id = entry, number if entry.id is None else entry.id
        case (id, place):
            asked = Position(place)
        case _:
            asked, id = Position(entry), number
    place, limits, multipv = asked.position, wanted.limits, wanted.multipv
    try:
        if asked.limit is not None:
            limits = limits_of(asked.limit)
        if asked.multipv is not None:
            multipv = MULTIPV.of_value(asked.multipv, "multipv")
        if isinstance(place, str) and asked.root_moves is None:
            return id, Task(number, place, (), limits, multipv), None
        board = board_of(place)
        only = moves_of(board, asked.root_moves)
        words = None if only is None else tuple(board.uci(move) for move in only)
        return id, replace(Task.of_board(number, board, limits, multipv=multipv), root_moves=words), None
    except PsearchError as error:
        text = place.fen() if isinstance(place, chess.Board) else place
        return id, Task(number, text if isinstance(text, str) else ""), str(error)


# -- on asyncio --------------------------------------------------------------------------------------------------------


class _FromLoop(Iterator[object]):
    """An asynchronous iterable, read from another thread than that of its loop, which must be running now."""

    def __init__(self, source: AsyncIterable[Entry]) -> None:
        self._source = aiter(source)
        self._loop = asyncio.get_running_loop()
        self.awaited: concurrent.futures.Future[object] | None = None

    def __next__(self) -> object:
        """Return the next, or _LATER."""
        if self.awaited is None:
            self.awaited = asyncio.run_coroutine_threadsafe(self._read(), self._loop)
        try:
            entry = self.awaited.result(_READ_S)
        except concurrent.futures.TimeoutError:
            if not self.awaited.done():
                return _LATER
            raise  # the iterable's own
        self.awaited = None
        if entry is _END:
            raise StopIteration
        return entry

    async def _read(self) -> object:
        return await anext(self._source, _END)


class AsyncManyResults:
    """The results of `psearch.analyse_many_async`: an asynchronous iterator and context manager.

    An await that is cancelled ends the analysis.
    """

    def __init__(self, positions: Iterable[Entry] | AsyncIterable[Entry], make: Callable[[Any], ManyResults]) -> None:
        self._make = make
        self._positions: Any = positions
        self._results: ManyResults | None = None
        self._is_stopped = False
        self._closer: asyncio.Task[Any] | None = None
        """the task that has closed it"""
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> AsyncManyResults:
        await self._start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncManyResults:
        return self

    async def __anext__(self) -> PositionResult:
        results = await self._start()
        result = None if results is None else await in_thread(results._take, self._stop)
        if result is not None:
            return result
        is_over = results is not None and results._is_over
        if not is_over and self._closer not in (None, asyncio.current_task()):
            raise PsearchError(_CLOSED)
        raise StopAsyncIteration

    async def close(self) -> None:
        """End all searches and workers. There are no more results then. May be called twice, and from any task: one
        that waits for a result gets a PsearchError, unless it has had all of them."""
        if self._closer is None:
            self._closer = asyncio.current_task()
        self._stop()
        results = await self._start()
        if results is not None:
            await in_thread(results.close)

    async def _start(self) -> ManyResults | None:
        """Return the results, which the first call starts in a thread; None where they were stopped before."""
        async with self._starting:
            if self._results is None and not self._is_stopped:
                if isinstance(self._positions, AsyncIterable):
                    self._positions = _FromLoop(self._positions)  # its loop is the one that is running
                self._results = await in_thread(lambda: self._make(self._positions), self._stop)
            return self._results

    def _stop(self) -> None:
        """Let what goes on in threads end soon; called in the loop."""
        self._is_stopped = True
        if self._results is not None:
            self._results._search.is_stopped = True
        if isinstance(self._positions, _FromLoop) and self._positions.awaited is not None:
            self._positions.awaited.cancel()


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
