"""The connection to a page: its WebSocket, what is said to it, and who handles what it says.

It outlives the WebSocket: a reload finds everything as it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from psearch.faces.web.messages import Payload, message, parse, part_of
from psearch.faces.web.shared_engine import SharedEngine
from psearch.results import PsearchError
from psearch.text.values import shown

SHOW_S = 0.05
"""Least time between two messages about the same state, in seconds."""
PATIENCE_S = 3.0
"""How long a page that is gone may take to come back before what is searched for it ends."""
_MOST_WAITING = 2_000
"""Most messages that a page has not taken. With more it is frozen, and is told everything when it comes back."""
_MOST_UNHANDLED = 32
"""Messages of a part that wait for the one before them. The page waits with the next."""
_CORE = ("board", "analysis", "engine", "play", "review")
"""Parts whose messages are handled in one queue, as they are about the same board."""


class Connection:
    """Connects a page with its parts. For the loop's thread only."""

    def __init__(self, shared_engine: SharedEngine) -> None:
        self.shared_engine = shared_engine
        self.handlers: dict[str, Callable[[Payload], object]] = {}
        """what handles a payload, by the type of the message; each part adds its own, which may be coroutines. A
        PsearchError that one raises goes to the page as an error of its part"""
        self.left_at: float | None = time.monotonic()
        """when its WebSocket went; None while it has one"""
        self._socket: WebSocket | None = None
        self._said: deque[str] = deque()
        self._shown: dict[str, Mapping[str, Any]] = {}
        """the latest states, by type, that have not been sent"""
        self._has_news = asyncio.Event()
        self._queues: dict[str, asyncio.Queue[tuple[str, Payload]]] = {}
        self._leaving: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def come(self) -> None:
        """Tell everything to a page that has just come, or come back."""
        raise NotImplementedError

    def leave(self) -> None:
        """End what is searched, since nobody looks any more."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """Tell whether the page has a WebSocket to send to."""
        return self._socket is not None

    def send(self, type: str, payload: Mapping[str, Any]) -> None:
        """Say something to the page."""
        if self._socket is None:
            return
        for name in [name for name in self._shown if part_of(name) == part_of(type)]:
            self._said.append(message(name, self._shown.pop(name)))  # what came first is said first
        self._said.append(message(type, payload))
        self._has_news.set()
        if len(self._said) > _MOST_WAITING:
            socket = self._socket
            self.detach(socket)
            self._said.clear()
            self._shown.clear()
            self.begin("page", _close(socket, 1013, "the page does not keep up"))

    def show(self, type: str, payload: Mapping[str, Any]) -> None:
        """Say a state of which only the latest matters."""
        if self._socket is not None:
            if not self._shown:
                self._has_news.set()
            self._shown[type] = payload

    def begin(self, part: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something in the background that takes longer than a message may. It ends with the page at the latest; a
        PsearchError in it is shown in this part of the page."""

        async def guarded() -> None:
            try:
                await work
            except PsearchError as error:
                self.send(f"{part}.error", {"text": str(error)})
            except Exception as error:  # a fault of ours: the page shall know, and the log
                self.send(f"{part}.error", {"text": f"this should not happen: {shown(error)}"})
                raise

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def attach(self, socket: WebSocket) -> asyncio.Task[None]:
        """Take a WebSocket, and tell it everything; one that the page had before is closed. Returns what sends to it
        until it is cancelled."""
        former, self._socket = self._socket, socket
        if former is not None:
            await _close(former, 4001, "this board was opened in another tab")
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        self.left_at = None
        self._said.clear()
        self._shown.clear()
        writing = asyncio.create_task(self._write(socket))
        self.come()
        return writing

    def detach(self, socket: WebSocket) -> None:
        """Detach from the WebSocket, which is gone."""
        if self._socket is socket:
            self._socket = None
            self.left_at = time.monotonic()
            self._leaving = asyncio.get_running_loop().call_later(PATIENCE_S, self.leave)

    async def close(self, reason: str = "") -> None:
        """Close the page, and its WebSocket, if it has one."""
        if self._socket is not None:
            await _close(self._socket, 1001, reason)
        if self._leaving is not None:
            self._leaving.cancel()
        self.leave()
        for task in self._tasks:
            task.cancel()

    async def _write(self, socket: WebSocket) -> None:
        """Send what there is to say, states at most once in `SHOW_S`."""
        next_show = 0.0
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it is closed, or being closed
            while self._socket is socket:
                wait_s = max(0.0, next_show - time.monotonic()) if self._shown else None
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._has_news.wait(), wait_s)
                self._has_news.clear()
                while self._said and self._socket is socket:
                    await socket.send_text(self._said.popleft())
                if self._shown and time.monotonic() >= next_show:
                    next_show = time.monotonic() + SHOW_S
                    latest, self._shown = self._shown, {}
                    for name, payload in latest.items():
                        await socket.send_text(message(name, payload))

    async def receive(self, text: str) -> None:
        """Receive a message. Returns when there is room for the next."""
        try:
            type, payload = parse(text)
            if type not in self.handlers:
                raise PsearchError(f"no such message: {type[:40]!r}")
        except PsearchError as error:
            self.send("page.error", {"text": str(error)})
            return
        part = part_of(type)
        name = "core" if part in _CORE else part
        if name not in self._queues:
            self._queues[name] = asyncio.Queue(_MOST_UNHANDLED)
            self.begin(part, self._handle(self._queues[name]))
        await self._queues[name].put((type, payload))

    async def _handle(self, queue: asyncio.Queue[tuple[str, Payload]]) -> None:
        """Handle the messages of one queue, one after the other."""
        while True:
            type, payload = await queue.get()
            try:
                answer = self.handlers[type](payload)
                if asyncio.iscoroutine(answer):
                    await answer
            except PsearchError as error:
                self.send(f"{part_of(type)}.error", {"text": str(error)})
            except Exception as error:  # a fault of ours, which must not end the conversation
                print(f"psearch: {type}: {error!r}", file=sys.stderr)
                self.send(f"{part_of(type)}.error", {"text": "this should not happen: see the server's terminal"})


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it is closed, or being closed
        await socket.close(code, reason)
