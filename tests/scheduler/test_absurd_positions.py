"""Positions that can be set up by the rules and that no game reaches: every policy searches them right."""

from __future__ import annotations

import random
from dataclasses import replace

import chess
import numpy as np
import pytest
from inspect_position import Probe
from naive import NaiveSearch
from round_robin_entries import run_interleaved, step_worker
from serial import found, search

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, leftovers, violations
from psearch.defaults import POLICY_NAMES
from psearch.options import SearchOptions
from psearch.processes.perft_tasks import count_leaves
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.text.fen import parse_position
from psearch_core.constants import NO_SCORE
from psearch_core.records import MAX_MOVES, MAX_PLY, node_dtype
from psearch_core.records.layout import offset_of
from psearch_core.records.pruning_record import MODES, PARAMETERS

MOST_MOVES = "kn2QQ2/nnQ4Q/Q3Q3/1Q4Q1/3Q4/Q4Q2/2Q4Q/1K2QQ1n w - - 0 1"
ABSURD = {
    "15 queens, 238 moves": MOST_MOVES,
    "218 moves": "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",
    "9 knights": "4k3/8/1NNN4/1NNN4/1NNN4/8/PPPPPP2/4K3 b - - 0 1",
    "12 bishops each": "bbbbkbbb/bbbbb3/8/8/8/8/3BBBBB/BBBBKBBB w - - 0 1",
    "10 rooks against 8 pawns": "4k3/pppppppp/8/8/8/8/2RRRRR1/K1RRRRR1 w - - 0 1",
    "8 promotions": "1n1n1n1n/P1P1P1P1/8/k7/7K/8/p1p1p1p1/1N1N1N1N b - - 0 1",
    "14 queens each": "qqqqkqqq/1qqqqqqq/8/8/8/8/1QQQQQQQ/QQQQKQQQ w - - 0 1",
    "8 queens each": "qqqqkqqq/2qqqq2/8/8/8/8/2QQQQ2/QQQQKQQQ w - - 0 1",
    "10 rooks each": "rnbqkbnr/rrrrrrrr/8/8/8/8/RRRRRRRR/RNBQKBNR w KQkq - 0 1",
    "all kinds": "k7/bnrqnbr1/bnrqnbrq/8/8/BNRQNBRQ/BNRQNBR1/7K w - - 0 1",
    "queens among queens": "q1q1q1q1/1q1q1k1q/Q1q1q1q1/1Q1Q1q1q/q1Q1Q1Q1/1q1Q1Q1Q/Q1Q1K1Q1/1Q1Q1q1Q w - - 0 1",
    "en passant that cannot have been": "8/8/8/2k5/3Pp3/8/8/4K2B b - d3 0 1",
}
MOST_NODES = 100_000
"""Most nodes of a first iteration, whatever stands on the board."""
WORKERS = 3
MAX_TURNS = 20_000_000


@pytest.fixture(scope="module")
def arena() -> Arena:
    load_kernels()
    return Arena(WORKERS, 1)


@pytest.mark.parametrize("name", ABSURD)
def test_their_moves_are_those_of_python_chess(name: str, tables: np.ndarray) -> None:
    board = parse_position(ABSURD[name])
    probe = Probe(tables, board)
    assert probe.count_moves() == len(probe.legal_moves()) == board.legal_moves.count() <= MAX_MOVES
    for move in list(board.legal_moves)[::7]:
        board.push(move)
        assert Probe(tables, board).count_moves() == board.legal_moves.count()
        board.pop()


def test_perft_has_room_for_positions_that_are_refused_elsewhere(tables: np.ndarray) -> None:
    """More than 16 pieces: the list of moves may run on into the line behind it, which perft does not use."""
    board = parse_position("kBQQQQQQ/BR5Q/Q6Q/Q6Q/Q6Q/Q6Q/Q6Q/KQQQQQQQ w - - 0 1", strict=False)
    assert Probe(tables, board).count_moves() == board.legal_moves.count() == 270 > MAX_MOVES
    room = MAX_MOVES + MAX_PLY
    assert offset_of(node_dtype, "pv") == offset_of(node_dtype, "moves") + 4 * MAX_MOVES
    assert node_dtype.itemsize >= offset_of(node_dtype, "moves") + 4 * room
    divide, _ = count_leaves(board, 2, 1)
    assert len(divide) == 270
    for move, nodes in divide.items():
        board.push(move)
        assert nodes == board.legal_moves.count()
        board.pop()


def crowded(dice: random.Random) -> chess.Board:
    """A valid position of 16 men a side, pawns of which any number have become pieces: all over the board, or face to
    face."""
    while True:
        board = chess.Board(None)
        kinds = dice.choice(((5,), (4,), (3,), (2,), (4, 5), (3, 5), (2, 3, 4, 5)))
        apart = dice.random() < 0.6
        for colour in chess.COLORS:
            promoted = dice.choice((0, 4, 8, 8))
            men = [6, 5, 4, 4, 3, 3, 2, 2, *(dice.choice(kinds) for _ in range(promoted)), *[1] * (8 - promoted)]
            for kind in men:
                squares = range(8, 56) if kind == 1 else range(64)
                mine = [square for square in squares if not apart or (square < 32) == colour]
                free = [square for square in mine if board.piece_at(square) is None]
                if free:
                    board.set_piece_at(dice.choice(free), chess.Piece(kind, colour))
        board.turn = dice.choice(chess.COLORS)
        if board.is_valid() and not board.is_game_over():
            return board


@pytest.mark.parametrize("mode", MODES)
def test_the_first_iteration_ends_soon_whatever_stands_on_the_board(mode: str, arena: Arena) -> None:
    dice = random.Random(mode)
    options = SearchOptions(policy="serial", pruning=MODES[mode])
    for board in [parse_position(fen) for fen in ABSURD.values()] + [crowded(dice) for _ in range(150)]:
        arena.forget()
        ended = search(arena, board, Limits(depth=1, nodes=2 * MOST_NODES), options)
        assert ended.depth == 1 and ended.nodes <= MOST_NODES, board.fen()


@pytest.mark.parametrize("name", ABSURD)
def test_plain_mode_has_the_value_of_naive_negamax(name: str, arena: Arena) -> None:
    """It is the same where quiescence runs out of positions: each of its moves gets the same share in any order."""
    board = parse_position(ABSURD[name])
    expected = NaiveSearch(arena.tables, max_nodes=20_000_000).value(board, 1)
    assert expected is not None
    assert search(arena, board, 1, SearchOptions.plain("serial")).score == expected


@pytest.mark.parametrize("name", ABSURD)
def test_every_policy_finds_the_value(name: str, arena: Arena) -> None:
    """There is no pruning, so that there is one value; many moves are put off."""
    board = parse_position(ABSURD[name])
    expected = search(arena, board, 1, SearchOptions.plain("serial")).score
    for seed, policy in enumerate(POLICY_NAMES):
        write_search(arena, board, Limits(depth=1), replace(SearchOptions.plain(policy), defer_depth=1))
        assert run_interleaved(arena.context, seed, 20, MAX_TURNS) >= 0, describe(arena)
        assert leftovers(arena) == []
        assert found(arena, board).score == expected, policy


@pytest.mark.parametrize("name", ABSURD)
def test_every_policy_ends_with_a_legal_move(name: str, arena: Arena) -> None:
    """`found` checks the moves."""
    board = parse_position(ABSURD[name])
    for seed, policy in enumerate(POLICY_NAMES):
        write_search(arena, board, Limits(nodes=3_000), SearchOptions(policy=policy, defer_depth=1))
        assert run_interleaved(arena.context, seed, 50, MAX_TURNS) >= 0, describe(arena)
        assert leftovers(arena) == []
        found(arena, board)


def test_deferred_moves_leave_room_for_all_others() -> None:
    """238 moves and the 32 that may be deferred do not fit into one list; with fewer workers it never comes to that."""
    load_kernels()
    arena = Arena(64, 1)
    options = replace(SearchOptions.plain("abdada"), defer_depth=1)
    write_search(arena, parse_position(MOST_MOVES), Limits(depth=2), options)
    most = 0
    for turn in range(1_000):
        for worker in range(arena.workers):
            step_worker(arena.context, worker, 20)
        nodes = arena.frames["node"][::MAX_PLY]  # the roots
        assert (nodes["deferred"] + nodes["end"]).max() <= MAX_MOVES
        most = max(most, int(nodes["deferred"].max()))
        if turn % 100 == 0:
            assert violations(arena) == []
    assert most == MAX_MOVES - 238


@pytest.mark.parametrize(
    ("technique", "margins"),
    [
        ("futility", ["futility_margin"]),
        ("extended_futility", ["extended_futility_margin"]),
        ("deep_futility", ["deep_futility_margin"]),
        ("reverse_futility", ["reverse_futility_margin"]),
        ("move_futility", ["move_futility_base", "move_futility_margin"]),
        ("delta", ["delta_margin"]),
    ],
)
def test_the_widest_margins_make_no_values_that_are_no_scores(technique: str, margins: list[str], arena: Arena) -> None:
    """A margin is added to a score, and the sum may become a value, which the table keeps in 16 bits."""
    for end in ("least", "most"):
        wide = {name: getattr(PARAMETERS[name], end) for name in margins}
        options = SearchOptions(policy="serial", pruning=replace(MODES["plain"], **{technique: 1}, **wide))
        arena.forget()
        write_search(arena, parse_position("startpos"), Limits(depth=4), options)
        for _ in range(1_000):
            step_worker(arena.context, 0, 3)
            assert abs(arena.frames["node"]["best"][:8]).max() <= abs(NO_SCORE), end
        assert run_interleaved(arena.context, 1, 50, MAX_TURNS) >= 0
