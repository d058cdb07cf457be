"""Chooses the depth of each position and the random history of each search, and warns of studies that are too small.

If the search that determines the depth also counted as a measurement, its random fluctuation would bias every speedup.
So a separate search with another history finds the depth, each measured search has its own history, and the depth
nearest to the wanted size is taken, not the first above or the last below (docs/decisions/016-unbiased-depths.md).
The bounds of `warnings` come from docs/studies/study.md, "Method".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from psearch.defaults import MAX_DEPTH
from psearch.terminal.streams import printable
from psearch.text.values import counted
from psearch_core import DEFAULT_PRUNING

_UNDECIDED, _NEAREST, _GIVEN = "nearest undecided", "nearest", "given"
"""Names of the rules in logs; logs without a name are older than the perturbed histories. Under the second rule
`simulate` kept trees that ended in a mate."""
_RULES = {
    _UNDECIDED: "the nearest by a separate search, without mates and draws; random histories",
    _NEAREST: "the nearest by a separate search; random histories",
    _GIVEN: "the same for all; random histories",
}
_OLD_RULES = {
    "depth": "the same for all; empty histories",
    "tree_nodes": "the last below the wanted nodes in the serial search itself: speedups are too small",
    "seconds": "the first above the wanted seconds in the serial search itself: speedups are too large",
}
"""Rules of older logs, by the argument that they were given."""
_MOST_NAMES = 12
_LONGEST_NAME = 100
_TOO_QUICK = 0.05
"""A position is left out if its nearest depth needs less than this share of the wanted size."""
NODES_A_WORKER = 10_000
"""Least nodes per worker: with fewer, 8 workers are idle over 8% of the time, and 6% slower than on larger trees."""
POSITIONS = 12
"""The mean of fewer positions is uncertain by more than a quarter."""
_SPREAD = 0.45
"""Standard deviation of the logarithm of a position's speedup in the default search, whatever the size of its tree."""


def nearest_depth(sizes: Mapping[int, float], wanted: float) -> int | None:
    """Return the depth whose size (nodes or seconds of all iterations up to it) is nearest to `wanted`, by ratio.

    Of equal sizes take the deepest. Return None for a tree with nothing to share, where a forced mate or draw ends
    every iteration at once: the last depth was reached, or no size is a twentieth of `wanted`.

    >>> nearest_depth({7: 300, 8: 450, 9: 2300}, wanted=1000)
    9
    """
    if MAX_DEPTH in sizes:
        return None
    depth = min(sizes, key=lambda depth: (abs(math.log(sizes[depth] / wanted)), -depth), default=None)
    return None if depth is None or sizes[depth] < _TOO_QUICK * wanted else depth


def is_decided(sizes: Mapping[int, float], so_far: float, wanted: float) -> bool:
    """Tell whether the running iteration can no longer be the nearest. so_far: size since the start of the first one.

    By ratio, the last iteration is then at least as near to what is wanted as this one. Without an iteration, wait.
    """
    last = max(sizes.values(), default=0)
    return last > 0 and so_far * last >= wanted * wanted


def history_seed(*parts: object) -> int:
    """Return a seed from 1 to 2**63 - 1 that depends on the text of all parts.

    >>> history_seed(0, "calibrated", 8) == history_seed(0, "calibrated", 8) != history_seed(0, "calibrated", 9)
    True
    """
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 1) | 1


def survey_seed(seed: int, fen: str) -> int:
    """Return the history seed of the search that finds the depth of a position."""
    return history_seed(seed, "depth", fen)


def sample_seed(seed: int, fen: str, policy: str, workers: int, repeat: int) -> int:
    """Return the history seed of a measured search. With one worker it does not depend on the policy."""
    return history_seed(seed, fen, policy if workers > 1 else "", workers, repeat)


def rule_name(depth: int | None) -> str:
    """Return the name of the depth rule for logs. depth: the depth of all positions, if one is given."""
    return _UNDECIDED if depth is None else _GIVEN


def depth_rule(facts: Mapping[str, Any]) -> str:
    """Describe how the depths of a log were chosen, and which positions were left out."""
    about, names = facts.get("about"), facts.get("left_out")
    about = about if isinstance(about, Mapping) else {}
    arguments = about.get("arguments")
    known = {**about, **(arguments if isinstance(arguments, Mapping) else {})}
    old = (words for name, words in _OLD_RULES.items() if known.get(name) is not None)
    rule = about.get("depths")
    words = _RULES[rule] if rule in list(_RULES) else next(old, "the log does not say how they were chosen")
    if not isinstance(names, list) or not names:
        return f"depths: {words}"
    more = [f"and {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    shown = [printable(str(name)[:_LONGEST_NAME]) for name in names[:_MOST_NAMES]]
    return f"depths: {words}\nleft out, solved before that size: {', '.join([*shown, *more])}"


def size_text(nodes: float) -> str:
    """Return a number of nodes with three significant digits.

    >>> [size_text(nodes) for nodes in (638, 999.7, 7_040, 10_000, 229_950, 999_600, 15_700_000)]
    ['638', '1 k', '7.04 k', '10 k', '230 k', '1 M', '15.7 M']
    """
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if nodes >= 0.9995 * unit:
            return f"{nodes / unit:.3g}{name}"
    return f"{nodes:.0f}"


def scale(positions: int, nodes: float) -> str:
    """Return the number of positions and the tree size, for the title of a plot.

    >>> scale(1, 9_012)
    '1 position, 9.01 k nodes per tree'
    """
    return f"{counted(positions, 'position')}, {size_text(nodes)} nodes per tree"


def scale_line(positions: int, nodes: float) -> str:
    """Return the number of positions and the tree size, for the line below a table.

    >>> scale_line(24, 550_039)
    '24 positions, 550 k nodes per tree (mean, one worker)'
    """
    return f"{scale(positions, nodes)} ({'mean, ' if positions != 1 else ''}one worker)"


def warnings(positions: int, nodes: float, workers: int, pruning: str) -> list[str]:
    """Return a line for each reason not to rely on a table. workers: largest worker count; pruning: pruning of the
    searches, in words; empty for a user's game, whose positions may vary more or less than those of chess.
    """
    found = []
    if workers > 1 and nodes < NODES_A_WORKER * workers:
        found.append(
            f"small trees: {size_text(nodes / workers)} nodes for each of {workers} workers. Below "
            f"{size_text(NODES_A_WORKER)} workers often wait for work; longer searches have better speedups"
        )
    if positions < POSITIONS and not pruning.startswith(DEFAULT_PRUNING):
        found.append(f"few positions: the mean of {positions} may be far from that of many; use {POSITIONS} or more")
    elif positions < POSITIONS:
        uncertain = math.exp(1.96 * _SPREAD / math.sqrt(max(positions, 1))) - 1
        found.append(
            f"few positions: speedups of the default search vary so much that a mean of {positions} is uncertain by "
            f"about {uncertain:.0%}"
        )
    return found
