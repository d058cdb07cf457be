"""To which depth a position is searched, with what luck, and whether what was searched is enough to mean anything.

A depth that is chosen because one worker was lucky there, or unlucky, and then measured by that very search makes
every speedup wrong. So the depth comes from a separate search, with another history; each search that is measured
has again another one; and of all depths the nearest is taken, not the first one beyond nor the last one below
(docs/decisions/016-unbiased-depths.md). The bounds of `warnings` are those of docs/studies/study.md, "How large a tree
must be".
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
"""The rules as logs name them; logs without a name are older than the perturbed histories. With the second rule
`simulate` kept trees that ended in a mate."""
_RULES = {
    _UNDECIDED: "the nearest ones, of searches apart, without mates and draws; histories perturbed",
    _NEAREST: "the nearest ones, of searches apart; histories perturbed",
    _GIVEN: "the same for all; histories perturbed",
}
_OLD_RULES = {
    "depth": "the same for all; histories empty",
    "tree_nodes": "the last ones within so many nodes of the search that is the base: speedups are too small",
    "seconds": "the first ones beyond so many seconds of the search that is the base: speedups are too large",
}
"""What the argument of an older study says of the depths in its log."""
_MOST_NAMES = 12
_LONGEST_NAME = 100
_TOO_QUICK = 0.05
"""A position whose nearest depth needs less than this share of what is wanted is left out."""
NODES_A_WORKER = 10_000
"""With fewer nodes for each worker 8 of them are idle more than 8% of the time, and more than 6% slower than they are
on larger trees."""
POSITIONS = 12
"""The mean of fewer positions is uncertain by more than a quarter."""
_SPREAD = 0.45
"""Standard deviation of the logarithm of a position's speedup in the default search, whatever the size of its tree."""


def nearest_depth(sizes: Mapping[int, float], wanted: float) -> int | None:
    """Return the depth whose size (nodes or seconds of all iterations up to it) is nearest to what is wanted, by their
    ratio.

    Of equals the deepest: reports may come together. None where a forced mate or draw ends every iteration at once: the
    last depth of all was reached, or there is no size of a twentieth or more. Such a tree has nothing to share.

    >>> nearest_depth({7: 300, 8: 450, 9: 2300}, wanted=1000)
    9
    """
    if MAX_DEPTH in sizes:
        return None
    depth = min(sizes, key=lambda depth: (abs(math.log(sizes[depth] / wanted)), -depth), default=None)
    return None if depth is None or sizes[depth] < _TOO_QUICK * wanted else depth


def is_decided(sizes: Mapping[int, float], so_far: float, wanted: float) -> bool:
    """Tell whether the next iteration cannot be the nearest any more, with so much searched since the start of the
    first.

    The last one may have as much below what is wanted as this one has above; without one, wait for it.
    """
    last = max(sizes.values(), default=0)
    return last > 0 and so_far * last >= wanted * wanted


def history_seed(*parts: object) -> int:
    """Return a seed from 1 to 2**63 - 1, another one for each combination of the parts, which differ by their text.

    >>> history_seed(0, "calibrated", 8) == history_seed(0, "calibrated", 8) != history_seed(0, "calibrated", 9)
    True
    """
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 1) | 1


def survey_seed(seed: int, fen: str) -> int:
    """Return the seed of the history of the search that finds the depth of a position."""
    return history_seed(seed, "depth", fen)


def sample_seed(seed: int, fen: str, policy: str, workers: int, repeat: int) -> int:
    """Return the seed of the history of a search that is measured. One worker has the same with every policy."""
    return history_seed(seed, fen, policy if workers > 1 else "", workers, repeat)


def rule_name(depth: int | None) -> str:
    """Return what logs say of how depths were chosen; depth: the same for all, if one is given."""
    return _UNDECIDED if depth is None else _GIVEN


def depth_rule(facts: Mapping[str, Any]) -> str:
    """Say by which rule the depths of a log were chosen, and which positions were left out, in words; facts: of the
    log, of which `about` and `left_out` are asked."""
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
    return f"depths: {words}\nleft out, ended by a mate or draw: {', '.join([*shown, *more])}"


def size_text(nodes: float) -> str:
    """Return nodes to three figures.

    >>> [size_text(nodes) for nodes in (638, 999.7, 7_040, 10_000, 229_950, 999_600, 15_700_000)]
    ['638', '1 k', '7.04 k', '10 k', '230 k', '1 M', '15.7 M']
    """
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if nodes >= 0.9995 * unit:
            return f"{nodes / unit:.3g}{name}"
    return f"{nodes:.0f}"


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
