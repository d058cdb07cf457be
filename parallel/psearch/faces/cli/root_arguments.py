"""Arguments of the search about its root: moves played, moves to choose from, endgame tables, a drawing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from psearch.faces.cli.output import complain
from psearch.settings import MULTIPV, SYZYGY

if TYPE_CHECKING:
    import chess

    from psearch.text.chess_files import RootProbe, RootProber

_VERDICTS = {
    2: "won",
    1: "won, but drawn by the fifty-move rule",
    0: "drawn",
    -1: "lost, but drawn by the fifty-move rule",
    -2: "lost",
}
_MOST_TABLE_MOVES = 8


def add_root_options(parser: argparse.ArgumentParser) -> None:
    """Add `--moves`, `--searchmoves`, `--multipv`, `--syzygy`, `--board`."""
    parser.add_argument(
        "--moves",
        metavar='"M M"',
        help="moves played first (from startpos without a FEN), UCI, SAN or as in a PGN; they count as history",
    )
    parser.add_argument("--searchmoves", metavar='"M M"', help="choose among these moves only")
    MULTIPV.add_to(parser, default=1)
    SYZYGY.add_to(parser)
    parser.add_argument("--board", action="store_true", help="draw the position, White below")


def moved(board: chess.Board, options: argparse.Namespace) -> list[chess.Move] | None:
    """Play `--moves` on the board; the moves of `--searchmoves` there, None for all. Raises PsearchError."""
    if options.moves is None and options.searchmoves is None:
        return None
    from psearch.text.moves import choose_moves, play_moves

    if options.moves is not None:
        play_moves(board, options.moves, "--moves")
    return None if options.searchmoves is None else choose_moves(board, options.searchmoves, "--searchmoves")


def probe(board: chess.Board, path: str) -> RootProbe | None:
    """Return what the tables of `--syzygy` say. Raises PsearchError when there are none."""
    with open_tables(path) as prober:
        return prober.probe(board)


def open_tables(path: str) -> RootProber:
    """Return the tables of `--syzygy`; a line says what is wrong with some of them. Raises PsearchError when there are
    none."""
    from psearch.text.chess_files import RootProber

    prober = RootProber(path)
    for problem in prober.problems:
        complain(problem)
    return prober


def candidates(named: list[chess.Move] | None, found: RootProbe | None) -> list[chess.Move] | None:
    """Return the moves to search: those that the user named, of these what the tables prefer; None for all."""
    if found is None:
        return named
    if named is None:
        return found.best
    return [move for move in named if move in found.best] or named


def table_line(board: chess.Board, found: RootProbe) -> str:
    """Return what the tables say, in one line for people."""
    from psearch.text.report import LABEL_WIDTH

    names = [board.san(move) for move in found.best]
    moves = " ".join(names[:_MOST_TABLE_MOVES]) + (" ..." if len(names) > _MOST_TABLE_MOVES else "")
    distance = f", DTZ {found.dtz}" if found.dtz else ""
    return f"{'tables':<{LABEL_WIDTH}} {_VERDICTS[found.wdl]}{distance}: {moves}"


def table_object(board: chess.Board, found: RootProbe) -> dict[str, Any]:
    """Return what the tables say, for `--json`."""
    return {"wdl": found.wdl, "dtz": found.dtz, "best": [board.uci(move) for move in found.best], "hits": found.hits}
