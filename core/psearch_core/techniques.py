"""Numbers under which kernels count the techniques of selective search: RAZORING is the number of `razoring`.

They are derived from `psearch_core.records.pruning_record`, which declares each technique once.
"""

from __future__ import annotations

from psearch_core.records.pruning_record import TECHNIQUES as TECHNIQUES

TECHNIQUE_NAMES = tuple(TECHNIQUES)
_NUMBERS = {name.upper(): number for number, name in enumerate(TECHNIQUE_NAMES)}
NULL_MOVE_PRUNING = _NUMBERS.pop("NULL_MOVE")
"""Number of `null_move`; the name `NULL_MOVE` is a move (`psearch_core.constants`)."""


def __getattr__(name: str) -> int:
    """Return the number of the technique with this name in lower case."""
    if name not in _NUMBERS:
        raise AttributeError(f"psearch_core.records.pruning_record declares no technique {name.lower()!r}")
    return _NUMBERS[name]
