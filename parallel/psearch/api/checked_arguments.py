"""What callers give, checked: positions and moves as boards or text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import chess

from psearch.results import PsearchError
from psearch.text.fen import check_position, checked_moves, drop_impossible, parse_position
from psearch.text.moves import read_move
from psearch.text.values import shown

if TYPE_CHECKING:
    import chess.pgn  # which takes long

Place: TypeAlias = "str | chess.Board | chess.pgn.GameNode"
"""A FEN or `startpos`, a board, whose moves count, or a node of a game."""
RootMoves = Iterable[chess.Move | str]


def board_of(position: Place) -> chess.Board:
    """Return a board of one's own, with the game's history: of a `chess.Board`, a FEN, `startpos`, or a node of a game.

    Raises PsearchError when it is none of these, or no legal position.
    """
    if isinstance(position, str):
        return parse_position(position)
    board = board_of_node(position)
    if not isinstance(board, chess.Board):
        raise PsearchError(f"a position is a chess.Board, a FEN or 'startpos', not {shown(position)}")
    board = board.copy()
    drop_impossible(board)
    check_position(board)
    return board


def board_of_node(position: object) -> object:
    """Return the board of a node of a `chess.pgn` game, anything else as it is."""
    pgn = sys.modules.get("chess.pgn")  # it takes long to import, and who has a node has done so
    if pgn is None or not isinstance(position, pgn.GameNode):
        return position
    try:
        return position.board()
    except ValueError as error:
        raise PsearchError(f"a game that begins nowhere: {error}") from None


def moves_of(board: chess.Board, root_moves: RootMoves | str | chess.Move | None) -> list[chess.Move] | None:
    """Return the moves to choose from, given as moves, or as text in UCI notation or SAN; None: all.

    Raises PsearchError when one is not a legal move, or when there are none.
    """
    if root_moves is None:
        return None
    if isinstance(root_moves, (str, chess.Move)):
        root_moves = [root_moves]
    if not isinstance(root_moves, Iterable):
        raise PsearchError(f"root_moves must be a list of moves, not {shown(root_moves)}")
    try:
        listed = list(root_moves)
    except TypeError:  # a numpy number calls itself iterable
        raise PsearchError(f"root_moves must be a list of moves, not {shown(root_moves)}") from None
    return checked_moves(board, [_move_of(board, move) for move in listed])


def _move_of(board: chess.Board, move: object) -> chess.Move:
    if isinstance(move, chess.Move):
        return move
    if not isinstance(move, str):
        raise PsearchError(f"a root move is a chess.Move, or UCI notation or SAN, not {shown(move)}")
    try:
        return read_move(board, move)
    except ValueError:
        raise PsearchError(f"{shown(move)} is not a legal move in {board.fen()}") from None


def check_cluster(address: object) -> None:
    """Raise PsearchError for what is no address of a cluster, and where there is no Ray."""
    if not isinstance(address, str):
        raise PsearchError(f"cluster must be an address, as 'auto', not {shown(address)}")
    from psearch.remote.address import cluster_address

    cluster_address(address, "cluster ")
