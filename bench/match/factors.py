"""Many changes to selective search in one match: what each of them is worth.

    python bench/match/factors.py lmr_base=90:120 probcut=0:1 lmr_deeper=0:60+lmr_shallower=0:10 \\
        --nodes 6000 --games 2000 --book a.epd b.epd --log tries.jsonl [--first modern] [--second modern] [--skip 500]
    python bench/match/factors.py --read tries.jsonl [more.jsonl]

A change is NAME=LOW:HIGH, several joined by + move together. For each pair of games and each change it is drawn which
side plays with the low values, the other one plays with the high ones; a linear model then says what the high values
are worth against the low ones. A change alone would need as many games for the same interval, so twenty changes cost
twenty times less; what two changes do together is averaged. --first and --second are what the changes are made to: if
they differ, the row *first* is what the one is worth against the other. For the rest see `quick.py`. --skip leaves
out openings of the shuffled book that were played before.

The log has a line with the changes, then one for each pair: the signs (1: the first side has the high values) and the
half points of the first side. --read takes compressed logs (.xz), too, and pools logs of different changes; a change
has the sign 0 in games without it. Exit status: 0, 2 bad input, 130 Ctrl-C (the log has what was played).
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from matchplay.in_process import add_arguments, openings_of
from matchplay.openings import Opening
from matchplay.scripts import EXIT_INTERRUPTED, MatchError, Parser, run_script, share
from quick import Table, serial_search

from psearch.faces.cli.arguments import whole_number
from psearch.files.safe_files import json_value
from psearch.options import pruning_named
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.records.pruning_record import Pruning

_PAIRS_A_LOOK = 100
_PER_SCORE = 4 * 400 / math.log(10)
"""Elo per point of score, near an even match"""
_Z = 1.96
_ALIKE = 1e-6
"""Rounding error of a share that is one: the share of a value that the pairs determine"""

Task = tuple[Opening, list[int]]
Changes = list[list[tuple[str, int, int]]]
"""Names with their low and high values, those that move together in one list"""


def changes_of(texts: Sequence[str]) -> Changes:
    """Return the changes that the command line names. Raises MatchError."""
    found = []
    for text in texts:
        parts = [re.fullmatch(r"(\w+)=([+-]?\d{1,6}):([+-]?\d{1,6})", part) for part in text.split("+")]
        if not all(parts):
            raise MatchError(f"a change is NAME=LOW:HIGH, joined by + with others, not {text[:60]!a}")
        found.append([(part[1], int(part[2]), int(part[3])) for part in parts if part])
    return found


def changed(pruning: Pruning, changes: Changes, signs: Sequence[int]) -> Pruning:
    """Return the pruning with the high values where the sign is positive, and the low ones elsewhere."""
    values = {
        name: high if sign > 0 else low for one, sign in zip(changes, signs, strict=True) for name, low, high in one
    }
    return replace(pruning, **values)


def _make(first: Pruning, second: Pruning, changes: Changes, nodes: int) -> Callable[[Task], int]:
    table = Table(serial_search(first), serial_search(second), nodes)

    def play(task: Task) -> int:
        opening, signs = task
        table.play_with(changed(first, changes, signs), changed(second, changes, [-sign for sign in signs]))
        return table.pair(opening)

    return play


def table_of(names: Sequence[str], rows: Sequence[tuple[list[int], int]]) -> str:
    """Return the Elo of each change, of its high values against its low ones, with 95% intervals."""
    return _table(["first", *names], [([1, *signs], half_points) for signs, half_points in rows])


def _table(names: Sequence[str], rows: Sequence[tuple[list[int], int]]) -> str:
    if len(rows) <= len(names):
        return f"{len(rows)} pairs: too few for {len(names)} values"
    matrix = np.array([signs for signs, _ in rows], float)
    score = np.array([(half_points - 2) / 4 for _, half_points in rows])
    values, _, rank, _ = np.linalg.lstsq(matrix, score, rcond=None)
    rest = score - matrix @ values
    variance = rest @ rest / (len(rows) - rank)
    errors = np.sqrt(np.diag(np.linalg.pinv(matrix.T @ matrix)) * variance)
    known = np.diag(np.linalg.pinv(matrix) @ matrix) > 1 - _ALIKE
    lines = [f"{2 * len(rows)} games; Elo of high against low (95%)"]
    for name, value, error, is_known in zip(names, values * _PER_SCORE, errors * _PER_SCORE, known, strict=True):
        figures = f"{value:+7.1f} +- {_Z * error:5.1f}" if is_known else "not told apart  "
        lines.append(f"{figures}  {name}")
    return "\n".join(lines)


Log = tuple[str, list[str], list[tuple[list[int], int]]]
"""The two sides, the changes, and for each pair of games its signs and half points"""


def _read_log(path: Path) -> Log:
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as file:
            facts, *lines = [json_value(line) for line in file if line.endswith("\n")]  # else a kill has cut it
        names = facts["changes"]
        rows = [([int(sign) for sign in line["signs"]], int(line["half_points"])) for line in lines]
        if not all(isinstance(name, str) for name in names) or any(len(signs) != len(names) for signs, _ in rows):
            raise TypeError("it is no log of factors.py")
        first = facts.get("first", "modern")
        return f"{first} against {facts.get('second') or first}", names, rows
    except (OSError, EOFError, lzma.LZMAError, ValueError, LookupError, TypeError, OverflowError) as error:
        raise MatchError(f"cannot read {path}: {error}") from None


def _read_logs(paths: Sequence[Path]) -> str:
    logs = [_read_log(path) for path in paths]
    sides = list(dict.fromkeys(side for side, _, _ in logs))
    changes = list(dict.fromkeys(name for _, names, _ in logs for name in names))
    rows = []
    for side, names, own in logs:
        for signs, half_points in own:
            played = dict(zip(names, signs, strict=True))
            who = [int(side == one) for one in sides]
            rows.append(([*who, *(played.get(name, 0) for name in changes)], half_points))
    return _table([*(sides if len(sides) > 1 else ["first"]), *changes], rows)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(description=__doc__)
    parser.add_argument("--first", default="modern", metavar="MODE[,NAME=VALUE...]")
    parser.add_argument("--second", metavar="MODE[,NAME=VALUE...]", help="default: as --first")
    parser.add_argument("changes", nargs="*", metavar="NAME=LOW:HIGH[+...]")
    add_arguments(parser, games=2000, book_is_needed=False)
    parser.add_where()
    parser.add_argument("--skip", type=whole_number(0, 10**7), default=0, metavar="N", help="openings (0)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="of what is played")
    parser.add_argument("--read", nargs="+", type=Path, metavar="FILE", help="logs: nothing is played")
    return parser.parse_args(words)


def _tasks(options: argparse.Namespace) -> list[Task]:
    dice = random.Random(f"{options.seed} {options.skip}")
    openings = openings_of(options, options.skip)
    return [(opening, [dice.choice((-1, 1)) for _ in options.changes]) for opening in openings]


def run(words: Sequence[str] | None = None) -> int:
    """Play, or read what was played, and print; returns the exit status. Raises MatchError for bad input."""
    options = _arguments(words)
    if options.read:
        print(_read_logs(options.read))
        return 0
    if not options.changes or options.log is None:
        raise MatchError("some changes and a --log are needed, or --read")
    first = pruning_named(options.first)
    second = pruning_named(options.second or options.first)
    changes = changes_of(options.changes)
    for side in (options.first, options.second or options.first):
        for name, low, high in (value for one in changes for value in one):
            for bound in (low, high):
                pruning_named(f"{side},{name}={bound}")
    tasks = _tasks(options)
    load_kernels()  # compiled once, not by every process
    facts = {name: getattr(options, name) for name in ("changes", "first", "second", "nodes", "seed", "skip")}
    rows: list[tuple[list[int], int]] = []
    status = 0
    answers = share(partial(_make, first, second, changes, options.nodes), tasks, options.jobs, options.on)
    try:
        with options.log.open("x", encoding="utf-8") as log:
            log.write(json.dumps(facts) + "\n")
            for place, half_points in answers:
                rows.append((tasks[place][1], half_points))
                log.write(json.dumps({"signs": tasks[place][1], "half_points": half_points}) + "\n")
                log.flush()
                if len(rows) % _PAIRS_A_LOOK == 0:
                    print(table_of(options.changes, rows), flush=True)
    except FileExistsError:
        raise MatchError(f"{options.log} exists") from None
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    finally:
        answers.close()
    print(table_of(options.changes, rows))
    return status


if __name__ == "__main__":
    sys.exit(run_script("factors"))
