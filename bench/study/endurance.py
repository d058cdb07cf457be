"""Whether an engine that runs for days stays as it was: memory, descriptors, processes and threads, by the thousand.

    python bench/study/endurance.py --log endurance.jsonl
    python bench/study/endurance.py --parts games --subjects uci --games 1000 --movetime 100

One engine, first behind UCI in a process of its own, then `psearch.Engine` in this one, does one part after the other:

- searches: short ones of every kind (nodes, depth, time, clock, mate, several lines, stopped, pondered), the positions
  of `psearch bench` in turn;
- hash-changes: the table gets another size and its own again, each time with a search (`Engine` is closed, and
  another one made);
- games: against itself, from a few random moves on, until the rules end them or 300 plies are played. Every move is
  checked to be legal.

As it goes on it is measured, 40 times a part: anonymous pages of the program, those of its workers, shared memory, open
descriptors, processes, threads, and, of `Engine`, the objects that Python's collector knows. The log has a line for
each measurement, and at the end of a part one with the verdict.

The rule: a straight line is laid through the second half of the measurements. What it rises by from one end to the
other must be less than 1 MiB for pages of the program, the same for each of its workers and for shared memory; less
than 500 objects; and nothing at all, to the nearest whole, for descriptors, processes and threads. So a leak of 210
bytes a search is found in 10,000 searches. The exit status is 1 if a part is not flat.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import chess
import chess.engine
import numpy as np
from processes import holdings
from uci_session import PSEARCH, UciSession

from psearch.api.blocking import Engine
from psearch.bench import BENCH_POSITIONS
from psearch.files.raw_log import RawLog
from psearch.results import PsearchError
from psearch.terminal.status import StatusLine

MEASUREMENTS = 40
"""Of a part."""
HASH_SIZES_MB = (1, 64, 16, 256)
LONGEST_GAME = 300
"""Plies."""
RANDOM_PLIES = 6
ANSWER_S = 120.0
"""After this an engine is taken to hang."""
_BRIEF_S = 0.005
"""A search that is stopped lasts about so long."""

LIMITS: tuple[dict[str, Any], ...] = (
    {"nodes": 2000},
    {"depth": 6},
    {"time": _BRIEF_S},
    {"white_clock": 0.3, "black_clock": 0.3},
    {"mate": 1, "nodes": 2000},
    {"depth": 4, "multipv": 3},
    {"stopped": True},
    {"pondered": True, "time": _BRIEF_S},
)
"""Kinds of searches: fields of `chess.engine.Limit`, and how they are done."""

KILOBYTES = {"program_kb", "workers_kb", "shared_kb"}
_MOST_KB = 1024.0
_MOST_OBJECTS = 500.0


class Subject(Protocol):
    """An engine that is looked at."""

    name: str

    def search(self, board: chess.Board, how: dict[str, Any]) -> chess.Move | None:
        """One search of a kind of LIMITS."""
        ...

    def set_hash(self, megabytes: int) -> None:
        """Give the table another size."""
        ...

    def new_game(self) -> None:
        """Forget everything."""
        ...

    def measure(self) -> dict[str, int]:
        """What it holds now."""
        ...

    def close(self) -> None:
        """End it."""
        ...


def uci_position(board: chess.Board) -> str:
    """Root and moves, as the `position` command takes them."""
    moves = [move.uci() for move in board.move_stack]
    start = board.root()
    text = "startpos" if start.fen() == chess.STARTING_FEN else f"fen {start.fen()}"
    return f"{text} moves {' '.join(moves)}" if moves else text


class UciSubject:
    """`psearch uci` in a process of its own."""

    name = "uci"

    def __init__(self, threads: int, hash_mb: int, command: Sequence[str] = PSEARCH) -> None:
        self._session = UciSession(command, {"Threads": threads, "Hash": hash_mb})
        self._lines = 1

    def search(self, board: chess.Board, how: dict[str, Any]) -> chess.Move | None:
        session = self._session
        lines = how.get("multipv", 1)
        if lines != self._lines:
            session.set_options({"MultiPV": lines})
            self._lines = lines
        position = uci_position(board)
        if how.get("stopped"):
            session.send(f"position {position}", "go infinite")
            time.sleep(_BRIEF_S)
            session.send("stop")
            answer = session.until("bestmove", ANSWER_S)
        elif how.get("pondered"):
            session.send(f"position {position}", f"go ponder movetime {round(how['time'] * 1000)}")
            time.sleep(_BRIEF_S)
            session.send("ponderhit")
            answer = session.until("bestmove", ANSWER_S)
        else:
            _, answer = session.go(position, self._words(how), ANSWER_S)
        move = answer[-1].text.split()[1]
        return None if move == "(none)" else board.parse_uci(move)

    @staticmethod
    def _words(how: dict[str, Any]) -> str:
        """Of `go`."""
        words = [f"{name} {how[name]}" for name in ("nodes", "depth", "mate") if name in how]
        if "time" in how:
            words.append(f"movetime {max(1, round(how['time'] * 1000))}")
        for name, word in (("white_clock", "wtime"), ("black_clock", "btime")):
            if name in how:
                words.append(f"{word} {round(how[name] * 1000)}")
        return " ".join(words)

    def set_hash(self, megabytes: int) -> None:
        self._session.set_options({"Hash": megabytes})

    def new_game(self) -> None:
        self._session.send("ucinewgame")
        self._session.ready()

    def measure(self) -> dict[str, int]:
        self._session.ready()
        return holdings(self._session.pid).as_dict()

    def close(self) -> None:
        status = self._session.close()
        if status != 0:
            raise SystemExit(f"endurance: the engine ended with status {status}")


class EngineSubject:
    """`psearch.Engine` in this program."""

    name = "engine"

    def __init__(self, threads: int, hash_mb: int) -> None:
        self._threads = threads
        self._engine = Engine(threads, hash_mb)

    def search(self, board: chess.Board, how: dict[str, Any]) -> chess.Move | None:
        fields = {name: value for name, value in how.items() if name not in ("multipv", "stopped", "pondered")}
        if how.get("stopped"):
            with self._engine.analysis(board) as analysis:
                time.sleep(_BRIEF_S)
                analysis.stop()
                return analysis.wait().move
        if "multipv" in how:
            lines = self._engine.analyse(board, chess.engine.Limit(**fields), multipv=how["multipv"])
            return lines[0]["pv"][0]
        return self._engine.play(board, chess.engine.Limit(**fields)).move

    def set_hash(self, megabytes: int) -> None:
        self._engine.close()
        self._engine = Engine(self._threads, megabytes)

    def new_game(self) -> None:
        self._engine.new_game()

    def measure(self) -> dict[str, int]:
        gc.collect()
        return {**holdings(os.getpid()).as_dict(), "objects": len(gc.get_objects())}

    def close(self) -> None:
        self._engine.close()


# -- what it does ------------------------------------------------------------------------------------------------------


def _check_legal(board: chess.Board, move: chess.Move | None) -> chess.Move:
    if move is None or move not in board.legal_moves:
        raise SystemExit(f"endurance: {move} is not legal in {board.fen()}")
    return move


def searches(subject: Subject, options: argparse.Namespace) -> Iterator[int]:
    """Each position with all kinds of searches; yields how many are done."""
    for number in range(options.searches):
        fen = BENCH_POSITIONS[number // len(LIMITS) % len(BENCH_POSITIONS)]
        board = chess.Board(fen, chess960=True)
        _check_legal(board, subject.search(board, LIMITS[number % len(LIMITS)]))
        yield number + 1


def hash_changes(subject: Subject, options: argparse.Namespace) -> Iterator[int]:
    """Changes of the table's size, each with a search. Measured, and left, with the size that it began with."""
    board = chess.Board()
    for number in range(options.hash_changes):
        subject.set_hash(HASH_SIZES_MB[number % len(HASH_SIZES_MB)])
        _check_legal(board, subject.search(board, LIMITS[0]))
        subject.set_hash(options.hash)
        _check_legal(board, subject.search(board, LIMITS[0]))
        yield number + 1


def games(subject: Subject, options: argparse.Namespace) -> Iterator[int]:
    """Games of the engine against itself."""
    limit = {"nodes": options.nodes} if options.nodes else {"time": options.movetime / 1000}
    for number in range(options.games):
        subject.new_game()
        board = random_opening(random.Random(number))
        while not board.is_game_over(claim_draw=True) and len(board.move_stack) < LONGEST_GAME:
            board.push(_check_legal(board, subject.search(board, limit)))
        yield number + 1


def random_opening(rng: random.Random) -> chess.Board:
    """A few random moves from the start."""
    board = chess.Board()
    for _ in range(RANDOM_PLIES):
        board.push(rng.choice(list(board.legal_moves)))
    return board


PARTS: dict[str, Callable[[Subject, argparse.Namespace], Iterator[int]]] = {
    "searches": searches,
    "hash-changes": hash_changes,
    "games": games,
}
SUBJECTS: dict[str, Callable[[int, int], Subject]] = {"uci": UciSubject, "engine": EngineSubject}


# -- the verdict -------------------------------------------------------------------------------------------------------


def growth(values: Sequence[float]) -> float:
    """What a straight line through the second half of the measurements rises by, from its first to its last."""
    half = np.array(values[len(values) // 2 :], float)
    if len(half) < 2:
        return 0.0
    slope = np.polyfit(np.arange(len(half)), half, 1)[0]
    return float(slope * (len(half) - 1))


def allowed_growth(name: str, workers: int) -> float:
    """By which a figure may grow and still be called flat."""
    if name == "workers_kb":
        return _MOST_KB * workers
    return _MOST_KB if name in KILOBYTES else _MOST_OBJECTS if name == "objects" else 0.5


def verdict(rows: Sequence[dict[str, int]], workers: int) -> dict[str, Any]:
    """By figure: at the first, the middle and the last measurement, the growth, and whether that is flat."""
    found: dict[str, Any] = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        grown = growth(values)
        found[name] = {
            "first": values[0],
            "middle": values[len(values) // 2],
            "last": values[-1],
            "growth": round(grown, 1),
            "flat": grown < allowed_growth(name, workers),
        }
    return found


def run_part(
    subject: Subject, part: str, options: argparse.Namespace, log: RawLog, status: StatusLine
) -> dict[str, Any]:
    """Do a part, measure as it goes on, and judge."""
    count = count_of(part, options)
    every = max(1, count // MEASUREMENTS)
    begun = time.monotonic()
    rows: list[dict[str, int]] = []
    for done in PARTS[part](subject, options):
        if done % every == 0 or done == count:
            rows.append(subject.measure())
            seconds = round(time.monotonic() - begun, 1)
            log.note(subject=subject.name, part=part, done=done, seconds=seconds, **rows[-1])
            held = ", ".join(f"{name} {value:,}" for name, value in rows[-1].items())
            status(f"{subject.name}, {part}: {done:,}/{count:,}, {held}", done, count)
    found = verdict(rows, options.threads)
    seconds = round(time.monotonic() - begun, 1)
    log.note(subject=subject.name, part=part, count=count, total_seconds=seconds, verdict=found)
    return found


def count_of(part: str, options: argparse.Namespace) -> int:
    """How often a part is to do its thing."""
    return int(getattr(options, part.replace("-", "_")))


def report(name: str, part: str, count: int, found: dict[str, Any]) -> str:
    """The verdict as text."""
    lines = [f"{name}, {count:,} {part}"]
    for figure, values in found.items():
        word = "flat" if values["flat"] else "GROWS"
        lines.append(
            f"  {figure:<12} {values['first']:>10,} {values['middle']:>10,} {values['last']:>10,}"
            f"  {values['growth']:+9.1f}  {word}"
        )
    return "\n".join(lines)


def choice(names: Sequence[str]) -> Callable[[str], list[str]]:
    """A list of some of these names, separated by commas."""

    def read(text: str) -> list[str]:
        words = text.split(",")
        if set(words) - set(names):
            raise argparse.ArgumentTypeError(f"choose from {','.join(names)}")
        return words

    return read


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=choice(list(PARTS)), default=list(PARTS), metavar="PART,PART")
    parser.add_argument("--subjects", type=choice(list(SUBJECTS)), default=list(SUBJECTS), metavar="NAME,NAME")
    parser.add_argument("--searches", type=int, default=10_000, metavar="N")
    parser.add_argument("--hash-changes", type=int, default=200, metavar="N")
    parser.add_argument("--games", type=int, default=1_000, metavar="N")
    parser.add_argument("--movetime", type=float, default=100.0, metavar="MS", help="of a move of the games")
    parser.add_argument("--nodes", type=int, metavar="N", help="of a move of the games, instead of a time")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--hash", type=int, default=16, metavar="MIB")
    parser.add_argument(
        "--log", type=Path, required=True, metavar="FILE", help="JSON lines; a file that is there is replaced"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 if everything is flat."""
    options = read_options(arguments)
    settings = {name: value for name, value in vars(options).items() if name != "log"}
    flat = True
    with ExitStack() as stack:
        status = stack.enter_context(StatusLine())
        log = stack.enter_context(RawLog(options.log, settings))
        for name in options.subjects:
            subject = SUBJECTS[name](options.threads, options.hash)
            try:
                for part in options.parts:
                    found = run_part(subject, part, options, log, status)
                    print(report(name, part, count_of(part, options), found), flush=True)
                    flat = flat and all(values["flat"] for values in found.values())
            finally:
                subject.close()
    return 0 if flat else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PsearchError as error:
        sys.exit(f"endurance: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
