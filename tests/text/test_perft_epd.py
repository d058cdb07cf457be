"""Perft suites: what is read, what is refused, and that a wrong count is noticed."""

from __future__ import annotations

from pathlib import Path

import chess
import pytest
from positions import KIWIPETE

from psearch.results import PsearchError
from psearch.text.epd_text import PerftOutcome, check_suite, parse_perft_suite, read_perft_suite
from psearch.text.source import Source


def suite(*lines: str) -> Source:
    return Source.of_text("suite", "\n".join(lines))


def test_a_wrong_generator_is_noticed() -> None:
    def perft(board: chess.Board, depth: int) -> tuple[dict[chess.Move, int], float]:
        return {move: 1 + (depth > 1) for move in board.legal_moves}, 0.5

    cases = parse_perft_suite(suite(KIWIPETE + ";D1 48 ;D2 2039"))
    checks = list(check_suite(perft, cases, 10_000))
    assert [check.outcome for check in checks] == [PerftOutcome.RIGHT, PerftOutcome.WRONG]
    assert checks[1].failure_line.startswith("FAIL suite, line 1: depth 2, expected 2039, counted 96: r3k2r/")


def test_comments_and_empty_lines_keep_their_numbers(tmp_path: Path) -> None:
    """And a file may begin with the mark that some editors write, or have comments of another encoding."""
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
