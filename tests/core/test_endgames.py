"""Endings: what is won is really won, what is drawn is near nothing, and scaling goes towards zero only."""

from __future__ import annotations

import random
from collections.abc import Iterator

import chess
import chess.syzygy
import pytest
from inspect_node import NodeProbe
from paths import DATA

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import work
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.chess.tables import make_tables


@pytest.fixture(scope="module")
def probe() -> NodeProbe:
    return NodeProbe(make_tables())


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    made = Arena(workers=1, hash_mb=8)
    yield made
    made.close()


def value(probe: NodeProbe, fen: str) -> int:
    """E, White's view."""
    board = chess.Board(fen)
    assert board.is_valid(), fen
    probe.set(board)
    return probe.evaluate() if board.turn else -probe.evaluate()


def scattered(pieces: str, dice: random.Random, turn: chess.Color = chess.WHITE) -> chess.Board:
    """A valid position, not over, with pieces (`KQk`) on random squares; bishops of a pair on both colours."""
    while True:
        board = chess.Board(None)
        for square, letter in zip(dice.sample(range(64), len(pieces)), pieces, strict=True):
            board.set_piece_at(square, chess.Piece.from_symbol(letter))
        board.turn = turn
        bishops = board.pieces_mask(chess.BISHOP, chess.WHITE)
        one_colour = bishops.bit_count() == 2 and not (
            bishops & chess.BB_LIGHT_SQUARES and bishops & chess.BB_DARK_SQUARES
        )
        if board.is_valid() and not board.is_game_over() and not one_colour:
            return board


def test_king_and_pawn_against_king(probe: NodeProbe) -> None:
    """Every position that is a draw by table is worth 0, every won one three pawns or more."""
    dice = random.Random(3)
    drawn = 0
    with chess.syzygy.open_tablebase(str(DATA / "syzygy")) as tables:
        for _ in range(4_000):
            board = scattered("KPk", dice, dice.choice(chess.COLORS))
            won = tables.probe_wdl(board) != 0
            if dice.random() < 0.5:
                board = board.mirror()
            probe.set(board)
            worth = probe.evaluate() if board.turn == bool(board.pieces_mask(chess.PAWN, True)) else -probe.evaluate()
            assert worth >= 300 if won else worth == 0, board.fen()
            drawn += not won
    assert 700 < drawn < 3300


@pytest.mark.parametrize(
    ("pieces", "games", "nodes"), [("KQk", 6, 10_000), ("KRk", 6, 10_000), ("KBBk", 5, 10_000), ("KBNk", 3, 100_000)]
)
def test_won_endings_are_won(arena: Arena, pieces: str, games: int, nodes: int) -> None:
    """They are won from anywhere, with this many nodes a move, before the fifty-move rule, and without losing the
    piece."""
    dice = random.Random(pieces)
    options = SearchOptions(policy="serial")
    for _ in range(games):
        board = scattered(pieces, dice)
        start = board.fen()
        arena.forget()
        while not (board.is_game_over() or board.is_fifty_moves() or board.is_repetition(3)):
            write_search(arena, board, Limits(nodes=nodes if board.turn else 2_000), options)
            while not work(arena.context, 0, 1 << 20):
                continue
            board.push(to_chess_move(int(arena.header[0]["best_move"]), board))
        assert board.is_checkmate(), f"{start}: {board.fen()} after {board.ply()} plies"
        assert not board.turn


@pytest.mark.parametrize(
    ("fen", "most"),
    [
        ("8/8/4k3/8/8/3NNK2/8/8 w - - 0 1", 0),  # two knights cannot force mate
        ("8/8/4k3/8/8/3BK3/7p/8 w - - 0 1", 0),  # a minor piece alone can only draw
        ("8/8/4k3/6b1/8/5KR1/8/8 w - - 0 1", 60),  # rook against bishop
        ("8/8/4k3/3n4/8/5KR1/8/8 w - - 0 1", 60),
        ("8/8/4k3/3r4/8/5KR1/5B2/8 w - - 0 1", 130),  # rook and bishop against rook
        ("7k/8/6K1/7P/8/8/4B3/8 w - - 0 1", 0),  # the bishop misses the corner
        ("7k/8/6K1/7P/7P/8/8/8 w - - 0 1", 0),  # rook pawns alone
        ("k7/8/1K6/P7/8/8/5B2/8 w - - 0 1", 0),
        ("8/8/3k1b2/8/3PB3/4K3/8/8 w - - 0 1", 60),  # bishops of different colours
    ],
)
def test_drawish_endings_are_near_nothing(probe: NodeProbe, fen: str, most: int) -> None:
    board = chess.Board(fen)
    assert 0 <= value(probe, fen) <= most
    assert -most <= value(probe, board.mirror().fen()) <= 0


@pytest.mark.parametrize(
    ("won", "drawn"),
    [
        ("k7/8/1K6/P7/8/8/4B3/8 w - - 0 1", "7k/8/6K1/7P/8/8/4B3/8 w - - 0 1"),  # the right bishop
        ("8/8/4k3/6b1/8/5KQ1/8/8 w - - 0 1", "8/8/4k3/6b1/8/5KR1/8/8 w - - 0 1"),  # a queen is enough
        ("8/5k2/4b3/8/3PB3/3PK3/8/8 w - - 0 1", "8/5k2/5b2/8/3PB3/3PK3/8/8 w - - 0 1"),  # same colour or not
    ],
)
def test_only_the_drawn_one_is_scaled(probe: NodeProbe, won: str, drawn: str) -> None:
    assert value(probe, won) > 2 * value(probe, drawn) + 50


def test_bare_kings_are_driven(probe: NodeProbe) -> None:
    """Nearer to the edge, nearer to each other, and to the right corner."""
    assert value(probe, "7k/8/8/8/8/8/3R4/3K4 w - - 0 1") > value(probe, "8/8/8/4k3/8/8/3R4/3K4 w - - 0 1")
    assert value(probe, "7k/8/6K1/8/8/8/3R4/8 w - - 0 1") > value(probe, "7k/8/8/8/8/8/3R4/3K4 w - - 0 1")
    right, wrong = (
        "7k/8/6K1/8/8/2N5/3B4/8 w - - 0 1",
        "k7/8/1K6/8/8/5N2/3B4/8 w - - 0 1",
    )  # the bishop is on dark squares
    assert value(probe, right) > value(probe, wrong) + 100
