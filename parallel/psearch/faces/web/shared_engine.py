"""The engine, which all open pages share, one at a time.

There are two kinds of uses. An *analysis* goes on until somebody ends it; there is one at a time, that of the page that
asked last, and the page that had it is told. A *task* takes a while and is done then: a move in a game, other workers.
Tasks come one after the other in the order in which they were asked for; an analysis makes room for them and goes on
afterwards. So nobody's move waits for somebody's analysis, and no page takes the engine from another unseen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import chess
import chess.engine

from psearch.api.asynchronous import AsyncAnalysis, AsyncEngine, in_thread
from psearch.arena.control_groups import usable_cores, usable_memory_mb
from psearch.defaults import MAX_HASH_MB
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels

TICK_S = 0.05
"""how often a page is shown what an analysis has found, in seconds"""
_HASH_SHARE = 4
"""A table may take the usable memory divided by this."""
_MOST_NOTES = 50


@dataclass(frozen=True)
class EngineSettings:
    """Says what all pages share."""

    threads: int
    hash_mb: int
    game: str = ""
    """a file of a game of the user's; empty: none. Files are those of the command line: no page names one"""
    policies: tuple[str, ...] = ()
    """files of policies that the laboratory offers"""
    rules: str = ""
    """a file of rules that it offers; empty: none"""


class Bounds(NamedTuple):
    """Limits what pages may set."""

    threads: int
    hash_mb: int


def bounds_of(settings: EngineSettings) -> Bounds:
    """Return the usable cores, and a quarter of the usable memory; more where the command line says so."""
    most_mb = min(MAX_HASH_MB, usable_memory_mb() // _HASH_SHARE)
    return Bounds(max(usable_cores(), settings.threads), max(most_mb, settings.hash_mb))


@dataclass(eq=False)
class WantedAnalysis:
    """Describes an analysis that somebody wants."""

    owner: object
    board: chess.Board
    """not changed by anybody any more"""
    multipv: int
    options: dict[str, Any]
    """of this search: `Policy`, `Pruning`"""
    show: Callable[[list[chess.engine.InfoDict]], None]
    """is given the lines, best first, about every `TICK_S`"""
    tell: Callable[[str, str], None]
    """is told what becomes of it, `searching`, `waiting`, `done`, `taken` or `failed`, and why; after `taken`, perhaps,
    that the engine is `free`"""


class SharedEngine:
    """Starts the engine, shares it out, ends it. For the loop's thread only."""

    def __init__(self, settings: EngineSettings, tell_all: Callable[[str, dict[str, Any]], None]) -> None:
        self.settings = settings
        self.bounds = bounds_of(settings)
        self.state = "starting"
        """`starting`, `compiling`, `ready` or `failed`"""
        self.progress = ""
        """of the compiler; or what failed"""
        self.notes: list[str] = []
        """what went wrong and was mended, the latest ones"""
        self._tell_all = tell_all
        self._engine: AsyncEngine | None = None
        self._lock = asyncio.Lock()
        """held by who uses the engine"""
        self._tasks = 0
        """that use the engine, or wait for it"""
        self._cores = asyncio.Lock()
        """held by whose processes use the cores beside the engine"""
        self._pauses: list[str] = []
        """why no analysis may run"""
        self._wanted: WantedAnalysis | None = None
        self._taken: list[WantedAnalysis] = []
        """analyses that others have taken the engine from, the latest last"""
        self._running: AsyncAnalysis | None = None
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        """the engine is ready, or there is none"""
        self._work: asyncio.Task[None] | None = None
        self._watch: _Warnings | None = None

    @property
    def engine(self) -> AsyncEngine:
        """Return the engine. Raises PsearchError while there is none."""
        if self._engine is None or self.state != "ready":
            raise PsearchError(f"no engine: {self.progress}" if self.state == "failed" else "the engine is starting")
        return self._engine

    @property
    def facts(self) -> dict[str, Any]:
        """Return what pages show of the engine."""
        return {
            "state": self.state,
            "text": self.progress,
            "threads": self.settings.threads,
            "hash": self.settings.hash_mb,
            "mostThreads": self.bounds.threads,
            "mostHash": self.bounds.hash_mb,
            "notes": self.notes,
        }

    def start(self) -> None:
        """Begin to load the kernels and to start the workers, in the background."""
        self._watch = _Warnings(self.note)
        logging.getLogger("psearch").addHandler(self._watch)
        self._work = asyncio.create_task(self._serve())

    async def close(self) -> None:
        """End what is searched, and the engine."""
        self._wanted = None
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        if self._watch is not None:
            logging.getLogger("psearch").removeHandler(self._watch)
        if self._engine is not None:
            await self._engine.close()

    def note(self, text: str) -> None:
        """Note that something went wrong and was mended: a worker was lost."""
        self.notes = [*self.notes, text][-_MOST_NOTES:]
        self._tell_all("engine.note", {"text": text})

    def analyse(self, wanted: WantedAnalysis) -> None:
        """Begin this analysis, in place of the one that there is."""
        former, self._wanted = self._wanted, wanted
        self._taken = [other for other in self._taken if other.owner is not wanted.owner]
        if former is not None and former.owner is not wanted.owner:
            self._taken.append(former)
            former.tell("taken", "another tab is using the engine")
        self._begin_again()

    def end_analysis(self, owner: object) -> None:
        """End the analysis of this owner, if it has one."""
        self._taken = [other for other in self._taken if other.owner is not owner]
        if self._wanted is not None and self._wanted.owner is owner:
            self._begin_again()
            self._give_back()

    @contextlib.asynccontextmanager
    async def task(self) -> AsyncIterator[AsyncEngine]:
        """Yield the engine for oneself, when it is one's turn. Raises PsearchError when there is none."""
        self._tasks += 1
        self._begin_again()
        try:
            await self._settled.wait()
            async with self._lock:
                yield self.engine
        finally:
            self._tasks -= 1
            self._begin_again()

    @property
    def has_cores(self) -> bool:
        """Tell whether `cores` can be entered at once."""
        return not self._cores.locked()

    @contextlib.asynccontextmanager
    async def cores(self, reason: str) -> AsyncIterator[None]:
        """Have the cores: inside, no analysis runs, for this reason; tasks do. One after the other: processes of their
        own need the cores."""
        async with self._cores:
            self._pauses.append(reason)
            self._begin_again()
            try:
                yield
            finally:
                self._pauses.remove(reason)
                self._begin_again()

    async def configure(self, threads: int, hash_mb: int) -> None:
        """Start other workers. Raises PsearchError when they are not to be had: all stays as it was then."""
        if not (1 <= threads <= self.bounds.threads and 1 <= hash_mb <= self.bounds.hash_mb):
            raise PsearchError(f"at most {self.bounds.threads} threads and {self.bounds.hash_mb} MiB of hash")
        async with self.task() as engine:
            await engine.configure({"Threads": threads, "Hash": hash_mb})
            self.settings = replace(self.settings, threads=threads, hash_mb=hash_mb)
        self._tell_all("engine.state", self.facts)

    async def forget(self) -> None:
        """Empty the table."""
        async with self.task() as engine:
            await engine.new_game()

    def _begin_again(self) -> None:
        """Something has changed: what runs ends, and what is wanted now begins."""
        if self._running is not None:
            self._running.stop()
        self._changed.set()

    async def _serve(self) -> None:
        """Start the engine, then run what is wanted, until this is cancelled."""
        loop = asyncio.get_running_loop()

        def progress(text: str) -> None:
            loop.call_soon_threadsafe(self._enter, "compiling", text)

        try:
            await in_thread(lambda: load_kernels(progress=progress))
            self._engine = AsyncEngine(threads=self.settings.threads, hash_mb=self.settings.hash_mb, watched=True)
            await self._engine.initialize()
            self._enter("ready")
            await self._run()
        except Exception as error:  # of whatever kind: somebody looks at the page, and nobody at this task
            self._enter("failed", str(error) or type(error).__name__)
            if self._wanted is not None:
                self._finish(self._wanted, "failed", self.progress)
            if not isinstance(error, PsearchError):
                raise

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            wanted = self._wanted
            if wanted is None:
                continue
            if self._pauses:
                wanted.tell("waiting", self._pauses[-1])
            elif self._tasks:
                wanted.tell("waiting", "the engine is making a move")
            else:
                async with self._lock:
                    await self._search(wanted)

    def _enter(self, state: str, progress: str = "") -> None:
        if self.state == "failed" or (self.state == "ready" and state != "failed"):
            return  # what the compiler said comes late
        self.state, self.progress = state, progress
        if state in ("ready", "failed"):
            self._settled.set()
        self._tell_all("engine.state", self.facts)

    async def _search(self, wanted: WantedAnalysis) -> None:
        """Search until the end, or until something else is wanted."""
        if self._wanted is not wanted or self._tasks or self._pauses:
            self._changed.set()
            return
        wanted.tell("searching", "")
        try:
            analysis = await self.engine.analysis(wanted.board, multipv=wanted.multipv, options=wanted.options)
            self._running = analysis
            if self._changed.is_set():
                analysis.stop()
            ticking = asyncio.create_task(self._tick(wanted, analysis))
            try:
                async for _ in analysis:  # `multipv` has what they say
                    pass
            finally:
                self._running = None
                analysis.stop()
                ticking.cancel()
        except PsearchError as error:
            self._finish(wanted, "failed", str(error))
            return
        if self._wanted is wanted:
            wanted.show(analysis.multipv)
        if not self._changed.is_set():  # nobody has ended it
            self._finish(wanted, "done", "")

    def _finish(self, wanted: WantedAnalysis, state: str, reason: str) -> None:
        wanted.tell(state, reason)
        if self._wanted is wanted:
            self._give_back()

    def _give_back(self) -> None:
        """End the analysis that is wanted: tell who had the engine before."""
        self._wanted = None
        if self._taken:
            self._taken.pop().tell("free", "")

    async def _tick(self, wanted: WantedAnalysis, analysis: AsyncAnalysis) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            if self._wanted is wanted:
                wanted.show(analysis.multipv)


class _Warnings(logging.Handler):
    """Passes on what the engine warns of, from whatever thread, to the loop that it was made in."""

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._take, self._loop = take, asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._take, record.getMessage())
