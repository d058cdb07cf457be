"""The analysis of many positions: which are searched, in which order the answers come, and which are kept.

`Analyser` gets answers from the journal or from a pool of workers; `psearch.batch.analysis.suite_results` and
`psearch.batch.analysis.games` interpret them.
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
"""Most answers that wait for earlier ones; beyond it no more positions are read."""
T = TypeVar("T")


class Stopped(Exception):
    """A signal stopped the analysis before its end."""


@dataclass(eq=False)
class Work(Generic[T]):
    """An item that needs answers, such as a game or a position of a suite, with the answers that it has so far."""

    item: T
    tasks: Iterable[Task]
    """Tasks of the item, which one worker searches in order, keeping its table; read once, on demand. Their ids are the
    keys of the journal."""
    older: Mapping[str, Answer] = field(default_factory=dict)
    """Answers from older results, by key. One that reaches the limit of depth saves the search; one that is deeper than
    the new answer replaces it."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """Answers by key."""
    problems: dict[str, str] = field(default_factory=dict)
    """Reasons why there is no answer, by key."""
    from_older: int = 0
    """Number of answers from older results."""
    in_journal: list[str] = field(default_factory=list)
    """Keys of the answers that are read from the journal when the item is finished."""
    missing: int = 0
    """Number of tasks being searched."""
    was_searched: bool = False
    """True if some of the tasks were searched in this run."""
    is_read: bool = False
    """True if there are no more tasks."""
    held: int = 0
    """Number of answers that count towards `_MOST_HELD`."""


@dataclass(eq=False)
class Analyser:
    """Gets the answers of positions, from the journal if it has them, else from a pool of workers.

    is_stopped: asked from time to time; on_answer: called for every answer, with True if it comes from a search;
    on_note: called with one line for each problem that was solved during a search; assist: total number of threads that
    may search when fewer positions than workers are left; 0: no worker gets more threads; is_exact: the figures must be
    those of an uninterrupted run, so an unfinished work is searched again from its start, with an empty table.
    """

    pool: PositionPool
    is_stopped: Callable[[], bool]
    journal: AnalysisJournal | None = None
    on_answer: Callable[[bool], None] = lambda searched: None
    on_note: Callable[[str], None] = lambda note: None
    assist: int = 0
    is_exact: bool = False
    on_found: Callable[[Any, str, Answer], None] = lambda item, key, answer: None
    """Callback for each new answer of a search, before `on_answer`."""
    _pending: deque[Work[Any]] = field(default_factory=deque)
    """Works that have been read and not returned."""
    _searched: dict[str, Work[Any]] = field(default_factory=dict)
    """Work of each task that is being searched, by key."""
    _held: int = 0

    def answered(self, works: Iterable[Work[T] | Pause], awaited: int | None = None) -> Iterator[Work[T]]:
        """Yield every work with its answers, in the order of `works`, which is read ahead.

        awaited: a descriptor that becomes readable when `works` can continue after `Pause.INPUT`. Raises Stopped,
        WorkerDied, PsearchError when the journal has an answer for another position, OSError for the journal, and the
        errors of reading `works`.
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
                yield itertools.chain([first], tasks)
            else:
                self._hold(work)
                if len(self._pending) == 1:  # return it before reading more
                    yield Pause.ROUND
            while self._held >= _MOST_HELD:
                yield Pause.OUTCOME

    def _tasks(self, work: Work[T]) -> Iterator[Task]:
        """Yield the tasks of a work that must be searched."""
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
        """Store an outcome at once, even if earlier ones are missing."""
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
        """Add the answers of the journal, and older answers where they are deeper."""
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
