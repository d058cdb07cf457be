"""`psearch.analyse_many`, which searches any number of positions on all cores, and its asynchronous twin."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import math
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias, Unpack

import chess
import chess.engine

from psearch.api import LOG
from psearch.api.asynchronous import Started, in_thread
from psearch.api.question import Place, RootMoves, board_of, bounded, moves_of, to_limits
from psearch.arena.blocks import MIB
from psearch.arena.control_groups import usable_cores
from psearch.arena.system_calls import Owner
from psearch.batch.positions.position_pool import WorkerSettings, make_pool, rounds
from psearch.batch.positions.task import Answer, Outcome, Pause, Task, TaskList, result_object
from psearch.closing import Closing
from psearch.defaults import JOB_HASH_MB, MAX_THREADS
from psearch.options import Settings
from psearch.results import BestLine, Info, Limits, PsearchError
from psearch.searcher.root import Root
from psearch.settings import HASH, MULTIPV, THREADS, SearchKeywords, lists_settings
from psearch.text.values import shown
from psearch.text.wdl import pov_wdl

_BYTES_PER_NODE = 32
"""Bytes of table for each node of a search: two entries of 16 bytes."""
_NODES_PER_MS = 1_000
"""Upper estimate of the speed of a worker."""
_DEPTH_HASH_MB = 16
_END = object()
"""Marks the end of the positions."""
_LATER = object()
"""Stands for a position that has not arrived yet."""
_READ_S = 0.05
"""Longest wait for an asynchronous iterable, in seconds, so that new results are not held up."""
_MOST_HELD = 4_096
"""Most outcomes that wait for earlier ones, when results are ordered; beyond it no more positions are read."""
_CLOSED = "these results were closed before all were there"


@dataclass(frozen=True)
class Position:
    """A position for `psearch.analyse_many` with its own id, limit, number of lines or root moves.

    - position: a FEN, a board or a node of a game.
    - id: any object; None: the number of the position.
    - limit, multipv: None: those of `analyse_many`.
    - root_moves: moves to choose from, as moves, in UCI notation or in SAN; None: all.
    """

    position: Place
    id: Any = None
    limit: chess.engine.Limit | None = None
    multipv: int | None = None
    root_moves: RootMoves | None = None


Entry: TypeAlias = "Place | Position | tuple[Any, Place]"


@dataclass(repr=False)
class PositionResult(BestLine):
    """The result of one position of `psearch.analyse_many`, or the reason why there is none.

    - id: the id that was given, else the number of the position, from 0.
    - index: number of the position in the input, from 0.
    - error: reason why the position was not searched, in one line; None: it was.
    - worker: the worker that searched: the number of its process, or its machine.

    It has the figures of `psearch.Result`, in python-chess's types. Looking at them never raises: with an error
    `bestmove` is None, `lines` is empty, and `info` has depth 0, no moves and a score of 0.
    """

    id: Any
    index: int
    error: str | None
    worker: str
    _task: Task
    _answer: Answer | None

    def __repr__(self) -> str:
        if self._answer is None:
            return f"<psearch.PositionResult id={self.id!r} error={self.error!r}>"
        return f"<psearch.PositionResult id={self.id!r} bestmove={self._answer.best} {self.info._summary()}>"

    def __hash__(self) -> int:
        return hash((self.index, self._task.fen))

    def _repr_html_(self) -> str | None:
        """Return HTML for notebooks: the board with the best move, and the lines; None for a position with an error."""
        return None if self._answer is None else super()._repr_html_()

    @property
    def fen(self) -> str:
        """FEN of the position; for an illegal position, the text that was given."""
        return self.board.fen() if self.board.occupied else self._task.fen

    @cached_property
    def board(self) -> chess.Board:
        """The position, with the moves before it that a search uses; an empty board for an illegal position."""
        try:
            return self._task.board()
        except PsearchError:
            return chess.Board(None)

    @property
    def bestmove(self) -> chess.Move | None:
        """The best move; None when the game is over on the board, and for a position with an error."""
        best = None if self._answer is None else self._answer.best
        return None if best is None else self.board.parse_uci(best)

    @property
    def info(self) -> Info:
        """All figures of the best line."""
        nothing = chess.engine.PovScore(chess.engine.Cp(0), self.board.turn)
        return self.lines[0] if self.lines else Info(0, 0, nothing, "exact", 0, 0.0)

    @cached_property
    def lines(self) -> list[Info]:
        """The best lines, best first; at most `multipv`, and none for a position with an error."""
        answer, found = self._answer, []
        if answer is None:
            return []
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
        """Problems that were solved during the search, one line each."""
        return list(self._answer.notes) if self._answer is not None else []

    def as_row(self) -> dict[str, Any]:
        """Return the row of `Result.as_row`, with `id` and `error`. For a position with an error, these and `fen` are
        all."""
        found = {"fen": self.fen} if self._answer is None else super().as_row()
        return {"id": self.id, **found, "error": self.error}

    def as_json(self) -> dict[str, Any]:
        """Return the object that `psearch analyse` writes as a JSON line (docs/guides/analyse.md). The id must be text
        or a number."""
        return result_object(self.id, self._task, self._answer, self.error)


@dataclass(frozen=True)
class WantedPool:
    """Checked arguments of `analyse_many` or `review_many`."""

    limits: Limits
    workers: int
    assist: int
    settings: WorkerSettings
    cluster: str | None
    multipv: int
    ordered: bool = False


class _Closed(Exception):
    """The results were closed while positions were being read."""


class _Search:
    """The search behind a `ManyResults`. It does not refer to that object, which is closed with its last reference.

    `enter` and `leave` let in one thread at a time. Positions are read outside: that may take long, and another thread
    may want to close everything meanwhile.
    """

    def __init__(self, workers: int, wanted: WantedPool) -> None:
        self.wanted = wanted
        self.is_stopped = False
        self.inside: int | None = None
        """Thread that is inside (`threading.get_ident`)."""
        # reentrant: the handler of a signal may run between two steps of `enter`
        self._lock = threading.RLock()
        self._failure: Exception | None = None
        """Exception that ended the reading of positions."""
        self._given: dict[int, tuple[Any, Task, str | None]] = {}
        """Positions that were read and have no result yet, by number: id, task, error."""
        self._held: dict[int, Outcome] = {}
        """Outcomes that wait for earlier ones, by number."""
        self.pool = make_pool(workers, wanted.settings, wanted.cluster)

    def enter(self) -> None:
        self._lock.acquire()
        self.inside = threading.get_ident()

    def leave(self) -> None:
        self.inside = None
        self._lock.release()

    def results(self, positions: Iterable[object]) -> Iterator[PositionResult]:
        """Yield the results; called by the thread that is inside."""
        lists = self._lists(iter(positions))
        following = 0  # number of the next result, if results are ordered
        for outcomes in rounds(self.pool, lists, assist=self.wanted.assist, is_stopped=lambda: self.is_stopped):
            if self.is_stopped:
                return
            if not self.wanted.ordered:
                yield from map(self._result, outcomes)
                continue
            self._held.update((outcome.number, outcome) for outcome in outcomes)
            while (outcome := self._held.pop(following, None)) is not None:
                following += 1
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
            yield [task if error is None else Task(number, "")]  # an error keeps its place in the order
            while len(self._held) >= _MOST_HELD:
                yield Pause.OUTCOME

    def _read(self, entries: Iterator[object]) -> object:
        """Return the next entry, _END, or _LATER if it has not arrived yet. Raises _Closed."""
        self.leave()
        try:
            return next(entries, _END)
        except Exception as error:  # raised after the results of the earlier positions
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


class ManyResults(Closing, Iterator[PositionResult]):
    """An iterator over the results of `psearch.analyse_many`; a context manager.

    While the caller does other things, workers continue with the positions that they have got: a second or two of work.
    `close`, or the end of the `with` block, ends everything at once. Only `close` may be called from another thread.
    """

    def __init__(self, positions: Iterable[Entry], wanted: WantedPool) -> None:
        if isinstance(positions, Mapping):
            raise PsearchError("positions is a mapping: give its items(), which are pairs of an id and a position")
        if isinstance(positions, (str, chess.Board)) or not isinstance(positions, Iterable):
            raise PsearchError(f"positions must be an iterable of FENs or boards, not {shown(positions)}")
        self.total = len(positions) if isinstance(positions, Sized) else None
        """Number of results, for a progress bar; None if `positions` has no length."""
        workers = wanted.workers if self.total is None else min(wanted.workers, max(1, self.total))
        self._owner = Owner("analysis")
        self._is_over = False
        """True when all results have been returned, or the search has failed."""
        self._closer: int | None = None
        """Thread that closed the results."""
        self._search = _Search(workers, wanted)
        self._results: Iterator[PositionResult] = self._search.results(positions)

    def __del__(self) -> None:
        if hasattr(self, "_search"):
            self._search.pool.close()

    def __next__(self) -> PositionResult:
        result = self._take()
        if result is None:
            if not self._is_over and self._closer != threading.get_ident():
                raise PsearchError(_CLOSED)
            raise StopIteration
        return result

    def _take(self) -> PositionResult | None:
        """Return the next result; None: there are no more, or the results are closed."""
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
        """End all searches and workers; no more results follow. May be called twice and from any thread. A thread that
        waits for a result gets a PsearchError, unless it has all of them."""
        if not self._owner.is_here:
            return
        if self._closer is None:
            self._closer = threading.get_ident()
        search = self._search
        search.is_stopped = True
        if search.inside == threading.get_ident():
            return  # called by a signal handler while this thread waits for a result: it returns soon, and closes
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
    cluster: str | None = None,
    **settings: Unpack[SearchKeywords],
) -> ManyResults:
    """Search any number of positions, several at a time, and return an iterator with a `PositionResult` for each.

    - positions: any iterable of FENs, boards (whose move stack counts as history), nodes of games, pairs of an id and
      one of these, or `psearch.Position`s. It is read on demand: a generator of millions is fine.
    - limit: limit of each position: time, depth, nodes or mate; None: 5 seconds.
    - workers: number of processes; each searches one position at a time and keeps nothing from other positions (None:
      as many as the usable cores allow).
    - threads_per_position: processes that share the search of one position.
    - multipv: number of best lines to find.
    - ordered: return results in the order of the input, not as they are found.
    - reproducible: idle cores do not join the last searches, as they do by default. With one thread per position and a
      limit of depth or nodes every answer is then the same in each run.
    - hash_mb: size of each worker's table in MiB (None: what a search of this limit can use, at most 64;
      16 if it has only a depth).
    - cluster: search on other machines by Ray (docs/guides/cluster.md): `auto`, `local`, `HOST:PORT` or
      `ray://HOST[:PORT]`. `workers` is then the most that are used (None: as many as there is room for), and idle cores
      join no searches. Lost machines are logged as warnings of the logger `psearch`.

    The settings of all searches are keywords, too; files must have the same paths on all machines of a cluster:

    SETTINGS

    A position that is malformed or illegal, or with which three processes died, has a result with `error`; the others
    continue. Raises PsearchError for a bad argument, `psearch.WorkerDied` when no processes can be started, and the
    errors of the iterable, after the results of the earlier positions. Closing the results ends everything at once.

    >>> import chess.engine, psearch
    >>> fens = ["6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1", "7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"]
    >>> with psearch.analyse_many(fens, chess.engine.Limit(depth=4), ordered=True) as results:
    ...     [str(result.bestmove) for result in results]
    ['e1e8', 'g5g7']
    """
    limits = limits_of(limit)
    wanted = pool_wanted(limits, workers, threads_per_position, multipv, reproducible, hash_mb, cluster, settings)
    return ManyResults(positions, replace(wanted, ordered=bool(ordered)))


def pool_wanted(
    limits: Limits,
    workers: int | None,
    threads_per_position: int,
    multipv: int,
    reproducible: bool,
    hash_mb: int | None,
    cluster: str | None,
    settings: SearchKeywords,
) -> WantedPool:
    """Return the pool that the arguments of `analyse_many` ask for. Raises PsearchError."""
    chosen = Settings.of(**settings)
    threads = THREADS.of_value(threads_per_position, "threads_per_position")
    if cluster is not None:
        from psearch.remote.cluster_processes import cluster_address

        if not isinstance(cluster, str):
            raise PsearchError(f"cluster must be an address such as 'auto', not {shown(cluster)}")
        cluster_address(cluster, "cluster ")  # raises for a bad address, and without Ray
    if workers is None:  # a cluster decides itself
        workers = MAX_THREADS if cluster is not None else max(1, usable_cores() // threads)
    workers = THREADS.of_value(workers, "workers")
    if cluster is None:
        Root(chosen.syzygy, LOG.warning).close()  # reports unusable tables once
    size = useful_hash_mb(limits, threads) if hash_mb is None else HASH.of_value(hash_mb, "hash_mb")
    return WantedPool(
        limits,
        workers=workers,
        assist=0 if reproducible or cluster is not None else workers * threads,
        settings=WorkerSettings(threads, size, chosen.search, chosen.syzygy),
        cluster=cluster,
        multipv=MULTIPV.of_value(multipv, "multipv"),
    )


def useful_hash_mb(limits: Limits, threads: int = 1) -> int:
    """Return the size in MiB of a table that is large enough for such searches: a power of two, 1 to 64; 16 if only the
    depth is limited. A larger table only takes longer to be emptied between searches."""
    nodes = [limits.nodes] if limits.nodes is not None else []
    if limits.movetime_ms is not None:
        nodes.append(math.ceil(limits.movetime_ms * _NODES_PER_MS * threads))
    if not nodes:
        return _DEPTH_HASH_MB
    wanted = min(min(nodes) * _BYTES_PER_NODE / MIB, JOB_HASH_MB)
    return 1 << max(0, math.ceil(math.log2(wanted)))


def limits_of(limit: chess.engine.Limit | None) -> Limits:
    """Return the limits of each search; None: 5 seconds. Raises PsearchError."""
    if limit is None:
        limit = chess.engine.Limit()
    limits = to_limits(limit)
    if limit.white_clock is not None or limit.black_clock is not None:
        raise PsearchError("this limit has no clock: give time, depth, nodes or mate")
    time_s = bounded(limit, chess.WHITE).time
    return Limits(limits.depth, None if time_s is None else time_s * 1000, limits.nodes, limits.mate)


def _read_entry(number: int, entry: Any, wanted: WantedPool) -> tuple[Any, Task, str | None]:
    """Return the id of an entry, its task, and its error, if any. A FEN is parsed by the worker that searches it."""
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


class _FromLoop(Iterator[object]):
    """Reads an asynchronous iterable from another thread than that of the running loop."""

    def __init__(self, source: AsyncIterable[Entry]) -> None:
        self._source = aiter(source)
        self._loop = asyncio.get_running_loop()
        self.awaited: concurrent.futures.Future[object] | None = None

    def __next__(self) -> object:
        if self.awaited is None:
            self.awaited = asyncio.run_coroutine_threadsafe(self._read(), self._loop)
        try:
            entry = self.awaited.result(_READ_S)
        except concurrent.futures.TimeoutError:
            if not self.awaited.done():
                return _LATER
            raise  # the iterable's own TimeoutError
        self.awaited = None
        if entry is _END:
            raise StopIteration
        return entry

    async def _read(self) -> object:
        return await anext(self._source, _END)


class AsyncManyResults(Started[ManyResults], AsyncIterator[PositionResult]):
    """The results of `psearch.analyse_many_async`: an asynchronous iterator and context manager.

    An await that is cancelled ends the analysis.
    """

    def __init__(self, positions: Iterable[Entry] | AsyncIterable[Entry], make: Callable[[Any], ManyResults]) -> None:
        super().__init__(lambda: make(self._positions))
        self._positions: Any = positions
        self._closer: asyncio.Task[Any] | None = None
        """Task that closed the results."""

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
        """End all searches and workers; no more results follow. May be called twice and from any task. A task that
        waits for a result gets a PsearchError, unless it has all of them."""
        if self._closer is None:
            self._closer = asyncio.current_task()
        await super().close()

    async def _start(self) -> ManyResults | None:
        if isinstance(self._positions, AsyncIterable):
            self._positions = _FromLoop(self._positions)  # here, where its loop is running
        return await super()._start()

    def _stop(self) -> None:
        super()._stop()
        if self._results is not None:
            self._results._search.is_stopped = True
        if isinstance(self._positions, _FromLoop) and self._positions.awaited is not None:
            self._positions.awaited.cancel()


def analyse_many_async(
    positions: Iterable[Entry] | AsyncIterable[Entry], limit: chess.engine.Limit | None = None, **arguments: Any
) -> AsyncManyResults:
    """Search any number of positions on asyncio, with the arguments of `psearch.analyse_many`.

    Returns an asynchronous iterator and context manager. The loop is never blocked: `positions` is read in other
    threads, or by the loop if it is an asynchronous iterable.

    >>> import asyncio, chess.engine, psearch
    >>> async def main():
    ...     limit = chess.engine.Limit(depth=4)
    ...     async with psearch.analyse_many_async(["7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"], limit) as results:
    ...         return [str(result.bestmove) async for result in results]
    >>> asyncio.run(main())
    ['g5g7']
    """
    return AsyncManyResults(positions, partial(analyse_many, limit=limit, **arguments))
