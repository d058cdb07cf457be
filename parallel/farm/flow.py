"""From a crew's events to outcomes: the loop of a farm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from psearch.farm.crew import Crew
from psearch.farm.dispatch import Dispatcher
from psearch.farm.jobs import Chain, Outcome

_WAIT_S = 0.2
"""How soon a search that goes on is seen to be worth help, and a wish to stop is heard."""


def outcomes(
    crew: Crew,
    chains: Iterable[Chain],
    *,
    ordered: bool = False,
    assist: int = 0,
    is_stopped: Callable[[], bool] = lambda: False,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> Iterator[Outcome]:
    """The outcome of every task, once each; until there is none left, or `is_stopped`, which is asked now and then.

    ordered, assist: see `Dispatcher`; on_outcome: called with each as it comes, where the order that is wanted is
    another. Nothing is done between two outcomes but what hands have been given. The crew is the caller's to close.
    Raises what the crew raises, and what reading `chains` does.
    """
    seen: list[Outcome] = []
    dispatcher = Dispatcher(chains, ordered=ordered, assist=assist, on_finished=seen.append)
    while not is_stopped():
        for hand, batch in dispatcher.orders():
            crew.send(hand, batch)
        for hand, threads in dispatcher.assists():
            crew.assist(hand, threads)
        for outcome in seen:
            on_outcome(outcome)
        seen.clear()
        results = dispatcher.results()
        yield from results
        if dispatcher.is_over:
            return
        for event in crew.wait(0.0 if results else _WAIT_S):
            dispatcher.take(event)
