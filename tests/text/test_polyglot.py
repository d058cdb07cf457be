"""Opening books: what is picked, how often, and what is no book."""

from __future__ import annotations

import os
import random
import struct
from collections import Counter
from pathlib import Path

import chess
import chess.polyglot
import pytest
from paths import DATA

from psearch.results import PsearchError
from psearch.text.chess_files import Book

LINE = """
d2d4 d7d5 c2c4 e7e5 d4e5 d5d4 e2e3 f8b4 c1d2 d4e3 d2b4 e3f2 e1e2 f2g1n
"""
LASKER_TRAP = DATA / "polyglot" / "lasker-trap.bin"


def entry(board: chess.Board, move: chess.Move, weight: int) -> bytes:
    """One entry of the format, as its specification has it."""
    to_row, to_file = divmod(move.to_square, 8)
    from_row, from_file = divmod(move.from_square, 8)
    code = to_file | to_row << 3 | from_file << 6 | from_row << 9
    return struct.pack(">QHHI", chess.polyglot.zobrist_hash(board), code, weight, 0)


def write_book(path: Path, *entries: bytes) -> Path:
    path.write_bytes(b"".join(sorted(entries)))
    return path


def test_a_real_book() -> None:
    """Black's side of the Lasker trap, to the promotion to a knight."""
    board = chess.Board()
    with Book(str(LASKER_TRAP)) as book:
        assert len(book) == 7
        for word in LINE.split():
            move = book.pick(board, random.Random(1))
            assert (move and move.uci()) == (word if board.turn == chess.BLACK else None)
            board.push_uci(word)
    book.close()


def test_drawn_in_proportion_to_the_weights(tmp_path: Path) -> None:
    board = chess.Board()
    e4, d4, h4, illegal = (chess.Move.from_uci(word) for word in ("e2e4", "d2d4", "h2h4", "e2e5"))
    weights = {e4: 30, d4: 10, h4: 0, illegal: 50_000}
    path = write_book(tmp_path / "book.bin", *(entry(board, move, weight) for move, weight in weights.items()))
    with Book(str(path)) as book:
        seeded = random.Random(7)
        drawn = Counter(book.pick(board, seeded) for _ in range(2000))
        again = random.Random(7)
        assert drawn == Counter(book.pick(board, again) for _ in range(2000))
        assert book.expected(board) == e4
        board.push(e4)
        assert book.expected(board) is None
    assert set(drawn) == {e4, d4}
    assert 2.5 < drawn[e4] / drawn[d4] < 3.5


def test_castling_is_a_legal_move_of_the_board(tmp_path: Path) -> None:
    """The format writes king takes rook; a standard board wants e1g1, a Chess960 board e1h1."""
    for chess960, expected in ((False, "e1g1"), (True, "e1h1")):
        board = chess.Board("4k3/8/8/8/8/8/8/4K2R w K - 0 1", chess960=chess960)
        path = write_book(tmp_path / "castling.bin", entry(board, chess.Move.from_uci("e1h1"), 1))
        with Book(str(path)) as book:
            move = book.pick(board, random.Random(1))
        assert move is not None
        assert move in board.legal_moves
        assert board.uci(move) == expected


def test_what_is_no_book(tmp_path: Path) -> None:
    file = tmp_path / "book.bin"
    board = chess.Board()
    good = entry(board, chess.Move.from_uci("e2e4"), 1)
    low, high = sorted((good, entry(chess.Board("4k3/8/8/8/8/8/8/4K3 w - - 0 1"), chess.Move.from_uci("e1e2"), 1)))
    for content, reason in (
        (b"", "is empty"),
        (good[:-1], "not a whole number of entries"),
        (high + low, "not in the order"),
    ):
        file.write_bytes(content)
        with pytest.raises(PsearchError, match=reason):
            Book(str(file))
    file.write_bytes(low + high)
    Book(str(file)).close()
    with pytest.raises(PsearchError, match="No such file"):
        Book(str(tmp_path / "nowhere.bin"))
    with pytest.raises(PsearchError, match="directory"):
        Book(str(tmp_path))
    with pytest.raises(PsearchError, match="null"):
        Book("a\0b")
    os.mkfifo(tmp_path / "pipe")  # nobody writes: an `open` would wait for ever
    for special in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(PsearchError, match="not a regular file"):
            Book(special)


def test_a_book_that_is_cut_short_while_it_is_open(tmp_path: Path) -> None:
    """A mapped one would end the whole program with SIGBUS."""
    path = tmp_path / "book.bin"
    path.write_bytes(LASKER_TRAP.read_bytes())
    board = chess.Board()
    board.push_uci("d2d4")
    with Book(str(path)) as book:
        path.write_bytes(b"")
        assert book.pick(board, random.Random(1)) is not None
