"""Training of a net on scores and results: passes over all positions, each in another order.

AdamW, with a learning rate that falls along a cosine. What a run has reached can be kept behind each pass.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from netfit.gradients import Gradient, values
from netfit.network import UNIT_CP, Array, Net

COMMON_SHARE = 0.25
"""Share of the result in the target by which nets of all shares are compared"""
_BATCHES_A_LOOK = 16
_WARM_UP = 300
"""Most steps in which the rate rises from nothing: Adam's first steps are as long as the rate whatever the gradient is,
which throws a trained net out of its place. At most a twentieth of all steps."""
_NEAR_CP = 800


class Plan(NamedTuple):
    epochs: int = 20
    batch: int = 16384
    rate: float = 1e-3
    last_rate: float = 1e-5
    result_share: float = 0.1
    seed: int = 1


class Errors(NamedTuple):
    """Mean squared errors of the expected score on the held-out positions, by the target."""

    common: float
    """Target of `COMMON_SHARE` of the result, the rest of the search's score"""
    score: float
    result: float

    def __str__(self) -> str:
        return f"{self.common:.6f} (score {self.score:.6f}, result {self.result:.6f})"


class Epoch(NamedTuple):
    number: int
    training_error: float
    """Mean squared error during the pass, by the target that is learnt"""
    errors: Errors


def expected(score: Array) -> Array:
    """Return the expected score, 0 to 1, of scores in centipawns."""
    return (1 / (1 + np.exp(-np.asarray(score, np.float32) / np.float32(UNIT_CP)))).astype(np.float32)


def _errors(found: Array, samples: Array) -> Errors:
    score, result = expected(samples["score"]), samples["result"].astype(np.float32) / 2
    targets = score + np.float32(COMMON_SHARE) * (result - score), score, result
    return Errors(*(float(np.mean((found - target) ** 2, dtype=np.float64)) for target in targets))


def errors(net: Net, samples: Array, threads: int) -> Errors:
    """Return the net's errors."""
    return _errors(1 / (1 + np.exp(-values(net, samples, threads))), samples)


def unit_like(net: Net, other: Net, unit: int, samples: Array, threads: int) -> int:
    """Return the centipawns of a natural unit with which the net's values are as large as those of another net with
    `unit`, where these are within 8 pawns: the search's margins are in centipawns."""
    mine, others = values(net, samples, threads), values(other, samples, threads)
    near = np.abs(others) * unit < _NEAR_CP
    square = float(np.sum(mine[near] ** 2, dtype=np.float64))
    return round(unit * float(np.sum(mine[near] * others[near], dtype=np.float64)) / square) if square else unit


def search_errors(samples: Array) -> Errors:
    """Return the errors of the search's own scores, by the factor that suits them best."""
    factors = np.geomspace(0.4, 3.0, 41)
    scores = samples["score"].astype(np.float32)
    return min((_errors(expected(scores * factor), samples) for factor in factors), default=Errors(0, 0, 0))


def order_of(total: int, count: int, seed: int, epoch: int) -> Array:
    """Return the places of `count` of `total` positions, the same ones in each pass but in another order, uint32."""
    order = np.arange(total, dtype=np.uint32)
    if count < total:
        np.random.default_rng([seed, 0]).shuffle(order)
        order = order[:count]
    np.random.default_rng([seed, epoch]).shuffle(order)
    return order


def _facts(net: Net, samples: Array, count: int, plan: Plan) -> str:
    """What a run's end depends on, but for the number of threads, which changes roundings."""
    start = zlib.crc32(b"".join(array.tobytes() for array in net))
    return json.dumps([*plan, count, len(samples), zlib.crc32(samples.view(np.uint8)), start])


def _keep(path: Path, net: Net, gradient: Gradient, epochs: list[Epoch], facts: str) -> None:
    """Replace the file of a state, as a whole."""
    arrays: dict[str, Any] = dict(net._asdict())
    arrays |= {f"moments_{i}": pair for i, pair in enumerate(gradient.moments)}
    data = io.BytesIO()
    np.savez(data, steps=gradient.steps, epochs=json.dumps(epochs), facts=facts, **arrays)
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data.getbuffer())
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _resume(path: Path, net: Net, gradient: Gradient, facts: str) -> list[Epoch]:
    """Read a state into net and gradient; returns the passes done. Raises ValueError for that of another run."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            if str(file["facts"]) != facts:
                raise ValueError("it is of other positions or settings; choose another folder, or delete it")
            for array, name in zip(net, Net._fields, strict=True):
                array[:] = file[name]
            for i, pair in enumerate(gradient.moments):
                pair[:] = file[f"moments_{i}"]
            gradient.steps = int(file["steps"])
            found = json.loads(str(file["epochs"]))
            return [Epoch(number, error, Errors(*errors)) for number, error, errors in found]
    except (KeyError, ValueError, EOFError, TypeError, BadZipFile) as error:
        raise ValueError(f"cannot go on with {path}: {error}") from None


def _rate(plan: Plan, step: int, steps: int) -> float:
    """Return the learning rate of a step, from 1: it rises for a while, and falls along a cosine."""
    rise = min(1.0, step / max(1, min(_WARM_UP, steps // 20)))
    turn = float(np.cos(np.pi * step / steps))
    return rise * (plan.last_rate + (plan.rate - plan.last_rate) * (1 + turn) / 2)


def train(
    net: Net,
    samples: Array,
    test: Array,
    plan: Plan,
    threads: int,
    count: int | None = None,
    state: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    on_look: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Net, list[Epoch]]:
    """Return the net after training, and its passes; the net given stays as it is.

    samples, test: `sample_dtype` records to train on and held out; count: so many of `samples` (None: all); state: a
    file that is written behind each pass, and from which a killed run goes on to the very same weights; on_look: called
    with the presentations done and in all. Raises OSError, and ValueError for the state of another run.
    """
    count = len(samples) if count is None else count
    facts = _facts(net, samples, count, plan) if state is not None else ""
    net = Net(*(array.copy() for array in net))
    gradient = Gradient(net.hidden, threads)
    epochs = _resume(state, net, gradient, facts) if state is not None and state.exists() else []
    for epoch in epochs:
        on_epoch(epoch)
    steps = plan.epochs * -(-count // plan.batch)
    for number in range(len(epochs) + 1, plan.epochs + 1):
        order = order_of(len(samples), count, plan.seed, number)
        squared = 0.0
        for begin in range(0, count, plan.batch):
            squared += gradient.add_up(net, samples, order[begin : begin + plan.batch], plan.result_share)
            gradient.follow(net, _rate(plan, gradient.steps + 1, steps))
            if gradient.steps % _BATCHES_A_LOOK == 0:
                on_look((number - 1) * count + begin, plan.epochs * count)
        on_look(number * count, plan.epochs * count)
        epochs.append(Epoch(number, squared / count, errors(net, test, threads)))
        if state is not None:
            _keep(state, net, gradient, epochs, facts)
        on_epoch(epochs[-1])
    return net, epochs
