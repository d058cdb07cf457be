"""The server, on 127.0.0.1 only: serves the files of the page, and a WebSocket for each page.

All files are read from the package at the start; requests cannot reach others. The server answers before it can search:
slow imports and the engine start in the background.

Only the user of this machine is served. Since browsers let any web page send requests to 127.0.0.1, each request must
name this server as its host (which excludes DNS rebinding) and show the token of the printed address, and a WebSocket
must come from a page of this server. The content security policy allows only files of the package.
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
    ".gz": "application/gzip",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types of the files to serve; other files there, such as licences, are not served."""
PAGE = "/"
HOST = "127.0.0.1"
_LONGEST_REQUEST = 1 << 14
"""Longest head of a request, in bytes."""
_PAGE_ID = re.compile(r"[0-9a-f]{16,64}")
_POLICY_VIOLATION = 1008
_TRY_LATER = 1013
_COURTESY_S = 0.5
"""Time that the engine's start waits for the first page, in seconds."""
_PATIENCE_S = 2
"""Time for connections to close when the server ends, in seconds."""
_STRANGER_S = 5.0
"""Longest duration of a connection without the cookie, in seconds."""
_MOST_STRANGERS = 64
"""Most connections without the cookie; a further one closes the oldest."""
_BACKLOG = 64
"""Most connections that wait to be accepted; asyncio accepts this many at once, before they can be limited."""
_OPEN_THE_ADDRESS = "Open the address that psearch serve printed: this one lacks its token.\n"
Headers = Iterable[tuple[bytes, bytes]]
"""Headers of a request in ASGI form, with lower-case names."""
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
"""Headers of every response."""
_TOKEN_BYTES = 24
_FIRST_LOOK_S = 60.0
"""Validity of the one-time address that a browser is started with, in seconds."""


class Access:
    """Checks the access to the server. port: port on 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._once: str | None = None
        self._once_until = 0.0
        ports = (f":{port}", "") if port == 80 else (f":{port}",)  # browsers leave 80 out
        self._hosts = {name + end for name in ("127.0.0.1", "localhost") for end in ports}

    @property
    def address(self) -> str:
        """Return the address for the user, valid while the server runs."""
        return f"http://127.0.0.1:{self.port}/?token={self._token}"

    def address_for_once(self) -> str:
        """Return an address valid for one request, for the command line of a browser, which all users can read."""
        self._once = secrets.token_urlsafe(_TOKEN_BYTES)
        self._once_until = time.monotonic() + _FIRST_LOOK_S
        return f"http://127.0.0.1:{self.port}/?token={self._once}"

    @property
    def cookie(self) -> str:
        """Return the cookie for a page opened with the token. Its name has the port, because ports share cookies."""
        return f"psearch-{self.port}={self._token}; Path=/; HttpOnly; SameSite=Strict"

    def is_host(self, headers: Headers) -> bool:
        """Tell whether the request names this server as its host."""
        return _only(headers, b"host") in self._hosts

    def is_origin(self, headers: Headers) -> bool:
        """Tell whether the request comes from a page of this server."""
        return _only(headers, b"origin").removeprefix("http://") in self._hosts

    def takes(self, token: str) -> bool:
        """Tell whether a token is valid; a one-time token only once."""
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
        """Tell whether the request has the cookie."""
        wanted = self.cookie.partition(";")[0].encode()
        cookies = b"; ".join(value for key, value in headers if key == b"cookie").split(b"; ")
        # compared unparsed, since cookies of other programs on 127.0.0.1 may be malformed
        return any([secrets.compare_digest(cookie, wanted) for cookie in cookies])


def _only(headers: Headers, name: bytes) -> str:
    """Return a header that must occur exactly once; otherwise an empty text."""
    values = [value.decode("latin-1") for key, value in headers if key == name]
    return values[0] if len(values) == 1 else ""


class StaticFile(NamedTuple):
    """File of the page with its media type and its entity tag, a hash of the data."""

    data: bytes
    kind: str
    tag: str


def read_files() -> dict[str, StaticFile]:
    """Return every file of the page by URL path; the page itself is at `/`. Raises OSError."""
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
    """Return a socket that listens on 127.0.0.1. port: 0 for any free one. Raises PsearchError if the port is taken."""
    try:
        return sockets.create_server((HOST, port), backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PsearchError(
                f"port {port} is in use: use another, such as --port {port + 1}, or any with --port 0"
            ) from None
        raise PsearchError(f"cannot listen on port {port}: {os.strerror(error.errno or 0)}") from None


def make_app(access: Access, open_pages: Callable[[], Pages]) -> Starlette:
    """Return the application. open_pages: creates the pages, slowly, in a thread."""
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
            if app.state.pages.exception() is None:  # an exception has been reported already
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
    """Serve until `control` is stopped. began: called when the server answers requests."""
    config = uvicorn.Config(
        make_app(access, open_pages),
        ws="websockets-sansio",
        ws_max_size=LONGEST,
        ws_per_message_deflate=False,
        h11_max_incomplete_event_size=_LONGEST_REQUEST,
        http=functools.partial(_GuardedProtocol, access=access, strangers={}),  # type: ignore[arg-type]  # uvicorn only calls it
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
    """Server that leaves signals to the command line."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


class _GuardedProtocol(H11Protocol):
    """Connection that ends soon unless it shows the cookie, so that strangers cannot exhaust the descriptors."""

    def __init__(
        self, *args: Any, access: Access, strangers: dict[asyncio.Transport, asyncio.TimerHandle], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._access = access
        self._strangers = strangers
        """All connections without the cookie, oldest first."""

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
    """Middleware that refuses requests for other hosts or origins, and adds the security headers."""

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
    """Answer a request with the token or the cookie by a file of the page."""
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
    await websocket.accept()
    websocket.app.state.is_asked.set()
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # closed by either side
        if not access.knows(
            websocket.scope["headers"]
        ):  # accepted first, to give the reason; otherwise the page would retry
            reason = "psearch serve was restarted: open the address that it printed"
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
    """Create the pages in a thread, since imports are slow, and start the engine. Raises any error of these.

    A browser that is being opened goes first: the page can be drawn without the engine, until its first WebSocket.
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
