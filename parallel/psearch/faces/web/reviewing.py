"""A game as `psearch analyse` sees it, filled in while one looks: every position searched, the mistakes marked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import chess
import chess.engine
import chess.pgn

from psearch.api.asynchronous import in_thread
from psearch.batch.analysis.games import MARK_NAMES, annotate, judge_game, positions
from psearch.batch.positions.position_pool import PositionPool, WorkerSettings, make_pool, rounds
from psearch.batch.positions.task import Answer, Outcome, Task, TaskList
from psearch.defaults import DEFAULT_DRIVER, JOB_HASH_MB
from psearch.faces.web.context import Context
from psearch.faces.web.game_tree import GameTree, score_facts
from psearch.faces.web.messages import choice_of, number_of, whole_of
from psearch.options import SearchOptions
from psearch.results import Limits, PsearchError
from psearch.text.pgn_text import BoardGame, PgnGame
from psearch.text.source import Source
from psearch.text.wdl import material
from psearch.version import __version__

_JUDGE_EVERY_S = 0.25
"""The game is judged as a whole, some 20 ms of work; no need for it after each position."""
_REST = 10
"""Judging takes at most one part in so many of the time: long games take longer."""
_MOST_TIME_S = 600
_MOST_NODES = 10**12
_MOST_DEPTH = 100
_MOST_PLIES = 1_000


_NONE: dict[str, Any] = {"running": False, "done": 0, "total": 0, "moves": [], "players": None, "text": ""}
"""What a page shows of a game that was not analysed."""


class Review:
    """The review of the game of one page, if there is one."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._task: asyncio.Task[None] | None = None
        self.facts: dict[str, Any] = _NONE
        """what the page shows of it"""

    @property
    def is_running(self) -> bool:
        """Whether positions are being searched."""
        return self._task is not None and not self._task.done()

    def start(self, payload: Mapping[str, Any]) -> None:
        """Begin. Raises PsearchError."""
        limits = _limits_of(payload)
        if self.is_running:
            raise PsearchError("the game is being analysed already")
        looked_at = _MainLine(self._context.tree)
        tasks = [Task.of_board(str(place.ply), place.board, limits, place.line) for place in positions(looked_at.work)]
        if not tasks:
            raise PsearchError("there are no moves to look at: play some, or paste a PGN")
        if len(tasks) > _MOST_PLIES:
            raise PsearchError(f"the game is longer than {_MOST_PLIES:,} plies")
        self._task = self._context.begin("review", self._run(looked_at, tasks))

    def stop(self) -> None:
        """End it; what was found stays."""
        if self._task is not None:
            self._task.cancel()

    def change(self, facts: dict[str, Any]) -> None:
        """End it, as there is another game: nothing of it is that game's. facts: what was shown of that one before, or
        nothing."""
        self.stop()
        facts = {**(facts or _NONE), "running": False}
        if self.facts != facts:
            self.facts = facts
            self._context.show("review.state", self.facts)

    # -- inside --------------------------------------------------------------------------------------------------------

    async def _run(self, line: _MainLine, tasks: list[Task]) -> None:
        """Search all positions, the last one first, and judge the game from time to time."""
        answers: dict[int, Answer] = {}
        shared_engine, loop = self._context.shared_engine, asyncio.get_running_loop()
        next_look = 0.0
        ended, problem = "stopped", ""
        self._tell(
            line, answers, len(tasks), True, "" if shared_engine.has_cores else "waiting for the game of another tab"
        )
        try:
            async with (
                shared_engine.cores("a game is being analysed"),
                contextlib.aclosing(_outcomes(tasks, shared_engine.settings.threads)) as found,
            ):
                async for outcome in found:
                    answer, ply = outcome.answer, int(outcome.id)
                    if answer is None:
                        problem = outcome.error or "no answer"
                        continue
                    answers[ply] = answer
                    turn = line.work.game.turn() if ply % 2 == 0 else not line.work.game.turn()
                    line.tree.keep_score(
                        line.numbers[ply], chess.engine.PovScore(answer.estimate[0], turn), answer.line.depth
                    )
                    began = loop.time()
                    if began >= next_look:
                        self._tell(line, answers, len(tasks), True, "")
                        next_look = began + max(_JUDGE_EVERY_S, _REST * (loop.time() - began))
            ended = problem
        finally:
            if self._context.tree is line.tree and not ended and line.is_still_there:
                annotate(judge_game(line.real, answers), f"psearch {__version__}")
                line.tree.write_scores(line.nodes)
                with contextlib.suppress(PsearchError):  # too many moves by now
                    line.tree.renumber()
                self._context.tell_game()
            if self._context.tree is line.tree:
                self._tell(line, answers, len(tasks), False, ended)

    def _tell(self, line: _MainLine, answers: Mapping[int, Answer], total: int, is_running: bool, text: str) -> None:
        """Show what is known by now."""
        judged = judge_game(line.work, answers)
        moves = []
        board = line.work.game.board()
        for ply, (move, found) in enumerate(zip(line.work.game.mainline_moves(), judged.moves, strict=True), 1):
            facts: dict[str, Any] = {"id": line.numbers[ply], "mark": found.mark or ""}
            if found.mark is not None and found.compared is not None:
                facts["best"] = board.san(board.parse_uci(found.compared.best))
            board.push(move)
            # what was found deeper than now stays
            score = line.tree.score_of(line.nodes[ply])
            if score is None and found.score is not None:
                score = score_facts(found.score, material(board))
            moves.append({**facts, "eval": score})
        self.facts = {
            "running": is_running,
            "done": len(answers),
            "total": total,
            "text": text,
            "moves": moves,
            "first": line.tree.score_of(line.tree.game),
            "players": {
                chess.COLOR_NAMES[color]: {
                    "accuracy": player.accuracy,
                    "loss": player.average_loss,
                    "marks": {name: player.marks.get(mark, 0) for mark, name in MARK_NAMES.items()},
                }
                for color, player in judged.players.items()
            },
        }
        self._context.show("review.state", self.facts)


class _MainLine:
    """The main line of a tree as it was when its analysis began: the user may go on making moves."""

    def __init__(self, tree: GameTree) -> None:
        self.tree = tree
        self.nodes = [tree.game, *tree.game.mainline()]
        self.numbers = [tree.number_of(node) for node in self.nodes]
        """of its nodes, from the root"""
        game = BoardGame(tree.game.board(), tree.game.headers)
        game.add_line(list(tree.game.mainline_moves()))
        self.work = _work(game)

    @property
    def real(self) -> PgnGame:
        """The game of the tree itself, to write into."""
        return _work(self.tree.game)

    @property
    def is_still_there(self) -> bool:
        """Whether the main line of the tree still begins with it."""
        return [self.tree.game, *self.tree.game.mainline()][: len(self.nodes)] == self.nodes


def _work(game: chess.pgn.Game) -> PgnGame:
    return PgnGame(1, game, (), Source.of_text("the game", ""), 0, 0)


def _limits_of(payload: Mapping[str, Any]) -> Limits:
    kind = choice_of(payload, "kind", ("time", "nodes", "depth"))
    if kind == "time":
        return Limits(movetime_ms=1_000 * max(0.01, number_of(payload, "amount", 0, _MOST_TIME_S)))
    if kind == "nodes":
        return Limits(nodes=whole_of(payload, "amount", 1, _MOST_NODES))
    return Limits(depth=whole_of(payload, "amount", 1, _MOST_DEPTH))


async def _outcomes(tasks: list[Task], threads: int) -> AsyncGenerator[Outcome, None]:
    """Yield the outcomes of the positions of a game, by `psearch analyse --jobs 1 --threads N`, as they are found."""
    pool: PositionPool | None = None
    is_stopped = False

    def stop() -> None:
        nonlocal is_stopped
        is_stopped = True

    def begin() -> None:
        nonlocal pool
        pool = make_pool(1, WorkerSettings(threads, JOB_HASH_MB, SearchOptions(driver=DEFAULT_DRIVER)))

    try:
        await in_thread(begin, stop)
        assert pool is not None
        found = rounds(pool, [TaskList(tasks)], is_stopped=lambda: is_stopped)
        while (outcomes := await in_thread(lambda: next(found, None), stop)) is not None:
            for outcome in outcomes:
                yield outcome
    finally:
        if pool is not None:
            pool.close()
