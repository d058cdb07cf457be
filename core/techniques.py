"""The techniques of selective search that are counted: a number for the kernels, and what the counts mean."""

from __future__ import annotations

from typing import NamedTuple


class Technique(NamedTuple):
    """What a worker counts as tried, and as pruned (reduced, extended)."""

    tried: str
    pruned: str


TECHNIQUES: dict[str, Technique] = {}
"""By name, in the order of their numbers."""


def _technique(name: str, tried: str, pruned: str) -> int:
    """Declare the next one; returns its number."""
    TECHNIQUES[name] = Technique(tried, pruned)
    return len(TECHNIQUES) - 1


FUTILITY = _technique("futility", "moves at futile nodes of depth 1", "left out")
EXTENDED_FUTILITY = _technique("extended_futility", "moves at futile nodes of depth 2", "left out")
LIMITED_RAZORING = _technique("limited_razoring", "nodes of depth 3", "made depth 2")
DEEP_FUTILITY = _technique("deep_futility", "nodes", "cut")
QUIET_SHORTCUT = _technique("quiet_shortcut", "futile nodes", "quiet moves not generated")
NULL_MOVE_PRUNING = _technique("null_move", "null moves searched", "cut the node")
NULL_VERIFY = _technique("null_verify", "null moves verified", "found wrong")
REVERSE_FUTILITY = _technique("reverse_futility", "nodes", "cut")
MATE_IN_ONE = _technique("mate_in_one", "nodes about to be cut", "not cut, for one threatens")
RAZORING = _technique("razoring", "nodes", "left to quiescence")
PROBCUT = _technique("probcut", "nodes tried with captures", "cut")
IID = _technique("iid", "nodes searched for a move", "found one")
IIR = _technique("iir", "nodes without a table move", "a ply less deep")
SINGULAR = _technique("singular", "table moves left out", "extended")
MULTICUT = _technique("multicut", "such searches finished", "cut the node")
CHECK_EXTENSION = _technique("check_extension", "moves that give check", "a ply deeper")
LMR = _technique("lmr", "moves reduced", "not searched again")
LMP = _technique("lmp", "quiet moves", "left out")
HISTORY_PRUNING = _technique("history_pruning", "quiet moves", "left out")
MOVE_FUTILITY = _technique("move_futility", "quiet moves", "left out")
SEE_QUIETS = _technique("see_quiets", "quiet moves", "left out")
SEE_CAPTURES = _technique("see_captures", "captures", "left out")
SEE_QUIESCENCE = _technique("see_quiescence", "captures in quiescence", "left out")
DELTA = _technique("delta", "captures in quiescence", "left out")
SOUND = _technique("sound", "moves", "left out")
SOUND_DELTA = _technique("sound_delta", "captures in quiescence", "left out")

TECHNIQUE_NAMES = tuple(TECHNIQUES)
