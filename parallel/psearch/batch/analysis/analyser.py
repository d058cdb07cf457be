"""The analysis of many positions: what is searched, in which order the answers come, and what is kept of them.

`Analyser` answers positions from the journal or by a pool of workers; `psearch.batch.analysis.suite_results` and
`psearch.batch.analysis.games` say what to make of the answers.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from psearch.batch.analysis.analysis_files import AnalysisJournal
from psearch.batch.positions.position_pool import PositionPool, rounds
from psearch.batch.positions.task import Answer, Outcome, Pause, Task, TaskList
from psearch.results import PsearchError

_MOST_HELD = 4_096
"""Most answers that wait for those before them: then nothing more is read."""
T = TypeVar("T")


class Stopped(Exception):
    """A signal came: what was being searched is not finished."""


@dataclass(eq=False)
class Work(Generic[T]):
    """Something whose result needs answers, as a position of a suite or a game; when it is given out, with those that
    there are."""

    item: T
    tasks: Iterable[Task]
    """what has to be searched for it, one after the other with one table; read once, when it is needed. Their ids are
    the keys of the journal"""
    older: Mapping[str, Answer] = field(default_factory=dict)
    """answers that are there already, by key: kept where they are deeper than what is found; where one is as deep as
    the limit of depth, nothing is searched"""
    answers: dict[str, Answer] = field(default_factory=dict)
    """by key"""
    problems: dict[str, str] = field(default_factory=dict)
    """why there is no answer, by key"""
    from_older: int = 0
    """answers that were there already"""
    in_journal: list[str] = field(default_factory=list)
    """keys whose answers stay in the journal until it is their turn"""
    missing: int = 0
    """tasks that are being searched"""
    was_searched: bool = False
    """whether some of it was searched just now"""
    is_read: bool = False
    """whether there are no more tasks"""
    held: int = 0
    """how much it counts towards `_MOST_HELD`"""


class Analyser:
    """Answers positions, from the journal where it has them, else by a pool.

    is_stopped: asked now and then; on_answer: called with every answer, True if it comes from a search; on_note: called
    with a line when something went wrong in a search and was mended; assist: threads that may search in all when
    fewer positions are left than workers, 0: none gets more threads; is_exact: figures are to be those of an
    uninterrupted run. A work that was begun is searched again from its start then, for what the table had at that point
    is lost.
    """

    def __init__(
        self,
        pool: PositionPool,
        is_stopped: Callable[[], bool],
        journal: AnalysisJournal | None = None,
        on_answer: Callable[[bool], None] = lambda searched: None,
        on_note: Callable[[str], None] = lambda note: None,
        assist: int = 0,
        is_exact: bool = False,
    ) -> None:
        self.pool = pool
        self.is_stopped = is_stopped
        self.journal = journal
        self.on_answer = on_answer
        self.on_found: Callable[[Any, str, Answer], None] = lambda item, key, answer: None
        """called with what was searched just now, and what it is for, before `on_answer`"""
        self.on_note = on_note
        self.assist = assist
        self.is_exact = is_exact
        self._pending: deque[Work[Any]] = deque()
        """those that were read and not given out"""
        self._searched: dict[str, Work[Any]] = {}
        """the work of each task that is being searched, by key"""
        self._held = 0

    def answered(self, works: Iterable[Work[T] | Pause], awaited: int | None = None) -> Iterator[Work[T]]:
        """Yield everything with its answers, in the order of `works`, which is read some way ahead.

        awaited: a descriptor that can be read when `works` can go on behind `Pause.INPUT`. Raises Stopped, WorkerDied,
        PsearchError when the journal has the answer of another position, OSError for the journal, and what `works`
        does.
        """
        lists, pending = self._lists(works), self._pending
        for outcomes in rounds(self.pool, lists, assist=self.assist, is_stopped=self.is_stopped, awaited=awaited):
            for outcome in outcomes:
                self._take(outcome)
            while pending and pending[0].is_read and not pending[0].missing:
                done = pending.popleft()
                self._held -= done.held
                yield self._ready(done)
        if self.is_stopped():
            raise Stopped

    def _lists(self, works: Iterable[Work[T] | Pause]) -> Iterator[TaskList | Pause]:
        for work in works:
            if isinstance(work, Pause):
                yield work
                continue
            self._pending.append(work)
            tasks = self._tasks(work)
            first = next(tasks, None)
            if first is not None:
                yield TaskList(itertools.chain([first], tasks))
            else:
                self._hold(work)
                if len(self._pending) == 1:  # it is given out before more is read
                    yield Pause.ROUND
            while self._held >= _MOST_HELD:
                yield Pause.OUTCOME

    def _tasks(self, work: Work[T]) -> Iterator[Task]:
        """Yield what is to be searched for it."""
        known: list[Task] = []
        for task in work.tasks:
            key = str(task.id)
            if self.journal is not None and key in self.journal and not (self.is_exact and work.was_searched):
                try:
                    self.journal.get(key).check(task.board())
                except ValueError as error:
                    raise PsearchError(f"{self.journal.path}: not an answer for {key}: {error}") from None
                known.append(task)
                continue
            older = work.older.get(key)
            if older is not None and task.limits.depth is not None and older.line.depth >= task.limits.depth:
                self.on_answer(False)
                continue
            again, known = (known, []) if self.is_exact else ([], known)
            for missing in (*again, task):
                work.missing += 1
                work.was_searched = True
                self._searched[str(missing.id)] = work
                yield missing
        work.in_journal = [str(task.id) for task in known]
        work.is_read = True

    def _take(self, outcome: Outcome) -> None:
        """Take an answer at once, whatever its turn is."""
        key = str(outcome.id)
        work = self._searched.pop(key)
        work.missing -= 1
        self._hold(work)
        if outcome.answer is None:
            work.problems[key] = outcome.error or "no answer"
        else:
            work.answers[key] = outcome.answer
            if self.journal is not None:
                self.journal.add(key, outcome.answer)
            self.on_found(work.item, key, outcome.answer)
            for note in outcome.answer.notes:
                self.on_note(note)
        self.on_answer(True)

    def _hold(self, work: Work[T]) -> None:
        work.held += 1
        self._held += 1

    def _ready(self, done: Work[T]) -> Work[T]:
        """Add what the journal has, and older answers where they are deeper."""
        for key in done.in_journal:
            assert self.journal is not None
            done.answers[key] = self.journal.get(key)
            self.on_answer(False)
        for key, older in done.older.items():
            found = done.answers.get(key)
            if found is None or found.line.depth < older.line.depth:
                done.answers[key] = older
                done.problems.pop(key, None)
                done.from_older += 1
        return done
