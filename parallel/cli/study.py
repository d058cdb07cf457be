"""What `psearch speedup`, `simulate` and `predict` share: the suite, the log, the table or its JSON."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.cli.arguments import add_hash, add_json, add_pruning, check_hash
from psearch.cli.numbers import whole_number
from psearch.cli.output import refuse, say
from psearch.defaults import DEFAULT_POLICY, POLICY_NAMES

if TYPE_CHECKING:
    from psearch.notation.epd import SuitePosition

_POLICIES = tuple(name for name in POLICY_NAMES if name != "serial")
_NOT_IN_LOG = ("json", "plot", "log", "from_log", "jobs", "costs", "trace")
"""Arguments that do not change the figures, or whose contents the log holds."""


def add_suite(parser: argparse.ArgumentParser) -> None:
    """`--suite FILE` and `--positions K`."""
    parser.add_argument("--suite", metavar="FILE", help="EPD or FEN positions, one a line; `-` reads standard input")
    parser.add_argument("--positions", type=whole_number(1, 10**6), metavar="K", help="only the first K positions")


def read_positions(options: argparse.Namespace) -> list[SuitePosition]:
    """The suite's first positions, each once: results are told apart by position."""
    from psearch.notation.epd import read_suite

    once = {position.board.fen(): position for position in reversed(read_suite(options.suite)[: options.positions])}
    return list(reversed(once.values()))


def add_study_options(parser: argparse.ArgumentParser) -> None:
    """What is measured, and where the figures go."""
    add_suite(parser)
    parser.add_argument(
        "--policy",
        default=DEFAULT_POLICY,
        metavar="P,Q",
        help=f"when nodes are split: {', '.join(_POLICIES)} (default {DEFAULT_POLICY})",
    )
    add_pruning(parser)
    add_hash(parser)
    add_json(parser, instead_of="the table")
    add_plot(parser, "draw the table (needs matplotlib)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="raw log (default: a new file named by the time)")
    parser.add_argument(
        "--from-log", type=Path, metavar="FILE", help="measure nothing, summarise this log (FILE#RUN: one of several)"
    )


def add_plot(parser: argparse.ArgumentParser, help_text: str) -> None:
    """`--plot PNG`."""
    parser.add_argument("--plot", type=Path, metavar="PNG", help=help_text)


def check_plot(options: argparse.Namespace) -> None:
    """Raise PsearchError for a plot that could not be drawn at the end."""
    if options.plot is not None:
        from psearch.studies import plots

        plots.check_plot(options.plot)


def check_study(command: str, options: argparse.Namespace, needed: Sequence[str]) -> None:
    """Refuse what argparse cannot know, before anything takes long; needed: arguments of a study without a log."""
    if options.from_log is None:
        for name in needed:
            if getattr(options, name) is None:
                refuse(f"--{name} is missing (see psearch {command} --help)")
        check_hash(options.hash)
    elif options.suite is not None or options.log is not None:
        refuse("--from-log measures nothing: leave out --suite and --log")
    check_plot(options)


def policies(text: str) -> list[str]:
    """Names of policies, each once, in their order. Raises PsearchError for a name that is none."""
    from psearch.results import PsearchError

    names = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for name in names:
        if name not in _POLICIES:
            raise PsearchError(f"no policy is called {name[:40]!a}; there are {', '.join(_POLICIES)}")
    return names


def log_path(study: str, options: argparse.Namespace) -> Path:
    """The given one; else beside the plot; else a new name in the current folder."""
    if options.log is not None:
        return Path(options.log)
    if options.plot is not None:
        return Path(options.plot).with_suffix(".jsonl")
    return Path(f"psearch-{study}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl")


def about(study: str, options: argparse.Namespace) -> dict[str, Any]:
    """The first line of the log: every argument that changes the figures."""
    arguments = {name: value for name, value in vars(options).items() if name not in _NOT_IN_LOG}
    return {"study": study, "command": ["psearch", *sys.argv[1:]], "arguments": arguments}


def pruning_of(samples: Sequence[Any]) -> str:
    """What the searches pruned, the same in all; empty if their log does not say."""
    return str(samples[0].pruning) if samples else ""


def print_table(text: str, pruning: str) -> None:
    """The table on stdout, with what was pruned."""
    print(text)
    if pruning:
        print(f"pruning {pruning}")
    sys.stdout.flush()


def report_log(options: argparse.Namespace, path: Path, interrupted: bool) -> None:
    """Say where the raw log is, and whether all of the study is in it."""
    if interrupted:
        say("psearch: interrupted; the table is of the searches that were finished")
    if options.from_log is None:
        say(f"raw log: {path}")
