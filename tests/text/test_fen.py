"""Positions as the user writes them: what is accepted, and what is refused with which words."""

from __future__ import annotations

import csv
from collections.abc import Callable
from random import Random

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_fens import oddly_written
from paths import DATA
from positions import KIWIPETE, sample

from psearch.api.question import board_of
from psearch.batch.positions.task import Task, from_board
from psearch.faces.uci.uci_conversation import CurrentPosition
from psearch.faces.web.game_tree import GameTree
from psearch.results import Limits, PsearchError
from psearch.text.epd_text import parse_perft_suite
from psearch.text.fen import check_position, parse_position, split_position
from psearch.text.source import Source

CASES = DATA / "fen_cases.tsv"

# python-chess as a board of standard chess finds no castling here; read as X-FEN it is a Chess960 position
XFEN_CASE = "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w KQkq - 0 1"


DROPPED = {
    "STATUS BAD_CASTLING_RIGHTS",
    "STATUS INVALID_EP_SQUARE",
    "PARSE_ERROR: fullmove number cannot be negative",
    "PARSE_ERROR: half-move clock cannot be negative",
}
"""What python-chess says of FENs in which something cannot be true: it is left out, and the rest is read."""
CHECKS_BEFORE_EN_PASSANT = (
    "8/8/8/1k6/3Pp3/8/8/4KQ2 b - d3 0 1",
    "rnbqk1nr/bb3p1p/1q2r3/2pPp3/3P4/7P/1PP1NpPP/R1BQKBNR w KQkq c6 0 1",
)
"""Impossible only because of the en passant square: the check was there before the pawn moved."""
OTHER_ORDER = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w kqKQ - 0 1"


def fen_cases() -> list[tuple[str, str]]:
    """(FEN, what python-chess says)"""
    with open(CASES, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [(row[0], row[1]) for row in rows]


def refusal(text: str | list[str], *, strict: bool = True) -> str:
    with pytest.raises(PsearchError) as caught:
        parse_position(text, strict=strict)
    message = str(caught.value)
    assert message.isprintable()  # so it is one line
    assert message
    return message


@pytest.mark.parametrize(("fen", "verdict"), fen_cases())
def test_agrees_with_python_chess(fen: str, verdict: str) -> None:
    if fen == XFEN_CASE:
        assert parse_position(fen).chess960
    elif verdict == "VALID":
        assert parse_position(fen).fen() == chess.Board(fen, chess960=False).fen()
    elif verdict in DROPPED or fen == OTHER_ORDER or fen in CHECKS_BEFORE_EN_PASSANT:
        board = parse_position(fen)
        assert board.is_valid() and board.fen().startswith(" ".join(fen.split()[:2]))
    else:
        refusal(fen)


def test_words_and_whitespace() -> None:
    for text in ("startpos", ["startpos"]):
        assert parse_position(text) == chess.Board()
    for text in (KIWIPETE.split(), f"  {KIWIPETE.replace(' ', '   ')}\n", [KIWIPETE]):
        assert parse_position(text) == chess.Board(KIWIPETE)


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
        ("4k3/8/8/8/8/8/8/4K3 w - e9 0 1", "en passant"),
        ("4k3/8/8/8/8/8/8/4K3 w KQkx - 0 1", "castling"),
        ("4k3/8/8/8/8/8/8/4K3 white - - 0 1", "side to move"),
        ("4k3/8/8/8/8/8/8/4K3 w castle - 0 1", "castling"),
        ("4k3/8/8/8/8/8/8/4K3 w - - zero 1", "half-move clock"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 one", "move number"),
        ("4k3/8/8/8/8/8/8/4K3 w - - \u0663 1", "half-move clock"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 e1e2", "'e1e2' is one too many"),
        ("4k3/8/8/8/8/8/8/4K3 w - - e1e2", "half-move clock"),
        ("startpos moves e2e4", "startpos must stand alone, without 'moves e2e4'"),
        ("e4 e5", "piece placement 'e4' has 1 row, not 8"),
        ("4k3/8/8/8/8/8/4K3 w - - 0 1", "has 7 rows, not 8"),
        ("4k3/8/8/8/8/8/7/4K3 w - - 0 1", "row 7 (rank 2), '7': 7 squares, not 8"),
        ("4k3/8/8/8/8/9/8/4K3 w - - 0 1", "row 6 (rank 3), '9': '9' is neither a piece"),
        ("4k3/ppppxppp/8/8/8/8/8/4K3 w - - 0 1", "row 2 (rank 7), 'ppppxppp': 'x' is neither a piece"),
        ("4k3/8/8/8/8/8/8/4Kя2 w - - 0 1", "row 8 (rank 1), '4Kя2': 'я' is neither a piece"),
        ("4k3/8/8/8/8/8/8/4K3 w a\\b", "not 'a\\b'"),
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
    check_position(chess.Board(XFEN_CASE, chess960=False))  # standard rules do not know these rights: they are not used


KINGS = "4k3/8/8/8/8/8/8/4K3"
BOTH_CASTLED = "r3r1k1/ppp2ppp/8/8/8/8/PPP2PPP/R3R1K1 b KQkq - 0 20"
CORNERS = chess.BB_CORNERS


@pytest.mark.parametrize(
    ("fen", "rights", "chess960"),
    [
        (BOTH_CASTLED, 0, False),
        ("2k5/8/8/8/8/8/8/RR2K3 w Q - 0 1", chess.BB_A1, False),  # X-FEN means the outermost rook
        (f"{KINGS} w KQkq - 0 1", 0, False),
        ("1nbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2", CORNERS & ~chess.BB_A8, False),
        ("r3k2r/8/8/8/8/8/4K3/R6R w KQkq - 0 1", chess.BB_A8 | chess.BB_H8, False),
        ("r3k2r/8/8/8/8/8/8/R4RK1 w KQkq - 0 1", chess.BB_A8 | chess.BB_H8, False),
        ("r3k2r/8/8/8/8/8/8/R3K2R w HQkq - 0 1", CORNERS, False),
        ("r3k2r/8/8/8/8/8/8/R3K2R w qQkK - 0 1", CORNERS, False),
        ("r3k2r/8/8/8/8/8/8/R3K2R w KKQQkkqq - 0 1", CORNERS, False),
        ("r3k2r/8/8/8/8/8/8/R3K2R w KHQAkhqa - 0 1", CORNERS, False),
        ("r3k2r/8/8/8/8/8/8/R3K2R w haHA - 0 1", CORNERS, True),
        ("r3k2r/8/8/8/8/8/8/R3K2R w BCDFbg - 0 1", 0, False),
        ("4k3/8/8/8/8/8/8/4K2R w KH - 0 1", chess.BB_H1, False),
        ("2k5/8/8/8/8/8/8/RR2K3 w B - 0 1", chess.BB_B1, True),
        ("2k5/8/8/8/8/8/8/RR2K3 w BQ - 0 1", chess.BB_A1, False),  # there is one right on each side
    ],
)
def test_rights_that_cannot_be_true_are_dropped(fen: str, rights: chess.Bitboard, chess960: bool) -> None:
    board = parse_position(fen)
    assert (board.castling_rights, board.chess960) == (rights, chess960)
    assert board.is_valid()


def test_who_knows_that_it_is_chess960_says_so() -> None:
    """As UCI_Chess960 and the tag Variant do: each right counts by itself then, also beside one that cannot be true."""
    fen = "1r4k1/8/8/8/8/8/8/1R3K1R w Kq - 0 1"
    assert parse_position(fen, chess960=True).castling_rights == chess.BB_H1 | chess.BB_B8
    half = "6k1/8/8/8/8/8/8/1R3K2 w KQ - 0 1"
    assert [parse_position(half, chess960=known).castling_rights for known in (True, None)] == [chess.BB_B1, 0]
    standard = "r3k2r/8/8/8/8/8/8/R3K2R w HAha - 0 1"
    assert [parse_position(standard, chess960=known).chess960 for known in (True, None, False)] == [True, True, False]
    assert parse_position("startpos", chess960=True).chess960


@pytest.mark.parametrize(
    ("fen", "square"),
    [
        ("4k3/8/8/8/4p3/8/8/4K3 w - e6 0 1", None),  # no pawn has passed
        ("4k3/8/8/4p3/8/8/8/4K3 w - e3 0 1", None),  # the wrong rank
        ("4k3/8/8/4p3/8/8/8/4K3 b - e6 0 1", None),  # the wrong side
        ("4k3/4p3/8/4p3/8/8/8/4K3 w - e6 0 1", None),  # it stands where it came from
        ("4k3/8/8/4p3/8/8/8/4K3 w - e6 0 1", chess.E6),  # nobody can take it
        ("4k3/8/8/3Pp3/8/8/8/4K3 w - E6 0 1", chess.E6),
        ("4k3/8/8/r2Pp2K/8/8/8/8 w - e6 0 1", chess.E6),
        ("4k3/8/8/1b2p3/8/8/8/5K2 w - e6 0 1", None),  # the bishop gave check before the pawn moved
    ],
)
def test_an_en_passant_square_that_cannot_be_true_is_dropped(fen: str, square: int | None) -> None:
    board = parse_position(fen)
    assert board.ep_square == square
    assert board.is_valid()


@pytest.mark.parametrize(
    ("counters", "numbers"),
    [
        ("-1 -1", (0, 1)),
        ("99999999999 99999999999", (0, 1)),
        ("3.5 7.0", (3, 7)),
        ("- -", (0, 1)),
        ("+4 0", (4, 1)),
        ("007 012", (7, 12)),
        ("", (0, 1)),
        ("5", (5, 1)),
        ("12 40 bm Ke2;", (12, 40)),
        ("hmvc 12; fmvn 40;", (12, 40)),
        ('bm Ke2; fmvn 40; id "hmvc";', (0, 40)),
    ],
)
def test_counters_that_no_game_has_are_left_out(counters: str, numbers: tuple[int, int]) -> None:
    board = parse_position(f"{KINGS} w - - {counters}")
    assert (board.halfmove_clock, board.fullmove_number) == numbers


@pytest.mark.parametrize("fields", ["w 3 9", "w - 3 9", "w KQ 3 9", "w e6 3 9", "W – − 3 9", "w ce - 3 9"])  # noqa: RUF001
def test_each_field_behind_the_side_to_move_may_be_left_out(fields: str) -> None:
    assert parse_position(f"{KINGS} {fields}").fen() == f"{KINGS} w - - 3 9"


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        (f'{KINGS} w - - bm Ke2; id "it\'s – a_b";', 'bm Ke2; id "it\'s – a_b";'),  # noqa: RUF001
        (f"{KINGS} w - -; bm Ke2;", "bm Ke2;"),
        (f"{KINGS} w - - 3 4; bm Ke2;", "bm Ke2;"),
        (f"{KINGS} w - - 3 4 BM Ke2;", "BM Ke2;"),
        (f"{KINGS} w bm: Ke2;", "bm: Ke2;"),
        (f"{KINGS} w ce 20; dm 3;", "ce 20; dm 3;"),
        (f'{KINGS} w - - c3 "a comment";', 'c3 "a comment";'),
        (f'"{KINGS} w - -"', ""),
        (f'\ufeff[FEN "{KINGS} w - - 0 1"]', ""),
        ("startpos bm e4;", "bm e4;"),
        ("startpos; bm e4;", "bm e4;"),
        ("startpos", ""),
    ],
)
def test_what_stands_behind_a_position_is_left_as_it_is(line: str, rest: str) -> None:
    board, behind = split_position(line)
    assert behind == rest
    assert board.board_fen() == (KINGS if KINGS in line else chess.STARTING_BOARD_FEN)


def _by_uci(words: list[str], *, chess960: bool) -> chess.Board:
    position = CurrentPosition()
    position.set_up(words, chess960=chess960)
    return position.board(chess960=chess960)


FACES: dict[str, Callable[[str], chess.Board]] = {
    "python": board_of,
    "uci": lambda text: _by_uci(["fen", *text.split()], chess960=False),
    "uci, chess960, without the word fen": lambda text: _by_uci(text.split(), chess960=True),
    "page": lambda text: GameTree.of_fen(text).board(),
    "batch": lambda text: Task("", text, limits=Limits(depth=1)).board(),
}


@pytest.mark.parametrize("seed", range(6))
def test_every_face_reads_what_is_oddly_written_as_the_same_position(seed: int) -> None:
    dice = Random(seed)
    boards = sample(seed, 30, chess960=seed % 2 == 1)
    for _ in range(250):
        board = dice.choice(boards).copy(stack=False)
        if dice.random() < 0.3:
            board.halfmove_clock, board.fullmove_number = 0, 1
        text = oddly_written(board, dice)
        for name, read in FACES.items():
            found = read(text)
            # rights are compared as squares: the letters depend on the notation
            facts = [
                (b.epd().split()[:2], b.clean_castling_rights(), b.epd().split()[3], b.ply()) for b in (board, found)
            ]
            assert facts[0] == facts[1], (name, text)
            assert found.halfmove_clock == board.halfmove_clock, (name, text)


@pytest.mark.parametrize("seed", range(4))
def test_suites_read_what_is_oddly_written_as_the_same_position(seed: int) -> None:
    dice = Random(seed)
    for board in sample(seed, 60, chess960=seed % 2 == 1):
        text = oddly_written(board, dice, in_line=True)
        (found,) = parse_perft_suite(Source.of_text("a suite", f"{text} ;D1 20\n"))
        assert found.board.epd().split()[:2] == board.epd().split()[:2], text
        assert found.board.clean_castling_rights() == board.clean_castling_rights(), text


def test_a_board_of_python_chess_loses_what_cannot_be_true() -> None:
    given = chess.Board(BOTH_CASTLED)
    board = board_of(given)
    assert board.is_valid() and not board.castling_rights
    assert given.fen(en_passant="fen") == chess.Board(BOTH_CASTLED).fen(en_passant="fen"), "that of the caller stays"
    given = chess.Board("4k3/8/8/8/4p3/3P4/8/4K3 w - e6 0 1")
    assert board_of(given).ep_square is None
    given.push_san("d4")
    task = from_board(given)
    assert task[1] == ("d3d4",) or not task[1]
    assert board_of(given).fen() == given.fen()


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
