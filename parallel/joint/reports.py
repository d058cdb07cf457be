"""Reports of `psearch.machines` from those of the workers, and back."""

from __future__ import annotations

import chess

from psearch.machines.messages import Report
from psearch.processes.reports import BOUND_NAMES, centipawns, to_score
from psearch.results import Info

_BOUNDS = {name: bound for bound, name in BOUND_NAMES.items()}


def report_of(info: Info, machine: int) -> Report:
    """What a machine's workers have reported, for the others."""
    return Report(
        machine,
        info.depth,
        centipawns(info.score),
        _BOUNDS[info.bound],
        tuple(info.pv),
        info.nodes,
        info.seldepth,
        info.multipv,
    )


def info_of(report: Report, turn: chess.Color) -> Info:
    """For whoever asked; turn: who is to move at the root. Time and what only workers know is not set."""
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
