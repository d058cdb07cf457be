"""Who searches what: reads chains as they are needed, gives batches to hands, takes what a lost hand had and gives it
to others, and puts outcomes in order.

Plain logic: it neither sends nor waits, and its clock is given to it. `psearch.batch.positions.flow` connects it to a
crew.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from psearch.batch.positions.crew import MOST_IN_FLIGHT, Done, Event
from psearch.batch.positions.jobs import Batch, Chain, Outcome, Pause, Piece, Task
from psearch.processes.tasks.task_messages import ProcessJoined, ProcessLost

MOST_TRIES = 3
"""A position whose hand was lost so often is bad, and not tried again."""
_BATCH_S = 1.0
"""How long a hand is to be busy with a batch,"""
_LEAST_BATCH_S = 0.05
"""and near the end, where the last positions are shared out in small batches, so that all hands end together."""
_MOST_TASKS = 256
"""in a batch"""
_GROWTH = 4
"""How many times larger than the one before a batch may be: the first times may mislead."""
_NEWEST_SHARE = 0.3
"""Weight of the latest time of a task among those before it."""
_MOST_AHEAD = 20_000
"""Tasks read ahead, however many hands there are (but two for each)."""
_MOST_HELD = 4_096
"""Outcomes that wait for those before them, where order matters: then no more chains are begun."""
_ASSIST_AFTER_S = 0.25
"""A task that ends sooner is not worth help."""


class _Item:
    """A task that has been read."""

    __slots__ = ("chain", "is_done", "number", "place", "task", "tries")

    def __init__(self, number: int, task: Task, chain: _Open, place: int) -> None:
        self.number = number
        self.task = task
        self.chain = chain
        self.place = place
        """in the chain, from 0"""
        self.tries = 0
        """hands that were lost with it"""
        self.is_done = False


class _Open:
    """A chain that has been begun to read, and is not finished."""

    __slots__ = ("given", "hand", "is_known", "number", "outcomes", "read", "tasks", "waiting")

    def __init__(self, number: int, chain: Chain) -> None:
        self.number = number
        self.tasks: Iterator[Task] | None = iter(chain.tasks)
        """None: read to its end"""
        self.waiting: deque[_Item] = deque()
        """read, and at no hand"""
        self.read = 0
        """tasks"""
        self.hand: int | None = None
        """who is at it"""
        self.is_known = False
        """whether that hand has its past in the table"""
        self.outcomes: dict[int, Outcome] = {}
        """by place, until it is their turn"""
        self.given = 0
        """outcomes, where order matters"""

    @property
    def next_is_suspect(self) -> bool:
        return bool(self.waiting) and self.waiting[0].tries > 0


class _Worker:
    """A hand, seen from here."""

    __slots__ = ("assisted", "chain", "flight", "marked_at", "name", "number", "rate_s", "size")

    def __init__(self, event: ProcessJoined, threads: int, rate_s: float | None) -> None:
        self.number = event.process
        self.name = event.name
        self.assisted = threads
        """threads that it has been allowed"""
        self.chain: _Open | None = None
        """of which it has some and will get more"""
        self.flight: deque[dict[int, _Item]] = deque()
        """batches that it was sent, without what is finished"""
        self.rate_s = rate_s
        """seconds a task; None: nothing is known"""
        self.size = 1 if rate_s is None else max(1, int(_BATCH_S / rate_s))
        """tasks of the last batch"""
        self.marked_at = 0.0
        """when it began the task that it is at, or has last answered"""

    def took(self, outcomes: int, now: float) -> float:
        """Note that it has answered so many; seconds for each."""
        latest = (now - self.marked_at) / outcomes
        self.marked_at = now
        known = self.rate_s
        self.rate_s = latest if known is None else (1 - _NEWEST_SHARE) * known + _NEWEST_SHARE * latest
        return self.rate_s

    @property
    def has_suspect(self) -> bool:
        return any(item.tries for batch in self.flight for item in batch.values())


class Dispatcher:
    """Gives every task of `chains` to some hand until it has one outcome, whatever happens to hands.

    Behind a `Pause` in `chains` it reads on at the next call of `orders`.

    ordered: outcomes come in the order of the input, else as they are done; threads: of each hand; assist: threads that
    may search in all, where fewer positions are left than hands, 0: hands help nobody; most_held: outcomes that may
    wait for others, where order matters, before no more chains are begun; on_finished: called with each outcome as soon
    as it is there; clock: seconds. What the iterables of `chains` raise goes through `orders`. After each event of the
    crew, and at the beginning: `take`, `orders`, `assists`, `results`.
    """

    def __init__(
        self,
        chains: Iterable[Chain | Pause],
        *,
        ordered: bool = False,
        threads: int = 1,
        assist: int = 0,
        most_held: int = _MOST_HELD,
        on_finished: Callable[[Outcome], None] = lambda outcome: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source: Iterator[Chain | Pause] | None = iter(chains)
        self.pause: Pause | None = None
        """why `orders` has not read as much as it would have liked, if so"""
        self._ordered = ordered
        self._threads = threads
        self._assist = assist
        self._most_held = most_held
        self._on_finished = on_finished
        self._clock = clock
        self._workers: dict[int, _Worker] = {}
        self._short: set[int] = set()
        """hands that may have room for a batch"""
        self._free: deque[_Open] = deque()
        """chains at no hand"""
        self._suspects: deque[_Open] = deque()
        """those of them whose next task was with a hand that was lost: they go alone"""
        self._items: dict[int, _Item] = {}
        """what is not finished, by number"""
        self._order: deque[_Open] = deque()
        """chains that are not given out completely, where order matters"""
        self._held = 0
        """outcomes in them"""
        self._results: list[Outcome] = []
        self._chains = 0
        self._tasks = 0
        self._rate_s: float | None = None
        """seconds a task, at any hand"""

    # -- what it says ------------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether every task has its outcome, and all have been given out by `results`."""
        return self._source is None and not self._items and not self._results and not self._unread

    @property
    def _unread(self) -> bool:
        """Whether an open chain may have more tasks; those at hands are `_items`, too, unless just read to the end."""
        return bool(self._free or self._suspects) or any(worker.chain for worker in self._workers.values())

    def results(self) -> list[Outcome]:
        """Return outcomes that are new; each task has one, once."""
        results, self._results = self._results, []
        return results

    # -- what it is told ---------------------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Take in what has happened to a hand."""
        match event:
            case ProcessJoined(hand):
                self._workers[hand] = _Worker(event, self._threads, self._rate_s)
                self._short.add(hand)
            case Done():
                self._take_outcomes(event)
            case ProcessLost():
                self._take_back(event)

    def _take_outcomes(self, event: Done) -> None:
        worker = self._workers.get(event.hand)
        for outcome in event.outcomes:
            if worker is not None:
                for batch in worker.flight:
                    if batch.pop(outcome.number, None) is not None:
                        break
            item = self._items.get(outcome.number)
            if item is not None:  # else another hand has answered it, while this one was taken for lost
                self._finish(item, outcome)
        if worker is None:
            return
        while worker.flight and not worker.flight[0]:
            worker.flight.popleft()
        if len(worker.flight) < MOST_IN_FLIGHT:
            self._short.add(worker.number)
        if event.outcomes:
            self._rate_s = worker.took(len(event.outcomes), self._clock())
        self._leave_chain(worker)

    def _take_back(self, event: ProcessLost) -> None:
        worker = self._workers.pop(event.process, None)
        if worker is None:
            return
        self._short.discard(event.process)
        chains: dict[int, _Open] = {}
        if worker.chain is not None:
            chains[worker.chain.number] = worker.chain
        back = [item for batch in worker.flight for item in batch.values() if not item.is_done]
        for item in worker.flight[0].values() if worker.flight else ():
            item.tries += not item.is_done
        for item in reversed(back):  # so that they are in their order again
            item.chain.waiting.appendleft(item)
            chains[item.chain.number] = item.chain
        for item in back:
            if item.tries >= MOST_TRIES:
                text = f"its process was lost {item.tries} times, the last time because {event.reason}"
                self._finish(item, Outcome(item.number, item.task.id, None, text, worker.name))
        for chain in sorted(chains.values(), key=lambda chain: chain.number, reverse=True):
            chain.hand = None
            chain.is_known = False
            self._put_back(chain)

    def _put_back(self, chain: _Open) -> None:
        """A chain that no hand is at, before all others, unless it is finished."""
        self._peek(chain)
        if chain.waiting:
            (self._suspects if chain.next_is_suspect else self._free).appendleft(chain)

    def _finish(self, item: _Item, outcome: Outcome) -> None:
        item.is_done = True
        del self._items[item.number]
        chain = item.chain
        self._on_finished(outcome)
        if not self._ordered:
            self._results.append(outcome)
            return
        chain.outcomes[item.place] = outcome
        self._held += 1
        while self._order:
            first = self._order[0]
            while (ready := first.outcomes.pop(first.given, None)) is not None:
                self._results.append(ready)
                first.given += 1
                self._held -= 1
            if first.tasks is not None or first.given < first.read:
                return
            self._order.popleft()

    # -- what it wants -----------------------------------------------------------------------------------------------

    def orders(self) -> list[tuple[int, Batch]]:
        """Return batches to be sent, with their hands. Those who have nothing to do come first."""
        orders = []
        self.pause = None
        for most in range(MOST_IN_FLIGHT):
            for number in sorted(self._short):
                worker = self._workers[number]
                is_there_work = self._source is not None or self._free or self._suspects or worker.chain is not None
                if is_there_work and len(worker.flight) == most:
                    batch = self._batch(worker)
                    if batch is not None:
                        orders.append((number, batch))
                if len(worker.flight) == MOST_IN_FLIGHT:
                    self._short.discard(number)
        if not self._workers:
            self._fill(1)  # nothing to do is seen without hands, too
        return orders

    def assists(self) -> list[tuple[int, int]]:
        """Hands whose search is worth more threads now, and how many each: others have nothing to do, and will have
        nothing."""
        if not self._assist or self._source is not None or self._free or self._suspects:
            return []
        busy = [worker for worker in self._workers.values() if worker.flight]
        now = self._clock()
        wanted = []
        for place, worker in enumerate(busy):
            share = self._assist // len(busy) + (place < self._assist % len(busy))
            if share > worker.assisted and now - worker.marked_at >= _ASSIST_AFTER_S:
                worker.assisted = share
                wanted.append((worker.number, share))
        return wanted

    def _batch(self, worker: _Worker) -> Batch | None:
        """The next for a hand that has at most one; None: it has enough, or there is nothing."""
        if worker.has_suspect or (worker.flight and not self._may_queue(worker)):
            return None
        size = self._size(worker)
        pieces: list[Piece] = []
        items: dict[int, _Item] = {}
        while len(items) < size:
            chain = worker.chain if worker.chain is not None else self._next_chain(not worker.flight and not items)
            if chain is None:
                break
            self._peek(chain)
            if not chain.waiting:
                worker.chain = None
                continue
            is_suspect = chain.next_is_suspect
            if is_suspect and (worker.flight or items):
                if chain.hand is None:
                    self._suspects.append(chain)
                break
            self._join_chain(worker, chain)
            taken = self._taken(chain, 1 if is_suspect else size - len(items))
            pieces.append(Piece(chain.number, not chain.is_known, [(item.number, item.task) for item in taken]))
            chain.is_known = True
            items.update((item.number, item) for item in taken)
            self._leave_chain(worker)
            if is_suspect:
                break
        if not items:
            return None
        if not worker.flight:
            worker.marked_at = self._clock()
        worker.flight.append(items)
        worker.size = max(1, min(size, len(items)))
        return Batch(pieces)

    def _may_queue(self, worker: _Worker) -> bool:
        """Whether a hand that is at work may have something more behind it: not what another could begin at once, later
        on."""
        if worker.chain is not None:
            return True
        self._fill(len(self._workers) + 1)
        return len(self._free) > len(self._workers)

    def _size(self, worker: _Worker) -> int:
        """Tasks for the next batch of a hand."""
        if worker.rate_s is None:
            return 1
        rate_s = max(worker.rate_s, 1e-6)
        size = max(1, min(int(_BATCH_S / rate_s), _GROWTH * worker.size, _MOST_TASKS))
        hands = len(self._workers)
        self._fill(min(_MOST_AHEAD, 2 * hands * size))
        fair = math.ceil(len(self._free) / (2 * hands))
        return max(1, min(size, max(fair, int(_LEAST_BATCH_S / rate_s))))

    def _next_chain(self, alone: bool) -> _Open | None:
        """One that no hand is at. alone: whether nothing else would be with it."""
        if alone and self._suspects:
            return self._suspects.popleft()
        self._fill(1)
        return self._free.popleft() if self._free else None

    def _fill(self, chains: int) -> None:
        """Read on until so many chains are free, or to a pause, or to the end."""
        while self._source is not None and len(self._free) < chains and self._held < self._most_held:
            if self.pause is not None:
                return
            chain = next(self._source, None)
            if chain is None:
                self._source = None
                return
            if isinstance(chain, Pause):
                self.pause = chain
                return
            opened = _Open(self._chains, chain)
            self._chains += 1
            self._peek(opened)
            if opened.waiting:
                self._free.append(opened)
                if self._ordered:
                    self._order.append(opened)

    def _peek(self, chain: _Open) -> None:
        """See to it that a chain that has more tasks has one waiting that is not done."""
        waiting = chain.waiting
        while waiting and waiting[0].is_done:
            waiting.popleft()
        if not waiting and chain.tasks is not None:
            self._read(chain, chain.tasks)

    def _read(self, chain: _Open, tasks: Iterator[Task]) -> None:
        """One task more of a chain, if there is one."""
        task = next(tasks, None)
        if task is None:
            chain.tasks = None
            return
        item = _Item(self._tasks, task, chain, chain.read)
        self._tasks += 1
        chain.read += 1
        self._items[item.number] = item
        chain.waiting.append(item)

    def _taken(self, chain: _Open, most: int) -> list[_Item]:
        """The next tasks of a chain that are not suspects, or the first if it is one; one at least."""
        taken = [chain.waiting.popleft()]
        while len(taken) < most:
            self._peek(chain)
            if not chain.waiting or chain.next_is_suspect:
                break
            taken.append(chain.waiting.popleft())
        return taken

    def _join_chain(self, worker: _Worker, chain: _Open) -> None:
        worker.chain = chain
        chain.hand = worker.number

    def _leave_chain(self, worker: _Worker) -> None:
        """A chain without tasks that wait belongs to nobody."""
        chain = worker.chain
        if chain is not None:
            self._peek(chain)
            if not chain.waiting:
                worker.chain = None
