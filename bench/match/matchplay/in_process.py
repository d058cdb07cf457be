"""A game between two searches in this process: no clock, no protocol, the same moves on every machine."""

from __future__ import annotations

import argparse
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import chess

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.faces.cli.arguments import whole_number
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch_core.chess.board.bridge import to_chess_move

from .elo import PAIR_SCORES, Sprt
from .game import Adjudication, Rules, ending
from .openings import Opening, read_books
from .scripts import EXIT_INTERRUPTED, MatchError
from .tally import pairs_text

RULES = Rules(resign=(600, 4), draw=(10, 8, 40))
"""Both have thought for four moves that one is six pawns ahead, or for eight, from move 40 on, that neither is by more
than 10 centipawns."""
MOST_PLIES = 600


class Player:
    """One side: its options, its nodes a move, and what it remembers of its game."""

    def __init__(self, options: SearchOptions, nodes: int, hash_mb: int = 4) -> None:
        self._arena = Arena(workers=1, hash_mb=hash_mb)
        self.options = options
        """Options of the next move."""
        self._limits = Limits(nodes=nodes)

    def new_game(self) -> None:
        """Forget the last one."""
        self._arena.forget()

    def move(self, board: chess.Board) -> tuple[chess.Move, int]:
        """Search a move; returns it and its score in centipawns, of which a mate is many."""
        write_search(self._arena, board, self._limits, self.options)
        self._search()
        header = self._arena.header[0]
        return to_chess_move(int(header["best_move"]), board), int(header["score"])

    def _search(self) -> None:
        work_alone(self._arena)


@dataclass(frozen=True)
class Finished:
    winner: int | None
    """0 the first player, 1 the second, None drawn"""
    reason: str
    plies: int
    """Plies played, without the opening's."""

    @property
    def half_points(self) -> int:
        return 1 if self.winner is None else 2 * (1 - self.winner)


def play(players: Sequence[Player], opening: Opening, white: int) -> Finished:
    """Play a game. white: which of the two players, 0 or 1, has the white pieces."""
    board = opening.board()
    adjudication = Adjudication(RULES)
    for player in players:
        player.new_game()
    for plies in range(1, MOST_PLIES + 1):
        number = white if board.turn == chess.WHITE else 1 - white
        move, score = players[number].move(board)
        board.push(move)
        over = ending(board)
        if over is not None:
            return Finished(number if over[0] else None, over[1], plies)
        agreed = adjudication.move(number, score, board.fullmove_number)
        if agreed is not None:
            return Finished(*agreed, plies)
    return Finished(None, f"{MOST_PLIES} plies", MOST_PLIES)


def play_pair(players: Sequence[Player], opening: Opening) -> int:
    """Play an opening twice, with colours changed; returns the half points of the first player, 0 to 4."""
    return sum(play(players, opening, white).half_points for white in (0, 1))


def add_arguments(parser: argparse.ArgumentParser, games: int, book_is_needed: bool = True, nodes: int = 5000) -> None:
    """Add what decides how much is played. games, nodes: how many, unless it is said."""
    parser.add_argument("--nodes", type=whole_number(100, 10**9), default=nodes, metavar="N", help=f"a move ({nodes})")
    parser.add_argument("--games", type=whole_number(2, 10**7), default=games, metavar="N", help=f"at most ({games})")
    parser.add_argument("--jobs", type=whole_number(1, 256), default=2, metavar="N", help="processes (2)")
    parser.add_argument(
        "--book", nargs="+", type=Path, default=[], required=book_is_needed, metavar="FILE", help="EPD, FEN or PGN"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the order of the openings (1)")


def openings_of(options: argparse.Namespace, skip: int = 0) -> list[Opening]:
    """Return an opening for each pair of games, of the shuffled books without the first `skip`. Raises MatchError."""
    openings = read_books(options.book)
    random.Random(options.seed).shuffle(openings)
    wanted = options.games // 2
    if len(openings) < skip + wanted:
        after = f" after the first {skip}" if skip else ""
        raise MatchError(
            f"{2 * wanted} games need {wanted} different openings{after}, and there are {len(openings) - skip}"
        )
    return openings[skip : skip + wanted]


def play_all(
    options: argparse.Namespace, answers: Generator[tuple[int, int]], pairs_a_line: int, sprt: Sprt | None = None
) -> int:
    """Count the pairs as they are finished, print, and end when `sprt` is decided; returns the exit status.

    answers: number and half points of each pair. options.first, options.second: the sides' names.
    """
    counts = [0] * len(PAIR_SCORES)
    status = 0
    try:
        for _, half_points in answers:
            counts[half_points] += 1
            if sum(counts) % pairs_a_line == 0:
                print(_line(counts, sprt), flush=True)
                if sprt is not None and sprt.decision(sprt.llr(counts)) is not None:
                    break
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    finally:
        answers.close()
    print(f"{options.first} against {options.second}, {options.nodes} nodes a move: {_line(counts, sprt)}")
    return status


def _line(counts: Sequence[int], sprt: Sprt | None) -> str:
    text = pairs_text(counts)
    return text if sprt is None or not any(counts) else f"{text}, LLR {sprt.llr(counts):+.2f} of {sprt.bounds[1]:.2f}"
