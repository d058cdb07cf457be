"""The connection to a page: its WebSocket, the messages to it, and the handlers of messages from it.

It outlives the WebSocket, so that a reload of the page loses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from psearch.faces.web.messages import Payload, message, parse, part_of
from psearch.faces.web.shared_engine import SharedEngine
from psearch.results import PsearchError
from psearch.text.values import shown

SHOW_S = 0.05
"""Least time between two updates of the same state, in seconds."""
PATIENCE_S = 10.0
"""Time that a closed page has to return before its searches end, in seconds."""
_CLOSE_S = 2.0
"""Longest time that the long work of a page may take to end, in seconds."""
_MOST_WAITING = 2_000
"""Most unsent messages of a page. With more it is closed, and gets the whole state when it returns."""
_MOST_UNHANDLED = 32
"""Most queued messages of a part; receiving waits while the queue is full."""
_CORE = ("board", "analysis", "engine", "play", "review")
"""Parts that share one queue, since their messages concern the same board."""


class Connection(ABC):
    """Connects a page with its parts. Used in the event loop's thread only."""

    def __init__(self, shared_engine: SharedEngine) -> None:
        self.shared_engine = shared_engine
        self.handlers: dict[str, Callable[[Payload], object]] = {}
        """Handlers of payloads by type of message, added by the parts; they may be coroutines."""
        self.left_at: float | None = time.monotonic()
        """Time when its WebSocket closed; None while it has one."""
        self._socket: WebSocket | None = None
        self._said: deque[str] = deque()
        self._shown: dict[str, Mapping[str, Any]] = {}
        """Latest unsent states by type."""
        self._has_news = asyncio.Event()
        self._queues: dict[str, asyncio.Queue[tuple[str, Payload]]] = {}
        self._leaving: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    def come(self) -> None:
        """Send the whole state to a page that has opened or returned."""

    @abstractmethod
    def leave(self) -> None:
        """End the searches of the page, which was closed."""

    @property
    def is_open(self) -> bool:
        """Tell whether the page has a WebSocket to send to."""
        return self._socket is not None

    def send(self, type: str, payload: Mapping[str, Any]) -> None:
        """Send a message to the page."""
        if self._socket is None:
            return
        for name in [name for name in self._shown if part_of(name) == part_of(type)]:
            self._said.append(message(name, self._shown.pop(name)))  # earlier states of the part go first
        self._said.append(message(type, payload))
        self._has_news.set()
        if len(self._said) > _MOST_WAITING:
            socket = self._socket
            self.detach(socket)
            self._said.clear()
            self._shown.clear()
            self.begin("page", _close(socket, 1013, "the page is too slow"))

    def show(self, type: str, payload: Mapping[str, Any]) -> None:
        """Send a state soon; a newer one of the same type replaces it."""
        if self._socket is not None:
            if not self._shown:
                self._has_news.set()
            self._shown[type] = payload

    def begin(self, part: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run long work in the background until the page closes; show its PsearchErrors in this part of the page."""

        async def guarded() -> None:
            try:
                await work
            except PsearchError as error:
                self.send(f"{part}.error", {"text": str(error)})
            except Exception as error:  # a bug: report it to the page and in the log
                self.send(f"{part}.error", {"text": f"unexpected error: {shown(error)}"})
                raise

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def attach(self, socket: WebSocket) -> asyncio.Task[None]:
        """Use a new WebSocket and send the whole state. Return the sending task, to be cancelled at the end."""
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
        """Forget a closed WebSocket."""
        if self._socket is socket:
            self._socket = None
            self.left_at = time.monotonic()
            self._leaving = asyncio.get_running_loop().call_later(PATIENCE_S, self.leave)

    async def close(self, reason: str = "") -> None:
        """Close the page and its WebSocket."""
        if self._socket is not None:
            await _close(self._socket, 1001, reason)
        if self._leaving is not None:
            self._leaving.cancel()
        self.leave()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:  # their processes end before the program does, which would see them die
            await asyncio.wait(tasks, timeout=_CLOSE_S)

    async def _write(self, socket: WebSocket) -> None:
        """Send messages, and states at most once per `SHOW_S`."""
        next_show = 0.0
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # closed or closing
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
        """Queue a message for its part; wait while the queue is full."""
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
        while True:
            type, payload = await queue.get()
            try:
                answer = self.handlers[type](payload)
                if asyncio.iscoroutine(answer):
                    await answer
            except PsearchError as error:
                self.send(f"{part_of(type)}.error", {"text": str(error)})
            except Exception as error:  # a bug, which must not end the connection
                print(f"psearch: {type}: {error!r}", file=sys.stderr)
                self.send(f"{part_of(type)}.error", {"text": "unexpected error: see the server's terminal"})


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # closed or closing
        await socket.close(code, reason)
