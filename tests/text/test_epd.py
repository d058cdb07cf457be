"""Suites: where the position of a line ends and its operations begin; perft counts that are read or refused."""

from __future__ import annotations

from pathlib import Path

import chess
import pytest
from positions import KIWIPETE

from psearch.results import PsearchError
from psearch.text.epd_text import (
    PerftOutcome,
    SuitePosition,
    check_suite,
    parse_perft_suite,
    parse_suite,
    read_perft_suite,
)
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


MATE = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - -"


@pytest.mark.parametrize(
    ("operations", "best", "mate", "name"),
    [
        ("bm #2;", [], 2, "line 1"),
        ("bm #-2; c0 4men;", [], -2, "line 1"),
        ("dm 1;", [], 1, "line 1"),
        ("bm Rd8#; id BACK.01;", ["d1d8"], None, "BACK.01"),
        ('BM Rd8#; ID "a; b";', ["d1d8"], None, "a; b"),
        ("bm: Rd8#; id: b", ["d1d8"], None, "b"),
        ("bm Rd8+!, Rd7;", ["d1d8", "d1d7"], None, "line 1"),
        ("bm Rd8 +; // remark", ["d1d8"], None, "line 1"),
        ("bm Rd8 // remark", ["d1d8"], None, "line 1"),
        ('bm Rd8# id "c";', ["d1d8"], None, "c"),
        ('id "d" bm Rd8#;', ["d1d8"], None, "d"),
        ("12 bm Rd8;", ["d1d8"], None, "line 1"),
        ("bm Td8; ce -+; eval +M5; c0 two words; acd 99999999999999999999;", ["d1d8"], None, "line 1"),
        ("bm d1d8; c8 10 5; c9 d1d8; c0 Kx9=5;", ["d1d8"], None, "line 1"),
    ],
)
def test_operations_of_the_wild(operations: str, best: list[str], mate: int | None, name: str) -> None:
    found = position(f"{MATE} {operations}")
    assert [move.uci() for move in found.best] == best
    assert (found.mate, found.name) == (mate, name)


@pytest.mark.parametrize("operations", ["bm;", "bm Rd9;", "bm Xd8;", "am -;", "dm soon;", 'id "x" 5;'])
def test_a_bad_line_is_left_out_and_named(operations: str) -> None:
    refused: list[str] = []
    text = f"; remark\n// more\n% and\n{MATE} bm Rd8;\n{MATE} {operations}\n{MATE} am Rd7;\n"
    assert [one.line for one in parse_suite(Source.of_text("suite", text), refused.append)] == [4, 6]
    assert [line.split(": ")[0] for line in refused] == ["suite, line 5"]


def suite(*lines: str) -> Source:
    return Source.of_text("suite", "\n".join(lines))


def test_a_wrong_generator_is_noticed() -> None:
    def perft(board: chess.Board, depth: int) -> tuple[dict[chess.Move, int], float]:
        return {move: 1 + (depth > 1) for move in board.legal_moves}, 0.5

    checks = list(check_suite(perft, parse_perft_suite(suite(KIWIPETE + ";D1 48 ;D2 2039")), 10_000))
    assert [check.outcome for check in checks] == [PerftOutcome.RIGHT, PerftOutcome.WRONG]
    assert checks[1].failure_line.startswith("FAIL suite, line 1: depth 2, expected 2039, counted 96: r3k2r/")


def test_comments_and_empty_lines_keep_their_numbers(tmp_path: Path) -> None:
    """A file may begin with the mark that some editors write, or have comments of another encoding."""
    path = tmp_path / "suite.epd"
    path.write_bytes(b"\xef\xbb\xbfstartpos ;D1 20\n\n  # none\nstartpos;D2 400;\n")
    assert [(case.source, case.counts) for case in read_perft_suite(str(path))] == [
        (f"{path}, line 1", {1: 20}),
        (f"{path}, line 4", {2: 400}),
    ]
    path.write_bytes(b"# caf\xe9\nstartpos ;D1 20\n")
    assert len(read_perft_suite(str(path))) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("startpos ;D1 x", "expected a count"),
        ("startpos ;E1 20", "expected a count"),
        ("startpos ;D1 20 ;D1 21", "two different counts"),
        ("startpos ;D0 1", "depth 0"),
        ("startpos", "no expected counts"),
        ("8/8/8/8/8/8/8/8 w - - 0 1 ;D1 0", "board is empty"),
        ("4k3/8/8/8/8/8/8/4K3 w Kx - 0 1 ;D1 5", "castling"),
    ],
)
def test_malformed_suite_line(line: str, words: str) -> None:
    with pytest.raises(PsearchError, match="suite, line 2: ") as caught:
        parse_perft_suite(suite("startpos ;D1 20", line))
    assert words in str(caught.value)


def test_suites_that_are_no_suites(tmp_path: Path) -> None:
    binary = tmp_path / "binary.epd"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PsearchError, match="not a text file"):
        read_perft_suite(str(binary))
    with pytest.raises(PsearchError, match="no positions"):
        parse_perft_suite(suite("", "# nothing"))
