"""Time by workers as a critical path and work: what the speedups of a study come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psearch.lab.studies.speedup_study import Row


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

    `scipy.optimize.nnls` does as much for any number, but scipy is no dependency of `psearch simulate`.
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
