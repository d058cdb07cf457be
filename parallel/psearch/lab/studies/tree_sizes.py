"""How much a study has searched, in words, and whether it is enough to mean anything.

The bounds are those of docs/studies/study.md, "How large a tree must be".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from psearch.text.values import counted
from psearch_core import DEFAULT_PRUNING

if TYPE_CHECKING:
    from psearch.lab.studies.speedup_study import Sample
    from psearch.simulation.simulator import VirtualSample

NODES_A_WORKER = 10_000
"""With fewer nodes for each worker 8 of them are idle more than 8% of the time, and more than 6% slower than they are
on larger trees."""
POSITIONS = 12
"""The mean of fewer is uncertain by more than a quarter."""
_SPREAD = 0.45
"""Standard deviation of the logarithm of a position's speedup in the default search, whatever the size of its tree."""


def size_text(nodes: float) -> str:
    """Return nodes to three figures.

    >>> [size_text(nodes) for nodes in (638, 999.7, 7_040, 10_000, 229_950, 999_600, 15_700_000)]
    ['638', '1 k', '7.04 k', '10 k', '230 k', '1 M', '15.7 M']
    """
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if nodes >= 0.9995 * unit:
            return f"{nodes / unit:.3g}{name}"
    return f"{nodes:.0f}"


def searched(samples: Sequence[Sample | VirtualSample]) -> tuple[int, float]:
    """Return positions that one worker has searched, and the mean of the nodes that it needed: the size of a tree."""
    alone = [sample for sample in samples if sample.threads == 1]
    return len({sample.fen for sample in alone}), sum(sample.nodes for sample in alone) / max(len(alone), 1)


def scale(positions: int, nodes: float) -> str:
    """Return what a picture is of.

    >>> scale(1, 9_012)
    '1 position, 9.01 k nodes a tree'
    """
    return f"{counted(positions, 'position')}, {size_text(nodes)} nodes a tree"


def scale_line(positions: int, nodes: float) -> str:
    """Return what a table is of.

    >>> scale_line(24, 550_039)
    '24 positions, 550 k nodes a tree (those of one worker, mean)'
    """
    return f"{scale(positions, nodes)} (those of one worker{', mean' if positions != 1 else ''})"


def warnings(positions: int, nodes: float, workers: int, pruning: str) -> list[str]:
    """Return what keeps a table from meaning much, a line each. workers: the most that share a tree; pruning: that of
    the searches, in words, empty for a game of the user's, whose positions may differ more or less than those of chess.
    """
    found = []
    if workers > 1 and nodes < NODES_A_WORKER * workers:
        found.append(
            f"small trees: {size_text(nodes / workers)} nodes for each of {workers} workers. Below "
            f"{size_text(NODES_A_WORKER)} they wait for work, and share longer searches better than these"
        )
    if positions < POSITIONS and not pruning.startswith(DEFAULT_PRUNING):
        found.append(f"few positions: a mean of {positions} may be far from that of many; take {POSITIONS} or more")
    elif positions < POSITIONS:
        uncertain = math.exp(1.96 * _SPREAD / math.sqrt(max(positions, 1))) - 1
        found.append(
            f"few positions: the default search is so chaotic that a mean of {positions} is uncertain by about "
            f"{uncertain:.0%}"
        )
    return found
