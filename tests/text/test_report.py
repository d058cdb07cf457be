"""Results as text and as JSON."""

from __future__ import annotations

from dataclasses import replace

import chess
import chess.engine
from reports import cp, moves, workers

from psearch.faces.uci.turn import info_line
from psearch.results import WON_CP, Info, Result
from psearch.text.report import final_report, iteration_line, json_object, score_object, score_text


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
        {"score": {"cp": 30}, "depth": 5, "pv": ["e2e4"]},
        {"score": {"cp": 25}, "depth": 5, "pv": ["d2d4", "d7d5"]},
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
