"""Plays blocks of games of the search against itself: one worker, no clock, so a block can be played again.

Games begin with random moves, from the start position, Chess960, books, positions that lack a piece or two, and
positions of others' games. They end by the rules (mate, stalemate, the third repetition, fifty moves, bare
material), or are *won* when four scores in a row are beyond 10 pawns for the same side, *drawn* when 32 in a row,
from ply 80 on, are within 8 centipawns, and drawn after 400 plies. Two games of three begin within 2 pawns, the
others within 6, by the first search; another start is drawn until that holds. Real games are decided near equality,
and random starts alone have few such positions.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import chess
import numpy as np
from matchplay.openings import read_book

from netdata.blocks import Block, Game
from netdata.records import (
    BLACK_WON,
    BY_RULE,
    DRAWN,
    MOST_PLIES,
    UNFIT,
    WHITE_WON,
    decoder_dtype,
    follow_game,
    game_dtype,
    play_game,
    rank_moves,
)
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions, network_named, pruning_named
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.text.fen import check_position
from psearch.text.pgn_text import read_games
from psearch.text.source import read_source
from psearch_core.chess.board.bridge import from_chess_move, set_position

_KINDS = (("start", 50), ("book", 25), ("unbalanced", 15), ("chess960", 10))
"""Kinds of starts, and how many of a hundred games begin so."""
_FEWEST_PLIES, _MOST_PLIES = 8, 12
_BOOK_PLIES = (0, 5)
"""Random moves behind a position of a book, which has left the start position already."""
_PLAYED_SHARE = 0.75
"""Share of the games that begin in the games of others, where there are any."""
_PLAYED_PLIES = (8, 100)
"""Plies of such a game before a start, unless endings are asked for: its opening stands in books."""
_PLAYED_WALK = (0, 2)
"""Random moves behind such a position: there are millions, and more moves would spoil them."""


class Start(NamedTuple):
    """A position and the random moves that are made from it."""

    fen: str
    """Shredder's castling rights in Chess960; empty for the start position"""
    moves: tuple[chess.Move, ...]

    def board(self) -> chess.Board:
        board = board_of(self.fen)
        for move in self.moves:
            board.push(move)
        return board


def board_of(fen: str) -> chess.Board:
    """Return the board of a start's FEN. Castling is king takes rook everywhere, so one kind of board serves all.

    Raises ValueError and PsearchError for what is no legal position: kernels look at nothing.
    """
    board = chess.Board(fen or chess.STARTING_FEN, chess960=True)
    check_position(board)
    return board


def _fen_of(board: chess.Board) -> str:
    """Return the FEN of a start, whose two counters are those of a first move."""
    board.halfmove_clock, board.fullmove_number = 0, 1
    return board.fen(shredder=True)


class Played(NamedTuple):
    """A game that others have played."""

    start: Start
    """Its position and all its moves."""
    result: int
    plies: range = range(0)
    """Plies at which games may begin."""


class Book(NamedTuple):
    fens: tuple[str, ...] = ()
    played: tuple[Played, ...] = ()
    """Games of others, in whose positions games begin."""
    digest: str = ""
    """Digest of the files, and the most men of those positions unless any will do; empty without files."""


def digest_of(paths: Sequence[Path]) -> str:
    """Return what blocks say of the files they were made with; empty for none. Raises OSError."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16] if paths else ""


def read_books(paths: Sequence[Path], games: Sequence[Path] = (), most_men: int = 0) -> Book:
    """Read files of FEN, EPD or PGN, and PGN files of games in whose positions games begin.

    most_men: of those positions, 0 for any; games without such a position are left out. Raises OSError, PsearchError,
    and MatchError for a position that is none.
    """
    fens = []
    for path in paths:
        for opening in read_book(path, chess960=True):
            fens.append(_fen_of(opening.board()))
    played = (game._replace(plies=_plies(game.start, most_men)) for game in read_played(games))
    digest = digest_of([*paths, *games]) + (f", {most_men} men" if most_men else "")
    return Book(tuple(fens), tuple(game for game in played if game.plies), digest)


FOLLOWED_FROM = 8
"""Plies of a followed game without a score: its opening stands in books."""
FOLLOWED_PLIES = 20
"""Fewest plies of a game that is followed."""
_RESULTS = {"1-0": WHITE_WON, "1/2-1/2": DRAWN, "0-1": BLACK_WON}


def read_played(paths: Sequence[Path]) -> list[Played]:
    """Return the finished games of PGN files, each once. Raises OSError and PsearchError.

    A game counts up to a move that cannot be read; one with fewer than `FOLLOWED_PLIES` is left out.
    """
    found: dict[Start, Played] = {}
    seen: dict[chess.Move, chess.Move] = {}  # each move once: one for each ply of all games takes gigabytes
    for path in paths:
        for work in read_games(read_source(str(path))):
            board = work.game.board()
            moves = tuple(seen.setdefault(move, move) for move in work.game.mainline_moves())[:MOST_PLIES]
            result = _RESULTS.get(work.game.headers.get("Result", ""))
            if result is None or len(moves) < FOLLOWED_PLIES or board.uci_variant != "chess":
                continue
            fen = "" if board.fen() == chess.STARTING_FEN else board.fen(shredder=True)
            start = Start(fen, moves)
            found.setdefault(start, Played(start, result))
    return list(found.values())


def _walk(board: chess.Board, plies: int, dice: random.Random) -> tuple[chess.Move, ...] | None:
    """Make random moves; None where the game ends before there are so many, or with them."""
    moves = []
    for _ in range(plies):
        legal = sorted(board.legal_moves, key=lambda move: (move.from_square, move.to_square, move.promotion or 0))
        if not legal:
            return None
        moves.append(dice.choice(legal))
        board.push(moves[-1])
    return None if board.is_game_over() else tuple(moves)


def _without_pieces(board: chess.Board, dice: random.Random) -> chess.Board | None:
    """Return the position without one or two of its pieces; None where that is no position."""
    board = board.copy(stack=False)
    squares = [square for square, piece in sorted(board.piece_map().items()) if piece.piece_type != chess.KING]
    for square in dice.sample(squares, dice.choice((1, 1, 2))):
        board.remove_piece_at(square)
    board.castling_rights = board.clean_castling_rights()
    board.ep_square = None
    board.halfmove_clock = 0
    return board if board.is_valid() and not board.is_game_over() else None


def _reached(played: Sequence[Played], dice: random.Random) -> str:
    """Return a position of a game that others have played, without the moves that led to it."""
    game = dice.choice(played)
    ply = dice.choice(game.plies)
    return _fen_of(game.start._replace(moves=game.start.moves[:ply]).board())


def _plies(start: Start, most_men: int) -> range:
    """Return the plies of a game at which others may begin: before its last move, and from few enough men on."""
    count = len(start.moves)
    if not most_men:
        return range(_PLAYED_PLIES[0], min(_PLAYED_PLIES[1] + 1, count))
    board = board_of(start.fen)
    for ply, move in enumerate(start.moves):
        if board.occupied.bit_count() <= most_men:
            return range(ply, count)
        board.push(move)
    return range(0)


def draw_start(book: Book, dice: random.Random) -> Start:
    """Draw a start: of a kind, then its position and moves. Without a book the start position takes its place."""
    while book.played and dice.random() < _PLAYED_SHARE:
        fen = _reached(book.played, dice)
        moves = _walk(board_of(fen), dice.randint(*_PLAYED_WALK), dice)
        if moves is not None:
            return Start(fen, moves)
    kind = dice.choices([name for name, _ in _KINDS], [share for _, share in _KINDS])[0]
    while True:
        fen = ""
        plies = dice.randint(_FEWEST_PLIES, _MOST_PLIES)
        if kind == "chess960":
            fen = chess.Board.from_chess960_pos(dice.randrange(960)).fen(shredder=True)
        elif kind == "book" and book.fens:
            fen = dice.choice(book.fens)
            plies = dice.randint(*_BOOK_PLIES)
        if kind == "unbalanced":
            board = board_of("")
            lessened = None if _walk(board, plies, dice) is None else _without_pieces(board, dice)
            if lessened is None:
                continue
            fen, plies = lessened.fen(shredder=True), dice.randint(*_BOOK_PLIES)
        moves = _walk(board_of(fen), plies, dice)
        if moves is not None:
            return Start(fen, moves)


HASH_MB = 1
"""A game searches some 40,000 nodes, and so small a table stays in the processor's cache."""
PRUNING = "modern,lmp=0"
"""Late move pruning leaves out the other side's replies where the depth is small: scores are half a pawn too high."""
RULES = {
    "most_plies": 400,
    "fit_score": 600,
    "won_score": 1000,
    "won_plies": 4,
    "dead_score": 8,
    "dead_plies": 32,
    "dead_from": 80,
}
NEAR_SCORE = 200
"""Greatest first score, in centipawns, of games that begin near equality."""
NEAR_SHARE = 2 / 3
_HARD_FACTOR = 10
"""A search ends inside an iteration when it has taken so many times its soft limit."""
_MOST_STARTS = 200


class Settings(NamedTuple):
    seed: int
    nodes: int
    """Nodes of a move; the iteration during which they are passed is the last one."""
    games: int
    """Games in a block."""
    commit: str
    book: str
    """Digest of the book."""
    pruning: str = "modern"
    """Pruning mode, as in the search's `--pruning`."""
    network: str = ""
    """Name of the network that evaluated; empty: the handcrafted evaluation."""

    def header(self, number: int) -> dict[str, Any]:
        """Return what a block says of itself."""
        return {"block": number, **self._asdict(), "hash_mb": HASH_MB, "rules": RULES, "near": [NEAR_SCORE, NEAR_SHARE]}


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
    handwritten evaluation; name: what `network_name` has said of it, so that a file replaced meanwhile is refused.

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


def network_name(path: str | None) -> str:
    """Return what blocks call a network. Raises PsearchError."""
    return "" if path is None else network_named(path).name


class Table:
    """The memory with which a process plays its games. network: the file of the one that `settings` names."""

    def __init__(self, settings: Settings, book: Book, network: str | None = None) -> None:
        load_kernels()
        self._settings = settings
        self._book = book
        self._arena = Arena(workers=1, hash_mb=HASH_MB)
        # a search whose options those of the games are: positions and limits are the kernel's business
        write_search(
            self._arena, chess.Board(), Limits(depth=1), options_of(settings.pruning, network, settings.network)
        )
        work_alone(self._arena)
        self._decoder = np.zeros(1, decoder_dtype)
        self.game = np.zeros(1, game_dtype)
        """The last game played."""

    def play(self, number: int) -> Block:
        settings = self._settings
        games = [self._play_game(f"{settings.seed} {number * settings.games + i}") for i in range(settings.games)]
        return Block(settings.header(number), games)

    def _play_game(self, seed: str) -> Game:
        dice = random.Random(seed)
        fit_score = NEAR_SCORE if dice.random() < NEAR_SHARE else RULES["fit_score"]
        for _ in range(_MOST_STARTS):
            start = draw_start(self._book, dice)
            self.begin(start)
            self.game[0]["fit_score"] = fit_score
            play_game(self._arena.context, self.game.ctypes.data)
            if self.game[0]["ending"] != UNFIT:
                return Game.of_record(start.fen, self.game[0])
        raise AssertionError(f"{_MOST_STARTS} starts in a row were beyond {fit_score} centipawns")

    def follow(self, games: Sequence[Played], number: int) -> Block:
        """Return a block of these games, the first has number 0, with the scores of searches of all positions."""
        begin = number * self._settings.games
        chosen = games[begin : begin + self._settings.games]
        return Block({**self._settings.header(number), "followed": True}, [self._follow(game) for game in chosen])

    def _follow(self, played: Played) -> Game:
        self.begin(played.start, FOLLOWED_FROM)
        self.game[0]["result"] = played.result
        self.game[0]["ending"] = BY_RULE
        follow_game(self._arena.context, self.game.ctypes.data)
        return Game.of_record(played.start.fen, self.game[0])

    def begin(self, start: Start, opening: int | None = None) -> None:
        """Set up a game: nothing is remembered of the last one. opening: plies without a search (None: all moves)."""
        self._arena.forget()
        self.game[:] = np.zeros((), game_dtype)
        record = self.game[0]
        rank_game(self._arena.tables, self._decoder, self.game, board_of(start.fen), list(start.moves))
        record["opening"] = len(start.moves) if opening is None else opening
        record["soft_nodes"] = self._settings.nodes
        record["hard_nodes"] = self._settings.nodes * _HARD_FACTOR
        for name, value in RULES.items():
            record[name] = value
        behind = start._replace(moves=start.moves[:opening])
        set_position(self._arena.tables, self._arena.header["root"], behind.board())
