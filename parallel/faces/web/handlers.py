"""Messages of the page, by type, and the functions that they run.

A message is one JSON object in a text frame of the WebSocket: `{"type": "workers.watch", "payload": {...}}`
(the payload may be left out). What comes back has the same form. The first word of a type, up to the dot, is the part
of the page it belongs to. A module declares what it takes, and is listed in `MODULES`:

    @handles("workers.watch")
    async def watch(page: Page, payload: Payload) -> None:
        page.send("workers.state", {...})

What a handler raises as PsearchError goes to the page as `{"type": "workers.error", "payload": {"text": ...}}`. A
payload is whatever the page says, so handlers check it (`psearch.faces.web.payloads`).
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from psearch.results import PsearchError

Payload = Mapping[str, Any]
"""What a message says, as JSON gives it: nothing in it has been checked."""


Handler = Callable[[Any, Payload], Awaitable[None]]
"""Takes the page and a payload. Messages of one part are handled one after the other, those of others meanwhile."""
H = TypeVar("H", bound=Handler)

MODULES: tuple[str, ...] = (
    "psearch.faces.web.page_conversation",
    "psearch.faces.web.workers_messages",
    "psearch.faces.web.laboratory_messages",
    "psearch.faces.web.game_messages",
)
"""Modules with handlers, imported once, when the server has begun to answer."""
_HANDLERS: dict[str, Handler] = {}


def handles(type: str) -> Callable[[H], H]:
    """Declare the handler of a type of messages. Raises ValueError when it has another already."""

    def declare(handler: H) -> H:
        if _HANDLERS.setdefault(type, handler) is not handler:
            raise ValueError(f"two handlers for {type}")
        return handler

    return declare


def load_handlers() -> None:
    """Import what is listed in `MODULES`."""
    for name in MODULES:
        importlib.import_module(name)


def handler_of(type: str) -> Handler:
    """Return the handler of a type. Raises PsearchError when there is none."""
    handler = _HANDLERS.get(type)
    if handler is None:
        raise PsearchError(f"no such message: {type[:40]!r}")
    return handler
