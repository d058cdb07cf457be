"""FENs as programs and people write them: what is odd about them does no harm, or cannot be true.

`oddly_written` spoils the FEN of a board in ways that must not change the position that is read.
"""

from __future__ import annotations

from random import Random

import chess

_DASHES = ["-", "-", "-", "--", "–", "—", "−", "‑"]  # noqa: RUF001
_BLANKS = [" ", " ", " ", "  ", "\t", " \t ", "\u00a0"]
_QUOTES = ['"{}"', "'{}'", "“{}”", "`{}`"]
_AROUND = ["{}", "{}", "{};", " {} ", "fen {}", "FEN: {}", "position fen {}", "position {}", '[FEN "{}"]', *_QUOTES]
_OPERATIONS = [
    ' bm e4; id "a position 1";',
    '; c0 "it\'s best";',
    " acd 20; ce 31; pv e2e4 e7e5;",
    ";D1 20 ;D2 400",
    ' id "x"; bm Nf3+ O-O;',
]
_NO_COUNTERS = [(), (), ("0",), ("-", "-"), ("-1", "0"), ("-5", "99999999999"), ("123456", "-"), ("−1", "1")]  # noqa: RUF001
"""Counters that are read as 0 and 1."""


def oddly_written(board: chess.Board, dice: Random, *, in_line: bool = False) -> str:
    """Return a text that means the board, whose clocks must be in the range of a game.

    in_line: as the words of a UCI command or a line of a suite, with nothing around it and nothing behind it.
    """
    side = "wb"[not board.turn]
    fields = [
        board.board_fen(promoted=dice.random() < 0.1) + ("/" if dice.random() < 0.05 else ""),
        side.upper() if dice.random() < 0.2 else side,
        _castling(board, dice),
        _ep(board, dice),
    ]
    counters = _counters(board, dice)
    operations = ""
    if not counters and not in_line and dice.random() < 0.5:
        operations = dice.choice(_OPERATIONS)
    fields += counters
    while not counters and fields[-1].strip("-–—−‑") == "" and dice.random() < 0.5:  # noqa: RUF001
        fields.pop()
    text = fields[0] + "".join(dice.choice(_BLANKS) + field for field in fields[1:]) + operations
    around = "{}" if in_line or operations else dice.choice(_AROUND)
    return around.format(text)


def _castling(board: chess.Board, dice: Random) -> str:
    """The rights in any notation and order, doubled, with some that cannot be true."""
    letters = []
    for color in chess.COLORS:
        letters += _letters(board, color, dice)
    letters += [letter for letter in letters if dice.random() < 0.2]
    if dice.random() < 0.7:
        dice.shuffle(letters)
    return "".join(letters) or dice.choice(_DASHES)


def _letters(board: chess.Board, color: chess.Color, dice: Random) -> list[str]:
    """The rights of a side, each by file or by side, with others that cannot be true."""
    rank_bb = chess.BB_RANK_1 if color else chess.BB_RANK_8
    rights = list(chess.SquareSet(board.clean_castling_rights() & rank_bb))
    rooks = list(chess.SquareSet(board.pieces_mask(chess.ROOK, color) & rank_bb))
    king = board.king(color)
    assert king is not None
    is_home = bool(chess.BB_SQUARES[king] & rank_bb)
    letters = []
    for square in rights:
        side = "k" if square > king else "q"
        is_outermost = square == (max(rooks) if side == "k" else min(rooks))
        by_file = not is_outermost or (board.chess960 and dice.random() < 0.5)
        letters.append(chess.FILE_NAMES[chess.square_file(square)] if by_file else side)
    if not board.chess960 and rights and dice.random() < 0.3:  # both notations; files alone would mean Chess960
        letters.append(chess.FILE_NAMES[chess.square_file(dice.choice(rights))])
    if not (board.chess960 and rights):  # in Chess960 one of these would show that the others are of standard chess
        sides = {"k": any(rook > king for rook in rooks), "q": any(rook < king for rook in rooks)}
        letters += [side for side, has_rook in sides.items() if not (is_home and has_rook) and dice.random() < 0.3]
    files = {chess.square_file(rook) for rook in rooks} if is_home else set()
    letters += [name for file, name in enumerate(chess.FILE_NAMES) if file not in files and dice.random() < 0.05]
    return [letter.upper() if color else letter for letter in letters]


def _ep(board: chess.Board, dice: Random) -> str:
    """The square, or one that no pawn has just passed over."""
    if board.has_legal_en_passant():
        assert board.ep_square is not None
        name = chess.square_name(board.ep_square)
        return name.upper() if dice.random() < 0.2 else name
    if dice.random() < 0.6:
        return dice.choice(_DASHES)
    copy = board.copy(stack=False)
    copy.ep_square = dice.randrange(64)
    # a square that may be true is no damage: the pawn that passed it cannot be taken, or can
    return chess.square_name(copy.ep_square) if copy.status() & chess.STATUS_INVALID_EP_SQUARE else "-"


def _counters(board: chess.Board, dice: Random) -> list[str]:
    numbers = board.halfmove_clock, board.fullmove_number
    if numbers == (0, 1) and dice.random() < 0.7:
        return list(dice.choice(_NO_COUNTERS))
    return [dice.choice(["{}", "{}", "{}", "{}.0", "{}.5", "+{}", "{:03}"]).format(number) for number in numbers]
