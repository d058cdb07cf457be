"""Plots of the studies as PNG files. matplotlib is imported here, and only to draw a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from psearch.files.safe_files import unwritable
from psearch.results import PsearchError

if TYPE_CHECKING:
    from psearch.lab.studies.comparisons import Row, Samples
    from psearch.lab.studies.prediction_study import RuleReport

_DPI = 150
_IDEAL: dict[str, Any] = {"color": "0.5", "linestyle": "--", "linewidth": 1}
_THINNEST, _THICKER, _THICKEST = 1.2, 1.2, 6.0
"""Width of the last of several lines, increment from line to line, and width of the first one at most, in points."""
_COLUMNS_AN_INCH = 14
"""Characters of small print per inch."""
_MARKERS = "osD^vPX*h"
_MOST_DOTS = 500
"""Most positions drawn as dots at one bar."""


def check_plot(path: Path) -> None:
    """Raise PsearchError before the measurement if the plot would fail after it."""
    try:
        import matplotlib  # noqa: F401  # checks that it is installed
    except ImportError:
        raise PsearchError("--plot needs matplotlib: pip install matplotlib") from None
    if path.suffix.lower() != ".png":
        raise PsearchError(f"--plot writes PNG: {path} should end in .png")
    if reason := unwritable(path):
        raise PsearchError(f"cannot write {path}: {reason}")


def _figure(width: float, height: float, **panels: Any) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**panels)


def _plain(text: str) -> str:
    """Return a text that is drawn as it is: a dollar begins no formula, and an underscore hides no label."""
    return " " * text.startswith("_") + text.replace("$", r"\$")


def _line(number: int, lines: int) -> dict[str, Any]:
    """Return the style of one of several lines. Each is thinner than the one before, so that all are visible."""
    width = _THINNEST + (lines - 1 - number) * min(_THICKER, (_THICKEST - _THINNEST) / max(lines - 1, 1))
    return {"color": f"C{number}", "linewidth": width, "marker": _MARKERS[number % len(_MARKERS)],
            "markersize": width + 3, "solid_capstyle": "butt"}  # fmt: skip


def whiskers(row: Row) -> tuple[float, float]:
    """Return how far the interval reaches below and above the speedup; 0 without an interval."""
    if row.low is None or row.high is None:
        return 0.0, 0.0
    return max(row.speedup - row.low, 0.0), max(row.high - row.speedup, 0.0)


def _save(figure: Any, path: Path, labels: Iterable[str], notes: Sequence[str]) -> None:
    """Save the figure with the notes at its foot, and with labels and notes in the metadata of the PNG file."""
    metadata = {"Description": "; ".join(labels)}
    if notes:
        columns = int(figure.get_figwidth() * _COLUMNS_AN_INCH)
        figure.supxlabel("\n".join(fill(_plain(note), columns) for note in notes), fontsize="small")
        metadata["Warning"] = "; ".join(notes)
    figure.savefig(path, dpi=_DPI, metadata=metadata)


def plot_simulation(path: Path, rows: Sequence[Row], title: str, notes: Sequence[str] = ()) -> None:
    """Draw speedup over workers on a log-log scale, a line per policy; below it node overhead and idle share."""
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter, ScalarFormatter

    figure, (upper, lower) = _figure(8, 8, nrows=2, sharex=True, height_ratios=(2, 1))
    counts = sorted({1, *(row.threads for row in rows)})
    upper.plot(counts, counts, label="ideal", **_IDEAL)
    idle = lower.twinx()
    policies = list(dict.fromkeys(row.policy for row in rows))
    for number, policy in enumerate(policies):
        own = [row for row in rows if row.policy == policy]
        x = [1, *(row.threads for row in own)]
        style = _line(number, len(policies))
        upper.plot(x, [1.0, *(row.speedup for row in own)], label=_plain(policy), **style)
        low = [1.0, *(row.speedup - whiskers(row)[0] for row in own)]
        high = [1.0, *(row.speedup + whiskers(row)[1] for row in own)]
        upper.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
        lower.plot(x, [1.0, *(row.node_overhead for row in own)], **style)
        style |= {"linestyle": ":", "marker": "x"}
        idle.plot(x, [0.0, *(row.idle_share for row in own)], **style)
    upper.set_xscale("log", base=2)
    upper.set_yscale("log", base=2)
    for axis in (upper.xaxis, upper.yaxis):
        axis.set_major_locator(FixedLocator(counts))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(ScalarFormatter())
    upper.set(ylabel="speedup against one worker", title=title)
    upper.legend(loc="upper left")
    lower.set(xlabel="virtual workers", ylabel="node overhead (solid)")
    lower.set_ylim(bottom=min([1.0, *(row.node_overhead for row in rows)]))
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    idle.set_ylabel("idle share (dotted)")
    idle.set_ylim(bottom=0)
    idle.yaxis.set_major_formatter(PercentFormatter(1.0))
    _save(figure, path, policies, notes)


def plot_speedup(
    path: Path, samples: Samples, rows: Sequence[Row], ceilings: Mapping[int, float], title: str, notes: Sequence[str]
) -> None:
    """Draw a bar with its 95% interval for each policy and count, dots for the positions, and the ceilings."""
    from psearch.lab.studies.comparisons import speedups

    figure, axes = _figure(max(7.0, 1.6 + 1.1 * len(rows)), 5)
    counts, policies = sorted({row.threads for row in rows}), list(dict.fromkeys(row.policy for row in rows))
    ceilings = {count: value for count, value in ceilings.items() if count in counts and 0 < value < math.inf}
    dots = {group: [math.exp(log) for log in logs.values()] for group, logs in speedups(samples).items()}
    spread = sorted(speedup for of_row in dots.values() for speedup in of_row)
    # the highest 5% of the dots may lie on the edge
    highest = [*spread[: math.ceil(0.95 * len(spread))][-1:], *ceilings.values()]
    top = 1.25 * max([*highest, *(row.speedup + whiskers(row)[1] for row in rows)], default=1.0)
    width = 0.8 / max(len(policies), 1)
    for row in rows:
        number = policies.index(row.policy)
        x = counts.index(row.threads) + (number - (len(policies) - 1) / 2) * width
        label = _plain(row.policy) if row.threads == min(r.threads for r in rows if r.policy == row.policy) else None
        axes.bar(x, row.speedup, width * 0.9, color=f"C{number}", label=label)
        if row.low is not None:
            interval = [[way] for way in whiskers(row)]
            axes.errorbar(x, row.speedup, yerr=interval, color="black", capsize=4, linewidth=1)
        axes.text(x, 0.05, f"{row.speedup:.2f}", ha="center", va="bottom", color="white")
        if shown := dots.get((row.threads, row.policy), [])[:_MOST_DOTS]:
            # in the order of the suite, so that a position is in the same place at every bar
            across = [x + width * 0.7 * ((place + 0.5) / len(shown) - 0.5) for place in range(len(shown))]
            heights = [min(speedup, 0.995 * top) for speedup in shown]
            axes.plot(across, heights, ".", color="black", alpha=0.5, markersize=4)
    for count, label in zip(ceilings, ["ceiling: independent searches", *[None] * len(ceilings)], strict=False):
        place = counts.index(count)
        axes.hlines(ceilings[count], place - 0.45, place + 0.45, label=label, **_IDEAL)
    axes.set_xticks(range(len(counts)), [str(count) for count in counts])
    several = " (95% interval)" if any(row.low is not None for row in rows) else ""
    axes.set(xlabel="worker processes", ylabel=f"speedup against one worker{several}", title=title)
    axes.set(xlim=(-0.6, len(counts) - 0.4), ylim=(0, top))
    axes.legend(loc="upper left", fontsize="small")
    axes.grid(axis="y", alpha=0.3)
    _save(figure, path, policies, notes)


def plot_prediction(path: Path, reports: Sequence[RuleReport], title: str, notes: Sequence[str] = ()) -> None:
    """Draw the reliability of P(no cutoff) at entry and of P(needed): observed over predicted, a line per rule."""
    figure, (left, right) = _figure(11, 5.5, ncols=2)
    for number, report in enumerate(reports):
        curves = (left, report.reliability, report.brier), (right, report.needed, report.brier_needed)
        for axes, bins, brier in curves:
            solid = [b for b in bins if b.count >= 20]  # smaller bins are too noisy
            label, style = f"{_plain(report.rule)} (Brier {brier:.3f})", _line(number, len(reports))
            axes.plot([b.predicted for b in solid], [b.observed for b in solid], label=label, **style)
    for axes, what in ((left, "P(no cutoff) at entry"), (right, "P(needed), moves at shared nodes")):
        axes.plot((0, 1), (0, 1), **_IDEAL)
        axes.set(xlabel="predicted", ylabel="observed", title=what, xlim=(0, 1), ylim=(0, 1))
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle(title)
    _save(figure, path, [report.rule for report in reports], notes)
