"""Switches and margins of selective search, and the modes that put them together.

- plain: nothing is left out: full width, to the nominal depth.
- sound: what cannot change the value of any root move: sound futility at frontier nodes and in quiescence.
- ael: Heinz's three together: adaptive null move pruning, extended futility pruning, limited razoring.
- modern: what has been measured to play best.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np

from psearch.core.pruning.parameters import PARAMETERS
from psearch.core.records import REDUCTIONS, SOUND_GATES, SOUND_RAW, pruning_dtype


@dataclass(frozen=True)
class Pruning:
    """One parameter record: every technique is a switch, with its margins beside it (`core/pruning.py`).

    Switches are 0 or 1 unless said otherwise; margins are centipawns, depths plies to go.
    """

    futility: int = 0
    futility_margin: int = 200
    extended_futility: int = 0
    extended_futility_margin: int = 500
    limited_razoring: int = 0
    limited_razoring_margin: int = 900
    futility_by_material: int = 0
    futility_captures: int = 1
    exempt_checks: int = 1
    exempt_seventh: int = 0
    exempt_bishop_pair: int = 0
    exempt_advanced_pawn: int = 0
    exempt_queen: int = 0
    quiet_shortcut: int = 1
    deep_futility: int = 0
    deep_futility_margin: int = 150
    null_move: int = 0
    null_adaptive: int = 0
    null_base: int = 3
    null_depth_divisor: int = 5
    null_eval_divisor: int = 200
    null_verify: int = 1
    null_verify_depth: int = 12
    reverse_futility: int = 0
    reverse_futility_depth: int = 8
    reverse_futility_margin: int = 80
    reverse_futility_net: int = 0
    reverse_futility_net_depth: int = 4
    razoring: int = 0
    razoring_depth: int = 2
    razoring_margin: int = 250
    probcut: int = 0
    probcut_depth: int = 5
    probcut_margin: int = 180
    iid: int = 0
    iid_depth: int = 4
    iir: int = 0
    iir_depth: int = 4
    singular: int = 0
    singular_depth: int = 8
    singular_margin: int = 2
    double_margin: int = 25
    check_extension: int = 2
    """1: checks that lose no material; 2: all checks"""
    lmr: int = 0
    lmr_base: int = 78
    lmr_divisor: int = 247
    lmr_history: int = 8192
    lmp: int = 0
    lmp_depth: int = 8
    lmp_base: int = 3
    history_pruning: int = 0
    history_pruning_depth: int = 3
    history_pruning_margin: int = 4000
    move_futility: int = 0
    move_futility_depth: int = 6
    move_futility_base: int = 100
    move_futility_margin: int = 100
    see_quiets: int = 0
    see_quiets_margin: int = 20
    see_captures: int = 0
    see_captures_margin: int = 95
    see_depth: int = 8
    delta: int = 0
    delta_margin: int = 200
    table_in_quiescence: int = 0
    sound: int = 0
    """needs `table_in_quiescence` 0, as does `sound_delta`"""
    sound_delta: int = 0
    sound_gates: int = SOUND_GATES
    """which gates of sound futility hold: all, but for tests that want to see one missed"""

    def __post_init__(self) -> None:
        if (self.sound or self.sound_delta) and self.table_in_quiescence and self.sound_gates & SOUND_RAW:
            raise ValueError("sound futility needs table_in_quiescence=0: the bounds hold for the evaluation itself")

    def record(self) -> np.void:
        """As a `pruning_dtype` record, the table of reductions included. Made once: a move may have 10 ms."""
        return _record(self)


@lru_cache(maxsize=64)
def _record(pruning: Pruning) -> np.void:
    made = np.zeros(1, pruning_dtype)
    for field in fields(pruning):
        made[field.name] = getattr(pruning, field.name)
    logarithms = np.log(np.maximum(np.arange(REDUCTIONS), 1))
    plies = pruning.lmr_base / 100 + np.outer(logarithms, logarithms) * 100 / pruning.lmr_divisor
    made["reductions"][0, 1:, 1:] = np.rint(256 * plies.clip(0, REDUCTIONS))[1:, 1:]
    record: np.void = made[0]
    return record


INTERNAL = ("sound_gates",)
"""Fields that no user sets."""
PLAIN = Pruning()
SOUND = replace(PLAIN, sound=1, sound_delta=1)
AEL = replace(
    PLAIN,
    futility=1,
    futility_margin=300,
    extended_futility=1,
    limited_razoring=1,
    futility_by_material=1,
    null_move=1,
    null_adaptive=1,
    null_verify=0,
    table_in_quiescence=1,
)
MODERN = replace(
    PLAIN,
    null_move=1,
    reverse_futility=1,
    reverse_futility_net=1,
    razoring=1,
    iir=1,
    singular=1,
    check_extension=1,
    lmr=1,
    lmp=1,
    history_pruning=1,
    move_futility=1,
    see_quiets=1,
    see_captures=1,
    delta=1,
    table_in_quiescence=1,
)
MODES = {"plain": PLAIN, "sound": SOUND, "ael": AEL, "modern": MODERN}
DEFAULT_MODE = "modern"


def parse_pruning(text: str) -> Pruning:
    """A mode, and changes to it: `modern`, or `modern,lmr=0,lmp_base=4`. Raises ValueError with a line for the user."""
    mode, *changes = [word.strip() for word in text.split(",")]
    if mode not in MODES:
        raise ValueError(f"pruning must begin with one of {', '.join(MODES)}, not {mode[:40]!a}")
    values = {}
    for change in changes:
        name, _, value = change.partition("=")
        if name not in PARAMETERS:
            raise ValueError(f"no pruning parameter is called {name[:40]!a}; `psearch stats --parameters` lists them")
        _, least, most = PARAMETERS[name]
        if not re.fullmatch("[+-]?[0-9]{1,6}", value) or not least <= int(value) <= most:
            wanted = f"a whole number from {least} to {most}"
            raise ValueError(f"pruning parameter {name} must be {wanted}, not {value[:40]!a}")
        values[name] = int(value)
    return replace(MODES[mode], **values)


def pruning_text(pruning: Pruning) -> str:
    """The shortest text that `parse_pruning` turns into it."""
    texts = []
    for mode, base in MODES.items():
        changes = [
            f"{name}={getattr(pruning, name)}" for name in PARAMETERS if getattr(pruning, name) != getattr(base, name)
        ]
        texts.append(",".join([mode, *changes]))
    return min(texts, key=lambda text: text.count(","))
