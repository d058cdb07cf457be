"""The server: files, one WebSocket for each page, and nothing else. Listens on 127.0.0.1 only.

Files are read from the package when it starts: a request names one of these or nothing.
It answers before it can search: what takes long to import, and the engine, come in the background.

It serves this machine's user, by the address that was printed, and the page that it opened. A browser lets every page
of the web send requests to 127.0.0.1. So each request must name this server as its host (names that others have made
point here do not pass), must show the token, which only the printed address has, and a WebSocket must come from a page
of this server. What is answered may load nothing from elsewhere, and run nothing that is not a file of the package.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import hashlib
import os
import re
import secrets
import socket as sockets
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from psearch.faces.web.messages import LONGEST
from psearch.processes.control import SearchControl
from psearch.results import PsearchError

if TYPE_CHECKING:
    from psearch.faces.web.page import Pages

_STATIC = Path(__file__).parent / "static"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""What else lies there (licences, the list of what was taken from others) is not for the page."""
PAGE = "/"
HOST = "127.0.0.1"
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
Headers = Iterable[tuple[bytes, bytes]]
"""Headers of a request as ASGI has them: names in lower case."""
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",  # the pieces are in chessground's style sheets
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_SAFE_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every answer."""
_TOKEN_BYTES = 24
_FIRST_LOOK_S = 60.0
"""How long the address that a browser is started with is good for, once."""


class Access:
    """Knows the port and the token. port: where the server listens on 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._once: str | None = None
        self._once_until = 0.0
        ports = (f":{port}", "") if port == 80 else (f":{port}",)  # browsers leave 80 out
        self._hosts = {name + end for name in ("127.0.0.1", "localhost") for end in ports}

    @property
    def address(self) -> str:
        """Return what the user opens; it is good as long as the server runs."""
        return f"http://127.0.0.1:{self.port}/?token={self._token}"

    def address_for_once(self) -> str:
        """Return the address for the command line of a browser, which everybody on the machine can read: good for one
        request."""
        self._once = secrets.token_urlsafe(_TOKEN_BYTES)
        self._once_until = time.monotonic() + _FIRST_LOOK_S
        return f"http://127.0.0.1:{self.port}/?token={self._once}"

    @property
    def cookie(self) -> str:
        """Return the cookie of a page that came with the token. Ports share their cookies, so the name has the port."""
        return f"psearch-{self.port}={self._token}; Path=/; HttpOnly; SameSite=Strict"

    def is_host(self, headers: Headers) -> bool:
        """Tell whether the request is for this server, by the one name or the other."""
        return _only(headers, b"host") in self._hosts

    def is_origin(self, headers: Headers) -> bool:
        """Tell whether a page of this server asks."""
        return _only(headers, b"origin").removeprefix("http://") in self._hosts

    def takes(self, token: str) -> bool:
        """Tell whether the address had the token."""
        if secrets.compare_digest(token.encode(), self._token.encode()):
            return True
        once, self._once = self._once, None
        if once is None or time.monotonic() > self._once_until:
            return False
        if secrets.compare_digest(token.encode(), once.encode()):
            return True
        self._once = once
        return False

    def knows(self, headers: Headers) -> bool:
        """Tell whether the request has the cookie of a page that came with the token."""
        wanted = self.cookie.partition(";")[0].encode()
        cookies = b"; ".join(value for key, value in headers if key == b"cookie").split(b"; ")
        # compared as they are: other programs on 127.0.0.1 have theirs, which need not be well-formed
        return any([secrets.compare_digest(cookie, wanted) for cookie in cookies])


def _only(headers: Headers, name: bytes) -> str:
    """Return the header that a request must have once; else nothing."""
    values = [value.decode("latin-1") for key, value in headers if key == name]
    return values[0] if len(values) == 1 else ""


class StaticFile(NamedTuple):
    """Holds a file of the page, its media type, and its entity tag, which changes with the data."""

    data: bytes
    kind: str
    tag: str


def read_files() -> dict[str, StaticFile]:
    """Return every file of the page by its path in the address; the page itself is at `/`. Raises OSError."""
    found = {}
    for path in sorted(_STATIC.rglob("*")):
        kind = _KINDS.get(path.suffix)
        if kind is not None and path.is_file():
            data = path.read_bytes()
            tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
            found["/" + path.relative_to(_STATIC).as_posix()] = StaticFile(data, kind, tag)
    found[PAGE] = found.pop("/index.html")
    return found


def listen(port: int) -> sockets.socket:
    """Return a socket that listens on 127.0.0.1; port 0: any that is free. Raises PsearchError when the port is
    taken."""
    try:
        return sockets.create_server((HOST, port), backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PsearchError(f"port {port} is in use: give another, as --port {port + 1}, or any, --port 0") from None
        raise PsearchError(f"cannot listen on port {port}: {os.strerror(error.errno or 0)}") from None


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

    routes = [
        Route("/{path:path}", answer, methods=["GET"]),
        WebSocketRoute("/socket", functools.partial(_talk, access=access)),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
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
        http=functools.partial(_GuardedProtocol, access=access, strangers={}),  # type: ignore[arg-type]  # it is only called
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
            loop.call_soon_threadsafe(setattr, server, "should_exit", True)

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


class _GuardedProtocol(H11Protocol):
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
                message = {**message, "headers": [*message.get("headers", ()), *_SAFE_HEADERS]}
            await send(message)

        headers = scope["headers"]
        is_ours = self._access.is_host(headers)
        if scope["type"] == "websocket":
            if is_ours and self._access.is_origin(headers):
                await self._app(scope, receive, say)
            else:
                await receive()  # the request to connect
                await say({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": ""})
        elif is_ours:
            await self._app(scope, receive, say)
        else:
            await PlainTextResponse("This server has another name.\n", 421)(scope, receive, say)


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


async def _talk(websocket: WebSocket, access: Access) -> None:
    """Serve one WebSocket, from its beginning to its end."""
    await websocket.accept()
    websocket.app.state.is_asked.set()
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it was closed from here, or from there
        if not access.knows(websocket.scope["headers"]):  # told to the page, which would try again and again
            reason = "psearch serve was started anew: open the address that it has printed"
            return await websocket.close(_POLICY_VIOLATION, reason)
        wanted = websocket.query_params.get("page", "")
        page_id = wanted if _PAGE_ID.fullmatch(wanted) else secrets.token_hex(16)
        try:
            pages: Pages = await asyncio.shield(websocket.app.state.pages)
        except PsearchError as error:
            return await websocket.close(_TRY_LATER, str(error)[:120])
        page = await pages.page(page_id)
        if page is None:
            return await websocket.close(_POLICY_VIOLATION, "there are too many tabs: close some, and reload")
        writing = await page.attach(websocket)
        try:
            while (message := await websocket.receive())["type"] != "websocket.disconnect":
                text = message.get("text")
                if text is None:
                    page.send("page.error", {"text": "a message is not text"})
                else:
                    await page.receive(text)
        finally:
            page.detach(websocket)
            writing.cancel()


async def _started(is_asked: asyncio.Event, open_pages: Callable[[], Pages]) -> Pages:
    """Return what pages need, with the engine on its way. Raises what importing and making it does.

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
