"""To which depth a position is searched, and what luck each search has: alike for all worker counts.

A depth that is chosen because one worker was lucky there, or unlucky, and then measured by that very search makes
every speedup wrong. So the depth comes from a search of its own, with a history of its own; each search that is
measured has again another one; and of all depths the nearest is taken, not the first one beyond nor the last one below
(docs/decisions/016-unbiased-depths.md).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from psearch.defaults import MAX_DEPTH
from psearch.terminal.streams import printable

_UNDECIDED, _NEAREST, _GIVEN = "nearest undecided", "nearest", "given"
"""The rules as logs name them; those without a name are older than the perturbed histories. With the second `simulate`
kept trees that ended in a mate."""
_MOST_NAMES = 12
_LONGEST_NAME = 100
_TOO_QUICK = 0.05
"""A position whose nearest depth needs less than this share of what is wanted is left out."""


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
    """Return a seed from 1 to 2**63 - 1 of its own for each combination of the parts, told apart by their text.

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
    names = facts.get("left_out")
    if not isinstance(names, list) or not names:
        return _rule(facts)
    more = [f"and {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    shown = [printable(str(name)[:_LONGEST_NAME]) for name in names[:_MOST_NAMES]]
    return f"{_rule(facts)}\nleft out, ended by a mate or draw: {', '.join([*shown, *more])}"


def _rule(facts: Mapping[str, Any]) -> str:
    about = facts.get("about")
    if not isinstance(about, Mapping):
        about = {}
    arguments = about.get("arguments")
    known = {**about, **(arguments if isinstance(arguments, Mapping) else {})}
    if about.get("depths") == _UNDECIDED:
        return "depths: the nearest ones, of searches apart, without mates and draws; histories perturbed"
    if about.get("depths") == _NEAREST:
        return "depths: the nearest ones, of searches apart; histories perturbed"
    if about.get("depths") == _GIVEN:
        return "depths: the same for all; histories perturbed"
    if known.get("depth") is not None:
        return "depths: the same for all; histories empty"
    if known.get("tree_nodes") is not None:
        return "depths: the last ones within so many nodes of the search that is the base: speedups are too small"
    if known.get("seconds") is not None:
        return "depths: the first ones beyond so many seconds of the search that is the base: speedups are too large"
    return "depths: the log does not say how they were chosen"
