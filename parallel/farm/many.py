"""`psearch.analyse_many`: any number of positions, on all cores."""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

import chess
import chess.engine

from psearch.arena.control_groups import usable_cores
from psearch.defaults import DEFAULT_POLICY, DEFAULT_PRUNING, MAX_CORE, MAX_HASH_MB, MAX_THREADS
from psearch.engine.arguments import MAX_LINES, whole
from psearch.engine.asynchronous import in_thread
from psearch.engine.limits import to_limits
from psearch.farm.answers import PositionResult
from psearch.farm.boards import from_board
from psearch.farm.crews import make_crew
from psearch.farm.flow import outcomes
from psearch.farm.hand import HandSettings
from psearch.farm.jobs import Chain, Outcome, Task
from psearch.notation.fen import check_position
from psearch.options import SearchOptions, pruning_named, shown
from psearch.results import Limits, PsearchError

Position = str | chess.Board
Entry = Position | tuple[Any, Position]
_ENTRIES_PER_MIB = 1 << 16
_ENTRIES_PER_NODE = 2
"""Room for about every node that a search may store, twice."""
_NODES_PER_MS = 1_000
"""More than a worker searches."""
MOST_USEFUL_HASH_MB = 64
DEPTH_HASH_MB = 16


def useful_hash_mb(limits: Limits, threads: int = 1) -> int:
    """A table that is large enough for such searches. A larger one only takes longer to be emptied between them.

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


@dataclass(frozen=True)
class _Wanted:
    """The arguments of `analyse_many`, checked."""

    limits: Limits
    multipv: int
    workers: int
    ordered: bool
    assist: int
    settings: HandSettings
    cores: tuple[int, ...]
    nice: int
    cluster: str | None


class _Search:
    """What goes on behind `ManyResults`, which nothing here refers to: it is closed when nobody has it any more."""

    def __init__(self, hands: int, wanted: _Wanted) -> None:
        self._wanted = wanted
        self.is_stopped = False
        self._given: dict[int, tuple[Any, Task, str | None]] = {}
        """what has been read and has no result yet, by number: id, task, what is wrong with it"""
        self.crew = make_crew(hands, wanted.settings, wanted.cores, wanted.nice, wanted.cluster)

    def results(self, positions: Iterable[Entry]) -> Generator[PositionResult, None, None]:
        wanted = self._wanted
        for outcome in outcomes(
            self.crew,
            self._chains(positions),
            ordered=wanted.ordered,
            assist=wanted.assist,
            is_stopped=lambda: self.is_stopped,
        ):
            yield self._result(outcome)

    def _chains(self, positions: Iterable[Entry]) -> Iterator[Chain]:
        for number, entry in enumerate(positions):
            id: Any = number
            position: object = entry
            if isinstance(entry, (tuple, list)) and len(entry) == 2:
                id, position = entry
            task, error = self._task(number, position)
            self._given[number] = id, task, error
            yield Chain([task])

    def _task(self, number: int, position: object) -> tuple[Task, str | None]:
        """A position as a task, and what is wrong. What is no position at all is sent, too: so it has its place."""
        limits, multipv = self._wanted.limits, self._wanted.multipv
        if isinstance(position, str):
            return Task(number, position, (), limits, multipv), None
        if not isinstance(position, chess.Board):
            return Task(
                number, "", (), limits
            ), f"a position is a chess.Board, a FEN or 'startpos', not {shown(position)}"
        try:
            check_position(position)
        except PsearchError as error:
            return Task(number, position.fen(), (), limits), str(error)
        fen, moves = from_board(position)
        return Task(number, fen, moves, limits, multipv, chess960=position.chess960), None

    def _result(self, outcome: Outcome) -> PositionResult:
        id, task, error = self._given.pop(outcome.number)
        found = outcome.found if error is None else None
        return PositionResult(id, outcome.number, task, found, error or outcome.error, outcome.hand)


class ManyResults(Iterator[PositionResult]):
    """The results of `psearch.analyse_many`, one by one; a context manager. For one thread at a time.

    Positions are searched while the caller does other things, as far as they have been handed out: a second or two
    ahead. `close`, or the end of the `with` block, ends everything, at once.
    """

    def __init__(self, positions: Iterable[Entry], wanted: _Wanted) -> None:
        if isinstance(positions, (str, chess.Board)) or not isinstance(positions, Iterable):
            raise PsearchError(f"positions must be an iterable of FENs or boards, not {shown(positions)}")
        hands = wanted.workers
        if isinstance(positions, Sized):
            hands = max(1, min(hands, len(positions)))
        self._search = _Search(hands, wanted)
        self._results = self._search.results(positions)

    def __enter__(self) -> ManyResults:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_search"):
            self._search.crew.close()

    def __iter__(self) -> ManyResults:
        return self

    def __next__(self) -> PositionResult:
        try:
            return next(self._results)
        except BaseException:
            self._search.crew.close()
            raise

    def close(self) -> None:
        """End all searches and workers. There are no more results then. May be called twice."""
        self._search.is_stopped = True
        self._results.close()
        self._search.crew.close()

    def _stop(self) -> None:
        """From another thread: there will be no more results, and `__next__` comes back soon."""
        self._search.is_stopped = True


def analyse_many(
    positions: Iterable[Entry],
    limit: chess.engine.Limit,
    *,
    workers: int | None = None,
    threads_per_position: int = 1,
    multipv: int = 1,
    ordered: bool = False,
    reproducible: bool = False,
    hash_mb: int | None = None,
    policy: str = DEFAULT_POLICY,
    pruning: str = DEFAULT_PRUNING,
    syzygy: str = "",
    cores: Sequence[int] | None = None,
    nice: int = 0,
    cluster: str | None = None,
) -> ManyResults:
    """Search any number of positions, several at a time, and return an iterator of a `PositionResult` for each.

    `positions` are FENs, boards (whose move stack counts), or pairs of an id and one of these, from any iterable,
    which is read as it is needed: a generator of millions is fine. Results come as they are done, or with `ordered` in
    the order of the input. A position that is malformed or illegal, or that the processes die of three times, has a
    result with `error`; no position ends the others.

    `limit` is that of each position: time, depth, nodes or mate. `workers` processes search one position each (None:
    as many as there are usable cores, for `threads_per_position` of them each), with nothing known from other
    positions. When fewer positions are left than workers, the free cores join the searches that go on; with
    `reproducible` they do not, and with one thread and a limit of depth or nodes every answer is the same each time.
    `hash_mb` is MiB of table for each worker (None: what such a search can use, `useful_hash_mb`); `syzygy` folders of
    endgame tables, asked about the root; `cores` the numbers of those to run on, each worker bound to its own; `nice`
    is added to the workers' niceness. `policy`, `pruning`: see `psearch.search`.

    `cluster` has other machines do it, by Ray (docs/guides/cluster.md): `auto`, `local`, `HOST:PORT` or
    `ray://HOST[:PORT]`. `workers` then are at most so many, None all that there is room for; cores do not join others.
    What happens to machines is logged as a warning of the logger `psearch`.

    Raises PsearchError for a bad argument, `psearch.WorkerDied` when no processes can be had, and what the iterable
    raises; then, and when the results are closed, everything ends at once.

    >>> import chess.engine, psearch
    >>> fens = ["6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1", "7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"]
    >>> with psearch.analyse_many(fens, chess.engine.Limit(depth=4), ordered=True) as results:
    ...     [str(result.bestmove) for result in results]
    ['e1e8', 'g5g7']
    """
    return ManyResults(
        positions,
        _checked(
            limit,
            workers,
            threads_per_position,
            multipv,
            ordered,
            reproducible,
            hash_mb,
            SearchOptions(policy=policy, pruning=pruning_named(pruning)),
            syzygy,
            cores,
            nice,
            cluster,
        ),
    )


def _checked(
    limit: chess.engine.Limit,
    workers: int | None,
    threads: int,
    multipv: int,
    ordered: bool,
    reproducible: bool,
    hash_mb: int | None,
    options: SearchOptions,
    syzygy: str,
    cores: Sequence[int] | None,
    nice: int,
    cluster: str | None,
) -> _Wanted:
    """Raises PsearchError for what makes no sense."""
    limits = _limits(limit)
    threads = whole("threads_per_position", threads, 1, MAX_THREADS)
    numbers = () if cores is None else tuple(whole("a core", core, 0, MAX_CORE) for core in cores)
    if cores is not None and not numbers:
        raise PsearchError("cores is empty: there is nothing to run on")
    if cluster is not None and (numbers or nice):
        raise PsearchError("cores and nice are of this machine: leave them out with a cluster")
    if workers is None and cluster is not None:
        workers = MAX_THREADS  # as many as there are
    if workers is None:
        workers = max(1, (len(set(numbers)) or usable_cores()) // threads)
    workers = whole("workers", workers, 1, MAX_THREADS)
    size = useful_hash_mb(limits, threads) if hash_mb is None else whole("hash_mb", hash_mb, 1, MAX_HASH_MB)
    return _Wanted(
        limits,
        whole("multipv", multipv, 1, MAX_LINES),
        workers,
        bool(ordered),
        0 if reproducible or cluster is not None else workers * threads,
        HandSettings(threads, size, options, syzygy),
        numbers,
        whole("nice", nice, 0, 19),
        cluster,
    )


def _limits(limit: chess.engine.Limit) -> Limits:
    limits = to_limits(limit)
    if limit.white_clock is not None or limit.black_clock is not None:
        raise PsearchError("a limit of analyse_many has no clock: give time, depth, nodes or mate")
    if limit.time is not None:
        limits = Limits(limits.depth, limit.time * 1000, limits.nodes, limits.mate)
    if limits == Limits():
        raise PsearchError("a limit must be given: time, depth, nodes or mate, as chess.engine.Limit(time=1.0)")
    return limits


class AsyncManyResults:
    """The results of `psearch.analyse_many_async`: an asynchronous iterator and context manager.

    An await that is cancelled ends the analysis.
    """

    def __init__(self, positions: Iterable[Entry], make: partial[ManyResults]) -> None:
        self._make = make
        self._positions = positions
        self._results: ManyResults | None = None
        self._is_closed = False
        self._using = threading.Lock()
        """held by the thread that uses the results"""

    async def __aenter__(self) -> AsyncManyResults:
        await in_thread(self._open, self._end)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncManyResults:
        return self

    async def __anext__(self) -> PositionResult:
        result = await in_thread(self._next, self._end)
        if result is None:
            raise StopAsyncIteration
        return result

    async def close(self) -> None:
        """End all searches and workers. There are no more results then. May be called twice."""
        self._end()
        await in_thread(self._close)

    def _end(self) -> None:
        """At once, from the loop: what goes on in threads ends soon."""
        self._is_closed = True
        if self._results is not None:
            self._results._stop()

    def _open(self) -> ManyResults | None:
        if self._is_closed:
            return None
        if self._results is None:
            self._results = self._make(self._positions)
        return self._results

    def _next(self) -> PositionResult | None:
        with self._using:
            results = self._open()
            found = next(results, None) if results is not None else None
            if self._is_closed:
                self._close_results()
                return None
            return found

    def _close(self) -> None:
        with self._using:
            self._close_results()

    def _close_results(self) -> None:
        if self._results is not None:
            self._results.close()


def analyse_many_async(positions: Iterable[Entry], limit: chess.engine.Limit, **arguments: Any) -> AsyncManyResults:
    """`psearch.analyse_many` for asyncio: the same arguments, an asynchronous iterator and context manager.

    The loop is never blocked; `positions` is read in other threads.

    >>> import asyncio, chess.engine, psearch
    >>> async def main():
    ...     limit = chess.engine.Limit(depth=4)
    ...     async with psearch.analyse_many_async(["7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"], limit) as results:
    ...         return [str(result.bestmove) async for result in results]
    >>> asyncio.run(main())
    ['g5g7']
    """
    return AsyncManyResults(positions, partial(analyse_many, limit=limit, **arguments))
