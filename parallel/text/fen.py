"""Positions as the user writes them: FEN, X-FEN, Shredder-FEN, quoted or as bare words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import chess

from psearch.results import PsearchError

_MAX_CLOCK = 10_000
"""Largest half-move clock or move number accepted; no game is longer, and kernels hold these in few bits."""

_RANKS = 8
_LEAST_FIELDS = 2
_DEFAULT_FIELDS = ("", "", "-", "-", "0", "1")
"""What stands for a field that is left out; piece placement and side to move cannot be."""

CASTLING = re.compile(r"-|[KQA-H]{0,2}[kqa-h]{0,2}")
EN_PASSANT = re.compile(r"-|[a-h][36]")
_NUMBER = re.compile(r"[0-9]{1,9}")

_REASONS = {
    chess.STATUS_NO_WHITE_KING: "White has no king",
    chess.STATUS_NO_BLACK_KING: "Black has no king",
    chess.STATUS_TOO_MANY_KINGS: "a side has more than one king",
    chess.STATUS_TOO_MANY_WHITE_PAWNS: "White has more than 8 pawns",
    chess.STATUS_TOO_MANY_BLACK_PAWNS: "Black has more than 8 pawns",
    chess.STATUS_TOO_MANY_WHITE_PIECES: "White has more than 16 pieces",
    chess.STATUS_TOO_MANY_BLACK_PIECES: "Black has more than 16 pieces",
    chess.STATUS_PAWNS_ON_BACKRANK: "a pawn stands on the first or the last rank",
    chess.STATUS_BAD_CASTLING_RIGHTS: "a castling right has no king and rook to go with it",
    chess.STATUS_INVALID_EP_SQUARE: "the en passant square is not behind a pawn that just moved two squares",
    chess.STATUS_OPPOSITE_CHECK: "the side not to move is in check",
    chess.STATUS_TOO_MANY_CHECKERS: "more than two pieces give check",
    chess.STATUS_IMPOSSIBLE_CHECK: "no legal move can have led to these checks",
}

_ODD_BUT_PLAYABLE = (
    chess.STATUS_TOO_MANY_CHECKERS
    | chess.STATUS_IMPOSSIBLE_CHECK
    | chess.STATUS_TOO_MANY_WHITE_PAWNS
    | chess.STATUS_TOO_MANY_BLACK_PAWNS
    | chess.STATUS_TOO_MANY_WHITE_PIECES
    | chess.STATUS_TOO_MANY_BLACK_PIECES
)
"""What move generation does not mind, and perft suites contain."""


def parse_position(text: str | Sequence[str], *, strict: bool = True) -> chess.Board:
    """Return the position that a FEN describes.

    `text` is `startpos` or a FEN, whole or as words. Fields may be left out from the end: the two counters (EPD),
    en passant and castling, which are `-` then, as in python-chess. The board is a Chess960 board only where
    castling needs it: file letters in the castling field, or a king or rook with a right that is not on its
    standard square. With `strict=False` positions pass that no game can reach but whose moves are well defined
    (impossible checks, too many pieces), as perft suites have them.

    Raises PsearchError, one line saying what is wrong.
    """
    fields = (text if isinstance(text, str) else " ".join(text)).split()
    if fields == ["startpos"]:
        return chess.Board()
    _check_fields(fields)
    fields += _DEFAULT_FIELDS[len(fields) :]
    try:
        board = chess.Board(" ".join(fields), chess960=True)
    except ValueError as error:  # what is left after the checks on fields is the piece placement
        reason = str(error).split(" in position part of fen")[0]
        raise PsearchError(f"bad FEN: piece placement {_quote(fields[0])}: {reason}") from None
    # python-chess drops a queenside right silently when there is no rook at all
    if chess.popcount(board.castling_rights) != len(fields[2].replace("-", "")):
        raise PsearchError(f"illegal position: {_REASONS[chess.STATUS_BAD_CASTLING_RIGHTS]}")
    if not _needs_chess960(board, fields[2]):
        board.chess960 = False
    check_position(board, strict=strict)
    return board


def check_position(board: chess.Board, *, strict: bool = True) -> None:
    """Raise PsearchError, with every reason in one line, when `board` is not a legal position of chess."""
    if type(board).uci_variant != "chess":
        raise PsearchError(f"{type(board).uci_variant} is not supported, only chess and Chess960")
    check_clocks(board)
    status = board.status()
    if not strict:
        status &= ~_ODD_BUT_PLAYABLE
    if status & chess.STATUS_EMPTY:
        raise PsearchError("illegal position: the board is empty")
    if status:
        reasons = [reason for flag, reason in _REASONS.items() if status & flag]
        raise PsearchError(f"illegal position: {', '.join(reasons)}")


def check_clocks(board: chess.Board) -> None:
    """Raise PsearchError for a half-move clock or a move number that no game has."""
    for name, number in (("half-move clock", board.halfmove_clock), ("move number", board.fullmove_number)):
        if not 0 <= number <= _MAX_CLOCK:
            raise PsearchError(f"illegal position: the {name} is not a number from 0 to {_MAX_CLOCK:,}")


def checked_moves(board: chess.Board, root_moves: Iterable[chess.Move] | None) -> list[chess.Move] | None:
    """Return root moves as a list. Raises PsearchError when one is illegal, or when none is left."""
    if root_moves is None:
        return None
    moves = list(root_moves)
    for move in moves:
        if move not in board.legal_moves:
            raise PsearchError(f"{move.uci()} is not a legal move in {board.fen()}")
    if not moves and any(board.legal_moves):
        raise PsearchError("root_moves is empty: there is nothing to choose from")
    return moves


def _check_fields(fields: list[str]) -> None:
    """Everything about a FEN that can be said without looking at the board."""
    if not fields:
        raise PsearchError("bad FEN: it is empty")
    if len(fields) == 1 and fields[0].count("/") == _RANKS - 1:
        raise PsearchError(f"bad FEN: {_quote(fields[0])} is not followed by the side to move, w or b")
    if not _LEAST_FIELDS <= len(fields) <= len(_DEFAULT_FIELDS):
        count = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
        most = len(_DEFAULT_FIELDS)
        raise PsearchError(f"bad FEN: {_quote(' '.join(fields))} has {count}, not {_LEAST_FIELDS} to {most}")
    if fields[1] not in ("w", "b"):
        raise PsearchError(f"bad FEN: side to move must be w or b, not {_quote(fields[1])}")
    fields = [*fields, *_DEFAULT_FIELDS[len(fields) :]]
    if not CASTLING.fullmatch(fields[2]):
        raise PsearchError(f"bad FEN: castling must be like KQkq, HAha or -, not {_quote(fields[2])}")
    if not EN_PASSANT.fullmatch(fields[3]):
        raise PsearchError(f"bad FEN: en passant must be like e3, e6 or -, not {_quote(fields[3])}")
    for name, word in zip(("half-move clock", "move number"), fields[4:], strict=True):
        if not _NUMBER.fullmatch(word) or int(word) > _MAX_CLOCK:
            raise PsearchError(f"bad FEN: {name} must be a number from 0 to {_MAX_CLOCK}, not {_quote(word)}")


def _needs_chess960(board: chess.Board, castling: str) -> bool:
    if re.search("[A-Ha-h]", castling):
        return True
    if board.castling_rights & ~chess.BB_CORNERS:
        return True
    white_away = board.castling_rights & chess.BB_RANK_1 and board.king(chess.WHITE) != chess.E1
    black_away = board.castling_rights & chess.BB_RANK_8 and board.king(chess.BLACK) != chess.E8
    return bool(white_away or black_away)


def _quote(text: str, limit: int = 80) -> str:
    """Quote as the user wrote it, on one line, printable, and not endless."""
    return ascii(text if len(text) <= limit else text[: limit - 3] + "...")
