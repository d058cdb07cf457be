"""Positions as the user writes them: what is accepted, and what is refused with which words."""

from __future__ import annotations

import csv

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import DATA
from positions import KIWIPETE

from psearch.results import PsearchError
from psearch.text.fen import check_position, parse_position

CASES = DATA / "fen_cases.tsv"

# python-chess as a board of standard chess finds no castling here; read as X-FEN it is a Chess960 position
XFEN_CASE = "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w KQkq - 0 1"


def fen_cases() -> list[tuple[str, bool]]:
    """(FEN, whether python-chess calls it valid)"""
    with open(CASES, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [(row[0], row[1] == "VALID") for row in rows]


def refusal(text: str | list[str], *, strict: bool = True) -> str:
    with pytest.raises(PsearchError) as caught:
        parse_position(text, strict=strict)
    message = str(caught.value)
    assert message.isprintable()  # so it is one line
    assert message
    return message


@pytest.mark.parametrize(("fen", "valid"), fen_cases())
def test_agrees_with_python_chess(fen: str, valid: bool) -> None:
    if fen == XFEN_CASE:
        assert parse_position(fen).chess960
    elif valid:
        assert parse_position(fen).fen() == chess.Board(fen, chess960=False).fen()
    else:
        refusal(fen)


def test_startpos() -> None:
    assert parse_position("startpos") == chess.Board()
    assert parse_position(["startpos"]) == chess.Board()


def test_words_and_whitespace() -> None:
    assert parse_position(KIWIPETE.split()) == chess.Board(KIWIPETE)
    assert parse_position(f"  {KIWIPETE.replace(' ', '   ')}\n") == chess.Board(KIWIPETE)
    assert parse_position([KIWIPETE]) == chess.Board(KIWIPETE)


@pytest.mark.parametrize("counters", ["", " 7", " 7 23"])
def test_counters_have_defaults(counters: str) -> None:
    board = parse_position("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - -" + counters)
    assert board.halfmove_clock == (7 if counters else 0)
    assert board.fullmove_number == (23 if counters == " 7 23" else 1)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_fields_are_left_out_from_the_end(count: int) -> None:
    """As python-chess and Stockfish take them: nobody may castle, nothing may be taken en passant."""
    fields = ["8/8/8/8/3k4/8/8/3K3R", "b", "-", "-", "0", "1"]
    assert parse_position(fields[:count]).fen() == "8/8/8/8/3k4/8/8/3K3R b - - 0 1"
    start = chess.STARTING_FEN.split()[:count]
    assert parse_position(start) == chess.Board(" ".join(start))


@pytest.mark.parametrize(
    ("fen", "chess960"),
    [
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", False),
        ("r3k2r/8/8/8/8/8/8/R3K2R w HAha - 0 1", True),
        ("1r2k2r/8/8/8/8/8/8/1R2K2R w KQkq - 0 1", True),  # rooks on b1 and b8
        ("1r3kr1/8/8/8/8/8/8/1R3KR1 w KQkq - 0 1", True),
        ("1r3kr1/8/8/8/8/8/8/1R3KR1 w GBgb - 0 1", True),
        ("1r3kr1/8/8/8/8/8/8/1R3KR1 w - - 0 1", False),  # no right, nothing to tell apart
        ("r2k3r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", True),  # Black's king on d8 only
    ],
)
def test_chess960_only_where_castling_needs_it(fen: str, chess960: bool) -> None:
    board = parse_position(fen)
    assert board.chess960 is chess960
    assert chess.popcount(board.castling_rights) == (0 if " - - " in fen else 4)


def test_x_fen_means_the_outermost_rook() -> None:
    board = parse_position("2k5/8/8/8/8/8/8/RR2K3 w Q - 0 1")
    assert board.castling_rights == chess.BB_A1


@pytest.mark.parametrize(
    ("fen", "words"),
    [
        ("", "empty"),
        ("hello", "'hello' has 1 field, not 2 to 6"),
        ("8/8/8/8/8/8/8/4K2k", "'8/8/8/8/8/8/8/4K2k' is not followed by the side to move, w or b"),
        ("8/8/8/8/8/8/8/4K2k white", "side to move"),
        ("4k3/8/8/8/8/8/8/4K3 w castle", "castling"),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "board is empty"),
        ("k7/8/8/8/8/8/8/8 w - - 0 1", "White has no king"),
        ("8/8/8/8/8/8/8/K7 w - - 0 1", "Black has no king"),
        ("kk6/8/8/8/8/8/8/K7 w - - 0 1", "more than one king"),
        ("4k3/8/8/8/8/8/4Q3/4K3 w - - 0 1", "illegal position: the side not to move is in check"),
        ("4k2P/8/8/8/8/8/8/4K3 w - - 0 1", "first or the last rank"),
        ("4k3/8/PPPPPPPP/P7/8/8/8/4K3 w - - 0 1", "more than 8 pawns"),
        ("4k3/8/8/8/QQQQ4/QQQQQQ2/QQQQQQQ1/4K3 b - - 0 1", "more than 16 pieces"),
        ("4k3/8/8/8/8/8/8/4K3 w K - 0 1", "castling right"),
        ("4k3/8/8/8/8/8/8/4K3 w Q - 0 1", "castling right"),
        ("4k3/8/8/8/8/8/8/4K2R w KH - 0 1", "castling right"),
        ("4k3/8/8/8/8/8/8/4K3 w - e6 0 1", "en passant"),
        ("4k3/8/8/8/8/8/8/4K3 w - e5 0 1", "en passant"),
        ("4k3/8/8/8/8/8/8/4K3 white - - 0 1", "side to move"),
        ("4k3/8/8/8/8/8/8/4K3 w castle - 0 1", "castling"),
        ("4k3/8/8/8/8/8/8/4K3 w - - -1 1", "half-move clock"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 99999999999", "move number"),
        ("4k3/8/8/8/8/8/8/4K3 w - - \u0663 1", "half-move clock"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 bm", "7 fields"),
        ("4k3/8/8/8/8/8/4K3 w - - 0 1", "8 rows"),
        ("4k3/8/8/8/8/8/8/4K2\x1b[31m w - - 0 1", "placement"),
    ],
)
def test_says_what_is_wrong(fen: str, words: str) -> None:
    assert words in refusal(fen)


def test_a_long_text_gives_a_short_message() -> None:
    assert len(refusal("x" * 1_000_000)) < 200
    assert len(refusal("8/" * 100_000 + " w - - 0 1")) < 200


def test_lenient_takes_what_perft_suites_have() -> None:
    impossible_check = "3R4/8/q4k2/2B5/1NK5/3b4/8/8 w - - 0 1"
    crowded = "kBQQQQQQ/BR5Q/Q6Q/Q6Q/Q6Q/Q6Q/Q6Q/KQQQQQQQ w - - 0 1"
    for fen in (impossible_check, crowded):
        refusal(fen)
        assert parse_position(fen, strict=False).fen() == fen
    refusal("4k3/8/8/8/8/8/4Q3/4K3 w - - 0 1", strict=False)


def test_check_position_of_a_board() -> None:
    check_position(chess.Board())
    check_position(chess.Board.from_chess960_pos(17))
    with pytest.raises(PsearchError, match="no king"):
        check_position(chess.Board("8/8/8/8/8/8/8/K7 w - - 0 1"))
    with pytest.raises(PsearchError, match="castling"):
        # standard rules do not know these rights
        check_position(chess.Board(XFEN_CASE, chess960=False))


FEN_LIKE = st.tuples(
    st.lists(st.text("pnbrqkPNBRQK12345678/", max_size=9), max_size=9).map("/".join),
    st.sampled_from("wbx-"),
    st.text("KQkqAHah-", max_size=5),
    st.text("abeh36-", max_size=3),
    st.text("0123456789-", max_size=12),
    st.text("0123456789-", max_size=12),
).map(" ".join)


@st.composite
def mutated_fens(draw: st.DrawFn) -> str:
    fen = list(draw(st.sampled_from([KIWIPETE, XFEN_CASE, chess.STARTING_FEN])))
    for _ in range(draw(st.integers(1, 4))):
        fen[draw(st.integers(0, len(fen) - 1))] = draw(st.sampled_from("pnbrqkPNBRQK18/ w-ahAH3"))
    return "".join(fen)


@settings(deadline=None, max_examples=600)
@given(st.text(max_size=80) | FEN_LIKE | mutated_fens() | mutated_fens())
def test_anything_is_a_board_or_a_refusal(text: str) -> None:
    try:
        board = parse_position(text)
    except PsearchError as error:
        assert str(error).isprintable()
    else:
        assert board.is_valid()
        assert parse_position(board.fen()).board_fen() == board.board_fen()
