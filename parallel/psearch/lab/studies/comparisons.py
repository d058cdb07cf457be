"""What the searches of a study come to: speedups as a table, policies compared position by position, fitted times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psearch.results import PsearchError
from psearch.terminal.streams import glossary, text_table

if TYPE_CHECKING:
    from psearch.lab.studies.speedup_study import Sample
    from psearch.simulation.simulator import VirtualSample

Samples = Sequence["Sample | VirtualSample"]
Speedups = dict[str, float]
"""Logarithm of the speedup of each position, by FEN."""


@dataclass(frozen=True)
class Row:
    """One policy at one worker count, against one worker."""

    policy: str
    threads: int
    positions: int
    speedup: float
    """time of one worker over the time of this count: geometric mean over the positions, and over repeats in each"""
    low: float | None
    high: float | None
    """bootstrap interval of 95% over positions; None: one position has none"""
    nps_scaling: float
    node_overhead: float
    idle_share: float
    splits: float
    joins: float
    aborted_share: float

    @property
    def interval(self) -> str:
        """Return the interval in words."""
        return "-" if self.low is None or self.high is None else f"{self.low:.2f} - {self.high:.2f}"


def _mean_logs(samples: Samples, field: str) -> dict[str, float]:
    """Return the mean logarithm of `field` over the repeats of each position."""
    by_position: dict[str, list[float]] = {}
    for sample in samples:
        by_position.setdefault(sample.fen, []).append(math.log(getattr(sample, field)))
    return {fen: statistics.fmean(logs) for fen, logs in by_position.items()}


def _groups(samples: Samples) -> dict[tuple[int, str], list[Sample | VirtualSample]]:
    """Return the searches by several workers of positions that one worker has searched, too, by count and policy."""
    known = {sample.fen for sample in samples if sample.threads == 1}
    groups: dict[tuple[int, str], list[Sample | VirtualSample]] = {}
    for sample in samples:
        if sample.threads > 1 and sample.fen in known:
            groups.setdefault((sample.threads, sample.policy), []).append(sample)
    return groups


def searched(samples: Samples) -> tuple[int, float]:
    """Return positions that one worker has searched, and the mean of the nodes that it needed: the size of a tree."""
    alone = [sample for sample in samples if sample.threads == 1]
    return len({sample.fen for sample in alone}), sum(sample.nodes for sample in alone) / max(len(alone), 1)


def speedups(samples: Samples, field: str = "seconds") -> dict[tuple[int, str], Speedups]:
    """Return, by worker count and policy, how much less `field` is than with one worker to the same depth: means over
    repeats. The policies are in the order of the samples."""
    alone = _mean_logs([sample for sample in samples if sample.threads == 1], field)
    return {
        group: {fen: alone[fen] - log for fen, log in _mean_logs(searches, field).items()}
        for group, searches in _groups(samples).items()
    }


def mean_interval(values: np.ndarray, rounds: int = 2000) -> tuple[float, float]:
    """Return the 95% interval of the mean of `values`, of shape (n,): percentile bootstrap, the same every time.

    `scipy.stats.bootstrap` does as much, but scipy is no dependency of `psearch speedup`.
    """
    picks = np.random.default_rng(1).integers(values.size, size=(rounds, values.size))
    low, high = np.quantile(values[picks].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def summarise(samples: Samples) -> list[Row]:
    """Return one row per policy and worker count above one, against the searches with one worker.

    Only positions that one worker has searched count: an interrupted study may have others. Raises PsearchError when
    a position was searched to several depths, or a search took no time.
    """
    if any(sample.seconds <= 0 or sample.nodes <= 0 for sample in samples):
        raise PsearchError("a search without time or nodes: there is nothing to compare")
    if len({(sample.fen, sample.depth) for sample in samples}) != len({sample.fen for sample in samples}):
        raise PsearchError("a position was searched to several depths: these samples cannot be compared")
    if len({sample.pruning for sample in samples}) > 1:
        raise PsearchError("the searches differ in what was pruned: these samples cannot be compared")
    groups, less_time, less_nodes = _groups(samples), speedups(samples), speedups(samples, "nodes")
    rows = []
    for group in sorted(groups, key=lambda group: group[::-1]):
        searches = groups[group]
        times, nodes = (-np.array(list(logs[group].values())) for logs in (less_time, less_nodes))
        low, high = np.exp(mean_interval(-times)).tolist() if len(times) > 1 else (None, None)
        rows.append(
            Row(
                policy=group[1],
                threads=group[0],
                positions=len(times),
                speedup=math.exp(-times.mean()),
                low=low,
                high=high,
                nps_scaling=math.exp((nodes - times).mean()),
                node_overhead=math.exp(nodes.mean()),
                idle_share=statistics.fmean(search.idle_share for search in searches),
                splits=statistics.fmean(search.splits for search in searches),
                joins=statistics.fmean(search.joins for search in searches),
                aborted_share=sum(s.aborted_nodes for s in searches) / max(sum(s.nodes for s in searches), 1),
            )
        )
    return rows


def table(rows: Sequence[Row], ceilings: Mapping[int, float] | None = None) -> str:
    """Return the summary as text; `ceilings`, by worker count, are those of the hardware."""
    head = ["policy", "workers", "speedup", "95% interval", "ceiling", "nps", "nodes"]
    head += ["idle", "splits", "joins", "aborted"]
    lines = []
    for row in rows:
        ceiling = (ceilings or {}).get(row.threads)
        shown = [row.policy, f"{row.threads}", f"{row.speedup:.2f}", row.interval]
        shown += ["-" if ceiling is None else f"{ceiling:.2f}", f"{row.nps_scaling:.2f}", f"{row.node_overhead:.2f}"]
        shown += [f"{row.idle_share:.1%}", f"{row.splits:,.0f}", f"{row.joins:,.0f}", f"{row.aborted_share:.2%}"]
        lines.append(shown)
    if ceilings is None:
        for line in [head, *lines]:
            del line[4]
    return text_table(head, lines)


def legend(rows: Sequence[Row], ceilings: bool = False) -> str:
    """Return what the columns of the table are."""
    alone = any(row.low is None for row in rows)
    bootstrap = "of the speedup, by drawing positions again (bootstrap)"
    meanings = [
        ("speedup", "time of one worker over that of so many workers"),
        ("95% interval", "-: one position has none, for it says nothing about others" if alone else bootstrap),
        ("ceiling", "speed of so many searches side by side that share nothing"),
        ("nps, nodes", "nodes per second, and nodes in all, times those of one worker"),
        ("idle", "share of the workers' time without work"),
        ("splits, joins", "nodes that had helpers, and moves that helpers took there, a search"),
        ("aborted", "share of the nodes that were thrown away, because a cutoff came meanwhile"),
    ]
    if not ceilings:
        del meanings[2]
    return "Means over the positions, against one worker on the same trees:\n" + glossary(meanings)


class Pair(NamedTuple):
    """How much faster one thing is than another on the same positions: geometric mean, and its interval of 95%."""

    positions: int
    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"x{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f}), {self.positions} positions"


def paired(first: Speedups, other: Speedups) -> Pair | None:
    """Return how much faster the other is. None without two positions that are in both."""
    both = sorted(first.keys() & other.keys())
    if len(both) < 2:
        return None
    differences = np.array([other[fen] - first[fen] for fen in both])
    return Pair(len(both), math.exp(differences.mean()), *np.exp(mean_interval(differences)).tolist())


def pairs(samples: Samples) -> dict[tuple[int, str, str], Pair]:
    """Return every policy over the first one, by worker count and the names of both.

    Policies are compared on each position, for two intervals of the table that overlap do not tell.
    """
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
    lines = [f"  {count} workers, {policy} over {first}: {pair}" for (count, policy, first), pair in found.items()]
    head = "Policies compared position by position, speedup over speedup (95% interval):"
    return "\n".join([head, *lines]) if found else ""


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
    lines = ["Fitted to these times: T(P)/T(1) = c + w/P, of P workers. c cannot be shared, w can:"]
    for fit in fits:
        most = f"a speedup of at most {1 / fit.c:,.0f}" if fit.c > 0 else "no limit in sight"
        lines.append(f"  {fit.policy:<10}  {fit.c:.5f} + {fit.w:.3f}/P: {most} (error of the fit {fit.error:.1%})")
    return "\n".join(lines)
