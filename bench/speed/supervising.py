"""What the supervising process costs: the CPU time of the program beside its workers, and how often it wakes up.

    python bench/speed/supervising.py [--threads N] [--seconds S] [--moves N] [--only search,shown,uci,game,waiting]

search: a search of S seconds in this process, nobody looks; shown: the same with a callback for lines; uci: `psearch
uci` with `go movetime`; game: two of them, each with N workers, at 3 s + 0.03 s, for N moves each; waiting: one of
them while nothing is asked of it. Percent are of one core; CPU seconds are the kernel's, per process, so a loaded
machine changes little. In a game: of the whole time of the game, and per move.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import chess

from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits

POSITION = "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2Q1RK1 w - - 0 9"
CLOCK_MS, INCREMENT_MS = 3000, 30
ENGINE = [sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())", "uci"]
MODES = ("search", "shown", "uci", "game", "waiting")
_SCHEDULER_CLOCK = 2


def cpu_s(pid: int) -> float:
    """CPU time of a process with all its threads, to the nanosecond. Source: clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | _SCHEDULER_CLOCK)


def wakes(pid: int) -> int:
    """How often the threads of a process have given up their core to wait for something."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        line = next(line for line in status.read_text().splitlines() if line.startswith("voluntary_ctxt_switches"))
        total += int(line.split()[1])
    return total


def children(pid: int) -> list[int]:
    """All processes below one."""
    found = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, listed.read_text().split()):
            found += [child, *children(child)]
    return found


class Usage(NamedTuple):
    """Of some processes, up to a moment."""

    cpu_s: float
    wakes: int

    @classmethod
    def of(cls, pids: Iterable[int]) -> Usage:
        pids = list(pids)
        return cls(sum(map(cpu_s, pids)), sum(map(wakes, pids)))

    def since(self, before: Usage) -> Usage:
        """What came to it."""
        return Usage(self.cpu_s - before.cpu_s, self.wakes - before.wakes)

    def plus(self, more: Usage) -> Usage:
        """Of both."""
        return Usage(self.cpu_s + more.cpu_s, self.wakes + more.wakes)


def show(what: str, used: Usage, seconds: float, more: str = "") -> None:
    print(f"{what:28} {used.cpu_s / seconds:8.3%} of a core {used.wakes / seconds:8.1f} wake-ups/s{more}", flush=True)


def measure_search(threads: int, seconds: float, shown: bool) -> None:
    """In this process, which supervises."""
    lines: list[Info] = []
    me = [os.getpid()]
    with Supervisor(threads, 64, start_method="fork") as engine:
        board = chess.Board(POSITION)
        engine.search(SearchRequest(board, Limits(movetime_ms=100)))
        engine.forget()
        before = Usage.of(me)
        limits = Limits(movetime_ms=round(1000 * seconds))
        result = engine.search(SearchRequest(board, limits, on_info=lines.append if shown else None))
        used = Usage.of(me).since(before)
    late = (result.info.time_s - seconds) * 1000
    shown_lines = f", {len(lines)} lines" if shown else ""
    show("search, shown" if shown else "search", used, seconds, f", answer after the time: {late:.1f} ms{shown_lines}")


class Engine:
    """A UCI engine, ready."""

    def __init__(self, threads: int) -> None:
        self.process = subprocess.Popen(ENGINE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.thinking = Usage(0.0, 0)
        """of the engine's own process, while it is on the move"""
        self.moves = 0
        self.send("uci")
        self.send(f"setoption name Threads value {threads}")
        self.send("isready")
        self.wait("readyok")
        self.workers = children(self.process.pid)
        """and their fork server"""

    @property
    def own(self) -> Usage:
        return Usage.of([self.process.pid])

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait(self, word: str) -> str:
        assert self.process.stdout is not None
        while not (line := self.process.stdout.readline()).startswith(word):
            if not line:
                raise SystemExit("the engine has ended")
        return line

    def move(self, position: str, go: str) -> str:
        """Its move; what it uses until then is counted."""
        before = self.own
        self.send(position)
        self.send(go)
        answer = self.wait("bestmove").split()[1]
        self.thinking = self.thinking.plus(self.own.since(before))
        self.moves += 1
        return answer

    def close(self) -> None:
        self.send("quit")
        self.process.wait()


def measure_uci(threads: int, seconds: float) -> None:
    """A long search of the engine."""
    engine = Engine(threads)
    engine.move("position startpos", "go movetime 200")
    before = engine.own
    engine.move(f"position fen {POSITION}", f"go movetime {round(1000 * seconds)}")
    show("uci, movetime", engine.own.since(before), seconds)
    engine.close()


def measure_game(threads: int, most_moves: int) -> None:
    """Two engines, one thinking at a time."""
    engines = [Engine(threads) for _ in range(2)]
    for engine in engines:
        engine.move("position startpos", "go movetime 50")
        engine.thinking, engine.moves = Usage(0.0, 0), 0
        engine.send("ucinewgame")
        engine.send("isready")
        engine.wait("readyok")
    board = chess.Board(POSITION)
    position = f"position fen {POSITION}"
    moves: list[str] = []
    left = [float(CLOCK_MS)] * 2
    before = [engine.own for engine in engines]
    before_workers = [Usage.of(engine.workers) for engine in engines]
    began = time.perf_counter()
    while not board.is_game_over(claim_draw=True) and len(moves) < 2 * most_moves:
        number = len(moves) % 2
        clock = f"wtime {round(left[0])} btime {round(left[1])} winc {INCREMENT_MS} binc {INCREMENT_MS}"
        start = time.perf_counter()
        move = engines[number].move(position + (" moves " + " ".join(moves) if moves else ""), f"go {clock}")
        left[number] += INCREMENT_MS - 1000 * (time.perf_counter() - start)
        if left[number] < 0:
            raise SystemExit("an engine has lost on time")
        moves.append(move)
        board.push_uci(move)
    seconds = time.perf_counter() - began
    print(f"game of {len(moves)} plies, {seconds:.1f} s, {1000 * seconds / len(moves):.0f} ms a ply")
    total = Usage(0.0, 0)
    for engine, own, workers in zip(engines, before, before_workers, strict=True):
        used = engine.own.since(own)
        total = total.plus(used)
        thinking = engine.thinking
        show("  an engine, thinking", thinking, seconds, f", {1000 * thinking.cpu_s / engine.moves:.2f} ms a move")
        show("  an engine, between", used.since(thinking), seconds)
        show("  its workers", Usage.of(engine.workers).since(workers), seconds)
    show("game, both supervisors", total, seconds, f", {1000 * total.cpu_s / len(moves):.2f} ms a ply")
    for engine in engines:
        engine.close()


def measure_waiting(threads: int, seconds: float) -> None:
    """An engine, ready, of which nothing is asked, and its workers."""
    engine = Engine(threads)
    engine.move("position startpos", "go movetime 200")
    time.sleep(0.2)
    before, before_workers = engine.own, Usage.of(engine.workers)
    time.sleep(seconds)
    show("waiting, engine", engine.own.since(before), seconds)
    show("waiting, workers", Usage.of(engine.workers).since(before_workers), seconds)
    engine.close()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S")
    parser.add_argument("--moves", type=int, default=40, metavar="N")
    parser.add_argument("--only", default=",".join(MODES), metavar="WHAT,WHAT")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if "search" in wanted:
        measure_search(options.threads, options.seconds, shown=False)
    if "shown" in wanted:
        measure_search(options.threads, options.seconds, shown=True)
    if "uci" in wanted:
        measure_uci(options.threads, options.seconds)
    if "game" in wanted:
        measure_game(options.threads, options.moves)
    if "waiting" in wanted:
        measure_waiting(options.threads, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
