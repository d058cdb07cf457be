"""The server: files, one WebSocket for each page, and nothing else. Listens on 127.0.0.1 only.

Files are read from the package when it starts: a request names one of these or nothing.
It answers before it can search: what takes long to import, and the engine, come in the background.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import hashlib
import re
import secrets
import socket as sockets
import sys
from collections.abc import AsyncIterator, Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from psearch.faces.web.access import SAFE_HEADERS, Access
from psearch.faces.web.messages import LONGEST
from psearch.processes.control import SearchControl
from psearch.results import PsearchError

if TYPE_CHECKING:
    from psearch.faces.web.pages import Pages

_STATIC = Path(__file__).parent / "static"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""What else lies there (licences, the list of what was taken from others) is not for the page."""
PAGE = "/"
_PAGE_FILE = "/index.html"
HOST = "127.0.0.1"
SOCKET = "/socket"
_LONGEST_REQUEST = 1 << 14
"""bytes of the head of a request"""
_PAGE_ID = re.compile(r"[0-9a-f]{16,64}")
_POLICY_VIOLATION = 1008
_TRY_LATER = 1013
_COURTESY_S = 0.5
"""How long the engine waits for a page before it starts."""
_PATIENCE_S = 2
"""How long connections may take to end when the server does."""
_STRANGER_S = 5.0
"""How long a connection may last on which no cookie of a page was shown."""
_MOST_STRANGERS = 64
"""Most such connections at a time; for one more the oldest ends."""
_BACKLOG = 64
"""Connections that wait to be taken. asyncio takes so many in a row, before any of them can be found to be too many."""
_OPEN_THE_ADDRESS = "Open the address that psearch serve has printed: it has a token, which this one lacks.\n"


@dataclass(frozen=True)
class StaticFile:
    """What is sent."""

    data: bytes
    kind: str
    """the media type"""
    tag: str
    """the entity tag: changes with the data"""


def read_files() -> dict[str, StaticFile]:
    """Return every file of the page by its path in the address; the page itself is at `/`. Raises OSError."""
    found = {}
    for path in sorted(_STATIC.rglob("*")):
        kind = _KINDS.get(path.suffix)
        if kind is not None and path.is_file():
            data = path.read_bytes()
            tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
            found["/" + path.relative_to(_STATIC).as_posix()] = StaticFile(data, kind, tag)
    found[PAGE] = found.pop(_PAGE_FILE)
    return found


def listen(port: int) -> sockets.socket:
    """Return a socket that listens on 127.0.0.1; port 0: any that is free. Raises PsearchError when the port is
    taken."""
    listener = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
    try:
        listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PsearchError(f"port {port} is in use: give another, as --port {port + 1}, or any, --port 0") from None
        raise PsearchError(f"cannot listen on port {port}: {error.strerror}") from None
    return listener


def make_app(access: Access, open_pages: Callable[[], Pages]) -> Starlette:
    """Return the application. open_pages: makes what pages need, in a thread; it may take a while."""
    files = read_files()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.is_asked = asyncio.Event()
        app.state.pages = asyncio.create_task(_started(app.state.is_asked, open_pages))
        try:
            yield
        finally:
            app.state.is_asked.set()
            await asyncio.wait([app.state.pages])
            if app.state.pages.exception() is None:  # one that there was has been told
                await app.state.pages.result().close()

    async def answer(request: Request) -> Response:
        return _file(request, access, files)

    async def talk(websocket: WebSocket) -> None:
        await _talk(websocket, access)

    app = Starlette(
        routes=[Route("/{path:path}", answer, methods=["GET"]), WebSocketRoute(SOCKET, talk)], lifespan=lifespan
    )
    app.add_middleware(_Safe, access=access)
    return app


def run(
    listener: sockets.socket,
    access: Access,
    open_pages: Callable[[], Pages],
    control: SearchControl,
    began: Callable[[], None],
) -> None:
    """Serve until `control` is stopped. began: called when requests are answered."""
    config = uvicorn.Config(
        make_app(access, open_pages),
        ws="websockets-sansio",
        ws_max_size=LONGEST,
        ws_per_message_deflate=False,
        h11_max_incomplete_event_size=_LONGEST_REQUEST,
        http=functools.partial(_Connection, access=access, strangers={}),  # type: ignore[arg-type]  # it is only called
        loop="asyncio",
        lifespan="on",
        backlog=_BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_PATIENCE_S,
    )
    server = _Server(config)

    async def serve() -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:  # from a handler of signals
            loop.call_soon_threadsafe(server.leave)

        control.attach(stop)
        if control.is_stopped:
            return
        loop.call_soon(began)
        try:
            await server.serve(sockets=[listener])
        finally:
            control.attach(None)

    asyncio.run(serve())


class _Server(uvicorn.Server):
    """Leaves signals to the command line."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield

    def leave(self) -> None:
        self.should_exit = True


class _Connection(H11Protocol):
    """Ends soon unless it shows the cookie: nobody else shall use up the connections that a process may have."""

    def __init__(
        self, *args: Any, access: Access, strangers: dict[asyncio.Transport, asyncio.TimerHandle], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._access = access
        self._strangers = strangers
        """those that have not shown it, of all connections, the oldest first"""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._strangers[transport] = self.loop.call_later(_STRANGER_S, self._end, transport)
        if len(self._strangers) > _MOST_STRANGERS:
            self._end(next(iter(self._strangers)))

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport in self._strangers and self.headers and self._access.knows(self.headers):
            self._strangers.pop(self.transport).cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end(self.transport)

    def _end(self, transport: asyncio.Transport) -> None:
        timer = self._strangers.pop(transport, None)
        if timer is not None:
            timer.cancel()
            transport.abort()


class _Safe:
    """Refuses what is not for this server, and says with every answer what the page may do."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def say(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                message = {**message, "headers": [*message.get("headers", ()), *SAFE_HEADERS]}
            await send(message)

        headers = scope["headers"]
        is_ours = self._access.is_host(headers)
        if scope["type"] == "websocket":
            if is_ours and self._access.is_origin(headers):
                await self._app(scope, receive, say)
            else:
                await _refuse_socket(receive, say)
        elif is_ours:
            await self._app(scope, receive, say)
        else:
            await PlainTextResponse("This server has another name.\n", 421)(scope, receive, say)


async def _refuse_socket(receive: Receive, send: Send) -> None:
    await receive()  # the request to connect
    await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": ""})


def _file(request: Request, access: Access, files: dict[str, StaticFile]) -> Response:
    """Return a file of the page to a request with the token, or with the cookie that was given for it."""
    headers = request.scope["headers"]
    path = request.scope["path"]
    tokens = parse_qs(request.scope["query_string"].decode("latin-1")).get("token", [])
    has_token = path == PAGE and len(tokens) == 1 and access.takes(tokens[0])
    if not has_token and not access.knows(headers):
        return PlainTextResponse(_OPEN_THE_ADDRESS, 403)
    file = files.get(path)
    if file is None:
        return PlainTextResponse("There is no such file.\n", 404)
    found = {"etag": file.tag, "cache-control": "no-store" if path == PAGE else "no-cache"}
    if has_token:
        found["set-cookie"] = access.cookie
    if request.headers.get("if-none-match") == file.tag and path != PAGE:
        return Response(None, 304, found)
    return Response(file.data, 200, found, media_type=file.kind)


class _Pipe:
    """A WebSocket as a page wants it."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def send(self, text: str) -> None:
        try:
            await self._websocket.send_text(text)
        except (WebSocketDisconnect, RuntimeError) as error:  # it is closed, or being closed
            raise ConnectionError(str(error)) from None

    async def close(self, code: int, reason: str) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await self._websocket.close(code, reason)


async def _talk(websocket: WebSocket, access: Access) -> None:
    """One WebSocket, from its beginning to its end."""
    await websocket.accept()
    websocket.app.state.is_asked.set()
    pipe = _Pipe(websocket)
    if not access.knows(websocket.scope["headers"]):  # told to the page, which would try again and again
        await pipe.close(_POLICY_VIOLATION, "psearch serve was started anew: open the address that it has printed")
        return
    wanted = websocket.query_params.get("page", "")
    page_id = wanted if _PAGE_ID.fullmatch(wanted) else secrets.token_hex(16)
    try:
        pages = await asyncio.shield(websocket.app.state.pages)
    except PsearchError as error:
        await pipe.close(_TRY_LATER, str(error)[:120])
        return
    page = pages.page(page_id)
    if page is None:
        await pipe.close(_POLICY_VIOLATION, "there are too many tabs: close some, and reload")
        return
    writing = await page.attach(pipe)
    page.tell_everything()
    try:
        while True:
            message: MutableMapping[str, Any] = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                break
            text = message.get("text")
            if text is None:
                page.send("page.error", {"text": "a message is not text"})
            else:
                await page.receive(text)
    except (WebSocketDisconnect, RuntimeError):
        pass  # it was closed from here
    finally:
        page.detach(pipe)
        writing.cancel()


async def _started(is_asked: asyncio.Event, open_pages: Callable[[], Pages]) -> Pages:
    """What pages need, with the engine on its way. Raises what importing and making it does.

    In a thread: python-chess, and what imports it, takes a while. A browser that is being opened comes first: the page
    needs none of it to be drawn, and asks for it with its first WebSocket.
    """
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(is_asked.wait(), _COURTESY_S)
    try:
        pages = await asyncio.to_thread(open_pages)
    except Exception as error:
        print(f"psearch: {error!r}", file=sys.stderr)
        raise
    pages.start()
    return pages
