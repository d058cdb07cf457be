"""A match between two engines, UCI or xboard: who is stronger, and what there is to complain about.

    python bench/match/match.py --first "name=new option.Hash=16" --second "name=old cmd='/tmp/old/bin/psearch uci'" \\
        --tc 5+0.05 --games 1000 --concurrency 2 --book book.epd --sprt 0,5 --out new-old
    python bench/match/match.py --first "option.Threads=2" --second "option.Threads=1" --tc 2+0.02 --games 20
    python bench/match/match.py --first "" --second "cmd=/usr/games/phalanx proto=xboard" --tc 2+0.02 --games 20

An engine is NAME=VALUE words: name, cmd (default: this psearch), proto (uci, xboard), dir, option.NAME, and its own tc,
nodes, depth or movetime in place of the match's. Every opening is played twice, with colours changed; python-chess is
the client. The clock is kept here, without a margin, from the line that asks to the line that answers, in a process of
its own for each game under way. Draws by repetition, fifty moves and material end a game; nothing else is adjudicated
unless --resign or --draw asks for it.

Complained about are: time losses, illegal moves, no moves, stalls, engines that end, and mates that were announced and
did not come. Listed for a look: draws that an engine three pawns ahead, as it thought, let happen.

PREFIX.jsonl is the journal, PREFIX.pgn the games, PREFIX.json the summary. --resume goes on after whatever ended the
match; --games may then be another number. Ctrl-C ends it with the result so far.

Exit status: 0 done; 1 a complaint against an engine that calls itself psearch, or the match could not go on; 2 bad
input or an engine that does not start; 130 or 143 ended by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from matchplay.elo import MODELS, Sprt
from matchplay.engines import EngineSpec, TimeControl, parse_engine, parse_limit
from matchplay.errors import EXIT_BAD_INPUT, MatchError, Parser
from matchplay.game import Pairing, Record, Rules
from matchplay.journal import MatchJournal
from matchplay.openings import Opening, read_book
from matchplay.sharing import add_where, share_on
from matchplay.slot import Failed, Ready, make_seat, run_slot
from matchplay.tally import Tally
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from psearch.faces.cli.numbers import whole_number
from psearch.files.raw_log import machine
from psearch.processes.lifetime import signals_blocked
from psearch.results import PsearchError

EXIT_COMPLAINTS = EXIT_FAILED = 1
EXIT_SIGNAL = 128
_LOOK_S = 0.25
_END_S = 15.0
"""for a slot to end its engines; then it is killed, and they with it"""
_MOST_CONCURRENT = 256
_ELO_LIMIT = {"logistic": 500.0, "normalised": 100.0}
_REPORT_EVERY = 10
"""games between lines of progress where stderr is no terminal"""


class _Slot:
    """A process that plays, and the game it plays."""

    def __init__(self, specs: tuple[EngineSpec, EngineSpec], rules: Rules) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would hold the other slots' connections open
        self.connection, other = context.Pipe()
        self.process = context.Process(target=run_slot, args=(other, specs, rules))
        resource_tracker.ensure_running()  # else the start does it, which ends the block too soon
        with signals_blocked({signal.SIGINT}):
            self.process.start()
        other.close()
        self.pairing: Pairing | None = None
        self.idle = False

    def play(self, pairing: Pairing) -> None:
        self.pairing, self.idle = pairing, False
        self.connection.send(pairing)

    def receive(self) -> Ready | Failed | Record:
        """Raises MatchError when the process is gone."""
        try:
            report: Ready | Failed | Record = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(_END_S)
            raise MatchError(f"a game's process ended with status {self.process.exitcode}; --resume goes on") from None
        if not isinstance(report, Failed):
            self.pairing, self.idle = None, True
        return report


class Match:
    """Deals out games until there is no more to play, or no more to learn."""

    def __init__(
        self,
        options: argparse.Namespace,
        specs: tuple[EngineSpec, EngineSpec],
        openings: list[Opening],
        journal: MatchJournal,
    ) -> None:
        self.options = options
        self.specs = specs
        self.openings = openings
        self.journal = journal
        self.tally = Tally((specs[0].name, specs[1].name), options.sprt)
        for record in journal.records:
            self.tally.add(record)
        done = {record.number for record in journal.records}
        self.to_play = [number for number in range(options.games) if number not in done]
        self.slots: list[_Slot] = []
        self.signal = 0
        self.date = time.strftime("%Y.%m.%d")

    def pairing(self, number: int) -> Pairing:
        opening = self.openings[number // 2 % len(self.openings)]
        return Pairing(number, number % 2, opening, f"{number // 2 + 1}.{number % 2 + 1}", self.date)

    @property
    def finished(self) -> bool:
        """Whether nothing more will be dealt out."""
        return bool(self.signal) or not self.to_play or self.tally.decision is not None

    def play(self) -> None:
        """All games. Raises MatchError; no process is left in any case."""
        if self.options.on is not None:
            self._play_on_cluster()
            return
        try:
            if not self.finished:
                for _ in range(min(self.options.concurrency, len(self.to_play))):
                    self.slots.append(_Slot(self.specs, self.options.rules))
                with _progress(self) as report:
                    while not self.finished or (not self.signal and self.tally.decision is None and self._under_way()):
                        self._look(report)
        finally:
            self._end()

    def _play_on_cluster(self) -> None:
        if self.finished:
            return
        answers = share_on(
            self.options.on,
            partial(make_seat, self.specs, self.options.rules),
            map(self.pairing, self.to_play),
            self.options.concurrency,
            lambda: bool(self.signal),
        )
        try:
            with _progress(self) as report, closing(answers) as finished:
                for _, (names, record) in finished:
                    self.journal.name(names)
                    self._add(record, report)
                    if self.tally.decision is not None:
                        return
        except PsearchError as error:
            raise MatchError(str(error)) from None

    def _add(self, record: Record, report: Any) -> None:
        self.journal.add(record)
        self.tally.add(record)
        report(record)

    def _under_way(self) -> bool:
        return any(slot.pairing is not None for slot in self.slots)

    def _look(self, report: Any) -> None:
        waiting: list[Connection] = [slot.connection for slot in self.slots]
        readable = wait(waiting, _LOOK_S)
        for slot in self.slots:
            if slot.connection in readable:
                self._receive(slot, report)
            if slot.idle and not self.finished:
                slot.play(self.pairing(self.to_play.pop(0)))
        report(None)

    def _receive(self, slot: _Slot, report: Any) -> None:
        received = slot.receive()
        if isinstance(received, Failed):
            raise MatchError(received.text)
        if isinstance(received, Ready):
            self.journal.name(received.names)
            return
        self._add(received, report)

    def _end(self) -> None:
        for slot in self.slots:
            slot.connection.close()
        for slot in self.slots:
            slot.process.join(_END_S)
            if slot.process.is_alive():
                slot.process.kill()
                slot.process.join()


@contextmanager
def _progress(match: Match) -> Iterator[Any]:
    """A function to call with each finished game (None: nothing new), which keeps stderr up to date."""
    console = Console(stderr=True)
    tally, games = match.tally, match.options.games

    def complain(record: Record) -> None:
        for complaint in record.complaints:
            text = f"game {record.number + 1}: {tally.names[complaint.engine]}: {complaint.kind}: {complaint.text}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)

    if not console.is_terminal:

        def report(record: Record | None) -> None:
            if record is None:
                return
            complain(record)
            if len(tally.records) % _REPORT_EVERY == 0:
                print(f"{len(tally.records)}/{games}  {tally.short()}", file=sys.stderr, flush=True)

        yield report
        return
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, refresh_per_second=2) as progress:
        task = progress.add_task(tally.short(), total=games, completed=len(tally.records))

        def show(record: Record | None) -> None:
            if record is not None:
                complain(record)
                progress.update(task, completed=len(tally.records), description=tally.short())

        yield show


def _wholes(text: str, what: str, ranges: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    words = text.split(",")
    if len(words) != len(ranges):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return tuple(whole_number(*bounds)(word) for word, bounds in zip(words, ranges, strict=True))


def _sprt(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 4) or not numbers[0] < numbers[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is not ELO0,ELO1 or ELO0,ELO1,ALPHA,BETA with ELO0 < ELO1")
    if any(not 0.0001 <= error <= 0.4 for error in numbers[2:]):
        raise argparse.ArgumentTypeError(f"{text!r}: alpha and beta are from 0.0001 to 0.4")
    return numbers


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = Parser(__doc__)
    parser.add_argument("--first", default="", metavar="ENGINE", help="default: this psearch")
    parser.add_argument("--second", default="", metavar="ENGINE", help="default: this psearch")
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument("--tc", metavar="[MOVES/]SECONDS[+SECONDS]", help="a clock for each")
    limit.add_argument("--nodes", metavar="N", help="nodes for each move")
    limit.add_argument("--depth", metavar="N", help="plies for each move")
    limit.add_argument("--movetime", metavar="SECONDS", help="time for each move")
    parser.add_argument("--games", type=whole_number(1, 10**6), default=20, help="at most (20)")
    parser.add_argument(
        "--concurrency",
        type=whole_number(1, _MOST_CONCURRENT),
        metavar="N",
        help="games at the same time (1; on a cluster: its cores)",
    )
    add_where(parser)
    parser.add_argument("--book", type=Path, metavar="FILE", help="EPD, FEN or PGN; default: ten short openings")
    parser.add_argument(
        "--seed", type=whole_number(0, 2**63 - 1), metavar="N", help="shuffle the book with this; default: its order"
    )
    parser.add_argument("--chess960", action="store_true")
    parser.add_argument("--sprt", type=_sprt, metavar="ELO0,ELO1[,ALPHA,BETA]", help="end when decided (0.05, 0.05)")
    parser.add_argument("--sprt-model", choices=MODELS, help="the Elo of --sprt (normalised)")
    parser.add_argument(
        "--resign",
        type=lambda text: _wholes(text, "CENTIPAWNS,MOVES", ((1, 100_000), (1, 100))),
        metavar="CENTIPAWNS,MOVES",
        help="adjudicate a win when both agree on it for so many moves of each",
    )
    parser.add_argument(
        "--draw",
        type=lambda text: _wholes(text, "CENTIPAWNS,MOVES,FROM", ((0, 1000), (1, 100), (1, 1000))),
        metavar="CENTIPAWNS,MOVES,FROM",
        help="adjudicate a draw when both agree on it for so many moves of each, from that move on",
    )
    parser.add_argument(
        "--most-moves", type=whole_number(1, 5000), default=400, metavar="N", help="of each (400); then drawn"
    )
    parser.add_argument("--margin", type=whole_number(0, 10**5), default=0, metavar="MS", help="of the clocks (0)")
    parser.add_argument(
        "--stall",
        type=whole_number(1, 10**5),
        default=60,
        metavar="SECONDS",
        help="without an answer, beyond the clock where there is one: the engine is ended (60)",
    )
    parser.add_argument("--out", type=Path, metavar="PREFIX", help="of the files; default: match-DATE-TIME")
    parser.add_argument("--resume", action="store_true", help="go on with the match at --out")
    return parser


def read_options(arguments: list[str] | None) -> tuple[argparse.Namespace, tuple[EngineSpec, EngineSpec]]:
    """Raises MatchError, or SystemExit after --help."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    default: TimeControl | None = None
    for key in ("tc", "nodes", "depth", "movetime"):
        if getattr(options, key) is not None:
            default = parse_limit(key, getattr(options, key))
    first, second = parse_engine(options.first, default), parse_engine(options.second, default)
    if first.name == second.name:
        first, second = (_renamed(spec, f"{spec.name}-{number}") for spec, number in ((first, 1), (second, 2)))
    if options.sprt_model is not None and options.sprt is None:
        parser.error("--sprt-model needs --sprt")
    if options.sprt is not None:
        model = options.sprt_model or MODELS[1]
        if max(abs(elo) for elo in options.sprt[:2]) > _ELO_LIMIT[model]:
            parser.error(f"--sprt: {model} Elo is from {-_ELO_LIMIT[model]:g} to {_ELO_LIMIT[model]:g} here")
        options.sprt = replace(Sprt(*options.sprt), model=model)
    if options.concurrency is None and options.on is None:
        options.concurrency = 1
    if options.out is None:
        if options.resume:
            parser.error("--resume needs --out")
        options.out = Path(time.strftime("match-%Y%m%d-%H%M%S"))
    options.rules = Rules(
        margin_s=options.margin / 1000,
        stall_s=float(options.stall),
        resign=options.resign,
        draw=options.draw,
        most_moves=options.most_moves,
    )
    return options, (first, second)


def _renamed(spec: EngineSpec, name: str) -> EngineSpec:
    return EngineSpec(name, spec.command, spec.protocol, spec.limit, spec.options, spec.directory)


def settings_of(
    options: argparse.Namespace, specs: tuple[EngineSpec, EngineSpec], openings: list[Opening]
) -> dict[str, Any]:
    """What makes two matches the same, as JSON has it."""
    digest = hashlib.sha256("\n".join(str(opening) for opening in openings).encode()).hexdigest()[:16]
    settings = {
        "first": asdict(specs[0]),
        "second": asdict(specs[1]),
        "openings": {"book": str(options.book), "number": len(openings), "sha256": digest, "seed": options.seed},
        "rules": asdict(options.rules),
    }
    plain: dict[str, Any] = json.loads(json.dumps(settings))
    return plain


def _loads() -> list[float]:
    return [round(load, 2) for load in os.getloadavg()]


def run(arguments: list[str] | None = None) -> int:
    """The match; the exit status. Raises MatchError."""
    options, specs = read_options(arguments)
    openings = read_book(options.book, options.chess960)
    if options.seed is not None:
        random.Random(options.seed).shuffle(openings)
    settings = settings_of(options, specs, openings)
    begun, loads = time.time(), _loads()
    with MatchJournal(options.out, settings, resume=options.resume) as journal:
        match = Match(options, specs, openings, journal)
        if len(openings) < (pairs := (options.games + 1) // 2):
            print(f"match.py: {pairs} pairs from {len(openings)} openings: openings are repeated", file=sys.stderr)

        def stop(number: int, frame: object) -> None:
            match.signal = number

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        failure = None
        try:
            match.play()
        except MatchError as error:
            if journal.id_names is None:  # nothing was played
                journal.remove()
                raise
            failure = error
    if match.tally.records:
        print("\n".join(match.tally.lines()))
    summary = {
        **match.tally.summary(),
        "id_names": journal.id_names,
        "settings": settings,
        "concurrency": options.concurrency,
        "machine": machine(),
        "load_before": loads,
        "load_after": _loads(),
        "seconds": round(time.time() - begun, 1),
        "interrupted": bool(match.signal),
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    path = options.out.with_name(options.out.name + ".json")
    try:
        path.write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    except OSError as error:
        failure = failure or MatchError(f"cannot write {path}: {error.strerror}")
    if failure is not None:
        print(f"match.py: {failure}", file=sys.stderr)
        return EXIT_FAILED
    if match.signal:
        return EXIT_SIGNAL + match.signal
    names = journal.id_names or match.tally.names
    at_fault = {complaint.engine for _, complaint in match.tally.complaints}
    return EXIT_COMPLAINTS if any(names[engine].lower().startswith("psearch") for engine in at_fault) else 0


def main() -> int:
    """Bad input is one line."""
    try:
        return run()
    except MatchError as error:
        print(f"match.py: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
