"""Training of a net: first on the handcrafted evaluation, at positions near games, then on scores and results.

Adam, with a learning rate that falls along a cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from netdata.reader import Filter, Positions, read, shuffled
from netdata.records import sample_dtype

from netfit.gradients import Gradient, values
from netfit.network import UNIT_CP, Array, Net, random_net


class Plan(NamedTuple):
    epochs: int = 20
    batch: int = 16384
    rate: float = 1e-3
    last_rate: float = 1e-5
    seed: int = 1
    threads: int = 2


def expected(score: Array) -> Array:
    """Return the expected score, 0 to 1, of scores in centipawns."""
    return (1 / (1 + np.exp(-np.asarray(score, np.float32) / np.float32(UNIT_CP)))).astype(np.float32)


def targets(samples: Array, result_share: float) -> Array:
    """Return what is to be learnt: the expected score of the search, mixed with the result."""
    score = expected(samples["score"])
    return score + np.float32(result_share) * (samples["result"].astype(np.float32) / 2 - score)


def error(net: Net, samples: Array, wanted: Array, threads: int) -> float:
    found = 1 / (1 + np.exp(-values(net, samples, threads)))
    return float(np.mean((found - wanted) ** 2, dtype=np.float64))


class Epoch(NamedTuple):
    number: int
    training_error: float
    test_error: float


def train(
    net: Net,
    samples: Array,
    wanted: Array,
    test: tuple[Array, Array],
    plan: Plan,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Net:
    """Return the net after training on positions with these targets; the one given stays as it is.

    samples: `sample_dtype` records; wanted: expected scores; test: the same of positions that are not trained on.
    """
    net = Net(*(array.copy() for array in net))
    gradient = Gradient(net.hidden, plan.threads)
    dice = np.random.default_rng(plan.seed)
    batches = -(-len(samples) // plan.batch)
    steps = plan.epochs * batches
    step = 0
    for epoch in range(1, plan.epochs + 1):
        order = dice.permutation(len(samples))
        total = 0.0
        for begin in range(0, len(samples), plan.batch):
            total += gradient.add_up(net, samples, order[begin : begin + plan.batch], wanted)
            step += 1
            turn = np.cos(np.pi * step / steps)
            gradient.follow(net, plan.last_rate + (plan.rate - plan.last_rate) * (1 + turn) / 2)
        if on_epoch is not None:
            on_epoch(Epoch(epoch, total / len(samples), error(net, *test, plan.threads)))
    return net


LATER_RATE = 0.25
"""of the learning rate, where a first stage has gone before: more forgets what it taught"""
_FROM_STATIC = 1.15
"""Scores and results together over the handwritten evaluation"""
_WANDERS = (1, 2, 3, 4)
"""Random moves from a game's position to one of the first stage, in turn"""


class Lessons(NamedTuple):
    """Positions, and what is to be learnt of them."""

    positions: Positions
    first: Array
    """Positions of the first stage; none: it is left out."""
    result_share: float

    @property
    def test(self) -> tuple[Array, Array]:
        """Return the held-out positions and their targets."""
        return self.positions.test, targets(self.positions.test, self.result_share)


def read_lessons(paths: Sequence[Path], result_share: float, first: int = 0, most: int = 0, seed: int = 1) -> Lessons:
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
