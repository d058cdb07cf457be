"""Selective search: switches and margins, declared once for the record that kernels read, Python, and the help.

What each technique does: `core/pruning`; which mode uses which: the values beside the defaults here. Where values come
from: those of Heinz's techniques from his papers (`ael`), those of the others are common values of today's engines; few
of them have been measured here (docs/decisions/009, and 010 for the mating nets).
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from psearch.core.records.layout import record

# Gates of sound futility (`core/pruning/sound.py`), bits of `sound_gates`: together they make it sound
SOUND_CHECKS = 1 << 0  # no move that gives check
SOUND_FRONTIER = 1 << 1  # the child is quiescence
SOUND_EN_PASSANT = 1 << 2  # exact material: the pawn taken in passing
SOUND_PROMOTION = 1 << 3  # what a pawn becomes
SOUND_CASTLING = 1 << 4  # king and rook both move
SOUND_PHASE = 1 << 5  # the game phase changes with the pieces
SOUND_REPETITION = 1 << 6  # the child may be drawn: by repetition
SOUND_FIFTY_MOVES = 1 << 7  # by the fifty-move rule
SOUND_MATERIAL = 1 << 8  # for lack of material
SOUND_SCALING = 1 << 13  # its evaluation may be scaled towards zero
SOUND_BOUND = 1 << 9  # B is added: the rest of the evaluation is bounded, not absent
SOUND_RAW = 1 << 10  # quiescence reads no table: it stands pat on the evaluation itself
SOUND_LEGALITY = 1 << 11  # a skipped move is a legal move
SOUND_BOOKKEEPING = 1 << 12  # its bound counts as a value
SOUND_GATES = (1 << 14) - 1
"""All of them."""

REDUCTIONS = 64
"""Depths and move numbers in the table of reductions, the last for all above."""
PLY_SHIFT = 8
PLY = 1 << PLY_SHIFT
"""The unit of reductions is 1/256 ply."""

MODE_NAMES = ("plain", "sound", "ael", "modern")
_MOST = 999_999
_MOST_PER_PLY = 100


class Parameter(NamedTuple):
    """Meaning, and the least and greatest value that a user may give."""

    meaning: str
    least: int = -_MOST
    most: int = _MOST


def _declared(parameter: Parameter, value: int, modes: dict[str, int]) -> Any:
    if not modes.keys() <= set(MODE_NAMES):
        raise AssertionError(f"no such modes: {sorted(modes)}")
    return field(default=value, metadata={"parameter": parameter, "modes": modes})


def _number(meaning: str, value: int, least: int = -_MOST, most: int = _MOST, **modes: int) -> Any:
    """value: the default; modes: the value in a mode that has another."""
    return _declared(Parameter(meaning, least, most), value, modes)


def _switch(meaning: str, value: int = 0, **modes: int) -> Any:
    return _declared(Parameter(meaning, 0, 1), value, modes)


def _margin(meaning: str, value: int, most: int = _MOST, **modes: int) -> Any:
    """Centipawns that are added to a score which then is a bound: a negative margin would make it one beyond all
    scores, and so would a singular margin of many pawns."""
    return _declared(Parameter(meaning, 0, most), value, modes)


def _depth(meaning: str, value: int, least: int = 0, **modes: int) -> Any:
    """Plies to go; `least` keeps what is searched in its place at depth 1 or more."""
    return _declared(Parameter(meaning, least), value, modes)


def _divisor(meaning: str, value: int, **modes: int) -> Any:
    return _declared(Parameter(meaning, 1), value, modes)


@dataclass(frozen=True)
class Pruning:
    """Every technique is a switch, followed by its margins.

    Switches are 0 or 1 unless said otherwise; margins are centipawns, depths plies to go.
    """

    futility: int = _switch("futility pruning at depth 1 (Heinz 1998)", ael=1)
    futility_margin: int = _margin("centipawns a quiet move may gain at depth 1", 200, ael=300)
    extended_futility: int = _switch("the same at depth 2 (Heinz 1998)", ael=1)
    extended_futility_margin: int = _margin("centipawns a quiet move and the next one may gain at depth 2", 500)
    limited_razoring: int = _switch("depth 3 becomes 2 where a queen would not help (Heinz 2000)", ael=1)
    limited_razoring_margin: int = _number("centipawns for that", 900)
    futility_by_material: int = _switch(
        "1: these margins go on material and piece-square sum, 0: on the evaluation", ael=1
    )
    futility_captures: int = _switch("captures are futile too, what they take added", 1)
    exempt_checks: int = _switch("moves that give check are never futile", 1)
    exempt_seventh: int = _switch("nor a pawn, rook or queen that goes to the 7th rank")
    exempt_bishop_pair: int = _switch("nor the capture of one of two bishops")
    exempt_advanced_pawn: int = _switch("nor the capture of a pawn on the own 2nd or 3rd rank")
    exempt_queen: int = _switch("nor the capture of a queen")
    quiet_shortcut: int = _switch("one quiet move is futile, so all are: they are not generated", 1)
    deep_futility: int = _switch("depth 2 to 3 + R: the two best enemy pieces would not help (Muller)")
    deep_futility_margin: int = _margin("centipawns for each of the two moves, beside the pieces", 150)
    null_move: int = _switch("null move pruning", ael=1, modern=1)
    null_adaptive: int = _switch("1: R = 2 or 3 by depth and pieces (Heinz 1999), 0: by the next three", ael=1)
    null_base: int = _depth("R = this", 3)
    null_depth_divisor: int = _divisor("+ depth / this", 5)
    null_eval_divisor: int = _divisor("+ (evaluation - beta) / this, 3 at most", 200)
    null_verify: int = _switch("a null move that failed high is verified where zugzwang threatens", 1, ael=0)
    null_verify_depth: int = _depth("from this depth on, or with at most one piece at any depth", 12)
    reverse_futility: int = _switch("the evaluation is above beta by a margin: the node fails high", modern=1)
    reverse_futility_depth: int = _depth("up to this depth", 8)
    reverse_futility_margin: int = _margin("centipawns per ply, one ply less if the evaluation is improving", 80)
    reverse_futility_net: int = _switch("not with the own king in a mating net", modern=1)
    reverse_futility_net_depth: int = _depth("from this depth on", 4)
    mate_in_one: int = _switch("no such cut where a mate in one threatens: reverse futility, null move, razoring", modern=1)
    mate_in_one_depth: int = _depth("reverse futility looks for one from this depth on", 2)
    reply_depth: int = _depth("no reply to a root move is cut by them up to this depth", 0, modern=2)
    razoring: int = _switch("the evaluation is below alpha by a margin: quiescence decides", modern=1)
    razoring_depth: int = _depth("up to this depth", 2)
    razoring_margin: int = _number("centipawns per ply", 250)
    probcut: int = _switch("a capture that beats beta by a margin at depth - 3 refutes the node")
    probcut_depth: int = _depth("from this depth on", 5, least=4)
    probcut_margin: int = _margin("centipawns above beta", 180)
    iid: int = _switch("no table move at a PV or expected CUT node: search at depth - 2 for one")
    iid_depth: int = _depth("from this depth on", 4, least=3)
    iir: int = _switch("no table move at a PV or expected CUT node: depth - 1", modern=1)
    iir_depth: int = _depth("from this depth on", 4, least=2)
    singular: int = _switch("the table's move alone holds: it is extended; others hold too: the node is cut", modern=1)
    singular_depth: int = _depth("from this depth on", 8, least=3)
    singular_margin: int = _margin("centipawns per ply below the table's score", 2, most=_MOST_PER_PLY)
    double_margin: int = _number("centipawns below that from which the extension is two plies", 25)
    check_extension: int = _number(
        "a ply more for checks: 1 those that lose no material, 2 all", 2, least=0, most=2, modern=1
    )
    lmr: int = _switch("late moves are searched less deep first", modern=1)
    lmr_base: int = _number("1/100 ply of reduction", 78)
    lmr_divisor: int = _divisor("+ ln(depth) ln(move number) / this, in 1/100", 247)
    lmr_history: int = _divisor("history that is worth a ply", 8192)
    lmp: int = _switch("late quiet moves are left out", modern=1)
    lmp_depth: int = _depth("up to this depth", 8)
    lmp_base: int = _number("after (this + depth squared) moves, half as many if not improving", 3)
    history_pruning: int = _switch("quiet moves that never cut are left out", modern=1)
    history_pruning_depth: int = _depth("up to this reduced depth", 3)
    history_pruning_margin: int = _number("history per ply below which a move is left out", 4000)
    move_futility: int = _switch("quiet moves are left out when the evaluation is below alpha by a margin", modern=1)
    move_futility_depth: int = _depth("up to this reduced depth", 6)
    move_futility_base: int = _margin("centipawns", 100)
    move_futility_margin: int = _margin("+ centipawns per ply of reduced depth", 100)
    see_quiets: int = _switch("quiet moves that lose material are left out", modern=1)
    see_quiets_margin: int = _number("centipawns per reduced depth squared that a move may lose", 20)
    see_captures: int = _switch("captures that lose material are left out", modern=1)
    see_captures_margin: int = _number("centipawns per ply that a capture may lose", 95)
    see_depth: int = _depth("both up to this depth", 8)
    delta: int = _switch("quiescence: captures that cannot reach alpha are left out", modern=1)
    delta_margin: int = _margin("centipawns a capture may gain beside what it takes", 200)
    table_in_quiescence: int = _switch("quiescence reads and writes the transposition table", ael=1, modern=1)
    sound: int = _switch("sound futility at depth 1 (docs/design/soundness.md); needs table_in_quiescence 0", sound=1)
    sound_delta: int = _switch("the same in quiescence", sound=1)
    sound_gates: int = SOUND_GATES
    """which gates of sound futility hold: all, but for tests that want to see one missed; no user sets it"""

    def __post_init__(self) -> None:
        if (self.sound or self.sound_delta) and self.table_in_quiescence and self.sound_gates & SOUND_RAW:
            raise ValueError("sound futility needs table_in_quiescence=0: the bounds hold for the evaluation itself")

    def record(self) -> np.void:
        """As a `pruning_dtype` record, the table of reductions included. Made once: a move may have 10 ms."""
        return _record(self)


def _in_mode(one: Field[int], mode: str) -> Any:
    return one.metadata.get("modes", {}).get(mode, one.default)


PARAMETERS: dict[str, Parameter] = {
    one.name: one.metadata["parameter"] for one in fields(Pruning) if "parameter" in one.metadata
}
"""Those that a user may set, by name."""
MODES = {mode: Pruning(**{one.name: _in_mode(one, mode) for one in fields(Pruning)}) for mode in MODE_NAMES}

pruning_dtype = record(
    [
        *((one.name, "i4") for one in fields(Pruning)),
        ("reductions", "i2", (REDUCTIONS, REDUCTIONS)),  # by depth and move number, in 1/PLY; derived
    ]
)


@lru_cache(maxsize=64)
def _record(pruning: Pruning) -> np.void:
    made = np.zeros(1, pruning_dtype)
    for one in fields(pruning):
        made[one.name] = getattr(pruning, one.name)
    logarithms = np.log(np.maximum(np.arange(REDUCTIONS), 1))
    plies = pruning.lmr_base / 100 + np.outer(logarithms, logarithms) * 100 / pruning.lmr_divisor
    made["reductions"][0, 1:, 1:] = np.rint(PLY * plies.clip(0, REDUCTIONS))[1:, 1:]
    first: np.void = made[0]
    return first
