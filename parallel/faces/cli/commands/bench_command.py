"""`psearch bench`: the fingerprint of the search."""

from __future__ import annotations

import argparse

from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.signals import Signals
from psearch.searcher.declared import PRUNING

DESCRIPTION = """\
Search a fixed set of positions on one worker, from an empty table each. The last line is
`N nodes M nps`; N is the same every time and everywhere, and changes only when the search
does; the line before it says whether it is the known one. With --pruning it is the number
of another search: that of a technique switched on or off."""

EXAMPLES = """\
examples:
  psearch bench
  psearch bench --pruning modern,lmr=0"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `psearch bench`."""
    PRUNING.add_to(parser)


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Search and print the line."""
    from psearch.bench import BENCH_DEPTH, BENCH_NODES, BENCH_POSITIONS, run_bench
    from psearch.core.chess.pruning.modes import DEFAULT_MODE, MODES
    from psearch.lab.studies.tree_sizes import scale_line
    from psearch.options import pruning_named
    from psearch.terminal.status import StatusLine

    pruning = pruning_named(options.pruning)
    prepare_kernels()
    with StatusLine(only_terminal=True) as status:
        nodes, seconds = run_bench(status, pruning)
    print(
        f"{scale_line(len(BENCH_POSITIONS), nodes / len(BENCH_POSITIONS))}, depth {BENCH_DEPTH}; nps: nodes per second"
    )
    if pruning == MODES[DEFAULT_MODE]:
        is_known = nodes == BENCH_NODES
        print("the known number" if is_known else f"not the known number, {BENCH_NODES}: this is another search")
    print(f"{nodes} nodes {round(nodes / seconds)} nps")
    return 0
