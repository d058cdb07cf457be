"""Switches and margins of selective search, declared once for the record that kernels read, for Python and the help.

`chess/pruning` has the techniques; the values beside the defaults here say which mode uses which. Values of Heinz's
techniques are from his papers (`ael`). The others began as common values of today's engines and were tuned by games
(docs/decisions/trials.md). Modes:

- plain: full width to the nominal depth, nothing is pruned.
- sound: pruning that cannot change the value of any root move: sound futility at frontier nodes and in quiescence.
- ael: Heinz's three techniques: adaptive null move pruning, extended futility pruning, limited razoring.
- modern: the techniques and values that play best by measurement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from psearch_core import PRUNING_MODES
from psearch_core.records.layout import record

# Gates of sound futility (`psearch_core/chess/pruning/sound.py`), bits of `sound_gates`: together they make it sound
SOUND_CHECKS = 1 << 0  # never skip a move that gives check
SOUND_FRONTIER = 1 << 1  # skip moves only if the child is a quiescence node
SOUND_EN_PASSANT = 1 << 2  # count the pawn captured en passant
SOUND_PROMOTION = 1 << 3  # count the piece that a pawn becomes
SOUND_CASTLING = 1 << 4  # count the moves of both king and rook
SOUND_PHASE = 1 << 5  # use the game phase after the move
SOUND_REPETITION = 1 << 6  # consider that the child may be drawn by repetition
SOUND_FIFTY_MOVES = 1 << 7  # consider that the child may be drawn by the fifty-move rule
SOUND_MATERIAL = 1 << 8  # consider that the child may be drawn for lack of material
SOUND_SCALING = 1 << 13  # consider that the child's evaluation may be scaled towards zero
SOUND_BOUND = 1 << 9  # add B, the bound on the rest of the evaluation
SOUND_RAW = 1 << 10  # require that quiescence stands pat on the evaluation itself, without the table
SOUND_LEGALITY = 1 << 11  # skip only legal moves
SOUND_BOOKKEEPING = 1 << 12  # count the bound of a skipped move as its value
SOUND_GATES = (1 << 14) - 1
"""All gates of sound futility."""

REDUCTIONS = 64
"""Number of depths and of move numbers in the table of reductions; the last one stands for all above."""
PLY_SHIFT = 8
PLY = 1 << PLY_SHIFT
"""One ply in units of reductions, 1/256 ply each."""

_MOST = 999_999
_MOST_PER_PLY = 100
_MOST_CORRECTION = 500
_MOST_REDUCTION = 1000


class Technique(NamedTuple):
    """Descriptions of what a worker counts as tried, and as pruned (reduced, extended)."""

    tried: str
    pruned: str


class Parameter(NamedTuple):
    """Meaning of a parameter, and the least and greatest value that a user may give."""

    meaning: str
    least: int = -_MOST
    most: int = _MOST


def _number(
    meaning: str, value: int = 0, least: int = -_MOST, most: int = _MOST, counted: Technique | None = None, **modes: int
) -> Any:
    """Declare a parameter. value: the default; modes: values of modes that differ from the default."""
    if not modes.keys() <= set(PRUNING_MODES):
        raise AssertionError(f"no such modes: {sorted(modes)}")
    parameter = Parameter(meaning, least, most)
    return field(default=value, metadata={"parameter": parameter, "modes": modes, "counted": counted})


def _technique(meaning: str, tried: str, pruned: str, value: int = 0, most: int = 1, **modes: int) -> Any:
    """Declare the switch of a technique that workers count. tried, pruned: see `Technique`."""
    return _number(meaning, value, 0, most, Technique(tried, pruned), **modes)


_switch = partial(_number, least=0, most=1)
_margin = partial(_number, least=0)
"""Declare centipawns that are added to a score to make it a bound. A negative margin, or a singular margin of many
pawns, would take the bound beyond all scores."""
_depth = partial(_number, least=0)
"""Declare a number of plies to go. `least` keeps the depth of a search that depends on it at 1 or more."""


@dataclass(frozen=True)
class Pruning:
    """Parameters of selective search: each technique has a switch, followed by its margins.

    Switches are 0 or 1 unless their meaning says otherwise; margins are centipawns, depths plies to go. The record that
    kernels read, the counters (`psearch_core.techniques`), the users' parameters and the help are made from this list.
    """

    futility: int = _technique(
        "futility pruning at depth 1 (Heinz 1998)", "moves at futile nodes of depth 1", "left out", ael=1
    )
    futility_margin: int = _margin("centipawns a quiet move may gain at depth 1", 200, ael=300)
    extended_futility: int = _technique(
        "extended futility pruning at depth 2 (Heinz 1998)", "moves at futile nodes of depth 2", "left out", ael=1
    )
    extended_futility_margin: int = _margin("centipawns a quiet move and the next one may gain at depth 2", 500)
    limited_razoring: int = _technique(
        "depth 3 becomes 2 if a queen would not help (Heinz 2000)", "nodes of depth 3", "made depth 2", ael=1
    )
    limited_razoring_margin: int = _number("centipawns a node may gain in limited razoring", 900)
    futility_by_material: int = _switch(
        "futility margins are added to 1: material and piece-square sum, 0: the evaluation", ael=1
    )
    futility_captures: int = _switch("captures may be futile, too, with the captured piece added to the margin", 1)
    exempt_checks: int = _switch("moves that give check are never futile", 1)
    exempt_seventh: int = _switch("a pawn, rook or queen that goes to the 7th rank is never futile")
    exempt_bishop_pair: int = _switch("the capture of one of two bishops is never futile")
    exempt_advanced_pawn: int = _switch("the capture of a pawn on the own 2nd or 3rd rank is never futile")
    exempt_queen: int = _switch("the capture of a queen is never futile")
    quiet_shortcut: int = _technique(
        "no quiet moves are generated at a futile node", "futile nodes", "quiet moves not generated", 1
    )
    deep_futility: int = _technique(
        "at depth 2 to 3 + R, a node is cut if two best enemy pieces would not help (Muller)", "nodes", "cut"
    )
    deep_futility_margin: int = _margin("centipawns added to each of the two pieces in deep futility", 150)
    null_move: int = _technique("null move pruning", "null moves searched", "cut the node", ael=1, modern=1)
    null_adaptive: int = _switch("null move reduction R, 1: 2 or 3 by depth and pieces (Heinz 1999), 0: a sum", ael=1)
    null_base: int = _depth("plies of the null move reduction R", 4)
    null_depth_divisor: int = _number("depth / this is added to the null move reduction R", 4, least=1)
    null_eval_divisor: int = _number("(evaluation - beta) / this, at most 3, is added to it, too", 160, least=1)
    null_verify: int = _technique(
        "a null move that failed high is verified if zugzwang is likely", "null moves verified", "found wrong", 1, ael=0
    )
    null_verify_depth: int = _depth("least depth to verify null moves; any depth with at most one piece", 12)
    reverse_futility: int = _technique(
        "a node fails high if its evaluation is above beta by a margin", "nodes", "cut", modern=1
    )
    reverse_futility_depth: int = _depth("greatest depth of reverse futility", 7)
    reverse_futility_margin: int = _margin("centipawns per ply for reverse futility, one ply less if improving", 46)
    reverse_futility_net: int = _switch("no reverse futility if the own king is in a mating net", modern=1)
    reverse_futility_net_depth: int = _depth("least depth to look for a mating net", 4)
    mate_in_one: int = _technique(
        "no reverse futility or null move if the enemy could mate in one, no razoring if the side to move can",
        "nodes about to be cut",
        "not cut",
        modern=1,
    )
    mate_in_one_depth: int = _depth("least depth at which reverse futility looks for a mate in one", 2)
    reply_iterations: int = _depth(
        "replies to root moves are not pruned at entry in iterations up to this depth", 0, modern=5
    )
    razoring: int = _technique(
        "quiescence decides a node if its evaluation is below alpha by a margin",
        "nodes",
        "left to quiescence",
        modern=1,
    )
    razoring_depth: int = _depth("greatest depth of razoring", 2)
    razoring_margin: int = _number("centipawns per ply for razoring", 150)
    probcut: int = _technique(
        "a capture that beats beta by a margin at depth - 3 refutes the node",
        "nodes tried with captures",
        "cut",
        modern=1,
    )
    probcut_depth: int = _depth("least depth of ProbCut", 5, least=4)
    probcut_margin: int = _margin("centipawns above beta for ProbCut", 180)
    iid: int = _technique(
        "a PV or expected CUT node without a table move is searched for one at depth - 2",
        "nodes searched for a move",
        "found one",
    )
    iid_depth: int = _depth("least depth of internal iterative deepening (iid)", 4, least=3)
    iir: int = _technique(
        "a PV or expected CUT node without a table move is searched a ply less deep",
        "nodes without a table move",
        "a ply less deep",
        modern=1,
    )
    iir_depth: int = _depth("least depth of internal iterative reduction (iir)", 3, least=2)
    singular: int = _technique(
        "the table's move is extended if it is the only good one; the node is cut if others beat beta",
        "table moves left out",
        "extended",
        modern=1,
    )
    singular_depth: int = _depth("least depth of singular searches", 7, least=3)
    singular_margin: int = _margin("centipawns per ply that other moves must be worse", 1, most=_MOST_PER_PLY)
    singular_negative: int = _number(
        "plies less for the table's move if others are good, too, and its score is beta or more", 1, 0, 3, modern=3
    )
    double_margin: int = _number("centipawns below the singular margin at which the extension is two plies", 40)
    check_extension: int = _technique(
        "checks are searched one ply deeper, 1: those that lose no material, 2: all",
        "moves that give check",
        "a ply deeper",
        2,
        most=2,
        modern=1,
    )
    check_extension_depth: int = _depth("greatest depth at which checks are searched one ply deeper", 999, modern=3)
    lmr: int = _technique("late moves are searched less deep first", "moves reduced", "not searched again", modern=1)
    lmr_depth: int = _depth("least depth of late move reductions", 3, least=2, modern=2)
    lmr_base: int = _number("reduction of late moves, in 1/100 ply", 112)
    lmr_divisor: int = _number("ln(depth) * ln(move number) * 100 / this plies are added to lmr_base", 265, least=1)
    lmr_history: int = _number("history that changes the reduction by a ply", 5000, least=1)
    lmr_tt_capture: int = _number("1/100 ply of reduction if the table's move is not quiet", 130, 0, _MOST_REDUCTION)
    lmr_cutoffs: int = _number(
        "1/100 ply of reduction after more than three children were cut off", 125, 0, _MOST_REDUCTION
    )
    lmr_under_way: int = _number("percent of the moves being searched by others that count as cut off", 40, 0, 100)
    lmp: int = _technique("late quiet moves are left out", "quiet moves", "left out", modern=1)
    lmp_depth: int = _depth("greatest depth of late move pruning (lmp)", 8)
    lmp_base: int = _number("a move is late after (this + depth squared) others, half as many if not improving", 7)
    history_pruning: int = _technique(
        "quiet moves with a bad history are left out", "quiet moves", "left out", modern=1
    )
    history_pruning_depth: int = _depth("greatest reduced depth of history pruning", 3)
    history_pruning_margin: int = _number("a move is left out if its history is below minus this per ply", 3200)
    move_futility: int = _technique(
        "quiet moves are left out if the evaluation is below alpha by a margin", "quiet moves", "left out", modern=1
    )
    move_futility_depth: int = _depth("greatest reduced depth of move futility", 6)
    move_futility_base: int = _margin("margin of move futility at reduced depth 0, centipawns", 80)
    move_futility_margin: int = _margin("centipawns added to move_futility_base per ply of reduced depth", 66)
    see_quiets: int = _technique("quiet moves that lose material are left out", "quiet moves", "left out", modern=1)
    see_quiets_margin: int = _number("centipawns per reduced depth squared that a move may lose", 20)
    see_captures: int = _technique("captures that lose material are left out", "captures", "left out", modern=1)
    see_captures_margin: int = _number("centipawns per ply that a capture may lose", 95)
    see_depth: int = _depth("greatest depth of see_captures, and reduced depth of see_quiets", 9)
    delta: int = _technique(
        "captures in quiescence that cannot reach alpha are left out", "captures in quiescence", "left out", modern=1
    )
    delta_margin: int = _margin("centipawns a capture may gain beyond the captured piece", 270)
    network: int = _switch("1: the network evaluates positions, 0: the handcrafted evaluation", modern=1)
    correction: int = _switch("the static evaluation is corrected by results of earlier searches", modern=1)
    correction_pawns: int = _number("greatest correction by the pawns, centipawns", 50, 0, _MOST_CORRECTION)
    correction_pieces: int = _number("greatest correction by pieces of a colour, centipawns", 50, 0, _MOST_CORRECTION)
    correction_moves: int = _number("greatest correction by the last two moves, centipawns", 30, 0, _MOST_CORRECTION)
    correction_slowness: int = _number("a correction changes by 1/1024 x centipawns x depth / this", 3, least=1)
    history_linear: int = _number("a cutoff adds 8 x depth squared + this x depth to a history", 0, 0, 1000, modern=200)
    history_malus: int = _number("percent of a cutoff's bonus that moves tried before lose", 100, 0, 200, modern=130)
    history_threats: int = _switch("histories distinguish moves from and to attacked squares", modern=1)
    table_in_quiescence: int = _switch("quiescence reads and writes the transposition table", ael=1, modern=1)
    sound: int = _technique(
        "sound futility at depth 1 (docs/design/soundness.md); needs table_in_quiescence 0",
        "moves",
        "left out",
        sound=1,
    )
    sound_delta: int = _technique("sound futility in quiescence", "captures in quiescence", "left out", sound=1)
    sound_gates: int = SOUND_GATES
    """Gates of sound futility that are on. Tests turn single gates off; users cannot."""

    def __post_init__(self) -> None:
        if (self.sound or self.sound_delta) and self.table_in_quiescence and self.sound_gates & SOUND_RAW:
            raise ValueError("sound futility needs table_in_quiescence=0: the bounds hold for the evaluation itself")
        if (self.sound or self.sound_delta) and self.network:
            raise ValueError("sound futility needs network=0: of a network's value no bound is known")

    def record(self) -> np.void:
        """Return these parameters as a cached `pruning_dtype` record, with the table of reductions."""
        return _record(self)


PARAMETERS: dict[str, Parameter] = {
    one.name: one.metadata["parameter"] for one in fields(Pruning) if "parameter" in one.metadata
}
"""Parameters that a user may set, by name."""
TECHNIQUES: dict[str, Technique] = {
    one.name: one.metadata["counted"] for one in fields(Pruning) if one.metadata.get("counted")
}
"""Techniques that workers count, by name, in the order of their numbers. The last two have no switch here: multicut
belongs to `singular`, see_quiescence is an option of the search."""
TECHNIQUES["multicut"] = Technique("such searches finished", "cut the node")
TECHNIQUES["see_quiescence"] = Technique("captures in quiescence", "left out")
MODES = {
    mode: Pruning(**{one.name: one.metadata.get("modes", {}).get(mode, one.default) for one in fields(Pruning)})
    for mode in PRUNING_MODES
}

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


PLAIN, SOUND, AEL, MODERN = (MODES[name] for name in ("plain", "sound", "ael", "modern"))


def parse_pruning(text: str) -> Pruning:
    """Return a mode with changes, such as `modern,lmr=0,lmp_base=4`. Raises ValueError with a line for the user."""
    mode, *changes = [word.strip() for word in text.split(",")]
    if mode not in MODES:
        raise ValueError(f"pruning must begin with one of {', '.join(MODES)}, not {mode[:40]!r}")
    values = {}
    for change in changes:
        name, _, value = change.partition("=")
        if name not in PARAMETERS:
            raise ValueError(f"no pruning parameter is called {name[:40]!r}; `psearch --parameters` lists them")
        _, least, most = PARAMETERS[name]
        if not re.fullmatch("[+-]?[0-9]{1,6}", value) or not least <= int(value) <= most:
            wanted = f"a whole number from {least} to {most}"
            raise ValueError(f"pruning parameter {name} must be {wanted}, not {value[:40]!r}")
        values[name] = int(value)
    return replace(MODES[mode], **values)


def pruning_text(pruning: Pruning) -> str:
    """Return the shortest text that `parse_pruning` turns into these parameters."""
    values = {name: getattr(pruning, name) for name in PARAMETERS}
    changes = {
        mode: [f"{name}={value}" for name, value in values.items() if value != getattr(base, name)]
        for mode, base in MODES.items()
    }
    mode = min(MODES, key=lambda mode: len(changes[mode]))
    return ",".join([mode, *changes[mode]])
