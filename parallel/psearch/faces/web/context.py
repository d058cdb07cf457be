"""What the parts of an open page share: the engine, the game on the board, and how to tell the page."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from psearch.faces.web.game_tree import GameTree
from psearch.faces.web.shared_engine import SharedEngine
from psearch.results import PsearchError
from psearch.text.values import shown


class Context:
    """A page as its parts see it. For the loop's thread only."""

    def __init__(self, shared_engine: SharedEngine) -> None:
        self.shared_engine = shared_engine
        self.tree = GameTree()
        self.former: list[Any] = []
        """what was on the board before, for *Undo*; the latest last"""
        self.later: list[Any] = []
        """what was undone"""
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, type: str, payload: Mapping[str, Any]) -> None:
        """Say something to the page."""
        raise NotImplementedError

    def show(self, type: str, payload: Mapping[str, Any]) -> None:
        """Say a state of which only the latest matters."""
        raise NotImplementedError

    def keep(self, tree: GameTree | None = None) -> None:
        """Keep what is on the board for *Undo*, before something takes its place. tree: a copy, if the tree itself is
        going to be changed."""
        raise NotImplementedError

    def begin(self, part: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something in the background that takes longer than a message may. It ends with the page at the latest; a
        PsearchError in it is shown in this part of the page."""
        task = asyncio.create_task(self._guarded(part, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def tell_position(self) -> None:
        """Tell the page what stands on the board."""
        self.send("board.position", self.tree.position())

    def tell_game(self) -> None:
        """Tell the page the whole tree, and what stands on the board."""
        self.send("board.tree", {**self.tree.tree(), "undo": bool(self.former), "redo": bool(self.later)})
        self.tell_position()

    async def _guarded(self, part: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except PsearchError as error:
            self.send(f"{part}.error", {"text": str(error)})
        except Exception as error:  # a fault of ours: the page shall know, and the log
            self.send(f"{part}.error", {"text": f"this should not happen: {shown(error)}"})
            raise

    def end_tasks(self) -> None:
        """End what is done in the background."""
        for task in self._tasks:
            task.cancel()
