"""Moves as users write them and paste them."""

from __future__ import annotations

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psearch.results import PsearchError
from psearch.text.moves import choose_moves, play_moves

RUY_LOPEZ = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5"]


def played(text: str, board: chess.Board | None = None) -> list[str]:
    board = board or chess.Board()
    play_moves(board, text, "--moves")
    return [move.uci() for move in board.move_stack]


@pytest.mark.parametrize(
    "text",
    [
        "e2e4 e7e5 g1f3 b8c6 f1b5",
        "e4 e5 Nf3 Nc6 Bb5",
        "1. e4 e5 2. Nf3 Nc6 3. Bb5",
        "1.e4 e5 2.Nf3 Nc6 3.Bb5",
        "1 e4 e5 2 Nf3 Nc6 3 Bb5",
        "1. e4 1... e5 2. Nf3 2... Nc6 3. Bb5 *",
        "1.e4 … e5 2.Nf3 … Nc6 3.Bb5",
        "1. e4! e5!? 2. Nf3!! $1 Nc6 ?! 3. Bb5 $14 += 1/2-1/2",
        "1. e4 { best by test } e5 ; the rest of the line\n2. Nf3 Nc6 { [%clk 0:03:00] } 3. Bb5 1-0",
        "1. e4 e5 ( 1... c5 2. Nf3 ( 2. c3 d5 ) 2... d6 1-0 ) 2. Nf3 Nc6 3. Bb5",
        '[Event "?"]\n[White "Lopez, Ruy (ESP)"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 0-1\n',
        "e4, e5, Nf3, Nc6, Bb5",
        "1. e4 e5 2. ♘f3 ♞c6 3. ♗b5",
        "1. e2-e4 e7-e5 2. Ng1-f3 Nb8-c6 3. Bf1-b5",
    ],
)
def test_a_game_in_many_hands(text: str) -> None:
    assert played(text) == RUY_LOPEZ


def test_castling_checks_promotions_and_captures_en_passant() -> None:
    assert played("1. O-O 0-0-0", chess.Board("r3k3/8/8/8/8/8/8/4K2R w Kq - 0 1")) == ["e1g1", "e8c8"]
    assert played("7. e8=Q+ Kh7", chess.Board("7k/4P3/8/8/8/8/8/4K3 w - - 0 1")) == ["e7e8q", "h8h7"]
    assert played("exd6 e.p. +/-", chess.Board("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1")) == ["e5d6"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("e4 e4", "--moves, move 2: 'e4' is not a legal move in rnbqkbnr/pppppppp/8/8/4P3/"),
        ("1. e4 e5 2. Nf4", "move 3: 'Nf4'"),
        ("1. Nf3 a6 2. d3 a5 3. Nd2", "'Nd2' may be several moves"),
        ("0000", "move 1: '0000'"),
        ("--", "move 1: '--'"),
        ("1. e4 ( 1. d4", "a ( without its )"),
        ("1. e4 )", "a ) without its ("),
        ("1. e4 { no end", "cannot read '{ no end'"),
        ("1. e4 1-0 e5", "'e5' stands after the result 1-0"),
        ("e4 [31m", "cannot read '[31m'"),
        ("\x1b[31m", "cannot read '[31m'"),
        ("\x1b", "move 1: '\\x1b' is not"),
    ],
)
def test_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(PsearchError) as caught:
        played(text)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_moves_to_choose_from() -> None:
    board = chess.Board()
    assert [move.uci() for move in choose_moves(board, "e4 d2d4, e2e4", "--searchmoves")] == ["e2e4", "d2d4"]
    for text in ("", "1.", "{ e4 }"):
        with pytest.raises(PsearchError, match="--searchmoves names no move"):
            choose_moves(board, text, "--searchmoves")


@given(st.text(max_size=60) | st.text("e45Nf3 1.!?(){}[];$*-+=/0O\n", max_size=60))
def test_anything_is_moves_or_a_refusal(text: str) -> None:
    try:
        played(text)
    except PsearchError as error:
        assert str(error).isprintable()
