"""Whether an engine whose workers are killed again and again answers as if nothing had happened.

    python bench/study/chaos.py --log chaos.jsonl
    python bench/study/chaos.py --log stop.jsonl --signals STOP --interval 1000 --searches 50

An engine with many workers searches positions for a fixed time each, while every now and then one of its workers,
drawn at random, gets a signal: KILL, SEGV, BUS, TERM, or STOP, with CONT some seconds later. Beside it a second engine,
left in peace, searches the same positions, one after the other with the first: what the machine does to it is no fault
of the first. The positions are those of `psearch bench` that have a choice of moves, in turn.

Of every answer is asked: it comes (within 30 s of its time), it is a legal move that was searched to some depth and the
first of the latest line reported, and it is not later than the time plus the overhead. Of the engine: it is ready again
(within 30 s), what it holds is flat; in the end it leaves with status 0 and no process of it is left. The log has a
line for each search; the last says how late the answers were, with and without signals. The exit status is 1 if
anything was wrong; late answers count as wrong if the engine in peace had fewer.

What an engine holds is flat when a straight line through the second half of the measurements, one in ten searches,
rises by less than 1 MiB for pages of the program, for those of each worker and for shared memory, and by nothing, to
the nearest whole, for descriptors, processes and threads.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import shlex
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chess
import chess.engine
import numpy as np
from processes import PSEARCH, holdings, in_session, pid_of, start, stop, workers_of

from psearch.bench import BENCH_POSITIONS
from psearch.files.raw_log import RawLog
from psearch.results import PsearchError
from psearch.terminal.status import StatusLine

SIGNALS = ("KILL", "SEGV", "BUS", "TERM", "STOP")
PATIENCE_S = 30.0
"""Seconds after which an answer no longer comes."""
LEAVING_S = 5.0
_MEASURED_EVERY = 10
_PERCENTILES = (50, 90, 99, 100)
POSITIONS = [fen for fen in BENCH_POSITIONS if chess.Board(fen, chess960=True).legal_moves.count() > 1]


_MOST = dict.fromkeys(("program_kb", "workers_kb", "shared_kb"), 1024.0)
"""Growth up to which a figure still counts as flat; all others must not grow, to the nearest whole."""


class Tormentor(threading.Thread):
    """Sends signals to workers of an engine while `is_let_loose` is set. A context manager."""

    def __init__(self, names: Sequence[str], interval_s: float, stopped_s: float, seed: int) -> None:
        super().__init__(daemon=True)
        self.engine = 0
        """Process id of the engine."""
        self.spared: set[int] = set()
        """Its processes that are no workers."""
        self.is_let_loose = threading.Event()
        self.sent: list[tuple[float, str, int]] = []
        """Signals of this search: the time on `time.perf_counter`, which one, and the process."""
        self._signals = [getattr(signal, f"SIG{name}") for name in names]
        self._interval_s = interval_s
        self._stopped_s = stopped_s
        self._random = random.Random(seed)
        self._stopped: deque[tuple[float, int]] = deque()
        """Workers to be continued, and when."""
        self._is_over = threading.Event()

    def __enter__(self) -> Tormentor:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        due = time.monotonic() + self._interval_s
        while not self._is_over.wait(min(0.05, max(0.0, due - time.monotonic()))):
            self._go_on(time.monotonic())
            if time.monotonic() >= due:
                due += self._interval_s
                if self.is_let_loose.is_set():
                    self._strike()
        self._go_on(float("inf"))

    def _go_on(self, now: float) -> None:
        """Continue the workers whose time has come."""
        while self._stopped and self._stopped[0][0] <= now:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._stopped.popleft()[1], signal.SIGCONT)

    def _strike(self) -> None:
        workers = [pid for pid in workers_of(self.engine) if pid not in self.spared]
        if not workers:
            return
        worker, which = self._random.choice(workers), self._random.choice(self._signals)
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, which)
            self.sent.append((time.perf_counter(), which.name, worker))
            if which == signal.SIGSTOP:
                self._stopped.append((time.monotonic() + self._stopped_s, worker))


@dataclass
class Answer:
    position: str
    hash_mb: int
    tormented: bool
    late_ms: float | None = None
    """Milliseconds by which the answer was late: below 0 as a rule, None without an answer."""
    bestmove: str = ""
    depth: int = 0
    nodes: int = 0
    ready_ms: float | None = None
    """Milliseconds that the `isready` behind it took."""
    signals: list[tuple[float, str]] = field(default_factory=list)
    """Signals sent, and when, in milliseconds from `go`."""
    note: str = ""
    """The last `info string` line."""
    problems: list[str] = field(default_factory=list)


def judge(answer: Answer, move: chess.Move | None, info: Mapping[str, Any]) -> None:
    """Fill in what a search has said: its move, which is a legal one, and the latest of each figure."""
    answer.bestmove = "" if move is None else move.uci()
    answer.depth, answer.nodes = info.get("depth", 0), info.get("nodes", 0)
    answer.note = info.get("string", "")
    line = info.get("pv")
    if move is None:
        answer.problems.append("not a legal move")
    if not line:
        answer.problems.append("no line was reported")
    elif answer.depth == 0:
        answer.problems.append("not searched")
    elif line[0] != move:
        answer.problems.append(f"not the move of the latest line, {line[0]}")


class Trial:
    """One size of the table: the tormented engine, and the one beside it."""

    def __init__(self, options: argparse.Namespace, hash_mb: int, tormentor: Tormentor) -> None:
        self._options = options
        self._hash_mb = hash_mb
        self._tormentor = tormentor
        self.holdings: list[dict[str, int]] = []
        self.tormented = self._start()
        self.quiet = None if options.alone else self._start()

    def _start(self) -> chess.engine.SimpleEngine:
        command = shlex.split(self._options.engine) if self._options.engine else PSEARCH
        return start(command, {"Threads": self._options.workers, "Hash": self._hash_mb}, PATIENCE_S)

    def searches(self, number: int) -> list[Answer]:
        """Have both search the next position."""
        fen = POSITIONS[number % len(POSITIONS)]
        found = []
        if self.quiet is not None:
            found.append(self._ask(self.quiet, Answer(fen, self._hash_mb, False)))
        self._tormentor.engine, self._tormentor.sent = pid_of(self.tormented), []
        self._tormentor.is_let_loose.set()
        answer = Answer(fen, self._hash_mb, True)
        try:
            found.append(self._ask(self.tormented, answer))
        except (chess.engine.EngineTerminatedError, TimeoutError) as error:
            answer.problems.append(str(error) or f"no answer within {PATIENCE_S:g} s of its time")
            found.append(answer)
            stop(self.tormented, 0.0)
            self.tormented = self._start()
        finally:
            self._tormentor.is_let_loose.clear()
        if number % _MEASURED_EVERY == _MEASURED_EVERY - 1:
            # pages of the table come as they are touched: what is beside it counts
            held = holdings(pid_of(self.tormented))
            self.holdings.append({**held, "shared_kb": max(0, held["shared_kb"] - 1024 * self._hash_mb)})
        return found

    def _ask(self, engine: chess.engine.SimpleEngine, answer: Answer) -> Answer:
        """Search once. Raises TimeoutError when the engine hangs, and EngineTerminatedError when it leaves."""
        movetime_ms = self._options.movetime
        board, limit = chess.Board(answer.position), chess.engine.Limit(time=movetime_ms / 1000)
        sent = time.perf_counter()
        try:
            played = engine.play(board, limit, game="before", info=chess.engine.INFO_ALL)
            judge(answer, played.move, dict(played.info))
        except chess.engine.EngineTerminatedError:
            raise
        except chess.engine.EngineError:  # python-chess refuses an illegal move
            answer.problems.append("not a legal move")
        answer.late_ms = round((time.perf_counter() - sent) * 1000 - movetime_ms, 2)
        if not self._options.restless:
            self._tormentor.is_let_loose.clear()
        if answer.late_ms > self._options.overhead:
            answer.problems.append("late")
        asked = time.perf_counter()
        engine.ping()
        answer.ready_ms = round((time.perf_counter() - asked) * 1000, 2)
        if answer.tormented:
            answer.signals = [(round((when - sent) * 1000, 1), name) for when, name, _ in self._tormentor.sent]
        return answer

    def close(self) -> list[str]:
        """End both; return what is wrong with the way they left."""
        problems = []
        for engine in filter(None, (self.tormented, self.quiet)):
            pid, status = pid_of(engine), stop(engine)
            if status != 0:
                problems.append(f"the engine left with status {status}")
            deadline = time.monotonic() + LEAVING_S
            while (left := in_session(pid)) and time.monotonic() < deadline:
                time.sleep(0.01)
            if left:
                problems.append(f"processes left behind: {left}")
        return problems


def verdict(rows: Sequence[dict[str, int]], workers: int) -> dict[str, Any]:
    """Return, by figure: what it was at first, in the middle and last, its growth, and whether that is flat.

    It grows by what a straight line through the second half of the measurements rises by, from end to end.
    """
    found: dict[str, Any] = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        half = np.array(values[len(values) // 2 :], float)
        grown = 0.0 if len(half) < 2 else float(np.polyfit(np.arange(len(half)), half, 1)[0] * (len(half) - 1))
        most = _MOST.get(name, 0.5) * (workers if name == "workers_kb" else 1)
        found[name] = {
            "first": values[0],
            "middle": values[len(values) // 2],
            "last": values[-1],
            "growth": round(grown, 1),
            "flat": grown < most,
        }
    return found


def lateness(answers: Sequence[Answer], overhead_ms: float) -> dict[str, Any]:
    """Return by how many milliseconds answers were late, by percentile."""
    late = [answer.late_ms for answer in answers if answer.late_ms is not None]
    found: dict[str, Any] = {"answers": len(late)}
    if late:
        found |= {f"p{share}": round(float(np.percentile(late, share)), 1) for share in _PERCENTILES}
        found |= {"after_time": sum(ms > 0 for ms in late), "after_overhead": sum(ms > overhead_ms for ms in late)}
    return found


def summary(answers: Sequence[Answer], overhead_ms: float) -> dict[str, Any]:
    """Return counts, and the lateness with and without signals."""
    tormented = [answer for answer in answers if answer.tormented]
    return {
        "searches": len(tormented),
        "signals": sum(len(answer.signals) for answer in tormented),
        "struck": sum(bool(answer.signals) for answer in tormented),
        "problems": dict(Counter(text.split(",")[0] for answer in tormented for text in answer.problems)),
        "late_ms": lateness(tormented, overhead_ms),
        "late_in_peace_ms": lateness([answer for answer in answers if not answer.tormented], overhead_ms),
        "ready_ms": round(max((answer.ready_ms or 0.0 for answer in tormented), default=0.0), 1),
    }


def run_trial(
    options: argparse.Namespace, hash_mb: int, tormentor: Tormentor, log: RawLog, status: StatusLine
) -> dict[str, Any]:
    """All searches with one size of the table; what came out."""
    trial = Trial(options, hash_mb, tormentor)
    answers: list[Answer] = []
    try:
        for number in range(options.searches):
            for answer in trial.searches(number):
                answers.append(answer)
                log.add(answer)
            troubled = sum(bool(answer.problems) for answer in answers if answer.tormented)
            text = f"hash {hash_mb}: {number + 1}/{options.searches}, {troubled} with problems"
            status(text, number + 1, options.searches)
    finally:
        leaving = trial.close()
    found = {"hash_mb": hash_mb, **summary(answers, options.overhead), "leaving": leaving}
    if trial.holdings:
        found["holdings"] = verdict(trial.holdings, options.workers)
    log.note(summary=found)
    return found


def grown(found: Mapping[str, Any]) -> list[str]:
    """Return what the engine holds more and more of."""
    return [name for name, values in found.get("holdings", {}).items() if not values["flat"]]


def is_good(found: dict[str, Any]) -> bool:
    """Return whether nothing was wrong; late answers count unless the engine in peace was late as often."""
    wrong = {kind: count for kind, count in found["problems"].items() if kind != "late"}
    late = found["late_ms"].get("after_overhead", 0) > found["late_in_peace_ms"].get("after_overhead", 0)
    return not (wrong or late or grown(found) or found["leaving"])


def report(found: dict[str, Any]) -> str:
    return f"""hash {found["hash_mb"]} MiB: {found["searches"]} searches, {found["signals"]} signals
  problems         {found["problems"] or "none"} {" ".join(found["leaving"])}
  late, ms         {found["late_ms"]}
  late in peace    {found["late_in_peace_ms"]}
  ready at most    {found["ready_ms"]} ms
  grows            {", ".join(grown(found)) or "nothing"}"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=500, metavar="N", help="with each size of the table")
    parser.add_argument(
        "--hash", type=lambda text: [int(word) for word in text.split(",")], default=[16, 2048], metavar="MIB,MIB"
    )
    parser.add_argument("--workers", type=int, default=8, metavar="N")
    parser.add_argument("--movetime", type=int, default=600, metavar="MS")
    parser.add_argument("--overhead", type=float, default=30.0, metavar="MS", help="an answer may come so late")
    parser.add_argument("--interval", type=float, default=200.0, metavar="MS", help="from one signal to the next")
    parser.add_argument("--signals", nargs="+", choices=SIGNALS, default=["KILL"], metavar="NAME")
    parser.add_argument("--stopped", type=float, default=5.0, metavar="S", help="from STOP to CONT")
    parser.add_argument("--restless", action="store_true", help="signals between the searches, too")
    parser.add_argument("--alone", action="store_true", help="without the engine in peace")
    parser.add_argument("--engine", metavar="COMMAND", help="another than psearch uci")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True, metavar="FILE", help="JSON lines; one there is replaced")
    options = parser.parse_args(arguments)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # SEGV: the table is not to be written to a disk
    settings = {name: value for name, value in vars(options).items() if name != "log"}
    interval_s = options.interval / 1000
    good = True
    with RawLog(options.log, settings) as log, StatusLine() as status:
        for hash_mb in options.hash:
            with Tormentor(options.signals, interval_s, options.stopped, options.seed) as tormentor:
                found = run_trial(options, hash_mb, tormentor, log, status)
            print(report(found), flush=True)
            good = good and is_good(found)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (PsearchError, chess.engine.EngineError, TimeoutError) as error:
        sys.exit(f"chaos: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
