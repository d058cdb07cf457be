"""Attack tables against walked rays and python-chess, lines between squares, and the path without pext."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import chess
import numpy as np
import pytest
from inspect_position import Probe, attacks_bb
from naive import ray_attacks
from positions import sample

from psearch_core.chess.board.magics import BISHOP_MAGICS, ROOK_MAGICS
from psearch_core.constants import BISHOP, KING, KNIGHT, QUEEN, ROOK

OCCUPANCIES = 300
"""per square and piece"""


def random_occupancies(seed: int) -> list[int]:
    """Empty, full, and random ones from sparse to dense."""
    dice = random.Random(seed)
    drawn = [0, chess.BB_ALL]
    for _ in range(OCCUPANCIES):
        occupied_bb = dice.getrandbits(64)
        for _ in range(dice.randrange(3)):
            occupied_bb &= dice.getrandbits(64)
        drawn.append(occupied_bb)
    return drawn


@pytest.mark.parametrize("piece", [BISHOP, ROOK, QUEEN])
def test_sliders_equal_walked_rays(tables, piece):
    for square in range(64):
        for occupied_bb in random_occupancies(square):
            expected = ray_attacks(piece, square, occupied_bb)
            assert attacks_bb(tables, piece, square, occupied_bb) == expected, (square, hex(occupied_bb))


@pytest.mark.parametrize("piece", [KNIGHT, BISHOP, ROOK, QUEEN, KING])
def test_attacks_equal_python_chess(tables, piece):
    for square in range(64):
        for occupied_bb in random_occupancies(-square)[:12]:
            board = chess.Board(None)
            for other in chess.SquareSet(occupied_bb):
                board.set_piece_at(other, chess.Piece(chess.PAWN, chess.BLACK))
            board.set_piece_at(square, chess.Piece(piece + 1, chess.WHITE))
            assert attacks_bb(tables, piece, square, occupied_bb) == board.attacks_mask(square)


def test_squares_that_a_side_attacks_equal_python_chess(tables):
    for board in sample(51, 300):
        probe = Probe(tables, board)
        for side, color in enumerate((chess.WHITE, chess.BLACK)):
            attacked_bb = 0
            for square in chess.SquareSet(board.occupied_co[color]):
                attacked_bb |= board.attacks_mask(square)
            assert probe.attacked_by(side) == attacked_bb, board.fen()


def test_pawns_attack_as_in_python_chess(tables):
    for side, color in enumerate((chess.WHITE, chess.BLACK)):
        for square in range(64):
            assert int(tables[0]["pawn"][side][square]) == chess.BB_PAWN_ATTACKS[color][square]


def test_a_piece_without_attack_table_is_an_error(tables):
    with pytest.raises(ValueError, match="piece 0"):
        attacks_bb(tables, 0, 0, 0)


def test_between_and_line_equal_python_chess(tables):
    for a in range(64):
        for b in range(64):
            assert int(tables[0]["between"][a * 64 + b]) == chess.between(a, b), (a, b)
            assert int(tables[0]["line"][a * 64 + b]) == chess.ray(a, b), (a, b)


def test_pawn_masks(tables):
    for square in range(64):
        file, rank = chess.square_file(square), chess.square_rank(square)
        beside = 0
        for other in (file - 1, file + 1):
            beside |= chess.BB_FILES[other] if 0 <= other < 8 else 0
        higher = sum(chess.BB_RANKS[rank + 1 :])
        lower = sum(chess.BB_RANKS[:rank])
        assert int(tables[0]["neighbours"][file]) == beside
        for side, ahead in enumerate((higher, lower)):
            assert int(tables[0]["front"][side][square]) == chess.BB_FILES[file] & ahead
            assert int(tables[0]["passed"][side][square]) == (chess.BB_FILES[file] | beside) & ahead


def subsets(mask_bb: int) -> np.ndarray:
    chosen = np.zeros(1, dtype=np.uint64)
    for square in chess.SquareSet(mask_bb):
        chosen = np.concatenate([chosen, chosen | np.uint64(1 << square)])
    return chosen


MAGICS = [(ROOK, ROOK_MAGICS, "rook_mask"), (BISHOP, BISHOP_MAGICS, "bishop_mask")]


@pytest.mark.parametrize(("piece", "magics", "mask"), MAGICS, ids=["rook", "bishop"])
def test_magics_give_each_attack_set_slots_of_its_own(tables, piece, magics, mask):
    assert len(magics) == 64
    for square in range(64):
        mask_bb = int(tables[0][mask][square])
        occupied = subsets(mask_bb)
        bits = mask_bb.bit_count()
        slots = (occupied * np.uint64(magics[square])) >> np.uint64(64 - bits)
        assert int(slots.max()) < 1 << bits
        found = [attacks_bb(tables, piece, square, int(subset)) for subset in occupied]
        attacks = np.array(found, dtype=np.uint64)
        by_slot = np.zeros(1 << bits, dtype=np.uint64)
        by_slot[slots] = attacks
        assert np.array_equal(by_slot[slots], attacks), square


_WITHOUT_PEXT = """
import chess, numpy as np
from psearch_core.chess import tables
from psearch_core.chess.chess_entries import perft
from psearch_core.chess.board.bridge import set_position
from psearch_core.toolchain.intrinsics import HAS_PEXT
from psearch_core.records import frame_dtype
assert not HAS_PEXT
tb = tables.make_tables()
frames = np.zeros(5, frame_dtype)
set_position(tb, frames["position"][:1], chess.Board({fen!r}))
print(perft(tb.ctypes.data, frames.ctypes.data, 4))
"""


@pytest.mark.slow
def test_perft_without_pext(tmp_path: Path) -> None:
    fen = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
    environment = {**os.environ, "PSEARCH_NO_PEXT": "1", "PSEARCH_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_PEXT.format(fen=fen)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4085603"]
