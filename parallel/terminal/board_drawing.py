"""A position drawn on the terminal."""

from __future__ import annotations

import sys
from typing import TextIO

import chess
from rich.console import Console
from rich.text import Text

_LIGHT, _DARK = "on #d8c3a5", "on #a17a5b"
_RANKS = range(7, -1, -1)
"""from top to bottom"""
_PIECE_COLOURS = {chess.WHITE: "bold #ffffff", chess.BLACK: "bold #000000"}


def draw(board: chess.Board) -> None:
    """Draw the position on stdout, White below: in colour on a terminal, with letters on one without colours or
    figures, else as text with figures."""
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal and console.color_system is not None and not console.no_color:
        console.print(board_text(board))
    elif console.is_terminal or not _has_figures(sys.stdout):
        print(board_letters(board), flush=True)
    else:
        print(f"{board.unicode(borders=True, empty_square=' ')}\n", flush=True)


def _has_figures(stream: TextIO) -> bool:
    try:
        "♔".encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def board_letters(board: chess.Board) -> str:
    """Return the position with letters, White's in capitals: figures without colours look like the other side's on a
    dark background."""
    lines = []
    for rank in _RANKS:
        pieces = [board.piece_at(chess.square(file, rank)) for file in range(8)]
        words = [chess.RANK_NAMES[rank], "", *(piece.symbol() if piece is not None else "." for piece in pieces)]
        lines.append(" ".join(words))
    return "\n".join([*lines, "", "   " + " ".join(chess.FILE_NAMES), ""])


def board_text(board: chess.Board) -> Text:
    """Return the position as coloured squares. Both colours use the filled figures, which show on any background."""
    text = Text()
    for rank in _RANKS:
        text.append(f"{chess.RANK_NAMES[rank]} ")
        for file in range(8):
            piece = board.piece_at(chess.square(file, rank))
            square = _LIGHT if (rank + file) % 2 else _DARK
            if piece is None:
                text.append("   ", square)
            else:
                text.append(
                    f" {piece.unicode_symbol(invert_color=piece.color)} ", f"{_PIECE_COLOURS[piece.color]} {square}"
                )
        text.append("\n")
    text.append("  " + "".join(f" {name} " for name in chess.FILE_NAMES) + "\n")
    return text
