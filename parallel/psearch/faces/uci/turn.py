"""One search, from the beginning of a `go` to its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import chess

from psearch.faces.uci.go import Go
from psearch.faces.uci.resources import Resources
from psearch.faces.uci.strength import MOST_LINES, bestmove_of, choose_line, node_limit, noise_cp
from psearch.faces.uci.uci_messages import bestmove_line, info_line, live_line, shown_wdl, statistics_line
from psearch.faces.uci.uci_options import OptionValues
from psearch.processes.request import SearchRequest
from psearch.processes.time_manager import GameClock, TimeManager, fixed_time, time_manager
from psearch.results import Info, Limits, Result
from psearch.searcher.searcher import search_here

if TYPE_CHECKING:
    from psearch.text.chess_files import RootProbe

_LIVE_FROM_S = 3.0
_LIVE_INTERVAL_S = 1.0
"""The protocol wants the root move that is being searched, after the first seconds, and counters about every second."""
_PONDER_BONUS = 1.25
"""More time for a move when the opponent's time is used too."""
_PATIENCE_S = 0.004
"""How long workers may take to stop before the answer is given without them."""


class Turn:
    """Finds a move for a `go` and answers with it; the `Go` keeps whether that has been done.

    The position has a legal move. values: the options at the time of the command; debug: also print how the work was
    shared; report: is told of what should not happen.
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
        self.plays = not values.flag("UCI_AnalyseMode")
        self.elo = values.number("UCI_Elo") if self.plays and values.flag("UCI_LimitStrength") else None
        self.lines_shown = values.number("MultiPV")
        self.shows_wdl = values.flag("UCI_ShowWDL")
        self.probe: RootProbe | None = None
        self.latest: Info | None = None
        self.waited_s = go.start_clock()
        """for kernels and workers: no thinking time, but the clock of a game has run meanwhile"""

    def run(self) -> bool:
        """Answer with a move of the book, or search. Whether a search was run to its end: it can be traced then.

        Whatever fails, the answer is the best that is left; there is none when nothing could be searched.
        """
        book_move = self._book_move()
        if book_move is not None:
            self.go.say(f"info string book move {self.board.uci(book_move)}")
            self._answer(book_move, self.resources.book_reply(self.board, book_move))
            return False
        if self.elo is None:
            self.probe = self.resources.probe(self.board)
        result = self._attempt(self._search) if self.resources.searcher.are_there else None
        if result is not None:
            self._finish(result)
        else:
            self._answer_in_need()
        return result is not None

    def _attempt(self, search: Callable[[], Result]) -> Result | None:
        """A search; what fails is reported."""
        try:
            return search()
        except Exception as error:  # of whatever kind: a game is not to be lost for it
            self.report(error)
            return None

    def _answer_in_need(self) -> None:
        """The workers have failed: answer with the latest line, with a search in this process, with the tables' move.

        Nothing is said when there is none of these.
        """
        result = self._attempt(self._search_here) if self.latest is None and self.resources.has_kernels else None
        if result is not None:
            self._finish(result)
        elif self.latest is not None:
            self._answer(*bestmove_of(self.latest))
        elif self.probe is not None:
            self._answer((self._root_moves() or self.probe.best)[0])

    def _book_move(self) -> chess.Move | None:
        command = self.command
        wanted = self.values.flag("OwnBook") and self.plays
        if not wanted or command.infinite or command.searchmoves or command.mate is not None:
            return None
        return self.resources.book_move(self.board)

    # -- the search --------------------------------------------------------------------------------------------------

    def _search(self) -> Result:
        """With the workers."""
        return self.resources.searcher.supervisor.search(self._request())

    def _search_here(self) -> Result:
        """Without them, in this thread."""
        return search_here(self._request())

    def _request(self) -> SearchRequest:
        """What is to be searched, on the clock of the command."""
        command = self.command
        root_moves = self._root_moves()
        self.go.control.clock = self._time_manager(len(root_moves or list(islice(self.board.legal_moves, 2))))
        nodes, lines = command.nodes, self.lines_shown
        if self.elo is not None:
            nodes = min(nodes or 1 << 62, node_limit(self.elo))
            if noise_cp(self.elo) > 0:
                lines = max(lines, MOST_LINES)
        return SearchRequest(
            self.board,
            Limits(depth=command.depth, nodes=nodes, mate=command.mate),
            self.resources.search_options(self.values),
            root_moves,
            lines,
            on_info=self._report,
            live_from_s=_LIVE_FROM_S,
            live_interval_s=_LIVE_INTERVAL_S,
            control=self.go.control,
            on_note=self.resources.note,
            patience_s=_PATIENCE_S,
        )

    def _root_moves(self) -> list[chess.Move] | None:
        """The GUI's choice, and among those the ones that the tablebases call best. None: all."""
        wanted = list(self.command.searchmoves) or None
        if self.probe is None:
            return wanted
        best = [move for move in self.probe.best if wanted is None or move in wanted]
        return best or wanted

    def _time_manager(self, moves: int) -> TimeManager:
        """The clock for a choice among so many moves; two stand for all numbers above."""
        command = self.command
        overhead_s = self.values.number("Move Overhead") / 1000
        clock_ms, increment_ms = command.own_ms
        clock = None
        if clock_ms is not None:
            clock = GameClock(clock_ms / 1000, increment_ms / 1000, command.moves_to_go)
        clock = self.resources.lag.read(clock, overhead_s)
        if clock is not None and not command.ponder:
            clock = replace(clock, time_s=clock.time_s - self.waited_s)
        movetime_ms = command.movetime_ms
        fixed = None if movetime_ms is None else fixed_time(movetime_ms / 1000, overhead_s)
        stretch = _PONDER_BONUS if self.values.flag("Ponder") else 1.0
        return time_manager(clock, fixed, moves, overhead_s, stretch, pondering=command.ponder)

    # -- what is said ------------------------------------------------------------------------------------------------

    def _report(self, info: Info) -> None:
        """A report of the search: show it, or from time to time how it goes on."""
        if info.multipv == 1 and info.pv:
            self.latest = info
        if not info.is_live:
            self._show_all([info])
        else:
            self.go.say(live_line(info))
            if self.debug:
                self.go.say(statistics_line(info))

    def _show_all(self, lines: Sequence[Info]) -> None:
        """Show the lines that are wanted. What goes wrong is reported: it shall not end the search."""
        try:
            for info in lines:
                if info.multipv <= self.lines_shown:
                    self._show(info)
        except Exception as error:
            self.report(error)

    def _show(self, info: Info) -> None:
        hits, tablebases = 0, None
        if self.probe is not None:
            hits, tablebases = self.probe.hits, self.probe.wdl
            info = self.probe.scored(info)
        wdl = shown_wdl(self.board, info, tablebases) if self.shows_wdl else None
        self.go.say(info_line(info, hits, wdl))

    def _finish(self, result: Result) -> None:
        """The last lines and the answer."""
        self._show_all(result.lines)
        if self.debug:
            self.go.say(statistics_line(result.info))
        if self.elo is not None and result.lines:
            self._answer(*bestmove_of(choose_line(result.lines, self.elo, self.resources.dice)))
        else:
            self._answer(result.bestmove, result.ponder)

    def _answer(self, move: chess.Move | None, ponder: chess.Move | None = None) -> None:
        self.go.answer(bestmove_line(move, ponder))
        waited_s = 0.0 if self.command.ponder else self.waited_s
        self.resources.lag.played(self.go.control.clock, self.go.clock_ran_s, waited_s)
