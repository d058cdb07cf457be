"""`psearch analyse`: search the positions of test suites, games or JSON lines."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from psearch.defaults import JOB_HASH_MB
from psearch.faces.cli.arguments import add_flag, add_limits, add_on, add_settings
from psearch.faces.cli.output import complain, refuse
from psearch.faces.cli.signals import Signals
from psearch.settings import HASH, MARK_RULES, MULTIPV, SYZYGY, THREADS

if TYPE_CHECKING:
    from psearch.faces.cli.analyses import Input

DESCRIPTION = """\
Search every position in the given files, for 1 second each if no limit is given. Several
files give one result and must be of the same kind:

  EPD or FEN   prints a table of the moves found, scored by `bm`, `am` and the points of the
               Strategic Test Suite, and the time after which the right move stayed best
  PGN          writes the games with [%eval] comments; moves that lose much get ?!, ? or ??
               and a better line, and each player gets an accuracy
  JSON lines   writes a line with the result for each object with id, fen, moves, limits
               and multipv

As many positions or games as there are cores are searched at a time, with one worker each;
when fewer are left, they share all cores. With --threads every position gets exactly that
number of workers.

Results go to stdout as they come. With --out they go to FILE once all are complete; until
then FILE.journal keeps every finished position, and after Ctrl-C or a crash the same
command continues from there. `-` means stdin or stdout."""

EXAMPLES = """\
examples:
  psearch analyse --movetime 1000 wac.epd
  psearch analyse --threads 2 --depth 12 --json --out wac.jsonl wac.epd sts.epd
  psearch analyse --nodes 1000000 --out annotated.pgn games.pgn more_games.pgn
  psearch analyse --nodes 1000000 --on ray://head --out wac.txt wac.epd
  psearch analyse --depth 10 - < game.pgn > annotated.pgn
  psearch analyse --jobs 8 --nodes 50000 --out results.jsonl positions.jsonl
  echo startpos | psearch analyse --json -"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="*", metavar="FILE", help="EPD, FEN, PGN or JSON lines; `-` reads standard input")
    words = "write the result here when it is complete; .csv, .parquet, .jsonl and .pgn say what is written"
    parser.add_argument("--out", metavar="FILE", help=words)
    words = "positions or games searched at a time (default: the usable cores divided by --threads)"
    parser.add_argument("--jobs", type=THREADS.of_argument, metavar="N", help=words)
    words = "worker processes for each position (default: 1, and more when fewer positions than jobs are left)"
    THREADS.add_to(parser, words)
    add_limits(parser, "for each position")
    words = f"transposition table of each job in MiB (default {JOB_HASH_MB}, or less if --nodes needs less)"
    HASH.add_to(parser, words)
    add_settings(parser)
    MULTIPV.add_to(parser, "find the N best moves of each position; all are in --json and in JSON lines", default=1)
    SYZYGY.add_to(parser)
    words = "older results, from JSON lines or --json: keep an older result that is deeper than the new one"
    parser.add_argument("--merge", metavar="FILE", help=words)
    words = "rule of the marks: that of lichess.org (default), or psearch's loss of expected points"
    parser.add_argument("--marks", choices=MARK_RULES, help=words)
    add_flag(parser, "--fresh-marks", "remove the marks that moves of a game have already")
    add_flag(parser, "--wdl", "note the chances to win, draw and lose in games as [%%wdl]")
    add_on(parser, "search on a Ray cluster")
    add_flag(parser, "--json", "print one JSON object per line for each position or game, then the summary")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Read and check all input, then search it."""
    from psearch.text.source import STANDARD_STREAM, Stream, open_source, read_source

    files = options.file
    if not files:
        refuse("no file given: give EPD or PGN files, or - (see psearch analyse --help)")
    if [*files, options.merge].count(STANDARD_STREAM) > 1:
        refuse("standard input can be read only once: give - once")
    is_to_file = options.out is not None and options.out != STANDARD_STREAM
    if is_to_file:
        for file in files:
            _check_out(file, options.out)
        if options.merge is not None:
            _check_out(options.merge, options.out, is_merged=True)
        ending = Path(options.out.lower()).suffix
        if ending in (".csv", ".parquet", ".pgn") and options.json:
            refuse(f"--json and --out FILE{ending} exclude each other")
        options.json = options.json or ending in (".jsonl", ".ndjson")

    from psearch.faces.cli import analyses

    if options.syzygy and options.on is None:
        from psearch.searcher.root import Root

        Root(options.syzygy, complain).close()
    if len(files) == 1 and not is_to_file:
        opened = open_source(files[0])
        if isinstance(opened, Stream) and file_kind(files[0], opened.first_lines()) is Kind.LINES:
            _check_options(options, Kind.LINES, files[0])
            return analyses.analyse_lines([], options, signals, opened)
        inputs = [analyses.Input(files[0], opened.copied() if isinstance(opened, Stream) else opened)]
    else:
        inputs = [analyses.Input(file, read_source(file)) for file in files]
    analyse = {
        Kind.SUITE: analyses.analyse_suites,
        Kind.GAMES: analyses.analyse_games,
        Kind.LINES: analyses.analyse_lines,
    }
    kind = kind_of(inputs)
    if is_to_file and options.out.lower().endswith(".pgn") and kind is not Kind.GAMES:
        refuse(f"--out {options.out}: a .pgn holds games, and {inputs[0].name} {kind.value}")
    _check_options(options, kind, inputs[0].name)
    return analyse[kind](inputs, options, signals)


def _check_options(options: argparse.Namespace, kind: Kind, name: str) -> None:
    """Refuse options that would do nothing. name: a file of this kind."""
    from psearch.batch.analysis.tables import ending_of

    of_games = {"--marks": options.marks, "--fresh-marks": options.fresh_marks, "--wdl": options.wdl}
    is_data = options.json or kind is Kind.LINES or ending_of(options.out)
    for option, value in of_games.items():
        if value and kind is not Kind.GAMES:
            refuse(f"{option} is for games, and {name} {kind.value}")
        if value and is_data and option != "--marks":
            refuse(f"{option} is for annotated games, not for --json and tables, which have all of it")
    if options.multipv > 1 and not is_data:
        refuse("--multipv needs --json, or --out with .jsonl, .csv or .parquet: nothing else shows more than one line")
    options.marks = options.marks or MARK_RULES[0]


class Kind(Enum):
    """Kind of a file; the value is a phrase for messages."""

    SUITE = "is a test suite"
    GAMES = "has games"
    LINES = "has JSON lines"


_JSON = re.compile(r'\s*\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|\}\s*$)')
"""Pattern of the begin of a JSON object; a comment of a game may begin with a brace and a quotation, too."""
_PACKED = (".gz", ".bz2", ".zst")
_KINDS = {
    **dict.fromkeys((".epd", ".fen"), Kind.SUITE),
    ".pgn": Kind.GAMES,
    **dict.fromkeys((".jsonl", ".ndjson"), Kind.LINES),
}


def kind_of(inputs: Sequence[Input]) -> Kind:
    """Return the kind of all files. Raises PsearchError if they differ, since one result cannot hold both."""
    from psearch.results import PsearchError

    kinds = [file_kind(one.name, (line.text for line in one.source.lines())) for one in inputs]
    for one, kind in zip(inputs, kinds, strict=True):
        if kind is not kinds[0]:
            found = f"{inputs[0].source.name} {kinds[0].value}, {one.source.name} {kind.value}"
            raise PsearchError(f"{found}: analyse them in two calls")
    return kinds[0]


def file_kind(file: str, lines: Iterable[str]) -> Kind:
    """Return the kind of a file by its name, else by its first line: a position is `startpos` or has eight ranks."""
    from psearch.text.epd_text import REMARK
    from psearch.text.fen import LABEL

    path = Path(file.lower())
    named = _KINDS.get(Path(path.stem).suffix if path.suffix in _PACKED else path.suffix)
    if named is not None:
        return named
    for line in lines:
        if _JSON.match(line):
            return Kind.LINES
        if line.strip() and not REMARK.match(line):
            label = LABEL.match(line)
            word = line[label.end() if label else 0 :].split(maxsplit=1)[0].rstrip(";").casefold()
            return Kind.SUITE if word == "startpos" or word.count("/") == 7 else Kind.GAMES
    return Kind.SUITE


def _check_out(file: str, out: str, is_merged: bool = False) -> None:
    """Raise PsearchError for an output that cannot be written, or that is an input: the journal needs it unchanged.
    is_merged: the file holds older results, which the output may replace when it is complete, but not before."""
    from psearch.batch.analysis.analysis_files import place_of
    from psearch.results import PsearchError

    try:
        place = place_of(out)
        written = [] if place is None else [Path(f"{place}.part"), Path(f"{place}.journal")]
        written += [] if place is None or is_merged else [place]
        same = any(one.exists() and Path(file).exists() and one.samefile(file) for one in written)
    except (OSError, ValueError) as error:
        raise PsearchError(f"cannot write {out}: {getattr(error, 'strerror', None) or error}") from None
    if same:
        what = f"--merge {file}" if is_merged else "the input"
        raise PsearchError(f"--out {out} would replace {what}: choose another name")
