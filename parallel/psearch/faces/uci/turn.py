"""Runs one search from the `go` to its answer, and formats all its lines; also perft and the static evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import chess

from psearch.api.counting import static_evaluation
from psearch.faces.uci.go import Go
from psearch.faces.uci.resources import Resources
from psearch.faces.uci.uci_options import OptionValues
from psearch.options import SearchOptions
from psearch.processes.perft_tasks import count_leaves
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.processes.time_manager import GameClock, TimeManager, fixed_time, time_manager
from psearch.results import Info, Limits, Result
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.searcher.root import Prepared, prepared
from psearch.searcher.searcher import search_here
from psearch.strength import human_delay_s
from psearch.text.chess_files import LOSS, WIN, RootProbe
from psearch.text.report import idle_share, uci_line
from psearch.text.wdl import Wdl, wdl_of_score
from psearch_core.chess.chess_entries import PERFT

_LIVE_FROM_S = 3.0
_LIVE_INTERVAL_S = 1.0
"""The protocol wants the current root move and counters every second, after the first seconds."""
_PONDER_BONUS = 1.25
"""Factor on the time of a move when the engine also ponders on the opponent's time."""
_PATIENCE_S = 0.004
"""Time for workers to stop before the answer is given without them, in seconds."""


class Turn:
    """Finds a move for a `go` and answers with it. The position must have a legal move.

    values: the options at the time of the command; debug: also print how the work was shared; report: takes unexpected
    errors.
    """

    def __init__(
        self, go: Go, values: OptionValues, debug: bool, resources: Resources, report: Callable[[Exception], None]
    ) -> None:
        self.go = go
        self.command = go.command
        self.board = go.command.board
        self.values = values
        self.debug = debug
        self.resources = resources
        self.report = report
        self.plays = not values["UCI_AnalyseMode"]
        self.elo = values["UCI_Elo"] if self.plays and values["UCI_LimitStrength"] else None
        self.shows_wdl = values["UCI_ShowWDL"]
        self.probe: RootProbe | None = None
        self.latest: Info | None = None
        self.waited_s = go.start_clock()
        """Seconds spent waiting for kernels and workers, while the game clock ran."""

    def run(self) -> bool:
        """Answer with a book move, or search. Return whether the workers completed a search, which can be traced then.

        After a failure the answer is the latest line, or that of a search in this process, or a move of the endgame
        tables; there is no answer without any of them.
        """
        resources, command, move = self.resources, self.command, None
        if self.values["OwnBook"] and self.plays and not (command.infinite or command.searchmoves or command.mate):
            move = resources.book.ask(lambda book: book.pick(self.board, resources.dice))
        if move is not None:
            self.go.say(f"info string book move {self.board.uci(move)}")
            after = self.board.copy(stack=False)
            after.push(move)
            self._answer(move, resources.book.ask(lambda book: book.expected(after)))
            return False
        if self.elo is None:
            self.probe = resources.prober.ask(lambda prober: prober.probe(self.board))
        searcher = self.resources.searcher
        if searcher.are_there and self._finish(lambda request: searcher.supervisor.search(request)):
            return True
        is_untried = self.latest is None and self.resources.has_kernels
        if is_untried and self._finish(search_here):
            return False
        if self.latest is not None:
            self._answer(*self.latest.pv[:2])
        elif self.probe is not None:
            self._answer(*(self._prepared().request.only or [])[:1])
        return False

    def _prepared(self) -> Prepared:
        command = self.command
        request = SearchRequest(
            self.board,
            Limits(depth=command.depth, nodes=command.nodes, mate=command.mate),
            replace(self.resources.search_options(self.values), elo=self.elo),
            list(command.searchmoves) or None,
            self.values["MultiPV"],
            on_info=self._report,
            live_from_s=_LIVE_FROM_S,
            live_interval_s=_LIVE_INTERVAL_S,
            control=self.go.control,
            on_note=self.resources.note,
            patience_s=_PATIENCE_S,
            seed=self.resources.seed,
        )
        return prepared(request, self.probe)

    def _time_manager(self, moves: int) -> TimeManager:
        """Return the time manager. moves: number of root moves, at most 2."""
        command = self.command
        overhead_s = self.values["Move Overhead"] / 1000
        clock_ms, increment_ms = command.own_ms
        clock = None
        if clock_ms is not None:
            clock = GameClock(clock_ms / 1000, increment_ms / 1000, command.movestogo)
        lag = self.resources.lag
        clock = lag.read(clock, overhead_s)
        if clock is not None and not command.ponder:
            clock = replace(clock, time_s=clock.time_s - self.waited_s)
        fixed = None if command.movetime is None else fixed_time(command.movetime / 1000, overhead_s, lag.late_s)
        stretch = _PONDER_BONUS if self.values["Ponder"] else 1.0
        return time_manager(clock, fixed, moves, overhead_s, stretch, pondering=command.ponder)

    def _report(self, info: Info) -> None:
        """Print a report of the search: a line, or live counters."""
        if info.multipv == 1 and info.pv:
            self.latest = info
        if not info.is_live:
            self._show([info])
        else:
            self.go.say(live_line(info))
            if self.debug:
                self.go.say(statistics_line(info))

    def _show(self, lines: Sequence[Info]) -> None:
        """Print lines. Errors are reported, and do not end the search."""
        tables = None if self.probe is None else self.probe.wdl
        try:
            for info in lines:
                self.go.say(info_line(info, shown_wdl(self.board, info, tables) if self.shows_wdl else None))
        except Exception as error:
            self.report(error)

    def _finish(self, search: Callable[[SearchRequest], Result]) -> bool:
        """Search, print the last lines, answer and return True; after a failure report it and return False."""
        try:
            asked = self._prepared()
            moves = asked.request.only or list(islice(self.board.legal_moves, 2))
            control = self.go.control
            control.clock = clock = self._time_manager(len(moves))
            if clock.pondering and not (self.go.is_pondering or control.is_stopped) and control.asked_at is not None:
                clock.ponderhit(self.go.asked_at - control.asked_at)  # a search that failed may have taken it
            result = asked.finished(search(asked.request))
        except Exception as error:  # no error should lose a game
            self.report(error)
            return False
        self._show(result.lines)
        if self.debug:
            self.go.say(statistics_line(result.info))
        if result.bestmove is not None and self.elo is not None and self.values["HumanDelay"]:
            self._rest(result.bestmove)
        self._answer(result.bestmove, result.ponder)
        return True

    def _rest(self, move: chess.Move) -> None:
        """Wait as a person would who plays `move` in a game: with a clock or a time for each move."""
        command = self.command
        clock_ms, increment_ms = command.own_ms
        if (clock_ms is None and command.movetime is None) or command.ponder or command.infinite:
            return

        def without_overhead_s(milliseconds: float) -> float:
            return max(0.0, (milliseconds - float(self.values["Move Overhead"])) / 1000)

        most_s = math.inf if command.movetime is None else without_overhead_s(command.movetime)
        usual_s = most_s if clock_ms is None else without_overhead_s(clock_ms)
        increment_s = None if clock_ms is None else increment_ms / 1000
        delay_s = min(most_s, human_delay_s(self.board, move, self.resources.dice, usual_s, increment_s))
        if self.go.control.clock is not None and delay_s > self.go.clock_ran_s:
            self.go.control.clock.meant_s = None  # the wait is meant, too
        self.go.rest(delay_s)

    def _answer(self, *moves: chess.Move | None) -> None:
        self.go.answer(bestmove_line(*(move for move in moves if move is not None)))
        waited_s = 0.0 if self.command.ponder else self.waited_s
        self.resources.lag.played(self.go.control.clock, self.go.clock_ran_s, waited_s)


def info_line(info: Info, wdl: Wdl | None = None) -> str:
    """Return an `info` line. Scores are for the side to move; mates are in moves."""
    relative = info.score.relative
    mate = relative.mate()
    score = f"cp {relative.score()}" if mate is None else f"mate {mate}"
    words: list[Any] = ["info depth", info.depth, "seldepth", info.seldepth, "multipv", info.multipv, "score", score]
    if info.bound != "exact":
        words.append(f"{info.bound}bound")
    if wdl is not None:
        words += ["wdl", *wdl]
    words += ["nodes", info.nodes, "nps", info.nps, "hashfull", info.hashfull, "tbhits", info.tbhits]
    words += ["time", round(info.time_s * 1000)]
    if info.pv:
        words += ["pv", *uci_line(info.pv)]
    return " ".join(map(str, words))


def live_line(info: Info) -> str:
    """Return an `info` line between two iterations: counters, and the root move that is being searched."""
    line = (
        f"info depth {info.depth} nodes {info.nodes} nps {info.nps} hashfull {info.hashfull}"
        f" time {round(info.time_s * 1000)}"
    )
    if info.currmove is not None:
        line += f" currmove {info.currmove.uci()} currmovenumber {info.currmovenumber}"
    return line


def statistics_line(info: Info) -> str:
    """Return how the work was shared, as an `info string`."""
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


def bestmove_line(*moves: chess.Move) -> str:
    """Return the answer to a `go`. moves: the best move and the expected reply, if any; none without a legal move."""
    return "bestmove " + (" ponder ".join(uci_line(moves)) or "(none)")


def shown_wdl(board: chess.Board, info: Info, tablebases: int | None) -> Wdl:
    """Return win, draw and loss in thousandths for `info ... wdl`, from the endgame tables or else from the model.
    tablebases: their result, WIN to LOSS, if they were probed. A mate score is certain, too."""
    score = info.score.relative
    if tablebases is None or score.is_mate():
        return wdl_of_score(score, board)
    return {WIN: (1000, 0, 0), LOSS: (0, 0, 1000)}.get(tablebases, (0, 1000, 0))


def count_moves(
    board: chess.Board, depth: int, threads: int, progress: Callable[[str], None], is_stopped: Callable[[], bool]
) -> str:
    """Run a perft and return the lines that `go perft` prints. progress: takes lines while kernels are compiled, which
    is not timed. Raises PsearchError when it is stopped."""
    load_kernels(PERFT, progress=progress)
    counts, seconds = count_leaves(board, depth, threads, is_stopped)
    lines = sorted(f"{board.uci(move)}: {nodes}" for move, nodes in counts.items())
    total = sum(counts.values())
    return "\n".join([*lines, f"info nodes {total} time {round(seconds * 1000)}", "", f"Nodes searched: {total}"])


def evaluation_line(supervisor: Supervisor, board: chess.Board, options: SearchOptions) -> str:
    """Return the line that `eval` prints. Raises PsearchError."""
    supervisor.arena.take_network(options.read_network())
    value = static_evaluation(supervisor.arena.tables, board, bool(options.rules.network))
    if value is None:
        return "info string no static evaluation: in check"
    white = value if board.turn == chess.WHITE else -value
    return f"static evaluation {white / 100:+.2f} (White's view)"
