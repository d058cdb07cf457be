"""Names of openings, by position: `openings.tsv.xz`, made by `bench/study/pack_openings.py` from the tables of
https://github.com/lichess-org/chess-openings (CC0). Read on first use."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import lzma

import chess
import chess.pgn

_MOST_PLIES = 40
"""Plies after which no position has a name; the longest line has 36."""


def opening_key(board: chess.Board) -> str:
    """Return the key of a position in the table."""
    return hashlib.blake2b(board.epd().encode(), digest_size=6).hexdigest()


@functools.cache
def _names() -> dict[str, tuple[str, str]]:
    packed = (importlib.resources.files("psearch.text") / "openings.tsv.xz").read_bytes()
    rows = (line.split("\t") for line in lzma.decompress(packed).decode().splitlines())
    return {key: (eco, name) for key, eco, name in rows}


def opening_of(board: chess.Board) -> tuple[str, str] | None:
    """Return ECO code and name of the opening with this position; None if it has none."""
    return _names().get(opening_key(board)) if board.ply() <= _MOST_PLIES else None


def name_opening(game: chess.pgn.Game) -> None:
    """Set the tags ECO and Opening of a game by its last position that has a name, unless it has them already."""
    if game.board().fen() != chess.STARTING_FEN:
        return
    found = None
    board = game.board()
    for move in list(game.mainline_moves())[:_MOST_PLIES]:
        board.push(move)
        found = opening_of(board) or found
    if found is not None:
        for tag, value in zip(("ECO", "Opening"), found, strict=True):
            if game.headers.get(tag, "?") in ("", "?"):
                game.headers[tag] = value
