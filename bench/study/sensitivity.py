"""How the speedup in virtual time depends on the thresholds, the tree size and the cost of a join.

    python bench/study/sensitivity.py --suite FILE --out FOLDER [--tree-nodes N] [--tree-sizes N,N] [--hash MB]
                                [--workers 16,64] [--jobs J]
    python bench/study/sensitivity.py --from-log LOGS.jsonl.xz#NAME --out FOLDER [--tree-sizes N,N]

One thing is varied at a time, everything else stays at its default. Every point is a log in FOLDER
(`split-depth-4.jsonl` and so on); a log that is there is not measured again, so an interrupted run goes on where it
was. Then the picture `sensitivity.png`, the figures as `sensitivity.json` and a table are made from the logs; with
--from-log from those that one file holds as the runs `NAME/split-depth-4` and so on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from psearch.defaults import JOB_HASH_MB
from psearch.faces.cli.arguments import add_hash
from psearch.files.raw_log import RawLog, read_log
from psearch.lab.studies import StudyProgress
from psearch.lab.studies.depths import rule_name
from psearch.lab.studies.plots import whiskers
from psearch.lab.studies.speedup_study import Row, summarise
from psearch.lab.studies.virtual_study import Study, run_study
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import VirtualSample
from psearch.terminal.status import StatusLine
from psearch.text.epd_text import read_suite


@dataclass(frozen=True)
class Panel:
    """One thing that is varied: its values, and the study with a value."""

    name: str
    title: str
    values: tuple[int, ...]
    apply: Callable[[Study, int], Study]
    policies: tuple[str, ...] = ("calibrated", "ybw")
    log_scale: bool = False


def _options(name: str) -> Callable[[Study, int], Study]:
    return lambda study, value: replace(study, options=replace(study.options, **{name: value}))


def _threshold(study: Study, value: int) -> Study:
    """While all are busy never lower than while somebody is idle."""
    busy = max(value, study.options.open_busy)
    return replace(study, options=replace(study.options, open_idle=value, open_busy=busy))


def _join_cost(study: Study, factor: int) -> Study:
    costs = replace(study.costs, join=study.costs.join * factor, leave=study.costs.leave * factor)
    return replace(study, costs=costs)


PANELS = (
    Panel("open-idle", "P(needed) to open, percent, while somebody is idle", (0, 5, 10, 20, 40, 60), _threshold,
          policies=("calibrated",)),
    Panel("split-depth", "least depth to split at", (1, 2, 3, 4, 6), _options("split_depth"),
          policies=("calibrated",)),
    Panel("join-cost", "cost of join and leave, times the measured one", (1, 4, 16, 64), _join_cost,
          policies=("calibrated",), log_scale=True),
    Panel("defer-depth", "least depth to defer moves (0 never)", (0, 1, 2, 4), _options("defer_depth"),
          policies=("calibrated",)),
    Panel("tree-nodes", "nodes that one worker may search", (20_000, 100_000, 500_000, 2_000_000),
          lambda study, value: replace(study, tree_nodes=value), log_scale=True),
)  # fmt: skip


@dataclass
class Curve:
    """Speedups of one policy at one worker count."""

    values: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


Point = Callable[[Panel, int], list[VirtualSample]]
"""The samples of a panel's value."""


def measure(
    panel: Panel, value: int, study: Study, folder: Path, jobs: int, progress: StudyProgress
) -> list[VirtualSample]:
    """The samples of one point: from its log, or searched now and logged."""
    path = folder / f"{panel.name}-{value}.jsonl"
    if path.exists():
        return read_log(path, VirtualSample)[0]
    samples: list[VirtualSample] = []
    study = replace(panel.apply(study, value), policies=panel.policies)
    about = {
        "study": "sensitivity",
        "varied": panel.name,
        "value": value,
        "options": asdict(study.options),
        "costs": asdict(study.costs),
        "tree_nodes": study.tree_nodes,
        "hash": study.hash_mb,
        "depths": rule_name(study.depth),
    }
    unfinished = path.with_suffix(".part")
    with RawLog(unfinished, about) as log:

        def keep(sample: VirtualSample) -> None:
            samples.append(sample)
            log.add(sample)

        def report(text: str, done: float = 0, total: float = 0) -> None:
            progress(f"{panel.name} {value}: {text}", done, total)

        run_study(study, jobs, keep, report)
    unfinished.rename(path)
    return samples


def _measurer(options: argparse.Namespace, status: StatusLine) -> Point:
    """The points, each measured when it is wanted and not logged yet."""
    workers = [int(word) for word in options.workers.split(",")]
    suite = read_suite(options.suite)
    study = Study(suite, None, workers, (), Costs(), hash_mb=options.hash, tree_nodes=options.tree_nodes)
    return lambda panel, value: measure(panel, value, study, options.out, options.jobs, status)


def _reader(logs: str) -> Point:
    """The points of a file that holds them all, given as `FILE#NAME`."""
    return lambda panel, value: read_log(Path(f"{logs}/{panel.name}-{value}"), VirtualSample)[0]


def draw(path: Path, curves: dict[str, dict[tuple[str, int], Curve]]) -> None:
    """One panel for each thing varied; a line for each policy and worker count, with 95% intervals."""
    figure = Figure(figsize=(13, 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 3).ravel()
    for panel, where in zip(PANELS, axes, strict=False):
        for (policy, threads), curve in sorted(curves[panel.name].items()):
            style = {"color": f"C{('calibrated', 'ybw').index(policy)}", "linestyle": "-" if threads > 16 else "--"}
            below, above = zip(*(whiskers(row) for row in curve.rows), strict=True)
            label = f"{policy}, {threads} workers"
            speedups = [row.speedup for row in curve.rows]
            where.errorbar(
                curve.values, speedups, yerr=[below, above], marker="o", markersize=4, capsize=3, label=label, **style
            )
        if panel.log_scale:
            where.set_xscale("log")
            where.minorticks_off()
        measured = next(iter(curves[panel.name].values())).values
        where.set_xticks(measured, [f"{value:,}" for value in measured])
        where.set(xlabel=panel.title, ylabel="speedup, virtual time")
        where.set_ylim(bottom=0)
        where.grid(alpha=0.3)
    axes[0].figure.legend(*axes[4].get_legend_handles_labels(), loc="center", bbox_to_anchor=(0.84, 0.25))
    for where in axes[len(PANELS) :]:
        where.axis("off")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure what is missing, then draw and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--suite")
    source.add_argument("--from-log", metavar="FILE#NAME")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tree-nodes", type=int, default=500_000)
    sizes = ",".join(str(value) for value in PANELS[-1].values)
    parser.add_argument("--tree-sizes", default=sizes, metavar="N,N", help=f"of the last panel (default {sizes})")
    add_hash(parser, JOB_HASH_MB)
    parser.add_argument("--workers", default="64")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    panels = (*PANELS[:-1], replace(PANELS[-1], values=tuple(int(word) for word in options.tree_sizes.split(","))))
    options.out.mkdir(exist_ok=True)
    curves: dict[str, dict[tuple[str, int], Curve]] = {}
    with StatusLine() as status:
        samples_of = _measurer(options, status) if options.from_log is None else _reader(options.from_log)
        for panel in panels:
            lines = curves.setdefault(panel.name, {})
            for value in panel.values:
                for row in summarise(samples_of(panel, value)):
                    curve = lines.setdefault((row.policy, row.threads), Curve())
                    curve.values.append(value)
                    curve.rows.append(row)
    draw(options.out / "sensitivity.png", curves)
    for panel in PANELS:
        for (policy, threads), curve in sorted(curves[panel.name].items()):
            points = "  ".join(f"{v}: {row.speedup:.2f}" for v, row in zip(curve.values, curve.rows, strict=True))
            print(f"{panel.name:12} {policy:11} {threads:4}  {points}")
    (options.out / "sensitivity.json").write_text(
        json.dumps(
            {
                panel.name: [
                    {"value": v, **asdict(row)}
                    for curve in curves[panel.name].values()
                    for v, row in zip(curve.values, curve.rows, strict=True)
                ]
                for panel in PANELS
            }
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
