"""A server in this process, and a page that talks to it; and a server and its page in a browser. Needs the extra `web`,
Starlette's test client httpx2, Playwright and Chromium."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browsing import ARGUMENTS, CHROMIUM, Server, opened

from psearch.faces.web.server import Access

PORT = 8960
ADDRESS = f"http://127.0.0.1:{PORT}"
SOCKET = f"ws://127.0.0.1:{PORT}/socket"

try:
    import httpx2  # noqa: F401
    import uvicorn  # noqa: F401
    import websockets  # noqa: F401
    from starlette.testclient import TestClient, WebSocketTestSession

    MISSING = ""
except ModuleNotFoundError as error:
    MISSING = f"{error.name} is not installed (pip install '.[dev]')"


class Talk:
    """A page: says things, and waits for what it is told."""

    def __init__(self, session: WebSocketTestSession) -> None:
        self._session = session
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def say(self, type: str, **payload: Any) -> None:
        self._session.send_text(json.dumps({"type": type, "payload": payload}))

    def say_text(self, text: str) -> None:
        self._session.send_text(text)

    def say_bytes(self, data: bytes) -> None:
        self._session.send_bytes(data)

    def hear(self, type: str, when: Callable[[dict[str, Any]], bool] = lambda payload: True) -> dict[str, Any]:
        """The next message of a type that is as it should be; what comes before it is kept in `heard`."""
        while True:
            heard, payload = self.hear_any()
            if heard == type and when(payload):
                return payload

    def hear_error(self) -> dict[str, Any]:
        while True:
            heard, payload = self.hear_any()
            if heard.endswith(".error"):
                return payload

    def hear_any(self) -> tuple[str, dict[str, Any]]:
        message = json.loads(self._session.receive_text())
        assert message.keys() == {"type", "payload"}
        self.heard.append((message["type"], message["payload"]))
        return message["type"], message["payload"]


@pytest.fixture
def access() -> Access:
    return Access(PORT)


@pytest.fixture
def named() -> dict[str, Any]:
    return {}


@pytest.fixture
def client(access: Access, kernels: None, named: dict[str, Any]) -> Iterator[TestClient]:
    """A browser that has not opened the address yet."""
    if MISSING:
        pytest.skip(MISSING)
    from psearch.faces.web.page import Pages
    from psearch.faces.web.server import make_app
    from psearch.faces.web.shared_engine import SharedSettings

    app = make_app(access, lambda: Pages(SharedSettings(threads=2, hash_mb=2, **named)))
    with TestClient(app, base_url=ADDRESS) as found:
        yield found


@pytest.fixture
def visitor(client: TestClient, access: Access) -> TestClient:
    assert client.get(access.address).status_code == 200
    return client


@pytest.fixture
def connect(visitor: TestClient) -> Callable[..., contextlib.AbstractContextManager[Talk]]:
    @contextlib.contextmanager
    def open_page(name: str = "a" * 32) -> Iterator[Talk]:
        with visitor.websocket_connect(f"{SOCKET}?page={name}", headers={"origin": ADDRESS}) as session:
            talk = Talk(session)
            talk.hear("review.state")
            yield talk

    return open_page


@pytest.fixture
def talk(connect: Callable[..., contextlib.AbstractContextManager[Talk]]) -> Iterator[Talk]:
    with connect() as page:
        yield page


@pytest.fixture(scope="module")
def server(kernels: None) -> Iterator[Server]:
    found = Server()
    yield found
    status, said = found.interrupt()
    assert status == 130 and "Traceback" not in said


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install '.[dev]')")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium (apt-get install chromium)")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    with opened(browser, server) as found:
        yield found
