"""`psearch speedup`: time to depth with real worker processes.

Ctrl-C ends the study with a table of what is finished; a log, if one was asked for, holds those searches.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.arena.control_groups import usable_cores
from psearch.cli.kernels import prepare_kernels
from psearch.cli.numbers import seconds, whole_number, worker_counts
from psearch.cli.output import print_json, say
from psearch.cli.signals import Signals
from psearch.cli.study import (
    about_now,
    add_seed,
    add_study_options,
    check_study,
    left_out,
    log_text,
    policies,
    print_table,
    pruning_of,
    raw_log,
    read_positions,
    report_log,
    warn,
    write_html,
)
from psearch.defaults import MAX_DEPTH

if TYPE_CHECKING:
    from psearch.core.pruning.modes import Pruning
    from psearch.notation.epd import SuitePosition
    from psearch.studies.raw_log import RawLog
    from psearch.studies.speedup import Row, Sample

DEFAULT_SECONDS = 5.0
DEFAULT_REPEATS = 3
_MAX_SECONDS = 3600.0
_MAX_REPEATS = 1000
_CEILING_ROUNDS = 7
_CEILING_S = (0.2, 2.0)
"""Least and most seconds of a search that measures the hardware."""

DESCRIPTION = """\
Time to depth of real worker processes against one worker. Each position is searched to
the depth that takes one worker about S seconds in a search apart (or to depth D), from an
empty table and a history of small random numbers, another one for each search, with the
worker counts alternating. The table gives geometric means over the positions with a
95% bootstrap interval, and the ceiling: what independent searches side by side reach on
this machine. --log keeps every search; --from-log makes the table of a log again.
Either --suite or --from-log is needed."""

EXAMPLES = """\
examples:
  psearch speedup --suite bratko_kopec_24.epd
  psearch speedup --threads 1,2,4 --policy calibrated,ybw --seconds 2 --suite suite.epd --plot speedup.png
  psearch speedup --suite suite.epd --log speedup.jsonl
  psearch speedup --from-log speedup.jsonl --html speedup.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of `psearch speedup`."""
    parser.add_argument(
        "--threads", type=worker_counts, default=[1, 2], metavar="1,2", help="worker processes (default 1,2)"
    )
    add_study_options(parser)
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--seconds",
        type=seconds(0.01, _MAX_SECONDS),
        default=DEFAULT_SECONDS,
        metavar="S",
        help=f"what one worker takes, about (default {DEFAULT_SECONDS:g})",
    )
    length.add_argument("--depth", type=whole_number(1, MAX_DEPTH), metavar="D", help="the same depth for all")
    parser.add_argument(
        "--repeat",
        type=whole_number(1, _MAX_REPEATS),
        default=DEFAULT_REPEATS,
        metavar="R",
        help=f"searches with each count (default {DEFAULT_REPEATS})",
    )
    add_seed(parser)


@dataclass
class _Measured:
    """What a study has found so far."""

    samples: list[Sample] = field(default_factory=list)
    ceilings: dict[int, float] = field(default_factory=dict)
    """by worker count"""
    interrupted: bool = False
    rule: str = ""
    """by which the depths were chosen"""
    about: dict[str, Any] = field(default_factory=dict)
    """as the first line of a log has it"""


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Measure, or read a log, and print the table."""
    check_study("speedup", options, ["suite"])
    found = _read(options.from_log) if options.from_log is not None else _measure(options)
    from psearch.studies.speedup import most_workers, summarise

    rows = summarise(found.samples)
    _print(options, rows, found)
    if options.plot is not None and rows:
        from psearch.studies.plots import plot_speedup
        from psearch.studies.tree_sizes import scale, searched, warnings

        size = searched(found.samples)
        title = f"Time to depth\n{scale(*size)}"
        notes = warnings(*size, most_workers(rows))
        plot_speedup(options.plot, found.samples, rows, found.ceilings, title, notes)
    if options.html is not None:
        from psearch.studies.html_report import Report

        title = "psearch: time to depth with real worker processes"
        write_html(
            options,
            Report(title, found.samples, rows, found.rule, found.about, found.ceilings, interrupted=found.interrupted),
        )
    return signals.exit_status


def _read(path: Path) -> _Measured:
    from psearch.results import PsearchError
    from psearch.studies.depths import depth_rule
    from psearch.studies.raw_log import read_log
    from psearch.studies.speedup import Sample

    samples, facts = read_log(path, Sample)
    try:
        ceilings = {int(count): float(value) for count, value in facts.get("ceilings", {}).items()}
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise PsearchError(f"{path}: its ceilings are not numbers") from None
    about = facts.get("about")
    return _Measured(samples, ceilings, rule=depth_rule(facts), about=about if isinstance(about, dict) else {})


def _measure(options: argparse.Namespace) -> _Measured:
    """Search everything, each search in the log when it is finished, if there is one."""
    suite = read_positions(options)
    chosen = policies(options.policy)
    from psearch.options import pruning_named
    from psearch.studies.depths import depth_rule, rule_name

    pruning = pruning_named(options.pruning)
    depths = rule_name(options.depth)
    found = _Measured(rule=depth_rule({"about": {"depths": depths}}), about=about_now(options))
    with raw_log("speedup", options, depths=depths) as log:
        prepare_kernels()
        try:
            _time_searches(options, suite, chosen, pruning, found, log)
            _measure_ceilings(options, suite, pruning, found)
        except KeyboardInterrupt:
            found.interrupted = True
            return found
        finally:
            if log is not None:
                log.note(ceilings=found.ceilings)
        names = left_out(suite, found.samples)
        found.rule = depth_rule({"about": {"depths": depths}, "left_out": names})
        if names and log is not None:
            log.note(left_out=names)
    return found


def _time_searches(
    options: argparse.Namespace,
    suite: Sequence[SuitePosition],
    names: Sequence[str],
    pruning: Pruning,
    found: _Measured,
    log: RawLog | None,
) -> None:
    """Raises PsearchError when every position is too quick."""
    from psearch.results import PsearchError
    from psearch.studies.speedup import measure
    from psearch.terminal.status import StatusLine

    def keep(sample: Sample) -> None:
        found.samples.append(sample)
        if log is not None:
            log.add(sample)

    with StatusLine() as status:
        measure(
            suite,
            options.threads,
            names,
            options.seconds,
            options.repeat,
            options.hash,
            depth=options.depth,
            pruning=pruning,
            progress=status,
            on_sample=keep,
            seed=options.seed,
        )
    if not found.samples:
        raise PsearchError(f"no position takes one worker about {options.seconds:g} s at any depth")


def _measure_ceilings(
    options: argparse.Namespace, suite: Sequence[SuitePosition], pruning: Pruning, found: _Measured
) -> None:
    """By searches about as long as those that were timed."""
    from psearch.studies.speedup import hardware_ceiling
    from psearch.terminal.status import StatusLine

    alone = statistics.median_high(sample.seconds for sample in found.samples if sample.threads == 1)
    seconds = min(max(alone, _CEILING_S[0]), _CEILING_S[1])
    with StatusLine() as status:
        for count in options.threads:
            if count > 1:
                found.ceilings[count] = hardware_ceiling(
                    suite, count, options.hash, seconds, _CEILING_ROUNDS, pruning, status
                )


def _print(options: argparse.Namespace, rows: Sequence[Row], found: _Measured) -> None:
    from psearch.studies.pairs import pair_lines, pair_objects
    from psearch.studies.speedup import legend, most_workers, table
    from psearch.studies.tree_sizes import scale_line, searched

    positions, nodes = searched(found.samples)
    pruning = pruning_of(found.samples)
    if options.json:
        print_json(
            {
                "rows": [asdict(row) for row in rows],
                "positions": positions,
                "tree_nodes": nodes,
                "pruning": pruning,
                "depths": found.rule,
                "ceilings": found.ceilings,
                "pairs": pair_objects(found.samples),
                "log": log_text(options),
                "interrupted": found.interrupted,
            }
        )
    else:
        notes = [pair_lines(found.samples), legend(rows, ceilings=True)] if rows else []
        print_table(table(rows, found.ceilings), scale_line(positions, nodes), pruning, *notes, depths=found.rule)
        report_log(options, found.interrupted)
    most = most_workers(rows)
    if most > usable_cores() and options.from_log is None:
        say(f"psearch: {most} workers share {usable_cores()} cores; see psearch simulate")
    if rows:
        warn(positions, nodes, most)
