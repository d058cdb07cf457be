"""`psearch.review` and `psearch.review_many`: games with marks, better lines and accuracy, as `psearch analyse` finds
them, and their asynchronous twins."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias, Unpack

import chess
import chess.engine
import chess.pgn

from psearch.api.asynchronous import Started, in_thread
from psearch.batch.analysis.analyser import Analyser, Stopped, Work
from psearch.batch.analysis.games import GameReview, judge_game, positions
from psearch.batch.positions.many import WantedPool, limits_of, pool_wanted
from psearch.batch.positions.position_pool import make_pool
from psearch.batch.positions.task import Answer, Task
from psearch.closing import Closing
from psearch.defaults import REVIEW_MOVETIME_MS
from psearch.results import Limits, PsearchError
from psearch.settings import MARK_RULES, SearchKeywords, lists_settings
from psearch.text.openings import name_opening
from psearch.text.pgn_text import PgnGame, read_games
from psearch.text.source import Source, read_source
from psearch.text.values import shown
from psearch.version import __version__

One: TypeAlias = "chess.pgn.GameNode | PgnGame | str | os.PathLike[str]"
Games: TypeAlias = "One | Iterable[One]"
"""A game, the text of a PGN, the path of a file, or any number of these."""
_ENDINGS = (".pgn", ".pgn.gz", ".pgn.bz2", ".pgn.zst")


def game_tasks(work: PgnGame, prefix: str, limits: Limits, multipv: int = 1) -> Iterator[Task]:
    """Yield the tasks of a game's positions, whose ids are the prefix and the ply."""
    for place in positions(work):
        yield Task.of_board(f"{prefix}{place.ply}", place.board, limits, place.line, multipv)


def annotator(limits: Limits) -> str:
    """Return the name of the annotator, with the limits of a position."""
    words = [
        f"depth {limits.depth}" if limits.depth is not None else "",
        f"{limits.movetime_ms / 1000:g} s a position" if limits.movetime_ms is not None else "",
        f"{limits.nodes:,} nodes a position" if limits.nodes is not None else "",
    ]
    return f"psearch {__version__}, {' or '.join(filter(None, words))}"


def reviewed(done: Work[Any], work: PgnGame, prefix: str, rule: str, limits: Limits) -> GameReview:
    """Return the review of a game from the answers for its positions."""

    def by_ply(found: dict[str, Any]) -> dict[int, Any]:
        return {int(key.removeprefix(prefix)): value for key, value in found.items()}

    answers: dict[int, Answer] = by_ply(done.answers)
    if work.readable:
        name_opening(work.game)
    return judge_game(work, answers, rule, by_ply(done.problems), annotator(limits))


def _read(games: Games) -> Iterator[PgnGame]:
    """Yield the games of any argument of `review_many`. Raises PsearchError."""
    if isinstance(games, chess.pgn.GameNode):
        # a copy, by way of its text: the caller's tree stays as it is
        root = games.game()
        try:
            games = str(root)
        except ValueError:  # a FEN that python-chess refuses: the reader says what is wrong with it
            games = "".join(f'[{name} "{value}"]\n' for name, value in root.headers.items()) + "\n*\n"
    if isinstance(games, PgnGame):
        yield games
    elif isinstance(games, os.PathLike) or (isinstance(games, str) and _is_path(games)):
        yield from read_games(read_source(os.fspath(games)))
    elif isinstance(games, str):
        text = games.encode(errors="replace").decode()  # lone surrogates of a file that was not UTF-8
        yield from read_games(Source.of_text("the game", text))
    elif isinstance(games, Iterable):
        for game in games:
            yield from _read(game)
    else:
        raise PsearchError(f"a game must be a chess.pgn.Game, the text of a PGN or a path, not {shown(games)}")


def _is_path(text: str) -> bool:
    return "\n" not in text and (text.lower().endswith(_ENDINGS) or os.path.isfile(text))


class Reviews(Closing, Iterator[GameReview]):
    """An iterator over the results of `psearch.review_many`, in the order of the games; a context manager."""

    def __init__(self, games: Games, wanted: WantedPool, rule: str) -> None:
        self._stop = threading.Event()
        workers = wanted.workers
        if isinstance(games, list) and all(isinstance(game, (chess.pgn.GameNode, PgnGame)) for game in games):
            workers = max(1, min(workers, len(games)))  # a path or a text may hold many games
        self._pool = make_pool(workers, wanted.settings, wanted.cluster)
        self._found = self._results(_read(games), wanted, rule)

    def _results(self, games: Iterable[PgnGame], wanted: WantedPool, rule: str) -> Iterator[GameReview]:
        limits = wanted.limits
        works = (Work((n, game), game_tasks(game, f"{n} ", limits, wanted.multipv)) for n, game in enumerate(games))
        analyser = Analyser(self._pool, self._stop.is_set, assist=wanted.assist)
        try:
            for done in analyser.answered(works):
                number, game = done.item
                yield reviewed(done, game, f"{number} ", rule, limits)
        except Stopped:
            return
        finally:
            self._pool.close()

    def __del__(self) -> None:
        if hasattr(self, "_pool"):
            self._pool.close()

    def __next__(self) -> GameReview:
        return next(self._found)

    def stop(self) -> None:
        """Ask for an early end: no more results follow. May be called from any thread."""
        self._stop.set()

    def close(self) -> None:
        """End all searches and workers; no more results follow. May be called twice, from the thread that iterates."""
        self.stop()
        self._found = iter(())
        self._pool.close()


@lists_settings
def review_many(
    games: Games,
    limit: chess.engine.Limit | None = None,
    *,
    marks: str = "lichess",
    multipv: int = 1,
    workers: int | None = None,
    threads_per_position: int = 1,
    reproducible: bool = False,
    hash_mb: int | None = None,
    cluster: str | None = None,
    **settings: Unpack[SearchKeywords],
) -> Reviews:
    """Review any number of games, several at a time, and return an iterator with a `GameReview` for each, in order.

    - games: a `chess.pgn.Game`, the text of a PGN, the path of a file (also `.gz`, `.bz2`, `.zst`), or any number of
      these; read on demand.
    - limit: limit of each position: time, depth or nodes; None: 1 second.
    - marks: rule of marks and accuracy, `lichess` or `psearch` (docs/guides/analyse.md).
    - multipv: number of best lines of each position.
    - workers, threads_per_position, reproducible, hash_mb, cluster: those of `psearch.analyse_many`. With
      `reproducible` and a limit of nodes or depth every review is the same in each run.

    The settings of all searches are keywords, too:

    SETTINGS

    Raises PsearchError for a bad argument, an unreadable file and an object that is no game. An illegal move ends the
    review of its game, which keeps the rest as a comment (`GameReview.work.problem`).

    >>> import chess.engine, psearch
    >>> with psearch.review_many("1. f3 e5 2. g4 Qh4# 0-1", chess.engine.Limit(depth=6)) as reviews:
    ...     [[move.mark for move in review.moves] for review in reviews]
    [[None, None, '??', None]]
    """
    if marks not in MARK_RULES:
        raise PsearchError(f"marks must be one of {', '.join(MARK_RULES)}, not {shown(marks)}")
    limits = limits_of(limit or chess.engine.Limit(time=REVIEW_MOVETIME_MS / 1000))
    if limits.mate is not None:
        raise PsearchError("a limit of a review has no mate: give time, depth or nodes")
    wanted = pool_wanted(limits, workers, threads_per_position, multipv, reproducible, hash_mb, cluster, settings)
    return Reviews(games, wanted, marks)


def review(game: Games, limit: chess.engine.Limit | None = None, **how: Any) -> GameReview:
    """Review one game, with the arguments of `psearch.review_many`, and return its `GameReview`. Its positions are
    searched one after the other, by default each by all cores. Raises PsearchError if there is no game.

    >>> import chess.engine, psearch
    >>> review = psearch.review("1. f3 e5 2. g4 Qh4# 0-1", chess.engine.Limit(depth=6))
    >>> review.moves[2].words.partition(")")[2]
    ' Blunder: allows mate in 1. Nc3 was best.'
    """
    with review_many(_first(game), limit, **how) as reviews:
        return next(reviews)


def _first(game: Games) -> list[PgnGame]:
    """Return a list with the first game. Raises PsearchError if there is none."""
    found = list(itertools.islice(_read(game), 1))
    if not found:
        raise PsearchError("there is no game to review")
    return found


class AsyncReviews(Started[Reviews], AsyncIterator[GameReview]):
    """The results of `psearch.review_many_async`, in the order of the games: an asynchronous iterator and context
    manager.

    An await that is cancelled ends all searches.
    """

    async def __anext__(self) -> GameReview:
        reviews = await self._start()
        found = None if reviews is None else await in_thread(lambda: next(reviews, None), self._stop)
        if found is None:
            raise StopAsyncIteration
        return found

    def _stop(self) -> None:
        super()._stop()
        if self._results is not None:
            self._results.stop()


def review_many_async(games: Games, limit: chess.engine.Limit | None = None, **how: Any) -> AsyncReviews:
    """Review any number of games on asyncio, with the arguments of `psearch.review_many`, and return an asynchronous
    iterator and context manager. The loop is never blocked: other threads start the workers and read the games."""
    return AsyncReviews(partial(review_many, games, limit, **how))


async def review_async(game: Games, limit: chess.engine.Limit | None = None, **how: Any) -> GameReview:
    """Review one game on asyncio, with the arguments of `psearch.review`."""
    async with AsyncReviews(lambda: review_many(_first(game), limit, **how)) as reviews:
        return await anext(reviews)
