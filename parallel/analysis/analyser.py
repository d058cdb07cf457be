"""The analysis of many positions, one after the other: searches, what is kept of them, and how they go on.

`Analyser` answers positions from the journal or by a search; `psearch.analysis.epd` and `psearch.analysis.pgn` say what
to make of the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import chess
import chess.engine

from psearch.analysis.journal import AnalysisJournal
from psearch.notation.report import uci_line
from psearch.processes.request import SearchRequest
from psearch.results import Info, Limits

if TYPE_CHECKING:
    from psearch.options import SearchOptions
    from psearch.processes.control import SearchControl
    from psearch.processes.supervisor import Supervisor

_MOST_PV_PLIES = 20
"""of a line that is kept"""


@dataclass(frozen=True)
class Choice:
    """From when on the search preferred a move."""

    move: str
    """UCI"""
    time_s: float
    depth: int
    nodes: int


@dataclass(frozen=True)
class Answer:
    """What is kept of one finished search. Scores are for the side to move; moves are UCI."""

    best: str
    cp: int | None
    """centipawns; None for a mate"""
    mate: int | None
    """moves to mate, negative when being mated; None otherwise"""
    depth: int
    seldepth: int
    nodes: int
    time_s: float
    pv: list[str]
    choices: list[Choice] = field(default_factory=list)
    """the best move and its predecessors, each where it became the best; the last one is `best`"""
    bound: str = "exact"
    """what the score is: `exact`, `lower` or `upper`, as in `Info`"""
    exact_cp: int | None = None
    """the last exact score of the same move, where the score is a bound and there is one; a mate is in `exact_mate`"""
    exact_mate: int | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Answer:
        """From what `asdict` made of one."""
        return cls(**{**values, "choices": [Choice(**choice) for choice in values["choices"]]})

    @property
    def score(self) -> chess.engine.Score:
        """For the side to move."""
        return _score(self.cp, self.mate)

    @property
    def estimate(self) -> tuple[chess.engine.Score, str]:
        """For formats that have no bounds: the last exact score if it may still be right, else the bound; and which."""
        if self.exact_cp is None and self.exact_mate is None:
            return self.score, self.bound
        exact = _score(self.exact_cp, self.exact_mate)
        holds = exact >= self.score if self.bound == "lower" else exact <= self.score
        return (exact, "exact") if holds else (self.score, self.bound)


def _score(cp: int | None, mate: int | None) -> chess.engine.Score:
    return chess.engine.Cp(cp or 0) if mate is None else chess.engine.Mate(mate)


class Stopped(Exception):
    """A signal came: the position that was searched is not finished."""


class _Choices:
    """A listener to a search that notes when the preferred move changes and the last exact score, and passes reports
    on."""

    def __init__(self, board: chess.Board, on_info: Callable[[Info], None]) -> None:
        self.board = board
        self.on_info = on_info
        self.found: list[Choice] = []
        self.exact: Info | None = None

    def __call__(self, info: Info) -> None:
        if info.bound == "exact" and not info.is_live:
            self.exact = info
        if info.depth > 0 and info.pv:
            self.note(info.pv[0], info)
        self.on_info(info)

    def note(self, move: chess.Move, info: Info) -> None:
        word = self.board.uci(move)
        if not self.found or self.found[-1].move != word:
            self.found.append(Choice(word, round(info.time_s, 4), info.depth, info.nodes))

    def exact_score(self, move: chess.Move) -> chess.engine.Score | None:
        """The last one, if it is this move's."""
        return self.exact.score.relative if self.exact is not None and self.exact.pv[0] == move else None


class Analyser:
    """Answers positions, from the journal where it has them, else by a search on a supervisor.

    engine: newly started, so that its table is empty; control: stops the present search and the analysis; on_info:
    called while searching; on_answer: called with every answer, True if it comes from a search; on_note: called with a
    line when workers were lost and replaced.
    """

    def __init__(
        self,
        engine: Supervisor,
        limits: Limits,
        options: SearchOptions,
        control: SearchControl,
        journal: AnalysisJournal | None = None,
        on_info: Callable[[Info], None] = lambda info: None,
        on_answer: Callable[[bool], None] = lambda searched: None,
        on_note: Callable[[str], None] = lambda note: None,
    ) -> None:
        self.engine = engine
        self.limits = limits
        self.options = options
        self.control = control
        self.journal = journal
        self.on_info = on_info
        self.on_answer = on_answer
        self.on_note = on_note
        self._is_new = True
        self._forgets = False

    def forget(self) -> None:
        """The next search knows nothing of those before: empty table, no histories."""
        self._forgets = not self._is_new  # to empty gigabytes takes seconds

    def answer(self, key: str, board: chess.Board) -> Answer:
        """The answer for a position with a legal move. Raises Stopped, WorkerDied, and OSError for the journal."""
        if self.control.is_stopped:
            raise Stopped
        kept = self.journal.get(key) if self.journal is not None else None
        if kept is not None:
            self.on_answer(False)
            return Answer.from_json(kept)
        answer = self._search(board)
        if self.journal is not None:
            self.journal.add(key, asdict(answer))
        self.on_answer(True)
        return answer

    def _search(self, board: chess.Board) -> Answer:
        if self._forgets:
            self.engine.forget()
            self._forgets = False
        self._is_new = False
        choices = _Choices(board, self.on_info)
        request = SearchRequest(
            board, self.limits, self.options, on_info=choices, on_note=self.on_note, control=self.control
        )
        result = self.engine.search(request)
        if result.interrupted:
            raise Stopped
        info = result.info
        if result.bestmove is None:
            raise ValueError("no legal move")
        choices.note(result.bestmove, info)
        score = info.score.pov(board.turn)
        exact = choices.exact_score(result.bestmove) if info.bound != "exact" else None
        return Answer(
            best=board.uci(result.bestmove),
            cp=score.score(),
            mate=score.mate(),
            depth=info.depth,
            seldepth=info.seldepth,
            nodes=info.nodes,
            time_s=round(info.time_s, 4),
            pv=uci_line(info.pv[:_MOST_PV_PLIES]),
            bound=info.bound,
            exact_cp=None if exact is None else exact.score(),
            exact_mate=None if exact is None else exact.mate(),
            choices=choices.found,
        )
