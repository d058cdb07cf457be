"""Reads positions in the notations of users and programs: FEN, X-FEN, Shredder-FEN, the first fields of an EPD."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence

import chess

from psearch.results import PsearchError
from psearch.text.values import quoted

_MAX_CLOCK = 10_000
"""Largest half-move clock and move number; no game is longer, and kernels store them in few bits."""

_READ_AS = {
    **dict.fromkeys(map(ord, "\"'`´“”„‟‘’‚‛«»‹›[]_"), " "),  # noqa: RUF001  # quotes, and the blanks of an address
    **dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣－"), "-"),  # noqa: RUF001
}
"""Characters that are read as blanks or dashes: quotes and brackets around a FEN, and the dashes of word processors."""
_UNSEEN = dict.fromkeys(map(ord, "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060"))
_WORD = re.compile(r"\S+")
LABEL = re.compile(r"\s*(?:(?:position|fen)\b\s*[:=]?\s*)*", re.IGNORECASE)

CASTLING = re.compile(r"[-KQkqA-Ha-h]{1,16}")
EN_PASSANT = re.compile(r"-+|[a-hA-H][1-8]")
_NUMBER = re.compile(r"-+|[+-]?[0-9]{1,30}(?:\.[0-9]*)?")
_OPTIONAL = (
    ("castling must be like KQkq, HAha or -", CASTLING),
    ("en passant must be like e3, e6 or -", EN_PASSANT),
    (f"half-move clock must be a number from 0 to {_MAX_CLOCK}", _NUMBER),
    (f"move number must be a number from 0 to {_MAX_CLOCK}", _NUMBER),
)
"""Fields after the side to move. Each differs from those after it, so that any may be missing."""
_OPCODE = re.compile(
    r"((?i:[abds]m|p[mv]|ac[dns]|c[0-9]|ce|eco|fmvn|hmvc|id|nic|noop|rc|tc[grs][is]|v[0-9])|D[0-9]+)[:=]?"
)
"""Pattern of an EPD operation. No other word may follow the fields: it would be a move without the word `moves`."""
_COUNTERS = (("hmvc", 2), ("fmvn", 3))
_TURNS = {"w": chess.WHITE, "W": chess.WHITE, "b": chess.BLACK, "B": chess.BLACK}

_REASONS = {
    chess.STATUS_NO_WHITE_KING: "White has no king",
    chess.STATUS_NO_BLACK_KING: "Black has no king",
    chess.STATUS_TOO_MANY_KINGS: "a side has more than one king",
    chess.STATUS_TOO_MANY_WHITE_PAWNS: "White has more than 8 pawns",
    chess.STATUS_TOO_MANY_BLACK_PAWNS: "Black has more than 8 pawns",
    chess.STATUS_TOO_MANY_WHITE_PIECES: "White has more than 16 pieces",
    chess.STATUS_TOO_MANY_BLACK_PIECES: "Black has more than 16 pieces",
    chess.STATUS_PAWNS_ON_BACKRANK: "a pawn stands on the first or the last rank",
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
"""Flaws of positions in perft suites that do not disturb move generation."""


def parse_position(text: str | Sequence[str], *, strict: bool = True, chess960: bool | None = None) -> chess.Board:
    """Return the position that a FEN describes.

    `text` is `startpos` or a FEN, as a string or as words. Unusual notation is accepted: quotes, brackets and the words
    `position` and `fen` around it, dashes of any kind, capitals, castling rights in any order and in both notations,
    operations of an EPD after the fields, of which only the counters are read. Any field after the side to move may be
    missing. Impossible values are dropped: castling rights without king and rook, an en passant square that no pawn has
    just passed, counters that no game has.

    chess960: None makes a Chess960 board if castling needs it (file letters, or a king or rook with a right that is not
    on its standard square), False only by the squares, True always. A side's `KQ` mean Chess960 only if both have a
    rook; a right without one shows that the letters are left over from standard chess.

    `strict=False` accepts positions that no game can reach but whose moves are well defined (impossible checks, too
    many pieces), as in perft suites. Raises PsearchError, whose text is one line.
    """
    return split_position(text if isinstance(text, str) else " ".join(text), strict=strict, chess960=chess960)[0]


def split_position(text: str, *, strict: bool = True, chess960: bool | None = None) -> tuple[chess.Board, str]:
    """Return the position at the beginning of a line, and the text after it, such as the operations of an EPD. Accepts
    and raises what `parse_position` does."""
    text = text.translate(_UNSEEN)
    plain = text.translate(_READ_AS)  # has the same length
    begin = LABEL.match(plain)
    words = list(_WORD.finditer(plain.partition(";")[0], begin.end() if begin else 0))
    rest = text[len(plain.partition(";")[0]) :].lstrip("; \t")
    if not words:
        raise PsearchError("bad FEN: it is empty")
    if words[0][0].casefold() == "startpos":
        if len(words) > 1 and not _OPCODE.fullmatch(words[1][0]):
            others = plain[words[1].start() :]
            raise PsearchError(f"bad FEN: startpos must stand alone, without {quoted(others)}")
        return chess.Board(chess960=bool(chess960)), text[words[1].start() :] if len(words) > 1 else rest
    if len(words) < 2:
        is_board = words[0][0].count("/") == 7
        problem = "is not followed by the side to move, w or b" if is_board else "has 1 field, not 2 to 6"
        raise PsearchError(f"bad FEN: {quoted(words[0][0])} {problem}")
    board = chess.Board(None, chess960=True)
    _place(board, words[0][0])
    turn = words[1][0]
    if turn not in _TURNS:
        raise PsearchError(f"bad FEN: side to move must be w or b, not {quoted(turn)}")
    board.turn = _TURNS[turn]
    fields, count = _optional_fields([word[0] for word in words[2:]])
    if count < len(words) - 2:
        rest = text[words[2 + count].start() :]
    for name, field in _COUNTERS if rest else ():
        if match := re.search(rf"\b{name}\s+([0-9]{{1,30}})\b", rest):
            fields[field] = match[1]
    castling, en_passant, clock, number = fields
    _give_rights(board, castling, chess960)
    if "-" not in en_passant:
        board.ep_square = chess.parse_square(en_passant.lower())
    board.halfmove_clock = _counter(clock, 0)
    board.fullmove_number = _counter(number, 1) or 1
    drop_impossible(board, strict=strict)
    check_position(board, strict=strict)
    return board, rest


def drop_impossible(board: chess.Board, *, strict: bool = True) -> None:
    """Remove impossible castling rights and an impossible en passant square from a board, as python-chess and Stockfish
    do. `strict=False` keeps an en passant square that makes a check impossible."""
    board.castling_rights = board.clean_castling_rights()
    if board.ep_square is not None:
        square, status = board.ep_square, board.status()
        board.ep_square = None
        gained = status & ~board.status()
        if not gained or (not strict and not gained & chess.STATUS_INVALID_EP_SQUARE):
            board.ep_square = square


def check_position(board: chess.Board, *, strict: bool = True) -> None:
    """Raise PsearchError, with all reasons in one line, unless `board` is a legal position of chess. Impossible
    castling rights are no reason, since python-chess ignores them."""
    if type(board).uci_variant != "chess":
        raise PsearchError(f"{type(board).uci_variant} is not supported, only chess and Chess960")
    for name, number in (("half-move clock", board.halfmove_clock), ("move number", board.fullmove_number)):
        if not 0 <= number <= _MAX_CLOCK:
            raise PsearchError(f"illegal position: the {name} is not a number from 0 to {_MAX_CLOCK:,}")
    status = board.status() & ~chess.STATUS_BAD_CASTLING_RIGHTS
    if not strict:
        status &= ~_ODD_BUT_PLAYABLE
    if status & chess.STATUS_EMPTY:
        raise PsearchError("illegal position: the board is empty")
    if status:
        reasons = [reason for flag, reason in _REASONS.items() if status & flag]
        raise PsearchError(f"illegal position: {', '.join(reasons)}")


def checked_moves(board: chess.Board, root_moves: Iterable[chess.Move] | None) -> list[chess.Move] | None:
    """Return root moves as a list. Raises PsearchError for an illegal move, and for an empty list."""
    if root_moves is None:
        return None
    moves = list(root_moves)
    for move in moves:
        if move not in board.legal_moves:
            raise PsearchError(f"{move.uci()} is not a legal move in {board.fen()}")
    if not moves and any(board.legal_moves):
        raise PsearchError("root_moves is empty: there is nothing to choose from")
    return moves


def _optional_fields(words: Sequence[str]) -> tuple[list[str], int]:
    """Return castling, en passant and the two counters, `-` for a missing one, and the number of their words, before
    the operations. Raises PsearchError for any other word."""
    found, at = ["-"] * len(_OPTIONAL), 0
    for place, word in enumerate(words):
        if _OPCODE.fullmatch(word):  # `ce` may be castling, before an en passant square, and `c3` such a square
            following, is_square = "".join(words[place + 1 : place + 2]), EN_PASSANT.fullmatch(word)
            is_field = at <= 1 and is_square
            if at == 0:
                is_castling = CASTLING.fullmatch(word) and EN_PASSANT.fullmatch(following)
                is_field = _NUMBER.fullmatch(following) if is_square else is_castling
            if not is_field:
                return found, place
        fitting = [number for number in range(at, len(_OPTIONAL)) if _OPTIONAL[number][1].fullmatch(word)]
        if not fitting:
            is_last = at == len(_OPTIONAL)
            wanted = f"{quoted(word)} is one too many" if is_last else f"{_OPTIONAL[at][0]}, not {quoted(word)}"
            raise PsearchError(f"bad FEN: {wanted}")
        found[fitting[0]], at = word, fitting[0] + 1
    return found, len(words)


def _place(board: chess.Board, placement: str) -> None:
    """Put the pieces on the board. Raises PsearchError, which names the row and the character."""
    rows = placement.strip("/").split("/")
    if len(rows) != 8:
        count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
        raise PsearchError(f"bad FEN: piece placement {quoted(placement)} has {count}, not 8")
    if placement.isascii():
        with contextlib.suppress(ValueError):
            board.set_board_fen("/".join(rows))
            return
    for number, row in enumerate(rows, start=1):
        where = f"bad FEN: piece placement, row {number} (rank {9 - number}), {quoted(row)}"
        odd = re.search(r"[^1-8pnbrqkPNBRQK~]|(?<![pnbrqkPNBRQK])~", row)
        if odd is not None:
            raise PsearchError(f"{where}: {quoted(odd[0])} is neither a piece nor a number from 1 to 8")
        if re.search("[1-8]{2}", row):
            raise PsearchError(f"{where}: two numbers are adjacent")
        squares = sum(int(mark) if mark.isdigit() else 1 for mark in row.replace("~", ""))
        if squares != 8:
            raise PsearchError(f"{where}: {squares} squares, not 8")


def _give_rights(board: chess.Board, letters: str, chess960: bool | None) -> None:
    """Set the possible castling rights of these letters, and decide whether it is a Chess960 board."""
    for color in chess.COLORS:
        own = {letter.lower() for letter in letters if letter != "-" and letter.isupper() == color}
        rooks = {letter: _rook_of(board, color, letter) for letter in own}
        is_left_over = not chess960 and not all(rooks[letter] for letter in own & {"k", "q"})
        for letter, rook in rooks.items():
            is_standard = rook & chess.BB_CORNERS and board.king(color) in (chess.E1, chess.E8)
            if letter not in "kq" or not is_left_over or is_standard:
                board.castling_rights |= rook
    board.castling_rights = board.clean_castling_rights()
    by_file = not set(letters) & set("KQkq")
    is_named_so = chess960 is None and by_file and board.castling_rights != chess.BB_EMPTY
    board.chess960 = bool(chess960) or is_named_so or board.has_chess960_castling_rights()


def _rook_of(board: chess.Board, color: chess.Color, letter: str) -> chess.Bitboard:
    """Return the rook of a castling right: the outermost on the king's or the queen's side, or the one on a file. Empty
    if there is none, or no king on its rank."""
    king = board.king(color)
    rank_bb = chess.BB_RANK_1 if color == chess.WHITE else chess.BB_RANK_8
    rooks = board.pieces_mask(chess.ROOK, color) & rank_bb
    if king is None or not chess.BB_SQUARES[king] & rank_bb:
        return chess.BB_EMPTY
    if letter not in "kq":
        return rooks & chess.BB_FILES[chess.FILE_NAMES.index(letter)]
    lower = chess.BB_SQUARES[king] - 1
    beside = rooks & lower if letter == "q" else rooks & ~lower
    if not beside:
        return chess.BB_EMPTY
    return chess.BB_SQUARES[chess.lsb(beside) if letter == "q" else chess.msb(beside)]


def _counter(word: str, otherwise: int) -> int:
    """Return a half-move clock or a move number; `otherwise` if it is missing, or larger than in any game."""
    if word.strip("-") == "":
        return otherwise
    number = int(word.partition(".")[0])
    return number if 0 <= number <= _MAX_CLOCK else otherwise
