"""`psearch analyse` without an engine: reading, judging, annotating, the journal, and where the result goes."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import chess
import chess.engine
import chess.pgn
import pytest
from paths import DATA

from psearch.batch.analysis import analyser as analyser_module
from psearch.batch.analysis import analysis_files as output_module
from psearch.batch.analysis.analyser import Analyser, Stopped, Work
from psearch.batch.analysis.analysis_files import AnalysisJournal, Output, place_of
from psearch.batch.analysis.games import Tally, count_positions, judge_game, positions
from psearch.batch.analysis.suite_results import (
    SuiteSummary,
    SuiteTable,
    Survey,
    Verdict,
    group_of,
    json_object,
    judge,
    summary_text,
)
from psearch.batch.positions.comparing import noise_cp
from psearch.batch.positions.position_pool import answer_of
from psearch.batch.positions.task import Answer, Batch, Choice, Comparison, Line, Outcome, Task
from psearch.batch.positions.task_queue import Done, Event
from psearch.faces.cli.commands.analyse_command import Kind, file_kind
from psearch.faces.cli.main import main
from psearch.processes.tasks import ProcessJoined
from psearch.results import Info, Limits, PsearchError, Result
from psearch.terminal.streams import printable
from psearch.text.epd_text import SuitePosition, parse_suite, read_suite
from psearch.text.marks import MARKS
from psearch.text.pgn_text import PgnGame, Where, read_games
from psearch.text.source import Source, read_source
from psearch_core.records import MAX_HISTORY

ABOUT = {"input": "abc", "depth": 7}
START = chess.STARTING_FEN
NAGS = {
    None: set(),
    "?!": {chess.pgn.NAG_DUBIOUS_MOVE},
    "?": {chess.pgn.NAG_MISTAKE},
    "??": {chess.pgn.NAG_BLUNDER},
}


def source(text: str) -> Source:
    return Source.of_text("a file", text)


def suite_line(text: str) -> SuitePosition:
    return parse_suite(source(text))[0]


def score_of(cp: int | None, mate: int | None = None) -> chess.engine.Score:
    return chess.engine.Cp(cp or 0) if mate is None else chess.engine.Mate(mate)


def answer(board: chess.Board, *words: str, cp: int | None = 20, mate: int | None = None) -> Answer:
    """An answer whose line is `words`, in UCI; 0.5 s to find its move."""
    line = Line(score_of(cp, mate), "exact", 9, 15, list(words))
    return Answer(words[0], [line], 1000, 1.0, 0, 0, [Choice(words[0], 0.5, 7, 400)], version="1")


def with_bound(answer: Answer, bound: str, **changes: Any) -> Answer:
    return replace(answer, lines=[replace(answer.line, bound=bound)], **changes)


def compared(*words: str, cp: int | None, played: int | None, mate: int | None = None, depths: int = 3) -> Comparison:
    """The line of a better move, in UCI, and two scores of depth 12; a `played` of None is mated at once."""
    other = score_of(played, -1 if played is None else None)
    return Comparison(12, depths, words[0], score_of(cp, mate), other, list(words))


def summarise(verdicts: list[Verdict], total: int) -> dict[str, Any]:
    summary = SuiteSummary()
    for verdict in verdicts:
        summary.add(verdict, "a.epd")
    return summary.figures(total)


# -- suites ----------------------------------------------------------------------------------------------------------


def test_what_a_suite_can_hold() -> None:
    suite = {position.name: position for position in parse_suite(read_source(str(DATA / "suites" / "mixed.epd")))}
    assert [position.line for position in suite.values()] == list(range(2, 11))
    mates = [chess.Move.from_uci("e1e8")]
    assert list(suite["mix.1"].best) == mates
    assert list(suite["mix.2"].avoid) == mates
    assert (suite["mix.3"].board.halfmove_clock, suite["mix.3"].board.fullmove_number) == (3, 40)
    e4, d4, knight = (chess.Move.from_uci(word) for word in ("e2e4", "d2d4", "g1f3"))
    assert suite["sts.1"].points == {e4: 10, d4: 8, knight: 7}
    assert suite["sts.2"].points == {e4: 100, d4: 30}
    assert suite["sts.3"].points == {e4: 50, d4: 20}
    assert suite["fischer"].board.chess960
    assert suite["fischer"].best == (chess.Move.from_uci("f1g1"),)
    assert suite["fischer"].best[0] in suite["fischer"].board.legal_moves
    assert (suite["line 10"].board.halfmove_clock, suite["line 10"].board.fullmove_number) == (12, 60)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("8/8/8/8/8/8/8/8 w - - bm e4;", "board is empty"),
        ("4k3/8/8/8/8/8/8/4K3", "side to move"),
        ("4k3/8/8/8/8/8/8/4K3 w - - bm;", "bm names no move"),
        ("4k3/8/8/8/8/8/8/4K3 w - - bm Qa9;", "Qa9"),
        ("4k3/8/8/8/8/8/8/4K3 w - - am Kd8;", "Kd8"),
    ],
)
def test_malformed_lines_are_named(line: str, reason: str) -> None:
    with pytest.raises(PsearchError) as raised:
        parse_suite(source(f"# comment\n\n{START} bm e4;\n{line}\n"))
    assert str(raised.value).startswith("a file, line 4: ")
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_several_suites_are_summed_up_apart() -> None:
    position = suite_line(f"{START} bm e4;")
    summary = SuiteSummary()
    long = "/somewhere/" * 9 + "b.epd"
    for file, move in (("a.epd", "e2e4"), (long, "d2d4"), (long, "e2e4")):
        summary.add(judge(position, answer(position.board, move)), file)
    figures = summary.figures(3)
    assert {file: (part["solved"], part["scored"]) for file, part in figures["files"].items()} == {
        "a.epd": (1, 1),
        long: (1, 2),
    }
    assert "/somewhere/b.epd  solved 1 of 2 (50.0%)" in summary_text(figures)
    assert max(map(len, summary_text(figures).splitlines())) < 80


def test_empty_suites() -> None:
    for text in ("", "\n\n", "# only a comment\n"):
        with pytest.raises(PsearchError, match="a file has no positions"):
            parse_suite(source(text))


def test_studies_leave_out_games_that_are_over() -> None:
    assert {"mated", "line 10"}.isdisjoint(position.name for position in read_suite(str(DATA / "suites" / "mixed.epd")))


def test_comments_that_are_no_points() -> None:
    for comment in ("J. Polgar-Berkes, Budapest 2003", "e4=good", "=10", "e4 = 10 points", "e4=10, Ke8=5"):
        assert suite_line(f'{START} bm e4; c0 "{comment}";').points == {}
    assert suite_line(f'{START} bm e4; c8 "10 5"; c9 "e2e4";').points == {}


def test_time_from_which_the_move_was_right_for_good() -> None:
    """The move is e4 first, then d4, then e4 again: only the last time counts."""
    position = suite_line(f"{START} bm e4 Nf3;")
    choices = [
        Choice("e2e4", 0.1, 1, 10),
        Choice("d2d4", 0.2, 2, 20),
        Choice("g1f3", 0.3, 3, 30),
        Choice("e2e4", 0.4, 4, 40),
    ]
    found = replace(answer(position.board, "e2e4"), choices=choices)
    assert judge(position, found).solved_by == choices[2]
    assert judge(position, found).result == "right"
    wrong = replace(answer(position.board, "d2d4"), choices=choices[:2])
    assert judge(position, wrong).solved_by is None
    assert judge(position, wrong).result == "wrong"


def test_time_from_which_the_mate_was_short_enough_for_good() -> None:
    position = suite_line("8/8/8/3k4/8/8/1Q6/4K3 w - - dm 9;")
    move = "b2b4"
    mates = (None, 8, 12, 9, 9, 7)
    choices = [Choice(move, 0.1 * number, number, 10 * number, mate) for number, mate in enumerate(mates, 1)]
    found = replace(answer(position.board, move, cp=None, mate=7), choices=choices)
    assert judge(position, found).solved_by == choices[3]
    older = judge(position, replace(found, choices=choices[:1])).solved_by  # without mates: the end of the search
    assert older == Choice(move, found.time_s, found.line.depth, found.nodes)
    assert judge(position, answer(position.board, move, cp=None, mate=10)).solved_by is None
    assert judge(position, answer(position.board, move, cp=None, mate=-2)).solved_by is None


def test_when_a_mate_was_seen() -> None:
    """A bound tells nothing new of the same move."""
    move, other = chess.Move.from_uci("e2e4"), chess.Move.from_uci("d2d4")

    def report(depth: int, best: chess.Move, score: chess.engine.Score, bound: str = "exact") -> Info:
        return Info(depth, depth, chess.engine.PovScore(score, chess.WHITE), bound, 10 * depth, 0.1 * depth, [best])

    cp, mate = chess.engine.Cp(30), chess.engine.Mate
    infos = [
        report(1, move, cp), report(2, move, mate(5)), report(3, move, mate(4), "lower"), report(4, move, mate(3)),
        report(5, move, cp, "upper"), report(6, other, mate(2), "lower"), report(7, move, mate(3)),
    ]  # fmt: skip
    choices = answer_of(Result(move, infos[-1], lines=[infos[-1]]), infos).choices
    assert [(choice.move, choice.depth, choice.mate) for choice in choices] == [
        ("e2e4", 1, None), ("e2e4", 2, 5), ("e2e4", 4, 3), ("d2d4", 6, None), ("e2e4", 7, 3),
    ]  # fmt: skip


def test_moves_to_avoid() -> None:
    position = suite_line(f"{START} am f3 g4;")
    assert judge(position, answer(position.board, "e2e4")).result == "right"
    assert judge(position, answer(position.board, "f2f3")).result == "wrong"
    both = suite_line(f"{START} bm e4; am e4;")
    assert judge(both, answer(both.board, "e2e4")).result == "wrong"


def test_the_table_and_the_summary() -> None:
    suite = parse_suite(read_source(str(DATA / "suites" / "mixed.epd")))
    words = ["e1e8", "e1e8", "e1e8", "d2d4", "d2d4", "e2e4", "f1g1"]
    verdicts = [judge(position, answer(position.board, word)) for position, word in zip(suite[:7], words, strict=True)]
    verdicts += [judge(position, None) for position in suite[7:]]
    table = SuiteTable(Survey.of(suite))
    lines = [table.row(verdict) for verdict in verdicts]
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in [table.head(), *lines])
    assert lines[0].split() == ["mix.1", "right", "Re8#", "Re8#", "0.50", "9/15", "+0.20", "1,000"]
    assert lines[1].split()[:5] == ["mix.2", "wrong", "Re8#", "not", "Re8#"]
    assert lines[3].split() == ["sts.1", "-", "d4", "9/15", "+0.20", "1,000", "8/10"]
    assert lines[7].split() == ["mated", "checkmate"]
    assert lines[8].split() == ["line", "10", "stalemate"]
    summary = summarise(verdicts, len(suite))
    assert (summary["positions"], summary["scored"], summary["solved"]) == (9, 5, 3)
    assert (summary["points"], summary["most_points"]) == (8 + 30 + 50, 10 + 100 + 50)
    assert summary["solved_within"] == {"0.5": 3}
    assert summary["nodes"] == 7000
    text = summary_text(summary)
    assert "solved     3 of 5 (60.0%)" in text
    assert "points     88 of 160 (55.0%)" in text
    assert "finished" not in text
    assert "finished   2 of 9 positions" in summary_text(summarise(verdicts[:2], len(suite)))


@pytest.mark.parametrize("width", [60, 70, 80, 100, 120])
def test_the_table_fits_a_terminal(width: int) -> None:
    """Names are cut, figures are left out, and none is broken."""
    lines = [f'{START} bm e4; c0 "e4=10, d4=7"; id "STS(v1.0) Undermine.{number:03}";' for number in range(3)]
    suite = parse_suite(source("\n".join(lines)))
    wide, table = SuiteTable(Survey.of(suite)), SuiteTable(Survey.of(suite), width)
    position = suite[2]
    rows = [table.head(), table.row(judge(position, answer(position.board, "e2e4"))), table.row(judge(position, None))]
    assert max(map(len, rows)) <= width + 1
    assert set(rows[0].split()) <= set(wide.head().split())
    name, *words = rows[1].split("  ")
    assert name.endswith("e.002"), "what tells names apart is at their end"
    figures = [word.strip() for word in words if word]
    assert figures[-1] == "10/10" and "0.50" in figures and "right" in figures
    assert set(figures) <= set(wide.row(judge(position, answer(position.board, "e2e4"))).split())
    assert width < 120 or rows[0] == wide.head()


def test_themes_are_summed_up_apart() -> None:
    assert group_of("STS(v1.0) Undermine.001") == "STS(v1.0) Undermine"
    assert group_of("WAC.300") == "WAC"
    assert group_of("17") == ""
    lines = [f'{START} bm e4; id "{theme}.{number}";' for theme in ("open", "closed") for number in range(5)]
    suite = parse_suite(source("\n".join(lines)))
    verdicts = [judge(position, answer(position.board, "e2e4")) for position in suite]
    assert set(summarise(verdicts, len(suite))["groups"]) == {"open", "closed"}
    assert "groups" not in summarise(verdicts[:5], len(suite))


def test_json_of_a_position() -> None:
    position = suite_line(f'{START} bm e4; c0 "e4=10"; id "x";')
    values = json.loads(
        json.dumps(json_object(judge(position, answer(position.board, "e2e4", cp=None, mate=3)), "a.epd"))
    )
    assert values == {
        "file": "a.epd", "line": 1, "id": "x", "fen": START, "bm": ["e2e4"], "am": [], "result": "right", "points": 10,
        "most_points": 10, "bestmove": "e2e4", "score": {"mate": 3}, "depth": 9, "seldepth": 15, "nodes": 1000,
        "time": 1.0, "tbhits": 0, "pv": ["e2e4"], "wdl": [1000, 0, 0],
        "solution": {"time": 0.5, "depth": 7, "nodes": 400},
    }  # fmt: skip


def test_a_name_cannot_steer_the_terminal() -> None:
    position = suite_line(f'{START} id "\x1b[31mred";')
    assert "\x1b" not in SuiteTable(Survey.of([position])).row(judge(position, answer(position.board, "e2e4")))


ESCAPES = "\x1b]0;owned\x07\x9b2J\u202e"


def test_no_name_steers_the_terminal_from_the_summary() -> None:
    lines = [f'{START} bm e4; id "{theme}{ESCAPES} {number:03}";' for theme in "AB" for number in range(4)]
    suite = parse_suite(source("\n".join(lines)))
    summary = summarise([judge(position, answer(position.board, "e2e4")) for position in suite], len(suite))
    assert len(summary["groups"]) == 2
    text = summary_text(summary)
    assert printable(text) == text
    assert max(map(len, text.splitlines())) < 100
    assert "solved 4 of 4" in text


def test_themes_are_found_in_linear_time() -> None:
    began = time.process_time()
    assert group_of("1" * 2_000_000 + "x") == "1" * 2_000_000 + "x"
    assert group_of("x" + " 1" * 1_000_000) == "x" + " 1" * 999_999
    assert group_of("x" + " " * 1_000_000 + "1") == "x"
    assert time.process_time() - began < 1


# -- games -----------------------------------------------------------------------------------------------------------

ANNOTATOR = "psearch 1.0, depth 9"
SHORT_GAME = """\
[Event "Scholar"]
[Result "1-0"]

1. e4 e5 2. Bc4 {book [%clk 0:01:00]} Nc6 3. Qh5 Nf6 4. Qxf7# 1-0
"""


def annotated(text: str, answers: dict[int, Answer]) -> tuple[chess.pgn.Game, Tally]:
    """The first game of `text` with answers by ply, read again from what was written."""
    judged = judge_game(next(read_games(source(text))), answers, "psearch", annotator=ANNOTATOR)
    tally = Tally()
    tally.add(judged)
    game = chess.pgn.read_game(io.StringIO(judged.to_pgn()))
    assert not game.errors
    return game, tally


def written_of(work: PgnGame, answers: dict[int, Answer]) -> str:
    return judge_game(work, answers, "psearch", annotator=ANNOTATOR).to_pgn()


def level_answers(text: str) -> dict[int, Answer]:
    """Return, for every position to be searched, a level score and any legal move."""
    work = next(read_games(source(text)))
    return {task.ply: answer(task.board, next(iter(task.board.legal_moves)).uci(), cp=0) for task in positions(work)}


def test_evaluations_are_seen_from_white() -> None:
    answers = level_answers(SHORT_GAME)
    assert sorted(answers) == list(range(7))  # the mate is not searched
    board = chess.Board()
    answers[1] = answer(board, "e7e5", cp=-31)  # Black to move
    answers[2] = answer(board, "g1f3", cp=25)
    answers[6] = answer(board, "h5f7", cp=None, mate=1)
    game, _ = annotated(SHORT_GAME, answers)
    evaluations = [node.eval() for node in game.mainline()]
    assert [str(found.white()) if found else None for found in evaluations[:2]] == ["+31", "+25"]
    assert evaluations[5].white() == chess.engine.Mate(1)
    assert evaluations[6] is None
    third = list(game.mainline())[2]
    assert third.clock() == 60
    assert third.comment.startswith("book")


@pytest.mark.parametrize(
    ("bound", "cp", "exact", "white"),
    [
        ("lower", 90, 30, -90),  # Black to move
        ("upper", -90, 30, 90),
        ("lower", 90, None, -90),
        ("lower", 90, 95, -95),
        ("upper", -90, -95, 95),
    ],
)
def test_a_bound_is_the_last_exact_score_or_the_bound(bound: str, cp: int, exact: int | None, white: int) -> None:
    """The format has no bounds. What is right may be a bit off an exact score, not on the wrong side of a bound."""
    text = '[Result "*"]\n\n1. e4 {mine} *\n'
    answers = {
        1: with_bound(answer(chess.Board(), "e7e5", cp=cp), bound, exact=None if exact is None else score_of(exact))
    }
    game, _ = annotated(text, answers)
    assert game.next().comment == f"mine [%eval {white / 100:.2f},9]"
    again, _ = annotated(str(game), {1: answer(chess.Board(), "e7e5", cp=-20)})
    assert [child.comment for child in again.mainline()] == ["mine [%eval 0.20,9]"]


def test_bounds_of_mates() -> None:
    found = with_bound(answer(chess.Board(), "e2e4", cp=None, mate=4), "lower", exact=score_of(400))
    assert found.estimate == (chess.engine.Mate(4), "lower")
    assert replace(found, exact=chess.engine.Mate(3)).estimate == (chess.engine.Mate(3), "exact")
    verdict = judge(suite_line(f"{START} bm e4;"), found)
    assert " >=#4 " in SuiteTable(Survey()).row(verdict)
    assert json_object(verdict, "a.epd")["score"] == {"mate": 4, "bound": "lower"}


@pytest.mark.parametrize(("loss_index", "mark"), [(0, "??"), (1, "?"), (2, "?!"), (None, None)])
def test_marks_follow_the_loss_of_expected_points(
    loss_index: int | None, mark: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A move that loses just as much as the threshold gets the mark, one that loses less the next one."""
    loss = MARKS[loss_index][0] + 0.001 if loss_index is not None else MARKS[-1][0] - 0.001
    expected = {90: 0.5 + loss, 0: 0.5}  # without noise
    monkeypatch.setattr("psearch.batch.positions.comparing.noise_cp", lambda board, depth, depths: 0)
    monkeypatch.setattr("psearch.text.marks.expected_points", lambda score, board: expected.get(score.score(), 0.9))
    text = '[Result "*"]\n\n1. e4 *\n'
    board = chess.Board()
    better = compared("d2d4", "d7d5", cp=90, played=0)
    game, tally = annotated(
        text, {0: replace(answer(board, "d2d4", cp=300), compared=better), 1: answer(board, "e7e5", cp=0)}
    )
    assert game.next().nags == NAGS[mark]
    assert [name for name, count in tally.marks.items() if count] == ([mark] if mark else [])
    variations = game.variations[1:]
    assert [variation.move.uci() for variation in variations] == (["d2d4"] if mark else [])
    if mark:
        better = variations[0].eval()
        assert better.white() == chess.engine.Cp(90)
        assert variations[0].next() is not None


@pytest.mark.parametrize(
    ("found", "mark"),
    [
        (None, None),  # nothing was compared
        (compared("d2d4", cp=300, played=0), "??"),
        (compared("d2d4", cp=46, played=0), None),  # noise
        (compared("d2d4", cp=73, played=0), "?!"),
        (compared("d2d4", cp=74, played=0, depths=1), None),
        (compared("d2d4", cp=101, played=0, depths=1), "?!"),
        (compared("d2d4", cp=None, mate=3, played=0), "??"),
        (compared("d2d4", cp=-900, played=-1200), None),
        (compared("e2e4", cp=20, played=20), None),
    ],
)
def test_a_mark_needs_two_scores_of_one_depth_that_differ_by_more_than_noise(
    found: Comparison | None, mark: str | None
) -> None:
    """Whatever the scores of the two positions are: they come of searches of other depths, and are often bounds."""
    board = chess.Board()
    first = with_bound(answer(board, "d2d4", cp=400), "lower", compared=found)
    game, _ = annotated('[Result "*"]\n\n1. e4 *\n', {0: first, 1: answer(board, "e7e5", cp=400)})
    assert game.next().nags == NAGS[mark]


@pytest.mark.parametrize(("played", "mark"), [(0, "??"), (250, None)])
def test_a_comparison_decides_whatever_the_search_would_have_played(played: int, mark: str | None) -> None:
    """It was made because one in small found a loss, and is the deeper one: the searches of the positions may have
    been short of time. Without a mark the move loses nothing."""
    board = chess.Board()
    first = replace(answer(board, "e2e4", cp=20), compared=compared("d2d4", cp=300, played=played))
    (move,) = judge_game(next(read_games(source("1. e4 *"))), {0: first, 1: answer(board, "e7e5", cp=-20)}).moves
    assert (move.mark, move.is_best, move.loss == 0) == (mark, mark is None, mark is None)


def test_a_move_before_a_position_without_an_answer_has_no_loss() -> None:
    board = chess.Board()
    judged = judge_game(next(read_games(source("1. e4 e5 *"))), {0: answer(board, "d2d4", cp=400)})
    assert [(move.loss, move.mark) for move in judged.moves] == [(None, None), (None, None)]


def test_a_lower_depth_and_an_opening_have_more_noise() -> None:
    board = chess.Board()
    assert noise_cp(board, 20, 3) == noise_cp(board, 10, 3) < noise_cp(board, 8, 3) < noise_cp(board, 4, 3)
    assert noise_cp(board, 15, 1) > noise_cp(board, 15, 2) > noise_cp(board, 15, 3)
    fewer = chess.Board("r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 20")
    assert noise_cp(fewer, 15, 3) < noise_cp(board, 15, 3)


def test_missing_a_mate_and_walking_into_one() -> None:
    board = chess.Board()
    answers = level_answers(SHORT_GAME)
    answers[5] = replace(answer(board, "g7g6", "h5f3", cp=10), compared=compared("g7g6", "h5f3", cp=10, played=None))
    answers[6] = answer(board, "h5f7", cp=None, mate=1)
    game, tally = annotated(SHORT_GAME, answers)
    nodes = list(game.mainline())
    assert nodes[5].nags == {chess.pgn.NAG_BLUNDER}  # 3... Nf6
    assert nodes[6].nags == set()  # the mate itself
    assert tally.marks["??"] == 1
    assert tally.positions == 7


def test_the_searched_move_is_never_marked() -> None:
    """Scores of two searches may differ; that is no mistake of the player."""
    board = chess.Board()
    game, tally = annotated(
        '[Result "*"]\n\n1. e4 *\n', {0: answer(board, "e2e4", cp=500), 1: answer(board, "e7e5", cp=500)}
    )
    assert not any(tally.marks.values())
    assert len(game.variations) == 1


def test_marks_and_variations_of_the_reader_stay() -> None:
    text = '[Result "*"]\n\n1. f3 $1 (1. e4 c5 {mine}) 1... e5 *\n'
    board = chess.Board()
    answers = {
        0: replace(answer(board, "e2e4", cp=400), compared=compared("e2e4", "e7e5", cp=400, played=-400)),
        1: answer(board, "e7e5", cp=400),
        2: answer(board, "e2e4", cp=0),
    }
    game, _ = annotated(text, answers)
    assert game.variations[0].nags == {chess.pgn.NAG_GOOD_MOVE}
    assert len(game.variations) == 2
    assert game.variations[1].next().comment == "mine"


def test_annotating_twice_changes_nothing() -> None:
    answers = level_answers(SHORT_GAME)
    answers[0] = replace(answer(chess.Board(), "d2d4", cp=300), compared=compared("d2d4", "d7d5", cp=300, played=0))
    once = written_of(next(read_games(source(SHORT_GAME))), answers)
    assert "1. d4" in once
    assert written_of(next(read_games(source(once))), answers) == once


BROKEN = """\
[Event "broken"]
[Result "0-1"]

1. e4 e5 2. Qh5 Ke7 3. Qxe5# Nc6 {never} 0-1

[Event "atomic"]
[Variant "Atomic"]
[Result "*"]

1. e4 e5 *

[Event "no kings"]
[SetUp "1"]
[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]
[Result "*"]

1. e4 *

[Event "null moves"]
[Result "*"]

1. e4 -- 2. Bb5 -- *

[Event "stalemate"]
[SetUp "1"]
[FEN "7k/8/6K1/5Q2/8/8/8/8 w - - 0 1"]
[Result "1/2-1/2"]

1. Qf7 1/2-1/2

[Event "Fischer"]
[Variant "Chess960"]
[SetUp "1"]
[FEN "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1"]
[Result "*"]

1. O-O O-O-O *
"""


def test_broken_and_odd_games() -> None:
    games = list(read_games(source(BROKEN)))
    assert [work.readable for work in games] == [True, False, False, True, True, True]
    assert [work.problem is None for work in games] == [False, False, False, True, True, True]
    problems = [work.problem for work in games[:3] if work.problem is not None]
    assert [problem.where for problem in problems] == [Where.MAIN_LINE, Where.GAME, Where.GAME]
    assert "Nc6" in problems[0].text
    assert "atomic" in problems[1].text
    assert [sum(1 for _ in positions(work)) for work in games] == [5, 0, 0, 5, 1, 3]
    for work in games:
        for task in positions(work):
            assert any(task.board.legal_moves)
            assert task.board.is_valid()


def test_a_broken_game_says_where_it_ends() -> None:
    work = next(read_games(source(BROKEN)))
    answers = {task.ply: answer(task.board, next(iter(task.board.legal_moves)).uci(), cp=0) for task in positions(work)}
    game = chess.pgn.read_game(io.StringIO(written_of(work, answers)))
    assert not game.errors
    assert "psearch could not read on: illegal san: 'Nc6'" in game.end().comment


@pytest.mark.parametrize(
    ("variation", "kept"),
    [
        ("(1. d4 Qxd4 2. c4)", "( 1. d4 {Qxd4 2. c4} ) 1... "),
        (
            "(1. d4 Qxd4 {lost} $1 (1... Qxd4) 2. c4 (2. c3 (2. c4))) (1. c4)",
            "( 1. d4 {Qxd4 (lost) $1 ( 1... Qxd4 ) 2. c4 ( 2. c3 ( 2. c4 ) )} ) ( 1. c4 ) 1... ",
        ),
        ("(1. Qz9) (1. Kxe8 (1. Nf3))", "{Qz9} {Kxe8 ( 1. Nf3 )} 1... "),
        ("(1. d4 d5 (1... Kxe8 2. c4) 2. c4)", "( 1. d4 d5 {Kxe8 2. c4} 2. c4 ) 1... "),
    ],
)
def test_a_broken_variation_does_not_cut_the_game(variation: str, kept: str) -> None:
    """The main line after it is read from the right board: e5 would be legal in both, Nf3 g6 Bb5 is not. What is left
    out is a comment."""
    text = f'[Result "*"]\n\n1. e4 {variation} 1... e5 (1... c5 2. Nf3) 2. Nf3 g6 3. Bb5 *\n'
    work = next(read_games(source(text)))
    assert work.problem.where is Where.VARIATION
    assert work.problem.text.startswith("in a variation, ")
    moves = " ".join(written_of(work, {}).split("\n\n")[1].split())
    reason = r"psearch could not read on: (?:illegal san: '\w+'|'\w+' is not a move): "
    moves = re.sub(reason, "", moves).replace("{ ", "{").replace(" }", "}")
    assert moves.replace("Qz9 Kxe8", "Qz9} {Kxe8") == f"1. e4 {kept}e5 ( 1... c5 2. Nf3 ) 2. Nf3 g6 3. Bb5 *"
    assert [task.ply for task in positions(work)] == [5, 4, 3, 2, 1, 0]


def test_the_main_line_is_the_worse_problem() -> None:
    work = next(read_games(source('[Result "*"]\n\n1. e4 (1. d4 Qxd4) 1... e5 2. Kxe8 (2. Nf3) Nc6 *\n')))
    assert (work.problem.where, work.game.end().ply()) == (Where.MAIN_LINE, 2)


def test_a_result_in_a_variation_is_no_error() -> None:
    work = next(read_games(source('[Result "*"]\n\n1. e4 (1. d4 d5 1-0) 1... e5 *\n')))
    assert work.problem is None
    assert work.game.end().ply() == 2


def test_an_unreadable_game_stays_as_it_is() -> None:
    written = written_of(list(read_games(source(BROKEN)))[1], {})
    assert "{" not in written
    assert "1. e4 e5 *" in written


def test_stalemate_is_level() -> None:
    work = list(read_games(source(BROKEN)))[4]
    mate = compared("f5c8", cp=None, mate=1, played=0)
    written = written_of(work, {0: replace(answer(chess.Board(), "f5c8", cp=None, mate=1), compared=mate)})
    assert "1. Qf7 $4\n{ (#1 → 0.00) Blunder: misses mate in 1. Qc8# was best. [%eval 0.00] }" in written
    assert "1. Qc8#" in written


def test_positions_come_from_the_last_to_the_first_with_their_history() -> None:
    found = list(positions(next(read_games(source(SHORT_GAME)))))
    assert [task.ply for task in found] == [6, 5, 4, 3, 2, 1, 0]
    assert [len(task.board.move_stack) for task in found] == [6, 5, 4, 3, 2, 1, 0]


def test_positions_know_what_followed() -> None:
    """A few moves, none after a null move: that cannot be searched."""
    found = {
        place.ply: [move.uci() for move in place.line] for place in positions(next(read_games(source(SHORT_GAME))))
    }
    assert found[0] == ["e2e4", "e7e5", "f1c4", "b8c6"]
    assert found[6] == ["h5f7"]
    found = {place.ply: [move.uci() for move in place.line] for place in positions(list(read_games(source(BROKEN)))[3])}
    assert (found[0], found[1], found[4]) == (["e2e4"], [], [])


def test_a_long_game_takes_memory_for_its_moves_and_not_for_their_squares() -> None:
    """The history of each position is that of a search, not the whole game."""
    text = " ".join(f"{2 * number + 1}. Nf3 Nf6 {2 * number + 2}. Ng1 Ng8" for number in range(60))
    work = next(read_games(source(text)))
    assert count_positions(work) == 241
    tracemalloc.start()
    try:
        lengths = [len(task.board.move_stack) for task in positions(work)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lengths == [min(ply, MAX_HISTORY) for ply in range(240, -1, -1)]
    assert peak < 300_000


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("x.epd", "nonsense", Kind.SUITE),
        ("x.fen", "nonsense", Kind.SUITE),
        ("X.PGN", f"{START} bm e4;", Kind.GAMES),
        ("-", f"# suite\n\n{START} bm e4;", Kind.SUITE),
        ("-", SHORT_GAME, Kind.GAMES),
        ("-", "; comment\n1. e4 *", Kind.GAMES),
        ("games.txt", "1. e4 e5 *", Kind.GAMES),
        ("-", "startpos", Kind.SUITE),
        ("-", "# mine\nstartpos; bm e4;", Kind.SUITE),
        ("-", "", Kind.SUITE),
        ("x.jsonl", "nonsense", Kind.LINES),
        ("-", '\n{"fen": "startpos"}\n', Kind.LINES),
        ("-", "{a comment}\n1. e4 *", Kind.GAMES),
        ("-", '{ "a quoted" comment }\n1. e4 *', Kind.GAMES),
        ("-", "// mine\nStartpos", Kind.SUITE),
        ("-", f"position fen {START}", Kind.SUITE),
        ("-", " FEN: startpos", Kind.SUITE),
    ],
)
def test_kind_of_input(name: str, text: str, kind: Kind) -> None:
    assert file_kind(name, text.splitlines(keepends=True)) is kind


def test_encodings(tmp_path: Path) -> None:
    file = tmp_path / "x.pgn"
    for data, text in ((b"\xef\xbb\xbfM\xc3\xbcller", "Müller"), (b"M\xfcller", "Müller")):
        file.write_bytes(data)
        assert "".join(line.text for line in read_source(str(file)).lines()) == text
    file.write_bytes(b"a\0b")
    with pytest.raises(PsearchError, match="is not a text file"):
        read_source(str(file))


# -- the journal -----------------------------------------------------------------------------------------------------


def noted(note: object) -> Answer:
    return replace(answer(chess.Board(), "e2e4"), notes=(str(note),))


def test_a_journal_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with AnalysisJournal(path, ABOUT) as journal:
        journal.add("a", noted(1))
        journal.add("b", noted("ü" * 3_000_000))
    with AnalysisJournal(path, ABOUT) as journal:
        assert len(journal) == 2
        assert journal.get("a") == noted(1)
        assert journal.get("b") == noted("ü" * 3_000_000)
        assert "c" not in journal
        journal.add("c", noted(3))
    with AnalysisJournal(path, ABOUT) as journal:
        assert journal.get("c") == noted(3)
        journal.remove()
    assert not path.exists()


@pytest.mark.parametrize("different", [{"input": "xyz", "depth": 7}, {"input": "abc", "depth": 8}, {"input": "abc"}])
def test_a_journal_of_another_analysis_is_left_alone(tmp_path: Path, different: dict[str, Any]) -> None:
    path = tmp_path / "j"
    with AnalysisJournal(path, different) as journal:
        journal.add("a", noted("a"))
    before = path.read_bytes()
    with pytest.raises(PsearchError, match=r"another analysis \(different: (input|depth)\)"):
        AnalysisJournal(path, ABOUT)
    assert path.read_bytes() == before


def test_a_journal_without_a_position_is_in_nobodys_way(tmp_path: Path) -> None:
    """A run that could not begin leaves none, one that was killed before its first position leaves an empty one."""
    path = tmp_path / "j"
    with AnalysisJournal(path, {"input": "xyz"}) as journal:
        header = path.read_bytes()
    assert not path.exists()
    path.write_bytes(header)
    with AnalysisJournal(path, ABOUT) as journal:
        journal.add("a", noted("a"))
    with AnalysisJournal(path, ABOUT) as journal:
        assert len(journal) == 1


@pytest.mark.parametrize(("place", "content"), [(1, b"garbage\n"), (0, b'{"journal": "x"}\n')])
def test_a_line_of_another_kind_is_named(tmp_path: Path, place: int, content: bytes) -> None:
    path = tmp_path / "j"
    with AnalysisJournal(path, ABOUT) as journal:
        journal.add("a", noted("a"))
        journal.add("b", noted("b"))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[place] = content
    path.write_bytes(b"".join(lines))
    with pytest.raises(PsearchError, match=f"line {place + 1}: not a journal"):
        AnalysisJournal(path, ABOUT)
    assert path.read_bytes() == b"".join(lines)


def test_a_journal_is_no_link_and_no_fifo(tmp_path: Path) -> None:
    """Its name is made of another: nobody meant what somebody put there."""
    (tmp_path / "precious").write_text("")
    (tmp_path / "j").symlink_to(tmp_path / "precious")
    with pytest.raises(PsearchError, match="cannot write the journal"):
        AnalysisJournal(tmp_path / "j", ABOUT)
    assert (tmp_path / "precious").read_text() == ""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(PsearchError, match="cannot write the journal"):
        AnalysisJournal(tmp_path / "fifo", ABOUT)


def test_a_journal_cut_by_another_program_is_told(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with AnalysisJournal(path, ABOUT) as journal:
        journal.add("a", noted(1))
        os.truncate(path, 0)
        with pytest.raises(PsearchError, match="was changed by another program"):
            journal.get("a")


def written(path: Path, *answers: dict[str, Any]) -> bytes:
    with AnalysisJournal(path, ABOUT) as journal:
        journal.add("first", noted(0))
    lines = "".join(json.dumps({"key": f"{place}", "answer": one}) + "\n" for place, one in enumerate(answers))
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + lines.encode())
    return path.read_bytes()


CHANGES: list[dict[str, Any]] = [
    {"bestmove": 5},
    {"score": {"cp": 10**400}},
    {"score": {"cp": "20"}},
    {"score": {"cp": 20, "bound": "about"}},
    {"score": {}},
    {"depth": True},
    {"time": 1e999},
    {"time": -1},
    {"pv": "e2e4"},
    {"pv": [1]},
    {"exact": {"mate": 1.5}},
    {"compared": {"depth": 3}},
    {"compared": {**compared("d2d4", cp=3, played=2).as_json(), "depths": 4}},
    {"choices": []},
    {"choices": [{"move": "e2e4"}]},
    {"threads": None},
    {"notes": "x"},
    {"more": 1},
]


@pytest.mark.parametrize("change", CHANGES)
def test_an_answer_of_other_types_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    path, good = tmp_path / "j", noted(1).as_record()
    before = written(path, good, {**good, **change})
    with pytest.raises(PsearchError, match="line 3: not a journal"):
        AnalysisJournal(path, ABOUT)
    assert path.read_bytes() == before


def test_an_answer_of_another_position_is_none() -> None:
    board = chess.Board()
    good = replace(
        answer(board, "e2e4", "e7e5"),
        choices=[Choice("d2d4", 0.0, 1, 1), Choice("e2e4", 0.5, 7, 400, -3)],
        compared=compared("d2d4", "d7d5", cp=3, played=2),
    )
    good.check(board)
    for bad in (
        replace(good, best="e2e5"),
        replace(good, best=None),
        replace(good, lines=[replace(good.line, pv=["e2e4", "e2e4"])]),
        replace(good, choices=[Choice("x", 0.0, 1, 1)]),
        replace(good, compared=compared("e2e5", cp=3, played=2)),
        replace(good, compared=compared("d2d4", "d2d4", cp=3, played=2)),
    ):
        with pytest.raises(ValueError):
            bad.check(board)
    mated = chess.Board("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1")
    Answer(None, [Line(score_of(None, 0), "exact", 0, 0, [])], 0, 0.0, 0, 0, []).check(mated)


# -- the result ------------------------------------------------------------------------------------------------------


def test_a_result_appears_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("old")
    file.chmod(0o600)
    with Output(place_of(str(file))) as output:
        output.write("new")
        assert file.read_text() == "old"
        output.commit()
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    with Output(place_of(str(file))) as output:
        output.write("unfinished")
    assert file.read_text() == "new"
    assert os.listdir(tmp_path) == ["out"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with Output(place_of(str(tmp_path / "link"))) as output:
        output.write("x")
        output.commit()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "x"


def test_a_terminal_gets_no_escapes_and_a_file_gets_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for on_terminal in (True, False):
        monkeypatch.setattr(output_module, "is_terminal", lambda stream, answer=on_terminal: answer)
        with Output(None) as output:
            output.write(f'[Event "{ESCAPES}"]\n')
        assert (ESCAPES in capsys.readouterr().out) is not on_terminal


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    for file in (str(tmp_path), "/dev/null"):
        with pytest.raises(PsearchError, match="not a regular file"):
            place_of(file)
    with pytest.raises(PsearchError, match="No such file"):
        Output(place_of(str(tmp_path / "nowhere" / "out")))
    assert place_of(None) is None
    assert place_of("-") is None


# -- the searches ----------------------------------------------------------------------------------------------------


class StandInPool:
    """Two workers that answer each batch when they are waited for, the last that was sent first."""

    threads = 1

    def __init__(self) -> None:
        self.searched: list[str] = []
        self.stops_after: int | None = None
        self.poison = ""
        self._events: list[Event] = [ProcessJoined(0, "", "a"), ProcessJoined(1, "", "b")]
        self._batches: list[tuple[int, Batch]] = []

    def send(self, worker: int, batch: Batch) -> None:
        self._batches.append((worker, batch))

    def assist(self, worker: int, threads: int) -> None:
        pass

    def wait(self, timeout_s: float, awaited: int | None = None) -> list[Event]:
        if not self._events and self._batches:
            worker, batch = self._batches.pop()
            self._events = [Done(worker, [self._answer(*entry) for part in batch for entry in part.tasks])]
        events, self._events = self._events, []
        return events

    def _answer(self, number: int, task: Task) -> Outcome:
        self.searched.append(str(task.id))
        if task.id == self.poison:
            return Outcome(number, task.id, None, "it was lost")
        board = task.board()
        words = [board.uci(move) for move in board.legal_moves]
        line = Line(score_of(30), "exact", 3, 3, [words[-1]])
        choices = [Choice(words[0], 0.1, 1, 10), Choice(words[-1], 0.3, 3, 30)]
        return Outcome(number, task.id, Answer(words[-1], [line], 31, 0.31, 0, 0, choices))

    @property
    def is_stopped(self) -> bool:
        return self.stops_after is not None and len(self.searched) >= self.stops_after

    def close(self) -> None:
        pass


@pytest.fixture
def pool() -> StandInPool:
    return StandInPool()


def searched(key: str) -> Task:
    return Task.of_board(key, chess.Board(), Limits(depth=3))


def answered(
    pool: StandInPool, names: str, journal: AnalysisJournal | None = None, told: list[bool] | None = None
) -> list[tuple[str, dict[str, Answer]]]:
    """Works named by a letter, with a position each; a capital letter has two, a dot none."""
    works = [
        Work(name, [] if name == "." else [searched(f"{name}{number}") for number in range(1 + name.isupper())])
        for name in names
    ]
    on_answer = told.append if told is not None else lambda searched: None
    analyser = Analyser(pool, lambda: pool.is_stopped, journal, on_answer)
    return [(done.item, done.answers) for done in analyser.answered(works)]


def test_an_answer_tells_when_the_move_changed(pool: StandInPool) -> None:
    ((_, found),) = answered(pool, "a")
    words = [move.uci() for move in chess.Board().legal_moves]
    answer = found["a0"]
    assert [(choice.move, choice.depth) for choice in answer.choices] == [(words[0], 1), (words[-1], 3)]
    assert (answer.best, answer.line.score, answer.nodes) == (words[-1], chess.engine.Cp(30), 31)


def test_answers_come_in_the_order_of_the_input(pool: StandInPool) -> None:
    names = "a.bCd..Ef."
    found = answered(pool, names)
    assert "".join(name for name, _ in found) == names
    assert [sorted(answers) for _, answers in found[3:5]] == [["C0", "C1"], ["d0"]]
    assert pool.searched != sorted(pool.searched)


def test_what_is_in_the_journal_is_not_searched(pool: StandInPool, tmp_path: Path) -> None:
    with AnalysisJournal(tmp_path / "j", ABOUT) as journal:
        first = answered(pool, "acE", journal)
    with AnalysisJournal(tmp_path / "j", ABOUT) as journal:
        pool.searched.clear()
        assert answered(StandInPool(), "acE", journal) == first
        again = StandInPool()
        told: list[bool] = []
        found = answered(again, "abcdE.", journal, told)
        assert sorted(again.searched) == ["b0", "d0"]
        assert [name for name, _ in found] == list("abcdE.")
        assert all(len(answers) == {"E": 2, ".": 0}.get(name, 1) for name, answers in found)
        assert sorted(told) == [False] * 4 + [True] * 2


def test_what_was_begun_is_searched_again_from_its_start_where_figures_are_to_be_the_same(tmp_path: Path) -> None:
    """The table that the first positions leave makes the others what they are."""
    for interrupted, wanted in (("E0", ["E0", "E1"]), ("E1", ["E0", "E1"]), ("E0 E1", []), ("", ["E0", "E1"])):
        path = tmp_path / (interrupted or "none")
        with AnalysisJournal(path, ABOUT) as journal:
            answered(StandInPool(), "aE", journal)
        head, *lines = path.read_text().splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["key"] in ["a0", *interrupted.split()]]
        path.write_text("".join([head, *kept]))
        with AnalysisJournal(path, ABOUT) as journal:
            pool, told = StandInPool(), []
            analyser = Analyser(pool, lambda: False, journal, told.append, is_exact=True)
            works = [Work("a", [searched("a0")]), Work("E", [searched("E0"), searched("E1")])]
            found = list(analyser.answered(works))
            assert sorted(pool.searched) == wanted
            assert [sorted(done.answers) for done in found] == [["a0"], ["E0", "E1"]]
            assert sorted(told) == [False] * (3 - len(wanted)) + [True] * len(wanted)
            assert len(journal) == 3


def test_what_is_finished_when_a_signal_comes_is_kept(pool: StandInPool, tmp_path: Path) -> None:
    pool.stops_after = 3
    with AnalysisJournal(tmp_path / "j", ABOUT) as journal:
        with pytest.raises(Stopped):
            answered(pool, "abcdefgh", journal)
        assert 3 <= len(journal) == len(pool.searched) < 8
        assert all(key in journal for key in pool.searched)
        with pytest.raises(Stopped):
            answered(pool, "a", journal)


def test_a_position_without_an_answer_has_its_problem_and_is_tried_again(pool: StandInPool, tmp_path: Path) -> None:
    pool.poison = "b0"
    with AnalysisJournal(tmp_path / "j", ABOUT) as journal:
        analyser = Analyser(pool, lambda: False, journal)
        works = [Work(name, [searched(f"{name}0")]) for name in "abc"]
        assert [done.problems for done in list(analyser.answered(works))] == [{}, {"b0": "it was lost"}, {}]
        assert "b0" not in journal


def older(depth: int) -> Answer:
    found = answer(chess.Board(), "a2a3")
    return replace(found, lines=[replace(found.line, depth=depth)])


def test_an_older_answer_that_is_deep_enough_is_not_searched_again(pool: StandInPool) -> None:
    """The limit is depth 3."""
    told: list[bool] = []
    analyser = Analyser(pool, lambda: False, on_answer=told.append)
    works = [
        Work(name, [searched(f"{name}0"), searched(f"{name}1")], {f"{name}0": older(depth)})
        for name, depth in (("a", 3), ("b", 9), ("c", 2))
    ]
    found = list(analyser.answered(works))
    assert sorted(pool.searched) == ["a1", "b1", "c0", "c1"]
    assert [done.answers[f"{done.item}0"].best for done in found] == ["a2a3", "a2a3", found[2].answers["c1"].best]
    assert [done.from_older for done in found] == [1, 1, 0]
    assert sorted(told) == [False] * 2 + [True] * 4


def test_the_deeper_answer_is_kept(pool: StandInPool, tmp_path: Path) -> None:
    """The limit of nodes has everything searched, to depth 3: the older answer is kept where it is deeper or a search
    failed."""
    pool.poison = "d0"

    def works() -> list[Work[str]]:
        tasks = {name: Task.of_board(f"{name}0", chess.Board(), Limits(nodes=5)) for name in "abcd"}
        depths = {"a": 2, "b": 3, "c": 4, "d": 1}
        return [Work(name, [tasks[name]], {f"{name}0": older(depths[name])}) for name in "abcd"]

    with AnalysisJournal(tmp_path / "j", ABOUT) as journal:
        found = list(Analyser(pool, lambda: False, journal).answered(works()))
        assert sorted(pool.searched) == ["a0", "b0", "c0", "d0"]
        assert [done.answers[f"{done.item}0"].line.depth for done in found] == [3, 3, 4, 1]
        assert [(done.from_older, done.problems) for done in found] == [(0, {}), (0, {}), (1, {}), (1, {})]
        assert "c0" in journal  # what was searched, for a run without older answers
        pool = StandInPool()
        pool.poison = "d0"
        again = list(Analyser(pool, lambda: False, journal).answered(works()))
        assert pool.searched == ["d0"]
        assert [done.answers for done in again] == [done.answers for done in found]


def test_what_is_known_is_given_out_before_more_is_read(pool: StandInPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a long search only a limited number of known answers is kept in memory."""
    monkeypatch.setattr(analyser_module, "_MOST_HELD", 10)
    read: list[int] = []

    def works() -> Iterator[Work[int]]:
        for number in range(200):
            read.append(number)
            key = f"{number}"
            yield Work(number, [searched(key)], {} if number == 100 else {key: older(5)})

    class Waiting(StandInPool):
        waits = 0

        def wait(self, timeout_s: float, awaited: int | None = None) -> list[Event]:
            if self._batches and self.waits < 20:
                self.waits += 1
                return []
            if self._batches:
                assert len(read) <= 112
            return super().wait(timeout_s, awaited)

    slow = Waiting()
    given = 0
    for done in Analyser(slow, lambda: False).answered(works()):
        assert done.item == given
        given += 1
        if given <= 100:
            assert len(read) == given
    assert given == 200
    assert slow.searched == ["100"]


def test_a_long_journal_is_read_without_a_pool_and_not_into_the_memory(tmp_path: Path) -> None:
    """The first answers are given out as they are read."""
    with AnalysisJournal(tmp_path / "j", ABOUT) as journal:
        answered(StandInPool(), "abcdef", journal)
        read: list[str] = []

        def works() -> Iterator[Work[str]]:
            for name in "abcdef":
                read.append(name)
                yield Work(name, [searched(f"{name}0")])

        assert next(Analyser(StandInPool(), lambda: False, journal).answered(works())).item == "a"
        assert read == ["a"]


LICHESS = "1. f3 $6 {(0.21 → -0.44) Inaccuracy. Nf3 was best. [%eval -0.44] my words} 1... e5 $1 *\n"


@pytest.mark.parametrize("fresh", [False, True])
def test_marks_of_lichess_stay_or_are_replaced(fresh: bool) -> None:
    board = chess.Board()
    answers = {
        0: replace(answer(board, "e2e4", cp=30), compared=compared("e2e4", "e7e5", cp=30, played=-400)),
        1: answer(board, "e7e5", cp=400),
        2: answer(board, "e2e4", cp=0),
    }
    work = next(read_games(source(LICHESS)))
    game = chess.pgn.read_game(io.StringIO(judge_game(work, answers).to_pgn(fresh, shows_wdl=True)))
    first, second = game.mainline()
    if fresh:
        assert (first.nags, second.nags) == ({chess.pgn.NAG_BLUNDER}, set())
        words = "[%eval -4.00,9] my words (0.30 → -4.00) Blunder. e4 was best."
    else:
        assert (first.nags, second.nags) == ({chess.pgn.NAG_DUBIOUS_MOVE}, {chess.pgn.NAG_GOOD_MOVE})
        words = "(0.21 → -0.44) Inaccuracy. Nf3 was best. [%eval -4.00,9] my words"
    assert re.sub(r" \[%wdl \d+,\d+,\d+\]", "", first.comment) == words
    assert "[%wdl " in first.comment


def test_what_a_person_wrote_of_a_mistake_stays() -> None:
    """Words of an earlier analysis have its scores or its best move."""
    words = "Blunder: loses to a trap. I knew it. Mistake. So was f4. No Inaccuracy. Best by test."
    board = chess.Board()
    answers = {0: replace(answer(board, "e2e4", cp=30), compared=compared("e2e4", "e7e5", cp=30, played=-400))}
    answers[1] = answer(board, "e7e5", cp=400)
    for fresh in (False, True):
        work = next(read_games(source(f"1. f3 {{{words}}} *")))
        game = chess.pgn.read_game(io.StringIO(judge_game(work, answers).to_pgn(fresh)))
        assert game.next().comment.startswith(f"{words} (0.30 → -4.00) Blunder. e4 was best.")


def test_what_a_comparison_found_is_the_score_of_the_position_before_it() -> None:
    """The move before is judged by it, too. A comparison of a much smaller depth does not count."""
    board = chess.Board()
    found = compared("e2e4", "e7e5", cp=491, played=0)
    first = replace(answer(board, "d2d4", cp=60), compared=found)
    assert first.estimate == (chess.engine.Cp(491), "exact")
    assert replace(first, compared=replace(found, depth=first.line.depth - 2)).estimate[0] == chess.engine.Cp(60)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_ending_of_the_output_says_what_is_written(ending: str, tmp_path: Path) -> None:
    """Rows of games, of a suite and of JSON lines, with numbers as numbers."""
    pandas = pytest.importorskip("pandas")
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "a.pgn").write_text("1. f3 e5 2. g4 Qh4# 0-1\n\n1. e4 *\n")
    (tmp_path / "a.epd").write_text('6k1/5ppp/8/8/8/8/8/4R1K1 w - - bm Re8; id "x";\n8/8/8/8/8/8/8/8 w - -\n')
    (tmp_path / "a.jsonl").write_text('{"id": 7}\n{"fen": "nothing"}\n')
    found = {}
    for name in ("a.pgn", "a.epd", "a.jsonl"):
        out = tmp_path / f"{name}.{ending}"
        command = ["analyse", "--nodes", "500", "--threads", "1", "--multipv", "2", "--out", str(out)]
        main([*command, str(tmp_path / name)])
        found[name] = pandas.read_parquet(out) if ending == "parquet" else pandas.read_csv(out)
    games, suite, lines = found.values()
    assert list(games["san"]) == ["f3", "e5", "g4", "Qh4#", "e4"]
    assert list(games["game"]) == [1, 1, 1, 1, 2]
    assert games["mark"][2] == "??" and games["mate_white"][2] == -1 and games["pv_2"].notna().all()
    assert suite["bestmove"][0] == "e1e8" and suite["result"][0] == "right" and suite["cp_2"][0] < 20_000
    assert str(lines["id"][0]) == "7" and lines["error"].notna().tolist() == [False, True]
    assert lines["cp_white"][0] == lines["cp"][0] and lines["win"][0] + lines["draw"][0] + lines["loss"][0] == 1000


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_escapes_what_utf8_cannot_hold(ending: str, tmp_path: Path) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    name, out = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.epd"), tmp_path / f"out.{ending}"
    Path(name).write_text("6k1/5ppp/8/8/8/8/8/4R1K1 w - - bm Re8;\n")
    assert main(["analyse", "--nodes", "100", "--threads", "1", "--out", str(out), name]) == 0
    assert b"\\udcff.epd" in out.read_bytes()


def test_without_pyarrow_a_parquet_file_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.epd").write_text("6k1/5ppp/8/8/8/8/8/4R1K1 w - - bm Re8;\n")
    before = sorted(tmp_path.iterdir())
    assert main(["analyse", "--nodes", "100", "--out", str(tmp_path / "a.parquet"), str(tmp_path / "a.epd")]) == 2
    assert "needs pyarrow" in capsys.readouterr().err and sorted(tmp_path.iterdir()) == before


def test_a_pgn_holds_games_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.epd").write_text("6k1/5ppp/8/8/8/8/8/4R1K1 w - - bm Re8;\n")
    with pytest.raises(SystemExit):
        main(["analyse", "--out", str(tmp_path / "a.pgn"), str(tmp_path / "a.epd")])
    assert "a .pgn holds games, and " in capsys.readouterr().err
