"""A study as one HTML file that can be mailed: the table, the pictures, what was measured, and each position.

The file refers to nothing outside of it and has no script; its own policy for contents forbids both. It is replaced
as a whole, and only if what is there is such a report.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.notation.atomic_file import AtomicFile
from psearch.notation.own_kind import check_replaceable
from psearch.results import PsearchError
from psearch.studies.pairs import pair_lines
from psearch.studies.plots import whiskers
from psearch.studies.raw_log import machine_name
from psearch.studies.speedup import Row, Samples, legend, mean_logs, most_workers, table_cells
from psearch.studies.svg import Axis, Picture, doubling_axis, number_axis
from psearch.studies.time_fit import Fit, fit_lines
from psearch.studies.tree_sizes import scale_line, searched, size_text, warnings
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.simulation.simulator import VirtualSample
    from psearch.studies.speedup import Sample

OPENING = '<!DOCTYPE html>\n<html lang="en" data-by="psearch report">\n'
"""How every report begins."""
MOST_POSITIONS = 500
"""Rows of the table of positions; the raw log has all of them."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a3498b", "#8a6100", "#2f8fc9", "#b03a48", "#555555")
"""Of lines and bars on white (after Okabe and Ito, darker where they must carry text); below, on black."""
_DARK_COLOURS = ("#56b4e9", "#ff9447", "#2fc79a", "#e59ac8", "#e6b422", "#9ad0f5", "#ff8f8f", "#bbbbbb")
_DASHES = ("none", "9 4", "2 3", "9 3 2 3", "14 4", "5 5", "1 4", "12 3 3 3 3 3")

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --faint: #666; --paper: #fff; --edge: #d4d4d4; --inside: #fff; %s }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --faint: #a8a8a8; --paper: #16181b; --edge: #3b3f45;
  --inside: #000; %s } }
body { font: 16px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 0.3rem; } h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.6rem; text-align: right; border-bottom: 1px solid var(--edge); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } dt { font-weight: 600; } dd { margin: 0 0 0.3rem 1rem; }
pre { white-space: pre-wrap; font-size: 0.85rem; color: var(--faint); } .note { color: var(--faint); }
figure { margin: 0.5rem 0 1.5rem; } svg { width: 100%%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); } svg text.inside { fill: var(--inside); }
.grid { stroke: var(--edge); } .axis { stroke: var(--faint); fill: none; } .dot { fill: var(--ink); opacity: 0.5; }
.ideal { stroke: var(--faint); stroke-dasharray: 6 5; fill: none; stroke-width: 1.5; }
.whisker { stroke: var(--ink); stroke-width: 1.5; fill: none; } .line { fill: none; stroke-width: 2; }
.band { opacity: 0.15; stroke: none; }
@media print { body { max-width: none; } }
"""


@dataclass(frozen=True)
class Report:
    """What a report is made of: a study's searches, and what is known about it."""

    title: str
    samples: Samples
    rows: Sequence[Row]
    rule: str
    """by which the depths were chosen"""
    about: Mapping[str, Any] = field(default_factory=dict)
    """as the first line of a raw log has it: `machine`, `commit`, `written`, `arguments`, `costs`"""
    ceilings: Mapping[int, float] | None = None
    """of the hardware, by worker count; None: of virtual time there are none"""
    fits: Sequence[Fit] = ()
    costs: str = ""
    """of virtual time: whose they are"""
    interrupted: bool = False


def check_report(path: Path) -> None:
    """Refuse before the measurement what would fail after it. Raises PsearchError."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise PsearchError(f"--html writes HTML: {path} should end in .html")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise PsearchError(f"cannot write {path}: its folder does not exist")
    if path.is_dir():
        raise PsearchError(f"cannot write {path}: it is a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PsearchError(f"cannot write {path}: permission denied in {folder}")
    check_replaceable(path, "a report of psearch", lambda head: head.startswith(OPENING.encode()))


def write_report(path: Path, report: Report) -> None:
    """Replace the file as a whole. Raises PsearchError when another file has come to its place, OSError when it cannot
    be written: what is there stays then."""
    check_report(path)
    target = Path(os.path.realpath(path))
    with AtomicFile(target, target.with_name(f".{target.name}.{os.getpid()}.new")) as out:
        out.write(page(report))
        out.commit()


def page(report: Report) -> str:
    """The whole file."""
    is_real = report.ceilings is not None
    pictures = [_bars(report)] if is_real else _curves(report)
    positions, nodes = searched(report.samples)
    pruning = getattr(report.samples[0], "pruning", "") if report.samples else ""
    pairs = pair_lines(report.samples)
    parts = [
        f"<h1>{escape(report.title)}</h1>",
        f"<p>{escape(scale_line(positions, nodes))}{escape(f'; pruning {pruning}' if pruning else '')}.<br>",
        *(f'<span class="note">{escape(text)}.</span><br>' for text in (report.rule, report.costs) if text),
        "</p>",
        *(f'<p class="note">{escape(text)}.</p>' for text in _cautions(report, positions, nodes)),
        *(f"<figure>{picture.markup()}</figure>" for picture in pictures),
        "<h2>Figures</h2>",
        _table(*table_cells(report.rows, report.ceilings)),
        f"<pre>{escape(legend(report.rows, ceilings=is_real))}</pre>",
        f"<pre>{escape(pairs)}</pre>" if pairs else "",
        f"<pre>{escape(fit_lines(report.fits))}</pre>" if report.fits else "",
        _positions(report),
        "<h2>How it was measured</h2>",
        _facts(report),
    ]
    colours = [" ".join(f"--s{n}: {c};" for n, c in enumerate(c)) for c in (_COLOURS, _DARK_COLOURS)]
    classes = "".join(
        f".s{n} {{ stroke: var(--s{n}); }} .bar.s{n}, .mark.s{n}, .band.s{n} {{ fill: var(--s{n}); }} "
        f".line.d{n} {{ stroke-dasharray: {dash}; }}\n"
        for n, dash in enumerate(_DASHES)
    )
    head = (
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>{_STYLE % tuple(colours)}{classes}</style>\n"
    )
    body = "\n".join(part for part in parts if part)
    return f"{OPENING}<head>\n{head}</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"


def _cautions(report: Report, positions: int, nodes: float) -> list[str]:
    """What keeps the figures from meaning much."""
    found = ["Interrupted: the figures are of the searches that were finished"] if report.interrupted else []
    return found + [text[0].upper() + text[1:] for text in warnings(positions, nodes, most_workers(report.rows))]


# -- pictures ----------------------------------------------------------------------------------------------------------


def _policies(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.policy for row in rows))


def _says(row: Row) -> str:
    """What a mark stands for."""
    interval = f" (95%: {row.interval})" if row.low is not None else ""
    return f"{row.policy}, {row.threads} workers: speedup {row.speedup:.2f}{interval}"


def _bars(report: Report) -> Picture:
    """A bar with its interval for each policy and worker count, a dot a position, and the ceilings of the hardware."""
    rows = report.rows
    ceilings = {count: value for count, value in (report.ceilings or {}).items() if 0 < value < math.inf}
    counts, names = sorted({row.threads for row in rows}), _policies(rows)
    single = [_of_positions(report.samples, row) for row in rows]
    spread = sorted(speedup for values in single for speedup, _ in values.values())
    # what is beyond, a twentieth of the positions, lies on the edge
    beyond = spread[int(0.95 * (len(spread) - 1))] if spread else 1.0
    top = max([beyond, *ceilings.values(), *(row.speedup + whiskers(row)[1] for row in rows)])
    picture = Picture(
        Axis(-0.6, len(counts) - 0.4, [(n, str(count)) for n, count in enumerate(counts)], "worker processes"),
        number_axis(0.0, 1.15 * top, "speedup against one worker"),
        "Speedup by worker processes",
        "; ".join(_says(row) for row in rows),
    )
    width = 0.8 / max(len(names), 1)
    for number, name in enumerate(names):
        picture.key(number, name)
    called = {sample.fen: sample.position for sample in reversed(report.samples)}
    for row, values in zip(rows, single, strict=True):
        number = names.index(row.policy)
        x = counts.index(row.threads) + (number - (len(names) - 1) / 2) * width
        picture.bar(x, 0.9 * width, row.speedup, number, _says(row))
        if row.low is not None:
            picture.whisker(x, row.speedup - whiskers(row)[0], row.speedup + whiskers(row)[1])
        shown = list(values.items())[:MOST_POSITIONS]
        for place, (fen, (speedup, _)) in enumerate(shown):
            # in the order of the suite, so that a position is found again at the next bar
            across = x + width * 0.35 * (2 * (place + 0.5) / len(shown) - 1)
            picture.dot(across, speedup, f"{called[fen]}: {speedup:.2f}")
    for place, count in enumerate(counts):
        if count in ceilings:
            label = "" if any(c in ceilings for c in counts[:place]) else "ceiling: independent searches"
            picture.level(place, 0.9, ceilings[count], f"ceiling of {count}: {ceilings[count]:.2f}", label)
    return picture


def _curves(report: Report) -> list[Picture]:
    """Speedup, nodes and idle time by virtual workers, a line a policy."""
    rows = report.rows
    counts = sorted({1, *(row.threads for row in rows)})
    names = _policies(rows)
    # one worker is the base; where only one is measured there is no curve
    x = doubling_axis(counts, "virtual workers")
    low = min([1.0, *(row.speedup - whiskers(row)[0] for row in rows)])
    high = max([counts[-1], *(row.speedup + whiskers(row)[1] for row in rows)])
    ticks = [(float(count), str(count)) for count in counts if low <= count <= high]
    speedup = Picture(
        x,
        Axis(low, max(high, 1.5 * low), ticks, "speedup against one worker", log=True),
        "Speedup by virtual workers",
        "; ".join(_says(row) for row in rows),
        height=420,
    )
    speedup.ideal([(count, count) for count in counts], "ideal")
    overhead = Picture(
        x,
        number_axis(
            min([1.0, *(row.node_overhead for row in rows)]),
            max([1.1, *(row.node_overhead for row in rows)]),
            "nodes, of one worker's",
        ),
        "Nodes in all, times those of one worker",
        "; ".join(f"{row.policy}, {row.threads} workers: x{row.node_overhead:.2f}" for row in rows),
        height=260,
    )
    idle = Picture(
        x,
        number_axis(0.0, max([0.05, *(row.idle_share for row in rows)]), "time without work", percent=True),
        "Share of the workers' time without work",
        "; ".join(f"{row.policy}, {row.threads} workers: {row.idle_share:.1%}" for row in rows),
        height=260,
    )
    for number, name in enumerate(names):
        own = [row for row in rows if row.policy == name]
        at = [1.0, *(float(row.threads) for row in own)]
        if any(row.low is not None for row in own):
            lows = [1.0, *(max(row.speedup - whiskers(row)[0], low) for row in own)]
            highs = [1.0, *(row.speedup + whiskers(row)[1] for row in own)]
            speedup.band(list(zip(at, lows, highs, strict=True)), number)
        says = [_says(row) for row in own]
        speedup.line([(1.0, 1.0), *((row.threads, row.speedup) for row in own)], number, name, ["one worker", *says])
        says = [f"{row.policy}, {row.threads} workers: x{row.node_overhead:.2f}" for row in own]
        nodes = [(1.0, 1.0), *((row.threads, row.node_overhead) for row in own)]
        overhead.line(nodes, number, name, ["one worker", *says])
        says = [f"{row.policy}, {row.threads} workers: {row.idle_share:.1%}" for row in own]
        idle.line([(1.0, 0.0), *((row.threads, row.idle_share) for row in own)], number, name, ["one worker", *says])
    return [speedup, overhead, idle]


# -- tables ------------------------------------------------------------------------------------------------------------


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>\n" for line in lines)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>'


def _base(samples: Samples) -> list[Sample | VirtualSample]:
    return [sample for sample in samples if sample.threads == 1]


def _of_positions(samples: Samples, row: Row) -> dict[str, tuple[float, float]]:
    """Speedup and share of nodes of each position against one worker, by FEN, in the order of the suite."""
    base = _base(samples)
    own = [s for s in samples if (s.policy, s.threads) == (row.policy, row.threads)]
    times, nodes = (mean_logs(base, field) for field in ("seconds", "nodes"))
    own_times, own_nodes = (mean_logs(own, field) for field in ("seconds", "nodes"))
    return {
        fen: (math.exp(times[fen] - own_times[fen]), math.exp(own_nodes[fen] - nodes[fen]))
        for fen in times
        if fen in own_times
    }


def _positions(report: Report) -> str:
    """Every position with its depth, the nodes of one worker, and what each row of the figures is there."""
    base = _base(report.samples)
    nodes = mean_logs(base, "nodes")
    about = {sample.fen: sample for sample in reversed(base)}
    single = [_of_positions(report.samples, row) for row in report.rows]
    head = ["position", "depth", "nodes"]
    for row in report.rows:
        head += [f"{row.policy} {row.threads}", "nodes"]
    lines = []
    for fen in list(nodes)[:MOST_POSITIONS]:
        cells = [about[fen].position, str(about[fen].depth), size_text(math.exp(nodes[fen]))]
        for values in single:
            pair = values.get(fen)
            cells += ["-", "-"] if pair is None else [f"{pair[0]:.2f}", f"x{pair[1]:.2f}"]
        lines.append(cells)
    left = len(nodes) - len(lines)
    more = f'<p class="note">{left:,} positions more are in the raw log.</p>' if left else ""
    return (
        f"<details><summary>Each position: speedup and nodes, against one worker</summary>\n{_table(head, lines)}"
        f"{more}</details>"
    )


_SHOWN = ("policy", "hash", "pruning", "seed", "repeat", "seconds", "depth", "tree_nodes", "split_depth", "jitter")
"""Arguments that are told; those with paths of this machine are not."""

_LONGEST_FACT = 300
"""Characters: a log may say anything."""


def _facts(report: Report) -> str:
    """Machine, version, time, arguments."""
    about = report.about
    rows: list[tuple[str, str]] = []
    machine = about.get("machine")
    if isinstance(machine, Mapping):
        rows.append(("machine", machine_name(machine)))
        rows.append(("psearch", f"{machine.get('psearch', '?')} ({about.get('commit', '?')})"))
    if about.get("written"):
        rows.append(("measured", str(about["written"])))
    arguments = about.get("arguments")
    if isinstance(arguments, Mapping):
        told = [f"{name.replace('_', ' ')} {arguments[name]}" for name in _SHOWN if arguments.get(name) is not None]
        if told:
            rows.append(("arguments", ", ".join(told)))
        if isinstance(arguments.get("suite"), str):
            rows.append(("suite", Path(arguments["suite"]).name))
    rows.append(("report", f"psearch {__version__}, {time.strftime('%Y-%m-%d')}"))
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{escape(text[:_LONGEST_FACT])}</dd>" for name, text in rows) + "</dl>"
