"""Analyses the position on the board, and shows the lines live."""

from __future__ import annotations

from typing import Any

import chess
import chess.engine

from psearch.faces.web.connection import Connection
from psearch.faces.web.game_board import GameBoard
from psearch.faces.web.game_tree import score_facts
from psearch.faces.web.messages import Payload, setting_of, whole_of
from psearch.faces.web.playing import Match
from psearch.faces.web.shared_engine import WantedAnalysis
from psearch.options import Settings
from psearch.settings import SEARCH_SETTINGS, Face
from psearch.text.report import san_line

MOST_LINES = 10
_MOST_PLIES = 60
"""Most plies of a line that are shown."""
PAGE_SETTINGS = [option for option in SEARCH_SETTINGS if Face.PAGE in option.faces]


class Analyst:
    """Runs the analysis of one page; keeps its settings and its latest lines."""

    def __init__(self, page: Connection, board: GameBoard, match: Match) -> None:
        self._page, self._game, self._match = page, board, match
        self.is_on = False
        self._multipv = 3
        self._settings: dict[str, Any] = {option.field: option.default for option in PAGE_SETTINGS}
        self._state = "off"
        """`off`, or the latest state from `WantedAnalysis.tell`."""
        self._reason = ""
        self._node = -1
        """Number of the node that is searched."""
        self._board = chess.Board()
        self._latest: dict[str, Any] = {}
        """Latest lines sent to the page."""
        self._words: dict[tuple[chess.Move, ...], list[str]] = {}
        """SAN of the latest lines, kept because most lines do not change between updates."""
        page.handlers |= {
            "analysis.start": self._begin,
            "analysis.stop": lambda payload: self.stop(),
            "analysis.configure": self._configure,
        }

    @property
    def facts(self) -> dict[str, Any]:
        """Return the state for a page that was just opened."""
        return {**self._state_facts, "lines": self._latest}

    @property
    def _state_facts(self) -> dict[str, Any]:
        state = {"on": self.is_on, "state": self._state, "reason": self._reason}
        return {**state, "multipv": self._multipv, **self._settings}

    def _begin(self, payload: Payload) -> None:
        """Search the position on the board. Raises PsearchError during a game."""
        self._match.check_may_change()
        self.start()

    def _configure(self, payload: Payload) -> None:
        """Change `multipv` (the number of lines) and all settings of `PAGE_SETTINGS`."""
        multipv = whole_of(payload, "multipv", 1, MOST_LINES)
        settings = {option.field: setting_of(payload, option) for option in PAGE_SETTINGS}
        Settings.of(**settings)  # raises PsearchError for settings that cannot be combined
        self._multipv, self._settings = multipv, settings
        self._page.send("analysis.state", self._state_facts)
        if self.is_on:
            self.start()

    def start(self) -> None:
        """Search the position on the board, and follow the board from now on."""
        self.is_on = True
        self._node, self._board = self._game.tree.number, self._game.tree.board()
        self._latest, self._words = {}, {}
        if not any(self._board.legal_moves):
            self._page.shared_engine.end_analysis(self)
            self._take_state("over", "")
            return
        if self._state != "searching":
            self._take_state("waiting", "")
        options = {option.name: self._settings[option.field] for option in PAGE_SETTINGS}
        self._page.shared_engine.analyse(
            WantedAnalysis(self, self._board, self._multipv, options, self._show, self._take_state)
        )

    def stop(self, reason: str = "") -> None:
        """End the analysis. reason: why, for the page."""
        if self.is_on or self._state == "taken":
            self.is_on = False
            self._page.shared_engine.end_analysis(self)
            self._take_state("off", reason)

    def follow(self) -> None:
        """Search the new position if the board has changed."""
        if self.is_on and self._node != self._game.tree.number:
            self.start()

    def follow_other_game(self) -> None:
        """Search the new position after the game was replaced, which makes node numbers invalid."""
        self._latest = {}
        self._page.send("analysis.state", self.facts)
        if self.is_on:
            self.start()

    def _take_state(self, state: str, reason: str) -> None:
        if state == "free":  # restart with the present position
            self.start()
            return
        if state in ("taken", "failed"):
            self.is_on = False
        if (state, reason) != (self._state, self._reason):
            self._state, self._reason = state, reason
            self._page.send("analysis.state", self._state_facts)

    def _show(self, lines: list[chess.engine.InfoDict]) -> None:
        """Send the lines to the page if they have changed."""
        found = [line for line in lines[: self._multipv] if "score" in line and line.get("pv")]
        if not found:
            return
        words: dict[tuple[chess.Move, ...], list[str]] = {}
        first = lines[0]
        picture = {
            "id": self._node,
            **{name: first.get(name, 0) for name in ("depth", "nodes", "nps", "hashfull")},
            "time": round(first.get("time", 0.0), 2),
            "lines": [self._line(line, words) for line in found],
        }
        self._words = words
        if picture == self._latest:
            return
        self._latest = picture
        tree = self._game.tree
        if "lowerbound" not in first and "upperbound" not in first:
            tree.keep_score(self._node, first["score"], first.get("depth", 0))
        # the deepest known score, perhaps from another search
        self._page.show("analysis.lines", {**picture, "eval": tree.score_at(self._node)})

    def _line(self, line: chess.engine.InfoDict, words: dict[tuple[chess.Move, ...], list[str]]) -> dict[str, Any]:
        moves = tuple(line["pv"][:_MOST_PLIES])
        words[moves] = self._words.get(moves) or san_line(self._board, moves).split()
        bound = "lower" if "lowerbound" in line else "upper" if "upperbound" in line else "exact"
        wdl = line["wdl"].white() if "wdl" in line else None
        return {
            **score_facts(line["score"], bound),
            "depth": line.get("depth", 0),
            "seldepth": line.get("seldepth", 0),
            "san": words[moves],
            "uci": [move.uci() for move in moves],
            "wdl": [wdl.wins, wdl.draws, wdl.losses] if wdl is not None else None,
        }
