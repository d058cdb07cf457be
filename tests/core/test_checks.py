"""Checks, told before they are made and generated, and mates in one, seen from the king: compared with python-chess."""

from __future__ import annotations

from collections import Counter

import chess
import pytest
from inspect_pruning import PruningProbe
from positions import absurd, games

from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.chess.tables import make_tables
from psearch_core.constants import NO_MOVE
from psearch_core.records.pruning_record import PLAIN

# every way to give check, each with the moves that do
CASES = {
    # en passant uncovers the rook: both pawns leave the rank
    "8/8/8/R2pP2k/8/8/8/4K3 w - d6 0 1": {"e5d6"},
    # the capturing pawn leaves a diagonal; the captured one leaves it
    "8/6k1/8/3pP3/8/8/1B6/4K3 w - d6 0 1": {"e5d6", "e5e6"},
    "8/1k6/8/3pP3/8/8/6B1/4K3 w - d6 0 1": {"e5d6", "g2d5"},
    # the pawn that takes gives check itself
    "8/4k3/8/3pP3/8/8/8/4K3 w - d6 0 1": {"e5d6"},
    # each promotion but the bishop's; the knight forks
    "8/3P1k2/8/8/8/8/8/4K3 w - - 0 1": {"d7d8n"},
    "3k4/1P6/8/8/8/8/8/4K3 w - - 0 1": {"b7b8q", "b7b8r"},
    # a promotion whose line the pawn itself held closed
    "8/8/8/8/8/5k2/K2p4/8 b - - 0 1": set(),
    "8/1K6/8/8/8/8/1p2k3/8 b - - 0 1": {"b2b1q", "b2b1r"},
    # castling: the rook checks; in Chess960 also along the rank that the king leaves
    "5k2/8/8/8/8/8/8/4K2R w K - 0 1": {"e1g1", "h1f1", "h1h8"},
    "3k4/8/8/8/8/8/8/R3K3 w Q - 0 1": {"e1c1", "a1d1", "a1a8"},
    # the king uncovers the rook, but not along the line
    "4k3/8/8/8/4K3/8/8/4R3 w - - 0 1": {"e4d3", "e4d4", "e4d5", "e4f3", "e4f4", "e4f5"},
    # double check
    "4k3/8/8/8/8/4N3/8/4R2K w - - 0 1": {"e3c2", "e3c4", "e3d1", "e3d5", "e3f1", "e3f5", "e3g2", "e3g4"},
    # pinned: the knight's checks are illegal
    "4k3/8/8/8/4r3/8/4N3/4K3 w - - 0 1": set(),
}


@pytest.fixture(scope="module")
def probe() -> PruningProbe:
    return PruningProbe(make_tables(), PLAIN)


def kind_of_check(board: chess.Board, move: chess.Move) -> str:
    if board.is_castling(move):
        return "castling"
    if board.is_en_passant(move):
        return "en passant"
    if move.promotion:
        return "promotion"
    after = board.copy(stack=False)
    after.push(move)
    checkers = after.checkers()
    if len(checkers) > 1:
        return "double"
    return "direct" if move.to_square in checkers else "discovered"


def compare(board: chess.Board, probe: PruningProbe) -> Counter[str]:
    """Every legal move, and the two lists; returns the kinds of checks met."""
    probe.set(board)
    kinds: Counter[str] = Counter()
    quiet_checks, underpromotions = set(), set()
    for code in probe.legal_moves():
        move = to_chess_move(code, board)
        gives = board.gives_check(move)
        assert probe.gives_check(code) == gives, (board.fen(), move)
        if gives:
            kinds[kind_of_check(board, move)] += 1
            if not board.is_capture(move) and not move.promotion:
                quiet_checks.add(code)
        if move.promotion and move.promotion != chess.QUEEN:
            underpromotions.add(code)
    if not probe.in_check:
        listed = probe.quiet_checks()
        assert len(listed) == len(set(listed)) and set(listed) == quiet_checks, board.fen()
        kinds["generated"] += len(listed)
    listed = probe.underpromotions()
    assert len(listed) == len(set(listed)) and set(listed) == underpromotions, board.fen()
    kinds["underpromotions"] += len(listed)
    return kinds


@pytest.mark.parametrize("fen", CASES)
def test_each_way_to_give_check(probe: PruningProbe, fen: str) -> None:
    for board in (chess.Board(fen), chess.Board(fen).mirror()):
        compare(board, probe)
    board = chess.Board(fen)
    probe.set(board)
    given = {board.uci(to_chess_move(code, board)) for code in probe.legal_moves() if probe.gives_check(code)}
    assert given == CASES[fen]


@pytest.mark.parametrize("chess960", [False, True], ids=["standard", "chess960"])
def test_every_move_of_random_games(probe: PruningProbe, chess960: bool) -> None:
    kinds: Counter[str] = Counter()
    for number, board in enumerate(games(71 + chess960, 60, chess960)):
        if number % 2 == 0:
            kinds += compare(board, probe)
    assert kinds["direct"] > 2000 and kinds["discovered"] > 30 and kinds["double"] > 3
    assert kinds["promotion"] > 20 and kinds["generated"] > 1000 and kinds["underpromotions"] > 100


def test_absurd_boards(probe: PruningProbe) -> None:
    kinds: Counter[str] = Counter()
    for board in absurd(72, 400):
        kinds += compare(board, probe)
    assert kinds["discovered"] > 8 and kinds["double"] > 1 and kinds["generated"] > 300


def ep_boards() -> list[chess.Board]:
    """Lines through both pawns of an en passant capture, from every side: kings and sliders placed by force."""
    boards = []
    for king in chess.SQUARES:
        for slider in (chess.ROOK, chess.BISHOP, chess.QUEEN):
            for square in range(0, 64, 3):
                board = chess.Board("8/8/8/3pP3/8/8/8/8 w - - 0 1")
                board.set_piece_at(king, chess.Piece(chess.KING, chess.BLACK))
                if board.piece_at(square) is None:
                    board.set_piece_at(square, chess.Piece(slider, chess.WHITE))
                    home = chess.H1 if king not in (chess.G1, chess.G2, chess.H2, chess.H1) else chess.A8
                    if board.piece_at(home) is None:
                        board.set_piece_at(home, chess.Piece(chess.KING, chess.WHITE))
                        board.ep_square = chess.D6
                        if board.is_valid():
                            boards.append(board)
    return boards


def test_en_passant_from_every_side(probe: PruningProbe) -> None:
    kinds: Counter[str] = Counter()
    boards = ep_boards()
    for board in boards:
        kinds += compare(board, probe)
        kinds += compare(board.mirror(), probe)
    assert len(boards) > 1000 and kinds["en passant"] > 300


def castling_boards() -> list[chess.Board]:
    """Chess960 castling with the enemy king on every square."""
    boards = []
    for rights in ("5k2/8/8/8/8/8/8/1R2K1R1 w GB - 0 1", "8/8/8/8/8/8/8/RK6 w A - 0 1", "8/8/8/8/8/8/8/5KR1 w G - 0 1"):
        for square in range(16, 64):
            fields = rights.split()
            board = chess.Board(chess960=True)
            placement = chess.Board(None)
            placement.set_board_fen(fields[0].replace("5k2", "8"))
            placement.set_piece_at(square, chess.Piece(chess.KING, chess.BLACK))
            board.set_fen(f"{placement.board_fen()} {' '.join(fields[1:])}")
            if board.is_valid():
                boards.append(board)
    return boards


def test_castling_in_chess960(probe: PruningProbe) -> None:
    kinds: Counter[str] = Counter()
    for board in castling_boards():
        kinds += compare(board, probe)
    assert kinds["castling"] > 10


def mates(board: chess.Board) -> set[chess.Move]:
    found = set()
    for move in list(board.legal_moves):
        board.push(move)
        if board.is_checkmate():
            found.add(move)
        board.pop()
    return found


def is_left_out(board: chess.Board, move: chess.Move) -> bool:
    """Kinds of moves that are not looked at."""
    return (
        board.is_castling(move)
        or board.is_en_passant(move)
        or move.promotion in (chess.ROOK, chess.BISHOP)
        or (move.promotion is not None and chess.square_distance(move.from_square, board.king(not board.turn) or 0) < 3)
    )


def compare_mates(board: chess.Board, probe: PruningProbe) -> str:
    """Compare both sides; return how a mate was given, or an empty text."""
    if board.is_check() or board.is_game_over():
        return ""
    kind = ""
    for turn in (board.turn, not board.turn):
        moved = board.copy(stack=False)
        if turn != board.turn:
            moved.push(chess.Move.null())
        probe.set(board)
        code = probe.mate_in_one(turn)
        expected = mates(moved)
        if code == NO_MOVE:
            assert all(is_left_out(moved, move) for move in expected), (board.fen(), turn, expected)
            continue
        move = to_chess_move(code, moved)
        assert move in expected, (board.fen(), turn, move)
        after = moved.copy(stack=False)
        after.push(move)
        checkers = after.checkers()
        direct = move.to_square in checkers
        name = chess.piece_name(moved.piece_type_at(move.from_square) or 0)
        kind = "promotion" if move.promotion else name if direct else "discovered"
        if len(checkers) > 1:
            kind = "double"
    return kind


RARE = {
    "kbK5/p7/pP6/8/8/8/8/8 w - - 0 1": "pawn",
    "6rk/6p1/6bN/8/8/8/8/K6R w - - 0 1": "double",
    "k7/2P5/1K6/8/8/8/8/8 w - - 0 1": "promotion",
}


@pytest.mark.parametrize("fen", RARE)
def test_what_random_games_seldom_have(probe: PruningProbe, fen: str) -> None:
    for board in (chess.Board(fen), chess.Board(fen).mirror()):
        assert compare_mates(board, probe) == RARE[fen]


def test_both_sides_of_many_positions(probe: PruningProbe) -> None:
    kinds = Counter(compare_mates(board, probe) for board in games(81, 50))
    for board in absurd(900, 500):
        kinds[compare_mates(board, probe)] += 1
    kinds_of_mate = ("queen", "rook", "bishop", "knight", "discovered")
    assert all(kinds[kind] > 0 for kind in kinds_of_mate) and kinds["queen"] > 50, kinds
