"""What each parameter of selective search means and may be, and what the counters of the techniques count.

One line for every field of `pruning_modes.Pruning` and every name in `records.TECHNIQUE_NAMES`; a test compares them.
"""

from __future__ import annotations

from typing import NamedTuple

_MOST = 999_999


class Parameter(NamedTuple):
    """Meaning, and the least and greatest value that a user may give."""

    meaning: str
    least: int = -_MOST
    most: int = _MOST


def _switch(meaning: str) -> Parameter:
    return Parameter(meaning, 0, 1)


def _depth(meaning: str, least: int = 0) -> Parameter:
    """Plies to go; `least` keeps what is searched in its place at depth 1 or more."""
    return Parameter(meaning, least, _MOST)


def _divisor(meaning: str) -> Parameter:
    return Parameter(meaning, 1, _MOST)


PARAMETERS = {
    "futility": _switch("futility pruning at depth 1 (Heinz 1998)"),
    "futility_margin": Parameter("centipawns a quiet move may gain at depth 1"),
    "extended_futility": _switch("the same at depth 2 (Heinz 1998)"),
    "extended_futility_margin": Parameter("centipawns a quiet move and the next one may gain at depth 2"),
    "limited_razoring": _switch("depth 3 becomes 2 where a queen would not help (Heinz 2000)"),
    "limited_razoring_margin": Parameter("centipawns for that"),
    "futility_by_material": _switch("1: these margins go on material and piece-square sum, 0: on the evaluation"),
    "futility_captures": _switch("captures are futile too, what they take added"),
    "exempt_checks": _switch("moves that give check are never futile"),
    "exempt_seventh": _switch("nor a pawn, rook or queen that goes to the 7th rank"),
    "exempt_bishop_pair": _switch("nor the capture of one of two bishops"),
    "exempt_advanced_pawn": _switch("nor the capture of a pawn on the own 2nd or 3rd rank"),
    "exempt_queen": _switch("nor the capture of a queen"),
    "quiet_shortcut": _switch("one quiet move is futile, so all are: they are not generated"),
    "deep_futility": _switch("depth 2 to 3 + R: the two best enemy pieces would not help (Muller)"),
    "deep_futility_margin": Parameter("centipawns for each of the two moves, beside the pieces"),
    "null_move": _switch("null move pruning"),
    "null_adaptive": _switch("1: R = 2 or 3 by depth and pieces (Heinz 1999), 0: by the next three"),
    "null_base": _depth("R = this"),
    "null_depth_divisor": _divisor("+ depth / this"),
    "null_eval_divisor": _divisor("+ (evaluation - beta) / this, 3 at most"),
    "null_verify": _switch("a null move that failed high is verified where zugzwang threatens"),
    "null_verify_depth": _depth("from this depth on, or with at most one piece at any depth"),
    "reverse_futility": _switch("the evaluation is above beta by a margin: the node fails high"),
    "reverse_futility_depth": _depth("up to this depth"),
    "reverse_futility_margin": Parameter("centipawns per ply, one ply less if the evaluation is improving"),
    "reverse_futility_net": _switch("not with the own king in a mating net"),
    "reverse_futility_net_depth": _depth("from this depth on"),
    "razoring": _switch("the evaluation is below alpha by a margin: quiescence decides"),
    "razoring_depth": _depth("up to this depth"),
    "razoring_margin": Parameter("centipawns per ply"),
    "probcut": _switch("a capture that beats beta by a margin at depth - 3 refutes the node"),
    "probcut_depth": _depth("from this depth on", 4),
    "probcut_margin": Parameter("centipawns above beta"),
    "iid": _switch("no table move at a PV or expected CUT node: search at depth - 2 for one"),
    "iid_depth": _depth("from this depth on", 3),
    "iir": _switch("no table move at a PV or expected CUT node: depth - 1"),
    "iir_depth": _depth("from this depth on", 2),
    "singular": _switch("the table's move alone holds: it is extended; others hold too: the node is cut"),
    "singular_depth": _depth("from this depth on", 3),
    "singular_margin": Parameter("centipawns per ply below the table's score"),
    "double_margin": Parameter("centipawns below that from which the extension is two plies"),
    "check_extension": Parameter("a ply more for checks: 1 those that lose no material, 2 all", 0, 2),
    "lmr": _switch("late moves are searched less deep first"),
    "lmr_base": Parameter("1/100 ply of reduction"),
    "lmr_divisor": _divisor("+ ln(depth) ln(move number) / this, in 1/100"),
    "lmr_history": _divisor("history that is worth a ply"),
    "lmp": _switch("late quiet moves are left out"),
    "lmp_depth": _depth("up to this depth"),
    "lmp_base": Parameter("after (this + depth squared) moves, half as many if not improving"),
    "history_pruning": _switch("quiet moves that never cut are left out"),
    "history_pruning_depth": _depth("up to this reduced depth"),
    "history_pruning_margin": Parameter("history per ply below which a move is left out"),
    "move_futility": _switch("quiet moves are left out when the evaluation is below alpha by a margin"),
    "move_futility_depth": _depth("up to this reduced depth"),
    "move_futility_base": Parameter("centipawns"),
    "move_futility_margin": Parameter("+ centipawns per ply of reduced depth"),
    "see_quiets": _switch("quiet moves that lose material are left out"),
    "see_quiets_margin": Parameter("centipawns per reduced depth squared that a move may lose"),
    "see_captures": _switch("captures that lose material are left out"),
    "see_captures_margin": Parameter("centipawns per ply that a capture may lose"),
    "see_depth": _depth("both up to this depth"),
    "delta": _switch("quiescence: captures that cannot reach alpha are left out"),
    "delta_margin": Parameter("centipawns a capture may gain beside what it takes"),
    "table_in_quiescence": _switch("quiescence reads and writes the transposition table"),
    "sound": _switch("sound futility at depth 1 (docs/design/soundness.md); needs table_in_quiescence 0"),
    "sound_delta": _switch("the same in quiescence"),
}


class Technique(NamedTuple):
    """What a worker counts as tried, and as pruned."""

    tried: str
    pruned: str


TECHNIQUES = {
    "futility": Technique("moves at futile nodes of depth 1", "left out"),
    "extended_futility": Technique("moves at futile nodes of depth 2", "left out"),
    "limited_razoring": Technique("nodes of depth 3", "made depth 2"),
    "deep_futility": Technique("nodes", "cut"),
    "quiet_shortcut": Technique("futile nodes", "quiet moves not generated"),
    "null_move": Technique("null moves searched", "cut the node"),
    "null_verify": Technique("null moves verified", "found wrong"),
    "reverse_futility": Technique("nodes", "cut"),
    "razoring": Technique("nodes", "left to quiescence"),
    "probcut": Technique("nodes tried with captures", "cut"),
    "iid": Technique("nodes searched for a move", "found one"),
    "iir": Technique("nodes without a table move", "a ply less deep"),
    "singular": Technique("table moves left out", "extended"),
    "multicut": Technique("such searches finished", "cut the node"),
    "check_extension": Technique("moves that give check", "a ply deeper"),
    "lmr": Technique("moves reduced", "not searched again"),
    "lmp": Technique("quiet moves", "left out"),
    "history_pruning": Technique("quiet moves", "left out"),
    "move_futility": Technique("quiet moves", "left out"),
    "see_quiets": Technique("quiet moves", "left out"),
    "see_captures": Technique("captures", "left out"),
    "see_quiescence": Technique("captures in quiescence", "left out"),
    "delta": Technique("captures in quiescence", "left out"),
    "sound": Technique("moves", "left out"),
    "sound_delta": Technique("captures in quiescence", "left out"),
}
