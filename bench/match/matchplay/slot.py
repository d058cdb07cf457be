"""A process that plays one game at a time: its own Python, so that nothing else delays its clocks.

It ends, and its engines with it, as soon as the other end of its connection is closed, however that came about.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import chess.engine

from psearch.processes.lifetime import ignore_blocked

from .engines import Engine, EngineSpec
from .errors import MatchError
from .game import Complaint, Game, Pairing, Record, Rules


@dataclass(frozen=True)
class Ready:
    """Both engines answer; what they call themselves."""

    names: tuple[str, str]


@dataclass(frozen=True)
class Failed:
    """An engine cannot be started."""

    text: str


Report = Ready | Failed | Record


class _Engines:
    """Both, started when needed and started anew when broken."""

    def __init__(self, specs: tuple[EngineSpec, EngineSpec]) -> None:
        self.specs = specs
        self.running: dict[int, Engine] = {}
        self.deaths: list[Complaint] = []
        """between games, not yet reported"""

    async def get(self) -> list[Engine]:
        for number, spec in enumerate(self.specs):
            if number in self.running and self.running[number].protocol.returncode.done():
                engine = self.running[number]
                code = engine.protocol.returncode.result()
                text = f"ended between games (exit status {code}){engine.last_words()}"
                self.deaths.append(Complaint(number, "died", text, list(engine.protocol.lines)))
                await self.drop(number)
            if number not in self.running:
                self.running[number] = await Engine.start(spec)
        return [self.running[0], self.running[1]]

    async def drop(self, number: int) -> None:
        await self.running.pop(number).end(at_once=True)

    async def end(self, *, at_once: bool) -> None:
        engines = list(self.running.values())
        self.running.clear()
        await asyncio.gather(*(engine.end(at_once=at_once) for engine in engines), return_exceptions=True)


async def play_game(engines: _Engines, pairing: Pairing, rules: Rules) -> Record:
    """A game, after which each engine is ready for another, or is dropped."""
    record = await Game(await engines.get(), pairing, rules).play()
    record.complaints += engines.deaths
    engines.deaths = []
    for number in set(record.broken):
        await engines.drop(number)
    return record


async def _serve(connection: Connection, specs: tuple[EngineSpec, EngineSpec], rules: Rules) -> None:
    loop = asyncio.get_running_loop()
    serving = asyncio.current_task()
    games: asyncio.Queue[Pairing | None] = asyncio.Queue()

    def receive() -> None:
        try:
            games.put_nowait(connection.recv())
        except (EOFError, OSError):
            loop.remove_reader(connection.fileno())
            if serving is not None:
                serving.cancel()

    def send(report: Report) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more: `receive` ends this
            connection.send(report)

    loop.add_reader(connection.fileno(), receive)
    engines = _Engines(specs)
    done = False
    try:
        first, second = await engines.get()
        send(Ready((first.id_name, second.id_name)))
        while (pairing := await games.get()) is not None:
            send(await play_game(engines, pairing, rules))
        done = True
    except MatchError as error:
        send(Failed(str(error)))
    finally:
        await engines.end(at_once=not done)


class Seat:
    """The same in a process of a cluster, which plays a game when it is told to. Raises MatchError when an engine
    cannot be started; the engines end with the process."""

    def __init__(self, specs: tuple[EngineSpec, EngineSpec], rules: Rules) -> None:
        chess.engine.LOGGER.setLevel(logging.CRITICAL + 1)
        self._rules = rules
        self._loop = asyncio.new_event_loop()
        self._engines = _Engines(specs)
        first, second = self._loop.run_until_complete(self._engines.get())
        self.names = first.id_name, second.id_name

    def play(self, pairing: Pairing) -> tuple[tuple[str, str], Record]:
        """What the engines call themselves, and the game."""
        return self.names, self._loop.run_until_complete(play_game(self._engines, pairing, self._rules))


def make_seat(
    specs: tuple[EngineSpec, EngineSpec], rules: Rules
) -> Callable[[Pairing], tuple[tuple[str, str], Record]]:
    """What a process of a cluster is to do."""
    return Seat(specs, rules).play


def run_slot(connection: Connection, specs: tuple[EngineSpec, EngineSpec], rules: Rules) -> None:
    """The process."""
    ignore_blocked({signal.SIGINT})  # Ctrl-C is for the process that started this one
    chess.engine.LOGGER.setLevel(logging.CRITICAL + 1)  # what engines say amiss is kept with the complaint
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_serve(connection, specs, rules))
