"""Positions from games of this engine against itself, for `bench/tuning/tune.py`: `FEN;score;result` lines.

    python bench/tuning/selfplay_positions.py OUT.txt --starts tcec_positions.txt.xz --syzygy DIRECTORY
        [--games N] [--nodes N] [--seed S] [--jobs N | --on CLUSTER]

Games of strong engines never show what a search meets most: positions where a piece is simply lost. So the games begin
where no such engine would go on: after 6 to 12 random moves from the first position (40%), or at a position of the file
of starts and up to two random moves (60%); from 45% of all starts one or two pieces are taken off at random. Both
sides then play with a fixed number of nodes, and each game has dice of its own, so the same arguments give the same
file, wherever the games are played: in one process or several, or on a cluster (docs/guides/cluster.md), whose nodes
need the tables in the same folder.

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
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import chess
import chess.syzygy

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.cli.arguments import add_on
from psearch.cluster.sharing import share_out_on
from psearch.cluster.sources import sources_of
from psearch.core.board.bridge import to_chess_move
from psearch.options import SearchOptions
from psearch.processes.worker import work_alone
from psearch.results import Limits, PsearchError
from psearch.studies.job_pool import share_out

HASH_MB = 16
MOST_PLIES = 300
START_MOST = 1200
"""cp; a start that is worth more to one side is not played"""
WON, WON_RUN = 900, 8
DEAD, DEAD_RUN, DEAD_AFTER_PLIES = 8, 16, 80
KEPT_SCORE = 1500
KEPT_SHARE = 0.5
TABLE_PIECES = 4
HAND_MB = 400
"""MiB of memory for each process of a cluster"""
_GAMES_A_LINE = 100
Kept = tuple[list[tuple[str, int]], float]
"""(FEN, White's score) of the positions kept, and White's points"""


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


def play_game(board: chess.Board, player: Player, tables: chess.syzygy.Tablebase, dice: random.Random) -> Kept:
    """No positions: the start was too one-sided."""
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


class Begin(NamedTuple):
    """A game to be played."""

    fen: str
    seed: str
    """of its dice"""


class Table:
    """Where a process plays its games. Raises PsearchError where there are no endgame tables."""

    def __init__(self, nodes: int, folder: str) -> None:
        try:
            self._tables = chess.syzygy.open_tablebase(folder)
        except OSError as error:
            raise PsearchError(f"no endgame tables in {folder}: {error.strerror}") from None
        self._player = Player(nodes)

    def play(self, begin: Begin) -> Kept:
        """A game."""
        self._player.new_game()
        return play_game(chess.Board(begin.fen), self._player, self._tables, random.Random(begin.seed))


def _make(nodes: int, folder: str) -> Callable[[Begin], Kept]:
    return Table(nodes, folder).play


def _begins(starts: list[str], games: int, seed: int) -> Iterator[Begin]:
    for game in range(games):
        yield Begin(_start(starts, random.Random(f"{seed} {game} start")).fen(), f"{seed} {game} play")


def _played(args: argparse.Namespace, starts: list[str]) -> Iterator[Kept]:
    """The games in their order."""
    make = partial(_make, args.nodes, str(args.syzygy.resolve()))
    begins = _begins(starts, args.games, args.seed)
    if args.on is None:
        answers = share_out(make, list(begins), args.jobs)
    else:
        answers = share_out_on(
            args.on,
            make,
            begins,
            memory=HAND_MB * 2**20,
            on_note=lambda note: print(note, file=sys.stderr),
            sources=sources_of(Path(__file__).parent, ["selfplay_positions"]),
        )
    early: dict[int, Kept] = {}
    wanted = 0
    with closing(answers) as finished:
        for place, kept in finished:
            early[place] = kept
            while wanted in early:
                yield early.pop(wanted)
                wanted += 1


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
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    add_on(parser, "play")
    args = parser.parse_args()
    try:
        with lzma.open(args.starts, "rt", encoding="ascii") as file:
            starts = [line for line in file if line.strip()]
        with args.out.open("x") as out:
            begin, positions = time.monotonic(), 0
            for game, (kept, points) in enumerate(_played(args, starts), start=1):
                out.writelines(f"{fen};{score};{points}\n" for fen, score in kept)
                positions += len(kept)
                if game % _GAMES_A_LINE == 0:
                    seconds = time.monotonic() - begin
                    print(f"{game} games, {positions} positions, {seconds:.0f} s", file=sys.stderr)
    except (OSError, EOFError, lzma.LZMAError, ValueError, PsearchError, chess.syzygy.MissingTableError) as error:
        print(f"selfplay_positions.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    # under its own name, by which other machines know its functions
    sys.exit(import_module("selfplay_positions").main())
