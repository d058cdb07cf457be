"""Results that are there already: found by position and by game, and refused where they are none."""

from __future__ import annotations

import io
import json
from typing import Any

import chess
import chess.pgn
import pytest
from chess.engine import Cp, Mate

from psearch.batch.analysis.analysis_files import OlderResults
from psearch.batch.positions.task import Answer, Choice, Line, Task, result_object
from psearch.results import Limits, PsearchError
from psearch.text.source import Source

START = chess.STARTING_FEN
AFTER_E4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"


def row(depth: int, fen: str = START, best: str = "e2e4", **more: Any) -> dict[str, Any]:
    values = {"fen": fen, "bestmove": best, "score": {"cp": 20}, "depth": depth, "seldepth": 9, "nodes": 100}
    return {**values, "time": 0.5, "tbhits": 0, "pv": [best], **more}


def older(*rows: dict[str, Any]) -> OlderResults:
    return OlderResults(Source.of_text("older.jsonl", "".join(json.dumps(one) + "\n" for one in rows)))


def asked(fen: str = START, *moves: str, multipv: int = 1) -> Task:
    return Task("x", fen, moves, Limits(depth=1), multipv)


def test_the_deepest_of_a_position() -> None:
    results = older(row(3), row(7, best="d2d4"), {"summary": {}}, row(5), {"id": 1, "fen": START, "error": "x"})
    assert len(results) == 1
    found = results.of_position(asked())
    assert found is not None
    assert (found.best, found.lines[0].depth, found.lines[0].score, found.time_s) == (
        "d2d4",
        7,
        Cp(20),
        0.5,
    )
    assert results.of_position(asked(AFTER_E4)) is None


def test_a_result_that_was_written_comes_back() -> None:
    lines = [
        Line(Mate(3), "lower", 9, 12, ["e2e4", "e7e5"]),
        Line(Cp(-5), "exact", 9, 12, ["d2d4"]),
    ]
    written = Answer("e2e4", lines, 1234, 0.25, 0, 2, [Choice("e2e4", 0.25, 9, 1234)], notes=("a",), version="1")
    task = asked(START, multipv=2)
    assert older(result_object("x", task, written, None)).of_position(task) == written


def test_moves_before_a_position_and_lines_count() -> None:
    results = older(row(5, best="e7e5", moves=["e2e4"]), row(6, AFTER_E4, "e7e5"))
    for task, depth in ((asked(START, "e2e4"), 5), (asked(AFTER_E4), 6)):
        found = results.of_position(task)
        assert found is not None and found.lines[0].depth == depth
    assert results.of_position(asked(AFTER_E4, multipv=2)) is None
    assert results.of_position(asked(START, "d2d4")) is None


def test_since_when_a_suite_was_solved() -> None:
    since = {"time": 0.1, "depth": 2, "nodes": 9}
    (with_solution, without) = (older(row(5, **more)).of_position(asked()) for more in ({"solution": since}, {}))
    assert with_solution is not None and without is not None
    assert with_solution.choices == [Choice("e2e4", 0.1, 2, 9)]
    assert without.choices == [Choice("e2e4", 0.5, 5, 100)]


def game_row(text: str, depth: int) -> dict[str, Any]:
    game = chess.pgn.read_game(io.StringIO(text))
    assert game is not None
    board = game.board()
    positions = []
    for move in [*game.mainline_moves(), None]:
        best = next(iter(board.legal_moves), None)
        values = {"ply": board.ply(), **row(depth, board.fen(), best.uci())} if best else {"fen": board.fen()}
        if move is not None:
            values |= {"move": board.uci(move), "compared": None}
            board.push(move)
        positions.append(values)
    return {"file": "x", "game": 1, "headers": dict(game.headers), "positions": positions}


MATE = "1. f3 e5 2. g4 Qh4# *"


def test_a_game_is_known_by_its_moves() -> None:
    results = older(game_row(MATE, 4), game_row("1. f3 e5 *", 9), game_row(MATE, 6), game_row(MATE, 5))
    game = chess.pgn.read_game(io.StringIO(MATE))
    assert game is not None
    found = results.of_game(game.board(), game.mainline_moves())
    assert {ply: one.lines[0].depth for ply, one in found.items()} == dict.fromkeys(range(4), 6)
    assert results.of_game(chess.Board(), [chess.Move.from_uci("f2f3")]) == {}
    assert results.of_position(asked()) is None


def test_a_game_of_chess960() -> None:
    tags = '[Variant "Chess960"]\n[SetUp "1"]\n[FEN "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1"]\n\n'
    text = tags + "1. O-O O-O-O *"
    game = chess.pgn.read_game(io.StringIO(text))
    assert game is not None
    assert sorted(older(game_row(text, 3)).of_game(game.board(), game.mainline_moves())) == [0, 1, 2]


@pytest.mark.parametrize(
    "bad",
    [
        {"bestmove": "e2e5"},
        {"bestmove": None, "pv": []},
        {"pv": ["e2e4", "e2e4"]},
        {"pv": "e2e4"},
        {"score": {}},
        {"score": {"cp": "much"}},
        {"score": {"cp": 1, "bound": "about"}},
        {"nodes": None},
        {"time": -1},
        {"lines": []},
        {"lines": [3]},
        {"solution": {}},
        {"seldepth": "deep"},
    ],
)
def test_what_cannot_be_a_result_is_named(bad: dict[str, Any]) -> None:
    results = older(row(2, AFTER_E4, "e7e5"), {**row(5), **bad})
    with pytest.raises(PsearchError, match=r"^older\.jsonl, line 2: not a result for rnbqkbnr/"):
        results.of_position(asked())


def test_what_is_no_json() -> None:
    for text in ('[Event "x"]\n\n1. e4 *\n', "position  result\n", "[]\n"):
        with pytest.raises(PsearchError, match=r"^x, line 1: not a JSON object; merged files must hold JSON lines"):
            OlderResults(Source.of_text("x", text))
    assert len(OlderResults(Source.of_text("x", "\n" + json.dumps({"positions": [3], "depth": 1}) + "\n"))) == 0


def test_a_byte_order_mark() -> None:
    text = "\ufeff" + json.dumps(row(5)) + "\n" + json.dumps(row(6, AFTER_E4, "e7e5"))
    results = OlderResults(Source.of_text("x", text))
    assert results.of_position(asked()) is not None
    assert results.of_position(asked(AFTER_E4)) is not None
