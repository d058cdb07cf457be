"""The analysis of many positions: what is searched, in which order the answers come, and what is kept of them.

`Analyser` answers positions from the journal or by a farm; `psearch.batch.analysis.suite_results` and
`psearch.batch.analysis.games` say what to make of the answers.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

import chess
import chess.engine

from psearch.batch.analysis.analysis_journal import AnalysisJournal, check_moves
from psearch.batch.positions.answers import score_of
from psearch.batch.positions.boards import board_of, from_board
from psearch.batch.positions.comparing import estimate_of
from psearch.batch.positions.crew import Crew
from psearch.batch.positions.flow import rounds
from psearch.batch.positions.jobs import Chain, Choice, Comparison, Found, Outcome, Pause, Task
from psearch.results import Limits, PsearchError

_MOST_PV_PLIES = 20
"""of a line that is kept"""
_MOST_KNOWN = 4_096
"""Works that need no search, and wait for those before them."""
T = TypeVar("T")
A = TypeVar("A")


@dataclass(frozen=True)
class PositionAnswer:
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
    tbhits: int = 0
    """root moves that were looked up in endgame tables"""
    compared: Comparison | None = None
    """with the move that was played, where that may be a mistake"""

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> PositionAnswer:
        """Make one from what `asdict` made of it."""
        compared = values["compared"]
        return cls(
            **{
                **values,
                "choices": [Choice(**choice) for choice in values["choices"]],
                "compared": None if compared is None else Comparison(**compared),
            }
        )

    @property
    def score(self) -> chess.engine.Score:
        """For the side to move."""
        return score_of(self.cp, self.mate)

    @property
    def estimate(self) -> tuple[chess.engine.Score, str]:
        """For formats that have no bounds: the last exact score if it may still be right, else the bound; and which."""
        return estimate_of(self.cp, self.mate, self.bound, self.exact_cp, self.exact_mate)


class Stopped(Exception):
    """A signal came: what was being searched is not finished."""


def answer_of(found: Found) -> PositionAnswer:
    """Return what is kept of a position that has a legal move."""
    best = found.lines[0]
    if found.best is None:
        raise ValueError("no legal move")
    return PositionAnswer(
        best=found.best,
        cp=best.cp,
        mate=best.mate,
        depth=best.depth,
        seldepth=best.seldepth,
        nodes=found.nodes,
        time_s=found.time_s,
        pv=best.pv[:_MOST_PV_PLIES],
        bound=best.bound,
        exact_cp=found.exact_cp,
        exact_mate=found.exact_mate,
        choices=found.choices,
        tbhits=found.tbhits,
        compared=found.compared,
    )


@dataclass(frozen=True)
class Form(Generic[A]):
    """What is kept of a search, in memory and in the journal."""

    make: Callable[[Found], A]
    dump: Callable[[A], dict[str, Any]]
    """as JSON values"""
    load: Callable[[dict[str, Any]], A]
    moves: Callable[[A], list[tuple[str, list[str], list[str]]]]
    """the move, its line, and other moves of the same position; of each search"""
    depth: Callable[[A], int]


ANSWERS = Form(
    answer_of,
    asdict,
    PositionAnswer.from_json,
    lambda answer: [
        (answer.best, answer.pv, [choice.move for choice in answer.choices]),
        *([] if answer.compared is None else [(answer.compared.best, answer.compared.pv, [])]),
    ],
    lambda answer: answer.depth,
)


def position_task(key: str, board: chess.Board, limits: Limits, line: Sequence[chess.Move] = ()) -> Task:
    """Return a position with its history, to be searched. line: what was played there in a game, which may be
    compared."""
    fen, moves = from_board(board)
    walk = board.copy(stack=False)
    words = []
    for move in line:
        words.append(walk.uci(move))
        walk.push(move)
    return Task(key, fen, moves, limits, line=tuple(words), chess960=board.chess960)


@dataclass(frozen=True)
class Work(Generic[T, A]):
    """Something whose result needs answers: a position of a suite, a game."""

    item: T
    tasks: Iterable[Task]
    """what has to be searched for it, one after the other with one table; read once, when it is needed. Their ids are
    the keys of the journal"""
    older: Mapping[str, A] = field(default_factory=dict)
    """answers that are there already, by key: kept where they are deeper than what is found; where one is as deep as
    the limit of depth, nothing is searched"""


@dataclass
class PositionAnswered(Generic[T, A]):
    """Something with all answers that there are."""

    item: T
    answers: dict[str, A] = field(default_factory=dict)
    """by key"""
    problems: dict[str, str] = field(default_factory=dict)
    """why there is none, by key"""
    from_older: int = 0
    """answers that were there already"""


class _Pending(PositionAnswered[T, A]):
    """Not all answers are there yet."""

    def __init__(self, work: Work[T, A]) -> None:
        super().__init__(work.item)
        self.work = work
        self.kept: list[str] = []
        """keys whose answers are in the journal: they are kept there until it is their turn"""
        self.missing = 0
        self.was_searched = False
        """some of it, just now"""
        self.is_read = False

    @property
    def is_complete(self) -> bool:
        return self.is_read and self.missing == 0


class Analyser(Generic[A]):
    """Answers positions, from the journal where it has them, else by a crew. form: of the answers.

    is_stopped: asked now and then; on_answer: called with every answer, True if it comes from a search; on_note: called
    with a line when something went wrong in a search and was mended; assist: threads that may search in all when
    fewer positions are left than hands, 0: hands help nobody; is_exact: figures are to be those of a run that nobody
    interrupts. A work that was begun is searched again from its start then, for what the table had at that point is
    lost.
    """

    def __init__(
        self,
        crew: Crew,
        form: Form[A],
        is_stopped: Callable[[], bool],
        journal: AnalysisJournal | None = None,
        on_answer: Callable[[bool], None] = lambda searched: None,
        on_note: Callable[[str], None] = lambda note: None,
        assist: int = 0,
        is_exact: bool = False,
    ) -> None:
        self.crew = crew
        self.form = form
        self.is_stopped = is_stopped
        self.journal = journal
        self.on_answer = on_answer
        self.on_found: Callable[[str, A], None] = lambda key, answer: None
        """called with what was searched just now, before `on_answer`"""
        self.on_note = on_note
        self.assist = assist
        self.is_exact = is_exact

    def answered(
        self, works: Iterable[Work[T, A] | Pause], awaited: int | None = None
    ) -> Iterator[PositionAnswered[T, A]]:
        """Yield everything with its answers, in the order of `works`, which is read some way ahead.

        awaited: a descriptor that can be read when `works` can go on behind `Pause.INPUT`. Raises Stopped, WorkerDied,
        PsearchError when the journal has the answer of another position, OSError for the journal, and what `works`
        does.
        """
        pending: deque[_Pending[T, A]] = deque()
        at: dict[str, _Pending[T, A]] = {}
        known = 0

        def take(outcome: Outcome) -> None:
            """Take an answer at once, whatever its turn is."""
            if outcome.found is not None:
                answer = self.form.make(outcome.found)
                if self.journal is not None:
                    self.journal.add(str(outcome.id), self.form.dump(answer))
                self.on_found(str(outcome.id), answer)
                for note in outcome.found.notes:
                    self.on_note(note)
            self.on_answer(True)

        def chains() -> Iterator[Chain | Pause]:
            nonlocal known
            for work in works:
                if isinstance(work, Pause):
                    yield work
                    continue
                opened = _Pending(work)
                pending.append(opened)
                tasks = self._tasks(opened, at)
                first = next(tasks, None)
                if first is not None:
                    yield Chain(itertools.chain([first], tasks))
                    continue
                known += 1
                if len(pending) == 1:  # it is given out before more is read
                    yield Pause.ROUND
                while known >= _MOST_KNOWN:
                    yield Pause.OUTCOME

        for some in rounds(
            self.crew,
            chains(),
            ordered=True,
            assist=self.assist,
            is_stopped=self.is_stopped,
            on_outcome=take,
            awaited=awaited,
        ):
            for outcome in some:
                owner = at.pop(str(outcome.id))
                owner.missing -= 1
                if outcome.found is not None:
                    owner.answers[str(outcome.id)] = self.form.make(outcome.found)
                else:
                    owner.problems[str(outcome.id)] = outcome.error or "no answer"
            while pending and pending[0].is_complete:
                done = pending.popleft()
                known -= not done.was_searched
                yield self._ready(done)
        if self.is_stopped():
            raise Stopped

    def _tasks(self, opened: _Pending[T, A], at: dict[str, _Pending[T, A]]) -> Iterator[Task]:
        """What is to be searched for it."""
        known: list[Task] = []
        for task in opened.work.tasks:
            key = str(task.id)
            if self.journal is not None and key in self.journal and not (self.is_exact and opened.was_searched):
                self._check(key, task)
                known.append(task)
                continue
            older = opened.work.older.get(key)
            if older is not None and task.limits.depth is not None and self.form.depth(older) >= task.limits.depth:
                self.on_answer(False)
                continue
            again, known = (known, []) if self.is_exact else ([], known)
            for missing in (*again, task):
                opened.missing += 1
                opened.was_searched = True
                at[str(missing.id)] = opened
                yield missing
        opened.kept = [str(task.id) for task in known]
        opened.is_read = True

    def _ready(self, done: _Pending[T, A]) -> PositionAnswered[T, A]:
        """With what the journal has had, and older answers where they are deeper."""
        for key in done.kept:
            done.answers[key] = self._kept(key)
            self.on_answer(False)
        done.kept.clear()
        for key, older in done.work.older.items():
            found = done.answers.get(key)
            if found is None or self.form.depth(found) < self.form.depth(older):
                done.answers[key] = older
                done.problems.pop(key, None)
                done.from_older += 1
        return done

    def _kept(self, key: str) -> A:
        """What the journal has under a key that it has."""
        assert self.journal is not None
        kept = self.journal.get(key)
        assert kept is not None
        return self.form.load(kept)

    def _check(self, key: str, task: Task) -> None:
        """Raise PsearchError when what the journal has is of another position."""
        assert self.journal is not None
        try:
            for best, line, others in self.form.moves(self._kept(key)):
                check_moves(board_of(task), best, line, others)
        except ValueError as error:
            raise PsearchError(f"{self.journal.path}: not an answer for {key}: {error}") from None
