"""Analyses a whole game like `psearch analyse`, and shows scores and mistakes as they are found."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import chess
import chess.engine
import chess.pgn

from psearch.api.asynchronous import in_thread
from psearch.batch.analysis.games import MARK_NAMES, count_positions, judge_game, positions
from psearch.batch.positions.position_pool import PositionPool, WorkerSettings, make_pool, rounds
from psearch.batch.positions.task import Answer, Outcome, Task
from psearch.defaults import DEFAULT_DRIVER, JOB_HASH_MB
from psearch.faces.web.connection import Connection
from psearch.faces.web.game_board import GameBoard
from psearch.faces.web.game_tree import GameTree, score_facts
from psearch.faces.web.messages import Payload, choice_of, number_of, whole_of
from psearch.faces.web.playing import Match
from psearch.options import SearchOptions
from psearch.results import Limits, PsearchError
from psearch.text.pgn_text import BoardGame, PgnGame
from psearch.text.source import Source

_JUDGE_EVERY_S = 0.25
"""Least time between two judgements of the whole game, each of about 20 ms, in seconds."""
_REST = 10
"""Pause after a judgement, as a multiple of the time it took, since long games take longer."""
_MOST_TIME_S = 600
_MOST_NODES = 10**12
_MOST_DEPTH = 100
_MOST_PLIES = 1_000
_NONE: dict[str, Any] = {"running": False, "done": 0, "total": 0, "moves": [], "players": None, "text": ""}
"""State of a game that was not analysed."""


class Review:
    """Analyses the game of one page."""

    def __init__(self, page: Connection, board: GameBoard, match: Match) -> None:
        self._page, self._board, self._match = page, board, match
        self._task: asyncio.Task[None] | None = None
        board.review = _NONE
        page.handlers |= {"review.start": self._start, "review.stop": lambda payload: self.stop()}

    def _start(self, payload: Payload) -> None:
        """Analyse the game with a limit for each position: `kind` (time, nodes, depth) and `amount`."""
        self._match.check_may_change()
        limits = _limits_of(payload)
        if self._task is not None and not self._task.done():
            raise PsearchError("the game is already being analysed")
        looked_at = _MainLine(self._board.tree)
        if count_positions(looked_at.work) > _MOST_PLIES:
            raise PsearchError(f"the game is longer than {_MOST_PLIES:,} plies")
        tasks = [Task.of_board(str(place.ply), place.board, limits, place.line) for place in positions(looked_at.work)]
        if not tasks:
            raise PsearchError("there are no moves to analyse: make some, or paste a PGN")
        self._task = self._page.begin("review", self._run(looked_at, tasks))

    def stop(self) -> None:
        """Stop the analysis, and keep its results."""
        if self._task is not None:
            self._task.cancel()

    def change(self, facts: dict[str, Any]) -> None:
        """Stop the analysis because another game is shown. facts: earlier state of that game, or empty."""
        self.stop()
        facts = {**(facts or _NONE), "running": False}
        if self._board.review != facts:
            self._board.review = facts
            self._page.show("review.state", self._board.review)

    async def _run(self, line: _MainLine, tasks: list[Task]) -> None:
        """Search all positions from the last to the first, and judge the game from time to time."""
        answers: dict[int, Answer] = {}
        shared_engine, loop = self._page.shared_engine, asyncio.get_running_loop()
        next_look = 0.0
        ended, problem = "stopped", ""
        waiting = "" if shared_engine.has_cores else "waiting for an analysis in another tab"
        self._send(line, answers, len(tasks), True, waiting)
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
                    turn = line.work.game.turn() ^ (ply % 2 == 1)
                    score = chess.engine.PovScore(answer.estimate[0], turn)
                    line.tree.keep_score(line.numbers[ply], score, answer.line.depth)
                    began = loop.time()
                    if began >= next_look:
                        self._send(line, answers, len(tasks), True, "")
                        next_look = began + max(_JUDGE_EVERY_S, _REST * (loop.time() - began))
            ended = problem
        finally:
            if self._board.tree is line.tree and not ended and line.is_still_there:
                judge_game(_work(line.tree.game), answers).to_pgn()
                line.tree.write_scores(line.nodes)
                with contextlib.suppress(PsearchError):  # the game may have too many moves by now
                    line.tree.renumber()
                self._board.send_game()
            if self._board.tree is line.tree:
                self._send(line, answers, len(tasks), False, ended)

    def _send(self, line: _MainLine, answers: Mapping[int, Answer], total: int, is_running: bool, text: str) -> None:
        judged = judge_game(line.work, answers)
        moves = []
        board = line.work.game.board()
        for ply, (move, found) in enumerate(zip(line.work.game.mainline_moves(), judged.moves, strict=True), 1):
            facts: dict[str, Any] = {"id": line.numbers[ply], "mark": found.mark or ""}
            if found.mark is not None and found.compared is not None:
                facts["best"] = board.san(board.parse_uci(found.compared.best))
            board.push(move)
            # a deeper score from earlier is kept
            score = line.tree.score_of(line.nodes[ply])
            if score is None and found.score is not None:
                score = score_facts(found.score)
            moves.append({**facts, "eval": score})
        self._board.review = {
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
        self._page.show("review.state", self._board.review)


class _MainLine:
    """Main line of a tree at the start of its analysis; the user may change the tree meanwhile."""

    def __init__(self, tree: GameTree) -> None:
        self.tree = tree
        self.nodes = [tree.game, *tree.game.mainline()]
        self.numbers = [tree.number_of(node) for node in self.nodes]
        """Numbers of the nodes, from the root."""
        game = BoardGame(tree.game.board(), tree.game.headers)
        game.add_line(list(tree.game.mainline_moves()))
        self.work = _work(game)

    @property
    def is_still_there(self) -> bool:
        """Tell whether the main line of the tree still begins with this line."""
        return [self.tree.game, *self.tree.game.mainline()][: len(self.nodes)] == self.nodes


def _work(game: chess.pgn.Game) -> PgnGame:
    return PgnGame(1, game, (), Source.of_text("the game", ""), 0, 0)


def _limits_of(payload: Payload) -> Limits:
    kind = choice_of(payload, "kind", ("time", "nodes", "depth"))
    if kind == "time":
        return Limits(movetime_ms=1_000 * max(0.01, number_of(payload, "amount", 0, _MOST_TIME_S)))
    if kind == "nodes":
        return Limits(nodes=whole_of(payload, "amount", 1, _MOST_NODES))
    return Limits(depth=whole_of(payload, "amount", 1, _MOST_DEPTH))


async def _outcomes(tasks: list[Task], threads: int) -> AsyncGenerator[Outcome, None]:
    """Yield the outcomes of positions as they are found, like `psearch analyse --jobs 1 --threads N`."""
    pools: list[PositionPool] = []
    stopped = threading.Event()

    def begin() -> None:  # keeps the pool so that it is closed in any case
        pools.append(make_pool(1, WorkerSettings(threads, JOB_HASH_MB, SearchOptions(driver=DEFAULT_DRIVER))))

    try:
        await in_thread(begin, stopped.set)
        found = rounds(pools[0], [tasks], is_stopped=stopped.is_set)
        while (outcomes := await in_thread(lambda: next(found, None), stopped.set)) is not None:
            for outcome in outcomes:
                yield outcome
    finally:
        for pool in pools:
            pool.close()
