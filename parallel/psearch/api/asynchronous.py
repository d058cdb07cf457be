"""The engine on asyncio, with the methods of `chess.engine.Protocol`. Each runs a method of `Engine` in a thread.

A search stops when its await is cancelled or dropped, and when the loop is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, Self, TypeVar, Unpack, overload

import chess
import chess.engine

from psearch.api.blocking import CallKeywords, Described, Engine, keep_latest
from psearch.api.question import Place, Question, ask
from psearch.closing import Closing
from psearch.options import Settings
from psearch.processes.control import SearchControl
from psearch.processes.request import OnInfo
from psearch.results import Info, PsearchError, Result
from psearch.settings import SearchKeywords, check_keywords, lists_settings

if TYPE_CHECKING:
    from psearch.trace.recorder import Recorder

T = TypeVar("T")
C = TypeVar("C", bound=Closing)
P = ParamSpec("P")


def _as_in(
    method: Callable[Concatenate[Engine, P], object],
) -> Callable[[Callable[..., Coroutine[Any, Any, T]]], Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, T]]]:
    """Decorate a coroutine with the name and the signature of a method of `Engine`."""

    def decorate(function: Any) -> Any:
        doc = function.__doc__ or f"Do what `Engine.{method.__name__}` does."
        wrapped = functools.wraps(method)(function)
        wrapped.__doc__ = doc
        return wrapped

    return decorate


def _in_thread(
    method: Callable[Concatenate[Engine, P], T],
) -> Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, T]]:
    """Return a coroutine that runs a short method of `Engine` in a thread. When the await is cancelled the method is
    finished first: the next call must not meet it half done."""

    @_as_in(method)
    async def call(self: AsyncEngine, *arguments: P.args, **named: P.kwargs) -> T:
        engine = await self._started()
        return await in_thread(lambda: method(engine, *arguments, **named), lambda: None)

    return call


@lists_settings
class AsyncEngine(Described):
    """A chess engine for asyncio: `psearch.Engine` with its methods as coroutines; an async context manager.

    It takes the arguments of `Engine`, and raises PsearchError as `Engine` does. `async with`, `initialize` or the
    first call that needs workers starts them, without blocking the loop. An engine runs one search at a time; a program
    may have any number of engines. Cancelling a call (`asyncio.wait_for`, a task group, Ctrl-C) stops its search, which
    takes a few milliseconds.

    >>> import asyncio, chess, psearch
    >>> async def main():
    ...     async with psearch.AsyncEngine(hash_mb=1) as engine:
    ...         played = await engine.play("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1", chess.engine.Limit(depth=3))
    ...         print(played.move)
    >>> asyncio.run(main())
    g5g7
    """

    def __init__(
        self,
        threads: int = 1,
        hash_mb: int | None = None,
        *,
        watched: bool = False,
        **settings: Unpack[SearchKeywords],
    ) -> None:
        self._first_settings = Settings.of(threads=threads, hash_mb=hash_mb, **settings)
        self._make = partial(Engine, threads, hash_mb, watched=watched, **settings)
        self._engine: Engine | None = None
        self._is_closed = False
        self._changing = threading.Lock()
        """Held by the thread that starts or ends the engine."""

    async def __aenter__(self) -> AsyncEngine:
        try:
            await self.initialize()
        except BaseException:
            threading.Thread(target=self._close, name="psearch-close").start()  # `__aexit__` will not be called
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def initialize(self) -> None:
        """Start the workers, unless they are running."""
        await in_thread(self._open)

    async def close(self) -> None:
        """Stop the search, end the workers and free the memory. May be called twice."""
        self.stop()
        await in_thread(self._close)

    async def quit(self) -> None:
        """Do what `close` does."""
        await self.close()

    def stop(self) -> None:
        """Stop the running search, if any; its caller gets the best result so far. May be called from any thread."""
        if self._engine is not None:
            self._engine.stop()

    new_game = _in_thread(Engine.new_game)
    ping = _in_thread(Engine.ping)
    configure = _in_thread(Engine.configure)
    send_game_result = _in_thread(Engine.send_game_result)

    async def send_opponent_information(
        self, *, opponent: chess.engine.Opponent | None = None, engine_rating: int | None = None
    ) -> None:
        """Accept information about the opponent and ignore it: psearch plays the same against all opponents."""

    @overload
    async def analyse(
        self, board: Place, limit: chess.engine.Limit | None = ..., *, multipv: None = ..., **how: Unpack[CallKeywords]
    ) -> chess.engine.InfoDict: ...

    @overload
    async def analyse(
        self, board: Place, limit: chess.engine.Limit | None = ..., *, multipv: int, **how: Unpack[CallKeywords]
    ) -> list[chess.engine.InfoDict]: ...

    @_as_in(Engine.analyse)  # type: ignore[misc]  # it takes what `Engine.analyse` takes
    async def analyse(self, *arguments: Any, **named: Any) -> Any:
        """Search a position, as `Engine.analyse` does."""
        question, _ = self._ask(Engine.analyse, arguments, named)
        return await self._searched(lambda engine, *how: engine._analysed(question, *how))

    @_as_in(Engine.play)
    async def play(self, *arguments: Any, **named: Any) -> chess.engine.PlayResult:
        """Choose a move, as `Engine.play` does."""
        question, given = self._ask(Engine.play, arguments, named)
        return await self._searched(lambda engine, *how: engine._played(question, *how, ponder=given["ponder"]))

    @_as_in(Engine.analysis)
    async def analysis(self, *arguments: Any, **named: Any) -> AsyncAnalysis:
        """Begin a search in the background, as `Engine.analysis` does."""
        question, _ = self._ask(Engine.analysis, arguments, named)
        control = SearchControl()
        found = AsyncAnalysis(control.stop)
        engine = await self._started()
        await in_thread(lambda: engine._start(question, control, found.take, found.end), control.stop)
        return found

    # -- methods for engines in other programs -------------------------------------------------------------------------

    @classmethod
    async def popen(cls, *arguments: object, **named: object) -> NoReturn:
        """Raise PsearchError: there is no program to start."""
        raise PsearchError(
            "psearch.AsyncEngine(threads=2) starts its own processes; for the UCI engine take "
            "chess.engine.popen_uci(['psearch', 'uci'])"
        )

    async def communicate(self, command_factory: object) -> NoReturn:
        """Raise PsearchError: there is no protocol."""
        raise PsearchError("psearch.AsyncEngine speaks no protocol: use analysis(), which reports as it searches")

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _settings(self) -> Settings:  # type: ignore[override]  # nothing sets it
        return self._first_settings if self._engine is None else self._engine._settings

    def _ask(
        self, method: Callable[..., object], arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[Question, dict[str, Any]]:
        """Return the checked question of a call of a method of `Engine`, and its arguments by name. This happens before
        anything is awaited."""
        check_keywords(method, named)
        bound = inspect.signature(method).bind(self, *arguments, **named)
        bound.apply_defaults()
        given = bound.arguments
        asked: dict[str, Any] = {name: given.get(name) for name in ("multipv", "game", "info", "root_moves")}
        settings = self._settings.for_one_search(given["options"])
        is_endless = method is Engine.analysis
        return ask(given["board"], given["limit"], settings, is_endless=is_endless, **asked), given

    async def _searched(self, search: Callable[[Engine, SearchControl, OnInfo], T]) -> T:
        """Run a search in a thread and return its result. It ends when the await is cancelled or the loop is closed."""
        control, loop = SearchControl(), asyncio.get_running_loop()

        def watch(info: Info) -> None:  # called several times a second
            if loop.is_closed():
                control.stop()

        engine = await self._started()
        return await in_thread(lambda: search(engine, control, watch), control.stop)

    def _recorder(self) -> Recorder | None:
        """Return the recorder of `Engine`; None also before the workers have started."""
        return None if self._engine is None else self._engine._recorder()

    async def _started(self) -> Engine:
        """Return the started engine. A cancelled await does not wait for the start, which takes long."""
        return await in_thread(self._open) if self._engine is None else self._engine

    def _open(self) -> Engine:
        """Return the engine, after starting it if necessary; called in a thread."""
        with self._changing:
            if self._is_closed:
                raise PsearchError("this engine is closed")
            if self._engine is None:
                self._engine = self._make()
            return self._engine

    def _close(self) -> None:
        with self._changing:
            self._is_closed = True
            if self._engine is not None:
                self._engine.close()


class AsyncAnalysis(chess.engine.AnalysisResult):
    """A search in the background, as a `chess.engine.AnalysisResult`. `AsyncEngine.analysis` makes one in a running
    loop."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__(stop)
        self._loop = asyncio.get_running_loop()
        self._end_search = stop

    def __aiter__(self) -> AsyncAnalysis:
        return self

    def __enter__(self) -> AsyncAnalysis:
        return self

    def post(self, info: chess.engine.InfoDict) -> None:
        """Post an info; called in the loop."""
        super().post(info)  # merges it into the line's last info, since UCI engines report only changes
        keep_latest(self.multipv, info)

    def take(self, info: chess.engine.InfoDict, is_live: bool) -> None:
        """Receive a report; called in the searching thread."""
        self._call(partial(keep_latest, self.multipv) if is_live else self.post, info)

    def end(self, result: Result | None, error: BaseException | None) -> None:
        """End the analysis; called in the searching thread when it is over."""
        if result is not None:
            self._call(self.set_finished, chess.engine.BestMove(result.bestmove, result.ponder))
        else:
            self._call(self.set_exception, error)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop is closed: nobody wants the rest
            self._end_search()


async def in_thread(function: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Run a function in a new thread and return its result: the loop's own threads are few, and searches long.

    When the await is cancelled, `stop` is called and the end of the function awaited; without `stop` the function
    continues alone.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    # marks the exception as seen: no warning when the await was cancelled
    done.add_done_callback(lambda future: future.cancelled() or future.exception())

    def run() -> None:
        try:
            settle: Callable[[], object] = partial(done.set_result, function())
        except BaseException as error:  # raised where the result is awaited
            settle = partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: done.cancelled() or settle())

    try:
        threading.Thread(target=run, name="psearch-async", daemon=True).start()
    except RuntimeError as error:
        raise PsearchError(f"cannot start a thread for this call: {error}") from None
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
            await asyncio.wait([done])
        raise


class Started(Generic[C]):
    """Results that a thread makes when they are first asked for: processes take their time to start, and a loop has
    none. An asynchronous context manager."""

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._results: C | None = None
        self._is_stopped = False
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all searches and workers; no more results follow. May be called twice, from the task that iterates."""
        self._stop()
        results = await self._start()
        if results is not None:
            await in_thread(results.close)

    def _stop(self) -> None:
        """Ask all threads to end soon; called in the loop."""
        self._is_stopped = True

    async def _start(self) -> C | None:
        """Return the results; None if they were stopped before they were made."""
        async with self._starting:
            if self._results is None and not self._is_stopped:
                try:
                    await in_thread(self._keep, self._stop)
                except asyncio.CancelledError:
                    if self._results is not None:  # no caller has them to close
                        await in_thread(self._results.close)
                    raise
            return self._results

    def _keep(self) -> None:
        """Make the results; a call that is cancelled meanwhile still finds them."""
        self._results = self._make()
