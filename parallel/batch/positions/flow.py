"""From a crew's events to outcomes: the loop of a farm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from psearch.batch.positions.crew import Crew
from psearch.batch.positions.dispatch import Dispatcher
from psearch.batch.positions.jobs import Chain, Outcome, Pause

_WAIT_S = 0.2
"""How soon a search that goes on is seen to be worth help, and a wish to stop is heard."""


def rounds(
    crew: Crew,
    chains: Iterable[Chain | Pause],
    *,
    ordered: bool = False,
    assist: int = 0,
    is_stopped: Callable[[], bool] = lambda: False,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
    awaited: int | None = None,
) -> Iterator[list[Outcome]]:
    """Yield the outcome of every task, once each; until there is none left, or `is_stopped`, which is asked now and
    then. Those that are there at a time come together, several times a second, be it that there are none.

    ordered, assist: see `Dispatcher`; on_outcome: called with each as it comes, where the order that is wanted is
    another; awaited: a descriptor that can be read when `chains` can go on behind `Pause.INPUT`. Nothing is done
    between two rounds but what hands have been given. The crew is the caller's to close. Raises what the crew raises,
    and what reading `chains` does.
    """
    seen: list[Outcome] = []
    dispatcher = Dispatcher(chains, ordered=ordered, threads=crew.threads, assist=assist, on_finished=seen.append)
    while not is_stopped():
        for hand, batch in dispatcher.orders():
            crew.send(hand, batch)
        for hand, threads in dispatcher.assists():
            crew.assist(hand, threads)
        for outcome in seen:
            on_outcome(outcome)
        seen.clear()
        results = dispatcher.results()
        yield results
        if dispatcher.is_over:
            return
        timeout_s = 0.0 if results or dispatcher.pause is Pause.ROUND else _WAIT_S
        for event in crew.wait(timeout_s, awaited if dispatcher.pause is Pause.INPUT else None):
            dispatcher.take(event)


def outcomes(
    crew: Crew,
    chains: Iterable[Chain | Pause],
    *,
    ordered: bool = False,
    assist: int = 0,
    is_stopped: Callable[[], bool] = lambda: False,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> Iterator[Outcome]:
    """Yield those of `rounds` one by one."""
    for some in rounds(crew, chains, ordered=ordered, assist=assist, is_stopped=is_stopped, on_outcome=on_outcome):
        yield from some
