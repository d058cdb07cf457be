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
from typing import Any

from psearch.files.atomic_file import AtomicFile
from psearch.files.own_kind import check_replaceable
from psearch.files.raw_log import machine_name
from psearch.lab.studies.pairs import pair_lines, speedups
from psearch.lab.studies.plots import check_matplotlib, describe, simulation_figure, speedup_figure, svg_text
from psearch.lab.studies.speedup_study import Row, Samples, how_searched, legend, mean_logs, most_workers, table_cells
from psearch.lab.studies.time_fit import Fit, fit_lines
from psearch.lab.studies.tree_sizes import scale_line, searched, size_text, warnings
from psearch.results import PsearchError
from psearch.version import __version__

OPENING = '<!DOCTYPE html>\n<html lang="en" data-by="psearch report">\n'
"""How every report begins."""
MOST_POSITIONS = 500
"""Rows of the table of positions; the raw log has all of them."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --faint: #666; --paper: #fff; --edge: #d4d4d4; }
body { font: 16px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 0.3rem; } h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.6rem; text-align: right; border-bottom: 1px solid var(--edge); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } dt { font-weight: 600; } dd { margin: 0 0 0.3rem 1rem; }
pre { white-space: pre-wrap; font-size: 0.85rem; color: var(--faint); } .note { color: var(--faint); }
figure { margin: 0.5rem 0 1.5rem; } svg { width: 100%; height: auto; display: block; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --faint: #a8a8a8; --paper: #16181b; --edge: #3b3f45; }
  svg { filter: invert(1) hue-rotate(180deg); } }
@media print { body { max-width: none; } }
"""


@dataclass(frozen=True)
class StudyReport:
    """What a report is made of: a study's searches, and what is known about it."""

    title: str
    samples: Samples
    rows: Sequence[Row]
    rule: str
    """by which the depths were chosen"""
    driver: str = ""
    """of all searches; empty if their log does not say"""
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
    check_matplotlib("--html")
    check_replaceable(path, "a report of psearch", lambda head: head.startswith(OPENING.encode()))


def write_report(path: Path, report: StudyReport) -> None:
    """Replace the file as a whole. Raises PsearchError when another file has come to its place, OSError when it cannot
    be written: what is there stays then."""
    check_report(path)
    target = Path(os.path.realpath(path))
    with AtomicFile(target, target.with_name(f".{target.name}.{os.getpid()}.new")) as out:
        out.write(page(report))
        out.commit()


def page(report: StudyReport) -> str:
    """Return the whole file."""
    is_real = report.ceilings is not None
    positions, nodes = searched(report.samples)
    how = how_searched(report.samples, report.driver)
    pairs = pair_lines(report.samples)
    parts = [
        f"<h1>{escape(report.title)}</h1>",
        f"<p>{escape(scale_line(positions, nodes))}{escape(f'; {how}' if how else '')}.<br>",
        *(f'<span class="note">{escape(text)}.</span><br>' for text in (report.rule, report.costs) if text),
        "</p>",
        *(f'<p class="note">{escape(text)}.</p>' for text in _cautions(report, positions, nodes)),
        f"<figure>{_picture(report)}</figure>",
        "<h2>Figures</h2>",
        _table(*table_cells(report.rows, report.ceilings)),
        f"<pre>{escape(legend(report.rows, ceilings=is_real))}</pre>",
        f"<pre>{escape(pairs)}</pre>" if pairs else "",
        f"<pre>{escape(fit_lines(report.fits))}</pre>" if report.fits else "",
        _positions(report),
        "<h2>How it was measured</h2>",
        _facts(report),
    ]
    head = (
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>{_STYLE}</style>\n"
    )
    body = "\n".join(part for part in parts if part)
    return f"{OPENING}<head>\n{head}</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"


def _cautions(report: StudyReport, positions: int, nodes: float) -> list[str]:
    """What keeps the figures from meaning much."""
    found = ["Interrupted: the figures are of the searches that were finished"] if report.interrupted else []
    pruning = report.samples[0].pruning if report.samples else ""
    cautions = warnings(positions, nodes, most_workers(report.rows), pruning)
    return found + [text[0].upper() + text[1:] for text in cautions]


def _picture(report: StudyReport) -> str:
    """Draw bars for real processes, curves for virtual ones."""
    if report.ceilings is None:
        figure, name = simulation_figure(report.rows), "Speedup, nodes and idle time by virtual workers"
    else:
        figure = speedup_figure(report.samples, report.rows, report.ceilings)
        name = "Speedup by worker processes"
    return svg_text(figure, name, describe(report.rows))


# -- tables ------------------------------------------------------------------------------------------------------------


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>\n" for line in lines)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>'


def _positions(report: StudyReport) -> str:
    """Every position with its depth, the nodes of one worker, and what each row of the figures is there."""
    base = [sample for sample in report.samples if sample.threads == 1]
    nodes = mean_logs(base, "nodes")
    about = {sample.fen: sample for sample in reversed(base)}
    times, fewer = speedups(report.samples), speedups(report.samples, "nodes")
    groups = [(row.threads, row.policy) for row in report.rows]
    head = ["position", "depth", "nodes"]
    for row in report.rows:
        head += [f"{row.policy} {row.threads}", "nodes"]
    lines = []
    for fen in list(nodes)[:MOST_POSITIONS]:
        cells = [about[fen].position, str(about[fen].depth), size_text(math.exp(nodes[fen]))]
        for group in groups:
            faster = times[group].get(fen)
            cells += (
                ["-", "-"] if faster is None else [f"{math.exp(faster):.2f}", f"x{math.exp(-fewer[group][fen]):.2f}"]
            )
        lines.append(cells)
    left = len(nodes) - len(lines)
    more = f'<p class="note">{left:,} positions more are in the raw log.</p>' if left else ""
    return (
        f"<details><summary>Each position: speedup and nodes, against one worker</summary>\n{_table(head, lines)}"
        f"{more}</details>"
    )


_SHOWN = ("policy", "hash", "pruning", "driver", "seed", "repeat", "seconds", "depth", "tree_nodes", "split_depth",
          "jitter")  # fmt: skip
"""Arguments that are told; those with paths of this machine are not."""

_LONGEST_FACT = 300
"""Characters: a log may say anything."""


def _facts(report: StudyReport) -> str:
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
