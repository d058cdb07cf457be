"""Positions for the tests of selective search, and probes of one decision at a time."""

from __future__ import annotations

from dataclasses import replace

import chess
import numpy as np
from inspect_pruning import PruningProbe

from psearch_core.chess.board.bridge import from_chess_move
from psearch_core.records.pruning_record import PLAIN, Pruning

QUIET = "r2q1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2NP1N2/PPP2PPP/R1BQ1RK1 w - - 0 8"
"""Nothing hangs, both have all kinds of pieces, and there are checks and captures to tell apart."""
PAWNS = "4k3/pppp4/8/8/8/8/4PPPP/4K3 w - - 0 1"
ONE_PIECE = "4k3/pppp4/8/8/8/8/4PPPP/4K1N1 w - - 0 1"
IN_CHECK = "4k3/8/8/8/7b/8/8/4K2R w - - 0 1"
GAINS = [
    (QUIET, "a2a3", 0),
    (QUIET, "c3b5", 0),
    ("r3k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "e4d5", 100),
    ("r3k3/8/8/3n4/4P3/8/8/4K3 w - - 0 1", "e4d5", 300),
    ("r3k3/8/8/3b4/4P3/8/8/4K3 w - - 0 1", "e4d5", 300),
    ("r3k3/8/8/3r4/4P3/8/8/4K3 w - - 0 1", "e4d5", 500),
    ("r3k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1", "e4d5", 900),
    ("r2k4/8/6N1/3Pp3/8/8/3K4/n7 w - e6 0 1", "d5e6", 100),
    ("8/2P5/k7/8/8/8/8/4K3 w - - 0 1", "c7c8r", 400),
    ("1r6/2P5/k7/8/8/8/8/4K3 w - - 0 1", "c7b8n", 700),
    ("8/2P5/k7/8/8/8/8/4K3 w - - 0 1", "c7c8b", 200),
]
"""Moves, and what they gain by themselves: piece taken, and pawn become piece. Black has enough to win after them."""

MARGINS_BY_HAND = {
    "null_depth_divisor": 5,
    "reverse_futility_margin": 80,
    "razoring_margin": 250,
    "singular_depth": 8,
    "double_margin": 25,
    "lmr_base": 100,
    "lmr_history": 8192,
    "lmr_tt_capture": 100,
    "lmp_base": 4,
    "see_depth": 8,
    "delta_margin": 200,
    "correction_slowness": 4,
    "correction_pawns": 40,
    "correction_pieces": 40,
    "null_eval_divisor": 200,
    "reverse_futility_depth": 8,
    "iir_depth": 4,
    "singular_negative": 1,
    "lmr_depth": 3,
    "lmr_cutoffs": 150,
    "history_pruning_margin": 4000,
    "check_extension_depth": 999,
    "history_linear": 0,
    "history_malus": 100,
    "history_threats": 0,
    "move_futility_base": 100,
    "move_futility_margin": 100,
}
"""Margins tuned for the handcrafted evaluation (docs/decisions/trials.md)."""


def with_only(**values: int) -> Pruning:
    """Plain, but for what is named."""
    return replace(PLAIN, **values)


def probe_of(tables: np.ndarray, fen: str, pruning: Pruning | None = None, **values: int) -> PruningProbe:
    return PruningProbe(tables, pruning or with_only(**values), chess.Board(fen))


def code(fen: str, uci: str) -> int:
    return from_chess_move(chess.Move.from_uci(uci), chess.Board(fen))


def base_of(probe: PruningProbe, by_material: int) -> int:
    return probe.material() if by_material else probe.evaluate()


def searched_one(probe: PruningProbe, depth: int, alpha: int, done: int = 1, **fields: int) -> None:
    """The node after a move that was searched and did not raise alpha."""
    probe.enter(depth, alpha, None, best=alpha - 100, moves_done=done, **fields)
