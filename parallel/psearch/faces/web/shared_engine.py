"""The engine that all open pages share.

There are two kinds of use. An *analysis* runs until it is ended; there is only one, that of the page that asked last,
and the page that loses the engine is informed. A *task*, such as a move in a game or a change of workers, ends by
itself. Tasks run in the order of their requests; an analysis pauses for them and continues afterwards. So a move never
waits for an analysis, and no page loses the engine unnoticed.
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
"""Interval at which the lines of an analysis are sent to a page, in seconds."""
_HASH_SHARE = 4
"""Largest table as a divisor of the usable memory."""
_MOST_NOTES = 50


@dataclass(frozen=True)
class SharedSettings:
    """Settings that all pages share. Files come from the command line only, never from a page."""

    threads: int
    hash_mb: int
    game: str = ""
    """File of a user's game; empty for none."""
    policies: tuple[str, ...] = ()
    """Files of policies that the laboratory offers."""
    rules: str = ""
    """File of rules that the laboratory offers; empty for none."""


class Bounds(NamedTuple):
    """Largest values that pages may set."""

    threads: int
    hash_mb: int


def bounds_of(settings: SharedSettings) -> Bounds:
    """Return the usable cores and a quarter of the usable memory, or the values of the command line if larger."""
    most_mb = min(MAX_HASH_MB, usable_memory_mb() // _HASH_SHARE)
    return Bounds(max(usable_cores(), settings.threads), max(most_mb, settings.hash_mb))


@dataclass(eq=False)
class WantedAnalysis:
    """Analysis that a page has requested."""

    owner: object
    board: chess.Board
    """Position to search; must not be changed."""
    multipv: int
    options: dict[str, Any]
    """Engine options of this search, such as `Policy`."""
    show: Callable[[list[chess.engine.InfoDict]], None]
    """Takes the lines, best first, about every `TICK_S`."""
    tell: Callable[[str, str], None]
    """Takes state and reason: `searching`, `waiting`, `done`, `taken` or `failed`; after `taken` perhaps `free`."""


class SharedEngine:
    """Starts, shares and ends the engine. Used in the event loop's thread only."""

    def __init__(self, settings: SharedSettings, send_all: Callable[[str, dict[str, Any]], None]) -> None:
        self.settings = settings
        self.bounds = bounds_of(settings)
        self.state = "starting"
        """State: `starting`, `compiling`, `ready` or `failed`."""
        self.progress = ""
        """Progress of the compiler, or the reason of the failure."""
        self.notes: list[str] = []
        """Latest notes about problems that were solved."""
        self._send_all = send_all
        self._engine: AsyncEngine | None = None
        self._lock = asyncio.Lock()
        """Held while the engine is used."""
        self._tasks = 0
        """Number of tasks that use the engine or wait for it."""
        self._cores = asyncio.Lock()
        """Held while other processes use the cores."""
        self._pauses: list[str] = []
        """Reasons why no analysis may run now."""
        self._wanted: WantedAnalysis | None = None
        self._taken: list[WantedAnalysis] = []
        """Analyses that have lost the engine to others, latest last."""
        self._running: AsyncAnalysis | None = None
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        """Set when the engine is ready or has failed."""
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
        """Return the state of the engine for the pages."""
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
        """Load the kernels and start the workers, in the background."""
        self._watch = _Warnings(self.note)
        logging.getLogger("psearch").addHandler(self._watch)
        self._work = asyncio.create_task(self._serve())

    async def close(self) -> None:
        """End the search and the engine."""
        self._wanted = None
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        if self._watch is not None:
            logging.getLogger("psearch").removeHandler(self._watch)
        if self._engine is not None:
            await self._engine.close()

    def note(self, text: str) -> None:
        """Tell all pages of a problem that was solved, such as a lost worker."""
        self.notes = [*self.notes, text][-_MOST_NOTES:]
        self._send_all("engine.note", {"text": text})

    def analyse(self, wanted: WantedAnalysis) -> None:
        """Begin an analysis instead of the present one."""
        former, self._wanted = self._wanted, wanted
        self._taken = [other for other in self._taken if other.owner is not wanted.owner]
        if former is not None and former.owner is not wanted.owner:
            self._taken.append(former)
            former.tell("taken", "another tab is using the engine")
        self._begin_again()

    def end_analysis(self, owner: object) -> None:
        """End the analysis of an owner, if there is one."""
        self._taken = [other for other in self._taken if other.owner is not owner]
        if self._wanted is not None and self._wanted.owner is owner:
            self._begin_again()
            self._give_back()

    @contextlib.asynccontextmanager
    async def task(self) -> AsyncIterator[AsyncEngine]:
        """Wait for one's turn and yield the engine. Raises PsearchError if there is none."""
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
        """Reserve the cores for other processes: no analysis runs inside, but tasks do. reason: text for the pages."""
        async with self._cores:
            self._pauses.append(reason)
            self._begin_again()
            try:
                yield
            finally:
                self._pauses.remove(reason)
                self._begin_again()

    async def configure(self, threads: int, hash_mb: int) -> None:
        """Change the workers. Raises PsearchError if that fails; the former ones stay then."""
        if not (1 <= threads <= self.bounds.threads and 1 <= hash_mb <= self.bounds.hash_mb):
            raise PsearchError(f"at most {self.bounds.threads} threads and {self.bounds.hash_mb} MiB of hash")
        async with self.task() as engine:
            await engine.configure({"Threads": threads, "Hash": hash_mb})
            self.settings = replace(self.settings, threads=threads, hash_mb=hash_mb)
        self._send_all("engine.state", self.facts)

    async def forget(self) -> None:
        """Clear the transposition table."""
        async with self.task() as engine:
            await engine.new_game()

    def _begin_again(self) -> None:
        """Stop the running search, so that the one requested now can begin."""
        if self._running is not None:
            self._running.stop()
        self._changed.set()

    async def _serve(self) -> None:
        """Start the engine, then run analyses until cancelled."""
        loop = asyncio.get_running_loop()

        def progress(text: str) -> None:
            loop.call_soon_threadsafe(self._enter, "compiling", text)

        try:
            await in_thread(lambda: load_kernels(progress=progress))
            self._engine = AsyncEngine(threads=self.settings.threads, hash_mb=self.settings.hash_mb, watched=True)
            await self._engine.initialize()
            self._enter("ready")
            await self._run()
        except Exception as error:  # any error: the page must report it, since this task is not awaited
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
            return  # a late report of the compiler
        self.state, self.progress = state, progress
        if state in ("ready", "failed"):
            self._settled.set()
        self._send_all("engine.state", self.facts)

    async def _search(self, wanted: WantedAnalysis) -> None:
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
                async for _ in analysis:  # read from `multipv` instead
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
        if not self._changed.is_set():  # it was not ended by a request
            self._finish(wanted, "done", "")

    def _finish(self, wanted: WantedAnalysis, state: str, reason: str) -> None:
        wanted.tell(state, reason)
        if self._wanted is wanted:
            self._give_back()

    def _give_back(self) -> None:
        """End the requested analysis, and inform the page that had the engine before."""
        self._wanted = None
        if self._taken:
            self._taken.pop().tell("free", "")

    async def _tick(self, wanted: WantedAnalysis, analysis: AsyncAnalysis) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            if self._wanted is wanted:
                wanted.show(analysis.multipv)


class _Warnings(logging.Handler):
    """Passes warnings of the engine from any thread to the event loop in which it was made."""

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._take, self._loop = take, asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._take, record.getMessage())
