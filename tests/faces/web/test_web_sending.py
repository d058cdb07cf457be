"""What a page is told, and when: nothing is waited for, and of states only the latest is sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from psearch.faces.web.connection import _MOST_WAITING, SHOW_S
from psearch.faces.web.page import Page
from psearch.faces.web.shared_engine import EngineSettings, SharedEngine


class Wire:
    """A WebSocket that keeps what it is given; or takes nothing."""

    def __init__(self, takes: bool = True) -> None:
        self.takes = takes
        self.told: list[str] = []
        self.texts: list[dict[str, Any]] = []
        """Texts that no page is told at first."""
        self.times: list[float] = []
        self.closed: list[int] = []

    async def send_text(self, text: str) -> None:
        if not self.takes:
            await asyncio.Event().wait()
        message = json.loads(text)
        self.told.append(message["type"])
        if message["type"].startswith(("some.", "other.")):
            self.texts.append(message)
            self.times.append(time.monotonic())

    async def close(self, code: int, reason: str) -> None:
        self.closed.append(code)


async def until(is_so: Callable[[], object]) -> None:
    """Let the loop go on until something is so."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def new_page() -> Page:
    return Page(SharedEngine(EngineSettings(1, 1), lambda type, payload: None))


@contextlib.asynccontextmanager
async def attached(takes: bool = True) -> AsyncIterator[tuple[Page, Wire]]:
    page, wire = new_page(), Wire(takes)
    writing = await page.attach(wire)  # type: ignore[arg-type]
    yield page, wire
    writing.cancel()


def test_of_states_the_latest_is_sent_and_not_too_often() -> None:
    async def main() -> Wire:
        async with attached() as (page, wire):
            for number in range(100):
                page.show("some.state", {"number": number})
                await asyncio.sleep(0.004)
            await until(lambda: wire.texts and wire.texts[-1]["payload"]["number"] == 99)
            return wire

    wire = asyncio.run(main())
    numbers = [text["payload"]["number"] for text in wire.texts]
    assert numbers == sorted(numbers) and numbers[-1] == 99
    assert 3 <= len(numbers) <= (wire.times[-1] - wire.times[0]) / SHOW_S + 2


def test_what_is_said_after_a_state_comes_after_it() -> None:
    async def main() -> None:
        async with attached() as (page, wire):
            page.show("some.state", {"number": 1})
            page.show("other.state", {"number": 2})
            page.send("some.end", {})
            await until(lambda: len(wire.texts) >= 3)
            await asyncio.sleep(SHOW_S)
            assert [text["type"] for text in wire.texts] == ["some.state", "some.end", "other.state"]

    asyncio.run(main())


def test_a_page_that_takes_nothing_is_given_up() -> None:
    async def main() -> None:
        async with attached(takes=False) as (page, _):
            for number in range(_MOST_WAITING + 10):
                page.send("some.thing", {"number": number})
                if number == 0:
                    await asyncio.sleep(0.01)
            await until(lambda: not page.is_open)
        wire = Wire()  # it comes back
        writing = await page.attach(wire)  # type: ignore[arg-type]
        await until(lambda: "board.kept" in wire.told)
        writing.cancel()
        assert wire.told[0::7] == ["engine.state", "board.kept"]

    asyncio.run(main())


def test_what_a_handler_shows_to_nobody_is_dropped() -> None:
    page = new_page()
    for _ in range(10_000):
        page.send("some.thing", {})
        page.show("some.state", {})
    assert not page._said and not page._shown
