"""Reports of `psearch.remote.one_position` from those of the workers, and back."""

from __future__ import annotations

import chess

from psearch.processes.search_reports import BOUND_NAMES, centipawns
from psearch.processes.words import to_score
from psearch.remote.one_position.machine_messages import MachineReport
from psearch.results import Info

_BOUNDS = {name: bound for bound, name in BOUND_NAMES.items()}


def report_of(info: Info, machine: int) -> MachineReport:
    """Return what a machine's workers have reported, for the others."""
    return MachineReport(
        machine,
        info.depth,
        centipawns(info.score),
        _BOUNDS[info.bound],
        tuple(info.pv),
        info.nodes,
        info.seldepth,
        info.multipv,
    )


def info_of(report: MachineReport, turn: chess.Color) -> Info:
    """Return an info for whoever asked; turn: who is to move at the root. Time and what only workers know is not
    set."""
    return Info(
        depth=report.depth,
        seldepth=report.seldepth,
        score=to_score(report.score, turn, report.bound),
        bound=BOUND_NAMES[report.bound],
        nodes=report.nodes,
        time_s=0.0,
        pv=list(report.pv),
        multipv=report.line,
    )
