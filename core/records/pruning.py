"""Selective search: what is counted, the gates of sound futility, switches and margins."""

from __future__ import annotations

from psearch.core.records.layout import record

TECHNIQUE_NAMES = (
    "futility",
    "extended_futility",
    "limited_razoring",
    "deep_futility",
    "quiet_shortcut",
    "null_move",
    "null_verify",
    "reverse_futility",
    "razoring",
    "probcut",
    "iid",
    "iir",
    "singular",
    "multicut",
    "check_extension",
    "lmr",
    "lmp",
    "history_pruning",
    "move_futility",
    "see_quiets",
    "see_captures",
    "see_quiescence",
    "delta",
    "sound",
    "sound_delta",
)
"""What workers count: tried, and pruned (reduced, extended). In the order of the constants of `core/pruning.py`."""
TECHNIQUES = 32
"""Room for them."""

# Gates of sound futility (`core/sound.py`), bits of `sound_gates`: together they make it sound
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

pruning_dtype = record(
    [
        # Switches are 1 or 0, margins centipawns, depths plies. What each technique does: `core/pruning.py`
        ("futility", "i4"),
        ("futility_margin", "i4"),
        ("extended_futility", "i4"),
        ("extended_futility_margin", "i4"),
        ("limited_razoring", "i4"),
        ("limited_razoring_margin", "i4"),
        ("futility_by_material", "i4"),  # 1: margins are added to material and piece-square sum; 0: to the evaluation
        ("futility_captures", "i4"),  # 1: captures are futile too, with what they take added
        ("exempt_checks", "i4"),
        ("exempt_seventh", "i4"),
        ("exempt_bishop_pair", "i4"),
        ("exempt_advanced_pawn", "i4"),
        ("exempt_queen", "i4"),
        ("quiet_shortcut", "i4"),
        ("deep_futility", "i4"),
        ("deep_futility_margin", "i4"),
        ("null_move", "i4"),
        ("null_adaptive", "i4"),  # 1: Heinz's R; 0: the formula of the three fields that follow
        ("null_base", "i4"),
        ("null_depth_divisor", "i4"),
        ("null_eval_divisor", "i4"),
        ("null_verify", "i4"),
        ("null_verify_depth", "i4"),
        ("reverse_futility", "i4"),
        ("reverse_futility_depth", "i4"),
        ("reverse_futility_margin", "i4"),  # per ply
        ("reverse_futility_net", "i4"),  # 1: not with the king in a mating net
        ("reverse_futility_net_depth", "i4"),
        ("razoring", "i4"),
        ("razoring_depth", "i4"),
        ("razoring_margin", "i4"),  # per ply
        ("probcut", "i4"),
        ("probcut_depth", "i4"),
        ("probcut_margin", "i4"),
        ("iid", "i4"),
        ("iid_depth", "i4"),
        ("iir", "i4"),
        ("iir_depth", "i4"),
        ("singular", "i4"),
        ("singular_depth", "i4"),
        ("singular_margin", "i4"),  # per ply
        ("double_margin", "i4"),  # below the singular bound, from which the move gets two plies
        ("check_extension", "i4"),  # 1: checks that lose nothing; 2: all checks
        ("lmr", "i4"),
        ("lmr_base", "i4"),  # reduction = base + ln(depth) ln(move number) / divisor, both in 1/100 ply
        ("lmr_divisor", "i4"),
        ("lmr_history", "i4"),  # history that is worth a ply
        ("lmp", "i4"),
        ("lmp_depth", "i4"),
        ("lmp_base", "i4"),
        ("history_pruning", "i4"),
        ("history_pruning_depth", "i4"),
        ("history_pruning_margin", "i4"),  # history per ply
        ("move_futility", "i4"),
        ("move_futility_depth", "i4"),
        ("move_futility_base", "i4"),
        ("move_futility_margin", "i4"),  # per ply of reduced depth
        ("see_quiets", "i4"),
        ("see_quiets_margin", "i4"),  # per ply squared
        ("see_captures", "i4"),
        ("see_captures_margin", "i4"),  # per ply
        ("see_depth", "i4"),
        ("delta", "i4"),
        ("delta_margin", "i4"),
        ("table_in_quiescence", "i4"),  # 1: quiescence reads and writes the transposition table
        ("sound", "i4"),  # 1: sound futility at frontier nodes
        ("sound_delta", "i4"),  # 1: the same in quiescence
        ("sound_gates", "i4"),  # SOUND_GATES; tests leave some out
        ("reductions", "i2", (REDUCTIONS, REDUCTIONS)),  # by depth and move number, in 1/256 ply; derived
    ]
)
