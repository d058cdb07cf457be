"""The engine for Python programs: persistent workers and table, python-chess types in and out; and a search in the
background, what `chess.engine.SimpleAnalysisResult` is for other engines."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, Unpack, overload

import chess
import chess.engine

from psearch.api import LOG
from psearch.api.question import Place, Question, RootMoves, ask
from psearch.arena.system_calls import Owner
from psearch.options import Options, Settings, clears_hash
from psearch.processes.control import SearchControl
from psearch.processes.request import OnInfo
from psearch.processes.time_manager import LagMeter
from psearch.results import Info, PsearchError, Result
from psearch.searcher.notices import Notices
from psearch.searcher.searcher import Searcher, Size
from psearch.settings import ENGINE_OPTIONS, SearchKeywords, lists_settings
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.processes.supervisor import Supervisor
    from psearch.trace.recorder import Recorder

_STOPPING_S = 5.0
"""How long a search that was stopped is waited for; it takes some milliseconds."""
_NO_OPTIONS: Options = {}
OnFound = Callable[[chess.engine.InfoDict, bool], None]
"""Takes an info that is wanted, and whether only its counters are new."""
OnEnd = Callable[[Result | None, BaseException | None], None]
"""Takes the answer, or what went wrong."""


class Asked(TypedDict, total=False):
    """The keywords that `analyse`, `play` and `analysis` have alike."""

    game: object
    info: chess.engine.Info
    root_moves: RootMoves | None
    options: Options


class Described:
    """What all engines say of themselves."""

    _settings: Settings
    _is_closed: bool

    def __repr__(self) -> str:
        settings, state = self._settings, ", closed" if self._is_closed else ""
        return f"<psearch.{type(self).__name__} (threads={settings.threads}, hash_mb={settings.hash_mb}{state})>"

    @property
    def options(self) -> chess.engine.UciOptionMap[chess.engine.Option]:
        """What `configure` takes, by name in any case."""
        return chess.engine.UciOptionMap((option.name, option.of_chess_engine()) for option in ENGINE_OPTIONS)

    @property
    def id(self) -> Mapping[str, str]:
        """Name and author, as `psearch uci` gives them."""
        return {"name": f"psearch {__version__}", "author": "the psearch authors"}


@lists_settings
class Engine(Described):
    """A chess engine with worker processes of its own; a context manager.

    threads: worker processes, 1 to 1024; hash_mb: MiB of transposition table, which lasts from search to search
    (None: 256); watched: the workers note what they do, for watchers (`psearch.lab.watching`). Settings of all searches
    are keywords, too:

    SETTINGS

    Works from any program: with threads, without a `__main__` guard, in Jupyter, several in one process.
    It has the methods of `chess.engine.SimpleEngine`; docs/guides/api.md lists what differs. One search at a time;
    `stop` and `close` may be called from any thread. When a worker process dies or stalls, others take its place and
    the search goes on: a warning is logged (`logging.getLogger("psearch")`), and is the `string` of what the call
    returns. Only if nothing can be had `psearch.WorkerDied` is raised.
    Raises `psearch.PsearchError` for bad arguments, when the memory is not there, and in a fork of the process that has
    made it: each process needs an engine of its own.

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
        """of the present search, or the last one"""
        self._pondering: Analysis | None = None
        self._game: object = None
        self._lag = LagMeter(0.0)
        """of the moves that were played"""
        self._is_closed = False
        self._searcher = Searcher(Notices(LOG.warning)).start(self._size(self._settings))

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def threads(self) -> int:
        """Worker processes."""
        return self._settings.threads

    @property
    def hash_mb(self) -> int:
        """MiB of transposition table."""
        return self._settings.hash_mb

    def close(self) -> None:
        """Stop what is being searched, end the workers, give the memory back. May be called twice. Without effect in a
        fork of the process that has made this."""
        if not self._owner.is_here:
            return
        self.stop()
        self._end_pondering()
        self._is_closed = True
        self._searcher.close()

    def quit(self) -> None:
        """Do what `close` does."""
        self.close()

    def stop(self) -> None:
        """End the search that is running, if any; its caller gets the best found so far. From any thread."""
        control = self._control
        if control is not None and self._owner.is_here:
            control.stop()

    def new_game(self) -> None:
        """Forget the transposition table and everything learnt, as for another game."""
        with self._alone():
            self._supervisor().forget()

    def ping(self) -> None:
        """Return when the workers are there and idle; those that were lost are replaced."""
        with self._alone():
            self._supervisor()
            for note in self._searcher.restore():
                LOG.warning(note)

    def configure(self, options: Options) -> None:
        """Set options for all searches to come: names of `options`, and their values.

        With another number of threads, size of table, rules or file as policy there are other workers afterwards, with
        an empty table. Raises PsearchError for options that are not there, and when the memory is not there: all stays
        as it was then.
        """
        settings = self._settings.changed(options)
        with self._alone():
            before = self._settings
            if settings.needs_other_workers(before):
                self._supervisor()
                self._searcher.start(self._size(settings))
            elif clears_hash(options):
                self._supervisor().forget()
            self._settings = settings

    def send_opponent_information(
        self, *, opponent: chess.engine.Opponent | None = None, engine_rating: int | None = None
    ) -> None:
        """Take what such programs tell; this engine plays against everybody in the same way."""

    def send_game_result(
        self,
        board: chess.Board,
        winner: chess.Color | None = None,
        game_ending: str | None = None,
        game_complete: bool = True,
    ) -> None:
        """Take what such programs tell; this engine does not learn from results. It ends pondering."""
        self._owner.check()
        self._end_pondering()

    @overload
    def analyse(
        self, board: Place, limit: chess.engine.Limit | None = ..., *, multipv: None = ..., **how: Unpack[Asked]
    ) -> chess.engine.InfoDict: ...

    @overload
    def analyse(
        self, board: Place, limit: chess.engine.Limit | None = ..., *, multipv: int, **how: Unpack[Asked]
    ) -> list[chess.engine.InfoDict]: ...

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
        """Search until a limit is reached, 5 seconds without any, and return what was found.

        `board` is a `chess.Board`, whose move stack counts as the game's history, a FEN or `startpos`. With `multipv` a
        list: the best lines with different first moves, best first, no more than there are moves. `game`: anything;
        if it is another than in the last call, as `new_game`. `info`: what is wanted in the answer. `root_moves`:
        choose from these moves only (moves, UCI notation or SAN). `options`: for this search, as in `configure`.
        """
        question = self._ask(board, limit, options, multipv=multipv, game=game, info=info, root_moves=root_moves)
        return self._analysed(question, SearchControl())

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
        """Choose a move, with a clock (`white_clock` ...) in a time that leaves enough for the rest of the game.

        The result's `move` is None when the game is over on the board; `ponder` is the expected reply. With `ponder`
        the position after both is searched in the background until the next call, which finds its table filled.
        `draw_offered` and `opponent` do not matter: the engine neither takes draws nor offers them, nor resigns. The
        rest is as in `analyse`, the 5 seconds, too.

        >>> import chess, psearch
        >>> with psearch.Engine(hash_mb=1) as engine:
        ...     engine.play(chess.Board("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"), chess.engine.Limit(depth=3)).move
        Move.from_uci('g5g7')
        """
        question = self._ask(board, limit, options, multipv=None, game=game, info=info, root_moves=root_moves)
        return self._played(question, SearchControl(), ponder=ponder)

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
        """Begin to search in the background, until it is stopped if there is no limit; iterate over what is found.

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

    # -- what only engines in other programs have ----------------------------------------------------------------------

    @classmethod
    def popen_uci(cls, *arguments: object, **named: object) -> NoReturn:
        """Raises PsearchError: there is no program to start."""
        raise PsearchError(
            "psearch.Engine(threads=2) starts its own processes; for the UCI engine take "
            "chess.engine.SimpleEngine.popen_uci(['psearch', 'uci'])"
        )

    popen = popen_xboard = popen_uci

    def communicate(self, command_factory: object) -> NoReturn:
        """Raises PsearchError: there is no protocol."""
        raise PsearchError("psearch.Engine speaks no protocol: use analysis(), which reports as it searches")

    # -- inside ------------------------------------------------------------------------------------------------------

    def _ask(self, board: Place, limit: chess.engine.Limit | None, options: Options, **arguments: Any) -> Question:
        return ask(board, limit, self._settings.for_one_search(options), **arguments)

    def _answer(self, question: Question, control: SearchControl, on_info: OnInfo | None = None) -> Result:
        self._begin(question, control)
        return self._search(question, control, on_info)

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
        """Begin a search in a new thread. Raises PsearchError when there cannot be one."""
        self._begin(question, control)

        def take(info: Info) -> None:
            found = question.info_dict(info)
            if found:
                on_found(found, info.is_live)

        def run() -> None:
            try:
                result = self._search(question, control, take)
            except BaseException as error:  # handed on to whoever waits
                on_end(None, error)
            else:
                on_end(result, None)

        thread = threading.Thread(target=run, name="psearch-analysis", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._lock.release()
            raise PsearchError(f"no thread for a search in the background: {error}") from None
        return thread

    def _recorder(self) -> Recorder | None:
        """What the present workers note, from any thread; None without `watched`, or when this is closed."""
        return self._searcher.supervisor.recorder if self._searcher.are_there and not self._is_closed else None

    def _size(self, settings: Settings) -> Size:
        return Size(settings.threads, settings.hash_mb, watched=self._watched, kernels=settings.search.kernels)

    def _supervisor(self) -> Supervisor:
        if self._is_closed or not self._searcher.are_there:
            raise PsearchError("this engine is closed")
        return self._searcher.supervisor

    def _claim(self) -> None:
        """Take the lock: one search at a time. Raises PsearchError when there is one that was not stopped."""
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
        """What must be done before a search; `_search` must follow."""
        self._claim()
        try:
            self._control = control
            if _is_another(question.game, self._game):
                self._game, self._lag = question.game, LagMeter(0.0)
                self._supervisor().forget()
            self._supervisor()
        except BaseException:
            self._lock.release()
            raise

    def _search(self, question: Question, control: SearchControl, on_info: OnInfo | None) -> Result:
        try:
            return self._supervisor().search(question.request(control, on_info, self._lag))
        finally:
            self._lock.release()


def _is_another(game: object, last: object) -> bool:
    try:
        return game is not last and bool(game != last)
    except Exception as error:  # whatever comparing objects of others raises
        raise PsearchError(f"game must be something that can be compared: {error}") from None


class Analysis:
    """A search in the background. Iterate over its infos; they end when the search does. A context manager.

    Made by `Engine.analysis`. What goes wrong in the search is raised where its infos are awaited.
    """

    multipv: list[chess.engine.InfoDict]
    """the latest of each line, best first; the counters of the first are present"""

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
        """the search; the mark of its end is in the queue, or soon will be"""
        self._is_over = False
        """the iteration"""
        self._is_raised = False
        self._thread = start(self._take, self._end)

    @property
    def info(self) -> chess.engine.InfoDict:
        """The latest of the best line, with present counters."""
        return self.multipv[0]

    def _take(self, info: chess.engine.InfoDict, is_live: bool) -> None:
        """Called in the searching thread for each report."""
        keep_latest(self.multipv, info)
        if not is_live:
            self._infos.put(info)

    def _end(self, result: Result | None, error: BaseException | None) -> None:
        self._result, self._error, self._has_ended = result, error, True
        self._infos.put(None)

    def stop(self) -> None:
        """End the search; the iteration ends with what was found by then."""
        if self._owner.is_here:
            self._control.stop()

    def wait(self) -> chess.engine.BestMove:
        """Wait for the end of the search: its move and the expected reply."""
        self._check_owner()
        self._thread.join()
        if self._error is not None:
            self._is_raised = True
            raise self._error
        if self._result is None:
            raise AssertionError("a search ended without result or error")
        return chess.engine.BestMove(self._result.bestmove, self._result.ponder)

    def join(self) -> None:
        """Wait for the end of the search, whatever it was."""
        self._thread.join()

    def _check_owner(self) -> None:
        """Raise PsearchError in a fork of the program: the thread that searches is not there."""
        if not self._has_ended:
            self._owner.check()

    def get(self) -> chess.engine.InfoDict:
        """Wait for the next info. Raises `chess.engine.AnalysisComplete` when there are no more."""
        self._check_owner()
        info = None if self._is_over else self._infos.get()
        if info is not None:
            return info
        if not self._is_over:
            self._is_over = True
            self.wait()
        raise chess.engine.AnalysisComplete

    def next(self) -> chess.engine.InfoDict | None:
        """Wait for the next info; None when there are no more."""
        try:
            return self.get()
        except chess.engine.AnalysisComplete:
            return None

    def would_block(self) -> bool:
        """Tell whether `get` would have to wait."""
        return not self._is_over and self._infos.empty()

    def empty(self) -> bool:
        """Tell whether every info there is has been taken; while the search goes on more may come."""
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
    """Put an info into its place: it replaces the line's last one, whose bound, say, is over."""
    number = info.get("multipv", 1)
    lines.extend({} for _ in range(number - len(lines)))
    lines[number - 1] = info.copy()
