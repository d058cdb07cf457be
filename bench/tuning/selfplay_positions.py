"""Positions from games of this engine against itself, for `bench/tuning/tune.py`: `FEN;score;result` lines.

    python bench/tuning/selfplay_positions.py OUT.txt --starts tcec_positions.txt.xz --syzygy DIRECTORY
        [--games N] [--nodes N] [--seed S]

Games of strong engines never show what a search meets most: positions where a piece is simply lost. So the games begin
where no such engine would go on: after 6 to 12 random moves from the first position (40%), or at a position of the file
of starts and up to two random moves (60%); from 45% of all starts one or two pieces are taken off at random. Both
sides then play with a fixed number of nodes, so the same arguments give the same games on every machine.

Score and result are White's view. A game ends by the rules, by tables of three and four pieces, after 300 plies, as won
when nine scores in a row are beyond nine pawns for one side, and as drawn after sixteen scores in a row of at most 8
centipawns late in the game. Half of its positions are kept, drawn by chance, none in check or beyond 15 pawns.
"""

from __future__ import annotations

import argparse
import lzma
import random
import sys
import time
from pathlib import Path

import chess
import chess.syzygy

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.core.board.bridge import to_chess_move
from psearch.options import SearchOptions
from psearch.processes.worker import work_alone
from psearch.results import Limits

HASH_MB = 16
MOST_PLIES = 300
START_MOST = 1200
"""cp; a start that is worth more to one side is not played"""
WON, WON_RUN = 900, 8
DEAD, DEAD_RUN, DEAD_AFTER_PLIES = 8, 16, 80
KEPT_SCORE = 1500
KEPT_SHARE = 0.5
TABLE_PIECES = 4


def _play_random(board: chess.Board, plies: int, dice: random.Random) -> None:
    for _ in range(plies):
        moves = list(board.legal_moves)
        if not moves:
            return
        board.push(dice.choice(moves))


def _start(starts: list[str], dice: random.Random) -> chess.Board:
    """A position to begin a game with."""
    kind = dice.random()
    while True:
        if kind < 0.4:
            board = chess.Board()
            _play_random(board, dice.randint(6, 12), dice)
        else:
            board = chess.Board(dice.choice(starts).split(";")[0])
            _play_random(board, dice.randint(0, 2), dice)
        board = chess.Board(board.fen())
        if kind > 0.65 or kind < 0.1:
            for _ in range(dice.choice((1, 1, 2))):
                pieces = [square for square, piece in board.piece_map().items() if piece.piece_type != chess.KING]
                if pieces:
                    board.remove_piece_at(dice.choice(pieces))
            board.castling_rights = board.clean_castling_rights()
            board.ep_square = None
        if board.is_valid() and not board.is_game_over() and len(board.piece_map()) > TABLE_PIECES:
            return board


class Player:
    """The engine, with a fixed number of nodes a move."""

    def __init__(self, nodes: int) -> None:
        self.arena = Arena(workers=1, hash_mb=HASH_MB)
        self.limits = Limits(nodes=nodes)
        self.options = SearchOptions(policy="serial")

    def new_game(self) -> None:
        self.arena.forget()

    def think(self, board: chess.Board) -> tuple[int, chess.Move]:
        """Score for the side to move in centipawns, and the best move."""
        write_search(self.arena, board, self.limits, self.options)
        work_alone(self.arena.context)
        header = self.arena.header[0]
        return int(header["score"]), to_chess_move(int(header["best_move"]), board)


def _ended(board: chess.Board, tables: chess.syzygy.Tablebase) -> float | None:
    """White's points if the game is over, by rule, table or length."""
    outcome = board.outcome(claim_draw=True)
    if outcome is not None:
        return 0.5 if outcome.winner is None else float(outcome.winner)
    if len(board.piece_map()) <= TABLE_PIECES and not board.castling_rights:
        wdl = tables.probe_wdl(board) * (1 if board.turn else -1)
        return 1.0 if wdl == 2 else 0.0 if wdl == -2 else 0.5
    return 0.5 if len(board.move_stack) > MOST_PLIES else None


def play_game(
    board: chess.Board, player: Player, tables: chess.syzygy.Tablebase, dice: random.Random
) -> tuple[list[tuple[str, int]], float]:
    """(FEN, White's score) of the positions kept, and White's points. No positions: the start was too one-sided."""
    kept: list[tuple[str, int]] = []
    run = dead = sign = 0
    first = True
    while (points := _ended(board, tables)) is None:
        score, move = player.think(board)
        if first and abs(score) > START_MOST:
            return [], 0.5
        first = False
        white_score = score if board.turn else -score
        new_sign = (white_score > 0) - (white_score < 0)
        run = run + 1 if abs(white_score) > WON and new_sign == sign else 0
        sign = new_sign
        if run >= WON_RUN:
            return kept, 1.0 if sign > 0 else 0.0
        dead = dead + 1 if abs(white_score) <= DEAD and len(board.move_stack) > DEAD_AFTER_PLIES else 0
        if dead >= DEAD_RUN:
            return kept, 0.5
        if not board.is_check() and abs(white_score) < KEPT_SCORE and dice.random() < KEPT_SHARE:
            kept.append((board.fen(), white_score))
        board.push(move)
    return kept, points


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Positions of self-play for bench/tuning/tune.py (see the head of this file)."
    )
    parser.add_argument("out", type=Path, help="text file to write; must not exist")
    parser.add_argument("--starts", type=Path, required=True, help="xz file with a FEN before the first ; of each line")
    parser.add_argument("--syzygy", type=Path, required=True, help="folder with all tables of three and four pieces")
    parser.add_argument("--games", type=int, default=9_000)
    parser.add_argument("--nodes", type=int, default=4_000, help="of each move's search")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    try:
        with lzma.open(args.starts, "rt", encoding="ascii") as file:
            starts = [line for line in file if line.strip()]
        tables = chess.syzygy.open_tablebase(str(args.syzygy))
        with args.out.open("x") as out:
            player = Player(args.nodes)
            begin, positions = time.monotonic(), 0
            for game in range(1, args.games + 1):
                player.new_game()
                kept, points = play_game(_start(starts, dice), player, tables, dice)
                out.writelines(f"{fen};{score};{points}\n" for fen, score in kept)
                positions += len(kept)
                if game % 100 == 0:
                    seconds = time.monotonic() - begin
                    print(f"{game} games, {positions} positions, {seconds:.0f} s", file=sys.stderr)
    except (OSError, EOFError, lzma.LZMAError, ValueError, chess.syzygy.MissingTableError) as error:
        print(f"selfplay_positions.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
