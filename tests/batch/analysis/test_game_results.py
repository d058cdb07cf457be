"""A judged game: accuracy, average loss, tags, depths, JSON, the table of players; and results that exist already."""

from __future__ import annotations

import io
import itertools
import json
import statistics
from dataclasses import replace
from typing import Any

import chess
import chess.engine
import chess.pgn
import pytest
from chess.engine import Cp, Mate
from hypothesis import given, settings
from hypothesis import strategies as st

from psearch.batch.analysis.analysis_files import OlderResults
from psearch.batch.analysis.games import (
    PLAYER_COLUMNS,
    TOTAL_COLUMNS,
    GameReview,
    Players,
    ReviewedMove,
    Tally,
    _volatilities,
    capped_cp,
    game_object,
    game_title,
    games_summary,
    judge_game,
    move_accuracy,
    player_rows,
    positions,
    summarise,
    win_percent,
)
from psearch.batch.positions.task import Answer, Choice, Comparison, Line, Task, result_object
from psearch.results import Limits, PsearchError
from psearch.text.pgn_text import read_games
from psearch.text.source import Source

ANNOTATOR = "psearch 1.0, depth 9"
GAME = """\
[White "Fool"]
[Black "Mate"]
[Result "0-1"]

1. f3 e5 2. g4 Qh4# 0-1
"""
SCORES = {0: 30, 1: 80, 2: -80, 3: None}
"""centipawns for the side to move; None: mate in 1"""


def judged(text: str = GAME) -> GameReview:
    """Each position prefers its first legal move, the last one Qh4#; White's moves are compared with it."""
    work = next(read_games(Source.of_text("a file", text)))
    answers = {}
    for task in positions(work):
        cp = SCORES.get(task.ply, 0)
        best = "d8h4" if cp is None else next(iter(task.board.legal_moves)).uci()
        choices = [Choice(best, 0.1, 9, 100)]
        score = chess.engine.Mate(1) if cp is None else chess.engine.Cp(cp)
        lost = {0: chess.engine.Cp(-64), 2: chess.engine.Mate(-1)}.get(task.ply)
        compared = None if lost is None else Comparison(12, 3, best, score, lost, [best])
        line = Line(score, "exact", 9, 12, [best])
        answers[task.ply] = Answer(best, [line], 100, 0.2, 0, 0, choices, compared=compared)
    return judge_game(work, answers, "psearch", annotator=ANNOTATOR)


def read_back(text: str) -> chess.pgn.Game:
    game = chess.pgn.read_game(io.StringIO(text))
    assert not game.errors
    return game


def test_tags_name_the_annotator_and_the_players_accuracy() -> None:
    """White loses 8.62% and 40.23% of its chances: accuracies 68.70 and 15.73, weights 5.03 and 12; the weighted mean
    is 31.37, the harmonic one 25.59."""
    assert judged().to_pgn().split("\n\n")[0].splitlines() == [
        '[White "Fool"]',
        '[Black "Mate"]',
        '[Result "0-1"]',
        f'[Annotator "{ANNOTATOR}"]',
        '[WhiteAccuracy "28.5"]',
        '[WhiteACPL "507"]',
        '[BlackAccuracy "100.0"]',
        '[BlackACPL "0"]',
    ]


def test_another_annotator_stays() -> None:
    """Names are separated by colons; one of ours is replaced."""
    for before, after in (
        ("Fischer", f"Fischer:{ANNOTATOR}"),
        ("https://lichess.org", f"https://lichess.org:{ANNOTATOR}"),
        ("psearch 0.1, 1 s a position", ANNOTATOR),
        (f"Fischer:{ANNOTATOR}", f"Fischer:{ANNOTATOR}"),
    ):
        assert read_back(judged(f'[Annotator "{before}"]\n{GAME}').to_pgn()).headers["Annotator"] == after


def test_a_side_that_did_not_move_has_no_figures() -> None:
    """Nor those of an earlier analysis."""
    written = judged('[BlackAccuracy "12.0"]\n[BlackACPL "300"]\n\n1. e4 *').to_pgn()
    assert "[WhiteAccuracy " in written
    assert "[Black" not in written


def test_evaluations_tell_their_depth() -> None:
    moves = list(read_back(judged().to_pgn()).mainline())
    assert [move.eval_depth() for move in moves] == [9, 9, 9, None]
    assert [variation.eval_depth() for variation in moves[0].parent.variations[1:]] == [12]


def test_json_of_a_game() -> None:
    values = json.loads(json.dumps(game_object(judged(), "a.pgn")))
    assert list(values) == ["file", "game", "headers", "problem", "players", "positions"]
    assert (values["file"], values["game"], values["problem"]) == ("a.pgn", 1, None)
    assert values["headers"] == {"White": "Fool", "Black": "Mate", "Result": "0-1"}
    white = values["players"]["white"]
    assert {name: white[name] for name in ("moves", "average_loss", "inaccuracies", "mistakes", "blunders")} == {
        "moves": 2, "average_loss": 507.0, "inaccuracies": 0, "mistakes": 1, "blunders": 1,
    }  # fmt: skip
    assert white["accuracy"] == pytest.approx(28.5, abs=0.1)
    positions = values["positions"]
    assert [position["ply"] for position in positions] == [0, 1, 2, 3, 4]
    assert positions[0] == {
        "ply": 0, "fen": chess.STARTING_FEN, "bestmove": "g1h3", "score": {"cp": 30}, "depth": 9, "seldepth": 12,
        "nodes": 100, "time": 0.2, "tbhits": 0, "pv": ["g1h3"], "wdl": [281, 581, 138], "move": "f2f3", "san": "f3",
        "mark": "?", "words": "(0.30 → -0.64) Mistake. Nh3 was best.", "loss": positions[0]["loss"],
        "compared": {
            "depth": 12, "depths": 3, "bestmove": "g1h3", "score": {"cp": 30}, "played": {"cp": -64}, "pv": ["g1h3"],
        },
    }  # fmt: skip
    assert 0.10 <= positions[0]["loss"] < 0.15  # less noise: what the mark stands for
    assert (positions[3]["score"], positions[3]["mark"], positions[3]["loss"]) == ({"mate": 1}, None, 0)
    assert (positions[4]["result"], set(positions[4])) == ("checkmate", {"ply", "fen", "result"})


def test_json_of_a_game_that_cannot_be_read() -> None:
    values = game_object(judged('[Variant "Atomic"]\n\n1. e4 *'), "a.pgn")
    assert values["positions"] == []
    assert "atomic" in values["problem"]
    assert values["players"]["white"]["accuracy"] is None


def test_null_moves_are_judged_by_nobody() -> None:
    values = game_object(judged("1. e4 -- 2. d4 *"), "a.pgn")
    assert [position.get("loss") is None for position in values["positions"]] == [False, True, False, True]
    assert values["players"]["black"]["moves"] == 0


def test_totals_and_plurals() -> None:
    tally = Tally()
    tally.add(judged("1. e4 *"))
    assert tally.text() == "1 game, 2 positions, 0 ?!, 1 ?, 0 ??"
    tally.add(judged())
    assert tally.text() == "2 games, 6 positions, 0 ?!, 2 ?, 1 ??"
    assert games_summary(tally, 3) == {
        "games": 3, "finished": 2, "positions": 6, "inaccuracies": 0, "mistakes": 2, "blunders": 1,
    }  # fmt: skip


def test_the_table_of_players() -> None:
    assert PLAYER_COLUMNS == ("player", "accuracy", "loss, cp", "?!", "?", "??")
    assert player_rows(judged()) == [
        ["White, Fool", "28.5%", "507", "0", "1", "1"],
        ["Black, Mate", "100.0%", "0", "0", "0", "0"],
    ]
    assert player_rows(judged('[White "?"]\n\n1. e4 *'))[0][0] == "White"
    assert player_rows(judged("1. e4 *"))[1] == ["Black", "-", "-", "0", "0", "0"]


def test_the_table_of_all_games() -> None:
    """Figures of several games are means, by moves for the loss; who has no name or no move is not in it."""
    players = Players()
    players.add(judged())
    assert players.rows() == [], "one game has a table of its own"
    players.add(judged('[White "Mate"]\n[Black "Fool"]\n\n1. e4 *'))
    players.add(judged("1. e4 *"))
    rows = players.rows()
    assert [len(row) for row in rows] == [len(TOTAL_COLUMNS)] * 2
    (one,) = judged('[White "Mate"]\n\n1. e4 *').players[chess.WHITE].marks.items()
    assert rows[0][:2] == ["Mate", "2"] and rows[1][:2] == ["Fool", "1"]
    accuracy = judged("1. e4 *").players[chess.WHITE].accuracy
    loss = judged("1. e4 *").players[chess.WHITE].average_loss
    assert accuracy is not None and loss is not None
    assert rows[0][2:4] == [f"{(100 + accuracy) / 2:.1f}%", f"{loss / 3:.0f}"]
    assert rows[0][4:] == [str(int(mark == one[0])) for mark in ("?!", "?", "??")]


def test_the_title_says_what_is_known() -> None:
    assert game_title(judged('[Event "?"]\n[Date "1851.06.21"]\n\n1. e4 *'), None) == "game 1: 1851.06.21"
    assert game_title(judged('[Date "1851.??.??"]\n\n1. e4 *'), None) == "game 1: 1851"
    assert game_title(judged(GAME), "a.pgn") == "a.pgn, game 1: 0-1"
    assert game_title(judged("1. e4 *"), None) == "game 1"


CP = st.integers(-1000, 1000)
PERCENT = st.floats(0, 100)


def move(mover: chess.Color, before: int, after: int, is_best: bool = False, mark: str | None = None) -> ReviewedMove:
    """A move between two positions with these scores, seen from White."""
    one, other = (chess.engine.PovScore(chess.engine.Cp(cp), chess.WHITE) for cp in (before, after))
    return ReviewedMove(chess.Move.null(), mover, one, other, is_best=is_best, loss=0.0, mark=mark)


def game(*scores: int, best: tuple[int, ...] = (), turn: chess.Color = chess.WHITE) -> list[ReviewedMove]:
    """The moves between positions with these scores, seen from White; best: numbers of the search's own moves."""
    return [
        move(turn if number % 2 == 0 else not turn, before, after, number in best)
        for number, (before, after) in enumerate(itertools.pairwise(scores))
    ]


def test_chances() -> None:
    """exp(-0.368208) is 0.69197, and 100 / 1.69197 is 59.10."""
    assert win_percent(100) == pytest.approx(59.1028, abs=1e-3)
    assert win_percent(-100) == pytest.approx(40.8972, abs=1e-3)
    assert win_percent(0) == 50


def test_accuracy_of_moves() -> None:
    """A loss of 9.1028%: exp(-0.39637) is 0.67276, times 103.1668 is 69.406, and 2.1669 less."""
    assert move_accuracy(59.1028, 50) == pytest.approx(67.239, abs=1e-2)
    assert move_accuracy(59.1028, 40.8972) == pytest.approx(44.527, abs=1e-2)
    assert move_accuracy(100, 0) == 0
    assert move_accuracy(50, 50) == move_accuracy(10, 90) == 100


def test_a_game_worked_out_by_hand() -> None:
    """White loses nothing, Black 100 centipawns, White 200. White's weights are 0.5, the least, and 9.1028, so that the
    weighted mean is 47.415; the harmonic mean of 100 and 44.527 is 61.617."""
    found = summarise(game(0, 0, 100, -100))
    white, black = found[chess.WHITE], found[chess.BLACK]
    assert (white.moves, white.average_loss) == (2, 100)
    assert white.accuracy == pytest.approx((47.415 + 61.617) / 2, abs=1e-2)
    assert (black.moves, black.average_loss) == (1, 100)
    assert black.accuracy == pytest.approx(67.239, abs=1e-2)


def test_marks_are_counted_for_each_player() -> None:
    moves = [move(number % 2 == 0, 0, 0, mark=mark) for number, mark in enumerate(["??", None, "?!", "?!", "??"])]
    found = summarise(moves)
    assert found[chess.WHITE].marks == {"??": 2, "?!": 1}
    assert found[chess.BLACK].marks == {"?!": 1}


def test_the_move_of_the_search_loses_nothing() -> None:
    """This is psearch's rule. The one of lichess has the two scores alone."""
    moves = game(0, -300, best=(0,))
    white = summarise([replace(move, rule="psearch") for move in moves])[chess.WHITE]
    assert (white.accuracy, white.average_loss) == (100, 0)
    assert summarise(moves)[chess.WHITE].average_loss == 300


def test_nobody_moved() -> None:
    for found in (summarise([])[chess.WHITE], summarise(game(0, 10))[chess.BLACK]):
        assert (found.moves, found.accuracy, found.average_loss) == (0, None, None)


@pytest.mark.parametrize(
    ("score", "cp"),
    [
        (chess.engine.Cp(37), 37),
        (chess.engine.Cp(-1500), -1000),
        (chess.engine.Mate(40), 1000),
        (chess.engine.Mate(-1), -1000),
        (chess.engine.Mate(0), -1000),
        (chess.engine.MateGiven, 1000),
    ],
)
def test_scores_have_a_cap(score: chess.engine.Score, cp: int) -> None:
    assert capped_cp(score) == cp


@settings(deadline=None)
@given(CP, CP)
def test_a_better_score_is_a_better_chance(one: int, other: int) -> None:
    assert 0 <= win_percent(one) <= 100
    assert (one < other) == (win_percent(one) < win_percent(other))
    assert win_percent(one) + win_percent(-one) == pytest.approx(100)


@settings(deadline=None)
@given(PERCENT, PERCENT, PERCENT)
def test_a_greater_loss_is_never_more_accurate(before: float, one: float, other: float) -> None:
    assert 0 <= move_accuracy(before, one) <= 100
    assert move_accuracy(before, min(one, other)) <= move_accuracy(before, max(one, other))


@settings(deadline=None)
@given(st.lists(CP, min_size=2, max_size=200), st.booleans())
def test_players_stay_within_bounds_and_colours_are_alike(scores: list[int], turn: bool) -> None:
    found = summarise(game(*scores, turn=turn))
    for player in found.values():
        assert player.accuracy is None or 0 <= player.accuracy <= 100
        assert player.average_loss is None or 0 <= player.average_loss <= 2000
    mirrored = summarise(game(*(-score for score in scores), turn=not turn))
    for color in chess.COLORS:
        assert mirrored[not color].average_loss == found[color].average_loss
        assert mirrored[not color].accuracy == pytest.approx(found[color].accuracy)


@settings(deadline=None)
@given(st.lists(CP, min_size=2, max_size=120))
def test_weights_are_those_of_the_windows_written_out(scores: list[int]) -> None:
    """The first window as often as whole windows are missing at the start, then every window."""
    chances = [win_percent(score) for score in scores]
    size = min(len(chances), max(2, min(8, (len(scores) - 1) // 10)))
    windows = [chances[:size]] * (size - 2)
    windows += [chances[begin : begin + size] for begin in range(len(chances) - size + 1)]
    naive = [max(0.5, min(12, statistics.pstdev(window))) for window in windows]
    assert _volatilities(game(*scores)) == pytest.approx(naive)


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
    assert (found.best, found.lines[0].depth, found.lines[0].score, found.time_s) == ("d2d4", 7, Cp(20), 0.5)
    assert results.of_position(asked(AFTER_E4)) is None


def test_a_result_that_was_written_comes_back() -> None:
    lines = [Line(Mate(3), "lower", 9, 12, ["e2e4", "e7e5"]), Line(Cp(-5), "exact", 9, 12, ["d2d4"])]
    written = Answer("e2e4", lines, 1234, 0.25, 0, 2, [Choice("e2e4", 0.25, 9, 1234)], notes=("a",), version="1")
    task = asked(START, multipv=2)
    assert older(result_object("x", task, written, None)).of_position(task) == written


def test_moves_before_a_position_and_lines_count() -> None:
    results = older(row(5, best="e7e5", moves=["e2e4"]), row(6, AFTER_E4, "e7e5"))
    for task, depth in ((asked(START, "e2e4"), 5), (asked(AFTER_E4), 6)):
        found = results.of_position(task)
        assert found is not None and found.lines[0].depth == depth
    assert results.of_position(asked(AFTER_E4, multipv=2)) is None
    only_move = "7k/8/5K2/6R1/8/8/8/8 b - - 0 1"
    assert older(row(5, only_move, "h8h7")).of_position(asked(only_move, multipv=3)) is not None
    assert results.of_position(asked(START, "d2d4")) is None


def test_since_when_a_suite_was_solved() -> None:
    since = {"time": 0.1, "depth": 2, "nodes": 9}
    (with_solution, without) = (older(row(5, **more)).of_position(asked()) for more in ({"solution": since}, {}))
    assert with_solution.choices == [Choice("e2e4", 0.1, 2, 9)]
    assert without.choices == [Choice("e2e4", 0.5, 5, 100)]


def game_row(text: str, depth: int) -> dict[str, Any]:
    game = chess.pgn.read_game(io.StringIO(text))
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
    found = results.of_game(game.board(), game.mainline_moves())
    assert {ply: one.lines[0].depth for ply, one in found.items()} == dict.fromkeys(range(4), 6)
    assert results.of_game(chess.Board(), [chess.Move.from_uci("f2f3")]) == {}
    assert results.of_game(game.board(), game.mainline_moves(), multipv=2) == {}
    assert results.of_position(asked()) is None


def test_a_game_of_chess960() -> None:
    tags = '[Variant "Chess960"]\n[SetUp "1"]\n[FEN "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1"]\n\n'
    text = tags + "1. O-O O-O-O *"
    game = chess.pgn.read_game(io.StringIO(text))
    assert sorted(older(game_row(text, 3)).of_game(game.board(), game.mainline_moves())) == [0, 1, 2]


LINE = {"score": {"cp": 10, "mate": None, "bound": "exact"}, "depth": 5, "seldepth": 6, "pv": ["e2e4"]}


def test_several_lines_are_a_result() -> None:
    assert older({**row(5), "lines": [LINE, LINE]}).of_position(asked()) is not None


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
        {"lines": [LINE, {**LINE, "pv": ["e2e4", "zzzz"]}]},
        {"lines": [LINE, {**LINE, "pv": ["e2e4", "e2e4"]}]},
        {"pv": ["e2e4", "0000"]},
        {"bestmove": "0000"},
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
