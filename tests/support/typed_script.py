"""A user's script with all calls of analysis, which type checkers accept (tests/docs/test_recipes_page.py)."""

from __future__ import annotations

import asyncio

import chess
import chess.engine
import chess.pgn

import psearch


def one(board: chess.Board) -> tuple[chess.Move | None, chess.engine.PovScore | None, int]:
    result = psearch.search(board, chess.engine.Limit(depth=3), threads=1, syzygy=None, elo=1500, driver="null")
    row = result.as_row()
    print(row["cp_white"], row["win"], result.wdl)
    return result.bestmove, result.score, result.nodes


def engine(board: chess.Board) -> None:
    with psearch.Engine(threads=1, hash_mb=16) as made:
        info = made.analyse(board, chess.engine.Limit(depth=4))
        lines = made.analyse(board, chess.engine.Limit(depth=4), multipv=2)
        score: chess.engine.PovScore | None = info.get("score")
        pv: list[chess.Move] = info.get("pv", [])
        print(score, pv, [line.get("depth") for line in lines])
        played = made.play(board, chess.engine.Limit(depth=3))
        move: chess.Move | None = played.move
        print(move)
        with made.analysis(board, chess.engine.Limit(depth=4)) as analysis:
            for each in analysis:
                print(each.get("depth"))


async def on_asyncio(board: chess.Board, game: chess.pgn.Game) -> None:
    async with psearch.AsyncEngine(hash_mb=16) as made:
        played = await made.play(board, chess.engine.Limit(depth=3))
        print(played.move)
        info = await made.analyse(board, chess.engine.Limit(depth=3))
        print(info.get("score"))
        with await made.analysis(board, chess.engine.Limit(depth=3)) as analysis:
            async for each in analysis:
                print(each.get("depth"))
    review = await psearch.review_async(game, chess.engine.Limit(nodes=2000))
    print(review.players[chess.WHITE].accuracy)
    async with psearch.review_many_async([game, "1. e4 e5 *"], chess.engine.Limit(nodes=2000)) as reviews:
        async for one_review in reviews:
            print(len(one_review.moves))
    async with psearch.analyse_many_async(["startpos"], chess.engine.Limit(nodes=2000)) as results:
        async for result in results:
            print(result.bestmove)


def many() -> None:
    with psearch.analyse_many(
        ["startpos", "bad"], chess.engine.Limit(nodes=2000), ordered=True, multipv=2, driver="null", elo=1500
    ) as results:
        for result in results:
            error: str | None = result.error
            print(result.id, result.bestmove, result.score, error, result.pv, result.as_row())


def games(game: chess.pgn.Game) -> None:
    review = psearch.review(game, chess.engine.Limit(nodes=2000), marks="psearch")
    for move in review.moves:
        mark: str | None = move.mark
        loss: float | None = move.loss
        wdl: chess.engine.PovWdl | None = move.wdl
        line: tuple[chess.Move, ...] = move.best_line
        print(move.move, mark, loss, move.words, move.before, move.score, wdl, line, move.accuracy, move.is_best)
    with psearch.review_many([game], chess.engine.Limit(nodes=2000)) as reviews:
        rows = [row for each in reviews for row in each.to_rows()]
    print(rows[0], review.to_pgn(fresh_marks=True))


if __name__ == "__main__":
    import io

    parsed = chess.pgn.read_game(io.StringIO("1. f3 e5 2. g4 Qh4# 0-1"))
    assert parsed is not None
    print(one(chess.Board()))
    engine(chess.Board())
    many()
    games(parsed)
    asyncio.run(on_asyncio(chess.Board(), parsed))
