"""All pages that are open, with the engine that they share."""

from __future__ import annotations

import time
from typing import Any

from psearch.faces.web.messages import load_handlers
from psearch.faces.web.page import Page
from psearch.faces.web.shared_engine import EngineSettings, SharedEngine

MOST_PAGES = 24
"""Most pages; the one that was left longest ago is given up for a new one."""
_KEPT_S = 1800.0
"""Time for which the board of a page that is gone is kept, in seconds."""


class Pages:
    """Pages by the names that they give themselves, random numbers that a tab keeps when it is reloaded."""

    def __init__(self, settings: EngineSettings) -> None:
        load_handlers()
        self._settings = settings
        self._shared_engine: SharedEngine | None = None
        self._pages: dict[str, Page] = {}

    @property
    def shared_engine(self) -> SharedEngine:
        """What they share; from `start` on."""
        assert self._shared_engine is not None
        return self._shared_engine

    def start(self) -> None:
        """Begin to start the engine. In the loop."""
        self._shared_engine = SharedEngine(self._settings, self._tell_all)
        self._shared_engine.start()

    def page(self, page_id: str) -> Page | None:
        """Return the page of this name, a new one if need be; None when there are too many."""
        self._forget_old()
        found = self._pages.get(page_id)
        if found is None:
            if len(self._pages) >= MOST_PAGES and not self._forget_one():
                return None
            found = self._pages[page_id] = Page(self.shared_engine)
        return found

    async def close(self) -> None:
        """End everything."""
        for page in self._pages.values():
            await page.hang_up(1001, "the server has ended")
            page.close()
        self._pages.clear()
        if self._shared_engine is not None:
            await self._shared_engine.close()

    def _tell_all(self, type: str, payload: dict[str, Any]) -> None:
        for page in self._pages.values():
            page.send(type, payload)

    def _forget_old(self) -> None:
        now = time.monotonic()
        for page_id, page in list(self._pages.items()):
            if page.left_at is not None and now - page.left_at > _KEPT_S:
                self._give_up(page_id)

    def _forget_one(self) -> bool:
        left = {page_id: page.left_at for page_id, page in self._pages.items() if page.left_at is not None}
        if not left:
            return False
        self._give_up(min(left, key=lambda page_id: left[page_id]))
        return True

    def _give_up(self, page_id: str) -> None:
        self._pages.pop(page_id).close()
