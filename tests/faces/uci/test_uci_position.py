"""The position between two commands."""

from __future__ import annotations

import chess
import pytest

from psearch.faces.uci.uci_conversation import CurrentPosition
from psearch.results import PsearchError


def test_the_initial_position_until_something_is_set_up() -> None:
    assert CurrentPosition().board(chess960=False).fen() == chess.STARTING_FEN


def test_a_position_that_goes_on_keeps_the_history() -> None:
    position = CurrentPosition()
    for words in ("startpos moves g1f3", "startpos moves g1f3 g8f6 f3g1 f6g8", "startpos moves g1f3 g8f6"):
        position.set_up(words.split(), chess960=False)
        board = position.board(chess960=False)
        assert [move.uci() for move in board.move_stack] == words.split()[2:]
    position.set_up(f"fen {chess.STARTING_FEN} moves e2e4".split(), chess960=False)
    assert [move.uci() for move in position.board(chess960=False).move_stack] == ["e2e4"]


@pytest.mark.parametrize("rest", ["", " -", " - -", " - - 0 1"])
def test_fields_of_a_fen_may_be_left_out(rest: str) -> None:
    position = CurrentPosition()
    position.set_up(f"fen 8/8/8/8/3k4/8/8/3K3R b{rest} moves d4e4".split(), chess960=False)
    assert position.board(chess960=False).fen() == "8/8/8/8/4k3/8/8/3K3R w - - 1 2"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "startpos or fen is missing"),
        ("moves e2e4", "startpos or fen is missing"),
        ("startpos moves e2e4 e2e4", "move 2: 'e2e4' is not a legal move"),
        ("startpos moves d2d4 d7d5 0000", "move 3: '0000' is not a legal move"),
        ("startpos e2e4", "startpos stands by itself"),
        ("fen 8/8 w - -", "bad FEN"),
    ],
)
def test_after_a_bad_position_there_is_none(words: str, reason: str) -> None:
    position = CurrentPosition()
    position.set_up(["startpos", "moves", "d2d4"], chess960=False)
    with pytest.raises(PsearchError, match=reason):
        position.set_up(words.split(), chess960=False)
    assert not position.board(chess960=False).occupied
    position.set_up(["startpos", "moves", "d2d4", "d7d5"], chess960=False)
    assert position.board(chess960=False).ply() == 2


def test_a_board_is_a_copy() -> None:
    position = CurrentPosition()
    position.board(chess960=False).push_uci("e2e4")
    assert position.board(chess960=True).fen() == chess.STARTING_FEN
    assert position.board(chess960=True).chess960
    assert not position.board(chess960=False).chess960


@pytest.mark.parametrize(
    ("chess960", "word", "move"),
    [
        (False, "e1g1", "e1g1"),
        (False, "e1h1", "e1g1"),
        (True, "e1g1", "e1h1"),
        (True, "e1h1", "e1h1"),
        (False, "O-O-O", "e1c1"),
        (True, "0-0", "e1h1"),
    ],
)
def test_castling_is_understood_in_every_notation(chess960: bool, word: str, move: str) -> None:
    position = CurrentPosition()
    position.set_up(f"fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1 moves {word}".split(), chess960)
    board = position.board(chess960)
    assert board.uci(board.pop()) == move


def test_file_letters_do_not_make_chess960_where_the_option_is_off() -> None:
    """A GUI that plays standard chess expects e1g1, however it writes the rights."""
    position = CurrentPosition()
    for fen, chess960 in (("r3k2r/8/8/8/8/8/8/R3K2R w HAha -", False), ("1r3kr1/8/8/8/8/8/8/1R3KR1 w GBgb -", True)):
        position.set_up(f"fen {fen}".split(), chess960=False)
        assert position.board(chess960=False).chess960 is chess960
        assert position.board(chess960=True).chess960


@pytest.mark.parametrize("word", ["a7a8Q", "a7a8q", "a7a8=Q", "a8=Q"])
def test_promotions_in_capitals(word: str) -> None:
    position = CurrentPosition()
    position.set_up(f"fen 8/P6k/8/8/8/8/8/K7 w - - 0 1 moves {word}".split(), chess960=False)
    assert position.board(chess960=False).peek().uci() == "a7a8q"
