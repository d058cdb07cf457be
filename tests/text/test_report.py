"""Results as text and as JSON; win, draw and loss; suites in EPD."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import chess
import chess.engine
import pytest
from hypothesis import given
from hypothesis import strategies as st
from positions import KIWIPETE
from reports import cp, moves, workers

from psearch.faces.uci.turn import info_line
from psearch.results import WON_CP, Info, PsearchError, Result
from psearch.text.epd_text import (
    PerftOutcome,
    SuitePosition,
    check_suite,
    parse_perft_suite,
    parse_suite,
)
from psearch.text.report import final_report, iteration_line, json_object, score_object, score_text
from psearch.text.source import Source, read_source
from psearch.text.wdl import expected_points, material, probabilities, wdl, wdl_of_score
from psearch.text.wdl_model import DRAW_MARGIN_CP, MATERIAL_KNOTS, SPREAD_CP


def test_several_lines_of_play() -> None:
    board = chess.Board()
    infos = [
        Info(5, 9, cp(30), "exact", 900, 1.0, moves("e2e4"), workers(1), multipv=1),
        Info(5, 9, cp(25), "exact", 950, 1.1, moves("d2d4", "d7d5"), workers(1), multipv=2),
    ]
    assert "  line 2  score +0.25" in iteration_line(board, infos[1])
    assert "line" not in iteration_line(board, infos[0])
    result = Result(infos[0].pv[0], infos[0], lines=infos)
    assert "line 2     +0.25  d4 d5\n" in final_report(board, result)
    assert json_object(board, result, 1)["lines"] == [
        {"score": {"cp": 30}, "wdl": [281, 581, 138], "depth": 5, "pv": ["e2e4"]},
        {"score": {"cp": 25}, "wdl": [266, 587, 147], "depth": 5, "pv": ["d2d4", "d7d5"]},
    ]
    assert "lines" not in json_object(board, Result(infos[0].pv[0], infos[0], lines=infos[:1]), 1)


def test_score_is_from_the_side_to_move() -> None:
    black_to_move = chess.Board("4k3/8/8/8/8/8/8/4K3 b - - 0 1")
    assert score_text(cp(130, chess.WHITE), black_to_move) == "-1.30"
    assert score_text(cp(130, chess.BLACK), black_to_move) == "+1.30"
    assert score_text(cp(0), black_to_move, "upper") == "<=+0.00"
    mate = chess.engine.PovScore(chess.engine.Mate(3), chess.WHITE)
    assert score_text(mate, black_to_move) == "#-3"
    assert json_object(black_to_move, Result(None, Info(1, 1, mate, "exact", 1, 0.1)), 1)["score"] == {"mate": -3}


def test_a_bound_is_told_as_one() -> None:
    """In whatever way a result is shown."""
    board = chess.Board()
    for bound, mark in (("lower", ">="), ("upper", "<=")):
        info = Info(5, 9, cp(98), bound, 900, 1.0, moves("e2e4", "e7e5"))
        result = Result(info.pv[0], info, lines=[info, replace(info, multipv=2)])
        assert f"score      {mark}+0.98 for White\n" in final_report(board, result)
        assert f"line 2     {mark}+0.98  e4 e5\n" in final_report(board, result)
        report = json_object(board, result, 1)
        assert report["score"] == report["lines"][1]["score"] == {"cp": 98, "bound": bound}
        assert info.as_dict()[f"{bound}bound"] is True  # type: ignore[literal-required]  # not declared
        assert f"score cp 98 {bound}bound" in info_line(info)
    assert score_object(chess.engine.Mate(-3), "upper") == {"mate": -3, "bound": "upper"}


def test_python_shows_scores_as_the_terminal_does() -> None:
    for score, text in ((cp(20_000), "won"), (cp(-20_000), "lost"), (cp(-52), "-0.52")):
        assert f" score={text} " in repr(Info(9, 12, score, "exact", 900, 1.0))


def test_a_final_bound_is_followed_by_the_last_exact_score_and_the_chances() -> None:
    board = chess.Board()
    exact = Info(9, 12, cp(31), "exact", 900, 1.0, moves("e2e4"))
    result = Result(exact.pv[0], replace(exact, depth=10, score=cp(52), bound="lower"))
    report = final_report(board, result, exact, shows_wdl=True)
    assert (
        "score      >=+0.52 for White; last exact +0.31 at depth 9\nwdl        win 35%, draw 54%, loss 10%\n" in report
    )
    assert json_object(board, result, 1, exact)["exact"] == {"cp": 31}
    assert "exact" not in json_object(board, Result(exact.pv[0], exact), 1, exact)
    assert "last exact" not in final_report(board, Result(exact.pv[0], exact), exact)


def test_what_is_won_without_a_known_mate_is_told_in_a_word() -> None:
    """A mate missed by the window and endgame tables give such a score."""
    board = chess.Board()
    for value, bound, word in ((WON_CP, "lower", "won"), (-WON_CP, "upper", "lost"), (WON_CP, "exact", "won")):
        info = Info(5, 9, cp(value), bound, 900, 1.0, moves("e2e4", "e7e5"))
        assert f"score {word}  nodes" in iteration_line(board, info)
        assert f"score      {word} for White\n" in final_report(board, Result(info.pv[0], info))
    assert score_object(cp(WON_CP).relative, "lower") == {"cp": WON_CP, "bound": "lower"}


def test_chess960_castling_is_king_takes_rook() -> None:
    board = chess.Board("1r3kr1/8/8/8/8/8/8/1R3KR1 w GBgb - 0 1", chess960=True)
    line = moves("f1g1", "f8b8")
    report = json_object(board, Result(line[0], Info(5, 9, cp(0), "exact", 10, 0.0, line)), 1)
    assert report["bestmove"] == "f1g1"
    assert report["pv"] == ["f1g1", "f8b8"]
    assert "O-O+ (f1g1)" in final_report(board, Result(line[0], Info(5, 9, cp(0), "exact", 10, 0.0, line)))


def test_interrupted_before_anything_was_found() -> None:
    board = chess.Board()
    result = Result(None, Info(0, 0, cp(0), "exact", 0, 0.0), interrupted=True)
    assert "best move  none, interrupted" in final_report(board, result)
    assert json_object(board, result, 1)["interrupted"] is True


def test_iteration_line() -> None:
    info = Info(9, 17, cp(31), "exact", 1234567, 0.82304, moves("e2e4", "e7e5", "g1f3"))
    expected = "depth 9/17  score +0.31  nodes 1,234,567  nps 1,500,009  time 0.82  pv e4 e5 Nf3"
    assert iteration_line(chess.Board(), info) == expected


START = chess.Board()
ROOK_ENDING = chess.Board("8/5pk1/6p1/7p/7P/6P1/r4PK1/3R4 w - - 0 1")
SCORES = st.integers(-40_000, 40_000)
UNITS = st.integers(0, 150)


def test_material() -> None:
    assert material(START) == 78
    assert material(ROOK_ENDING) == 16
    assert material(chess.Board("4k3/8/8/8/8/8/8/4K3 w - - 0 1")) == 0


@given(SCORES, UNITS)
def test_probabilities(score: int, units: int) -> None:
    win, draw, loss = probabilities(score, units)
    assert min(win, draw, loss) >= 0
    assert math.isclose(win + draw + loss, 1)
    assert probabilities(-score, units) == pytest.approx((loss, draw, win))
    better = probabilities(score + 1, units)
    assert better[0] >= win
    assert better[2] <= loss


@given(SCORES)
def test_per_mille(score: int) -> None:
    for board in (START, ROOK_ENDING):
        found = wdl(score, board)
        assert sum(found) == 1000
        assert min(found) >= 0
        assert wdl(-score, board) == found[::-1]


def test_at_a_knot_the_fitted_numbers_hold() -> None:
    """Half the games are won at the margin; one spread more makes it 73%."""
    for units, margin, spread in zip(MATERIAL_KNOTS, DRAW_MARGIN_CP, SPREAD_CP, strict=True):
        assert probabilities(margin, units)[0] == pytest.approx(0.5)
        assert probabilities(margin + spread, units)[0] == pytest.approx(1 / (1 + math.exp(-1)))
    # between two knots, in the logarithm; beyond the outermost, constant
    middle = (MATERIAL_KNOTS[0] + MATERIAL_KNOTS[1]) / 2
    assert middle.is_integer()
    margin = math.sqrt(DRAW_MARGIN_CP[0] * DRAW_MARGIN_CP[1])
    assert probabilities(margin, int(middle))[0] == pytest.approx(0.5)
    assert probabilities(100, 0) == probabilities(100, MATERIAL_KNOTS[0])
    assert probabilities(100, 150) == probabilities(100, MATERIAL_KNOTS[-1])


def test_the_model_knows_chess() -> None:
    """Facts about games that any sensible fit has."""
    level, ahead = wdl(0, START), wdl(100, START)
    assert level[1] > 400, "a level opening is drawn more often than anything else"
    assert ahead[0] > 2 * ahead[2]
    assert wdl(0, ROOK_ENDING)[1] > level[1], "with less material more is drawn"
    assert wdl(900, chess.Board("8/8/8/8/3k4/8/8/3K3Q w - - 0 1"))[0] > 980
    assert wdl(500, chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1"))[0] > 700


def test_mates_are_certain() -> None:
    for board in (START, ROOK_ENDING):
        assert wdl(31_990, board) == (1000, 0, 0)
        assert wdl_of_score(chess.engine.Mate(3), board) == (1000, 0, 0)
        assert wdl_of_score(chess.engine.Mate(-3), board) == (0, 0, 1000)
        assert wdl_of_score(chess.engine.Mate(0), board) == (0, 0, 1000)
        assert wdl_of_score(chess.engine.MateGiven, board) == (1000, 0, 0)
        assert wdl_of_score(chess.engine.Cp(31), board) == wdl(31, board)
        assert expected_points(chess.engine.Mate(2), board) == 1
        assert expected_points(chess.engine.Mate(-2), board) == 0
        assert expected_points(chess.engine.Cp(0), board) == pytest.approx(0.5)


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
    assert [(case.source, case.counts) for case in parse_perft_suite(read_source(str(path)))] == [
        (f"{path}, line 1", {1: 20}),
        (f"{path}, line 4", {2: 400}),
    ]
    path.write_bytes(b"# caf\xe9\nstartpos ;D1 20\n")
    assert len(parse_perft_suite(read_source(str(path)))) == 1


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
        parse_perft_suite(read_source(str(binary)))
    with pytest.raises(PsearchError, match="no positions"):
        parse_perft_suite(suite("", "# nothing"))
