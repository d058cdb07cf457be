"""The tabs "Workers" and "Laboratory" of a page: a live search, a user's game, experiments in virtual time.

    page                            server
    workers.watch {first}           workers.look: snapshots of `psearch.lab.watching.watcher`; first: number of the
                                    first of the 64 workers whose tracks are sent
    workers.seen {}                 confirms a snapshot: a slow page gets fewer, each of a longer time
    workers.rest {}                 ends the snapshots

    game.hello {}                   game.state {game, position, running, board, text}, if the server was started with a
                                    game; and after every change
    game.search {position}
    game.stop {}

    laboratory.hello {}             laboratory.choices {policies, most_workers, nodes, pruning, drivers, rules}, and
                                    the latest message again
    laboratory.run {workers, first, second, nodes, pruning, driver, rules, positions}
                                    positions: number of positions, spread over the game; 1: that on the board
                                    laboratory.progress {text, share}, ...; at last one of laboratory.result,
                                    laboratory.error {text}, laboratory.stopped {}
    laboratory.stop {}
    virtual.hello {}                virtual.choices {policies}
    virtual.run {workers, policies, nodes, driver}
                                    as laboratory.run, with types virtual.*; the results include snapshots

Files come from the command line only; a page chooses among them. A game's file is read again for each search. One
process at a time (`psearch.lab.watching.job`) computes experiments; it ends with its page.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from psearch.api.asynchronous import in_thread
from psearch.defaults import DEFAULT_POLICY, MAX_DEPTH, MAX_THREADS, STUDY_DRIVERS
from psearch.faces.web.connection import Connection
from psearch.faces.web.game_board import GameBoard
from psearch.faces.web.messages import Payload, choice_of, text_of, texts_of, whole_of
from psearch.games.own_game import Game, GamePosition
from psearch.games.searching import GameResult, final_text, iteration_text, options_for, search_with, supervisor_for
from psearch.lab.watching.job import BackgroundJob
from psearch.lab.watching.laboratory import LEAST_NODES, MOST_NODES, MOST_WORKERS
from psearch.lab.watching.node_lines import GameLines, chess_lines
from psearch.lab.watching.watcher import LinesOf, Watched, Watcher
from psearch.processes.control import SearchControl
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits, PsearchError
from psearch.settings import SPLITTING_POLICIES
from psearch.text.values import counted
from psearch.trace.recorder import Recorder
from psearch_core import DEFAULT_PRUNING, PRUNING_MODES

PERIOD_S = 0.05
_MOST_UNSEEN = 3
"""Most snapshots that a page has not confirmed; until it does no more are taken."""
_SHARE = 0.04
"""Largest share of a core for snapshots; slow ones, with hundreds of workers, are taken less often."""
_NODES_SHARE = 0.01
"""Largest share of a core for the open nodes: what four looks a second take with two workers."""
_IDLE_S = 0.2
"""Time between looks while nothing is searched, in seconds."""
_LONGEST_POSITION = 1000
_LAST_LOOK_S = 0.3
"""Time for which the workers of a finished search stay, so that the page sees its end, in seconds."""
_NODES = (20_000, 100_000, 400_000, 1_500_000)
"""Tree sizes that the page offers."""
_MOST_POSITIONS = 24


class Watching:
    """Sends snapshots of the workers to a page: those of the engine, or those that search a user's game."""

    def __init__(self, page: Connection) -> None:
        self._page = page
        self._engine: Watched | None = None
        self._watcher: Watcher | None = None
        self._was_running = False
        self._nodes_from = 0.0
        """Time of the next look at the open nodes."""
        self._first = 0
        self._unseen = 0
        self._task: asyncio.Task[None] | None = None
        page.handlers |= {
            "workers.watch": self._watch,
            "workers.seen": self._confirm,
            "workers.rest": lambda payload: self.stop(),
        }

    def stop(self) -> None:
        """End the snapshots."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._watcher = self._engine = None

    def _watch(self, payload: Payload) -> None:
        """Begin the snapshots, or choose other workers."""
        self._first = whole_of(payload, "first", 0, MAX_THREADS) if "first" in payload else 0
        self._unseen = 0
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def _confirm(self, payload: Payload) -> None:
        self._unseen = max(0, self._unseen - 1)

    async def _run(self) -> None:
        while self._page.is_open:
            began = time.thread_time()
            is_running = self._unseen < _MOST_UNSEEN and self._look()
            spent = time.thread_time() - began
            wait_s = max(PERIOD_S - spent, spent / _SHARE - spent)
            await asyncio.sleep(wait_s if is_running or self._unseen else max(wait_s, _IDLE_S))

    def _look(self) -> bool:
        """Send a snapshot; return whether a search is running."""
        engine: Watched
        lines_of: LinesOf
        game = OwnGame.running
        if game is not None and game.supervisor is not None:
            engine, lines_of = game, game.lines_of
        else:
            try:
                engine, lines_of = self._page.shared_engine.engine, chess_lines
            except PsearchError:  # the engine is starting
                return False
        if engine is not self._engine or self._watcher is None:
            self._engine, self._watcher = engine, Watcher(engine, lines_of)
        now, began = time.monotonic(), time.thread_time()
        with_nodes = now >= self._nodes_from
        snapshot = self._watcher.look(self._first, with_nodes)
        if snapshot is None or snapshot["fen"] is None:
            return False
        if with_nodes:
            self._nodes_from = now + (time.thread_time() - began) / _NODES_SHARE - PERIOD_S / 2
        is_running = not snapshot["done"]
        if is_running or self._was_running:  # the last snapshot shows the end
            self._unseen += 1
            self._page.send("workers.look", snapshot)
        self._was_running = is_running
        return is_running


class OwnGame:
    """Searches a user's game for one page with its own workers, which all pages can watch; a `Watched`."""

    running: OwnGame | None = None
    """Instance that searches or waits for the cores."""

    def __init__(self, page: Connection) -> None:
        self.supervisor: Supervisor | None = None
        """Workers of a running search."""
        self._page = page
        self._position: GamePosition | None = None
        self._control = SearchControl()
        game = os.path.basename(page.shared_engine.settings.game)
        self._facts = {"game": game, "position": "", "running": False, "board": None, "text": ""}
        page.handlers |= {
            "game.hello": lambda payload: self._send_state() if game else None,
            "game.search": self._begin,
            "game.stop": lambda payload: self.stop(),
        }

    def stop(self) -> None:
        """Stop the search, if there is one."""
        self._control.stop()

    def lines_of(self, root: np.ndarray) -> GameLines | None:
        """Return the lines of the present search, for the `Watcher`."""
        return None if self._position is None else GameLines(self._position)

    def _recorder(self) -> Recorder | None:
        return None if self.supervisor is None else self.supervisor.recorder

    def _send_state(self, **facts: Any) -> None:
        self._facts.update(facts)
        self._page.show("game.state", dict(self._facts))

    def _begin(self, payload: Payload) -> None:
        """Search `position`, in the game's notation, until it is solved or stopped."""
        text = text_of(payload, "position", _LONGEST_POSITION)
        if not self._facts["game"]:
            raise PsearchError("there is no game: use psearch serve --game FILE")
        if OwnGame.running is not None:
            raise PsearchError("the game is already being searched: stop that search, or wait")
        OwnGame.running = self
        self._control = SearchControl()
        self._page.begin("game", self._run(text))

    async def _run(self, text: str) -> None:
        shared_engine = self._page.shared_engine
        found = ""
        try:
            waiting = "" if shared_engine.has_cores else "waiting for the analysis of a game"
            self._send_state(running=True, position=text, board=None, text=waiting)
            async with shared_engine.cores("a game of your own is being searched"):
                found = await in_thread(partial(self._search, text, asyncio.get_running_loop()), self.stop)
        finally:
            OwnGame.running = None
            self._send_state(running=False, text=found)

    def _search(self, text: str, loop: asyncio.AbstractEventLoop) -> str:
        """Search in a thread; return the result in words."""
        shared_engine, settings = self._page.shared_engine, self._page.shared_engine.settings
        game = Game(settings.game)
        self._position = position = game.read(text)
        loop.call_soon_threadsafe(partial(self._send_state, board=game.board_text(position), text=""))
        options = options_for(game, DEFAULT_POLICY)

        def show(result: GameResult) -> None:
            loop.call_soon_threadsafe(partial(self._send_state, text=iteration_text(result)))

        def note(line: str) -> None:
            loop.call_soon_threadsafe(shared_engine.note, line)

        limits = Limits(depth=MAX_DEPTH)
        with supervisor_for(position, settings.threads, settings.hash_mb, options, watched=True) as supervisor:
            self.supervisor = supervisor
            try:
                result = search_with(supervisor, position, limits, options, show, self._control, note)
                time.sleep(_LAST_LOOK_S)
            finally:
                self.supervisor = None
        return final_text(position, result)


class BackgroundWork:
    """Computes experiments for one page."""

    running: BackgroundWork | None = None
    """Instance that works; only one, since searches in virtual time would slow each other down."""

    def __init__(self, page: Connection, board: GameBoard) -> None:
        self._page, self._board = page, board
        settings = page.shared_engine.settings
        self._policies = list(dict.fromkeys((*SPLITTING_POLICIES, *settings.policies)))
        self._rules = list(dict.fromkeys(("", settings.rules)))
        self._job: BackgroundJob | None = None
        self._latest: tuple[str, dict[str, Any]] | None = None
        """Latest message, for a page that is reloaded."""
        page.handlers |= {
            "laboratory.hello": self._send_choices,
            "laboratory.run": self._compare,
            "laboratory.stop": lambda payload: self.stop(),
            "virtual.hello": lambda payload: self._page.send("virtual.choices", {"policies": self._policies}),
            "virtual.run": self._search_virtually,
        }

    def stop(self) -> None:
        """Stop the work."""
        if self._job is not None:
            self._job.stop()

    def _begin(self, arguments: Mapping[str, Any], kind: str) -> None:
        """Start the work. Raises PsearchError during other work."""
        if BackgroundWork.running is not None:
            whose = "this page" if BackgroundWork.running is self else "another page"
            raise PsearchError(f"{whose} is still computing: stop that first, or wait")
        loop = asyncio.get_running_loop()

        def tell(message: str, payload: dict[str, Any]) -> None:
            try:
                loop.call_soon_threadsafe(self._send, kind, message, payload)
            except RuntimeError:  # the server has ended
                return

        self._job = BackgroundJob(arguments, tell)
        BackgroundWork.running = self

    def _send(self, kind: str, message: str, payload: dict[str, Any]) -> None:
        if message != "progress":
            self._job = None
            if BackgroundWork.running is self:
                BackgroundWork.running = None
        if kind != "virtual":
            self._latest = f"{kind}.{message}", payload
        self._page.send(f"{kind}.{message}", payload)

    def _send_choices(self, payload: Payload) -> None:
        choices = {"policies": self._policies, "most_workers": MOST_WORKERS, "nodes": list(_NODES)}
        choices |= {"pruning": list(PRUNING_MODES), "drivers": list(STUDY_DRIVERS), "rules": self._rules}
        self._page.send("laboratory.choices", choices)
        if self._latest is not None:
            self._page.send(*self._latest)

    def _compare(self, payload: Payload) -> None:
        """Compare two policies on the position on the board, or on positions of the game's main line."""
        policies = tuple(choice_of(payload, name, self._policies) for name in ("first", "second"))
        arguments = self._arguments(payload, policies)
        count = whole_of(payload, "positions", 1, _MOST_POSITIONS) if "positions" in payload else 1
        if count > 1:
            board, fens = self._board.tree.game.board(), list[str]()
            for move in self._board.tree.game.mainline_moves():
                board.push(move)
                if any(board.legal_moves):
                    fens.append(board.fen())
            if len(fens) < count:
                raise PsearchError(f"the game has {counted(len(fens), 'position')} after its moves: choose fewer")
            spread = [fens[number * len(fens) // count] for number in range(count)]
            arguments |= {"fen": spread[0], "others": tuple(spread[1:])}
        self._begin(arguments, "laboratory")

    def _search_virtually(self, payload: Payload) -> None:
        """Search the position on the board under one or two policies, and record it."""
        names = texts_of(payload, "policies", 2)
        policies = tuple(choice_of({"policy": name}, "policy", self._policies) for name in names)
        if not policies:
            raise PsearchError("policies must name one or two")
        self._begin({**self._arguments(payload, policies), "looks": True}, "virtual")

    def _arguments(self, payload: Payload, policies: tuple[str, ...]) -> dict[str, Any]:
        """Return the arguments of an `Experiment` on the position on the board."""
        board = self._board.tree.board()
        if payload.get("positions", 1) == 1 and not any(board.legal_moves):
            raise PsearchError("the game is over in this position: there is nothing to search")
        return {
            "fen": board.fen(),
            "chess960": board.chess960,
            "workers": whole_of(payload, "workers", 1, MOST_WORKERS),
            "policies": policies,
            "nodes": whole_of(payload, "nodes", LEAST_NODES, MOST_NODES),
            "pruning": choice_of(payload, "pruning", PRUNING_MODES) if "pruning" in payload else DEFAULT_PRUNING,
            "driver": choice_of(payload, "driver", STUDY_DRIVERS) if "driver" in payload else STUDY_DRIVERS[0],
            "rules": choice_of(payload, "rules", self._rules) if "rules" in payload else "",
        }
