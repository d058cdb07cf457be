"""`psearch bench`: search fixed positions; the number of nodes is a fingerprint of the search."""

from __future__ import annotations

import argparse

from psearch.faces.cli.arguments import add_settings, search_options
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.signals import Signals

DESCRIPTION = """\
Search a fixed set of positions on one worker, each with an empty table. The last line is
`N nodes M nps`. N is the same on every machine and changes only when the search changes;
the line before it says whether N is the known number. With --pruning or --with N shows the
effect of a technique that is switched off, or of your own rule."""

EXAMPLES = """\
examples:
  psearch bench
  psearch bench --pruning modern,lmr=0
  psearch bench --with my_rule.py"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, "pruning", "evaluation", "net", "with_")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Run the benchmark and print its result."""
    from psearch.bench import BENCH_DEPTH, BENCH_NODES, BENCH_POSITIONS, run_bench
    from psearch.lab.studies.tree_sizes import scale_line
    from psearch.scheduler.scheduler_entries import SEARCH
    from psearch.terminal.status import StatusLine
    from psearch_core import DEFAULT_PRUNING
    from psearch_core.records.pruning_record import MODES

    how = search_options(options, policy="serial")
    prepare_kernels(how.kernels.group(SEARCH))
    with StatusLine(only_terminal=True) as status:
        nodes, seconds = run_bench(status, how)
    print(
        f"{scale_line(len(BENCH_POSITIONS), nodes / len(BENCH_POSITIONS))}, depth {BENCH_DEPTH}; nps: nodes per second"
    )
    if how.rules == MODES[DEFAULT_PRUNING] and not options.net and not options.with_:
        is_known = nodes == BENCH_NODES
        print("the known number" if is_known else f"not the known number, {BENCH_NODES}: the search has changed")
    if how.rules.network:
        print(f"network {how.read_network().name}")
    print(f"{nodes} nodes {round(nodes / seconds)} nps")
    return 0
