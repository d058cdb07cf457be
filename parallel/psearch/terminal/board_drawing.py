"""A position drawn on stdout."""

from __future__ import annotations

import sys

import chess
from rich.console import Console
from rich.text import Text

_LIGHT, _DARK = "on #d8c3a5", "on #a17a5b"
_PIECE_COLOURS = {chess.WHITE: "bold #ffffff", chess.BLACK: "bold #000000"}


def draw(board: chess.Board) -> None:
    """Draw the position on stdout, White below: coloured squares on a terminal with colours, else letters."""
    console = Console(file=sys.stdout, highlight=False)
    has_colours = console.is_terminal and console.color_system is not None and not console.no_color
    console.print(board_text(board, has_colours))


def board_text(board: chess.Board, has_colours: bool = True) -> Text:
    """Return the position in lines; both colours use the filled figures, which show on any background. Without colours
    pieces are letters, White's in capitals."""
    text = Text()
    for rank in range(7, -1, -1):
        text.append(f"{chess.RANK_NAMES[rank]} ")
        for file in range(8):
            piece = board.piece_at(chess.square(file, rank))
            if not has_colours:
                text.append(f" {piece.symbol() if piece else '.'} ")
                continue
            square = _LIGHT if (rank + file) % 2 else _DARK
            if piece is None:
                text.append("   ", square)
            else:
                figure = piece.unicode_symbol(invert_color=piece.color)
                text.append(f" {figure} ", f"{_PIECE_COLOURS[piece.color]} {square}")
        text.append("\n")
    return text.append("  " + "".join(f" {name} " for name in chess.FILE_NAMES) + "\n")
