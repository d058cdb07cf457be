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
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from matchplay.elo import MODELS, Sprt
from matchplay.engines import EngineSpec, TimeControl, parse_engine, parse_limit
from matchplay.game import Pairing, Rules, make_seat
from matchplay.journal import MatchJournal
from matchplay.openings import Opening, read_book
from matchplay.scripts import MatchError, Parser, run_script, share
from matchplay.tally import Tally

from psearch.faces.cli.arguments import whole_number
from psearch.files.raw_log import machine
from psearch.files.safe_files import AtomicFile
from psearch.results import PsearchError
from psearch.terminal.status import StatusLine

EXIT_COMPLAINTS = EXIT_FAILED = 1
EXIT_SIGNAL = 128
_MOST_CONCURRENT = 256
_ELO_LIMIT = {"logistic": 500.0, "normalised": 100.0}
_REPORT_EVERY = 10
"""games between lines of progress where stderr is no terminal"""


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


def read_options(words: Sequence[str] | None) -> tuple[argparse.Namespace, tuple[EngineSpec, EngineSpec]]:
    """Read the command line. Raises MatchError, or SystemExit after --help."""
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
    parser.add_where()
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
    options = parser.parse_args(words)
    default: TimeControl | None = None
    for key in ("tc", "nodes", "depth", "movetime"):
        if getattr(options, key) is not None:
            default = parse_limit(key, getattr(options, key))
    first, second = parse_engine(options.first, default), parse_engine(options.second, default)
    if first.name == second.name:
        first, second = (replace(spec, name=f"{spec.name}-{number}") for spec, number in ((first, 1), (second, 2)))
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
    rest = options.resign, options.draw, options.most_moves
    options.rules = Rules(options.margin / 1000, float(options.stall), *rest)
    return options, (first, second)


def play(
    options: argparse.Namespace,
    specs: tuple[EngineSpec, EngineSpec],
    openings: list[Opening],
    journal: MatchJournal,
    tally: Tally,
    signals: list[int],
) -> None:
    """Play games until there is no more to play, or no more to learn, or a signal has come.

    Raises MatchError, and PsearchError when a game's process is lost; no process is left.
    """
    done = {record.number for record in journal.records}
    date = time.strftime("%Y.%m.%d")
    pairings = [
        Pairing(number, number % 2, openings[number // 2 % len(openings)], f"{number // 2 + 1}.{number % 2 + 1}", date)
        for number in range(options.games)
        if number not in done
    ]
    if signals or not pairings or tally.decision is not None:
        return
    make = partial(make_seat, specs, options.rules)
    answers = share(make, pairings, options.concurrency, options.on, lambda: bool(signals))
    with closing(answers) as finished, StatusLine(only_terminal=True) as status:
        for _, (names, record) in finished:
            journal.name(names)
            journal.add(record)
            tally.add(record)
            for complaint in record.complaints:
                status.make_room()
                name = tally.names[complaint.engine]
                print(f"game {record.number + 1}: {name}: {complaint.kind}: {complaint.text}", file=sys.stderr)
            count = len(tally.records)
            text = f"{count}/{options.games}  {tally.short()}"
            status(text, count, options.games)
            if count % _REPORT_EVERY == 0 and not sys.stderr.isatty():
                print(text, file=sys.stderr, flush=True)
            if tally.decision is not None:
                return


def run(words: Sequence[str] | None = None) -> int:
    """Play the match; returns the exit status. Raises MatchError when nothing was played."""
    options, specs = read_options(words)
    openings = read_book(options.book, options.chess960)
    if options.seed is not None:
        random.Random(options.seed).shuffle(openings)
    digest = hashlib.sha256("\n".join(str(opening) for opening in openings).encode()).hexdigest()[:16]
    book = options.book and options.book.name
    settings = {
        "first": specs[0].settings(),
        "second": specs[1].settings(),
        "openings": {"book": book, "number": len(openings), "sha256": digest, "seed": options.seed},
        "rules": asdict(options.rules),
    }
    settings = json.loads(json.dumps(settings))  # as the journal has it
    begun, load_before = time.time(), os.getloadavg()
    signals: list[int] = []
    failure: str | None = None
    with MatchJournal(options.out, settings, resume=options.resume) as journal:
        tally = Tally((specs[0].name, specs[1].name), options.sprt)
        for record in journal.records:
            tally.add(record)
        if len(openings) < (pairs := (options.games + 1) // 2):
            print(f"match.py: {pairs} pairs from {len(openings)} openings: openings are repeated", file=sys.stderr)
        handlers = {
            number: signal.signal(number, lambda number, frame: signals.append(number))
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            play(options, specs, openings, journal, tally, signals)
        except PsearchError as error:
            failure = f"{error}; --resume goes on"
        except MatchError as error:
            if not journal.records:
                journal.remove()
                raise
            failure = str(error)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    if tally.records:
        print("\n".join(tally.lines()))
    summary = {
        **tally.summary(),
        "id_names": journal.id_names,
        "settings": settings,
        "concurrency": options.concurrency,
        "machine": machine(),
        "load_before": load_before,
        "load_after": os.getloadavg(),
        "seconds": round(time.time() - begun, 1),
        "interrupted": bool(signals),
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    path = options.out.with_name(options.out.name + ".json")
    try:
        with AtomicFile(path, path.with_name(path.name + ".part")) as file:
            file.write(json.dumps(summary, indent=1) + "\n")
            file.commit()
    except OSError as error:
        failure = failure or f"cannot write {path}: {error.strerror}"
    if failure is not None:
        print(f"match.py: {failure}", file=sys.stderr)
        return EXIT_FAILED
    if signals:
        return EXIT_SIGNAL + signals[0]
    names = journal.id_names or tally.names
    at_fault = {complaint.engine for _, complaint in tally.complaints}
    return EXIT_COMPLAINTS if any(names[engine].lower().startswith("psearch") for engine in at_fault) else 0


if __name__ == "__main__":
    sys.exit(run_script("match"))
