"""`psearch speedup`: time to depth with real worker processes.

Ctrl-C ends the study with a table of what is finished; a log, if one was asked for, holds those searches.
"""

from __future__ import annotations

import argparse
import statistics

from psearch.arena.control_groups import usable_cores
from psearch.faces.cli import study
from psearch.faces.cli.arguments import seconds, worker_counts
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.output import say
from psearch.faces.cli.signals import Signals
from psearch.settings import DEPTH

DEFAULT_SECONDS = 5.0
DEFAULT_REPEATS = 3
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
Either --suite, --game or --from-log is needed."""

EXAMPLES = """\
examples:
  psearch speedup --suite bratko_kopec_24.epd
  psearch speedup --threads 1,2,4 --policy calibrated,ybw --seconds 2 --suite suite.epd --plot speedup.png
  psearch speedup --suite suite.epd --log speedup.jsonl
  psearch speedup --game my_game.py "" 44 4455
  psearch speedup --from-log speedup.jsonl --plot speedup.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `psearch speedup`."""
    parser.add_argument(
        "--threads", type=worker_counts, default=[1, 2], metavar="1,2", help="worker processes (default 1,2)"
    )
    study.add_options(parser, DEFAULT_REPEATS, "searches with each count")
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--seconds",
        type=seconds(0.01, 3600),
        default=DEFAULT_SECONDS,
        metavar="S",
        help=f"what one worker takes, about (default {DEFAULT_SECONDS:g})",
    )
    DEPTH.add_to(length, "the same depth for all")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Measure, or read a log, and print the table."""
    study.check("speedup", options)
    most = study.show(options, _measure(options) if options.from_log is None else _read(options))
    if most > usable_cores() and options.from_log is None:
        say(f"psearch: {most} workers share {usable_cores()} cores; see psearch simulate")
    return signals.exit_status


def _read(options: argparse.Namespace) -> study.StudyFound:
    from psearch.lab.studies.speedup_study import Sample
    from psearch.results import PsearchError

    found, facts = study.read_found(options.from_log, Sample)
    try:
        found.ceilings = {int(count): float(value) for count, value in facts.get("ceilings", {}).items()}
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise PsearchError(f"{options.from_log}: its ceilings are not numbers") from None
    return found


def _measure(options: argparse.Namespace) -> study.StudyFound:
    """Search everything, each search in the log when it is finished, if there is one; then measure the ceilings, by
    searches about as long."""
    chosen = study.policies(options.policy)
    suite, own = study.positions_and_kernels(options, chosen)
    from psearch.lab.studies.speedup_study import hardware_ceiling, measure
    from psearch.options import options_with
    from psearch.results import PsearchError
    from psearch.scheduler.scheduler_entries import SEARCH
    from psearch.terminal.status import StatusLine

    how = study.options_of(options)
    ceilings: dict[int, float] = {}
    found = study.StudyFound(options.driver, ceilings=ceilings)
    with study.recording("speedup", options, found, suite, own) as keep:
        prepare_kernels(*(kernels.group(SEARCH) for kernels in own.values()))
        with StatusLine() as status:
            measure(
                suite,
                options.threads,
                chosen,
                options.seconds,
                options.repeat,
                options.hash,
                depth=options.depth,
                options=how,
                progress=status,
                on_sample=keep,
                seed=options.seed,
                kernels=own,
            )
        if not found.samples:
            raise PsearchError(f"no position takes one worker about {options.seconds:g} s at any depth")
        alone = statistics.median_high(sample.seconds for sample in found.samples if sample.threads == 1)
        length = min(max(alone, _CEILING_S[0]), _CEILING_S[1])
        serial = options_with(how, "serial", own)
        with StatusLine() as status:
            for count in options.threads:
                if count > 1:
                    ceilings[count] = hardware_ceiling(
                        suite, count, options.hash, length, _CEILING_ROUNDS, serial, status
                    )
    return found
