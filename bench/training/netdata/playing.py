"""Plays blocks of games of the search against itself: one worker, no clock, so a block can be played again.

**When a game ends.** By the rules (mate, stalemate, the third repetition, fifty moves, bare material), or it is *won*
when six scores in a row are beyond 15 pawns for the same side, *drawn* when twelve in a row, from ply 80 on, are within
8 centipawns, and drawn after 400 plies. A game whose first score is beyond 6 pawns is not played: another start is
drawn.
"""

from __future__ import annotations

import argparse
import os
import random
from typing import Any, NamedTuple

import chess
import numpy as np

from netdata.blocks import Block, Game
from netdata.openings import Book, Start, draw_start
from netdata.records import UNFIT, decoder_dtype, game_dtype, play_game, rank_moves
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions, network_named, pruning_named
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.chess.board.bridge import from_chess_move, set_position

HASH_MB = 8
PRUNING = "modern,lmp=0"
"""Late move pruning leaves out the other side's replies where the depth is small: scores are half a pawn too high."""
RULES = {
    "most_plies": 400,
    "fit_score": 600,
    "won_score": 1500,
    "won_plies": 6,
    "dead_score": 8,
    "dead_plies": 12,
    "dead_from": 80,
}
_HARD_FACTOR = 10
"""A search ends inside an iteration when it has taken so many times its soft limit."""
_MOST_STARTS = 200


class Settings(NamedTuple):
    """What decides how a block of games is played."""

    seed: int
    nodes: int
    """of a move; the iteration during which they are passed is the last one"""
    games: int
    """in a block"""
    commit: str
    book: str
    """its digest"""
    pruning: str = "modern"
    """as `--pruning` of the search has it"""
    network: str = ""
    """the name of the network that evaluated; empty: the evaluation by hand"""

    @classmethod
    def of_header(cls, header: dict[str, Any]) -> Settings:
        """Return what a block says of itself; blocks from before there was a choice do not say all."""
        return cls(**{name: header[name] for name in cls._fields if name in header})

    def header(self, number: int) -> dict[str, Any]:
        """Return what a block says of itself."""
        return {"block": number, **self._asdict(), "hash_mb": HASH_MB, "rules": RULES}


def rank_game(
    tables: np.ndarray, decoder: np.ndarray, game: np.ndarray, root: chess.Board, moves: list[chess.Move]
) -> None:
    """Write a position and moves from there into a `game_dtype` record. Raises ValueError for an illegal move."""
    set_position(tables, game["root"], root)
    board = root.copy(stack=False)
    for ply, move in enumerate(moves):
        game["codes"][0, ply] = from_chess_move(move, board)
        board.push(move)
    game["count"] = len(moves)
    legal = rank_moves(tables.ctypes.data, decoder.ctypes.data, game.ctypes.data)
    if legal < len(moves):
        raise ValueError(f"ply {legal}: {moves[legal].uci()} is not legal")


def options_of(pruning: str, network: str | None, name: str) -> SearchOptions:
    """Return the options of searches for data. network: the file of one, empty for the one that ships; None: the
    evaluation by hand; name: what `network_name` has said of it, so that a file replaced meanwhile is refused.

    Raises PsearchError.
    """
    evaluation = "net" if network is not None else "classic"
    path = os.path.abspath(network) if network else ""
    return SearchOptions(
        policy="serial",
        pruning=pruning_named(pruning),
        evaluation=evaluation,
        net=path,
        network_digest=(path, name if path else ""),
    )


def add_network(parser: argparse.ArgumentParser) -> None:
    """Add `--network`, as the functions below take it: None for `none`."""
    parser.add_argument(
        "--network",
        type=lambda text: None if text == "none" else text,
        default="",
        metavar="F.net",
        help="that evaluates (the one that ships); none: the evaluation by hand",
    )


def network_name(path: str | None) -> str:
    """Return what blocks call a network. Raises PsearchError."""
    return "" if path is None else network_named(path).name


class Table:
    """Where a process plays its games. network: the file of the one that `settings` names."""

    def __init__(self, settings: Settings, book: Book, network: str | None = None) -> None:
        load_kernels()
        self._settings = settings
        self._book = book
        self._arena = Arena(workers=1, hash_mb=HASH_MB)
        # a search whose options those of the games are: positions and limits are the kernel's business
        write_search(
            self._arena,
            chess.Board(),
            Limits(depth=1),
            options_of(settings.pruning, network, settings.network),
        )
        work_alone(self._arena)
        self._decoder = np.zeros(1, decoder_dtype)
        self.game = np.zeros(1, game_dtype)
        """the last one played"""

    def play(self, number: int) -> Block:
        """Play a block of games."""
        settings = self._settings
        games = [self._play_game(f"{settings.seed} {number * settings.games + i}") for i in range(settings.games)]
        return Block(settings.header(number), games)

    def _play_game(self, seed: str) -> Game:
        dice = random.Random(seed)
        for _ in range(_MOST_STARTS):
            start = draw_start(self._book, dice)
            self.begin(start)
            play_game(self._arena.context, self.game.ctypes.data)
            if self.game[0]["ending"] != UNFIT:
                return Game.of_record(start.fen, self.game[0])
        raise AssertionError(f"{_MOST_STARTS} starts in a row were beyond {RULES['fit_score']} centipawns")

    def begin(self, start: Start) -> None:
        """Set up a game: nothing is remembered of the last one."""
        self._arena.forget()
        self.game[:] = np.zeros((), game_dtype)
        record = self.game[0]
        rank_game(self._arena.tables, self._decoder, self.game, start.root(), list(start.moves))
        record["opening"] = len(start.moves)
        record["soft_nodes"] = self._settings.nodes
        record["hard_nodes"] = self._settings.nodes * _HARD_FACTOR
        for name, value in RULES.items():
            record[name] = value
        set_position(self._arena.tables, self._arena.header["root"], start.board())
