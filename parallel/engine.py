"""The engine for Python programs: persistent workers and table, python-chess types in and out."""

from __future__ import annotations

import logging
import math
import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import overload

import chess
import chess.engine

from psearch.defaults import DEFAULT_MOVETIME_MS, DEFAULT_POLICY, DEFAULT_PRUNING, MAX_DEPTH
from psearch.notation.fen import check_position, checked_moves
from psearch.options import DEFAULT_SPLIT_DEPTH, SearchOptions, check_limits, pruning_named, shown
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.processes.time_manager import DEFAULT_OVERHEAD_S, Budget, GameClock, TimeManager, allot
from psearch.results import Info, Limits, PsearchError, Result

_LOG = logging.getLogger("psearch")


class Engine:
    """A chess engine with worker processes of its own; a context manager.

    threads: worker processes, 1 to 1024; hash_mb: MiB of transposition table, which lasts from search to search;
    policy: how work is split (`psearch.POLICY_NAMES`); split_depth: the least depth at which it is;
    pruning: what is left out, a mode (`psearch.PRUNING_MODES`) and changes to it (docs/design/search.md).
    Works from any program: with threads, without a `__main__` guard, in Jupyter, several in one process.
    One search at a time; `stop` and `close` may be called from any thread. When a worker process dies or stalls, others
    take its place and the search goes on: a warning is logged (`logging.getLogger("psearch")`), and is the `string` of
    what the call returns. Only if nothing can be had `psearch.WorkerDied` is raised.
    Raises `psearch.PsearchError` for bad arguments or when the memory is not there.

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
        hash_mb: int = 64,
        policy: str = DEFAULT_POLICY,
        pruning: str = DEFAULT_PRUNING,
        split_depth: int = DEFAULT_SPLIT_DEPTH,
    ) -> None:
        self.threads = threads
        self.hash_mb = hash_mb
        self.options = SearchOptions(policy=policy, split_depth=split_depth, pruning=pruning_named(pruning))
        self._lock = threading.Lock()
        self._control: SearchControl | None = None
        self._supervisor: Supervisor | None = Supervisor(threads, hash_mb)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop what is being searched, end the workers, give the memory back. May be called twice."""
        self.stop()
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.close()

    def stop(self) -> None:
        """End the search that is running, if any; its caller gets the best found so far. From any thread."""
        control = self._control
        if control is not None:
            control.stop()

    def new_game(self) -> None:
        """Forget the transposition table and everything learnt, as for another game."""
        self._workers().forget()

    @overload
    def analyse(
        self,
        board: chess.Board,
        limit: chess.engine.Limit | None = ...,
        *,
        multipv: None = ...,
        root_moves: Iterable[chess.Move] | None = ...,
    ) -> chess.engine.InfoDict: ...

    @overload
    def analyse(
        self,
        board: chess.Board,
        limit: chess.engine.Limit | None = ...,
        *,
        multipv: int,
        root_moves: Iterable[chess.Move] | None = ...,
    ) -> list[chess.engine.InfoDict]: ...

    def analyse(
        self,
        board: chess.Board,
        limit: chess.engine.Limit | None = None,
        *,
        multipv: int | None = None,
        root_moves: Iterable[chess.Move] | None = None,
    ) -> chess.engine.InfoDict | list[chess.engine.InfoDict]:
        """Search until a limit is reached (5 seconds if None) and return what was found.

        With `multipv` a list: the best lines with different first moves, best first, no more than there are moves.
        `root_moves`: choose from these moves only. The board's move stack counts as the game's history.
        """
        result = self._search(board, limit or _default_limit(), multipv, root_moves, SearchControl())
        lines = result.lines or [result.info]
        infos = [line.as_dict() for line in lines]
        if result.notes:
            infos[0]["string"] = "; ".join(result.notes)
        return infos[0] if multipv is None else infos

    def play(
        self,
        board: chess.Board,
        limit: chess.engine.Limit,
        *,
        root_moves: Iterable[chess.Move] | None = None,
    ) -> chess.engine.PlayResult:
        """Choose a move, with a clock (`white_clock` ...) in a time that leaves enough for the rest of the game.

        The result's `move` is None when the game is over on the board; `ponder` is the expected reply.

        >>> import chess, psearch
        >>> with psearch.Engine(hash_mb=1) as engine:
        ...     engine.play(chess.Board("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"), chess.engine.Limit(depth=3)).move
        Move.from_uci('g5g7')
        """
        result = self._search(board, limit, None, root_moves, SearchControl())
        return chess.engine.PlayResult(result.bestmove, result.ponder, result.info.as_dict())

    def analysis(
        self,
        board: chess.Board,
        limit: chess.engine.Limit | None = None,
        *,
        multipv: int | None = None,
        root_moves: Iterable[chess.Move] | None = None,
    ) -> Analysis:
        """Begin to search in the background, without end if `limit` is None; iterate over what is found.

        >>> import chess, psearch
        >>> with psearch.Engine(hash_mb=1) as engine, engine.analysis(chess.Board()) as analysis:
        ...     for info in analysis:
        ...         if info["depth"] >= 6:
        ...             analysis.stop()
        ...     analysis.wait().move in chess.Board().legal_moves
        True
        """
        return Analysis(self, board, limit or chess.engine.Limit(), multipv, root_moves)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _workers(self) -> Supervisor:
        supervisor = self._supervisor
        if supervisor is None:
            raise PsearchError("this engine is closed")
        return supervisor

    def _search(
        self,
        board: chess.Board,
        limit: chess.engine.Limit,
        multipv: int | None,
        root_moves: Iterable[chess.Move] | None,
        control: SearchControl,
        analysis: Analysis | None = None,
    ) -> Result:
        if not self._lock.acquire(blocking=False):
            raise PsearchError("this engine is searching already: stop it first")
        try:
            check_position(board)
            board = board.copy()
            only = checked_moves(board, root_moves)
            control.clock = time_manager(board, limit, len(only) if only else board.legal_moves.count())
            request = SearchRequest(
                board,
                to_limits(limit),
                self.options,
                only,
                multipv=1 if multipv is None else multipv,
                on_info=None if analysis is None else analysis.take,
                control=control,
                on_note=_LOG.warning,
            )
            self._control = control
            return self._workers().search(request)
        finally:
            self._control = None
            self._lock.release()


class Analysis:
    """A search in the background. Iterate over its infos; they end when the search does. A context manager.

    Made by `Engine.analysis`. What goes wrong in the search is raised where its infos are awaited.
    """

    def __init__(
        self,
        engine: Engine,
        board: chess.Board,
        limit: chess.engine.Limit,
        multipv: int | None,
        root_moves: Iterable[chess.Move] | None,
    ) -> None:
        self.info: chess.engine.InfoDict = {}
        """the latest of the best line, with present counters"""
        self.multipv: list[chess.engine.InfoDict] = []
        """the latest of each line, best first"""
        self._infos: queue.SimpleQueue[chess.engine.InfoDict | None] = queue.SimpleQueue()
        self._control = SearchControl()
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._is_over = False
        self._is_raised = False
        moves = None if root_moves is None else list(root_moves)
        arguments = (engine, board.copy(), limit, multipv, moves)
        self._thread = threading.Thread(target=self._run, args=arguments, name="psearch-analysis", daemon=True)
        self._thread.start()

    def _run(
        self,
        engine: Engine,
        board: chess.Board,
        limit: chess.engine.Limit,
        multipv: int | None,
        root_moves: list[chess.Move] | None,
    ) -> None:
        try:
            self._result = engine._search(board, limit, multipv, root_moves, self._control, self)
        except BaseException as error:  # handed on to whoever waits
            self._error = error
        finally:
            self._infos.put(None)

    def take(self, info: Info) -> None:
        """Called by the search for each report."""
        found = info.as_dict()
        if info.multipv == 1:
            self.info = found
        if not info.is_live:
            self.multipv[info.multipv - 1 :] = [found]
            self._infos.put(found)

    def stop(self) -> None:
        """End the search; the iteration ends with what was found by then."""
        self._control.stop()

    def wait(self) -> chess.engine.BestMove:
        """Wait for the end of the search: its move and the expected reply."""
        self._thread.join()
        if self._error is not None:
            self._is_raised = True
            raise self._error
        if self._result is None:
            raise AssertionError("a search ended without result or error")
        return chess.engine.BestMove(self._result.bestmove, self._result.ponder)

    def __iter__(self) -> Iterator[chess.engine.InfoDict]:
        return self

    def __next__(self) -> chess.engine.InfoDict:
        info = None if self._is_over else self._infos.get()
        if info is not None:
            return info
        if not self._is_over:
            self._is_over = True
            self.wait()
        raise StopIteration

    def __enter__(self) -> Analysis:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._thread.join()
        if exception[0] is None and not self._is_raised:
            self.wait()  # raises what went wrong, if anything


def _default_limit() -> chess.engine.Limit:
    return chess.engine.Limit(time=DEFAULT_MOVETIME_MS / 1000)


def to_limits(limit: chess.engine.Limit) -> Limits:
    """The limits that do not depend on time. Raises PsearchError for numbers that make no sense."""
    if limit.time is not None and not _seconds(limit, "time") > 0:
        raise PsearchError(f"time must be more than 0 seconds, not {shown(limit.time)}")
    limits = Limits(depth=limit.depth, nodes=limit.nodes, mate=limit.mate)
    if isinstance(limit.depth, int):
        limits = replace(limits, depth=min(limit.depth, MAX_DEPTH))
    check_limits(limits)
    return limits


def _seconds(limit: chess.engine.Limit, name: str) -> float:
    """A time of a limit, 0 if it is not set. Raises PsearchError when it is not a number."""
    value = getattr(limit, name)
    try:
        seconds = float(value or 0.0)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if math.isnan(seconds):
        raise PsearchError(f"{name} must be a number of seconds, not {shown(value)}")
    return seconds


def time_manager(board: chess.Board, limit: chess.engine.Limit, moves: int) -> TimeManager:
    """What decides about time: the clock of the side to move if there is one, and the fixed time if there is one."""
    side = "white" if board.turn == chess.WHITE else "black"
    budget = Budget()
    if getattr(limit, f"{side}_clock") is not None:
        clock = GameClock(_seconds(limit, f"{side}_clock"), _seconds(limit, f"{side}_inc"), limit.remaining_moves)
        budget = allot(clock, DEFAULT_OVERHEAD_S)
    if limit.time is not None:
        budget = Budget(budget.soft_s, min(budget.hard_s, _seconds(limit, "time")))
    return TimeManager(budget, moves)
