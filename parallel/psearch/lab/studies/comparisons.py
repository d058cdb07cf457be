"""Summaries of a study: a table of speedups, policies compared position by position, and fitted times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

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
    """Results of one policy at one worker count, relative to one worker."""

    policy: str
    threads: int
    positions: int
    speedup: float
    """Time of one worker divided by the time of this count: geometric mean over repeats and positions."""
    low: float | None
    high: float | None
    """Bounds of the 95% bootstrap interval over positions; None for a single position."""
    nps_scaling: float
    node_overhead: float
    idle_share: float
    splits: float
    joins: float
    aborted_share: float

    @property
    def interval(self) -> str:
        """Return the interval as text."""
        return "-" if self.low is None or self.high is None else f"{self.low:.2f} - {self.high:.2f}"


def _mean_logs(samples: Samples, field: str) -> dict[str, float]:
    """Return the mean logarithm of `field` over the repeats of each position."""
    by_position: dict[str, list[float]] = {}
    for sample in samples:
        by_position.setdefault(sample.fen, []).append(math.log(getattr(sample, field)))
    return {fen: statistics.fmean(logs) for fen, logs in by_position.items()}


def _groups(samples: Samples) -> dict[tuple[int, str], list[Sample | VirtualSample]]:
    """Return searches by several workers, by count and policy, of positions that one worker has searched, too."""
    known = {sample.fen for sample in samples if sample.threads == 1}
    groups: dict[tuple[int, str], list[Sample | VirtualSample]] = {}
    for sample in samples:
        if sample.threads > 1 and sample.fen in known:
            groups.setdefault((sample.threads, sample.policy), []).append(sample)
    return groups


def searched(samples: Samples) -> tuple[int, float]:
    """Return the number of positions that one worker has searched, and its mean number of nodes (the tree size)."""
    alone = [sample for sample in samples if sample.threads == 1]
    return len({sample.fen for sample in alone}), sum(sample.nodes for sample in alone) / max(len(alone), 1)


def speedups(samples: Samples, field: str = "seconds") -> dict[tuple[int, str], Speedups]:
    """Return the speedups by worker count and policy: the ratio of `field` with one worker to that with several, at the
    same depth, as a mean over repeats. The policies are in the order of the samples."""
    alone = _mean_logs([sample for sample in samples if sample.threads == 1], field)
    return {
        group: {fen: alone[fen] - log for fen, log in _mean_logs(searches, field).items()}
        for group, searches in _groups(samples).items()
    }


def mean_interval(values: np.ndarray, rounds: int = 2000) -> tuple[float, float]:
    """Return the 95% interval of the mean of `values`, of shape (n,), by a percentile bootstrap with a fixed seed.
    `scipy.stats.bootstrap` does as much, but scipy is no dependency of `psearch speedup`."""
    picks = np.random.default_rng(1).integers(values.size, size=(rounds, values.size))
    low, high = np.quantile(values[picks].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def summarise(samples: Samples) -> list[Row]:
    """Return one row per policy and worker count above one, against the searches with one worker.

    Positions that one worker has not searched are ignored: an interrupted study may have some. Raises PsearchError if
    a position was searched to several depths, or a search took no time.
    """
    if any(sample.seconds <= 0 or sample.nodes <= 0 for sample in samples):
        raise PsearchError("a search has no time or no nodes: it cannot be compared")
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
    """Return the summary as text. ceilings: ceilings of the hardware by worker count."""
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
    """Return the legend of the table."""
    alone = any(row.low is None for row in rows)
    bootstrap = "bootstrap interval of the speedup over the positions"
    meanings = [
        ("speedup", "time of one worker divided by the time of all workers"),
        ("95% interval", "-: none for a single position, which says nothing about others" if alone else bootstrap),
        ("ceiling", "throughput of this many independent searches side by side"),
        ("nps, nodes", "nodes per second and nodes in total, relative to one worker"),
        ("idle", "share of the workers' time spent without work"),
        ("splits, joins", "nodes that had helpers, and moves that helpers took there, per search"),
        ("aborted", "share of the nodes whose work was thrown away because of a cutoff"),
    ]
    if not ceilings:
        del meanings[2]
    return "Means over the positions, relative to one worker on the same positions:\n" + glossary(meanings)


class Pair(NamedTuple):
    """Speedup of one policy over another on the same positions: geometric mean with its 95% interval."""

    positions: int
    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"x{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f}), {self.positions} positions"


def paired(first: Speedups, other: Speedups) -> Pair | None:
    """Return how much faster the other is; None if they share fewer than two positions."""
    both = sorted(first.keys() & other.keys())
    if len(both) < 2:
        return None
    differences = np.array([other[fen] - first[fen] for fen in both])
    return Pair(len(both), math.exp(differences.mean()), *np.exp(mean_interval(differences)).tolist())


def pairs(samples: Samples) -> dict[tuple[int, str, str], Pair]:
    """Return the comparison of every policy with the first one, by worker count and both names. Policies are compared
    on each position, because overlapping intervals in the table prove nothing."""
    found = speedups(samples)
    first = next((policy for _, policy in found), "")
    compared = {
        (count, policy, first): paired(found[count, first], other)
        for (count, policy), other in sorted(found.items(), key=lambda group: group[0][0])
        if policy != first and (count, first) in found
    }
    return {names: pair for names, pair in compared.items() if pair is not None}


def pair_lines(samples: Samples) -> str:
    """Return the pairs as text with a heading; empty if there are none."""
    found = pairs(samples)
    lines = [f"  {count} workers, {policy} over {first}: {pair}" for (count, policy, first), pair in found.items()]
    head = "Policies compared position by position, as ratios of speedups (95% interval):"
    return "\n".join([head, *lines]) if found else ""


@dataclass(frozen=True)
class Fit:
    """Fit of T(P) / T(1) = c + w / P for one policy: critical path c and work w, in units of the serial time."""

    policy: str
    c: float
    w: float
    error: float
    """Root mean square of the relative errors."""


def fit_times(rows: Sequence[Row]) -> list[Fit]:
    """Return a fit for each policy with at least two worker counts above one, by least squares of relative errors.

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
    """Solve least squares with two non-negative unknowns. terms: (n, 2), wanted: (n,). `scipy.optimize.nnls` does as
    much, but scipy is no dependency of `psearch simulate`."""
    found = np.linalg.lstsq(terms, wanted, rcond=None)[0]
    if found.min() < 0:  # then one of the two is zero at the minimum, and the other is its best value alone
        alone = np.diag((wanted @ terms / (terms**2).sum(axis=0)).clip(0))
        found = min(alone, key=lambda pair: float(((terms @ pair - wanted) ** 2).sum()))
    return float(found[0]), float(found[1])


def fit_lines(fits: Sequence[Fit]) -> str:
    """Return the fits as text with a heading."""
    lines = ["Fit to these times with P workers, T(P)/T(1) = c + w/P: c cannot be shared, w can."]
    for fit in fits:
        most = f"a speedup of at most {1 / fit.c:,.0f}" if fit.c > 0 else "no limit"
        lines.append(f"  {fit.policy:<10}  {fit.c:.5f} + {fit.w:.3f}/P: {most} (error of the fit {fit.error:.1%})")
    return "\n".join(lines)
