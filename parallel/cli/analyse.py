"""`psearch analyse`: test suites or games, from files to a file.

numba is imported only once the input is known to be good.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from psearch.cli.arguments import add_search_options, check_hash, without_dashes
from psearch.cli.output import refuse
from psearch.cli.signals import Signals

if TYPE_CHECKING:
    from psearch.cli.analysis_session import Input
    from psearch.notation.source import Source

DESCRIPTION = """\
Search every position of some files, 1 second each if no limit is given.

EPD or FEN: a table of what was found, scored by `bm`, `am` and the points of the Strategic
Test Suite, with the time from which the right move was preferred for good. PGN: the games
with [%eval] comments, and ?!, ? or ?? and a better line where a move cost much, and the
accuracy of each player. Several files make one result; they are all suites or all games.

The result goes to stdout as it comes, or with --out to FILE once it is complete. Until
then FILE.journal holds every finished position: after Ctrl-C or a crash the same command
goes on from there. `-` is stdin or stdout."""

EXAMPLES = """\
examples:
  psearch analyse --movetime 1000 wac.epd
  psearch analyse --threads 2 --depth 12 --json --out wac.jsonl wac.epd sts.epd
  psearch analyse --nodes 1000000 --out annotated.pgn games.pgn more_games.pgn
  psearch analyse --depth 10 - < game.pgn > annotated.pgn
  echo startpos | psearch analyse --json -"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of `psearch analyse`."""
    parser.add_argument("file", nargs="*", metavar="FILE", help="EPD, FEN or PGN; `-` reads standard input")
    parser.add_argument("--out", metavar="FILE", help="write the result here when it is complete")
    add_search_options(parser, "for each position")
    parser.add_argument(
        "--json",
        action="store_true",
        help="one JSON object a line for each position of a suite, or each game; the summary last",
    )


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Read everything, refuse what is wrong, then search."""
    from psearch.notation.source import STANDARD_STREAM, read_source

    files = without_dashes(options.file)
    if not files:
        refuse("no file given: EPD or PGN files, or - (see psearch analyse --help)")
    if files.count(STANDARD_STREAM) > 1:
        refuse("standard input can be read only once: give - once")
    if options.out is not None and options.out != STANDARD_STREAM:
        for file in files:
            _check_out(file, options.out)
    check_hash(options.hash)

    from psearch.cli.analysis_session import Input

    inputs = [Input(file, read_source(file)) for file in files]
    if are_suites(inputs):
        from psearch.cli.analyse_suites import analyse_suites

        return analyse_suites(inputs, options, signals)

    from psearch.cli.analyse_games import analyse_games

    return analyse_games(inputs, options, signals)


def are_suites(inputs: Sequence[Input]) -> bool:
    """True for suites, False for games. Raises PsearchError where there are both: one result cannot hold them."""
    from psearch.results import PsearchError

    suites = [one.source.name for one in inputs if is_epd(one.name, one.source)]
    games = [one.source.name for one in inputs if one.source.name not in suites]
    if suites and games:
        raise PsearchError(f"{suites[0]} is a test suite, {games[0]} has games: analyse them in two calls")
    return bool(suites)


def _check_out(file: str, out: str) -> None:
    """The input must stay as it is: a journal is only good for the input that it was made from. So must what is not
    ours."""
    from psearch.analysis.output import check_place, place_of
    from psearch.results import PsearchError

    try:
        place = place_of(out)
        same = Path(out).exists() and Path(file).exists() and Path(out).samefile(file)
    except (OSError, ValueError) as error:
        raise PsearchError(f"cannot write {out}: {getattr(error, 'strerror', None) or error}") from None
    if same:
        raise PsearchError(f"--out {out} is the input itself: choose another name")
    if place is not None:
        check_place(place)


def is_epd(file: str, source: Source) -> bool:
    """By the name, else by the first line that says something: a position has eight ranks, or is `startpos`."""
    suffix = Path(file).suffix.lower()
    if suffix in (".epd", ".fen", ".pgn"):
        return suffix != ".pgn"
    for _, line in source.lines():
        if line.strip() and line.lstrip()[0] not in "#;%":
            word = line.split()[0].rstrip(";")
            return word == "startpos" or word.count("/") == 7
    return True
