"""Positions for property tests: random games, and boards that no game would reach."""

from __future__ import annotations

import random
from collections.abc import Iterator

import chess

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
MIDDLE_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10"
MATED = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3"

_MAX_PLIES = 160


def games(seed: int, count: int, chess960: bool = False) -> Iterator[chess.Board]:
    """Every position, the final ones too, of random games. The board is the game's own: copy it to keep it."""
    dice = random.Random(f"games {seed}")
    for _ in range(count):
        board = chess.Board.from_chess960_pos(dice.randrange(960)) if chess960 else chess.Board()
        yield board
        while any(board.legal_moves) and board.ply() < _MAX_PLIES:
            board.push(_choose(board, dice))
            yield board


def _choose(board: chess.Board, dice: random.Random) -> chess.Move:
    """Captures, checks and promotions more often than by chance, so that the pieces meet."""
    moves = list(board.legal_moves)

    def is_plain(move: chess.Move) -> bool:
        return not board.is_capture(move) and not move.promotion

    # whether a move gives check is asked as seldom as can be: it takes longer than all the rest
    if (not all(map(is_plain, moves)) or any(map(board.gives_check, moves))) and dice.random() < 0.25:
        moves = [move for move in moves if not is_plain(move) or board.gives_check(move)]
    return dice.choice(moves)


def sample(seed: int, count: int, chess960: bool = False) -> list[chess.Board]:
    """`count` positions with a legal move from random games, without their move stacks."""
    dice = random.Random(f"sample {seed}")
    found: list[chess.Board] = []
    for board in games(seed, count, chess960):
        if dice.random() < 0.2 and any(board.legal_moves):
            found.append(board.copy(stack=False))
            if len(found) == count:
                break
    return found


def absurd(seed: int, count: int) -> list[chess.Board]:
    """Valid boards with far too much of everything: up to nine queens a side, pawns anywhere, lone kings."""
    dice = random.Random(f"absurd {seed}")
    found: list[chess.Board] = []
    while len(found) < count:
        board = chess.Board(None)
        squares = list(chess.SQUARES)
        dice.shuffle(squares)
        board.set_piece_at(squares.pop(), chess.Piece(chess.KING, chess.WHITE))
        board.set_piece_at(squares.pop(), chess.Piece(chess.KING, chess.BLACK))
        for color in chess.COLORS:
            kinds = dice.sample(range(chess.PAWN, chess.KING), dice.randrange(1, 4))
            for _ in range(dice.choice((0, 0, 1, 4, 9, 15))):
                kind = dice.choice(kinds)
                square = squares.pop()
                if kind == chess.PAWN and chess.square_rank(square) in (0, 7):
                    kind = chess.QUEEN
                board.set_piece_at(square, chess.Piece(kind, color))
        board.turn = dice.choice(chess.COLORS)
        # python-chess limits pawns and pieces as in a game; here only what the rules of motion need counts
        if not board.was_into_check() and board.checkers_mask().bit_count() <= 2 and any(board.legal_moves):
            found.append(board)
    return found
