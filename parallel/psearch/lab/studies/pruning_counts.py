"""What selective search did in a search, and how often the expected type of a node was right: counters as tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from psearch.arena.arena import Arena
from psearch.scheduler.scheduler_entries import merge_now
from psearch.terminal.table import glossary, text_table
from psearch_core.constants import TYPE_NAMES
from psearch_core.records import OWN_RULE
from psearch_core.records.pruning_record import MODES, PARAMETERS, Technique
from psearch_core.techniques import TECHNIQUE_NAMES, TECHNIQUES

_OWN = Technique("what your file counts as tried", "as pruned")


@dataclass(frozen=True)
class TechniqueCount:
    """One technique, over all workers. What is counted: `psearch_core.techniques`."""

    name: str
    tried: int
    pruned: int

    @property
    def share(self) -> float:
        """Pruned of tried, 0 to 1."""
        return self.pruned / self.tried if self.tried else 0.0


@dataclass(frozen=True)
class TypeOutcome:
    """Nodes expected to be of one type that were searched to their end at depth 1 or more, and what became of them."""

    expected: str
    nodes: int
    cut: int
    """failed high"""
    first_move_cuts: int
    """did so with their first move"""

    @property
    def right(self) -> int:
        """Nodes that turned out as expected: CUT nodes fail high, PV and ALL nodes do not."""
        return self.cut if self.expected == "CUT" else self.nodes - self.cut


@dataclass(frozen=True)
class SearchStats:
    """Everything that is counted about one search."""

    techniques: list[TechniqueCount]
    """in the order of `TECHNIQUE_NAMES`; those that were switched off have zeros; last what a user's file counts, under
    its name"""
    types: list[TypeOutcome]


def collect(arena: Arena) -> SearchStats:
    """Return the counters of the first search in an arena, which is over: types are counted from the arena's
    beginning."""
    merge_now(arena.context)
    pruned = arena.worker["pruned"].sum(axis=0)
    techniques = [
        TechniqueCount(name, int(pruned[number, 0]), int(pruned[number, 1]))
        for number, name in enumerate(TECHNIQUE_NAMES)
    ]
    if arena.kernels.file:
        tried, changed = pruned[OWN_RULE].tolist()
        techniques.append(TechniqueCount(Path(arena.kernels.file).name, tried, changed))
    prediction = arena.header[0]["prediction"]
    types = []
    for kind, name in enumerate(TYPE_NAMES):
        # by table bound, depth, and moves done without a cutoff: 0 moves is every node, 1 those not cut by the first
        seen, cut = (prediction[field][kind].sum(axis=(0, 1)) for field in ("all_seen", "all_cut"))
        types.append(TypeOutcome(name, int(seen[0]), int(cut[0]), int(cut[0] - cut[1])))
    return SearchStats(techniques, types)


def _share(part: int, whole: int) -> str:
    """In percent; of nothing none."""
    return f"{part / whole:.1%}" if whole else "-"


_LEGEND = glossary(
    [
        ("tried, pruned", "how often each technique was asked, and how often it left out, reduced or extended"),
        ("expected", "the type a node was expected to have; nodes: those searched to their end at depth 1 or more"),
        ("right", "nodes that turned out so: CUT failed high, PV and ALL did not"),
        ("cut by 1st move", "nodes that failed high on their first move; share: of those that failed high"),
    ]
)
"""What the columns are."""


def stats_table(stats: SearchStats) -> str:
    """Return the counters as text, without the techniques that never came up."""
    techniques = [
        [one.name, f"{one.tried:,}", f"{one.pruned:,}", _share(one.pruned, one.tried), _counted(one.name)]
        for one in stats.techniques
        if one.tried
    ]
    types = [
        [
            one.expected,
            f"{one.nodes:,}",
            f"{one.right:,}",
            _share(one.right, one.nodes),
            f"{one.first_move_cuts:,}",
            _share(one.first_move_cuts, one.cut),
        ]
        for one in stats.types
    ]
    head = ["expected", "nodes", "right", "share", "cut by 1st move", "share"]
    counted = text_table(["technique", "tried", "pruned", "share", "what is counted"], techniques, left=(0, 4))
    return f"{counted}\n\n{text_table(head, types)}\n\n{_LEGEND}"


def _counted(technique: str) -> str:
    """What is tried and what is pruned."""
    words = TECHNIQUES.get(technique, _OWN)
    return f"{words.tried}: {words.pruned}"


def stats_object(stats: SearchStats) -> dict[str, Any]:
    """Return the counters as plain data, for JSON."""
    return {
        "techniques": [
            {
                **asdict(one),
                "share": round(one.share, 6),
                "counted": _counted(one.name),
            }
            for one in stats.techniques
        ],
        "types": [{**asdict(one), "right": one.right} for one in stats.types],
    }


def parameters_object() -> list[dict[str, Any]]:
    """Return every parameter of selective search: meaning, least and greatest value, and the value in each mode."""
    return [
        {
            "name": name,
            "meaning": meaning,
            "least": least,
            "most": most,
            "values": {mode: getattr(pruning, name) for mode, pruning in MODES.items()},
        }
        for name, (meaning, least, most) in PARAMETERS.items()
    ]


def parameters_table() -> str:
    """Return every parameter as text."""
    rows = [
        [name, *(str(getattr(pruning, name)) for pruning in MODES.values()), meaning]
        for name, (meaning, _, _) in PARAMETERS.items()
    ]
    return text_table(["parameter", *MODES, "meaning"], rows, left=(0, len(MODES) + 1))
