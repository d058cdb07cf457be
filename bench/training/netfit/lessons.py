"""What a net is trained on: first the evaluation by hand, at positions near those of games, then scores and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from netdata.reader import Filter, Positions, read, shuffled
from netdata.records import sample_dtype

from netfit.fit import Epoch, Plan, error, expected, targets, train
from netfit.network import Array, Net, random_net

LATER_RATE = 0.25
"""of the learning rate, where a first stage has gone before: more forgets what it taught"""
_FROM_STATIC = 1.15
"""Scores and results together over the evaluation by hand"""
_WANDERS = (1, 2, 3, 4)
"""Random moves from a game's position to one of the first stage, in turn"""


class Lessons(NamedTuple):
    """Positions, and what is to be learnt of them."""

    positions: Positions
    first: Array
    """positions of the first stage; none: it is left out"""
    result_share: float

    @property
    def test(self) -> tuple[Array, Array]:
        """Return the held-out positions and their targets."""
        return self.positions.test, targets(self.positions.test, self.result_share)


def read_lessons(
    paths: Sequence[Path],
    result_share: float,
    first: int = 0,
    most: int = 0,
    seed: int = 1,
) -> Lessons:
    """Read games. first: how many positions of the first stage are made; most: as in `read`.

    Raises OSError, ValueError and Torn.
    """
    positions = read(paths, Filter(static=True), most)
    stages = [np.zeros(0, sample_dtype)]
    made = 0
    turn = 0
    while made < first:
        # games for testing stay out of this stage, too
        found = read(paths, Filter(static=True, wander=_WANDERS[turn % 4]), most, seed=seed + turn).training
        if not len(found):
            break
        stages.append(found)
        made += len(found)
        turn += 1
    return Lessons(positions, np.concatenate(stages)[:first], result_share)


class Yardsticks(NamedTuple):
    """Mean squared errors on the held-out positions, each score by the factor that suits it best."""

    search: float
    evaluation: float
    material: float


def _least(scores: Array, wanted: Array) -> float:
    """The error of scores, scaled by the best of many factors."""
    factors = np.geomspace(0.4, 3.0, 41)
    return min(float(np.mean((expected(scores * factor) - wanted) ** 2, dtype=np.float64)) for factor in factors)


def yardsticks(lessons: Lessons) -> Yardsticks:
    """Return the errors of what is there without a net."""
    samples, wanted = lessons.test
    columns = [samples[name].astype(np.float32) for name in ("score", "static", "material")]
    return Yardsticks(*(_least(column, wanted) for column in columns))


def begin(
    lessons: Lessons, hidden: int, plan: Plan, epochs: int, on_epoch: Callable[[Epoch], None] | None = None
) -> Net:
    """Return a net behind the first stage; without one, a random net."""
    net = random_net(hidden, plan.seed)
    if not len(lessons.first):
        return net
    samples = lessons.positions.test
    judged = samples, expected(samples["static"])
    return train(net, lessons.first, expected(lessons.first["static"]), judged, plan._replace(epochs=epochs), on_epoch)


def go_on(
    net: Net,
    lessons: Lessons,
    plan: Plan,
    count: int | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    later: float = LATER_RATE,
    is_rehearsed: bool = False,
) -> tuple[Net, float]:
    """Train a net of `begin` on scores and results; returns it, and its error on the held-out positions.

    count: of the positions with scores, the first so many of a random order; later: of the learning rate, where a first
    stage has gone before; is_rehearsed: mixes the positions of the first stage in, so that it is not forgotten.
    """
    if len(lessons.first):
        plan = plan._replace(rate=later * plan.rate)
    samples, wanted = lessons.test
    chosen = shuffled(lessons.positions.training, plan.seed)[:count]
    aims = targets(chosen, lessons.result_share)
    if is_rehearsed:
        first = lessons.first
        chosen = np.concatenate([chosen, first])
        aims = np.concatenate([aims, expected(_FROM_STATIC * first["static"].astype(np.float32))])
    net = train(net, chosen, aims, (samples, wanted), plan, on_epoch)
    return net, error(net, samples, wanted, plan.threads)
