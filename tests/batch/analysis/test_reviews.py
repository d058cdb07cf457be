"""`psearch.review` and `review_many`: what goes in and what comes out, and that the command line finds the same."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chess
import chess.engine
import chess.pgn
import pytest
from chess.engine import Limit

import psearch
from psearch.batch.positions.position_pool import make_pool
from psearch.faces.cli import main as cli

GAME = '[White "Fool"]\n[Black "Mate"]\n[Result "0-1"]\n\n1. f3 {[%clk 0:01:00]} e5 2. g4 Qh4# 0-1\n'
LIMIT = Limit(nodes=1_500)


def parsed(text: str = GAME) -> chess.pgn.Game:
    game = chess.pgn.read_game(io.StringIO(text))
    assert game is not None
    return game


def test_a_game_a_text_and_a_path_have_the_same_review(tmp_path: Path) -> None:
    path = tmp_path / "game.pgn"
    path.write_text(GAME)
    game = parsed()
    before = str(game)
    reviews = [psearch.review(one, LIMIT, reproducible=True) for one in (game, game.end(), GAME, path, str(path))]
    assert str(game) == before
    marks = [[(move.mark, move.words, move.loss) for move in review.moves] for review in reviews]
    assert marks.count(marks[0]) == len(marks)
    assert marks[0][2][0] == "??"
    assert "Blunder: allows mate in 1." in marks[0][2][1]


def test_the_command_line_writes_what_a_review_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "game.pgn"
    path.write_text(GAME)
    assert cli.main(["analyse", "--nodes", "1500", "--threads", "1", "--wdl", str(path)]) == 0
    assert capsys.readouterr().out == psearch.review(path, LIMIT, reproducible=True).to_pgn(shows_wdl=True)


def test_rows_have_what_a_table_wants() -> None:
    rows = psearch.review(GAME, LIMIT, reproducible=True).to_rows()
    assert [row["san"] for row in rows] == ["f3", "e5", "g4", "Qh4#"]
    assert (rows[0]["white"], rows[0]["clock_s"], rows[1]["clock_s"], rows[1]["side"]) == ("Fool", 60, None, "black")
    assert (rows[2]["mate_white"], rows[2]["cp_white"], rows[2]["mark"]) == (-1, None, "??")
    assert (rows[2]["win"], rows[2]["draw"], rows[2]["lose"]) == (0, 0, 1000)
    assert rows[0]["win"] + rows[0]["draw"] + rows[0]["lose"] == 1000
    assert rows[2]["best"] in rows[2]["words"]
    assert all(set(row) == set(rows[0]) for row in rows)
    (first, *_) = psearch.review(GAME, LIMIT, reproducible=True, multipv=2).to_rows()
    assert set(first) - set(rows[0]) == {"cp_2", "mate_2", "pv_2"}
    assert first["pv_2"].split()[0] not in (first["pv"].split()[0], None)


def test_a_move_has_its_chances_and_the_better_line() -> None:
    third = psearch.review(GAME, LIMIT, reproducible=True).moves[2]
    assert (third.move.uci(), third.wdl and tuple(third.wdl.white())) == ("g2g4", (0, 0, 1000))
    assert f"{chess.Board().san(third.best_line[0])} was best." in third.words


def test_many_games_come_in_order_and_may_be_left() -> None:
    texts = [GAME, "1. e4 e5 2. Qh5 Ke7 3. Qxe5# Nc6 1-0", "1. d4 *"]
    with psearch.review_many(iter(texts), LIMIT, workers=2) as reviews:
        found = list(reviews)
    assert [len(review.moves) for review in found] == [4, 5, 1]
    assert found[1].work.problem is not None
    assert "{ psearch could not read on: illegal san: 'Nc6'" in " ".join(found[1].to_pgn().split())
    with psearch.review_many([GAME] * 50, LIMIT, workers=1) as reviews:
        next(reviews)
    assert list(reviews) == []


def test_reviews_on_asyncio() -> None:
    async def both() -> tuple[psearch.GameReview, list[psearch.GameReview]]:
        one = await psearch.review_async(GAME, LIMIT, reproducible=True)
        async with psearch.review_many_async([GAME] * 20, LIMIT, reproducible=True) as reviews:
            found = [await anext(reviews), await anext(reviews)]
        return one, [*found, *[review async for review in reviews]]

    one, found = asyncio.run(both())
    assert [one.to_rows()] * 2 == [other.to_rows() for other in found]


def test_reviews_on_asyncio_never_hold_up_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are started, and games read, in other threads; what was closed first is not started at all."""
    threads: list[int] = []  # a number may be that of a thread that has ended

    def read() -> Iterator[str]:
        threads.append(threading.get_ident())
        yield GAME

    def made(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return make_pool(*arguments)

    monkeypatch.setattr("psearch.batch.analysis.reviews.make_pool", made)

    async def run() -> None:
        async with psearch.review_many_async(read(), LIMIT) as reviews:
            assert [len(review.moves) async for review in reviews] == [4]
        assert (await psearch.review_async(read(), LIMIT)).moves
        assert len(threads) >= 2 and threading.get_ident() not in threads
        threads.clear()
        reviews = psearch.review_many_async(read(), LIMIT)
        await reviews.close()
        assert [review async for review in reviews] == [] and not threads
        with pytest.raises(psearch.PsearchError, match="marks must be"):
            await anext(psearch.review_many_async(GAME, LIMIT, marks="chess.com"))

    asyncio.run(run())


def test_the_rule_of_marks_is_a_choice() -> None:
    found = [psearch.review(GAME, LIMIT, marks=rule, reproducible=True) for rule in ("lichess", "psearch")]
    assert found[0].moves[2].loss != found[1].moves[2].loss
    with pytest.raises(psearch.PsearchError, match="marks must be one of lichess, psearch, not"):
        psearch.review_many(GAME, LIMIT, marks="chess.com")


def test_a_limit_of_mate_would_search_for_ever() -> None:
    with pytest.raises(psearch.PsearchError, match="a limit of a review has no mate: give time, depth or nodes"):
        psearch.review(GAME, Limit(mate=2))


@pytest.mark.parametrize(
    ("games", "problem"),
    [(3, "a game must be a chess.pgn.Game, the text of a PGN or a path, not 3"), ([], "there is no game to review")],
)
def test_what_is_no_game(games: object, problem: str) -> None:
    with pytest.raises(psearch.PsearchError, match=problem):
        psearch.review(games, LIMIT)  # type: ignore[arg-type]  # wrong on purpose


def test_a_game_that_cannot_be_read_stays_as_it_is() -> None:
    text = '[FEN "garbage"]\n\n1. e4 *'
    found = psearch.review(text, LIMIT)
    assert (found.to_rows(), found.moves, found.to_pgn().strip()) == ([], [], text)


def test_a_game_with_a_bad_position_does_not_end_the_others() -> None:
    """python-chess notes the error and goes on."""
    bad = '[Event "b"]\n[FEN "8/8/8 w"]\n[SetUp "1"]\n\n1. e4 *\n\n'
    text = f'[Event "a"]\n\n1. e4 *\n\n{bad}[Event "\udce9"]\n\n1. d4 *\n'
    pgn = io.StringIO(text)
    games = list(iter(lambda: chess.pgn.read_game(pgn), None))
    for given in (games, text):
        found = list(psearch.review_many(given, LIMIT, workers=1))
        assert [len(review.moves) for review in found] == [1, 0, 1]
