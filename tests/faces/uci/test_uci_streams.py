"""Standard input and output of the engine: lines of any bytes, signals, an other end that is gone or does not read."""

from __future__ import annotations

import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from limits import PEAK_KIB
from programs import PIPES, PSEARCH, processes_in_session
from timing import wait_until

from psearch.faces.uci.uci_streams import LONGEST_LINE, Streams

LONG = LONGEST_LINE + 1


class Pipes:
    def __init__(self) -> None:
        self.stdin, self.writer = os.pipe()
        self.reader, self.stdout = os.pipe()
        self.is_over = False
        self.complaints: list[str] = []
        self.streams = Streams(self.stdin, self.stdout, lambda: self.is_over)

    def lines(self) -> list[str]:
        return list(self.streams.lines(self.complaints.append))

    def send(self, data: bytes) -> None:
        """Write, from a thread: a pipe holds only so much; and close."""

        def write() -> None:
            with open(self.writer, "wb") as out:
                out.write(data)

        threading.Thread(target=write).start()

    def close(self) -> None:
        for descriptor in (self.stdin, self.reader, self.stdout):
            try:
                os.close(descriptor)
            except OSError:
                continue


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    made.close()


def test_lines_of_any_bytes(pipes: Pipes) -> None:
    name = b"a  b\xff\xe4\xc3\xa4"
    pipes.send(b"uci\r\n\n\x00\n" + name + b"\nquit")
    lines = pipes.lines()
    assert lines == ["uci\r", "", "\0", os.fsdecode(name), "quit"]
    assert os.fsencode(lines[3]) == name


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_that_is_too_long_is_left_out(pipes: Pipes, end: bytes) -> None:
    longest = b"y" * LONGEST_LINE
    pipes.send(
        b"uci\n" + b"x" * LONG + b"\n" + longest + b"\n" + b"z" * (3 * LONG) + b"\nisready\n" + b"q" * LONG + end
    )
    assert pipes.lines() == ["uci", longest.decode(), "isready"]
    assert len(pipes.complaints) == 2 + len(end)
    assert "a line of more than 262,144 bytes was ignored" in pipes.complaints[0]


def test_input_takes_memory_and_time_in_proportion() -> None:
    """40 MB in lines without an end, and one line of words that mean nothing."""
    line = "go " + "x " * (LONGEST_LINE // 2 - 10)
    given = (
        "x" * 40_000_000
        + "\n"
        + (line + "\n") * 3
        + "position startpos moves "
        + "g1f3 g8f6 f3g1 f6g8 " * 5000
        + "\nquit\n"
    )
    code = f"import sys\n{PEAK_KIB}\nfrom psearch.faces.uci.uci_conversation import Player, run_uci\n"
    code += "Player.start = lambda player: None\nrun_uci()\n"  # nothing is searched: only the reader counts
    code += "print(peak_kib() // 1024, file=sys.stderr)"
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, text=True, timeout=120)
    assert time.monotonic() - start < 30
    assert done.returncode == 0 and len(done.stdout) < 10_000
    assert int(done.stderr) < 150


def test_what_is_said_is_written_whole(pipes: Pipes) -> None:
    text = "x" * 300_000
    received = b""

    def read() -> None:
        nonlocal received
        while len(received) < len(text) + 4:
            received += os.read(pipes.reader, 1 << 16)

    thread = threading.Thread(target=read)
    thread.start()
    pipes.streams.say(text)
    pipes.streams.say("\udcff")
    thread.join(60)
    assert received.startswith(text.encode() + b"\n\\ud")


def test_a_reader_that_is_gone_ends_the_input(pipes: Pipes) -> None:
    os.close(pipes.reader)
    found: queue.SimpleQueue[object] = queue.SimpleQueue()

    def read() -> None:
        try:
            found.put(pipes.lines())
        except OSError as error:
            found.put(error)

    thread = threading.Thread(target=read)
    thread.start()
    pipes.streams.say("uciok")
    assert isinstance(found.get(timeout=60), BrokenPipeError)
    thread.join(60)
    pipes.streams.say("nobody hears this")


def test_a_reader_that_does_not_read_is_not_waited_for_at_the_end(pipes: Pipes) -> None:
    thread = threading.Thread(target=lambda: pipes.streams.say("x" * 1_000_000))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    pipes.is_over = True
    thread.join(60)
    assert not thread.is_alive()


def test_no_signal_is_missed_before_the_wait_for_a_line() -> None:
    """The handler runs between two steps of Python, the wait is one of them: the signal may come in between."""
    code = """
import os, signal, sys
from psearch.faces.uci.uci_streams import Streams
came = []
signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
with Streams(0, 1, lambda: bool(came)) as streams:
    read = streams._must_end
    def must_end():
        over = read()
        if not came:
            # arrives in this thread at the very moment when it goes to sleep, as far as Python can tell
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            os.kill(os.getpid(), signal.SIGUSR1)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        return over
    streams._must_end = must_end
    print(list(streams.lines(print)), came)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout.read() == f"[] [{int(signal.SIGUSR1)}]\n"


# As a process


def wait_until_gone(session: int) -> None:
    wait_until(lambda: not processes_in_session(session))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_stream_that_is_closed_while_the_engine_searches(stream: str) -> None:
    """The engine ends if stdout is closed, since nobody hears the answers. A closed stderr loses only complaints."""
    with subprocess.Popen(
        [*PSEARCH, "uci"], stdin=subprocess.PIPE, bufsize=1, start_new_session=True, **PIPES
    ) as engine:
        assert engine.stdin is not None and engine.stdout is not None and engine.stderr is not None
        engine.stdin.write("setoption name Threads value 2\ngo infinite\n")
        while not engine.stdout.readline().startswith("info depth 4"):
            pass
        if stream == "stdout":
            engine.stdout.close()
            assert engine.wait(60) == 128 + signal.SIGPIPE
        else:
            engine.stderr.close()
            engine.stdin.write("stop\n")
            while not engine.stdout.readline().startswith("bestmove"):
                pass
            engine.send_signal(signal.SIGTERM)
            assert engine.wait(60) == 128 + signal.SIGTERM
        wait_until_gone(engine.pid)


@pytest.mark.parametrize("redirections", ["<&-", ">&-", "2>&-", ">/dev/full", "2>/dev/full"])
def test_streams_that_are_closed_or_full_from_the_start(redirections: str) -> None:
    words = " ".join(f"'{word}'" for word in PSEARCH)
    command = f"printf 'uci\\nisready\\ngo depth 3\\n' | {words} uci {redirections}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, start_new_session=True)
    assert "Traceback" not in done.stderr and "internal error" not in done.stdout
    assert done.returncode == (1 if redirections.startswith(">") else 0)
    if redirections.startswith("2"):
        assert "readyok" in done.stdout and "bestmove" in done.stdout


def test_a_gui_that_stops_reading_and_closes_its_end() -> None:
    """The engine cannot write its lines; the end of the input ends it all the same."""
    with subprocess.Popen(
        [*PSEARCH, "uci"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as engine:
        engine.stdin.write(b"isready\n" + b"frobnicate\n" * 5000 + b"go infinite\n")
        engine.stdin.close()
        assert engine.stdout is not None
        assert select.select([engine.stdout], [], [], 120)[0], "it says something, so it has begun"
        time.sleep(1.0)
        engine.send_signal(signal.SIGTERM)
        assert engine.wait(60) == 128 + signal.SIGTERM
        wait_until_gone(engine.pid)
