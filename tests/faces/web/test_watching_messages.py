"""What pages say about workers and laboratory, without a server: handlers, and a session that keeps what is sent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import chess
import pytest
from paths import REPOSITORY

import psearch
from psearch.faces.web import laboratory_messages, workers_messages
from psearch.faces.web.laboratory_messages import LONGEST_PART
from psearch.faces.web.shared_engine import EngineSettings
from psearch.options import SearchOptions
from psearch.results import PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator

MIDDLE_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10"
MATED = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3"


class Page:
    """A session that keeps what is sent."""

    def __init__(self, engine: psearch.AsyncEngine | None = None, fen: str = MIDDLE_GAME) -> None:
        self._engine = engine
        self.board = chess.Board(fen)
        self.settings = EngineSettings(2, 1)
        self.is_open = True
        self.sent: list[tuple[str, Any]] = []
        self._parts: dict[Any, Any] = {}

    @property
    def engine(self) -> psearch.AsyncEngine:
        if self._engine is None:
            raise PsearchError("the engine is starting")
        return self._engine

    def send(self, type: str, payload: Mapping[str, Any]) -> None:
        assert self.is_open
        self.sent.append((type, json.loads(json.dumps(payload))))

    show = send

    def part(self, kind: Callable[[Page], Any]) -> Any:
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        return self._parts[kind]

    def close(self) -> None:
        self.is_open = False
        for part in self._parts.values():
            part.stop()

    def of(self, type: str) -> list[Any]:
        return [payload for sent, payload in self.sent if sent == type]

    async def wait_for(self, *types: str, seconds: float = 240) -> str:
        """The first of these that is there."""
        await self.until(lambda: any(sent in types for sent, _ in self.sent), seconds)
        return next(sent for sent, _ in self.sent if sent in types)

    async def until(self, is_so: Callable[[], bool], seconds: float = 60) -> None:
        """Let the loop go on until something is so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, [sent for sent, _ in self.sent]
            await asyncio.sleep(0.02)


def test_snapshots_come_while_there_is_a_search_and_are_confirmed() -> None:
    async def main() -> None:
        async with psearch.AsyncEngine(threads=2, hash_mb=1, watched=True) as engine:
            page = Page(engine)
            await workers_messages.watch(page, {})
            await asyncio.sleep(0.3)
            assert not page.sent, "nothing is searched"
            with await engine.analysis(MIDDLE_GAME):
                await page.until(lambda: len(page.sent) >= 3)
                await asyncio.sleep(0.3)
                assert len(page.sent) == 3, "a page that confirms nothing gets no more"
                confirmed = 0
                while len(page.sent) <= 8:
                    await workers_messages.seen(page, {})
                    confirmed += 1
                    assert confirmed < 1_000
                    await asyncio.sleep(0.02)
                assert len(page.sent) <= confirmed + 3
                await workers_messages.rest(page, {})
                count = len(page.sent)
                await asyncio.sleep(0.2)
                assert len(page.sent) == count
                await workers_messages.watch(page, {"first": 1})
                await page.until(lambda: len(page.sent) > count)
            for _ in range(200):
                await workers_messages.seen(page, {})
                await asyncio.sleep(0.05)
                if page.of("workers.look")[-1]["done"]:
                    break
            snapshots = page.of("workers.look")
            assert snapshots[-1]["done"] and not snapshots[-2]["done"], "the last one says that it is over"
            page.close()
            await asyncio.sleep(0.1)

    asyncio.run(main())


def test_a_page_that_comes_before_the_engine_waits() -> None:
    async def main() -> None:
        page = Page(None)
        await workers_messages.watch(page, {})
        await asyncio.sleep(0.1)
        assert not page.sent
        page.close()
        await asyncio.sleep(0.3)

    asyncio.run(main())


@pytest.mark.parametrize(
    "payload", [{"first": -1}, {"first": "x"}, {"first": 10**30}, {"first": None}, {"first": True}]
)
def test_bad_wishes_are_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(PsearchError):
        asyncio.run(workers_messages.watch(Page(), payload))


POLICY_FILE = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
RULE_FILE = str(REPOSITORY / "docs" / "examples" / "my_rule.py")
RUN = {"workers": 4, "first": "calibrated", "second": "ybw", "nodes": 10_000}


def test_an_experiment_runs_and_only_one_at_a_time() -> None:
    async def main() -> None:
        page, other = Page(), Page()
        await laboratory_messages.hello(page, {})
        (choices,) = page.of("laboratory.choices")
        assert {"calibrated", "ybw"} <= set(choices["policies"]) and "serial" not in choices["policies"]
        await laboratory_messages.run(page, RUN)
        with pytest.raises(PsearchError, match="another page has something computed"):
            await laboratory_messages.run(other, RUN)
        with pytest.raises(PsearchError, match="this page has something computed"):
            await laboratory_messages.run(page, RUN)
        assert await page.wait_for("laboratory.result", "laboratory.error") == "laboratory.result"
        assert page.of("laboratory.progress")
        (result,) = page.of("laboratory.result")
        assert result["fen"] == MIDDLE_GAME
        await laboratory_messages.hello(page, {})
        assert page.sent[-1] == ("laboratory.result", result), "a page that is loaded again finds it"
        await laboratory_messages.run(other, {**RUN, "nodes": 3_000_000, "workers": 64})
        await other.wait_for("laboratory.progress")
        await laboratory_messages.stop(other, {})
        await other.wait_for("laboratory.stopped", seconds=20)
        await laboratory_messages.stop(other, {})

    asyncio.run(main())


@pytest.mark.slow
def test_files_of_the_command_line_can_be_chosen() -> None:
    async def main() -> None:
        page = Page()
        page.settings = EngineSettings(2, 1, policies=(POLICY_FILE,), rules=RULE_FILE)
        await laboratory_messages.hello(page, {})
        (choices,) = page.of("laboratory.choices")
        assert choices["policies"][-1] == POLICY_FILE and choices["rules"] == ["", RULE_FILE]
        await laboratory_messages.run(page, {**RUN, "second": POLICY_FILE})
        assert await page.wait_for("laboratory.result", "laboratory.error") == "laboratory.result"
        assert page.of("laboratory.result")[0]["runs"][1]["policy"] == POLICY_FILE
        await laboratory_messages.run(page, {**RUN, "rules": RULE_FILE})
        await page.until(lambda: len(page.of("laboratory.result")) == 2, seconds=240)
        assert page.of("laboratory.result")[1]["pruning"] == "modern with my_rule.py"
        await laboratory_messages.run(page, {**RUN, "first": POLICY_FILE, "rules": RULE_FILE})
        await page.wait_for("laboratory.error")
        assert "put both into one file" in page.of("laboratory.error")[0]["text"]

    asyncio.run(main())


def test_a_page_that_closes_ends_its_work() -> None:
    async def main() -> None:
        page = Page()
        await laboratory_messages.run(page, {**RUN, "nodes": 3_000_000, "workers": 64})
        await page.wait_for("laboratory.progress")
        page.close()
        later = Page()
        for _ in range(1_000):
            try:
                await laboratory_messages.run(later, RUN)
                break
            except PsearchError:
                await asyncio.sleep(0.02)
        assert await later.wait_for("laboratory.result", "laboratory.error") == "laboratory.result"
        assert not [sent for sent, _ in page.sent if sent != "laboratory.progress"]

    asyncio.run(main())


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {**RUN, "workers": 0},
        {**RUN, "workers": 2.5},
        {**RUN, "nodes": 10**12},
        {**RUN, "first": "serial"},
        {**RUN, "second": ["ybw"]},
        {**RUN, "first": POLICY_FILE},
        {**RUN, "rules": POLICY_FILE},
        {**RUN, "pruning": "lmr=1"},
        {**RUN, "driver": "auto"},
    ],
)
def test_bad_experiments_are_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(PsearchError):
        asyncio.run(laboratory_messages.run(Page(), payload))


def test_a_finished_game_is_refused() -> None:
    with pytest.raises(PsearchError, match="nothing to search"):
        asyncio.run(laboratory_messages.run(Page(fen=MATED), RUN))


def test_a_trace_comes_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    simulator = Simulator(4, 1, Costs(), 1 << 12)
    simulator.search("", chess.Board(MIDDLE_GAME), 6, SearchOptions())
    assert simulator.recorder is not None
    simulator.recorder.write(path, {"policy": "calibrated"})
    simulator.close()
    text = path.read_text()

    async def main() -> None:
        page = Page()
        await laboratory_messages.begin_trace(page, {"characters": len(text)})
        for at in range(0, len(text), LONGEST_PART):
            await laboratory_messages.take_part(page, {"text": text[at : at + LONGEST_PART]})
        assert await page.wait_for("trace.result", "trace.error") == "trace.result"
        assert page.of("trace.result")[0]["workers"] == 4
        # and what is none
        await laboratory_messages.begin_trace(page, {"characters": 5})
        await laboratory_messages.take_part(page, {"text": "hello"})
        await page.wait_for("trace.error")
        with pytest.raises(PsearchError, match="no trace that this could be a part of"):
            await laboratory_messages.take_part(page, {"text": "more"})
        await laboratory_messages.begin_trace(page, {"characters": 5})
        with pytest.raises(PsearchError, match="longer than was said"):
            await laboratory_messages.take_part(page, {"text": "hello again"})
        for payload in ({"characters": 0}, {"characters": 1 << 40}, {}, {"path": "/etc/passwd"}):
            with pytest.raises(PsearchError):
                await laboratory_messages.begin_trace(page, payload)
        await laboratory_messages.begin_trace(page, {"characters": 10**6})
        with pytest.raises(PsearchError, match="longer than"):
            await laboratory_messages.take_part(page, {"text": "x" * (LONGEST_PART + 1)})

    asyncio.run(main())
