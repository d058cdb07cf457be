"""The engine on asyncio: the methods of `chess.engine.Protocol`, each a method of `Engine` that runs in a thread.

An await that is cancelled stops what it waits for. A loop that is closed, or an await that is dropped, stops it too.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, Unpack, overload

import chess
import chess.engine

from psearch.api.blocking import Asked, Described, Engine, keep_latest
from psearch.api.question import Place, Question, ask
from psearch.options import Settings
from psearch.processes.control import SearchControl
from psearch.processes.request import OnInfo
from psearch.results import Info, PsearchError, Result
from psearch.settings import SearchKeywords, lists_settings

if TYPE_CHECKING:
    from psearch.trace.recorder import Recorder

T = TypeVar("T")
P = ParamSpec("P")


def _as_in(
    method: Callable[Concatenate[Engine, P], object],
) -> Callable[[Callable[..., Coroutine[Any, Any, T]]], Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, T]]]:
    """Give a coroutine name and signature of a method of `Engine`."""

    def decorate(function: Any) -> Any:
        doc = function.__doc__ or f"Do what `Engine.{method.__name__}` does."
        wrapped = functools.wraps(method)(function)
        wrapped.__doc__ = doc
        return wrapped

    return decorate


def _in_thread(
    method: Callable[Concatenate[Engine, P], T],
) -> Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, T]]:
    """Return a coroutine that runs a method of `Engine` in a thread. Such a method takes little time, and must not be
    half done when the next call comes: it goes on when the await is cancelled, and is waited for."""

    @_as_in(method)
    async def call(self: AsyncEngine, *arguments: P.args, **named: P.kwargs) -> T:
        engine = await self._started()
        return await in_thread(lambda: method(engine, *arguments, **named), lambda: None)

    return call


@lists_settings
class AsyncEngine(Described):
    """`psearch.Engine` for asyncio: the same arguments, and the same methods as coroutines; an async context manager.

    The workers start with `async with`, `initialize` or the first call that needs them, without blocking the loop. One
    search at a time; any number of engines at once. Cancelling a call (`asyncio.wait_for`, a task group, Ctrl-C) stops
    its search and waits the few milliseconds that takes. Raises PsearchError as `Engine` does.

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
        """held by the thread that starts or ends the engine"""

    async def __aenter__(self) -> AsyncEngine:
        try:
            await self.initialize()
        except BaseException:
            threading.Thread(target=self._close, name="psearch-close").start()  # there will be no `__aexit__`
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def initialize(self) -> None:
        """Start the workers, unless they have been started."""
        await in_thread(self._open)

    async def close(self) -> None:
        """Stop what is being searched, end the workers, give the memory back. May be called twice."""
        self.stop()
        await in_thread(self._close)

    async def quit(self) -> None:
        """Do what `close` does."""
        await self.close()

    def stop(self) -> None:
        """End the search that is running, if any; its caller gets the best found so far. From any thread."""
        if self._engine is not None:
            self._engine.stop()

    new_game = _in_thread(Engine.new_game)
    ping = _in_thread(Engine.ping)
    configure = _in_thread(Engine.configure)
    send_game_result = _in_thread(Engine.send_game_result)

    async def send_opponent_information(
        self, *, opponent: chess.engine.Opponent | None = None, engine_rating: int | None = None
    ) -> None:
        """Take what such programs tell; this engine plays against everybody in the same way."""

    @overload
    async def analyse(
        self, board: Place, limit: chess.engine.Limit | None = ..., *, multipv: None = ..., **how: Unpack[Asked]
    ) -> chess.engine.InfoDict: ...

    @overload
    async def analyse(
        self, board: Place, limit: chess.engine.Limit | None = ..., *, multipv: int, **how: Unpack[Asked]
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
        """Begin to search in the background, as `Engine.analysis`."""
        question, _ = self._ask(Engine.analysis, arguments, named)
        control = SearchControl()
        found = AsyncAnalysis(control.stop)
        engine = await self._started()
        await in_thread(lambda: engine._start(question, control, found.take, found.end), control.stop)
        return found

    # -- what only engines in other programs have ----------------------------------------------------------------------

    @classmethod
    async def popen(cls, *arguments: object, **named: object) -> NoReturn:
        """Raises PsearchError: there is no program to start."""
        raise PsearchError(
            "psearch.AsyncEngine(threads=2) starts its own processes; for the UCI engine take "
            "chess.engine.popen_uci(['psearch', 'uci'])"
        )

    async def communicate(self, command_factory: object) -> NoReturn:
        """Raises PsearchError: there is no protocol."""
        raise PsearchError("psearch.AsyncEngine speaks no protocol: use analysis(), which reports as it searches")

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _settings(self) -> Settings:  # type: ignore[override]  # nothing sets it
        return self._first_settings if self._engine is None else self._engine._settings

    def _ask(
        self, method: Callable[..., object], arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[Question, dict[str, Any]]:
        """Return the question that a call of a method of `Engine` with these arguments is, and the arguments by name.
        It is checked here, before anything is awaited."""
        bound = inspect.signature(method).bind(self, *arguments, **named)
        bound.apply_defaults()
        given = bound.arguments
        asked: dict[str, Any] = {name: given.get(name) for name in ("multipv", "game", "info", "root_moves")}
        settings = self._settings.for_one_search(given["options"])
        is_endless = method is Engine.analysis
        return ask(given["board"], given["limit"], settings, is_endless=is_endless, **asked), given

    async def _searched(self, search: Callable[[Engine, SearchControl, OnInfo], T]) -> T:
        """Return what a search in a thread returns. It ends when the await is cancelled, or the loop was closed."""
        control, loop = SearchControl(), asyncio.get_running_loop()

        def watch(info: Info) -> None:  # called several times in a second
            if loop.is_closed():
                control.stop()

        engine = await self._started()
        return await in_thread(lambda: search(engine, control, watch), control.stop)

    def _recorder(self) -> Recorder | None:
        """Return what `Engine._recorder` is; None also before the workers have started."""
        return None if self._engine is None else self._engine._recorder()

    async def _started(self) -> Engine:
        """Return the engine when it has started. A cancelled await does not wait for that, which takes long."""
        return await in_thread(self._open) if self._engine is None else self._engine

    def _open(self) -> Engine:
        """Return the engine, started if need be; called in a thread."""
        with self._changing:
            if self._is_closed:
                raise PsearchError("this engine is closed")
            if self._engine is None:
                self._engine = self._make()
            return self._engine

    def _close(self) -> None:
        """End the engine; called in a thread."""
        with self._changing:
            self._is_closed = True
            if self._engine is not None:
                self._engine.close()


class AsyncAnalysis(chess.engine.AnalysisResult):
    """A search in the background: `chess.engine.AnalysisResult`. Made by `AsyncEngine.analysis`, in a running loop."""

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
        super().post(info)  # which merges it into the line's last one, as programs of UCI say only what is new
        keep_latest(self.multipv, info)

    def take(self, info: chess.engine.InfoDict, is_live: bool) -> None:
        """Take a report; called in the searching thread."""
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
        except RuntimeError:  # the loop is closed: the rest is not wanted
            self._end_search()


async def in_thread(function: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Return the result of a function that runs in a new thread: the loop's threads are few, and searches long.

    When the await is cancelled `stop` is called, and the end of the function awaited; without `stop` it goes on alone.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    # no warning when the await was cancelled and what went wrong is not looked at
    done.add_done_callback(lambda future: future.cancelled() or future.exception())

    def run() -> None:
        try:
            settle: Callable[[], object] = partial(done.set_result, function())
        except BaseException as error:  # handed on to whoever awaits
            settle = partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the result is not wanted
            loop.call_soon_threadsafe(lambda: done.cancelled() or settle())

    try:
        threading.Thread(target=run, name="psearch-async", daemon=True).start()
    except RuntimeError as error:
        raise PsearchError(f"no thread for this call: {error}") from None
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
            await asyncio.wait([done])
        raise
