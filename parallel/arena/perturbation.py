"""Other luck for a search: a history of small random numbers in place of zeros.

It changes the order of quiet moves about which nothing is known yet, and nothing else. That is enough to make the tree
of a selective search another one, half as large again or smaller by a third (docs/studies/study.md, "How much of it is
luck"): what is compared over many such searches does not hang on one of them.
"""

from __future__ import annotations

import hashlib

import numpy as np

from psearch.arena.arena import Arena

LARGEST = 32
"""Of the random numbers: a sixty-fourth of what one deep cutoff adds."""


def history_seed(*parts: object) -> int:
    """A seed from 1 to 2**63 - 1 of its own for each combination of the parts, which are told apart by their text.

    >>> history_seed(0, "calibrated", 8) == history_seed(0, "calibrated", 8) != history_seed(0, "calibrated", 9)
    True
    """
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 1) | 1


def perturb_history(arena: Arena, seed: int) -> None:
    """Fill the history of quiet moves with random numbers, the same for the same seed. No search may be running.

    What was in it before is lost; everything else stays as it is, so call `Arena.forget` first.
    """
    quiet = arena.header[0]["learning"]["quiet"]
    quiet[...] = np.random.default_rng(seed).integers(-LARGEST, LARGEST, quiet.shape, endpoint=True)
