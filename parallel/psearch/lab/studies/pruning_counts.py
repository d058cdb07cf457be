"""What selective search did in a search, and how often the expected type of a node was right: counters as plain data,
for JSON, and as tables."""

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
"""Everything that is counted about one search.

techniques: `name`, `tried`, `pruned`, `share` of the two, and in words what is `counted`, over all workers, in the
order of `TECHNIQUE_NAMES`; those that were switched off have zeros; last what a user's file counts, under its name.
types: of the nodes `expected` to be of a type that were searched to their end at depth 1 or more: `nodes`, `cut`
(failed high), `first_move_cuts` (did so with their first move), `right` (turned out so: CUT failed high, PV and ALL did
not).
"""
_OWN = Technique("what your file counts as tried", "as pruned")
_LEGEND = (
    ("tried, pruned", "how often each technique was asked, and how often it left out, reduced or extended"),
    ("expected", "the type a node was expected to have; nodes: those searched to their end at depth 1 or more"),
    ("right", "nodes that turned out so: CUT failed high, PV and ALL did not"),
    ("cut by 1st move", "nodes that failed high on their first move; share: of those that failed high"),
)
"""Columns, and what they are."""


def collect(arena: Arena) -> SearchStats:
    """Return the counters of the first search in an arena, which is over: types are counted from the arena's
    beginning."""
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
        # by table bound, depth, and moves done without a cutoff: 0 moves is every node, 1 those not cut by the first
        seen, cut = (prediction[field][kind].sum(axis=(0, 1)).tolist() for field in ("all_seen", "all_cut"))
        right = cut[0] if name == "CUT" else seen[0] - cut[0]
        found = {"expected": name, "nodes": seen[0], "cut": cut[0], "first_move_cuts": cut[0] - cut[1], "right": right}
        types.append(found)
    return {"techniques": techniques, "types": types}


def stats_table(stats: SearchStats) -> str:
    """Return the counters as text, without the techniques that never came up."""

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
    """Return every parameter of selective search: meaning, least and greatest value, and the value in each mode."""
    return [
        {"name": name, "meaning": meaning, "least": least, "most": most}
        | {"values": {mode: getattr(pruning, name) for mode, pruning in MODES.items()}}
        for name, (meaning, least, most) in PARAMETERS.items()
    ]


def parameters_table() -> str:
    """Return every parameter as text."""
    rows = [[one["name"], *map(str, one["values"].values()), one["meaning"]] for one in parameters_object()]
    return text_table(["parameter", *MODES, "meaning"], rows, left=(0, len(MODES) + 1))
