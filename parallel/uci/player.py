"""The UCI engine's second thread: workers, table, tablebases and book; runs a search and words its answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chess
import chess.engine

from psearch.arena.setup import SearchOptions, pruning_named
from psearch.defaults import DEFAULT_PRUNING
from psearch.kernels import Progress, load_kernels
from psearch.notation.report import finished_result, idle_share, uci_line
from psearch.processes.launcher import prepare_launch
from psearch.processes.supervisor import Supervisor
from psearch.processes.time_manager import Budget, GameClock, TimeManager, allot, fixed_time
from psearch.results import Info, Limits, PsearchError, Result, WorkerDied
from psearch.trace.recorder import Abandoned
from psearch.trace.trace_file import check_trace
from psearch.uci.go import Go
from psearch.uci.options import OptionValues
from psearch.uci.strength import MOST_LINES, bestmove_of, choose_line, node_limit, noise_cp

if TYPE_CHECKING:
    from psearch.notation.polyglot import Book
    from psearch.notation.syzygy import RootProbe, RootProber
    from psearch.uci.conversation import Say

_LIVE_FROM_S = 3.0
_LIVE_INTERVAL_S = 1.0
_PONDER_BONUS = 1.25
"""More time for a move when the opponent's time is used too."""
_MOST_DEATHS = 3
_TABLEBASE_WIN_CP = 20_000


class Player:
    """What `go` needs. Used by one thread; only `close` may be called from another."""

    def __init__(self, say: Say, progress: Progress) -> None:
        self._say = say
        self._supervisor: Supervisor | None = None
        self._size = (0, 0, False)
        self._is_fresh = True
        self._trace_text = ""
        self._trace_path: Path | None = None
        self.is_writing_trace = False
        self._prober: RootProber | None = None
        self._prober_path = ""
        self._book: Book | None = None
        self._book_path = ""
        self._dice = random.Random()
        self._pruning_text = ""
        self.pruning = pruning_named(DEFAULT_PRUNING)
        prepare_launch()
        self.load_s = load_kernels(progress)

    def close(self) -> None:
        """End the workers. What is being done fails."""
        if self._supervisor is not None:
            self._supervisor.close()

    # -- options -----------------------------------------------------------------------------------------------------

    def settle(self, values: OptionValues) -> None:
        """Make things as the options say. What cannot be is reported, and what was there before goes on."""
        self._settle_trace(values.text("Trace"))
        self._settle_workers((values.number("Threads"), values.number("Hash"), self._trace_path is not None))
        self._settle_prober(values.text("SyzygyPath"))
        self._settle_pruning(values.text("Pruning"), values.text("PruningParameters"))
        self._settle_book(values.text("BookFile"))

    def _settle_trace(self, text: str) -> None:
        if text == self._trace_text:
            return
        self._trace_text = text
        self._trace_path = None
        if text:
            try:
                check_trace(Path(text))
                if Path(text).is_fifo():
                    raise PsearchError(f"cannot write the trace {text}: it is a pipe, which may have no reader")
                self._trace_path = Path(text)
            except PsearchError as error:
                self._say(f"info string Trace: {error}")

    def _settle_workers(self, size: tuple[int, int, bool]) -> None:
        """size: threads, MiB of table, and whether there is room for a trace."""
        usable = self._supervisor is not None and self._supervisor.is_usable
        if usable and size == self._size:
            return
        former = self._size if usable else None
        if self._supervisor is not None:
            self._supervisor.close()  # first: the memory may not be there twice
            self._supervisor = None
        try:
            self._supervisor = _supervisor(size)
            self._size = size
        except PsearchError as error:
            self._say(f"info string {error}")
            if former is None:
                former = (1, 1, False)
            tracing = "" if former[2] == size[2] else f", {'with' if former[2] else 'without'} a trace"
            self._say(f"info string going on with Threads {former[0]} and Hash {former[1]}{tracing}")
            self._supervisor = _supervisor(former)
            self._size = size  # not tried again before it changes
        self._is_fresh = True

    def _settle_pruning(self, mode: str, parameters: str) -> None:
        text = ",".join([mode, *parameters.replace(",", " ").split()])
        if text == self._pruning_text:
            return
        self._pruning_text = text
        try:
            self.pruning = pruning_named(text)
        except PsearchError as error:
            self._say(f"info string {error}")

    def _settle_prober(self, path: str) -> None:
        if path == self._prober_path:
            return
        self._prober_path = path
        if self._prober is not None:
            self._prober.close()
            self._prober = None
        if path:
            from psearch.notation.syzygy import RootProber

            try:
                self._prober = RootProber(path)
            except PsearchError as error:
                self._say(f"info string SyzygyPath: {error}")

    def _settle_book(self, path: str) -> None:
        if path == self._book_path:
            return
        self._book_path = path
        if self._book is not None:
            self._book.close()
            self._book = None
        if path:
            from psearch.notation.polyglot import Book

            try:
                self._book = Book(path)
            except PsearchError as error:
                self._say(f"info string BookFile: {error}")

    def new_game(self) -> None:
        """Forget what was learnt. Nothing to do, and no time to lose, before the first search."""
        if self._supervisor is not None and self._supervisor.is_usable and not self._is_fresh:
            self._supervisor.forget()
            self._is_fresh = True

    # -- searching ---------------------------------------------------------------------------------------------------

    def search(
        self, go: Go, values: OptionValues, debug: bool, answer: Say, is_trace_wanted: Callable[[], bool]
    ) -> None:
        """Run a `go`, printing infos; `answer` takes the line with the answer, which a perft does not have.

        The trace is written after the answer, as long as `is_trace_wanted`.
        """
        self.settle(values)
        if go.perft is not None:
            self._perft(go.board, go.perft)
            return
        finished = finished_result(go.board)
        if finished is not None:
            score = "mate 0" if go.board.is_check() else "cp 0"
            self._say(f"info depth 0 score {score}")
            answer("bestmove (none)")
        else:
            turn = _Turn(self, go, values, debug, answer)
            turn.run()
            if turn.has_searched:
                self._write_trace(turn, is_trace_wanted)

    def _write_trace(self, turn: _Turn, is_wanted: Callable[[], bool]) -> None:
        recorder = self.supervisor.recorder
        if recorder is None or self._trace_path is None:
            return
        self.is_writing_trace = True
        try:
            facts = {"position": turn.board.fen(), "policy": turn.values.text("Policy")}
            recorder.write(self._trace_path, facts, is_wanted)
        except Abandoned:
            self._say("info string Trace: not written, the next search did not wait")
        except OSError as error:
            self._say(f"info string Trace: cannot write {self._trace_path}: {error.strerror}")
        else:
            lost = sum(recorder.dropped.values())
            if lost:
                self._say(f"info string Trace: not complete, {lost:,} events found no room")
        finally:
            self.is_writing_trace = False

    @property
    def supervisor(self) -> Supervisor:
        """The workers, as `settle` left them."""
        if self._supervisor is None:
            raise PsearchError("there are no workers")
        self._is_fresh = False
        return self._supervisor

    def book_move(self, board: chess.Board) -> chess.Move | None:
        return None if self._book is None else self._book.pick(board, self._dice)

    def probe(self, board: chess.Board) -> RootProbe | None:
        return None if self._prober is None else self._prober.probe(board)

    def choose(self, lines: Sequence[Info], elo: int) -> Info:
        return choose_line(lines, elo, self._dice)

    def say(self, line: str) -> None:
        self._say(line)

    def revive(self) -> None:
        """New workers after a death, now and not on the clock of the next move."""
        self._settle_workers(self._size)

    def _perft(self, board: chess.Board, depth: int) -> None:
        start = time.perf_counter()
        counts, _ = self.supervisor.perft(board, depth)
        lines = sorted(f"{board.uci(move)}: {nodes}" for move, nodes in counts.items())
        total = sum(counts.values())
        milliseconds = round((time.perf_counter() - start) * 1000)
        self._say("\n".join([*lines, f"info nodes {total} time {milliseconds}", "", f"Nodes searched: {total}"]))

    def evaluate(self, board: chess.Board) -> None:
        """Print the static evaluation."""
        from psearch.core.inspect.node import NodeProbe

        if board.is_check():
            self._say("info string no static evaluation: in check")
            return
        value = NodeProbe(self.supervisor.arena.tables, board).evaluate()
        white = value if board.turn == chess.WHITE else -value
        self._say(f"static evaluation {white / 100:+.2f} (White's view)")

    def bench(self) -> None:
        """The search that `psearch bench` runs, in this process."""
        from psearch.bench import run_bench

        nodes, seconds = run_bench(lambda text: self._say(f"info string {text}"))
        self._say(f"{nodes} nodes {round(nodes / max(seconds, 1e-9))} nps")


def _supervisor(size: tuple[int, int, bool]) -> Supervisor:
    threads, hash_mb, trace = size
    return Supervisor(threads, hash_mb, trace=trace)


class _Turn:
    """One search for one answer."""

    def __init__(self, player: Player, go: Go, values: OptionValues, debug: bool, answer: Say) -> None:
        self.player = player
        self.go = go
        self.board = go.board
        self.values = values
        self.debug = debug
        self.answer = answer
        self.has_answered = False
        self.has_searched = False
        """to its end: there is something to make a trace of"""
        self.shows_wdl = values.flag("UCI_ShowWDL")
        self.plays = not values.flag("UCI_AnalyseMode")
        self.elo = values.number("UCI_Elo") if self.plays and values.flag("UCI_LimitStrength") else None
        self.lines_shown = values.number("MultiPV")
        self.probe: RootProbe | None = None
        self.latest: Info | None = None
        self.next_live_s = _LIVE_FROM_S

    def run(self) -> None:
        """Find a move and answer with it."""
        book_move = self._book_move()
        if book_move is not None:
            self._say(f"info string book move {self.board.uci(book_move)}")
            self._bestmove(book_move, None)
            return
        if self.elo is None:
            self.probe = self.player.probe(self.board)
        result = self._search_in_spite_of_deaths()
        if self.has_answered:
            return
        if result is None:
            self._bestmove(*self._move_in_need())
        else:
            self._finish(result)

    def _say(self, line: str) -> None:
        self.go.tell(self.player.say, line)

    def _answer_early(self, result: Result) -> None:
        """The workers are slow to stop. Not while the answer has to be held back: there is no hurry then."""
        if self.go.may_answer.is_set():
            self._finish(result)

    def _finish(self, result: Result) -> None:
        for line in result.lines[: self.lines_shown]:
            self._show(line)
        if self.debug:
            self._say(statistics_line(result.info))
        if self.elo is not None and result.lines:
            self._bestmove(*bestmove_of(self.player.choose(result.lines, self.elo)))
        else:
            self._bestmove(result.bestmove, result.ponder)

    def _search_in_spite_of_deaths(self) -> Result | None:
        """Search; when a worker dies, begin again with new ones, on the same clock. None: it goes on."""
        for _ in range(_MOST_DEATHS):
            try:
                return self._search()
            except WorkerDied as error:
                self.player.say(f"info string {error}")
                self.player.revive()
                if self.has_answered:
                    break
        return None

    def _book_move(self) -> chess.Move | None:
        go = self.go
        wanted = self.values.flag("OwnBook") and self.plays
        if not wanted or go.infinite or go.searchmoves or go.mate is not None:
            return None
        return self.player.book_move(self.board)

    def _search(self) -> Result:
        go = self.go
        only = self._root_moves()
        nodes, lines = go.nodes, self.lines_shown
        if self.elo is not None:
            nodes = min(nodes or 1 << 62, node_limit(self.elo))
            if noise_cp(self.elo) > 0:
                lines = max(lines, MOST_LINES)
        if go.control.clock is None:
            go.control.clock = self._time_manager(len(only) if only else self.board.legal_moves.count())
        options = SearchOptions(
            pruning=self.player.pruning,
            policy=self.values.text("Policy"),
            split_depth=self.values.number("SplitDepth"),
        )
        result = self.player.supervisor.search(
            self.board,
            Limits(depth=go.depth, nodes=nodes, mate=go.mate),
            on_info=self._take,
            options=options,
            only=only,
            multipv=lines,
            control=go.control,
            on_answer=self._answer_early,
        )
        self.has_searched = True
        return result

    def _root_moves(self) -> list[chess.Move] | None:
        """The GUI's choice, and among those the ones that the tablebases call best."""
        wanted = self.go.searchmoves or None
        if self.probe is None:
            return wanted
        best = [move for move in self.probe.best if wanted is None or move in wanted]
        return best or wanted

    def _time_manager(self, moves: int) -> TimeManager:
        go = self.go
        overhead_s = self.values.number("Move Overhead") / 1000
        clock_ms, increment_ms = go.own_ms
        budget = Budget()
        if clock_ms is not None:
            clock = GameClock(clock_ms / 1000, increment_ms / 1000, go.moves_to_go)
            budget = allot(clock, overhead_s)
            if self.values.flag("Ponder"):
                budget = Budget(min(budget.soft_s * _PONDER_BONUS, budget.hard_s), budget.hard_s)
        if go.movetime_ms is not None:
            budget = Budget(budget.soft_s, min(budget.hard_s, fixed_time(go.movetime_ms / 1000, overhead_s).hard_s))
        return TimeManager(budget, moves, pondering=go.ponder)

    def _take(self, info: Info) -> None:
        """A report of the search: print it, or once a second how it goes on."""
        if info.multipv == 1:
            self.latest = info
        if not info.is_live:
            if info.multipv <= self.lines_shown:
                self._show(info)
        elif info.time_s >= self.next_live_s:
            self.next_live_s = info.time_s + _LIVE_INTERVAL_S
            counters = f"nodes {info.nodes} nps {info.nps} hashfull {info.hashfull} time {_milliseconds(info)}"
            move = ""
            if info.currmove is not None:
                move = f" currmove {self.board.uci(info.currmove)} currmovenumber {info.currmovenumber}"
            self._say(f"info depth {info.depth} {counters}{move}")
            if self.debug:
                self._say(statistics_line(info))

    def _show(self, info: Info) -> None:
        hits = 0
        if self.probe is not None:
            info = with_tablebase_score(info, self.probe.wdl)
            hits = self.probe.hits
        self._say(info_line(self.board, info, hits, self._wdl(info) if self.shows_wdl else None))

    def _wdl(self, info: Info) -> tuple[int, int, int]:
        score = info.score.relative
        mate = score.mate()
        if mate is not None:
            return (1000, 0, 0) if mate > 0 else (0, 0, 1000)
        if self.probe is not None:
            return {2: (1000, 0, 0), -2: (0, 0, 1000)}.get(self.probe.wdl, (0, 1000, 0))
        from psearch.notation.wdl import wdl

        return wdl(score.score() or 0, self.board)

    def _move_in_need(self) -> tuple[chess.Move | None, chess.Move | None]:
        """What was known when a worker died; a legal move in any case."""
        if self.latest is not None and self.latest.pv:
            return bestmove_of(self.latest)
        only = self._root_moves()
        return next(iter(only or self.board.legal_moves), None), None

    def _bestmove(self, move: chess.Move | None, ponder: chess.Move | None) -> None:
        line = "bestmove (none)" if move is None else f"bestmove {self.board.uci(move)}"
        if move is not None and ponder is not None:
            line += f" ponder {uci_line(self.board, [move, ponder])[1]}"
        self.has_answered = True
        self.answer(line)


def _milliseconds(info: Info) -> int:
    return round(info.time_s * 1000)


def info_line(board: chess.Board, info: Info, tbhits: int = 0, wdl: tuple[int, int, int] | None = None) -> str:
    """An `info` line of the protocol. Scores are for the side to move; a mate counts moves."""
    relative = info.score.relative
    mate = relative.mate()
    score = f"cp {relative.score()}" if mate is None else f"mate {mate}"
    words: list[Any] = ["info depth", info.depth, "seldepth", info.seldepth, "multipv", info.multipv, "score", score]
    if info.bound != "exact":
        words.append(f"{info.bound}bound")
    if wdl is not None:
        words += ["wdl", *wdl]
    words += ["nodes", info.nodes, "nps", info.nps, "hashfull", info.hashfull, "tbhits", tbhits]
    words += ["time", _milliseconds(info)]
    if info.pv:
        words += ["pv", *uci_line(board, info.pv)]
    return " ".join(map(str, words))


def with_tablebase_score(info: Info, wdl: int) -> Info:
    """The score that the tablebases know: a win or a loss, unless the mate is in sight, else a draw."""
    relative = info.score.relative
    if abs(wdl) == 2 and relative.is_mate() and (relative > chess.engine.Cp(0)) == (wdl > 0):
        return info
    value = _TABLEBASE_WIN_CP * wdl // 2 if abs(wdl) == 2 else 0
    return replace(info, score=chess.engine.PovScore(chess.engine.Cp(value), info.score.turn), bound="exact")


def statistics_line(info: Info) -> str:
    """How the work was shared, as an `info string`."""
    workers = info.workers
    nodes = max(1, sum(worker.nodes for worker in workers))
    aborted = sum(worker.aborted_nodes for worker in workers)
    shares = sorted(worker.nodes / nodes for worker in workers)
    extremes = f" share {shares[0]:.0%} to {shares[-1]:.0%}" if shares else ""
    return (
        f"info string workers {len(workers)} splits {sum(worker.splits for worker in workers)}"
        f" joins {sum(worker.joins for worker in workers)} aborted {aborted / nodes:.1%}"
        f" idle {idle_share(workers):.1%}{extremes}"
    )
