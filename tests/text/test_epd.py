"""Where the position of a suite's line ends and its operations begin."""

from __future__ import annotations

import chess
import pytest

from psearch.results import PsearchError
from psearch.text.epd_text import SuitePosition, parse_suite
from psearch.text.source import Source

KINGS = "8/8/8/8/3k4/8/8/3K3R"


def position(line: str) -> SuitePosition:
    return parse_suite(Source.of_text("suite", line))[0]


@pytest.mark.parametrize(
    "line",
    [
        f'{KINGS} w - - bm Rh5; id "R";',
        f'{KINGS} w - - 0 1 bm Rh5; id "R";',
        f'{KINGS} w bm Rh5; id "R";',
        f'{KINGS} w id "R"; bm Rh5;',
        f'{KINGS} w ce 900; bm Rh5; id "R";',
    ],
)
def test_castling_and_en_passant_may_be_left_out(line: str) -> None:
    found = position(line)
    assert found.board.fen() == f"{KINGS} w - - 0 1"
    assert [move.uci() for move in found.best] == ["h1h5"]
    assert found.name == "R"


@pytest.mark.parametrize("line", [f"{KINGS} w", f"{KINGS} w;", f"{KINGS} w -", f"{KINGS} w - -;"])
def test_a_line_without_operations(line: str) -> None:
    assert position(line).board.fen() == f"{KINGS} w - - 0 1"


def test_ce_is_castling_before_en_passant() -> None:
    board = position("2rkr3/8/8/8/8/8/8/7K w ce - bm Kg1;").board
    assert (board.castling_rights, board.chess960) == (chess.BB_C8 | chess.BB_E8, True)
    assert not position(f"{KINGS} w ce - bm Rh5;").board.castling_rights


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{KINGS} w KQkx - bm Rh5;", "castling must be"),
        (f"{KINGS} w castle e9 bm Rh5;", "castling must be"),
        (f"{KINGS} w - e9 bm Rh5;", "en passant must be"),
        (f"{KINGS} bm Rh5;", "side to move must be"),
        (KINGS, "is not followed by the side to move"),
    ],
)
def test_a_mistake_there_is_no_operation(line: str, words: str) -> None:
    with pytest.raises(PsearchError, match=words):
        position(line)
