"""Studies the prediction of node types: how often each rule is right, and what mistakes cost.

One worker searches every position once for each rule. Rules predict types but do not change the serial tree, so all
are measured on the same nodes. A node counts once its first move is about to be searched; nodes decided earlier by
the table, a null move or a draw have no type.

Speculation is measured in virtual time with several workers: every move taken at a shared node has a P(needed), and
the study counts whether its result was used. All rules open the nodes that `kannan` opens (`ONE_TREE`), so that they
are again measured on the same nodes: otherwise a rule that opens doubtful nodes would have harder predictions to make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.defaults import PREDICTING_POLICIES
from psearch.lab.studies import StudyProgress
from psearch.options import SearchOptions, options_with
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels, merge_now
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator
from psearch.terminal.streams import glossary, text_table
from psearch.text.epd_text import SuitePosition
from psearch_core.constants import CUT_NODE, TYPE_NAMES
from psearch_core.records import BINS, CERTAIN, DEPTHS
from psearch_core.toolchain.groups import Group
from psearch_core.toolchain.kernel_sets import KernelSet

WORKERS = 8
"""Workers of the searches in virtual time."""
RULES = tuple(policy for policy in PREDICTING_POLICIES if policy != "calibrated")
"""Rules to measure. `calibrated` is left out because it predicts the same types as `kannan`."""
ONE_TREE = Group(
    "one_tree",
    *VIRTUAL.recipe.modules,
    replaced={
        **VIRTUAL.recipe.replaced,
        "psearch.scheduler.policy.may_open": "psearch.lab.studies.study_kernels.may_open_as_kannan",
        "psearch.scheduler.policy.open_priority": "psearch.lab.studies.study_kernels.priority_as_kannan",
    },
)
"""Kernels of virtual time in which every policy opens the nodes that `kannan` opens."""


@dataclass(frozen=True)
class ReliabilityBin:
    """Predictions of similar probability, and how many came true."""

    count: int
    predicted: float
    observed: float


@dataclass(frozen=True)
class RuleReport:
    """Results of one rule over a suite."""

    rule: str
    tree_nodes: float
    """Nodes of one worker, mean over the positions. All counts of nodes and moves are the same for every rule."""
    shared_nodes: float
    """Nodes of all workers in virtual time, mean over the positions."""
    nodes: dict[str, int]
    """Measured nodes by expected type."""
    right: dict[str, float]
    """Share of correct predictions by type: CUT nodes that failed high, ALL and PV nodes that did not."""
    right_by_depth: dict[str, list[float | None]]
    """Share of correct predictions by type and remaining depth; None without nodes."""
    first_move_cut: float
    """Share of first-move cutoffs among the expected CUT nodes that failed high."""
    brier_class: float
    """Mean squared error at entry if the type is taken as certain."""
    brier: float
    """Mean squared error at entry of the calibrated probability."""
    brier_later: float
    """Mean squared error of the probabilities after one or more moves."""
    reliability: list[ReliabilityBin]
    """Reliability of P(no cutoff) at entry."""
    reliability_later: list[ReliabilityBin]
    needed: list[ReliabilityBin]
    """Reliability of P(needed) of moves taken at shared nodes, in virtual time."""
    brier_needed: float
    used: float
    """Share of these moves whose result was used; the same for every rule."""
    wasted: dict[str, float]
    """Share of all nodes thrown away by cutoffs at nodes of each expected type, in virtual time."""


def bins_of(seen: np.ndarray, hits: np.ndarray, predicted: np.ndarray | None = None) -> list[ReliabilityBin]:
    """Return a reliability curve without empty bins. seen, hits: predictions in each bin, and those that came true;
    predicted: their sum in 1/65536, or None to take the middle of the bin."""
    found = []
    for slot in range(BINS):
        if seen[slot]:
            middle = (slot + 0.5) / BINS if predicted is None else float(predicted[slot]) / CERTAIN / float(seen[slot])
            found.append(ReliabilityBin(int(seen[slot]), middle, float(hits[slot]) / float(seen[slot])))
    return found


_Sums = defaultdict[str, Any]
"""Sums over all positions for one rule: `nodes`, and counters of the arena by name."""


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else 0.0


def _report(rule: str, positions: int, serial: _Sums, shared: _Sums) -> RuleReport:
    seen = serial["all_seen"][:, :, :, 0].sum(axis=1)  # by type and depth, at entry
    cut = serial["all_cut"][:, :, :, 0].sum(axis=1)
    right = np.where(np.arange(3)[:, None] == CUT_NODE, cut, seen - cut)
    wrong = (seen - right).sum()
    later = serial["all_cut"][CUT_NODE, :, :, 1].sum()
    cuts = cut[CUT_NODE].sum()
    needed = bins_of(shared["needed_seen"], shared["needed_used"])
    # every prediction in a bin counts as the mean of the bin
    errors = [b.count * (b.observed * (1 - b.predicted) ** 2 + (1 - b.observed) * b.predicted**2) for b in needed]
    bin_error, bin_seen = serial["bin_error"].sum(axis=1), serial["bin_seen"].sum(axis=1)
    return RuleReport(
        rule=rule,
        tree_nodes=serial["nodes"] / positions,
        shared_nodes=shared["nodes"] / positions,
        nodes={name: int(seen[t].sum()) for t, name in enumerate(TYPE_NAMES)},
        right={name: _ratio(right[t].sum(), seen[t].sum()) for t, name in enumerate(TYPE_NAMES)},
        right_by_depth={
            name: [_ratio(right[t, d], seen[t, d]) if seen[t, d] else None for d in range(DEPTHS)]
            for t, name in enumerate(TYPE_NAMES)
        },
        first_move_cut=_ratio(cuts - later, cuts),
        brier_class=_ratio(wrong, seen.sum()),
        brier=_ratio(bin_error[0] / CERTAIN, bin_seen[0]),
        brier_later=_ratio(bin_error[1] / CERTAIN, bin_seen[1]),
        reliability=bins_of(serial["bin_seen"][0], serial["bin_no_cut"][0], serial["bin_p"][0]),
        reliability_later=bins_of(serial["bin_seen"][1], serial["bin_no_cut"][1], serial["bin_p"][1]),
        needed=needed,
        brier_needed=sum(errors) / max(sum(b.count for b in needed), 1),
        used=_ratio(shared["needed_used"].sum(), shared["needed_seen"].sum()),
        wasted={name: _ratio(shared["wasted"][t], shared["nodes"]) for t, name in enumerate(TYPE_NAMES)},
    )


def study(
    suite: Sequence[SuitePosition],
    depth: int,
    rules: Sequence[str] = RULES,
    workers: int = WORKERS,
    hash_mb: int = 64,
    options: SearchOptions | None = None,
    progress: StudyProgress | None = None,
    kernels: Mapping[str, KernelSet] | None = None,
) -> Iterator[RuleReport]:
    """Measure every rule on every position, with one worker for the types and `workers` virtual ones for P(needed).

    Yields the report of each rule when it is finished. options: options of all searches, except for the policy;
    kernels: kernels of rules that need their own, by name.
    """
    arena = Arena(1, hash_mb)
    simulator = Simulator(workers, hash_mb, Costs(), driver=ONE_TREE)

    def add(sums: _Sums, record: np.void, *names: str) -> None:
        for name in names:
            sums[name] = sums[name] + record[name].astype(np.int64)

    try:
        for round_number, rule in enumerate(rules):
            serial, shared = _Sums(int), _Sums(int)
            how = replace(options_with(options or SearchOptions(), rule, kernels or {}), record=True)
            load_kernels(how.kernels.group(SEARCH))
            for number, position in enumerate(suite, start=1):
                arena.forget()
                arena.use_kernels(how.kernels, SEARCH)
                write_search(arena, position.board, Limits(depth=depth), how)
                work_alone(arena)
                merge_now(arena.context)
                counted = ("all_seen", "all_cut", "bin_seen", "bin_no_cut", "bin_p", "bin_error")
                add(serial, arena.header[0]["prediction"], *counted)
                serial["nodes"] += int(arena.worker[0]["nodes"])
                shared["nodes"] += simulator.search(position.name, position.board, depth, how).nodes
                for worker in simulator.arena.worker:
                    add(shared, worker["outcomes"], "needed_seen", "needed_used", "wasted")
                if progress:
                    done = round_number * len(suite) + number
                    progress(f"{rule}: {number}/{len(suite)}", done, len(rules) * len(suite))
            yield _report(rule, len(suite), serial, shared)
    finally:
        arena.close()
        simulator.close()


def table(reports: Sequence[RuleReport]) -> str:
    """Return the reports as text."""
    head = ["rule", *(f"{name} right" for name in TYPE_NAMES), "1st move", "Brier class", "calibrated", "later"]
    rows = []
    for report in reports:
        briers = (report.brier_class, report.brier, report.brier_later, report.brier_needed)
        right = [f"{report.right[name]:.1%}" for name in TYPE_NAMES]
        wasted = [f"{report.wasted[name]:.2%}" for name in TYPE_NAMES]
        shown = [f"{report.first_move_cut:.1%}", *(f"{brier:.4f}" for brier in briers), f"{report.used:.1%}"]
        rows.append([report.rule, *right, *shown, *wasted])
    return text_table([*head, "needed", "used", "wasted PV", "CUT", "ALL"], rows)


def legend() -> str:
    """Return the legend of the table."""
    types = ", ".join(TYPE_NAMES)
    serial = [
        (f"{types} right", "share of correct predictions: CUT nodes that failed high, others that did not"),
        ("1st move", "share of first-move cutoffs among the CUT nodes that failed high"),
        ("Brier class", "mean squared error if the type is taken as certain (0 is best, 0.25 a coin toss)"),
        ("calibrated", "mean squared error of P(no cutoff) at entry to a node, learnt while searching"),
        ("later", "mean squared error of P(no cutoff) after one or more moves"),
    ]
    shared = [
        ("needed", "mean squared error of P(needed) of the moves taken at shared nodes"),
        ("used", "share of these moves whose result was used"),
        (f"wasted {types}", "share of all nodes thrown away by cutoffs at nodes of that type"),
    ]
    return (
        "All rules are measured on the same nodes; calibrated predicts the types of kannan. With one worker:\n"
        f"{glossary(serial)}\n"
        f"With {WORKERS} workers in virtual time, which open the nodes that kannan opens under every rule:\n"
        f"{glossary(shared)}"
    )
