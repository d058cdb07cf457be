"""Move generation against published counts, and against python-chess move by move."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import chess
import numpy as np
import pytest
from inspect_position import Probe
from paths import DATA as ALL_DATA

from psearch_core.chess.board.bridge import from_chess_move, set_position, to_chess_move
from psearch_core.chess.chess_entries import perft
from psearch_core.constants import KIND_CASTLE, KIND_EP, KIND_PROMOTE
from psearch_core.records import frame_dtype

DATA = ALL_DATA / "perft"
SUITES = sorted(path.name for path in DATA.glob("*.epd"))
NODE_BUDGET = 1_000_000
"""Largest count that a line is checked to: about 1.5 G nodes in all, most of them in random_marcel_6838.epd."""
LARGER_BUDGET = 4_000_000
"""Largest count of the slow test: 3 G nodes more."""
DETAILS_BUDGET = 50_000

TRICKY = {
    "kiwipete": "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "promotions": "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "en passant pinned on its rank": "8/8/8/K1Pp3r/8/8/8/4k3 w - d6 0 1",
    "double check": "8/5kpp/8/8/1p3P2/6PP/r3KP2/1R1q4 w - - 0 1",
}


def read_suite(name: str) -> Iterator[tuple[chess.Board, dict[int, int]]]:
    """Boards and counts by depth from lines such as `FEN ;D1 20 ;D2 400`."""
    for line in (DATA / name).read_text().splitlines():
        fen, *counts = re.split(r"\s*;D", line)
        yield chess.Board(fen, chess960=True), dict(tuple(map(int, item.split())) for item in counts)


def count_leaves(tables: np.ndarray, board: chess.Board, depth: int) -> int:
    frames = np.zeros(depth + 1, frame_dtype)
    set_position(tables, frames["position"][:1], board)
    return int(perft(tables.ctypes.data, frames.ctypes.data, depth))


def divide(tables: np.ndarray, board: chess.Board, depth: int) -> dict[str, int]:
    counts = {}
    root = Probe(tables, board)
    for move in root.legal_moves():
        child = root.copy()
        child.play(move)
        frames = np.zeros(depth, frame_dtype)
        frames[0]["position"] = child.record
        counts[to_chess_move(move, board).uci()] = int(perft(tables.ctypes.data, frames.ctypes.data, depth - 1))
    return counts


def naive_count(board: chess.Board, depth: int) -> int:
    if depth == 0:
        return 1
    total = 0
    for move in board.legal_moves:
        board.push(move)
        total += naive_count(board, depth - 1)
        board.pop()
    return total


@pytest.mark.parametrize("suite", SUITES)
def test_published_counts(tables, suite):
    assert check_counts(tables, suite, 0, NODE_BUDGET) > 0


@pytest.mark.slow
def test_larger_published_counts(tables):
    assert sum(check_counts(tables, suite, NODE_BUDGET, LARGER_BUDGET) for suite in SUITES) > 1000


def check_counts(tables: np.ndarray, suite: str, above: int, most: int) -> int:
    """Compare the counts between these bounds; how many there were."""
    wrong = []
    checked = 0
    for number, (board, counts) in enumerate(read_suite(suite), start=1):
        for depth, expected in counts.items():
            if above < expected <= most:
                checked += 1
                counted = count_leaves(tables, board, depth)
                if counted != expected:
                    wrong.append(f"line {number}, depth {depth}: {counted}, not {expected}: {board.fen()}")
    assert not wrong
    return checked


def test_depth_zero_is_one_leaf(tables):
    assert count_leaves(tables, chess.Board(), 0) == 1


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_legal_move_no_leaves(tables, depth):
    mate = chess.Board("R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1")
    stalemate = chess.Board("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1")
    assert count_leaves(tables, mate, depth) == 0
    assert count_leaves(tables, stalemate, depth) == 0


@pytest.mark.parametrize("name", TRICKY)
def test_divide_equals_python_chess(tables, name):
    board = chess.Board(TRICKY[name])
    expected = {}
    for move in board.legal_moves:
        board.push(move)
        expected[move.uci()] = naive_count(board, 1)
        board.pop()
    assert divide(tables, board, 2) == expected


def test_divide_adds_up(tables):
    board = chess.Board(TRICKY["kiwipete"])
    assert sum(divide(tables, board, 4).values()) == count_leaves(tables, board, 4) == 4_085_603


_DETAILS = ("nodes", "captures", "ep", "castles", "promotions", "checks", "double_checks", "checkmates")


def leaf_details(probe: Probe, depth: int) -> Counter[str]:
    """Count the kinds of the last ply's moves, from move kinds and from the incremental checkers."""
    found: Counter[str] = Counter()
    for move in probe.legal_moves():
        child = probe.copy()
        child.play(move)
        if depth > 1:
            found += leaf_details(child, depth - 1)
            continue
        kind = move >> 12
        takes = kind != KIND_CASTLE and probe.record["board"][move >> 6 & 63] != 0
        checkers = int(child.record["checkers"]).bit_count()
        found["nodes"] += 1
        found["captures"] += bool(takes or kind == KIND_EP)
        found["ep"] += kind == KIND_EP
        found["castles"] += kind == KIND_CASTLE
        found["promotions"] += kind >= KIND_PROMOTE
        found["checks"] += checkers > 0
        found["double_checks"] += checkers > 1
        found["checkmates"] += checkers > 0 and child.count_moves() == 0
    return found


def read_details() -> Iterator[Any]:
    with open(DATA / "standard6_cpw_details.tsv", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            depth = int(row["depth"])
            published = {name: int(row[name]) for name in _DETAILS if (row[name] or "").isdigit()}
            if depth >= 1 and published["nodes"] <= DETAILS_BUDGET:
                yield pytest.param(row["fen"], depth, published, id=f"{row['position']}, depth {depth}")


@pytest.mark.parametrize(("fen", "depth", "published"), list(read_details()))
def test_published_kinds_of_moves(tables, fen, depth, published):
    found = leaf_details(Probe(tables, chess.Board(fen)), depth)
    assert {name: found[name] for name in published} == published


def test_move_codes_survive_the_round_trip(tables):
    for suite in ("standard6_cpw.epd", "fischer_960_ethereal.epd", "tricky_shakmaty.epd"):
        for board, _ in read_suite(suite):
            for move in Probe(tables, board).legal_moves():
                assert from_chess_move(to_chess_move(move, board), board) == move
