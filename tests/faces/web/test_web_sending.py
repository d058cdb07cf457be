"""What a page is told, and when: nothing is waited for, and of states only the latest is sent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
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
        """what no page is told at first"""
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


def test_of_states_the_latest_is_sent_and_not_too_often() -> None:
    async def main() -> Wire:
        page, wire = new_page(), Wire()
        writing = await page.attach(wire)
        for number in range(100):
            page.show("some.state", {"number": number})
            await asyncio.sleep(0.004)
        await until(lambda: wire.texts and wire.texts[-1]["payload"]["number"] == 99)
        writing.cancel()
        return wire

    wire = asyncio.run(main())
    numbers = [text["payload"]["number"] for text in wire.texts]
    assert numbers == sorted(numbers) and numbers[-1] == 99
    assert 3 <= len(numbers) <= (wire.times[-1] - wire.times[0]) / SHOW_S + 2


def test_what_is_said_after_a_state_comes_after_it() -> None:
    async def main() -> Wire:
        page, wire = new_page(), Wire()
        writing = await page.attach(wire)
        page.show("some.state", {"number": 1})
        page.show("other.state", {"number": 2})
        page.send("some.end", {})
        await until(lambda: len(wire.texts) >= 3)
        await asyncio.sleep(SHOW_S)
        writing.cancel()
        return wire

    types = [text["type"] for text in asyncio.run(main()).texts]
    assert types == ["some.state", "some.end", "other.state"]


def test_a_page_that_takes_nothing_is_given_up() -> None:
    async def main() -> tuple[Page, Wire]:
        page, wire = new_page(), Wire(takes=False)
        writing = await page.attach(wire)
        for number in range(_MOST_WAITING + 10):
            page.send("some.thing", {"number": number})
            if number == 0:
                await asyncio.sleep(0.01)
        await until(lambda: not page.is_open)
        writing.cancel()
        wire = Wire()  # it comes back
        writing = await page.attach(wire)
        await until(lambda: "board.kept" in wire.told)
        writing.cancel()
        return page, wire

    _, wire = asyncio.run(main())
    assert wire.told[0::7] == ["engine.state", "board.kept"]


def test_what_a_handler_shows_to_nobody_is_dropped() -> None:
    async def main() -> None:
        page = new_page()
        for _ in range(10_000):
            page.send("some.thing", {})
            page.show("some.state", {})
        assert not page._said and not page._shown

    asyncio.run(main())
