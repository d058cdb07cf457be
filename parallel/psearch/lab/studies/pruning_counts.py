"""Counters of selective search and of node type predictions in one search, as plain data and as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psearch.arena.arena import Arena
from psearch.scheduler.scheduler_entries import merge_now
from psearch.terminal.streams import glossary, text_table
from psearch_core.constants import TYPE_NAMES
from psearch_core.records import OWN_RULE
from psearch_core.records.pruning_record import MODES, PARAMETERS, Technique
from psearch_core.techniques import TECHNIQUE_NAMES, TECHNIQUES

SearchStats = dict[str, list[dict[str, Any]]]
"""Counters of one search over all workers.

techniques: `name`, `tried`, `pruned`, `share` (their ratio) and `counted` (what is counted, in words), in the order of
`TECHNIQUE_NAMES`; all zeros if switched off; last those of a user's file, under its name.
types: for each `expected` type, of the nodes searched to the end at depth 1 or more: `nodes`, `cut` (failed high),
`first_move_cuts` (failed high on the first move), `right` (CUT nodes that failed high, PV and ALL nodes that did not).
"""
_OWN = Technique("what your file counts as tried", "as pruned")
_LEGEND = (
    ("tried, pruned", "how often each technique was tried, and how often it pruned, reduced or extended"),
    ("expected", "predicted type of a node; nodes: those searched to the end at depth 1 or more"),
    ("right", "correct predictions: CUT nodes that failed high, PV and ALL nodes that did not"),
    ("cut by 1st move", "nodes that failed high on the first move; share: of all nodes that failed high"),
)
"""Legend of the tables: column and meaning."""


def collect(arena: Arena) -> SearchStats:
    """Return the counters of an arena's first search, after its end. (Types are counted since the arena was made.)"""
    merge_now(arena.context)
    counts = arena.worker["pruned"].sum(axis=0).tolist()
    counted = [*zip(TECHNIQUE_NAMES, counts, strict=False)]
    if arena.kernels.file:
        counted.append((Path(arena.kernels.file).name, counts[OWN_RULE]))
    techniques = []
    for name, (tried, pruned) in counted:
        words = TECHNIQUES.get(name, _OWN)
        share = round(pruned / tried, 6) if tried else 0.0
        how = {"share": share, "counted": f"{words.tried}: {words.pruned}"}
        techniques.append({"name": name, "tried": tried, "pruned": pruned, **how})
    prediction = arena.header[0]["prediction"]
    types = []
    for kind, name in enumerate(TYPE_NAMES):
        # axes: table bound, depth, moves done without a cutoff (0: every node, 1: not cut by the first move)
        seen, cut = (prediction[field][kind].sum(axis=(0, 1)).tolist() for field in ("all_seen", "all_cut"))
        right = cut[0] if name == "CUT" else seen[0] - cut[0]
        found = {"expected": name, "nodes": seen[0], "cut": cut[0], "first_move_cuts": cut[0] - cut[1], "right": right}
        types.append(found)
    return {"techniques": techniques, "types": types}


def stats_table(stats: SearchStats) -> str:
    """Return the counters as text, without techniques that were never tried."""

    def share(part: int, whole: int) -> str:
        return f"{part / whole:.1%}" if whole else "-"

    techniques = [
        [one["name"], f"{one['tried']:,}", f"{one['pruned']:,}", share(one["pruned"], one["tried"]), one["counted"]]
        for one in stats["techniques"]
        if one["tried"]
    ]
    types = []
    for one in stats["types"]:
        right = [f"{one['nodes']:,}", f"{one['right']:,}", share(one["right"], one["nodes"])]
        first = one["first_move_cuts"]
        types.append([one["expected"], *right, f"{first:,}", share(first, one["cut"])])
    head = ["expected", "nodes", "right", "share", "cut by 1st move", "share"]
    counted = text_table(["technique", "tried", "pruned", "share", "what is counted"], techniques, left=(0, 4))
    return f"{counted}\n\n{text_table(head, types)}\n\n{glossary(_LEGEND)}"


def parameters_object() -> list[dict[str, Any]]:
    """Return every parameter of selective search with its meaning, its limits, and its value in each mode."""
    return [
        {"name": name, "meaning": meaning, "least": least, "most": most}
        | {"values": {mode: getattr(pruning, name) for mode, pruning in MODES.items()}}
        for name, (meaning, least, most) in PARAMETERS.items()
    ]


def parameters_table() -> str:
    """Return every parameter as text."""
    rows = [[one["name"], *map(str, one["values"].values()), one["meaning"]] for one in parameters_object()]
    return text_table(["parameter", *MODES, "meaning"], rows, left=(0, len(MODES) + 1))
