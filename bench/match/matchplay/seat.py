"""Where a process plays its games: its own Python, so that nothing else delays its clocks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import chess.engine

from .engines import Engine, EngineSpec
from .game import Complaint, Game, Pairing, Record, Rules


class Seat:
    """Both engines, started when needed and started anew when broken; they end with the process."""

    def __init__(self, specs: tuple[EngineSpec, EngineSpec], rules: Rules) -> None:
        """Start both. Raises MatchError when an engine cannot be started."""
        chess.engine.LOGGER.setLevel(logging.CRITICAL + 1)  # what engines say amiss is kept with the complaint
        self._specs = specs
        self._rules = rules
        self._loop = asyncio.new_event_loop()
        self._running: dict[int, Engine] = {}
        self._deaths: list[Complaint] = []
        """between games, not yet reported"""
        first, second = self._loop.run_until_complete(self._engines())
        self._names = first.id_name, second.id_name

    def play(self, pairing: Pairing) -> tuple[tuple[str, str], Record]:
        """Return what the engines call themselves, and the game."""
        return self._names, self._loop.run_until_complete(self._play(pairing))

    async def _engines(self) -> list[Engine]:
        for number, spec in enumerate(self._specs):
            engine = self._running.get(number)
            if engine is not None and engine.protocol.returncode.done():
                code = engine.protocol.returncode.result()
                text = f"ended between games (exit status {code}){engine.last_words()}"
                self._deaths.append(Complaint(number, "died", text, list(engine.protocol.lines)))
                await self._running.pop(number).end()
            if number not in self._running:
                self._running[number] = await Engine.start(spec)
        return [self._running[0], self._running[1]]

    async def _play(self, pairing: Pairing) -> Record:
        record = await Game(await self._engines(), pairing, self._rules).play()
        record.complaints += self._deaths
        self._deaths = []
        for number in set(record.broken):
            await self._running.pop(number).end()
        return record


def make_seat(
    specs: tuple[EngineSpec, EngineSpec], rules: Rules
) -> Callable[[Pairing], tuple[tuple[str, str], Record]]:
    """Return what a process does with each game."""
    return Seat(specs, rules).play
