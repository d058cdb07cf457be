"""Policies against each other, position by position: what two intervals that overlap do not tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psearch.lab.studies.speedup_study import Samples, mean_interval, mean_logs

if TYPE_CHECKING:
    from psearch.lab.studies.speedup_study import Sample
    from psearch.simulation.simulator import VirtualSample

Speedups = dict[str, float]
"""Logarithm of the speedup of each position, by FEN."""


class Pair(NamedTuple):
    """How much faster one thing is than another on the same positions: geometric mean, and its interval of 95%."""

    positions: int
    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"x{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f}), {self.positions} positions"


def speedups(samples: Samples, field: str = "seconds") -> dict[tuple[int, str], Speedups]:
    """Return, by worker count and policy, how much less `field` is than with one worker to the same depth: means over
    repeats. The policies are in the order of the samples."""
    alone = mean_logs([sample for sample in samples if sample.threads == 1], field)
    groups: dict[tuple[int, str], list[Sample | VirtualSample]] = {}
    for sample in samples:
        if sample.threads > 1 and sample.fen in alone:
            groups.setdefault((sample.threads, sample.policy), []).append(sample)
    return {
        group: {fen: alone[fen] - log for fen, log in mean_logs(of_group, field).items()}
        for group, of_group in groups.items()
    }


def paired(first: Speedups, other: Speedups) -> Pair | None:
    """Return how much faster the other is. None without two positions that are in both."""
    both = sorted(first.keys() & other.keys())
    if len(both) < 2:
        return None
    differences = np.array([other[fen] - first[fen] for fen in both])
    return Pair(len(both), math.exp(differences.mean()), *np.exp(mean_interval(differences)).tolist())


def pairs(samples: Samples) -> dict[tuple[int, str, str], Pair]:
    """Return every policy over the first one, by worker count and the names of both."""
    found = speedups(samples)
    first = next((policy for _, policy in found), "")
    compared = {
        (count, policy, first): paired(found[count, first], other)
        for (count, policy), other in sorted(found.items(), key=lambda group: group[0][0])
        if policy != first and (count, first) in found
    }
    return {names: pair for names, pair in compared.items() if pair is not None}


def pair_objects(samples: Samples) -> list[dict[str, Any]]:
    """Return the pairs as plain data."""
    return [
        {"threads": count, "policy": policy, "over": first, **pair._asdict()}
        for (count, policy, first), pair in pairs(samples).items()
    ]


def pair_lines(samples: Samples) -> str:
    """Return the pairs as text, and what they are; empty without any."""
    found = pairs(samples)
    if not found:
        return ""
    lines = [f"  {count} workers, {policy} over {first}: {pair}" for (count, policy, first), pair in found.items()]
    return "\n".join(["Policies compared position by position, speedup over speedup (95% interval):", *lines])
