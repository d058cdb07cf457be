"""`laboratory.*` and `trace.*`: the position at hand in virtual time, and traces that the page sends.

    page                                            server
    laboratory.hello {}                             laboratory.choices {policies, most_workers, nodes, pruning, drivers,
                                                    rules}, and again what was said last
    laboratory.run {workers, first, second, nodes,  laboratory.progress {text, share}, ...; at last one of
                    pruning, driver, rules}         laboratory.result, laboratory.error {text}, laboratory.stopped {}
    laboratory.stop {}
    trace.begin {characters}                        the same, with trace. before it
    trace.part {text}, ...                          in order, until there are as many characters

Policies and rules are the package's, and files of the command line: a page chooses among these. A trace comes as text:
no file of this machine is opened because a page names it. Work is done by one process at a time
(`psearch.lab.watching.job`), which ends with the page that asked for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from psearch.defaults import STUDY_DRIVERS
from psearch.faces.web.messages import Payload, choice_of, handles, text_of, whole_of
from psearch.faces.web.page import Page
from psearch.lab.watching.job import BackgroundJob
from psearch.lab.watching.laboratory import LEAST_NODES, MOST_NODES, MOST_WORKERS
from psearch.lab.watching.trace_reading import MOST_CHARACTERS
from psearch.results import PsearchError
from psearch.settings import SPLITTING_POLICIES
from psearch_core import DEFAULT_PRUNING, PRUNING_MODES

LONGEST_PART = 1 << 16
_NODES = (20_000, 100_000, 400_000, 1_500_000)
"""Sizes of trees that the page offers."""


class _BackgroundWork:
    """What one page has had done, and what it is sending."""

    running: _BackgroundWork | None = None
    """the one that works: searches in virtual time would only slow each other down"""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._job: BackgroundJob | None = None
        self.wanted = 0
        """characters of a trace that is being sent"""
        self.parts: list[str] = []
        self.so_far = 0
        """characters of them"""
        self.latest: tuple[str, dict[str, Any]] | None = None
        """what was said last, for a page that is loaded again"""

    def begin(self, task: str, arguments: Mapping[str, Any], kind: str) -> None:
        """Have it done. Raises PsearchError while there is other work."""
        if _BackgroundWork.running is not None:
            whose = "this page" if _BackgroundWork.running is self else "another page"
            raise PsearchError(f"{whose} has something computed still: stop that first, or wait")
        loop = asyncio.get_running_loop()

        def tell(message: str, payload: dict[str, Any]) -> None:
            try:
                loop.call_soon_threadsafe(self._tell, kind, message, payload)
            except RuntimeError:  # the server has ended
                return

        self._job = BackgroundJob(task, arguments, tell)
        _BackgroundWork.running = self

    def _tell(self, kind: str, message: str, payload: dict[str, Any]) -> None:
        if message != "progress":
            self._job = None
            if _BackgroundWork.running is self:
                _BackgroundWork.running = None
        self.latest = f"{kind}.{message}", payload
        if self._page.is_open:
            self._page.send(*self.latest)

    def expect(self, characters: int) -> None:
        """Expect a trace of so many; 0: none."""
        self.parts, self.so_far, self.wanted = [], 0, characters

    def stop(self) -> None:
        """End what is being done, and forget what was sent."""
        self.expect(0)
        if self._job is not None:
            self._job.stop()


def _policies(page: Page) -> list[str]:
    return list(dict.fromkeys((*SPLITTING_POLICIES, *page.settings.policies)))


def _rules(page: Page) -> list[str]:
    return list(dict.fromkeys(("", page.settings.rules)))


@handles("laboratory.hello")
async def hello(page: Page, payload: Payload) -> None:
    """Tell what can be chosen."""
    page.send(
        "laboratory.choices",
        {
            "policies": _policies(page),
            "most_workers": MOST_WORKERS,
            "nodes": list(_NODES),
            "pruning": list(PRUNING_MODES),
            "drivers": list(STUDY_DRIVERS),
            "rules": _rules(page),
        },
    )
    latest = page.part(_BackgroundWork).latest
    if latest is not None:
        page.send(*latest)


@handles("laboratory.run")
async def run(page: Page, payload: Payload) -> None:
    """Compare two policies on the position at hand."""
    board = page.board
    if not any(board.legal_moves):
        raise PsearchError("the game is over in this position: there is nothing to search")
    arguments = {
        "fen": board.fen(),
        "chess960": board.chess960,
        "workers": whole_of(payload, "workers", 1, MOST_WORKERS),
        "policies": tuple(choice_of(payload, name, _policies(page)) for name in ("first", "second")),
        "nodes": whole_of(payload, "nodes", LEAST_NODES, MOST_NODES),
        "pruning": choice_of(payload, "pruning", PRUNING_MODES) if "pruning" in payload else DEFAULT_PRUNING,
        "driver": choice_of(payload, "driver", STUDY_DRIVERS) if "driver" in payload else STUDY_DRIVERS[0],
        "rules": choice_of(payload, "rules", _rules(page)) if "rules" in payload else "",
    }
    page.part(_BackgroundWork).begin("experiment", arguments, "laboratory")


@handles("laboratory.stop")
async def stop(page: Page, payload: Payload) -> None:
    """End it."""
    page.part(_BackgroundWork).stop()


@handles("trace.begin")
async def begin_trace(page: Page, payload: Payload) -> None:
    """Begin to take a trace of so many characters."""
    page.part(_BackgroundWork).expect(whole_of(payload, "characters", 1, MOST_CHARACTERS))


@handles("trace.part")
async def take_part(page: Page, payload: Payload) -> None:
    """Take some of them; after the last ones the trace is read."""
    work = page.part(_BackgroundWork)
    if not work.wanted:
        raise PsearchError("there is no trace that this could be a part of")
    part = text_of(payload, "text", LONGEST_PART)
    work.parts.append(part)
    work.so_far += len(part)
    if work.so_far < work.wanted:
        return
    text, is_too_long = "".join(work.parts), work.so_far > work.wanted
    work.expect(0)
    if is_too_long:
        raise PsearchError("the trace is longer than was said")
    work.begin("trace", {"text": text}, "trace")
