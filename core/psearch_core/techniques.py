"""The numbers under which kernels count the techniques of selective search: RAZORING is that of `razoring`, and so on.

They follow from `psearch_core.records.pruning_record`, where each technique is declared once: there is no list here to
keep.
"""

from __future__ import annotations

from psearch_core.records.pruning_record import TECHNIQUES as TECHNIQUES

TECHNIQUE_NAMES = tuple(TECHNIQUES)
_NUMBERS = {name.upper(): number for number, name in enumerate(TECHNIQUE_NAMES)}
NULL_MOVE_PRUNING = _NUMBERS.pop("NULL_MOVE")
"""`NULL_MOVE` is a move (`psearch_core.constants`)."""


def __getattr__(name: str) -> int:
    """The number of the technique with that name in small letters."""
    if name not in _NUMBERS:
        raise AttributeError(f"psearch_core.records.pruning_record declares no technique {name.lower()!r}")
    return _NUMBERS[name]
