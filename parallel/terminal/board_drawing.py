"""A position drawn on the terminal."""

from __future__ import annotations

import sys
from typing import TextIO

import chess
from rich.console import Console
from rich.text import Text

_LIGHT, _DARK = "on #d8c3a5", "on #a17a5b"
_PIECE_COLOURS = {chess.WHITE: "bold #ffffff", chess.BLACK: "bold #000000"}


def draw(board: chess.Board) -> None:
    """The position on stdout, from the side to move: in colour on a terminal, with letters on one without colours or
    figures, else as text with figures."""
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal and console.color_system is not None and not console.no_color:
        console.print(board_text(board))
    elif console.is_terminal or not _has_figures(sys.stdout):
        print(board_letters(board), flush=True)
    else:
        print(f"{board.unicode(borders=True, empty_square=' ', orientation=board.turn)}\n", flush=True)


def _has_figures(stream: TextIO) -> bool:
    try:
        "♔".encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def board_letters(board: chess.Board) -> str:
    """The position with letters, White's in capitals: figures without colours look like the other side's on a dark
    background."""
    ranks, files = _ranks_and_files(board)
    lines = []
    for rank in ranks:
        pieces = [board.piece_at(chess.square(file, rank)) for file in files]
        words = [chess.RANK_NAMES[rank], "", *(piece.symbol() if piece is not None else "." for piece in pieces)]
        lines.append(" ".join(words))
    return "\n".join([*lines, "", "   " + " ".join(chess.FILE_NAMES[file] for file in files), ""])


def _ranks_and_files(board: chess.Board) -> tuple[list[int], list[int]]:
    """From top to bottom and from left to right, as the side to move sees them."""
    up, down = list(range(8)), list(range(7, -1, -1))
    return (up, down) if board.turn == chess.BLACK else (down, up)


def board_text(board: chess.Board) -> Text:
    """The position as coloured squares. Both colours use the filled figures, which show on any background."""
    ranks, files = _ranks_and_files(board)
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
