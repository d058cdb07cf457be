"""The UCI engine for tests, as a process or in this one: what it says and when, with nothing taken on trust."""

from __future__ import annotations

import queue
import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import chess
from programs import PIPES, PSEARCH

from psearch.faces.uci.uci_conversation import Uci

TIMEOUT_S = 120.0
"""generous: the first of these tests may have to compile the kernels"""

_NUMBER = r"-?[0-9]+"
_MOVE = r"[a-h][1-8][a-h][1-8][nbrq]?"
INFO = re.compile(
    rf"info depth (?P<depth>{_NUMBER}) seldepth (?P<seldepth>{_NUMBER}) multipv (?P<multipv>{_NUMBER})"
    rf" score (?P<score>cp {_NUMBER}|mate {_NUMBER})(?P<bound> lowerbound| upperbound|)"
    rf"( wdl (?P<wdl>[0-9]+ [0-9]+ [0-9]+))?"
    rf" nodes (?P<nodes>[0-9]+) nps (?P<nps>[0-9]+) hashfull (?P<hashfull>[0-9]+) tbhits (?P<tbhits>[0-9]+)"
    rf" time (?P<time>[0-9]+)( pv(?P<pv>( {_MOVE})+))?"
)
"""Every line with a score, from begin to end: integers only."""
LIVE = re.compile(
    rf"info depth [0-9]+ nodes [0-9]+ nps [0-9]+ hashfull [0-9]+ time [0-9]+( currmove {_MOVE} currmovenumber [0-9]+)?"
)
BESTMOVE = re.compile(rf"bestmove ({_MOVE}|\(none\))( ponder {_MOVE})?")


class Client:
    """Sends lines, waits for lines. A context manager that insists on a clean end."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [*PSEARCH, *words], stdin=subprocess.PIPE, bufsize=1, start_new_session=True, **PIPES
        )
        self.lines: queue.SimpleQueue[tuple[float, str | None]] = queue.SimpleQueue()
        self.log: list[str] = []
        self.errors = ""
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.put((time.perf_counter(), line.rstrip("\n")))
        self.lines.put((time.perf_counter(), None))

    def _read_errors(self) -> None:
        self.errors = self.process.stderr.read()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is not None:
            self.process.kill()
        else:
            self.send("quit")
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            for thread in self._threads:
                thread.join(60)
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                stream.close()
        if exception[0] is None:
            assert (self.process.returncode, self.errors) == (0, "")

    def send(self, *lines: str) -> float:
        """Send lines; when."""
        self.process.stdin.write("".join(line + "\n" for line in lines))
        self.process.stdin.flush()
        return time.perf_counter()

    def until(self, is_last: Callable[[str], bool], timeout_s: float = TIMEOUT_S) -> tuple[float, list[str]]:
        """Lines up to the first that fits, and when that came."""
        found = []
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                when, line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nothing came after {found}") from None
            assert line is not None, f"the engine left after {found}: {self.errors}"
            self.log.append(line)
            found.append(line)
            if is_last(line):
                return when, found

    def wait_for(self, text: str, timeout_s: float = TIMEOUT_S) -> list[str]:
        return self.until(lambda line: line == text, timeout_s)[1]

    def ready(self) -> list[str]:
        self.send("isready")
        return self.wait_for("readyok")

    def answer(self, timeout_s: float = TIMEOUT_S) -> tuple[float, list[str]]:
        """Lines up to `bestmove`, and when it came."""
        return self.until(lambda line: line.startswith("bestmove"), timeout_s)

    def go(self, words: str, position: str = "position startpos") -> list[str]:
        """Search, check every line that comes, and return them."""
        self.send(position, f"go {words}")
        lines = self.answer()[1]
        check_lines(lines, board_of(position))
        return lines

    def nothing_for(self, seconds: float) -> None:
        """No line that answers or complains comes for some time; infos may."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                _, line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return
            self.log.append(line)
            assert line.startswith("info depth"), line


def workers_of(client: Client) -> list[int]:
    """Worker processes: forked by the fork server, so children of a child."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    return [worker for server in children.get(client.process.pid, []) for worker in children.get(server, [])]


def board_of(position: str) -> chess.Board:
    """The board that a position command describes."""
    words = position.split()[1:]
    cut = words.index("moves") if "moves" in words else len(words)
    board = chess.Board() if words[0] == "startpos" else chess.Board(" ".join(words[1:cut]), chess960=True)
    if words[0] != "startpos" and not set(words[3]) & set("ABCDEFGHabcdefgh"):
        board.chess960 = False
    for word in words[cut + 1 :]:
        board.push_uci(word)
    return board


def infos(lines: list[str]) -> list[dict[str, str]]:
    """The fields of all lines with a score."""
    return [match.groupdict() for match in map(INFO.fullmatch, lines) if match]


def check_lines(lines: list[str], board: chess.Board) -> None:
    """All lines of a search are well formed, all moves are legal, and the reply is that of the last line shown."""
    *before, last = lines
    for line in before:
        if line.startswith("info string"):
            continue
        if line.startswith("info depth 0 score"):
            continue
        assert INFO.fullmatch(line) or LIVE.fullmatch(line), line
    for info in infos(before):
        walk = board.copy()
        for word in (info["pv"] or "").split():
            walk.push_uci(word)
        assert int(info["seldepth"]) >= 0
        assert 0 <= int(info["hashfull"]) <= 1000
        if info["wdl"]:
            assert sum(map(int, info["wdl"].split())) == 1000
    assert BESTMOVE.fullmatch(last), last
    words = last.split()
    if words[1] == "(none)":
        assert not any(board.legal_moves)
    else:
        board = board.copy()
        board.push_uci(words[1])
        if len(words) > 2:
            board.push_uci(words[3])
        last_lines = [info["pv"].split() for info in infos(before) if info["multipv"] == "1" and info["pv"]]
        if last_lines and last_lines[-1][0] == words[1]:
            assert last_lines[-1][1:2] == words[3:4], last


class Talk:
    """A conversation in a thread; a context manager that insists on an end. `said` gets what the engine says."""

    def __init__(self) -> None:
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.input: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.uci = Uci(self.said.put)
        self.thread = threading.Thread(target=lambda: self.uci.run(iter(self.input.get, None)))

    def __enter__(self) -> Talk:
        self.thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.input.put(None)
        self.thread.join(60)
        if exception[0] is None:
            assert not self.thread.is_alive()

    def send(self, *lines: str) -> None:
        for line in lines:
            self.input.put(line)

    def until(self, start: str, timeout_s: float = TIMEOUT_S) -> list[str]:
        """Lines up to the first that begins so."""
        lines: list[str] = []
        while not lines or not lines[-1].startswith(start):
            lines += self.said.get(timeout=timeout_s).split("\n")
        return lines

    def ready(self) -> list[str]:
        self.send("isready")
        return self.until("readyok")

    def go(self, words: str, fen: str) -> list[str]:
        """Search, check every line that comes, and return them."""
        self.send(f"position fen {fen}", f"go {words}")
        lines = self.until("bestmove")
        check_lines(lines, chess.Board(fen))
        return lines
