"""Everything that wants a quiet machine with many cores, in one command: speedups, their ceiling, games.

    python bench/study/real_cores.py --suite FILE.epd --book FILE.epd --out FOLDER [--counts 1,2,4,8,16] [--minutes 60]

1. `psearch speedup` with each count of worker processes in turn, and the ceiling: as many independent searches side by
   side. The positions are evenly spread over the suite (FOLDER/positions.epd); FOLDER/speedup.jsonl is the raw log.
2. bench/match/match.py: two processes against one, as many games side by side as half the cores allow:
   FOLDER/two-one.jsonl, .pgn, .json.

Each gets half of the minutes; how many positions and games that is, is estimated. A part that is finished is not done
again, a match that was interrupted goes on. What was run is in FOLDER/commands.txt.
"""

from __future__ import annotations

import argparse
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tables import spread

from psearch.arena.control_groups import usable_cores
from psearch.faces.cli.arguments import worker_counts
from psearch.results import PsearchError
from psearch.text.epd_text import read_suite

_MATCH = Path(__file__).resolve().parents[1] / "match" / "match.py"
_PSEARCH = (sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())")
_SURVEY = 1.5
"""Time that finding a depth takes, in that of one search by one worker, roughly."""
_MOVES = 70
"""Moves of each side in a long game, which bound its duration roughly."""


def positions_for(minutes: float, counts: list[int], seconds: float, repeats: int) -> int:
    """Return how many positions take this long: with n workers a search takes about 1 / n**0.8 of the time."""
    a_position = seconds * (_SURVEY + repeats * sum(count**-0.8 for count in counts))
    return max(2, int(minutes * 60 / a_position))


def games_for(minutes: float, clock: str, side_by_side: int) -> int:
    """Return how many games take this long; even, for every opening is played twice."""
    start, _, increment = clock.partition("+")
    a_game = 2 * (float(start) + _MOVES * float(increment or 0))
    return 2 * max(1, round(minutes * 60 / a_game * side_by_side / 2))


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--book", type=Path, required=True, help="openings of the games")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--counts", type=worker_counts, default=[1, 2, 4, 8, 16])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=5.0, help="of one worker for each position, about")
    parser.add_argument("--repeat", type=int, default=1, help="searches with each count")
    parser.add_argument("--tc", default="5+0.05", help="of the games")
    parser.add_argument("--hash", type=int, default=64)
    options = parser.parse_args()
    if not (math.isfinite(options.minutes) and options.minutes > 0 and options.seconds > 0 and options.repeat > 0):
        parser.error("--minutes, --seconds and --repeat must be more than 0")
    if not re.fullmatch(r"\d+(\.\d+)?(\+\d+(\.\d+)?)?", options.tc) or float(options.tc.partition("+")[0]) <= 0:
        parser.error("--tc is SECONDS or SECONDS+INCREMENT")
    if options.counts[-1] > usable_cores():
        print(f"real_cores: {options.counts[-1]} workers share {usable_cores()} cores", file=sys.stderr)
    try:
        suite = read_suite(options.suite)
        options.out.mkdir(parents=True, exist_ok=True)
        count = positions_for(options.minutes / 2, options.counts, options.seconds, options.repeat)
        chosen = "".join(f'{position.board.epd()} id "{position.name}";\n' for position in spread(suite, count))
        file = options.out / "positions.epd"
        if file.exists() and file.read_text("utf-8") != chosen:
            raise PsearchError(f"{file} has other positions: another --out, or delete it")
        file.write_text(chosen, "utf-8")
    except (PsearchError, OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"real_cores: {error}") from None
    _run(options.out, "speedup", _speedup(options))
    _run(options.out, "two-one", _match(options))


def _speedup(options: argparse.Namespace) -> list[str]:
    return [
        *_PSEARCH, "speedup", "--threads", ",".join(map(str, options.counts)),
        "--suite", str(options.out / "positions.epd"), "--seconds", f"{options.seconds:g}",
        "--repeat", str(options.repeat), "--hash", str(options.hash), "--log", str(options.out / "speedup.jsonl"),
    ]  # fmt: skip


def _match(options: argparse.Namespace) -> list[str]:
    side_by_side = max(1, usable_cores() // 2)
    hashes = f"option.Hash={options.hash}"
    command = [
        sys.executable, str(_MATCH), "--first", f"name=two {hashes} option.Threads=2",
        "--second", f"name=one {hashes} option.Threads=1", "--tc", options.tc, "--book", str(options.book),
        "--games", str(games_for(options.minutes / 2, options.tc, side_by_side)),
        "--concurrency", str(side_by_side), "--out", str(options.out / "two-one"),
    ]  # fmt: skip
    return [*command, "--resume"] if (options.out / "two-one.jsonl").exists() else command


def _run(folder: Path, name: str, command: list[str]) -> None:
    """Run one part unless its table is there, with the output in FOLDER/NAME.txt. Ends the script when it fails."""
    finished = folder / f"{name}.txt"
    if finished.exists():
        return
    with (folder / "commands.txt").open("a", encoding="utf-8") as commands:
        commands.write(shlex.join(command) + "\n")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    if done.returncode != 0:
        raise SystemExit(f"real_cores: {name} ended with exit status {done.returncode}")
    finished.write_text(done.stdout, "utf-8")


if __name__ == "__main__":
    main()
