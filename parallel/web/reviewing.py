"""A game as `psearch analyse` sees it, filled in while one looks: every position searched, the mistakes marked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import chess
import chess.engine
import chess.pgn

from psearch.analysis.analyser import Answer
from psearch.analysis.judgement import MARK_NAMES, judge_game
from psearch.analysis.pgn import annotate, positions
from psearch.farm.answers import PositionResult
from psearch.farm.many import analyse_many_async
from psearch.notation.pgn import PgnGame
from psearch.notation.source import Source
from psearch.results import PsearchError
from psearch.version import __version__
from psearch.web.context import Context
from psearch.web.payloads import choice_of, number_of, whole_of
from psearch.web.tree import Tree, score_facts

_JUDGE_EVERY_S = 0.25
"""The game is judged as a whole, some 20 ms of work; no need for it after each position."""
_REST = 10
"""And no more of the time than one part in so many: long games take longer."""
_MOST_TIME_S = 600
_MOST_NODES = 10**12
_MOST_DEPTH = 100
_MOST_PLIES = 1_000


class Review:
    """The review of the game of one page, if there is one."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._task: asyncio.Task[None] | None = None
        self.facts: dict[str, Any] = {"running": False, "done": 0, "total": 0, "moves": [], "players": None, "text": ""}
        """what the page shows of it"""

    @property
    def is_running(self) -> bool:
        """Whether positions are being searched."""
        return self._task is not None and not self._task.done()

    def start(self, payload: Mapping[str, Any]) -> None:
        """Begin. Raises PsearchError."""
        limit = _limit_of(payload)
        if self.is_running:
            raise PsearchError("the game is being analysed already")
        looked_at = _Line(self._context.tree)
        places = [(place.ply, place.board) for place in positions(looked_at.work)]
        if not places:
            raise PsearchError("there are no moves to look at: play some, or paste a PGN")
        if len(places) > _MOST_PLIES:
            raise PsearchError(f"the game is longer than {_MOST_PLIES:,} plies")
        self._task = self._context.begin("review", self._run(looked_at, places[::-1], limit))

    def stop(self) -> None:
        """End it; what was found stays."""
        if self._task is not None:
            self._task.cancel()

    # -- inside --------------------------------------------------------------------------------------------------------

    async def _run(self, line: _Line, places: list[tuple[int, chess.Board]], limit: chess.engine.Limit) -> None:
        """Search all positions, the earliest first, and judge the game from time to time."""
        answers: dict[int, Answer] = {}
        desk, loop = self._context.desk, asyncio.get_running_loop()
        next_look = 0.0
        ended, problem = "stopped", ""
        self._tell(line, answers, len(places), True, "" if desk.has_cores else "waiting for the game of another tab")
        try:
            async with (
                desk.cores("a game is being analysed"),
                analyse_many_async(places, limit, workers=desk.settings.threads) as results,
            ):
                async for result in results:
                    if result.error is not None:
                        problem = result.error
                        continue
                    answers[result.id] = _answer_of(result)
                    line.tree.keep_score(line.numbers[result.id], result.score, result.info["depth"])
                    began = loop.time()
                    if began >= next_look:
                        self._tell(line, answers, len(places), True, "")
                        next_look = began + max(_JUDGE_EVERY_S, _REST * (loop.time() - began))
            ended = problem
        finally:
            if self._context.tree is line.tree and not ended and line.is_still_there:
                annotate(judge_game(line.real, answers), f"psearch {__version__}")
                with contextlib.suppress(PsearchError):  # too many moves by now
                    line.tree.renumber()
                self._context.tell_game()
            self._tell(line, answers, len(places), False, ended)

    def _tell(self, line: _Line, answers: Mapping[int, Answer], total: int, is_running: bool, text: str) -> None:
        """Show what is known by now."""
        judged = judge_game(line.work, answers)
        moves = []
        board = line.work.game.board()
        for ply, (move, found) in enumerate(zip(line.work.game.mainline_moves(), judged.moves, strict=True)):
            facts: dict[str, Any] = {"id": line.numbers[ply + 1], "mark": found.mark or "", "loss": found.loss}
            if found.score is not None:
                facts["eval"] = score_facts(found.score)
            if found.mark is not None:
                facts["best"] = board.san(board.parse_uci(answers[ply].best))
            moves.append(facts)
            board.push(move)
        first = answers.get(0)
        self.facts = {
            "running": is_running,
            "done": len(answers),
            "total": total,
            "text": text,
            "moves": moves,
            "first": score_facts(chess.engine.PovScore(first.estimate[0], line.work.game.turn())) if first else None,
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


class _Line:
    """The main line of a tree as it was when its analysis began: who looks on may go on making moves."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._nodes = [tree.game, *tree.game.mainline()]
        self.numbers = [tree.number_of(node) for node in self._nodes]
        """of its nodes, from the root"""
        game = chess.pgn.Game(tree.game.headers)
        game.add_line(list(tree.game.mainline_moves()))
        self.work = _work(game)

    @property
    def real(self) -> PgnGame:
        """The game of the tree itself, to write into."""
        return _work(self.tree.game)

    @property
    def is_still_there(self) -> bool:
        """Whether the main line of the tree still begins with it."""
        return [self.tree.game, *self.tree.game.mainline()][: len(self._nodes)] == self._nodes


def _work(game: chess.pgn.Game) -> PgnGame:
    return PgnGame(1, game, None, Source.of_text("the game", ""), 0, 0)


def _limit_of(payload: Mapping[str, Any]) -> chess.engine.Limit:
    kind = choice_of(payload, "kind", ("time", "nodes", "depth"))
    if kind == "time":
        return chess.engine.Limit(time=max(0.01, number_of(payload, "amount", 0, _MOST_TIME_S)))
    if kind == "nodes":
        return chess.engine.Limit(nodes=whole_of(payload, "amount", 1, _MOST_NODES))
    return chess.engine.Limit(depth=whole_of(payload, "amount", 1, _MOST_DEPTH))


def _answer_of(result: PositionResult) -> Answer:
    """As `psearch analyse` keeps it."""
    info, best = result.info, result.bestmove
    assert best is not None  # there is a legal move
    relative = info["score"].relative
    bound = "lower" if "lowerbound" in info else "upper" if "upperbound" in info else "exact"
    return Answer(
        best=best.uci(),
        cp=relative.score(),
        mate=relative.mate(),
        depth=info["depth"],
        seldepth=info["seldepth"],
        nodes=info["nodes"],
        time_s=info["time"],
        pv=[move.uci() for move in info["pv"]],
        bound=bound,
    )
