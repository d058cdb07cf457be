"""Kernels that read a published game, with the scores and lines that its comments give, to records of positions.

A comment stands behind its move, `{.. pv=h6 d4 hxg5, .., wv=-0.75, ..}`: the line that the player expected, from the
position before the move, and its value in pawns, White's view.
"""

from __future__ import annotations

import numba
import numpy as np

from netdata.kernels import (
    SAMPLE_BYTES,
    Decoder,
    decoder_at,
    draw,
    is_quiet,
    legal_moves,
    sample_at,
    write_pieces,
)
from netdata.records import NO_RESULT, PGN, text_dtype
from psearch.core.chess.board.bits import move_from, move_kind, move_to
from psearch.core.chess.board.position import make_move
from psearch.core.chess.evaluation.evaluate import evaluate, material
from psearch.core.constants import (
    BISHOP,
    KIND_CASTLE,
    KIND_PROMOTE,
    KING,
    KNIGHT,
    MOVE_MASK,
    NO_MOVE,
    PAWN,
    QUEEN,
    ROOK,
    U0,
)
from psearch.core.toolchain.intrinsics import copy_record, view
from psearch.core.toolchain.jit import entry, kernel
from psearch.core.views import Tables, boolean, i64, tables_at, void

Text = numba.from_dtype(text_dtype)
text_at = view(Text)

_NO_SCORE = 1 << 20


@kernel(i64(i64))
def _piece_of(char):
    """The piece that a letter stands for; PAWN: none."""
    if char == ord("N"):
        return KNIGHT
    if char == ord("B"):
        return BISHOP
    if char == ord("R"):
        return ROOK
    if char == ord("Q"):
        return QUEEN
    if char == ord("K"):
        return KING
    return PAWN


@kernel(i64(Decoder, i64, i64))
def _castling(d, count, long):
    for i in range(count):
        move = np.int64(d.frame.node.moves[i]) & MOVE_MASK
        if move_kind(move) == KIND_CASTLE and (move_to(move) < move_from(move)) == (long != 0):
            return move
    return NO_MOVE


@kernel(i64(Tables, Decoder, Text, i64, i64))
def _move_of(tb, d, t, begin, end):
    """The legal move in the decoder's frame that a word (standard algebraic notation) names; NO_MOVE: none, or two."""
    count = legal_moves(tb, d.frame)
    first = np.int64(t.bytes[begin])
    if first == ord("O") or first == ord("0"):
        dashes = 0
        for i in range(begin, end):
            dashes += t.bytes[i] == ord("-")
        return _castling(d, count, dashes > 1)
    piece = _piece_of(first)
    file = rank = from_file = from_rank = -1
    promotion = PAWN
    for i in range(begin if piece == PAWN else begin + 1, end):
        char = np.int64(t.bytes[i])
        if ord("a") <= char <= ord("h"):
            from_file = file
            file = char - ord("a")
        elif ord("1") <= char <= ord("8"):
            from_rank = rank
            rank = char - ord("1")
        elif _piece_of(char) != PAWN:
            promotion = _piece_of(char)
    if file < 0 or rank < 0:
        return NO_MOVE
    target = 8 * rank + file
    found = NO_MOVE
    for i in range(count):
        move = np.int64(d.frame.node.moves[i]) & MOVE_MASK
        origin = move_from(move)
        kind = move_kind(move)
        if (
            move_to(move) != target
            or (np.int64(d.frame.position.board[origin]) & 7) - 1 != piece
            or kind == KIND_CASTLE
        ):
            continue
        if (from_file >= 0 and origin & 7 != from_file) or (from_rank >= 0 and origin >> 3 != from_rank):
            continue
        if (kind >= KIND_PROMOTE) != (promotion != PAWN) or (
            promotion != PAWN and kind - KIND_PROMOTE + KNIGHT != promotion
        ):
            continue
        if found != NO_MOVE:
            return NO_MOVE
        found = move
    return found


@kernel(boolean(i64))
def _is_space(char):
    return char <= ord(" ")


@kernel(i64(Text, i64, i64, i64, i64))
def _value_at(t, begin, end, one, two):
    """Where the value of `.. one two = value ..` begins in a comment; -1: there is none."""
    for i in range(begin + 1, end - 3):
        if t.bytes[i] == one and t.bytes[i + 1] == two and t.bytes[i + 2] == ord("="):
            before = np.int64(t.bytes[i - 1])
            if _is_space(before) or before == ord(",") or before == ord("{"):
                return i + 3
    return -1


@kernel(i64(Text, i64, i64))
def _score_at(t, begin, end):
    """A number of pawns in centipawns; _NO_SCORE where none stands, as with a mate."""
    sign = 1
    i = begin
    if i < end and (t.bytes[i] == ord("-") or t.bytes[i] == ord("+")):
        sign = -1 if t.bytes[i] == ord("-") else 1
        i += 1
    whole = np.int64(0)
    digits = 0
    places = -1
    while i < end:
        char = np.int64(t.bytes[i])
        if char == ord(".") and places < 0:
            places = 0
        elif ord("0") <= char <= ord("9"):
            digits += 1
            if places < 2:
                whole = min(10 * whole + char - ord("0"), _NO_SCORE)
                places += places >= 0
        else:
            break
        i += 1
    if digits == 0 or (i < end and t.bytes[i] != ord(",") and not _is_space(np.int64(t.bytes[i]))):
        return _NO_SCORE
    while places < 2:
        whole *= 10
        places = max(places, 0) + 1
    return sign * whole


@kernel(void(Tables, Decoder, Text, i64, i64))
def _keep(tb, d, t, target, score):
    """Write the position of the decoder's frame, if there is room."""
    if t.written >= t.room:
        return
    pos = d.frame.position
    sample = sample_at(target + t.written * SAMPLE_BYTES)
    write_pieces(pos, sample)
    sample.score = score if pos.side == 0 else -score
    sample.static = evaluate(tb, d.evaluation, pos)
    sample.material = material(pos)
    sample.result = NO_RESULT
    t.written += 1


@kernel(void(Tables, Decoder, Text, i64, i64, i64))
def _read_comment(tb, d, t, begin, end, target):
    """Keep the position before the last move, and some of the line that is expected from there."""
    at = _value_at(t, begin, end, ord("w"), ord("v"))
    if at < 0:
        return
    score = _score_at(t, at, end)
    if abs(score) > d.most_score:
        return
    copy_record(d.frame.position, t.before)
    if t.before.checkers == U0 and is_quiet(t.before, np.int64(t.move)):
        _keep(tb, d, t, target, score)
    i = _value_at(t, begin, end, ord("p"), ord("v"))
    ply = 0
    while 0 <= i < end and ply < t.most_line:
        while i < end and _is_space(np.int64(t.bytes[i])):
            i += 1
        word = i
        while i < end and not _is_space(np.int64(t.bytes[i])) and t.bytes[i] != ord(",") and t.bytes[i] != ord(";"):
            i += 1
        if i == word:
            break
        move = _move_of(tb, d, t, word, i)
        if move == NO_MOVE:
            break
        pos = d.frame.position
        if ply > 0 and pos.checkers == U0 and is_quiet(pos, move) and draw(d) % np.uint64(t.one_of) == U0:
            _keep(tb, d, t, target, score)
        copy_record(d.position, pos)
        make_move(tb, d.position, pos, move)
        ply += 1
    copy_record(d.frame.position, t.after)


@entry(i64(i64, i64, i64, i64), PGN)
def read_text(tables, decoder, text, samples):
    """Write the positions of a game to records of `sample_dtype`, of which there is room for `room`; returns how many.

    text: address of a `text_dtype` record with bytes, length and root. Ends at a word that is no legal move.
    """
    tb = tables_at(tables)
    d = decoder_at(decoder)
    t = text_at(text)
    t.written = 0
    t.plies = 0
    copy_record(d.frame.position, t.root)
    i = np.int64(0)
    while i < t.length:
        char = np.int64(t.bytes[i])
        if char == ord("{"):
            end = i
            while end < t.length and t.bytes[end] != ord("}"):
                end += 1
            if t.plies > 0:
                _read_comment(tb, d, t, i, end, samples)
            i = end + 1
            continue
        word = i
        while i < t.length and not _is_space(np.int64(t.bytes[i])) and t.bytes[i] != ord("{"):
            i += 1
        if i == word:
            i += 1
            continue
        if ord("0") <= char <= ord("9") and (char != ord("0") or t.bytes[word + 1] != ord("-")):
            continue  # a move's number
        move = _move_of(tb, d, t, word, i)
        if move == NO_MOVE:
            break
        t.move = move
        copy_record(t.before, d.frame.position)
        make_move(tb, t.before, d.frame.position, move)
        copy_record(t.after, d.frame.position)
        t.plies += 1
    return t.written
