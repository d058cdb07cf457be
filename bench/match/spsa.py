"""SPSA: values of the search's parameters, all moved at once by games of the search against itself.

    python bench/match/spsa.py lmr_base=90:60:140:8 null_base=3:2:5:1 --book a.epd b.epd --log tune.jsonl
        [--nodes 60000] [--games 4000] [--first modern] [--rate 0.02] [--batch 16] [--seed 1] [--jobs 2]
    python bench/match/spsa.py ... --log tune.jsonl --table

A parameter is NAME=START:LOW:HIGH[:STEP], named as in `--pruning modern,NAME=VALUE`. For each pair of games and each
parameter it is drawn which side plays above the present value and which below it, by STEP c(k), and every value moves
towards the side that won, by STEP g(k) for each point that it is ahead:

    c(k) = (N / k)^0.101    g(k) = R ((A + N) / (A + k))^0.602 / c(k)

where k is the pair's number, N all pairs, A a tenth of them and R is --rate (Spall 1998, scaled as in Stockfish's
testing framework). STEP is a twentieth of the range unless it is said. The pairs of a batch are played with the same
values.

The games depend on the seed and these settings alone, whatever --jobs is. The log has a line with the settings and one
for each pair; the same command goes on where a killed one was. --table plays nothing. Values as found by SPSA are tried
by games before they are taken: `quick.py`, `match.py`. Exit status: 0, 2 bad input, 130 Ctrl-C (the same command goes
on).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from matchplay.in_process import add_arguments, openings_of
from matchplay.openings import Opening
from matchplay.scripts import EXIT_INTERRUPTED, MatchError, Parser, run_script, share
from quick import Table, serial_search

from psearch.faces.cli.arguments import whole_number
from psearch.files.safe_files import Journal
from psearch.options import pruning_named
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.records.pruning_record import Pruning

_ALPHA, _GAMMA = 0.602, 0.101
_STEADY = 0.1
"""The constant A, as a share of all pairs"""
_STEPS = 20
_EVEN = 2
"""Half points of a pair that nobody won"""
_BATCHES_A_LOOK = 25

Values = dict[str, int]
Pair = tuple[int, Values, Values]
"""Number of a pair, and the values of both sides"""
Play = Callable[[Sequence[Pair]], Generator[tuple[int, int]]]
"""Yields number and half points of the first side of each pair, in any order"""


class Parameter(NamedTuple):
    name: str
    start: int
    low: int
    high: int
    step: float


def parameter_of(text: str) -> Parameter:
    """Return the parameter that a word of the command line names. Raises MatchError."""
    found = re.fullmatch(r"(\w+)=(-?\d{1,6}):(-?\d{1,6}):(-?\d{1,6})(?::(\d{1,6}(?:\.\d{1,3})?))?", text)
    if found is None:
        raise MatchError(f"a parameter is NAME=START:LOW:HIGH[:STEP], not {text[:60]!a}")
    start, low, high = (int(found[i]) for i in (2, 3, 4))
    step = float(found[5] or max(1.0, (high - low) / _STEPS))
    if not low <= start <= high or not 0 < step < high - low:
        raise MatchError(f"{text[:60]}: LOW, START and HIGH must ascend, and STEP be above 0 and below their range")
    return Parameter(found[1], start, low, high, step)


class Course:
    """The present values, and how they move."""

    def __init__(self, parameters: Sequence[Parameter], pairs: int, rate: float, seed: int) -> None:
        self.parameters = parameters
        self.values = [float(one.start) for one in parameters]
        self._pairs = pairs
        self._rate = rate
        self._seed = seed

    def _signs(self, pair: int) -> list[int]:
        dice = random.Random(f"{self._seed} {pair}")
        return [dice.choice((-1, 1)) for _ in self.parameters]

    def _width(self, pair: int) -> float:
        """How far a side stands from the present values, in steps."""
        return (self._pairs / (pair + 1)) ** _GAMMA

    def sides(self, pair: int) -> tuple[Values, Values]:
        """Return the values of both sides in a pair, whose number counts from 0."""
        first: Values = {}
        second: Values = {}
        for one, value, sign in zip(self.parameters, self.values, self._signs(pair), strict=True):
            for side, away in ((first, sign), (second, -sign)):
                moved = value + away * one.step * self._width(pair)
                side[one.name] = round(min(max(moved, one.low), one.high))
        return first, second

    def move(self, results: Mapping[int, int]) -> None:
        """Move the values by the half points of the pairs of a batch, in the order of their numbers."""
        steady = _STEADY * self._pairs
        for pair in sorted(results):
            gain = self._rate * ((steady + self._pairs) / (steady + pair + 1)) ** _ALPHA / self._width(pair)
            for i, (one, sign) in enumerate(zip(self.parameters, self._signs(pair), strict=True)):
                moved = self.values[i] + gain * one.step * sign * (results[pair] - _EVEN)
                self.values[i] = min(max(moved, one.low), one.high)


def table_of(course: Course, pairs: int) -> str:
    """Return the values after so many pairs, and the text that makes a search play with them."""
    lines = [f"{2 * pairs} games", f"{'parameter':28} {'start':>8} {'now':>10}   range"]
    for one, value in zip(course.parameters, course.values, strict=True):
        lines.append(f"{one.name:28} {one.start:>8} {value:>10.2f}   {one.low} to {one.high}, step {one.step:g}")
    now = ",".join(f"{one.name}={round(value)}" for one, value in zip(course.parameters, course.values, strict=True))
    return "\n".join([*lines, now])


def tune(course: Course, pairs: int, batch: int, play: Play, log: Journal, facts: dict[str, object]) -> Iterator[int]:
    """Play, and move the course; yields the pairs played behind each batch. Raises MatchError for the log of others."""
    known: dict[int, int] = {}
    is_new = True
    for line in log.lines():
        is_new = False
        try:
            if line.number == 1:
                if line.value["spsa"] != facts:
                    raise MatchError(f"{log.path} is of other settings: name another file")
            elif 0 <= line.value["pair"] < pairs and 0 <= line.value["half_points"] <= 2 * _EVEN:
                known[line.value["pair"]] = line.value["half_points"]
            else:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise MatchError(f"{log.path}, line {line.number}: not a line of this log") from None
    log.cut()
    if is_new:
        log.append({"spsa": facts})
    for begin in range(0, pairs, batch):
        numbers = range(begin, min(begin + batch, pairs))
        missing = [(number, *course.sides(number)) for number in numbers if number not in known]
        with closing(play(missing)) as answers:
            for number, half_points in answers:
                log.append({"pair": number, "half_points": half_points})
                known[number] = half_points
        if any(number not in known for number in numbers):
            return
        course.move({number: known[number] for number in numbers})
        yield numbers[-1] + 1


def _make(base: Pruning, nodes: int) -> Callable[[tuple[Opening, Values, Values]], int]:
    table = Table(serial_search(base), serial_search(base), nodes)

    def play(task: tuple[Opening, Values, Values]) -> int:
        opening, first, second = task
        table.play_with(replace(base, **first), replace(base, **second))
        return table.pair(opening)

    return play


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(description=__doc__)
    parser.add_argument("parameters", nargs="+", metavar="NAME=START:LOW:HIGH[:STEP]")
    parser.add_argument("--first", default="modern", metavar="MODE[,NAME=VALUE...]", help="what the values go into")
    add_arguments(parser, games=4000, nodes=60_000)
    parser.add_where()
    parser.add_argument("--rate", type=float, default=0.02, metavar="R", help="steps a point at the end (0.02)")
    parser.add_argument("--batch", type=whole_number(1, 10**4), default=16, metavar="N", help="pairs (16)")
    parser.add_argument("--log", type=Path, required=True, metavar="FILE", help="of what is played")
    parser.add_argument("--table", action="store_true", help="print the values found so far; nothing is played")
    options = parser.parse_args(words)
    if not 0 < options.rate <= 1:
        parser.error("--rate must be above 0 and at most 1")
    return options


def run(words: Sequence[str] | None = None) -> int:
    """Tune, or read how far it is, and print; returns the exit status. Raises MatchError for bad input."""
    options = _read(words)
    parameters = [parameter_of(text) for text in options.parameters]
    base = pruning_named(options.first)
    for one in parameters:
        for bound in (one.low, one.high):
            pruning_named(f"{options.first},{one.name}={bound}")
    openings = openings_of(options)
    pairs = len(openings)
    names = ("parameters", "first", "nodes", "games", "rate", "batch", "seed")
    facts = {name: getattr(options, name) for name in names} | {"openings": len(openings)}
    course = Course(parameters, pairs, options.rate, options.seed)
    done, status = 0, 0

    def play(missing: Sequence[Pair]) -> Generator[tuple[int, int]]:
        tasks = [(openings[number], first, second) for number, first, second in missing]
        if tasks and not options.table:
            with closing(share(partial(_make, base, options.nodes), tasks, options.jobs, options.on)) as answers:
                for place, half_points in answers:
                    yield missing[place][0], half_points

    with ExitStack() as ending:
        path = options.log
        if options.table:  # of a copy, since another run may be writing it
            path = Path(ending.enter_context(TemporaryDirectory())) / path.name
            try:
                path.write_bytes(options.log.read_bytes())
            except OSError as error:
                raise MatchError(f"cannot read {options.log}: {error.strerror}") from None
        try:
            log = ending.enter_context(Journal(path, b'{"spsa": '))
        except BlockingIOError:
            raise MatchError(f"{path}: this tuning is under way") from None
        load_kernels()  # compiled once, not by every process
        try:
            for done in tune(course, pairs, options.batch, play, log, facts):
                if done // options.batch % _BATCHES_A_LOOK == 0:
                    print(table_of(course, done), flush=True)
        except KeyboardInterrupt:
            status = EXIT_INTERRUPTED
    print(table_of(course, done))
    return status


if __name__ == "__main__":
    sys.exit(run_script("spsa"))
