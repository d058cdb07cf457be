"""`psearch speedup`: measure the time to depth with real worker processes."""

from __future__ import annotations

import argparse
import statistics
from contextlib import closing

from psearch.arena.control_groups import usable_cores
from psearch.faces.cli import arguments, study
from psearch.faces.cli.arguments import seconds, worker_counts
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.output import complain, say
from psearch.faces.cli.signals import Signals
from psearch.settings import DEPTH

DEFAULT_SECONDS = 5.0
DEFAULT_REPEATS = 3
_CEILING_ROUNDS = 7
_CEILING_S = (0.2, 2.0)
"""Shortest and longest search that measures the hardware, in seconds."""

DESCRIPTION = """\
Measure the speedup in time to depth of several worker processes over one. A separate
search finds the depth that takes one worker about S seconds (or give --depth D). Each
search starts with an empty table and its own small random history values, and the worker
counts alternate.

The table shows geometric means over the positions with 95% bootstrap intervals, and the
ceiling: the throughput of independent searches run side by side on this machine. --log
keeps every search; --from-log prints the table of a log again. One of --suite, --game and
--from-log is required."""

EXAMPLES = """\
examples:
  psearch speedup --suite bratko_kopec_24.epd
  psearch speedup --threads 1,2,4 --policy calibrated,ybw --seconds 2 --suite suite.epd --plot speedup.png
  psearch speedup --suite suite.epd --log speedup.jsonl
  psearch speedup --game my_game.py "" 44 4455
  psearch speedup --from-log speedup.jsonl --plot speedup.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "worker processes (default 1,2)"
    parser.add_argument("--threads", type=worker_counts, default=[1, 2], metavar="1,2", help=words)
    study.add_options(parser, DEFAULT_REPEATS, "searches of each position with each worker count")
    length = parser.add_mutually_exclusive_group()
    words = f"approximate time of one worker in seconds (default {DEFAULT_SECONDS:g})"
    length.add_argument("--seconds", type=seconds(0.01, 3600), default=DEFAULT_SECONDS, metavar="S", help=words)
    DEPTH.add_to(length, "the same depth for every position, in plies")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Measure or read a log, then print the table."""
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
    """Run all searches, each logged when it is finished, then measure the ceilings with searches of similar length."""
    chosen = study.policies(options.policy)
    suite, own = study.positions_and_kernels(options, chosen)
    from psearch.arena.setup import board_text
    from psearch.lab.studies.speedup_study import hardware_ceiling, measure
    from psearch.options import options_with
    from psearch.results import PsearchError
    from psearch.scheduler.scheduler_entries import SEARCH
    from psearch.terminal.status import StatusLine

    how = study.options_of(options)
    serial, *each = (options_with(how, policy, own) for policy in ("serial", *chosen))
    counts = {1, *options.threads}
    groups = {(1, serial.kernels), *((count, one.kernels) for count in counts for one in each)}
    arguments.check_hash(options.hash, max(len(groups), *counts))
    ceilings: dict[int, float] = {}
    found = study.StudyFound(options.driver, ceilings=ceilings)
    with study.recording("speedup", options, found, suite, own) as keep:
        prepare_kernels(*(kernels.group(SEARCH) for kernels in own.values()))
        with StatusLine() as status:
            samples = measure(
                suite,
                options.threads,
                chosen,
                options.seconds,
                options.repeat,
                options.hash,
                depth=options.depth,
                options=how,
                progress=status,
                seed=options.seed,
                kernels=own,
            )
            with closing(samples):
                for sample in samples:
                    keep(sample)
        if not found.samples:
            raise PsearchError(f"no position takes one worker about {options.seconds:g} s at any depth")
        alone = statistics.median_high(sample.seconds for sample in found.samples if sample.threads == 1)
        length = min(max(alone, _CEILING_S[0]), _CEILING_S[1])
        searched = {sample.fen for sample in found.samples}
        positions = [position for position in suite if board_text(position.board) in searched]
        with StatusLine() as status:
            for count in sorted(counts - {1}):
                try:
                    ceiling = hardware_ceiling(positions, count, options.hash, length, _CEILING_ROUNDS, serial, status)
                except PsearchError as error:
                    status.make_room()
                    complain(f"no ceiling of {count}: {error}")
                    continue
                if ceiling is not None:
                    ceilings[count] = ceiling
    return found
