"""Training: targets, epochs, Adam with a learning rate that falls along a cosine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from netfit.gradients import Gradient, values
from netfit.network import UNIT_CP, Array, Net


class Plan(NamedTuple):
    """How a net is trained."""

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
    """Return the mean squared error of the expected score."""
    found = 1 / (1 + np.exp(-values(net, samples, threads)))
    return float(np.mean((found - wanted) ** 2, dtype=np.float64))


class Epoch(NamedTuple):
    """How training stands."""

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
