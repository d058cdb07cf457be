"""`psearch calibrate`: what virtual time charges, measured on this machine."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.output import complain
from psearch.faces.cli.signals import Signals

DESCRIPTION = """\
Measure on this machine what `psearch simulate` charges for each action, in about a minute:
nodes, joins by two real worker processes, what sharing costs, and small operations in loops. Nothing
else should be running. FILE is for `psearch simulate --costs FILE`."""

EXAMPLES = """\
examples:
  psearch calibrate
  psearch calibrate --out costs.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `psearch calibrate`."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the costs here, as JSON")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Measure the costs, print them, and write them with `--out`."""
    from psearch.results import PsearchError
    from psearch.simulation.costs import QUIET_LOAD

    if options.out is not None and not options.out.absolute().parent.is_dir():
        raise PsearchError(f"cannot write {options.out}: its folder does not exist")
    load = os.getloadavg()[0]  # before kernels are compiled, which is load of our own
    if load >= QUIET_LOAD:
        complain(f"other jobs are running (load {load:.1f}): what is measured beside them is too large or too small")
    from psearch.lab.costs.cost_entries import MICRO_COSTS, TIMED_LOCKS

    prepare_kernels(MICRO_COSTS, TIMED_LOCKS)
    from psearch.lab.costs.calibration import calibrate
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        calibration = calibrate(progress=status)
    calibration = replace(calibration, costs=replace(calibration.costs, system_load=round(load, 2)))
    print(calibration.table(), flush=True)
    far = calibration.costs.far_off()
    if far:
        complain(f"{', '.join(far)}: another machine is so, or a busy one; measure again when nothing else runs")
    if options.out is not None:
        calibration.costs.save(options.out)
    return 0
