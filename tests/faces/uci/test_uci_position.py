"""The position between two commands."""

from __future__ import annotations

import chess
import pytest

from psearch.faces.uci.position_command import CurrentPosition
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
        ("startpos moves e2e4 e2e4", "move 2, 'e2e4', is not legal"),
        ("startpos moves d2d4 d7d5 0000", "move 3, '0000', is not legal"),
        ("fen 8/8 w - -", "bad FEN"),
    ],
)
def test_a_bad_position_leaves_the_last_good_one(words: str, reason: str) -> None:
    position = CurrentPosition()
    position.set_up(["startpos", "moves", "d2d4"], chess960=False)
    with pytest.raises(PsearchError, match=reason):
        position.set_up(words.split(), chess960=False)
    assert [move.uci() for move in position.board(chess960=False).move_stack] == ["d2d4"]
    position.set_up(["startpos", "moves", "d2d4", "d7d5"], chess960=False)
    assert position.board(chess960=False).ply() == 2


def test_a_board_is_a_copy() -> None:
    position = CurrentPosition()
    position.board(chess960=False).push_uci("e2e4")
    assert position.board(chess960=True).fen() == chess.STARTING_FEN
    assert position.board(chess960=True).chess960
    assert not position.board(chess960=False).chess960
