"""What the speedups of a study come to: policies against each other, position by position, for two intervals that
overlap do not tell; and time by workers as a critical path and work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psearch.lab.studies.speedup_study import Row, Samples, mean_interval, mean_logs

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


@dataclass(frozen=True)
class Fit:
    """T(P) / T(1) = c + w / P for one policy: the critical path and the work, in units of the serial time."""

    policy: str
    c: float
    w: float
    error: float
    """root mean square of the relative errors"""


def fit_times(rows: Sequence[Row]) -> list[Fit]:
    """Return a fit per policy that has two worker counts or more above one, by least squares of the relative errors.

    The times are reciprocals of geometric mean speedups, with 1 at one worker. c and w are not negative.
    """
    fits = []
    for policy in dict.fromkeys(row.policy for row in rows):
        points = [(1, 1.0)] + [(row.threads, 1 / row.speedup) for row in rows if row.policy == policy]
        if len(points) < 3:
            continue
        count, times = np.array(points).T
        terms = np.stack([np.ones_like(count), 1 / count], axis=1) / times[:, None]
        c, w = non_negative_pair(terms, np.ones_like(times))
        relative = terms @ np.array([c, w]) - 1
        fits.append(Fit(policy, c, w, math.sqrt(float(np.mean(relative**2)))))
    return fits


def non_negative_pair(terms: np.ndarray, wanted: np.ndarray) -> tuple[float, float]:
    """Solve least squares with two unknowns, neither below zero. terms: (n, 2), wanted: (n,).

    `scipy.optimize.nnls` does as much, but scipy is no dependency of `psearch simulate`.
    """
    found = np.linalg.lstsq(terms, wanted, rcond=None)[0]
    if found.min() < 0:  # then one of the two is zero at the least, and the other the best that it can be alone
        alone = np.diag((wanted @ terms / (terms**2).sum(axis=0)).clip(0))
        found = min(alone, key=lambda pair: float(((terms @ pair - wanted) ** 2).sum()))
    return float(found[0]), float(found[1])


def fit_lines(fits: Sequence[Fit]) -> str:
    """Return the fits as text, and what they are."""
    lines = [
        "Fitted to these times: T(P)/T(1) = c + w/P, of P workers. c cannot be shared, w can:",
    ]
    for fit in fits:
        most = f"a speedup of at most {1 / fit.c:,.0f}" if fit.c > 0 else "no limit in sight"
        lines.append(f"  {fit.policy:<10}  {fit.c:.5f} + {fit.w:.3f}/P: {most} (error of the fit {fit.error:.1%})")
    return "\n".join(lines)
