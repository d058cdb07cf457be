"""What the search command can be told about the root: moves played, moves to choose from, tables, a drawing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from psearch.cli.common import whole_number

if TYPE_CHECKING:
    import chess
    from rich.text import Text

    from psearch.notation.syzygy import RootProbe

MAX_LINES = 256
_VERDICTS = {
    2: "won",
    1: "won, but drawn by the fifty-move rule",
    0: "drawn",
    -1: "lost, but drawn by the fifty-move rule",
    -2: "lost",
}
_MOST_TABLE_MOVES = 8
_LIGHT, _DARK = "on #d8c3a5", "on #a17a5b"
_PIECE_COLOURS = {True: "bold #ffffff", False: "bold #000000"}


def add_root_options(parser: argparse.ArgumentParser) -> None:
    """`--moves`, `--searchmoves`, `--multipv`, `--syzygy`, `--board`."""
    parser.add_argument(
        "--moves", metavar='"M M"', help="moves played from the position, UCI or SAN: they count as history"
    )
    parser.add_argument("--searchmoves", metavar='"M M"', help="choose among these moves only")
    parser.add_argument(
        "--multipv",
        type=whole_number(1, MAX_LINES),
        default=1,
        metavar="N",
        help="the N best moves with their lines",
    )
    parser.add_argument("--syzygy", metavar="PATH", help="folder of Syzygy tables, or several with : between them")
    parser.add_argument("--board", action="store_true", help="draw the position")


def play(board: chess.Board, text: str) -> None:
    """Play the moves of `--moves` on the board. Raises PsearchError for the first that is not legal."""
    for number, word in enumerate(text.split(), start=1):
        board.push(_move(board, word, f"--moves, move {number}"))


def choose(board: chess.Board, text: str) -> list[chess.Move]:
    """The moves of `--searchmoves`, each once. Raises PsearchError for what is not legal, and for none at all."""
    from psearch.results import PsearchError

    moves = [_move(board, word, "--searchmoves") for word in text.split()]
    if not moves:
        raise PsearchError("--searchmoves names no move")
    return list(dict.fromkeys(moves))


def _move(board: chess.Board, word: str, where: str) -> chess.Move:
    """A legal move in UCI or standard algebraic notation."""
    from psearch.results import PsearchError

    parsers: tuple[Callable[[str], chess.Move], ...] = (board.parse_uci, board.parse_san)
    for parse in parsers:
        try:
            move = parse(word)
        except ValueError:
            continue
        if move:  # a null move is no move to search
            return move
    raise PsearchError(f"{where}: {word[:40]!a} is not a legal move in {board.fen()}")


def probe(board: chess.Board, path: str) -> RootProbe | None:
    """What the tables of `--syzygy` say. Raises PsearchError when there are none."""
    from psearch.notation.syzygy import RootProber

    with RootProber(path) as prober:
        return prober.probe(board)


def candidates(asked: list[chess.Move] | None, found: RootProbe | None) -> list[chess.Move] | None:
    """The moves to search: those that the user named, of these what the tables prefer; None for all."""
    if found is None:
        return asked
    if asked is None:
        return found.best
    return [move for move in asked if move in found.best] or asked


def table_line(board: chess.Board, found: RootProbe) -> str:
    """One line for people."""
    names = [board.san(move) for move in found.best]
    moves = " ".join(names[:_MOST_TABLE_MOVES]) + (" ..." if len(names) > _MOST_TABLE_MOVES else "")
    distance = f", DTZ {found.dtz}" if found.dtz else ""
    return f"{'tables':<10} {_VERDICTS[found.wdl]}{distance}: {moves}"


def table_object(board: chess.Board, found: RootProbe) -> dict[str, Any]:
    """The same for `--json`."""
    return {"wdl": found.wdl, "dtz": found.dtz, "best": [board.uci(move) for move in found.best], "hits": found.hits}


def draw(board: chess.Board) -> None:
    """The position on stdout, from the side to move: in colour on a terminal, else as text."""
    from rich.console import Console

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
    import chess
    from rich.text import Text

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
