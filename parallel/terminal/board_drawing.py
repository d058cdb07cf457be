"""A position drawn on the terminal."""

from __future__ import annotations

import sys

import chess
from rich.console import Console
from rich.text import Text

_LIGHT, _DARK = "on #d8c3a5", "on #a17a5b"
_PIECE_COLOURS = {chess.WHITE: "bold #ffffff", chess.BLACK: "bold #000000"}


def draw(board: chess.Board) -> None:
    """The position on stdout, from the side to move: in colour on a terminal, else as text."""
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal and console.color_system is not None:
        console.print(board_text(board))
        return
    try:
        "♔".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        print(f"{board}\n", flush=True)
    else:
        print(f"{board.unicode(borders=True, empty_square=' ', orientation=board.turn)}\n", flush=True)


def board_text(board: chess.Board) -> Text:
    """The position as coloured squares. Both colours use the filled figures, which show on any background."""
    ranks = list(range(8)) if board.turn == chess.BLACK else list(range(7, -1, -1))
    files = list(range(7, -1, -1)) if board.turn == chess.BLACK else list(range(8))
    text = Text()
    for rank in ranks:
        text.append(f"{chess.RANK_NAMES[rank]} ")
        for file in files:
            piece = board.piece_at(chess.square(file, rank))
            square = _LIGHT if (rank + file) % 2 else _DARK
            if piece is None:
                text.append("   ", square)
            else:
                text.append(
                    f" {piece.unicode_symbol(invert_color=piece.color)} ", f"{_PIECE_COLOURS[piece.color]} {square}"
                )
        text.append("\n")
    text.append("  " + "".join(f" {chess.FILE_NAMES[file]} " for file in files) + "\n")
    return text
