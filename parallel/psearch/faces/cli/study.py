"""What `psearch speedup`, `simulate` and `predict` share: the suite, the log, the table or its JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.defaults import DEFAULT_POLICY, JOB_HASH_MB, POLICY_NAMES, STUDY_DRIVERS
from psearch.faces.cli.arguments import add_hash, add_json, add_settings, check_hash
from psearch.faces.cli.numbers import whole_number
from psearch.faces.cli.output import complain, print_json, refuse, say
from psearch.settings import SETTINGS, SPLITTING_POLICIES, is_own_policy
from psearch.text.values import quoted

if TYPE_CHECKING:
    from psearch.files.raw_log import RawLog
    from psearch.games.searching import GameSuitePosition
    from psearch.text.epd_text import SuitePosition
    from psearch_core.toolchain.kernel_sets import KernelSet

_MAX_SEED = 2**63 - 1
_NOT_IN_LOG = ("json", "plot", "log", "from_log", "jobs", "on", "costs", "trace")
"""Arguments that do not change the figures, or whose contents the log holds."""


def add_suite(parser: argparse.ArgumentParser) -> None:
    """Add `--suite FILE` and `--positions K`."""
    parser.add_argument("--suite", metavar="FILE", help="EPD or FEN positions, one a line; `-` reads standard input")
    parser.add_argument("--positions", type=whole_number(1, 10**6), metavar="K", help="only the first K positions")


def read_positions(options: argparse.Namespace) -> list[SuitePosition]:
    """Return the suite's first positions, each once: results are told apart by position."""
    from psearch.text.epd_text import read_suite

    once = {
        position.board.fen(): position
        for position in reversed(read_suite(options.suite, complain)[: options.positions])
    }
    return list(reversed(once.values()))


def add_study_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of what is measured, and where the figures go."""
    add_suite(parser)
    parser.add_argument(
        "--policy",
        default=DEFAULT_POLICY,
        metavar="P,Q",
        help=f"when nodes are split: {', '.join(SPLITTING_POLICIES)} (default {DEFAULT_POLICY}), or files of your own",
    )
    add_settings(parser, "pruning", "evaluation", "with_")
    SETTINGS["driver"].add_to(
        parser,
        "how the value is found, by one worker, too: pvs (default), or null (null windows)",
        choices=STUDY_DRIVERS,
        default=STUDY_DRIVERS[0],
    )
    add_hash(parser, JOB_HASH_MB)
    add_json(parser, instead_of="the table")
    add_plot(parser, "draw the table (needs matplotlib)")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="keep every search there as soon as it is finished, for --from-log"
    )
    parser.add_argument(
        "--from-log", type=Path, metavar="FILE", help="measure nothing, summarise this log (FILE#RUN: one of several)"
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add `--seed S`."""
    parser.add_argument(
        "--seed",
        type=whole_number(0, _MAX_SEED),
        default=0,
        metavar="S",
        help="of all that is random: the searches' histories, and jitter (default 0)",
    )


def add_game(parser: argparse.ArgumentParser) -> None:
    """Add `--game FILE [POSITION]...`."""
    parser.add_argument(
        "--game",
        nargs="+",
        metavar=("FILE", "POSITION"),
        help="instead of --suite: a game of your own, from its beginning, or from positions of it",
    )


def check_game(options: argparse.Namespace) -> None:
    """Refuse what does not go with `--game`."""
    if options.game is None:
        return
    for name in ("suite", "on"):
        if getattr(options, name, None) is not None:
            refuse(f"--game is searched here, and has no suite: leave out --{name}")
    if options.from_log is not None:
        refuse("--from-log measures nothing: leave out --game")
    if options.with_:
        refuse("--with is for chess: a game of your own has its rules in its file")


def add_plot(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add `--plot PNG`."""
    parser.add_argument("--plot", type=Path, metavar="PNG", help=help_text)


def check_plot(options: argparse.Namespace) -> None:
    """Raise PsearchError for a plot that could not be drawn at the end."""
    if options.plot is not None:
        from psearch.lab.studies import plots

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
    """Return names of policies, each once, in their order. Raises PsearchError for a name that is none."""
    from psearch.results import PsearchError

    names = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for name in names:
        if name not in SPLITTING_POLICIES and not is_own_policy(name):
            raise PsearchError(f"no policy is called {quoted(name, 40)}; there are {', '.join(SPLITTING_POLICIES)}")
    return names


def kernels_of(names: Sequence[str], with_: str = "") -> dict[str, KernelSet]:
    """Return the kernels under those policies where they are not the package's own. with_: a file of rules for all.
    Raises PsearchError."""
    from psearch import options

    return {name: options.kernels_of(name, with_) for name in names if with_ or name not in POLICY_NAMES}


def positions_and_kernels(
    options: argparse.Namespace, names: Sequence[str]
) -> tuple[Sequence[SuitePosition | GameSuitePosition], dict[str, KernelSet]]:
    """Return the positions of a suite or a game, and the kernels under these policies and of one worker alone, where
    they are not the package's own. Raises PsearchError."""
    if options.game is None:
        return read_positions(options), kernels_of([*names, "serial"], options.with_)
    file, *texts = options.game
    from psearch.faces.cli.kernels import loaded_game
    from psearch.games.searching import game_kernels, game_suite

    suite = game_suite(loaded_game(file), texts or [""])
    return suite, game_kernels(suite, names)


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that change the figures."""
    return {name: value for name, value in vars(options).items() if name not in _NOT_IN_LOG}


@dataclass
class StudyFound:
    """What a study in real or virtual time has found so far."""

    driver: str
    """of all searches; empty if their log does not say"""
    rule: str = ""
    """by which the depths were chosen"""
    samples: list[Any] = field(default_factory=list)
    interrupted: bool = False
    ceilings: dict[int, float] | None = None
    """of the hardware, by worker count; None in virtual time"""
    costs: str = ""
    """of virtual time: whose they are"""


@contextmanager
def recording(
    study: str,
    options: argparse.Namespace,
    found: StudyFound,
    suite: Sequence[SuitePosition | GameSuitePosition],
    kernels: Mapping[str, KernelSet],
    **facts: Any,
) -> Iterator[Callable[[Any], None]]:
    """Yield what keeps each search when it is finished, in `found` and in the log, if there is one. Ctrl-C ends it.

    kernels: of files, by policy: a log has a hash of each. The first line of the log has every argument that changes
    the figures, and the facts.
    """
    from psearch.lab.studies.tree_sizes import depth_rule, rule_name

    about: dict[str, Any] = {"study": study, "command": ["psearch", *sys.argv[1:]], "arguments": _arguments(options)}
    about |= {"depths": rule_name(options.depth), **facts}
    if kernels:
        about["policy_files"] = {name: own.digest for name, own in kernels.items()}
    found.rule = depth_rule({"about": about})
    with _raw_log(options.log, about) as log:

        def keep(sample: Any) -> None:
            found.samples.append(sample)
            if log is not None:
                log.add(sample)

        try:
            yield keep
            names = _left_out(suite, found.samples)
            found.rule = depth_rule({"about": about, "left_out": names})
            if names and log is not None:
                log.note(left_out=names)
        except KeyboardInterrupt:
            found.interrupted = True
        finally:
            if log is not None and found.ceilings is not None:
                log.note(ceilings=found.ceilings)


def _raw_log(path: Path | None, about: dict[str, Any]) -> AbstractContextManager[RawLog | None]:
    if path is None:
        return nullcontext()
    from psearch.files.raw_log import RawLog

    return RawLog(path, about)


def _left_out(suite: Sequence[SuitePosition | GameSuitePosition], samples: Sequence[Any]) -> list[str]:
    """Return names of the positions that a finished study has not searched: a mate or draw ends them at any depth."""
    from psearch.arena.setup import board_text

    searched = {sample.fen for sample in samples}
    return [position.name for position in suite if board_text(position.board) not in searched]


def read_found(path: Path, kind: type) -> tuple[StudyFound, dict[str, Any]]:
    """Read a raw log with samples of a kind; returns what was found, and what the log says besides."""
    from psearch.files.raw_log import read_log
    from psearch.lab.studies.tree_sizes import depth_rule

    samples, facts = read_log(path, kind)
    about = facts.get("about")
    about = about if isinstance(about, dict) else {}
    arguments = about.get("arguments")
    driver = arguments.get("driver") if isinstance(arguments, dict) else None
    return StudyFound(driver if driver in STUDY_DRIVERS else "", depth_rule(facts), samples), facts


def show(options: argparse.Namespace, found: StudyFound) -> int:
    """Print the table, write `--plot`; returns the most workers that share a tree."""
    from psearch.lab.studies.comparisons import (
        fit_lines,
        fit_times,
        legend,
        pair_lines,
        pair_objects,
        searched,
        summarise,
        table,
    )
    from psearch.lab.studies.tree_sizes import scale, scale_line, warnings

    rows = summarise(found.samples)
    is_real = found.ceilings is not None
    fits = [] if is_real else fit_times(rows)
    positions, nodes = searched(found.samples)
    most = max((row.threads for row in rows), default=1)
    pruning = str(found.samples[0].pruning) if found.samples else ""
    cautions = warnings(positions, nodes, most, pruning) if rows else []
    if options.json:
        virtual = {"costs": found.costs, "fits": [asdict(fit) for fit in fits]}
        print_json(
            {
                "rows": [asdict(row) for row in rows],
                "positions": positions,
                "tree_nodes": nodes,
                "pruning": pruning,
                "driver": found.driver,
                "depths": found.rule,
                **({"ceilings": found.ceilings} if is_real else virtual),
                "pairs": pair_objects(found.samples),
                "log": log_text(options),
                "interrupted": found.interrupted,
            }
        )
    else:
        notes = [pair_lines(found.samples), legend(rows, ceilings=is_real), fit_lines(fits) if fits else ""]
        below = "\n".join(filter(None, (found.rule, found.costs)))
        how = [f"{name} {words}" for name, words in (("pruning", pruning), ("driver", found.driver)) if words]
        text, line = table(rows, found.ceilings), scale_line(positions, nodes)
        print_table(text, line, ", ".join(how), *(notes if rows else []), depths=below)
        report_log(options, found.interrupted)
    for caution in cautions:
        complain(caution)
    slow = [f"{row.policy} with {row.threads} (x{row.speedup:.2f})" for row in rows if row.speedup < 1]
    if slow and not is_real:
        complain(f"slower than one worker: {', '.join(slow)}; are the costs those of a quiet machine?")
    if options.plot is not None and rows:
        from psearch.lab.studies.plots import plot_simulation, plot_speedup

        driver = f", driver {found.driver}" if found.driver else ""
        title = f"{'Time' if is_real else 'Virtual time'} to depth{driver}\n{scale(positions, nodes)}"
        if found.ceilings is not None:
            plot_speedup(options.plot, found.samples, rows, found.ceilings, title, cautions)
        else:
            plot_simulation(options.plot, rows, title, [found.costs, *cautions])
    return most


def print_table(text: str, scale: str, how: str, *notes: str, depths: str = "") -> None:
    """Print the table on stdout, how much was searched, how, and to which depths, and notes on what it shows."""
    searched = f"{scale}; {how}" if how else scale
    if depths:
        searched += f"\n{depths}"
    print("\n\n".join([f"{text}\n\n{searched}", *(note for note in notes if note)]), flush=True)


def log_text(options: argparse.Namespace) -> str | None:
    """Return the log that was read or written, for JSON."""
    path = options.from_log or options.log
    return None if path is None else str(path)


def report_log(options: argparse.Namespace, interrupted: bool) -> None:
    """Say where the raw log is, and whether all of the study is in it."""
    if interrupted:
        say("psearch: interrupted; the table is of the searches that were finished")
    if options.log is not None:
        say(f"raw log: {options.log}")
