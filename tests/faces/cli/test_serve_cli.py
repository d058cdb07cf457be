"""`psearch serve` as a program: how it begins, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import PSEARCH, descendants, needs_web

Run = Callable[..., tuple[int, str, str]]
WORDS = ["serve", "--no-browser", "--threads", "2", "--hash", "2"]


@pytest.fixture
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*PSEARCH, *WORDS, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def address(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    return server.stdout.readline().strip()


@needs_web
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_its_workers(server: subprocess.Popen[str], number: signal.Signals, kernels: None) -> None:
    url = address(server)
    with urllib.request.urlopen(url) as answer:
        assert b"<title>psearch</title>" in answer.read()
    until = time.monotonic() + 60
    while len(workers := descendants(server.pid)) < 3:  # two, and who forks them
        assert time.monotonic() < until
        time.sleep(0.05)
    server.send_signal(number)
    out, said = server.communicate(timeout=60)
    assert server.returncode == 128 + number
    assert out == "" and said == "psearch: serving on this machine only; Ctrl-C ends it\n"
    until = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{pid}") for pid in workers):
        assert time.monotonic() < until
        time.sleep(0.05)


@needs_web
def test_a_signal_at_once(server: subprocess.Popen[str]) -> None:
    """Before anybody has asked for anything, and while the engine starts."""
    address(server)
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=60)
    assert server.returncode == 130
    assert "Traceback" not in said


@needs_web
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--game", "gone.py"], "cannot read the game 'gone.py'"),
        (["--policy", "gone.py"], "cannot read the policy 'gone.py'"),
        (["--policy", "magic"], "policy must be one of"),
        (["--with", "gone.py"], "cannot read the file 'gone.py'"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_line(run: Run, words: list[str], said: str) -> None:
    status, out, err = run(*WORDS, "--port", "0", *words)
    assert (status, out, err.count("\n")) == (2, "", 1) and err.startswith(f"psearch: {said}")


@needs_web
def test_without_the_token_it_answers_nobody(server: subprocess.Popen[str]) -> None:
    base = address(server).partition("?")[0]
    for path in ("", "?token=guessed", "app.js", "socket"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(base + path)
        assert caught.value.code in (403, 404)
        caught.value.close()


@needs_web
def test_a_message_that_is_too_long_ends_its_connection_only(server: subprocess.Popen[str], kernels: None) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    base, _, token = address(server).partition("?token=")
    port = base.split(":")[2].strip("/")

    def open_socket() -> Any:
        return connect(
            f"ws://127.0.0.1:{port}/socket",
            origin=f"http://127.0.0.1:{port}",  # type: ignore[arg-type]  # it is a str
            additional_headers={"Cookie": f"psearch-{port}={token}"},
        )

    with open_socket() as socket, pytest.raises(ConnectionClosed) as caught:
        socket.send("x" * (1 << 21))
        while True:
            socket.recv(timeout=60)
    assert caught.value.rcvd is not None and caught.value.rcvd.code == 1009
    with open_socket() as socket:
        assert '"engine.state"' in socket.recv(timeout=60)


@needs_web
def test_only_this_machine_can_reach_it(server: subprocess.Popen[str]) -> None:
    port = int(address(server).split(":")[2].partition("/")[0])
    with socket.socket() as other:
        other.settimeout(2)
        with pytest.raises(OSError):  # refused, or no such way
            other.connect(("127.0.0.2", port))


@needs_web
def test_a_port_that_is_in_use(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = f"psearch: port {port} is in use: use another, such as --port {port + 1}, or any with --port 0\n"
        assert run(*WORDS, "--port", str(port)) == (2, "", said)


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "websockets"])
def test_without_the_extra(missing: str, tmp_path: Path) -> None:
    for name in ("starlette", "uvicorn", "websockets"):  # whatever is installed here
        code = f"raise ModuleNotFoundError('no {name}', name={name!r})\n" if name == missing else ""
        (tmp_path / f"{name}.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*PSEARCH, *WORDS], capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"psearch: {missing} is not installed: pip install starlette uvicorn websockets\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "65536"], "argument --port: must be a whole number from 0 to 65535, not '65536'"),
        (["--hash", "16777216"], "does not fit in the"),
        (["startpos"], "psearch serve takes no 'startpos'"),
    ],
)
def test_bad_arguments(run: Run, words: list[str], said: str) -> None:
    status, _, err = run("serve", *words)
    assert status == 2 and said in err and err.count("\n") == 1
