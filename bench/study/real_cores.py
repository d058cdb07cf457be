"""Everything that wants a quiet machine with many cores, in one command: speedups, their ceiling, moves at equal time.

    python bench/study/real_cores.py --suite FILE.epd --games FILE.pgn --out FOLDER [--counts 1,2,4,8,16] [--minutes 60]

1. `psearch speedup` with each count of worker processes in turn, and the ceiling: as many independent searches side by
   side. The positions are evenly spread over the suite (FOLDER/positions.epd); FOLDER/speedup.jsonl is the raw log.
2. The same with null windows, by which searches of one line are shared from 8 workers on: FOLDER/null.jsonl.
3. Moves along games (`bench/match/judge.py moves`) by half the workers and by all of them, each also by `lazy`, and by
   one worker with as much time and with as much time as they have together: FOLDER/moves-8-one.jsonl and so on.
   `judge.py verdict` says what they are worth; it needs no quiet machine.

How many positions fit into the minutes is estimated. A part that is finished is not done again, and one that was
interrupted goes on, the speedups from their beginning. What was run is in FOLDER/commands.txt.
"""

from __future__ import annotations

import argparse
import math
import shlex
import subprocess
import sys
from pathlib import Path

from tables import spread

from psearch.arena.control_groups import usable_cores
from psearch.defaults import PROVING_WORKERS
from psearch.faces.cli.arguments import worker_counts
from psearch.results import PsearchError
from psearch.text.epd_text import read_suite

_JUDGE = Path(__file__).resolve().parents[1] / "match" / "judge.py"
_PSEARCH = (sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())")
_SURVEY = 1.5
"""Time that finding a depth takes, in that of one search by one worker, roughly."""
_CEILING = 14
"""Time that the ceiling takes for each count, in that of one search by one worker."""
_SPEEDUPS = 0.6
"""Part of the time that is for speedups."""


def positions_for(minutes: float, parts: list[list[int]], seconds: float, repeats: int) -> int:
    """Return how many positions the speedups of these counts take this long with.

    With n workers a search takes about 1 / n**0.8 of the time.
    """
    ceilings = _CEILING * seconds * sum(len(counts) - 1 for counts in parts)
    each = seconds * sum(_SURVEY + repeats * sum(count**-0.8 for count in counts) for counts in parts)
    return max(2, int((minutes * 60 - ceilings) / each))


def moves_for(minutes: float, workers: int, movetime: float, cores: int) -> int:
    """Return how many positions along games take this long, with so many workers: see `_moves`."""
    each = movetime * (2 / max(1, cores // workers) + (1 + workers) / cores)
    return max(2, int(minutes * 60 / each))


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--games", type=Path, required=True, help="PGN, along which moves are asked for")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--counts", type=worker_counts, default=[1, 2, 4, 8, 16])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=5.0, help="of one worker for each position, about")
    parser.add_argument("--repeat", type=int, default=1, help="searches with each count")
    parser.add_argument("--movetime", type=float, default=0.1, help="seconds for each move along games (0.1)")
    parser.add_argument("--hash", type=int, default=64)
    options = parser.parse_args()
    if not (math.isfinite(options.minutes) and options.minutes > 0 and options.seconds > 0 and options.repeat > 0):
        parser.error("--minutes, --seconds and --repeat must be more than 0")
    if not 0.001 <= options.movetime <= 3600:
        parser.error("--movetime is from 0.001 to 3600")
    if options.counts[-1] > usable_cores():
        print(f"real_cores: {options.counts[-1]} workers share {usable_cores()} cores", file=sys.stderr)
    many = [count for count in options.counts if count >= PROVING_WORKERS]
    parts = {"speedup": options.counts, **({"null": [1, *many]} if many else {})}
    try:
        suite = read_suite(options.suite)
        options.out.mkdir(parents=True, exist_ok=True)
        count = positions_for(_SPEEDUPS * options.minutes, list(parts.values()), options.seconds, options.repeat)
        chosen = "".join(f'{position.board.epd()} id "{position.name}";\n' for position in spread(suite, count))
        file = options.out / "positions.epd"
        if file.exists() and file.read_text("utf-8") != chosen:
            raise PsearchError(f"{file} has other positions: another --out, or delete it")
        file.write_text(chosen, "utf-8")
    except (PsearchError, OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"real_cores: {error}") from None
    for name, counts in parts.items():
        _run(options.out, name, [_speedup(options, name, counts)])
    both = [count for count in sorted({options.counts[-1] // 2, options.counts[-1]}) if count > 1]
    for workers in both:
        _run(options.out, f"moves-{workers}", _moves(options, workers, (1 - _SPEEDUPS) * options.minutes / len(both)))


def _speedup(options: argparse.Namespace, name: str, counts: list[int]) -> list[str]:
    return [
        *_PSEARCH, "speedup", "--threads", ",".join(map(str, counts)), "--driver", "null" if name == "null" else "pvs",
        "--suite", str(options.out / "positions.epd"), "--seconds", f"{options.seconds:g}",
        "--repeat", str(options.repeat), "--hash", str(options.hash), "--log", str(options.out / f"{name}.jsonl"),
    ]  # fmt: skip


def _moves(options: argparse.Namespace, workers: int, minutes: float) -> list[list[str]]:
    """Return the commands: one worker, as many games side by side as there are cores, and the workers together."""
    cores = usable_cores()
    count = moves_for(minutes, workers, options.movetime, cores)

    def command(name: str, side_by_side: int, engines: list[str]) -> list[str]:
        common = f"option.Hash={options.hash} 'option.Move Overhead=0'"
        return [
            sys.executable, str(_JUDGE), "moves", "--games", str(options.games), "--positions", str(count),
            "--concurrency", str(side_by_side), "--out", str(options.out / f"moves-{workers}-{name}.jsonl"),
            *(word for engine in engines for word in ("--engine", f"{common} {engine}")),
        ]  # fmt: skip

    time = f"movetime={options.movetime:g}"
    longer = f"name=one-times-{workers} option.Threads=1 movetime={options.movetime * workers:g}"
    together = [
        f"name={workers}-{policy} option.Threads={workers} option.Policy={policy} {time}"
        for policy in ("calibrated", "lazy")
    ]
    return [
        command("together", max(1, cores // workers), together),
        command("one", cores, [f"name=one option.Threads=1 {time}", longer]),
    ]


def _run(folder: Path, name: str, commands: list[list[str]]) -> None:
    """Run one part unless its table is there, with the output in FOLDER/NAME.txt. Ends the script when it fails."""
    finished = folder / f"{name}.txt"
    if finished.exists():
        return
    said = ""
    for command in commands:
        with (folder / "commands.txt").open("a", encoding="utf-8") as log:
            log.write(shlex.join(command) + "\n")
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, flush=True)
        if done.returncode != 0:
            raise SystemExit(f"real_cores: {name} ended with exit status {done.returncode}")
        said += done.stdout
    finished.write_text(said, "utf-8")


if __name__ == "__main__":
    main()
