"""The server: files and WebSockets for its own page, and for nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from psearch.faces.web.connection import _MOST_WAITING, SHOW_S
from psearch.faces.web.page import Page
from psearch.faces.web.shared_engine import SharedEngine, SharedSettings

pytest.importorskip("starlette", reason="starlette is not installed (pip install '.[dev]')")
pytest.importorskip("httpx2", reason="httpx2 is not installed (pip install '.[dev]')")

import httpx2
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from psearch.faces.web import server as server_module
from psearch.faces.web.messages import LONGEST
from psearch.faces.web.server import Access, listen, run
from psearch.processes.control import SearchControl
from psearch.results import PsearchError

ADDRESS = "http://127.0.0.1:8960"
SOCKET = "ws://127.0.0.1:8960/socket"


# -- files -------------------------------------------------------------------------------------------------------------


def test_without_the_token_there_is_nothing(client: TestClient) -> None:
    for path in ("/", "/app.js", "/?token=", "/?token=wrong", "/nothing"):
        answer = client.get(path)
        assert answer.status_code == 403, path
        assert "psearch serve" in answer.text
        assert "set-cookie" not in answer.headers


def test_the_token_is_taken_at_the_page_only(client: TestClient, access: Access) -> None:
    assert client.get("/app.js" + access.address.removeprefix(ADDRESS + "/")).status_code == 403


def test_the_page_and_its_files(client: TestClient, access: Access) -> None:
    page = client.get(access.address)
    assert page.status_code == 200
    assert "<title>psearch</title>" in page.text
    script = client.get("/app.js")  # the cookie is enough now
    assert script.status_code == 200
    assert script.headers["content-type"].startswith("text/javascript")
    again = client.get("/app.js", headers={"if-none-match": script.headers["etag"]})
    assert again.status_code == 304 and not again.content


def test_every_answer_says_what_the_page_may_do(visitor: TestClient) -> None:
    for path in ("/", "/app.js", "/nothing"):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/..%2fserver.py",
        "/%2e%2e/%2e%2e/results.py",
        "//etc/passwd",
        "/etc/passwd",
        "/vendor/manifest.json",
        "/static/app.js",
        "/app.js%00",
        "/app.js/",
    ],
)
def test_no_other_file(visitor: TestClient, path: str) -> None:
    assert visitor.get(path).status_code == 404


def test_other_methods_do_nothing(visitor: TestClient) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert visitor.request(method, "/").status_code == 405


def test_another_name_is_another_server(visitor: TestClient) -> None:
    for host in ("evil.example", "evil.example:8960", "127.0.0.1", "127.0.0.1:1"):
        answer = visitor.get("/", headers={"host": host})
        assert answer.status_code == 421
        assert "content-security-policy" in answer.headers


# -- WebSockets --------------------------------------------------------------------------------------------------------


def closing_code(client: TestClient, headers: dict[str, str]) -> int:
    """Return the code by which a refused WebSocket is closed."""
    with pytest.raises(WebSocketDisconnect) as caught, client.websocket_connect(SOCKET, headers=headers) as session:
        session.receive_text()
    return caught.value.code


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://127.0.0.1:8960", "http://127.0.0.1:8961", "null", ""]
)
def test_pages_of_others_get_no_socket(visitor: TestClient, origin: str) -> None:
    assert closing_code(visitor, {"origin": origin} if origin else {}) == 1008


def test_nor_does_another_name(visitor: TestClient) -> None:
    assert closing_code(visitor, {"origin": ADDRESS, "host": "evil.example:8960"}) == 1008


def test_nor_does_a_page_without_the_cookie(client: TestClient) -> None:
    assert closing_code(client, {"origin": ADDRESS}) == 1008


def test_a_page_is_told_everything_at_first(connect: Callable[..., Any]) -> None:
    with connect() as talk:
        types = [type for type, _ in talk.heard]
    assert types == [
        "engine.state",
        "board.tree",
        "board.position",
        "analysis.state",
        "play.state",
        "review.state",
    ]


def configuring(multipv: str, policy: str, pruning: str, evaluation: str, driver: str = '"null"') -> str:
    """A message of the page about how to search; values as JSON has them."""
    search = {"policy": policy, "pruning": pruning, "evaluation": evaluation, "driver": driver}
    payload = ", ".join(f'"{name}": {value}' for name, value in {"multipv": multipv, **search}.items())
    return f'{{"type": "analysis.configure", "payload": {{{payload}}}}}'


MALFORMED = [
    "",
    " ",
    "null",
    "[]",
    "17",
    '"board.move"',
    "{}",
    "{",
    '{"type": 1}',
    '{"type": ""}',
    '{"type": null, "payload": {}}',
    '{"type": "board.move", "payload": []}',
    '{"type": "board.move", "payload": "e2e4"}',
    '{"type": "no.such", "payload": {}}',
    '{"type": "__import__", "payload": {}}',
    '{"type": "' + "x" * 1000 + '"}',
    '{"type": "board.go", "payload": {"id": NaN}}',
    '{"type": "board.go", "payload": {"id": 1e400}}',
    '{"type": "board.go", "payload": {"id": -1}}',
    '{"type": "board.go", "payload": {"id": 1e300}}',
    '{"type": "board.go", "payload": {"id": "0"}}',
    '{"type": "board.go", "payload": {"id": true}}',
    '{"type": "board.go", "payload": {"id": ' + "9" * 6000 + "}}",
    "[" * 100_000,
    '{"type": "board.move"}',
    '{"type": "board.move", "payload": {"at": 0, "from": "e2", "to": "e5", "promotion": ""}}',
    '{"type": "board.move", "payload": {"at": 0, "from": "e2", "to": "e4", "promotion": "", "playing": 1}}',
    '{"type": "board.move", "payload": {"at": 0, "from": "e22", "to": "e4", "promotion": ""}}',
    '{"type": "board.say", "payload": {"text": "\\ud800"}}',
    '{"type": "board.say", "payload": {"text": 5}}',
    '{"type": "board.line", "payload": {"moves": ["e2e4", 5]}}',
    '{"type": "board.line", "payload": {"moves": ["xxxx"]}}',
    '{"type": "board.line", "payload": {"moves": "e2e4"}}',
    '{"type": "board.fen", "payload": {"text": "8/8/8/8/8/8/8/8 w - - 0 1"}}',
    '{"type": "board.fen", "payload": {"text": "/etc/passwd"}}',
    '{"type": "board.fen", "payload": {"text": "' + "8" * 5000 + '"}}',
    '{"type": "board.pgn", "payload": {"text": ""}}',
    '{"type": "board.pgn", "payload": {"text": "\\u0000"}}',
    '{"type": "board.chess960", "payload": {"number": 960}}',
    '{"type": "board.chess960", "payload": {"number": "any"}}',
    '{"type": "board.remove", "payload": {"id": 0}}',
    '{"type": "board.promote", "payload": {"id": 99}}',
    configuring("0", '"calibrated"', '"modern"', '"auto"'),
    configuring("1e9", '"calibrated"', '"modern"', '"auto"'),
    configuring("1", '"none"', '"modern"', '"auto"'),
    configuring("1", '["ybw"]', '"modern"', '"auto"'),
    configuring("1", '"ybw"', '"modern,lmr=9"', '"auto"'),
    configuring("1", '"ybw"', '"sound"', '"net"'),
    configuring("1", '"ybw"', '"modern"', '"auto"', '"mtd"'),
    configuring("1", '"ybw"', '"modern"', '"auto"', "null"),
    '{"type": "engine.configure", "payload": {"threads": 0, "hash": 1}}',
    '{"type": "engine.configure", "payload": {"threads": 100000, "hash": 1}}',
    '{"type": "engine.configure", "payload": {"threads": 1, "hash": 16777216}}',
    '{"type": "engine.configure", "payload": {"threads": 1.5, "hash": 1}}',
    '{"type": "play.start", "payload": {}}',
    '{"type": "play.start", "payload": {"color": "red"}}',
    '{"type": "play.start", "payload": {"color": "white", "elo": 9000, "fromHere": false}}',
    '{"type": "play.start", "payload": {"color": "white", "clock": -1, "increment": 0, "fromHere": false}}',
    '{"type": "play.start", "payload": {"color": "white", "clock": 60, "increment": 0, "fromHere": "no"}}',
    '{"type": "play.back", "payload": {}}',
    '{"type": "review.start", "payload": {"kind": "time", "amount": -1}}',
    '{"type": "review.start", "payload": {"kind": "files", "amount": 1}}',
    '{"type": "review.start", "payload": {"kind": "depth", "amount": 1e9}}',
    '{"type": "review.start", "payload": {"kind": "depth", "amount": 1}}',  # there are no moves
    '{"type": "workers.watch", "payload": {"first": -1}}',
    '{"type": "workers."}',
    '{"type": "laboratory.run", "payload": {"path": "/etc/passwd"}}',
    '{"type": "laboratory.magic"}',
    '{"type": "virtual.run", "payload": {"workers": 1e30}}',
    '{"type": "virtual.run", "payload": {"policies": ["' + "x" * 70_000 + '"]}}',
    '{"type": "game.search", "payload": {"position": null}}',
]


def mutated(texts: list[str], count: int, dice: random.Random) -> list[str]:
    """Messages with characters exchanged, left out or doubled."""
    found = []
    for _ in range(count):
        text = list(dice.choice([text for text in texts if 0 < len(text) < 500]))
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(text))
            text[at : at + 1] = dice.choice([[], [dice.choice('{}[]",:0x')], [text[at]] * 2])
            text = text or ["{"]
        found.append("".join(text))
    return found


def test_malformed_messages_are_refused_one_by_one(connect: Callable[..., Any]) -> None:
    """A hundred and more; each gets an answer in a line, and the page goes on as if nothing had been."""
    with connect() as talk:
        for text in MALFORMED:
            talk.say_text(text)
            payload = talk.hear_error()
            assert 0 < len(payload["text"]) < 400 and "\n" not in payload["text"], text
            assert "unexpected error" not in payload["text"], text
        for text in mutated(MALFORMED, 60, random.Random(17)):
            talk.say_text(text)
        talk.say_bytes(b"\x00\xff")
        talk.say("board.start")
        talk.hear("board.position", lambda position: position["id"] == 0 and len(position["dests"]) == 10)
        assert not [payload for _, payload in talk.heard if "unexpected error" in payload.get("text", "")]


def test_too_long_a_message(connect: Callable[..., Any]) -> None:
    with connect() as talk:
        talk.say("board.pgn", text="x" * LONGEST)  # uvicorn ends the connection before that
        assert "longer" in talk.hear("page.error")["text"]


# -- ports -------------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PsearchError, match=f"port {port} is in use"):
            listen(port)


def test_it_listens_on_this_machine_only() -> None:
    with listen(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


# -- connections of nobody ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving() -> Iterator[Access]:
    """A server on a port of its own, without an engine."""

    def no_pages() -> Any:
        raise PsearchError("no engine here")

    with listen(0) as listener:
        access = Access(listener.getsockname()[1])
        control, begun = SearchControl(), threading.Event()
        thread = threading.Thread(target=run, args=(listener, access, no_pages, control, begun.set))
        thread.start()
        try:
            assert begun.wait(60)
            yield access
        finally:
            control.stop()
            thread.join(60)


def test_half_open_connections_do_not_lock_the_owner_out() -> None:
    """There are only so many at a time, and the owner is answered while they are there."""
    with serving() as access, contextlib.ExitStack() as stack:
        opened = []
        for _ in range(3 * server_module._MOST_STRANGERS):
            opened.append(stack.enter_context(socket.create_connection(("127.0.0.1", access.port), 60)))
            opened[-1].sendall(b"GET / HTTP/1.1\r\n")
        assert httpx2.get(access.address, timeout=60).status_code == 200
        for connection in opened[: server_module._MOST_STRANGERS]:  # the oldest have ended for the others
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""


def test_a_flood_of_connections_takes_no_more_descriptors_than_there_are() -> None:
    """It would be a traceback a second on the terminal, and none would be left for workers."""
    run = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (250, 250))"
    run += "; from psearch.faces.cli.main import main; sys.exit(main(['serve', '--no-browser', '--port', '0']))"
    words = [sys.executable, "-c", run]
    with contextlib.ExitStack() as stack:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stack.enter_context(process)
        stack.callback(process.kill)
        address = process.stdout.readline().strip()
        assert httpx2.get(address, timeout=60).status_code == 200
        process.send_signal(signal.SIGSTOP)  # so that they come all at once
        for _ in range(500):
            stranger = stack.enter_context(socket.socket())
            stranger.setblocking(False)
            stranger.connect_ex(("127.0.0.1", int(address.split(":")[2].split("/")[0])))
        process.send_signal(signal.SIGCONT)
        assert httpx2.get(address, timeout=20).status_code == 200
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert said == "psearch: serving on this machine only; Ctrl-C ends it\n"


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n", b"GET /app.js HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"])
def test_a_connection_without_the_cookie_ends_soon(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_STRANGER_S", 0.2)
    with serving() as access, socket.create_connection(("127.0.0.1", access.port), 60) as connection:
        connection.sendall(said.replace(b"%d", b"%d" % access.port))
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(1024):  # until its end
                pass


def test_a_connection_with_the_cookie_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though another one ends meanwhile, and there are many others."""
    monkeypatch.setattr(server_module, "_STRANGER_S", 1.0)
    with serving() as access, socket.create_connection(("127.0.0.1", access.port), 60) as mine:
        cookie = access.cookie.partition(";")[0]
        asked = f"GET /app.js HTTP/1.1\r\nHost: 127.0.0.1:{access.port}\r\nCookie: {cookie}\r\n\r\n".encode()
        mine.sendall(asked)
        assert mine.recv(12) == b"HTTP/1.1 200"
        with (
            socket.create_connection(("127.0.0.1", access.port), 60) as other,
            contextlib.suppress(ConnectionResetError),
        ):
            assert other.recv(1) == b""  # 1 s later
        mine.sendall(asked)
        mine.shutdown(socket.SHUT_WR)
        answers = b""
        while part := mine.recv(65536):
            answers += part
        assert b"HTTP/1.1 200" in answers


# -- the token ---------------------------------------------------------------------------------------------------------


def token_of(address: str) -> str:
    return address.partition("?token=")[2]


def test_the_token_is_long_and_another_each_time(access: Access) -> None:
    assert len(token_of(access.address)) >= 32
    assert token_of(access.address) != token_of(Access(8960).address)


def test_only_the_token_is_taken(access: Access) -> None:
    token = token_of(access.address)
    assert access.takes(token)
    assert access.takes(token)  # as often as the user likes
    for other in ("", token[:-1], token + "a", token.swapcase(), "é"):
        assert not access.takes(other)


def test_the_address_for_a_browser_is_good_once(access: Access) -> None:
    once = token_of(access.address_for_once())
    assert not access.takes("something else")
    assert access.takes(once)
    assert not access.takes(once)


def test_that_address_does_not_last(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    once = token_of(access.address_for_once())
    monkeypatch.setattr("psearch.faces.web.server._FIRST_LOOK_S", 0.0)
    late = token_of(access.address_for_once())
    assert not access.takes(once)
    assert not access.takes(late)


@pytest.mark.parametrize("host", [b"127.0.0.1:8960", b"localhost:8960"])
def test_its_own_names(access: Access, host: bytes) -> None:
    assert access.is_host([(b"host", host)])
    assert access.is_origin([(b"origin", b"http://" + host)])


@pytest.mark.parametrize(
    "host", [b"", b"127.0.0.1", b"127.0.0.1:8961", b"evil.example", b"evil.example:8960", b"127.0.0.1:8960.evil.com"]
)
def test_other_names(access: Access, host: bytes) -> None:
    assert not access.is_host([(b"host", host)])
    assert not access.is_origin([(b"origin", b"http://" + host)])


def test_names_must_be_there_once(access: Access) -> None:
    good = (b"host", b"127.0.0.1:8960")
    assert not access.is_host([])
    assert not access.is_host([good, (b"host", b"evil.example")])
    assert not access.is_origin([(b"origin", b"null")])
    assert not access.is_origin([(b"origin", b"https://127.0.0.1:8960")])


def test_the_cookie(access: Access) -> None:
    pair, _, rest = access.cookie.partition("; ")
    assert "HttpOnly" in rest and "SameSite=Strict" in rest
    assert access.knows([(b"cookie", pair.encode())])
    assert access.knows([(b"cookie", b"other=1; " + pair.encode())])
    assert not access.knows([])
    assert not access.knows([(b"cookie", pair.encode()[:-1])])
    assert not access.knows([(b"cookie", b"psearch-1=" + pair.encode().partition(b"=")[2])])
    assert not Access(8960).knows([(b"cookie", pair.encode())])  # that of a server that ran here before


@pytest.mark.parametrize(
    "others",
    [
        'prefs={"theme": "dark"}',
        "version=1",
        "flag",
        'a="x y"; b=1 2',
        "",
        "=",
        "psearch-8960=stale",
        "a=\xff",
        "$Path=/",
    ],
)
def test_cookies_of_other_programs_do_no_harm(access: Access, others: str) -> None:
    """A browser sends those of every port of 127.0.0.1."""
    pair = access.cookie.partition("; ")[0]
    for cookie in (f"{others}; {pair}", f"{pair}; {others}", f"{others}; {pair}; {others}"):
        assert access.knows([(b"cookie", cookie.encode("latin-1"))]), cookie
    assert access.knows([(b"cookie", others.encode("latin-1")), (b"cookie", pair.encode())])
    assert not access.knows([(b"cookie", others.encode("latin-1"))])


def test_port_80_has_no_number() -> None:
    assert Access(80).is_host([(b"host", b"127.0.0.1")])


class Wire:
    """A WebSocket that keeps what it is given; or takes nothing."""

    def __init__(self, takes: bool = True) -> None:
        self.takes = takes
        self.told: list[str] = []
        self.texts: list[dict[str, Any]] = []
        """Texts that no page is told at first."""
        self.times: list[float] = []
        self.closed: list[int] = []

    async def send_text(self, text: str) -> None:
        if not self.takes:
            await asyncio.Event().wait()
        message = json.loads(text)
        self.told.append(message["type"])
        if message["type"].startswith(("some.", "other.")):
            self.texts.append(message)
            self.times.append(time.monotonic())

    async def close(self, code: int, reason: str) -> None:
        self.closed.append(code)


async def until(is_so: Callable[[], object]) -> None:
    """Let the loop go on until something is so."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def new_page() -> Page:
    return Page(SharedEngine(SharedSettings(1, 1), lambda type, payload: None))


@contextlib.asynccontextmanager
async def attached(takes: bool = True) -> AsyncIterator[tuple[Page, Wire]]:
    page, wire = new_page(), Wire(takes)
    writing = await page.attach(wire)  # type: ignore[arg-type]
    yield page, wire
    writing.cancel()


def test_of_states_the_latest_is_sent_and_not_too_often() -> None:
    async def main() -> Wire:
        async with attached() as (page, wire):
            for number in range(100):
                page.show("some.state", {"number": number})
                await asyncio.sleep(0.004)
            await until(lambda: wire.texts and wire.texts[-1]["payload"]["number"] == 99)
            return wire

    wire = asyncio.run(main())
    numbers = [text["payload"]["number"] for text in wire.texts]
    assert numbers == sorted(numbers) and numbers[-1] == 99
    assert 3 <= len(numbers) <= (wire.times[-1] - wire.times[0]) / SHOW_S + 2


def test_what_is_said_after_a_state_comes_after_it() -> None:
    async def main() -> None:
        async with attached() as (page, wire):
            page.show("some.state", {"number": 1})
            page.show("other.state", {"number": 2})
            page.send("some.end", {})
            await until(lambda: len(wire.texts) >= 3)
            await asyncio.sleep(SHOW_S)
            assert [text["type"] for text in wire.texts] == ["some.state", "some.end", "other.state"]

    asyncio.run(main())


def test_a_page_that_takes_nothing_is_given_up() -> None:
    async def main() -> None:
        async with attached(takes=False) as (page, _):
            for number in range(_MOST_WAITING + 10):
                page.send("some.thing", {"number": number})
                if number == 0:
                    await asyncio.sleep(0.01)
            await until(lambda: not page.is_open)
        wire = Wire()  # it comes back
        writing = await page.attach(wire)  # type: ignore[arg-type]
        await until(lambda: "board.kept" in wire.told)
        writing.cancel()
        assert wire.told[0::6] == ["engine.state", "board.kept"]

    asyncio.run(main())


def test_what_a_handler_shows_to_nobody_is_dropped() -> None:
    page = new_page()
    for _ in range(10_000):
        page.send("some.thing", {})
        page.show("some.state", {})
    assert not page._said and not page._shown
