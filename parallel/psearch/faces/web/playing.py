"""Plays a game against the engine, with a clock and a strength."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from datetime import date
from typing import Any

import chess
import chess.engine
import chess.pgn

from psearch.api.asynchronous import AsyncEngine
from psearch.faces.web.connection import Connection
from psearch.faces.web.game_board import GameBoard, Shown
from psearch.faces.web.game_tree import GameTree, outcome_text
from psearch.faces.web.messages import Payload, choice_of, flag_of, number_of, whole_of
from psearch.results import PsearchError
from psearch.strength import MAX_ELO, MIN_ELO, human_delay_s

_MOST_CLOCK_S = 6 * 3600
_MOST_INCREMENT_S = 300
_MOST_MOVETIME_S = 600
_LEAST_S = 0.3
"""Least time of an engine move, so that the user notices it, in seconds."""
_HURRY_S = 10.0
"""Time on the engine's clock below which it moves without that delay, in seconds."""


@dataclass(frozen=True)
class Terms:
    """Terms of a game."""

    human: chess.Color
    elo: int | None
    """Strength of the engine; None for full strength."""
    clock_s: float | None
    """Initial time of both sides; None for no clock, but `movetime_s` for each move of the engine."""
    increment_s: float
    movetime_s: float
    delays: bool
    """Whether a limited strength answers after a delay like a person's."""

    @classmethod
    def of(cls, payload: Payload) -> Terms:
        """Read `color` (or random), `elo` or null, `clock` (seconds) or null, `increment`, `movetime`, `delays`."""
        color = choice_of(payload, "color", ("white", "black", "random"))
        human = random.random() < 0.5 if color == "random" else color == "white"
        elo = None if payload.get("elo") is None else whole_of(payload, "elo", MIN_ELO, MAX_ELO)
        clock_s = None if payload.get("clock") is None else number_of(payload, "clock", 1, _MOST_CLOCK_S)
        delays = elo is not None and flag_of(payload, "delays")
        if clock_s is None:
            return cls(human, elo, None, 0.0, max(0.01, number_of(payload, "movetime", 0, _MOST_MOVETIME_S)), delays)
        return cls(human, elo, clock_s, number_of(payload, "increment", 0, _MOST_INCREMENT_S), 0.0, delays)


class Match:
    """Plays a game against the engine in the tree of a page."""

    def __init__(self, page: Connection, board: GameBoard) -> None:
        self._page, self._board = page, board
        self._terms: Terms | None = None
        self._result = ""
        """Reason for the end of the last game."""
        self.is_running = False
        self._began = 0.0
        """Start time of the game, by which the page recognizes a new game."""
        self._left: dict[chess.Color, float] = {}
        self._since: float | None = None
        """Time when the running clock was started, by the event loop's clock."""
        self._flag: asyncio.TimerHandle | None = None
        self._thinking: asyncio.Task[None] | None = None
        self._last: chess.pgn.GameNode | None = None
        """Node of the latest move of the game."""
        self._score: chess.engine.PovScore | None = None
        """Score of the engine's latest search."""
        page.handlers["play.resign"] = lambda payload: self._resign()
        page.handlers["play.draw"] = lambda payload: self._offer_draw()

    @property
    def facts(self) -> dict[str, Any]:
        """Return the state of the game for the page."""
        terms = self._terms
        if terms is None:
            return {"running": False, "result": ""}
        turn = self._turn
        return {
            "running": self.is_running,
            "began": self._began,
            "result": self._result,
            "color": chess.COLOR_NAMES[terms.human],
            "elo": terms.elo,
            "clocks": {chess.COLOR_NAMES[color]: round(self._shown_s(color), 2) for color in self._left} or None,
            "ticking": chess.COLOR_NAMES[turn] if self.is_running and self._left and self._since is not None else None,
            "thinking": self.is_running and turn != terms.human,
        }

    def start(self, payload: Payload) -> None:
        """Begin a game with the given `Terms`, from the position on the board (`fromHere`) or the initial one."""
        self.check_may_change()
        terms = Terms.of(payload)
        tree = GameTree.of_board(self._board.tree.board()) if flag_of(payload, "fromHere") else GameTree()
        if tree.game.board().outcome() is not None:
            raise PsearchError("the game is over in this position")
        names = {terms.human: "You", not terms.human: "psearch" + (f" (Elo {terms.elo})" if terms.elo else "")}
        headers = tree.game.headers
        headers.update({"Event": "A game against psearch", "Site": "?", "Date": date.today().strftime("%Y.%m.%d")})
        headers.update({"White": names[chess.WHITE], "Black": names[chess.BLACK]})
        if terms.clock_s is not None:
            headers["TimeControl"] = f"{terms.clock_s:.0f}+{terms.increment_s:.0f}"
        if terms.elo:
            headers["BlackElo" if terms.human else "WhiteElo"] = str(terms.elo)
        self._board.keep()
        self._board.put(Shown(tree))
        self._began = time.time()
        self._terms, self._result, self.is_running, self._last = terms, "", True, tree.game
        self._score = None
        self._left = {} if terms.clock_s is None else dict.fromkeys(chess.COLORS, terms.clock_s)
        self._board.send_game()
        self._next_turn()

    def check_may_change(self) -> None:
        """Raise PsearchError during a game, since replacing the board would lose it."""
        if self.is_running:
            raise PsearchError("a game is being played: end it first")

    def take_move(self, move: chess.Move) -> None:
        """Make the user's legal move. Raises PsearchError if it is not their turn."""
        if self._turn != self._human:
            raise PsearchError("it is not your turn")
        if self._board.tree.here is not self._last:
            raise PsearchError("this is not the position of the game")
        self._make(move)

    def take_back(self) -> None:
        """Undo the user's last move and the reply."""
        if self._last is None or not self._board.tree.has(self._last):
            raise PsearchError("there is no game in which to take back a move")
        if self._left and self._left[self._human] <= 0:
            raise PsearchError("your time has run out: no move can be taken back")
        node = self._last
        while isinstance(node, chess.pgn.ChildNode):
            node = node.parent
            if node.turn() == self._human:
                break
        else:
            raise PsearchError("there is no move of yours to take back")
        self._stop()
        tree = self._board.tree
        if not self.is_running:
            self._board.keep(tree.copy())  # the user may have added variations since
        for child in list(node.variations):
            node.remove_variation(child)
        tree.here = self._last = node
        tree.renumber()
        tree.game.headers["Result"] = "*"
        self.is_running, self._result = True, ""
        self._board.send_game()
        self._next_turn()

    def forget(self) -> None:
        """Forget the last game, since the board is replaced."""
        self.check_may_change()
        if self._terms is not None:
            self._terms, self._last, self._result = None, None, ""
            self._page.send("play.state", self.facts)

    def _resign(self) -> None:
        if self.is_running:
            self._end("You resigned", "0-1" if self._human else "1-0")

    def _offer_draw(self) -> None:
        """End the game in a draw if the engine was not better in its latest search. Raises
        PsearchError if no game is being played."""
        if not self.is_running:
            raise PsearchError("no game is being played")
        if self._score is not None and self._score.pov(not self._human) <= chess.engine.Cp(0):
            self._end("Draw by agreement", "1/2-1/2")
        else:
            self._page.send("page.note", {"text": "psearch declines the draw"})

    def leave(self) -> None:
        """Release the engine and stop its clock while the page is closed."""
        if self._thinking is not None:
            self._stop()

    def come_back(self) -> None:
        """Resume the engine's search if it is its turn."""
        if self.is_running and self._thinking is None and self._turn != self._human:
            self._next_turn()

    def close(self) -> None:
        """Stop the game of a closed page."""
        self._stop()
        self.is_running = False

    @property
    def _human(self) -> chess.Color:
        assert self._terms is not None
        return self._terms.human

    @property
    def _turn(self) -> chess.Color:
        assert self._last is not None
        return self._last.turn()

    def _next_turn(self) -> None:
        """Start the clock of the side to move, and the search on the engine's turn."""
        if self._turn == self._human:
            self._start_clock()
            if self._left:
                left_s = max(0.0, self._left[self._human])
                self._flag = asyncio.get_running_loop().call_later(left_s, self._end_on_time, self._human)
        else:
            self._thinking = self._page.begin("play", self._think())
        self._page.send("play.state", self.facts)

    async def _think(self) -> None:
        """Make the engine's move. Its clock does not run while the engine is busy for another page."""
        loop = asyncio.get_running_loop()
        try:
            async with self._page.shared_engine.task() as engine:
                self._start_clock()
                self._page.send("play.state", self.facts)
                began = loop.time()
                move = await self._choose(engine)
            await asyncio.sleep(max(0.0, self._least_s(move) - (loop.time() - began)))
        except PsearchError as error:
            self._thinking = None
            self._end(f"The engine stopped: {error}", "*")
            return
        self._thinking = None
        self._make(move)

    async def _choose(self, engine: AsyncEngine) -> chess.Move:
        assert self._terms is not None and self._last is not None
        limit = chess.engine.Limit(time=None if self._left else self._terms.movetime_s)
        if self._left:
            limit.white_clock, limit.black_clock = self._left[chess.WHITE], self._left[chess.BLACK]
            limit.white_inc = limit.black_inc = self._terms.increment_s
        options = {"UCI_Elo": self._terms.elo}
        played = await engine.play(
            self._last.board(), limit, game=self._began, info=chess.engine.INFO_SCORE, options=options
        )
        self._score = played.info.get("score")
        if played.move is None:
            raise PsearchError("there is no move")
        return played.move

    def _least_s(self, move: chess.Move) -> float:
        """Return the least seconds that the engine's move takes."""
        assert self._terms is not None and self._last is not None
        left_s = self._left.get(not self._human)
        if self._terms.delays:
            times = (self._terms.movetime_s, None) if left_s is None else (left_s, self._terms.increment_s)
            return human_delay_s(self._last.board(), move, random.Random(), *times)
        return 0.0 if left_s is not None and left_s <= _HURRY_S else _LEAST_S

    def _make(self, move: chess.Move) -> None:
        """Make the move of the side to move, unless its time has run out."""
        mover = self._turn
        used_s = self._stop_clock()
        if self._left:
            self._left[mover] -= used_s
            if self._left[mover] <= 0:
                self._end_on_time(mover)
                return
        tree = self._board.tree
        follows = tree.here is self._last
        watched, tree.here = tree.here, self._last or tree.game
        tree.play(move)
        self._last = tree.here
        if self._left:
            assert self._terms is not None
            self._left[mover] += self._terms.increment_s
            assert isinstance(self._last, chess.pgn.ChildNode)
            self._last.set_clock(self._left[mover])
        if not follows:
            tree.here = watched  # a user who looks at an earlier move stays there
        self._board.send_game()
        outcome = _outcome(self._last.board())
        if outcome is not None:
            self._end(outcome_text(outcome), outcome.result())
        else:
            self._next_turn()

    def _end_on_time(self, loser: chess.Color) -> None:
        assert self._last is not None
        self._left[loser] = 0.0
        if self._last.board().has_insufficient_material(not loser):
            self._end("Draw: time ran out, but the opponent has insufficient material to mate", "1/2-1/2")
        else:
            name = chess.COLOR_NAMES[not loser].capitalize()
            self._end(f"{name} wins on time", "0-1" if loser else "1-0")

    def _end(self, reason: str, result: str) -> None:
        used_s = self._stop()
        if self._left:
            self._left[self._turn] = max(0.0, self._left[self._turn] - used_s)
        self.is_running, self._result = False, reason
        self._board.tree.game.headers["Result"] = result
        self._board.send_game()
        self._page.send("play.state", self.facts)

    def _stop(self) -> float:
        """Stop the engine and the clock; return the seconds that the clock ran."""
        thinking, self._thinking = self._thinking, None
        if thinking is not None:
            thinking.cancel()
        return self._stop_clock()

    def _start_clock(self) -> None:
        self._since = asyncio.get_running_loop().time()

    def _stop_clock(self) -> float:
        """Stop the clock; return the seconds that it ran."""
        since, self._since = self._since, None
        if self._flag is not None:
            self._flag.cancel()
            self._flag = None
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def _shown_s(self, color: chess.Color) -> float:
        used_s = 0.0
        if self.is_running and self._since is not None and color == self._turn:
            used_s = asyncio.get_running_loop().time() - self._since
        return max(0.0, self._left[color] - used_s)


def _outcome(board: chess.Board) -> chess.Outcome | None:
    """Return the outcome of a game in which a draw needs no claim, but the position that allows one must be reached."""
    if board.is_repetition(3):
        return chess.Outcome(chess.Termination.THREEFOLD_REPETITION, None)
    if board.is_fifty_moves():
        return chess.Outcome(chess.Termination.FIFTY_MOVES, None)
    return board.outcome()
