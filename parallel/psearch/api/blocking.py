"""The engine for Python programs, and its searches in the background.

`Engine` keeps its workers and its table, and takes and returns types of python-chess; `Analysis` corresponds to
`chess.engine.SimpleAnalysisResult`.
"""

from __future__ import annotations

import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, Unpack, overload

import chess
import chess.engine

from psearch.api import LOG
from psearch.api.question import Place, Question, RootMoves, ask
from psearch.arena.system_calls import Owner
from psearch.closing import Closing
from psearch.options import Options, Settings, clears_hash
from psearch.processes.control import SearchControl
from psearch.processes.request import OnInfo
from psearch.processes.time_manager import LagMeter
from psearch.results import Info, PsearchError, Result
from psearch.searcher.notices import Notices
from psearch.searcher.root import Root
from psearch.searcher.searcher import Searcher, Size
from psearch.settings import ENGINE_OPTIONS, SearchKeywords, lists_settings, names_keywords
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.processes.supervisor import Supervisor
    from psearch.trace.recorder import Recorder

_STOPPING_S = 5.0
"""Longest wait for the end of a stopped search, in seconds; it usually ends within milliseconds."""
_NO_OPTIONS: Options = {}
OnFound = Callable[[chess.engine.InfoDict, bool], None]
"""Callback for an info; the flag is True when only its counters are new."""
OnEnd = Callable[[Result | None, BaseException | None], None]
"""Callback for the end of a search: its result, or the exception that ended it."""


class CallKeywords(TypedDict, total=False):
    """Keywords that `analyse`, `play` and `analysis` share."""

    game: object
    info: chess.engine.Info
    root_moves: RootMoves | None
    options: Options


class Described:
    """Name, options and representation of all engines."""

    _settings: Settings
    _is_closed: bool

    def __repr__(self) -> str:
        settings, state = self._settings, ", closed" if self._is_closed else ""
        return f"<psearch.{type(self).__name__} (threads={settings.threads}, hash_mb={settings.hash_mb}{state})>"

    @property
    def options(self) -> chess.engine.UciOptionMap[chess.engine.Option]:
        """Options that `configure` takes, by name; case does not matter."""
        return chess.engine.UciOptionMap((option.name, option.of_chess_engine()) for option in ENGINE_OPTIONS)

    @property
    def id(self) -> Mapping[str, str]:
        """Name and author, as `psearch uci` prints them."""
        return {"name": f"psearch {__version__}", "author": "the psearch authors"}


@lists_settings
class Engine(Closing, Described):
    """A chess engine with its own worker processes; a context manager.

    - threads: number of worker processes, 1 to 1024.
    - hash_mb: size of the transposition table in MiB (None: 256). The table is kept from search to search.
    - watched: record what the workers do, for `psearch.lab.watching`.

    The settings of all searches are keywords, too:

    SETTINGS

    An engine works in any program: with threads, without a `__main__` guard, in Jupyter, several in one process. It has
    the methods of `chess.engine.SimpleEngine`; docs/guides/api.md lists the differences. It runs one search at a time;
    `stop` and `close` may be called from any thread.

    When a worker process dies or stalls, a new one takes its place and the search continues. A warning is logged
    (`logging.getLogger("psearch")`), and is the `string` of the returned info. `psearch.WorkerDied` is raised only if
    there is no result at all. `psearch.PsearchError` is raised for bad arguments, for lack of memory, and in a fork of
    the process that made the engine: each process needs its own.

    >>> import chess, psearch
    >>> with psearch.Engine(threads=2, hash_mb=16) as engine:
    ...     board = chess.Board("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1")
    ...     info = engine.analyse(board, chess.engine.Limit(depth=5))
    ...     info["score"].white(), board.san(info["pv"][0])
    (Mate(+1), 'Re8#')
    """

    def __init__(
        self,
        threads: int = 1,
        hash_mb: int | None = None,
        *,
        watched: bool = False,
        **settings: Unpack[SearchKeywords],
    ) -> None:
        self._settings = Settings.of(threads=threads, hash_mb=hash_mb, **settings)
        self._watched = watched
        self._owner = Owner("engine")
        self._lock = threading.Lock()
        self._control: SearchControl | None = None
        """Control of the present search, or of the last one."""
        self._pondering: Analysis | None = None
        self._game: object = None
        self._seed = ""
        """Seed of the present game for `SearchRequest.seed`; empty without a game, so that searches can be repeated."""
        self._lag = LagMeter(0.0)
        """Lag of the moves played so far."""
        self._is_closed = False
        self._root = Root(self._settings.syzygy, LOG.warning)
        self._searcher = Searcher(Notices(LOG.warning)).start(self._size(self._settings))

    @property
    def threads(self) -> int:
        """Number of worker processes."""
        return self._settings.threads

    @property
    def hash_mb(self) -> int:
        """Size of the transposition table in MiB."""
        return self._settings.hash_mb

    def close(self) -> None:
        """Stop the search, end the workers and free the memory. May be called twice. Has no effect in a fork of the
        process that made the engine."""
        if not self._owner.is_here:
            return
        self.stop()
        self._end_pondering()
        self._is_closed = True
        self._searcher.close()
        self._root.close()

    def quit(self) -> None:
        """Do what `close` does."""
        self.close()

    def stop(self) -> None:
        """Stop the running search, if any; its caller gets the best result so far. May be called from any thread."""
        control = self._control
        if control is not None and self._owner.is_here:
            control.stop()

    def new_game(self) -> None:
        """Forget everything that earlier searches left behind: the transposition table and the histories."""
        with self._alone():
            self._supervisor().forget()

    def ping(self) -> None:
        """Wait until all workers are ready and idle; lost workers are replaced."""
        with self._alone():
            self._supervisor()
            for note in self._searcher.restore():
                LOG.warning(note)

    def configure(self, options: Options) -> None:
        """Set options for all further searches: values by the names of `options`.

        A new number of threads, size of the table, file of rules or file of a policy starts new workers with an empty
        table. Raises PsearchError for unknown options and for lack of memory; nothing changes then.
        """
        settings = self._settings.changed(options)
        root = None if settings.syzygy == self._settings.syzygy else Root(settings.syzygy, LOG.warning)
        with self._alone():
            before = self._settings
            if settings.needs_other_workers(before):
                self._supervisor()
                self._searcher.start(self._size(settings))
                if self._is_closed:  # by another thread meanwhile
                    self._searcher.close()
                    if root is not None:
                        root.close()
                    raise PsearchError("this engine is closed")
            elif clears_hash(options):
                self._supervisor().forget()
            if root is not None:
                self._root.close()
                self._root = root
            self._settings = settings

    def send_opponent_information(
        self, *, opponent: chess.engine.Opponent | None = None, engine_rating: int | None = None
    ) -> None:
        """Accept information about the opponent and ignore it: psearch plays the same against all opponents."""

    def send_game_result(
        self,
        board: chess.Board,
        winner: chess.Color | None = None,
        game_ending: str | None = None,
        game_complete: bool = True,
    ) -> None:
        """Accept the result of a game, and stop pondering. The result is ignored: psearch does not learn from games."""
        self._owner.check()
        self._end_pondering()

    @overload
    def analyse(
        self, board: Place, limit: chess.engine.Limit | None = ..., *, multipv: None = ..., **how: Unpack[CallKeywords]
    ) -> chess.engine.InfoDict: ...

    @overload
    def analyse(
        self, board: Place, limit: chess.engine.Limit | None = ..., *, multipv: int, **how: Unpack[CallKeywords]
    ) -> list[chess.engine.InfoDict]: ...

    @names_keywords
    def analyse(
        self,
        board: Place,
        limit: chess.engine.Limit | None = None,
        *,
        multipv: int | None = None,
        game: object = None,
        info: chess.engine.Info = chess.engine.INFO_ALL,
        root_moves: RootMoves | None = None,
        options: Options = _NO_OPTIONS,
    ) -> chess.engine.InfoDict | list[chess.engine.InfoDict]:
        """Search until a limit is reached and return an info dictionary; with `multipv`, a list of them, best first.

        - board: a `chess.Board`, whose move stack counts as the game's history, a FEN or `startpos`.
        - limit: the limits; None: 5 seconds.
        - multipv: number of lines to find, each with another first move; at most the number of legal moves.
        - game: any object; if it differs from that of the last call, `new_game` is called first.
        - info: the figures to return.
        - root_moves: moves to choose from, as moves, in UCI notation or in SAN.
        - options: options for this search only, as in `configure`.
        """
        question = self._ask(board, limit, options, multipv=multipv, game=game, info=info, root_moves=root_moves)
        return self._analysed(question, SearchControl())

    @names_keywords
    def play(
        self,
        board: Place,
        limit: chess.engine.Limit,
        *,
        game: object = None,
        info: chess.engine.Info = chess.engine.INFO_ALL,
        ponder: bool = False,
        draw_offered: bool = False,
        root_moves: RootMoves | None = None,
        options: Options = _NO_OPTIONS,
        opponent: chess.engine.Opponent | None = None,
    ) -> chess.engine.PlayResult:
        """Search for a move to play and return a `PlayResult`. With a clock (`white_clock` ...) the search takes a
        suitable part of the remaining time.

        - ponder: search the position after the move and the expected reply in the background until the next call,
          which then finds its table filled.
        - draw_offered, opponent: ignored; the engine never accepts or offers draws, and never resigns.

        The other arguments are those of `analyse`. The result's `move` is None when the game is over on the board;
        its `ponder` is the expected reply.

        >>> import chess, psearch
        >>> with psearch.Engine(hash_mb=1) as engine:
        ...     engine.play(chess.Board("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"), chess.engine.Limit(depth=3)).move
        Move.from_uci('g5g7')
        """
        question = self._ask(board, limit, options, multipv=None, game=game, info=info, root_moves=root_moves)
        return self._played(question, SearchControl(), ponder=ponder)

    @names_keywords
    def analysis(
        self,
        board: Place,
        limit: chess.engine.Limit | None = None,
        *,
        multipv: int | None = None,
        game: object = None,
        info: chess.engine.Info = chess.engine.INFO_ALL,
        root_moves: RootMoves | None = None,
        options: Options = _NO_OPTIONS,
    ) -> Analysis:
        """Begin a search in the background and return an `Analysis`, an iterator over its infos.

        The arguments are those of `analyse`; without a limit the search continues until it is stopped.

        >>> import chess, psearch
        >>> with psearch.Engine(hash_mb=1) as engine, engine.analysis(chess.Board()) as analysis:
        ...     for info in analysis:
        ...         if info["depth"] >= 6:
        ...             analysis.stop()
        ...     analysis.wait().move in chess.Board().legal_moves
        True
        """
        arguments = {"multipv": multipv, "game": game, "info": info, "root_moves": root_moves}
        return self._analysis(self._ask(board, limit, options, is_endless=True, **arguments))

    # -- methods for engines in other programs -------------------------------------------------------------------------

    @classmethod
    def popen_uci(cls, *arguments: object, **named: object) -> NoReturn:
        """Raise PsearchError: there is no program to start."""
        raise PsearchError(
            "psearch.Engine(threads=2) starts its own processes; for the UCI engine take "
            "chess.engine.SimpleEngine.popen_uci(['psearch', 'uci'])"
        )

    popen = popen_xboard = popen_uci

    def communicate(self, command_factory: object) -> NoReturn:
        """Raise PsearchError: there is no protocol."""
        raise PsearchError("psearch.Engine speaks no protocol: use analysis(), which reports as it searches")

    # -- inside ------------------------------------------------------------------------------------------------------

    def _ask(self, board: Place, limit: chess.engine.Limit | None, options: Options, **arguments: Any) -> Question:
        return ask(board, limit, self._settings.for_one_search(options), **arguments)

    def _answer(self, question: Question, control: SearchControl, on_info: OnInfo | None = None) -> Result:
        self._begin(question, control)
        return self._search(question, control, on_info, self._lag)

    def _analysed(
        self, question: Question, control: SearchControl, on_info: OnInfo | None = None
    ) -> chess.engine.InfoDict | list[chess.engine.InfoDict]:
        infos = question.result_dicts(self._answer(question, control, on_info))
        return infos[0] if question.multipv is None else infos

    def _played(
        self, question: Question, control: SearchControl, on_info: OnInfo | None = None, *, ponder: bool
    ) -> chess.engine.PlayResult:
        since = time.perf_counter()
        result = self._answer(question, control, on_info)
        self._lag.played(control.clock, time.perf_counter() - since)
        if ponder and result.bestmove is not None and result.ponder is not None and not control.is_stopped:
            self._ponder(question, result.bestmove, result.ponder)
        (info,) = question.result_dicts(result)
        return chess.engine.PlayResult(result.bestmove, result.ponder, info)

    def _ponder(self, question: Question, *moves: chess.Move) -> None:
        board = question.board.copy()
        for move in moves:
            board.push(move)
        with contextlib.suppress(PsearchError):  # another thread was quicker, or closed the engine
            pondered = ask(
                board, None, question.options, is_endless=True, game=question.game, info=chess.engine.INFO_NONE
            )
            self._pondering = self._analysis(pondered)

    def _end_pondering(self) -> None:
        pondering, self._pondering = self._pondering, None
        if pondering is not None:
            pondering.stop()
            pondering.join()

    def _analysis(self, question: Question) -> Analysis:
        control = SearchControl()
        return Analysis(control, partial(self._start, question, control), self._owner)

    def _start(self, question: Question, control: SearchControl, on_found: OnFound, on_end: OnEnd) -> threading.Thread:
        """Begin a search in a new thread. Raises PsearchError when no thread can be started."""
        self._begin(question, control)

        def take(info: Info) -> None:
            found = question.info_dict(info)
            if found:
                on_found(found, info.is_live)

        def run() -> None:
            try:
                result = self._search(question, control, take)
            except BaseException as error:  # raised where the result is awaited
                on_end(None, error)
            else:
                on_end(result, None)

        thread = threading.Thread(target=run, name="psearch-analysis", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._lock.release()
            raise PsearchError(f"cannot start a thread for a search in the background: {error}") from None
        return thread

    def _recorder(self) -> Recorder | None:
        """Return the recorder of the present workers, for any thread; None without `watched` and after `close`."""
        return self._searcher.supervisor.recorder if self._searcher.are_there and not self._is_closed else None

    def _size(self, settings: Settings) -> Size:
        return Size(settings.threads, settings.hash_mb, watched=self._watched, kernels=settings.search.kernels)

    def _supervisor(self) -> Supervisor:
        if self._is_closed or not self._searcher.are_there:
            raise PsearchError("this engine is closed")
        return self._searcher.supervisor

    def _claim(self) -> None:
        """Acquire the lock: one search at a time. Raises PsearchError when another is running and was not stopped."""
        self._owner.check()
        self._end_pondering()
        if self._lock.acquire(blocking=False):
            return
        control = self._control
        is_ending = control is not None and control.is_stopped
        if not (is_ending and self._lock.acquire(timeout=_STOPPING_S)):
            raise PsearchError("this engine is searching already: stop it first")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self._claim()
        try:
            yield
        finally:
            self._lock.release()

    def _begin(self, question: Question, control: SearchControl) -> None:
        """Prepare a search; `_search` must follow."""
        self._claim()
        try:
            self._control = control
            if _is_another(question.game, self._game):
                self._game, self._lag = question.game, LagMeter(0.0)
                self._seed = "" if question.game is None else str(random.random())
                self._supervisor().forget()
            self._supervisor()
        except BaseException:
            self._lock.release()
            raise

    def _search(
        self, question: Question, control: SearchControl, on_info: OnInfo | None, lag: LagMeter | None = None
    ) -> Result:
        """Search. lag: None for a search in the background, which is not a move of the game."""
        try:
            request = replace(question.request(control, on_info, lag), seed=self._seed)
            asked = self._root.prepared(request)
            return asked.finished(self._supervisor().search(asked.request))
        finally:
            self._lock.release()


def _is_another(game: object, last: object) -> bool:
    try:
        return game is not last and bool(game != last)
    except Exception as error:  # the caller's `__eq__` may raise anything
        raise PsearchError(f"game must be an object that can be compared: {error}") from None


class Analysis:
    """A search in the background, made by `Engine.analysis`; a context manager.

    Iterate over its infos; they end when the search does. An error of the search is raised where its infos are awaited.
    """

    multipv: list[chess.engine.InfoDict]
    """Latest info of each line, best first; the counters of the first are up to date."""

    def __init__(
        self, control: SearchControl, start: Callable[[OnFound, OnEnd], threading.Thread], owner: Owner
    ) -> None:
        self._owner = owner
        self.multipv = [{}]
        self._infos: queue.SimpleQueue[chess.engine.InfoDict | None] = queue.SimpleQueue()
        self._control = control
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._has_ended = False
        """True when the search has ended; the mark of its end is in the queue, or will be soon."""
        self._is_over = False
        """True when the iteration has ended."""
        self._is_raised = False
        self._thread = start(self._take, self._end)

    @property
    def info(self) -> chess.engine.InfoDict:
        """Latest info of the best line, with up-to-date counters."""
        return self.multipv[0]

    def _take(self, info: chess.engine.InfoDict, is_live: bool) -> None:
        """Receive a report; called in the searching thread."""
        keep_latest(self.multipv, info)
        if not is_live:
            self._infos.put(info)

    def _end(self, result: Result | None, error: BaseException | None) -> None:
        self._result, self._error, self._has_ended = result, error, True
        self._infos.put(None)

    def stop(self) -> None:
        """Stop the search; the iteration ends after the infos found so far."""
        if self._owner.is_here:
            self._control.stop()

    def wait(self) -> chess.engine.BestMove:
        """Wait for the end of the search and return its best move and the expected reply."""
        self._check_owner()
        self._thread.join()
        if self._error is not None:
            self._is_raised = True
            raise self._error
        if self._result is None:
            raise AssertionError("a search ended without result or error")
        return chess.engine.BestMove(self._result.bestmove, self._result.ponder)

    def join(self) -> None:
        """Wait for the end of the search, without raising its error."""
        self._thread.join()

    def _check_owner(self) -> None:
        """Raise PsearchError in a fork of the program, which does not have the searching thread."""
        if not self._has_ended:
            self._owner.check()

    def get(self) -> chess.engine.InfoDict:
        """Wait for the next info and return it. Raises `chess.engine.AnalysisComplete` when there are no more."""
        self._check_owner()
        info = None if self._is_over else self._infos.get()
        if info is not None:
            return info
        if not self._is_over:
            self._is_over = True
            self.wait()
        raise chess.engine.AnalysisComplete

    def next(self) -> chess.engine.InfoDict | None:
        """Wait for the next info and return it; None when there are no more."""
        try:
            return self.get()
        except chess.engine.AnalysisComplete:
            return None

    def would_block(self) -> bool:
        """Tell whether `get` would have to wait."""
        return not self._is_over and self._infos.empty()

    def empty(self) -> bool:
        """Tell whether every info so far has been taken; more may come until the search ends."""
        return self._is_over or self._infos.qsize() <= self._has_ended

    def __iter__(self) -> Iterator[chess.engine.InfoDict]:
        return self

    def __next__(self) -> chess.engine.InfoDict:
        try:
            return self.get()
        except chess.engine.AnalysisComplete:
            raise StopIteration from None

    def __enter__(self) -> Analysis:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._thread.join()
        if exception[0] is None and not self._is_raised:
            self.wait()  # raises what went wrong, if anything


def keep_latest(lines: list[chess.engine.InfoDict], info: chess.engine.InfoDict) -> None:
    """Replace the last info of a line by a new one, whole: the last one's bound, for example, no longer holds."""
    number = info.get("multipv", 1)
    lines.extend({} for _ in range(number - len(lines)))
    lines[number - 1] = info.copy()
