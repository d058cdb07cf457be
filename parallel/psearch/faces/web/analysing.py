"""The analysis of what stands on the board, shown while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import chess
import chess.engine

from psearch.faces.web.context import Context
from psearch.faces.web.game_tree import score_facts
from psearch.faces.web.messages import setting_of, whole_of
from psearch.faces.web.shared_engine import WantedAnalysis
from psearch.options import Settings
from psearch.settings import SEARCH_SETTINGS, Face
from psearch.text.report import san_line
from psearch.text.wdl import material

MOST_LINES = 10
_MOST_PLIES = 24
"""of a line that are shown"""
PAGE_SETTINGS = [option for option in SEARCH_SETTINGS if Face.PAGE in option.faces]


class Analyst:
    """The analysis of one page: whether there is one, how it searches, and what it has found."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.is_on = False
        self.multipv = 3
        self.settings: dict[str, Any] = {option.field: option.default for option in PAGE_SETTINGS}
        self.state = "off"
        """`off`, or what `WantedAnalysis.tell` was told"""
        self.reason = ""
        self._node = -1
        """the number of the node that is searched"""
        self._board = chess.Board()
        self._latest: dict[str, Any] = {}
        """what the page was shown"""
        self._words: dict[tuple[chess.Move, ...], list[str]] = {}
        """lines of the latest picture in SAN: most stay as they are from one picture to the next"""

    @property
    def facts(self) -> dict[str, Any]:
        """For a page that has just been opened."""
        return {
            "on": self.is_on,
            "state": self.state,
            "reason": self.reason,
            "multipv": self.multipv,
            **self.settings,
            "lines": self._latest,
        }

    def configure(self, payload: Mapping[str, Any]) -> None:
        """Set how many lines to show, and other settings of the search. Raises PsearchError."""
        multipv = whole_of(payload, "multipv", 1, MOST_LINES)
        settings = {option.field: setting_of(payload, option) for option in PAGE_SETTINGS}
        Settings.of(**settings)  # raises for settings that do not go together
        self.multipv, self.settings = multipv, settings
        self._tell_state()
        if self.is_on:
            self.start()

    def start(self) -> None:
        """Search what stands on the board, from now on whatever stands there."""
        self.is_on = True
        self._node, self._board = self._context.tree.number, self._context.tree.board()
        self._latest, self._words = {}, {}
        if not any(self._board.legal_moves):
            self._context.shared_engine.end_analysis(self)
            self._take_state("over", "")
            return
        if self.state != "searching":
            self._take_state("waiting", "")
        self._context.shared_engine.analyse(
            WantedAnalysis(
                owner=self,
                board=self._board,
                multipv=self.multipv,
                options={option.name: self.settings[option.field] for option in PAGE_SETTINGS},
                show=self._show,
                tell=self._take_state,
            )
        )

    def stop(self, reason: str = "") -> None:
        """End it."""
        if self.is_on or self.state == "taken":
            self.is_on = False
            self._context.shared_engine.end_analysis(self)
            self._take_state("off", reason)

    def follow(self) -> None:
        """Follow the board, on which something else stands."""
        if self.is_on and self._node != self._context.tree.number:
            self.start()

    def follow_other_game(self) -> None:
        """Follow to another game, in which the numbers of nodes mean others."""
        self._latest = {}
        if self.is_on:
            self.start()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _take_state(self, state: str, reason: str) -> None:
        if state == "free":  # again, for what stands on the board now
            self.start()
            return
        if state in ("taken", "failed"):
            self.is_on = False
        if (state, reason) != (self.state, self.reason):
            self.state, self.reason = state, reason
            self._tell_state()

    def _tell_state(self) -> None:
        facts = self.facts
        del facts["lines"]
        self._context.send("analysis.state", facts)

    def _show(self, lines: list[chess.engine.InfoDict]) -> None:
        """Show the lines, if there is something new."""
        found = [line for line in lines[: self.multipv] if "score" in line and line.get("pv")]
        if not found:
            return
        words: dict[tuple[chess.Move, ...], list[str]] = {}
        first = lines[0]
        picture = {
            "id": self._node,
            "depth": first.get("depth", 0),
            "nodes": first.get("nodes", 0),
            "nps": first.get("nps", 0),
            "hashfull": first.get("hashfull", 0),
            "time": round(first.get("time", 0.0), 2),
            "lines": [self._line(line, words) for line in found],
        }
        self._words = words
        if picture == self._latest:
            return
        self._latest = picture
        tree = self._context.tree
        if "lowerbound" not in first and "upperbound" not in first:
            tree.keep_score(self._node, first["score"], first.get("depth", 0))
        # the best that is known of the position, which another search may have found
        self._context.show("analysis.lines", {**picture, "eval": tree.score_at(self._node)})

    def _line(self, line: chess.engine.InfoDict, words: dict[tuple[chess.Move, ...], list[str]]) -> dict[str, Any]:
        moves = tuple(line["pv"][:_MOST_PLIES])
        words[moves] = self._words.get(moves) or san_line(self._board, moves).split()
        score = line["score"]
        bound = "lower" if "lowerbound" in line else "upper" if "upperbound" in line else "exact"
        wdl = line["wdl"].white() if "wdl" in line else None
        return {
            **score_facts(score, material(self._board), bound),
            "depth": line.get("depth", 0),
            "seldepth": line.get("seldepth", 0),
            "san": words[moves],
            "uci": [move.uci() for move in moves],
            "wdl": [wdl.wins, wdl.draws, wdl.losses] if wdl is not None else None,
        }
