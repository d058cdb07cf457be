"""Speedups of several studies side by side, and paired where they searched the same positions.

    python bench/study/compare_logs.py plain=plain.jsonl modern=modern.jsonl [--plot speedup.png]
    python bench/study/compare_logs.py ecm.jsonl ecm-ybw.jsonl
    python bench/study/compare_logs.py real=speedup.jsonl virtual=simulate.jsonl

Each LABEL=LOG is the raw log of a `psearch simulate` or `psearch speedup`, FILE or FILE#RUN; without a label it is
called by its run or its file. The table has a row for each log, policy and worker count. Below it stands each log's
speedup over the first one's at the same count, position by position (the two may have searched it to different depths),
with 95% bootstrap intervals. So two policies are compared on many trees, one policy on trees that were pruned
differently, or virtual time with real time. Last comes by which rule each log's depths were chosen.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from psearch.files.raw_log import read_log, split_run
from psearch.lab.studies.comparisons import Row, paired, speedups, summarise
from psearch.lab.studies.plots import check_plot, plot_simulation
from psearch.lab.studies.speedup_study import Sample
from psearch.lab.studies.tree_sizes import depth_rule
from psearch.results import PsearchError
from psearch.simulation.simulator import VirtualSample
from psearch.terminal.streams import text_table

_COLUMNS = ("log", "policy", "workers", "positions", "speedup", "95% interval", "nps", "nodes", "idle", "aborted")


def log_name(path: Path) -> str:
    """Return what a log is called: its run, or its file without folder and endings."""
    file, run = split_run(path)
    return run or Path(file.name.removesuffix(".xz")).stem


def table(rows: dict[str, list[Row]]) -> str:
    cells = [
        f"{label}|{row.policy}|{row.threads}|{row.positions}|{row.speedup:.2f}|{row.interval}|{row.nps_scaling:.2f}|"
        f"{row.node_overhead:.2f}|{row.idle_share:.1%}|{row.aborted_share:.2%}".split("|")
        for label, of_log in rows.items()
        for row in of_log
    ]
    return text_table(_COLUMNS, cells, left=2)


def comparisons(logs: dict[str, list[Any]]) -> list[str]:
    """Each log against the first, at the counts that both have; also policies within the first log."""
    of_logs = {label: speedups(samples) for label, samples in logs.items()}
    first_label, *_ = of_logs
    lines = []
    for (count, policy), base in sorted(of_logs[first_label].items()):
        for label, of_log in of_logs.items():
            for (other_count, other_policy), other in sorted(of_log.items()):
                if other_count != count or (label, other_policy) == (first_label, policy):
                    continue
                if label == first_label and other_policy < policy:
                    continue  # said the other way round
                if pair := paired(base, other):
                    names = f"{label} ({other_policy}) over {first_label} ({policy})"
                    lines.append(f"{count} workers, {names}: {pair}")
    return lines


def named(text: str) -> tuple[str, Path]:
    """`LABEL=LOG` or `LOG`."""
    label, equals, path = text.partition("=")
    return (label, Path(path)) if equals and "/" not in label else (log_name(Path(text)), Path(text))


def _read(path: Path) -> tuple[list[Any], dict[str, Any]]:
    """Return the searches of a log, of virtual time or of real time, and its facts. Raises PsearchError."""
    try:
        return read_log(path, VirtualSample)
    except PsearchError:
        return read_log(path, Sample)


def run(options: argparse.Namespace) -> str:
    if options.plot:
        check_plot(options.plot)
    logs: dict[str, list[Any]] = {}
    rules: dict[str, str] = {}
    for label, path in map(named, options.logs):
        if label in logs:
            raise PsearchError(f"two logs are called {label}: name them LABEL=LOG")
        logs[label], facts = _read(path)
        rules[label] = depth_rule(facts)
    rows = {label: summarise(samples) for label, samples in logs.items()}
    if options.plot:
        several = len({row.policy for of_log in rows.values() for row in of_log}) > 1
        drawn = [
            replace(row, policy=f"{label}, {row.policy}" if several else label)
            for label, of_log in rows.items()
            for row in of_log
        ]
        plot_simulation(options.plot, drawn, options.title)
    chosen = [
        f"{', '.join(label for label in rules if rules[label] == rule)}: {rule}"
        for rule in dict.fromkeys(rules.values())
    ]
    return "\n\n".join(filter(None, [table(rows), "\n".join(comparisons(logs)), "\n".join(chosen)]))


def main() -> None:
    """Print the table and the comparisons, and draw if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", metavar="[LABEL=]LOG")
    parser.add_argument("--plot", type=Path, metavar="PNG")
    parser.add_argument("--title", default="speedup in virtual time")
    try:
        print(run(parser.parse_args()))
    except PsearchError as error:
        raise SystemExit(f"compare_logs: {error}") from None


if __name__ == "__main__":
    main()
