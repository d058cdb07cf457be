"""Code shared by `psearch speedup`, `simulate` and `predict`: suite, log, and the table or its JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.defaults import DEFAULT_POLICY, JOB_HASH_MB, POLICY_NAMES, STUDY_DRIVERS
from psearch.faces.cli import arguments
from psearch.faces.cli.kernels import loaded_game
from psearch.faces.cli.output import complain, print_answer, refuse, say
from psearch.settings import SETTINGS, SPLITTING_POLICIES, is_own_policy
from psearch.text.values import quoted

if TYPE_CHECKING:
    from psearch.games.searching import GameSuitePosition
    from psearch.options import SearchOptions
    from psearch.text.epd_text import SuitePosition
    from psearch_core.toolchain.kernel_sets import KernelSet

_NOT_IN_LOG = ("json", "plot", "log", "from_log", "jobs", "on", "costs", "trace", "record")
"""Arguments that are not logged: they do not change the figures, or the log holds their contents."""


def add_suite(parser: argparse.ArgumentParser, plot: str) -> None:
    """Add `--suite FILE`, `--positions K`, `--json` and `--plot PNG`. plot: help of `--plot`."""
    parser.add_argument("--suite", metavar="FILE", help="EPD or FEN positions, one per line; `-` reads standard input")
    arguments.add_number(parser, "--positions", 1, 10**6, "use only the first K positions", "K")
    arguments.add_json(parser, instead_of="the table")
    parser.add_argument("--plot", type=Path, metavar="PNG", help=plot)


def add_options(parser: argparse.ArgumentParser, repeats: int, repeated: str) -> None:
    """Add the options of a measurement and its output. repeats: default of `--repeat`; repeated: its help."""
    add_suite(parser, "draw the table (needs matplotlib)")
    words = "your own game instead of --suite, from its initial position or from the given positions"
    parser.add_argument("--game", nargs="+", metavar=("FILE", "POSITION"), help=words)
    words = f"policies to compare: {', '.join(SPLITTING_POLICIES)} (default {DEFAULT_POLICY}), or your own files"
    parser.add_argument("--policy", default=DEFAULT_POLICY, metavar="P,Q", help=words)
    arguments.add_settings(parser, "pruning", "evaluation", "with_")
    words = "search driver of all searches, one worker included: pvs (default), or null (null windows)"
    SETTINGS["driver"].add_to(parser, words, choices=STUDY_DRIVERS, default=STUDY_DRIVERS[0])
    arguments.add_hash(parser, JOB_HASH_MB)
    arguments.add_number(parser, "--repeat", 1, 1000, f"{repeated} (default {repeats})", "R", default=repeats)
    arguments.add_seed(parser, "seed of all random numbers (history values, jitter)", 0, "S")
    parser.add_argument("--log", type=Path, metavar="FILE", help="record every finished search here, for --from-log")
    words = "measure nothing, but print the table of this log (FILE#RUN: one run of several)"
    parser.add_argument("--from-log", type=Path, metavar="FILE", help=words)


def check_plot(options: argparse.Namespace) -> None:
    """Raise PsearchError early if `--plot` could not be drawn at the end."""
    if options.plot is not None:
        from psearch.lab.studies import plots

        plots.check_plot(options.plot)


def check(command: str, options: argparse.Namespace, *needed: str) -> None:
    """Refuse what argparse cannot check. needed: arguments required without `--from-log`."""
    if options.game is not None:
        for name in ("suite", "on"):
            if getattr(options, name, None) is not None:
                refuse(f"--game cannot be combined with --{name}")
        if options.with_:
            refuse("--with is for chess only: your own game has its rules in its file")
    if options.from_log is None:
        for name in (*needed, *(["suite"] if options.game is None else [])):
            if getattr(options, name) is None:
                refuse(f"--{name} is missing (see psearch {command} --help)")
        is_here = getattr(options, "on", None) is None
        arguments.check_hash(options.hash, getattr(options, "jobs", None) or 1 if is_here else 1)
    else:
        from psearch.faces.cli.command_list import parser_of

        for name, usual in vars(parser_of(command).parse_args([])).items():
            if name not in ("from_log", "json", "plot") and getattr(options, name) != usual:
                refuse(f"--from-log measures nothing: leave out --{name.rstrip('_').replace('_', '-')}")
    check_plot(options)


def policies(text: str) -> list[str]:
    """Return the names of policies in their order, without duplicates. Raises PsearchError for an unknown name."""
    from psearch.results import PsearchError

    names = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for name in names:
        if name not in SPLITTING_POLICIES and not is_own_policy(name):
            raise PsearchError(f"no policy is called {quoted(name, 40)}; there are {', '.join(SPLITTING_POLICIES)}")
    return names


def options_of(options: argparse.Namespace, **changes: Any) -> SearchOptions:
    """Return the options of every search, except for the policy. Raises PsearchError."""
    if getattr(options, "game", None) is not None:
        changes["aspiration"] = 0
    return arguments.search_options(options, policy=DEFAULT_POLICY, **changes)


def kernels_of(names: Sequence[str], with_: str = "") -> dict[str, KernelSet]:
    """Return the kernels of the policies that need their own. with_: file of rules for all. Raises PsearchError."""
    from psearch import options

    return {name: options.kernels_of(name, with_) for name in names if with_ or name not in POLICY_NAMES}


def read_positions(options: argparse.Namespace) -> list[SuitePosition]:
    """Return the first positions of the suite, without duplicates, since results are keyed by position."""
    from psearch.text.epd_text import read_suite

    positions = read_suite(options.suite, complain)[: options.positions]
    once: dict[str, SuitePosition] = {}
    for position in positions:
        once.setdefault(position.board.fen(), position)
    return list(once.values())


def positions_and_kernels(
    options: argparse.Namespace, names: Sequence[str]
) -> tuple[Sequence[SuitePosition | GameSuitePosition], dict[str, KernelSet]]:
    """Return the positions, and the kernels of the policies (and `serial`) that need their own. Raises PsearchError."""
    if options.game is None:
        return read_positions(options), kernels_of([*names, "serial"], options.with_)
    from psearch.games.searching import game_kernels, game_suite

    file, *texts = options.game
    suite = game_suite(loaded_game(file), (texts or [""])[: options.positions])
    return suite, game_kernels(suite, names)


@dataclass
class StudyFound:
    """Results of a study in real or virtual time so far."""

    driver: str
    """Driver of all searches; empty if the log does not say."""
    rule: str = ""
    """Rule by which the depths were chosen."""
    samples: list[Any] = field(default_factory=list)
    interrupted: bool = False
    ceilings: dict[int, float] | None = None
    """Ceilings of the hardware by worker count; None in virtual time."""
    costs: str = ""
    """Source of the costs of virtual time, in words."""


@contextmanager
def recording(
    study: str,
    options: argparse.Namespace,
    found: StudyFound,
    suite: Sequence[SuitePosition | GameSuitePosition],
    kernels: Mapping[str, KernelSet],
    **facts: Any,
) -> Iterator[Callable[[Any], None]]:
    """Yield a function that records each finished search in `found` and in the log, if there is one. Ctrl-C ends it.

    kernels: kernels of files, by policy; the log has a hash of each. The first line of the log has every argument that
    changes the figures, and the facts.
    """
    from psearch.arena.setup import board_text
    from psearch.files.raw_log import RawLog
    from psearch.lab.studies.tree_sizes import depth_rule, rule_name

    given = {name: value for name, value in vars(options).items() if name not in _NOT_IN_LOG}
    about = {"study": study, "command": ["psearch", *sys.argv[1:]], "arguments": given}
    about |= {"depths": rule_name(options.depth), **facts}
    if kernels:
        about["policy_files"] = {name: own.digest for name, own in kernels.items()}
    found.rule = depth_rule({"about": about})
    with nullcontext() if options.log is None else RawLog(options.log, about) as log:

        def keep(sample: Any) -> None:
            found.samples.append(sample)
            if log is not None:
                log.add(sample)

        try:
            yield keep
            # the others end in a mate or draw at every depth
            searched = {sample.fen for sample in found.samples}
            left_out = [position.name for position in suite if board_text(position.board) not in searched]
            found.rule = depth_rule({"about": about, "left_out": left_out})
            if left_out and log is not None:
                log.note(left_out=left_out)
        except KeyboardInterrupt:
            found.interrupted = True
        finally:
            if log is not None and found.ceilings:
                log.note(ceilings=found.ceilings)


def read_found(path: Path, kind: type) -> tuple[StudyFound, dict[str, Any]]:
    """Read a raw log of samples; return the results and the other facts of the log."""
    from psearch.files.raw_log import read_log
    from psearch.lab.studies.tree_sizes import depth_rule

    samples, facts = read_log(path, kind)
    if not isinstance(facts.get("about"), dict):
        facts = {**facts, "about": {}}
    given = facts["about"].get("arguments")
    driver = given.get("driver") if isinstance(given, dict) else None
    return StudyFound(driver if driver in STUDY_DRIVERS else "", depth_rule(facts), samples), facts


def show(options: argparse.Namespace, found: StudyFound) -> int:
    """Print the table, draw `--plot`, and return the largest number of workers in it."""
    from psearch.lab.studies import comparisons
    from psearch.lab.studies.tree_sizes import scale, scale_line, warnings

    rows = comparisons.summarise(found.samples)
    ceilings = found.ceilings
    fits = comparisons.fit_times(rows) if ceilings is None else []
    positions, nodes = comparisons.searched(found.samples)
    most = max((row.threads for row in rows), default=1)
    pruning = str(found.samples[0].pruning) if found.samples else ""
    log = options.from_log or options.log
    facts = {
        "rows": [asdict(row) for row in rows],
        "positions": positions,
        "tree_nodes": nodes,
        "pruning": pruning,
        "driver": found.driver,
        "depths": found.rule,
        **({"costs": found.costs, "fits": list(map(asdict, fits))} if ceilings is None else {"ceilings": ceilings}),
        "pairs": [
            {"threads": count, "policy": policy, "over": first, **pair._asdict()}
            for (count, policy, first), pair in comparisons.pairs(found.samples).items()
        ],
        "log": None if log is None else str(log),
        "interrupted": found.interrupted,
    }
    how = ", ".join(f"{name} {words}" for name, words in (("pruning", pruning), ("driver", found.driver)) if words)
    below = [f"{scale_line(positions, nodes)}{'; ' * bool(how)}{how}", found.rule, found.costs]
    parts = [comparisons.table(rows, ceilings), "\n".join(filter(None, below))]
    cautions = []
    if rows:
        legends = comparisons.legend(rows, ceilings=ceilings is not None), comparisons.fit_lines(fits) if fits else ""
        parts += [comparisons.pair_lines(found.samples), *legends]
        cautions = warnings(positions, nodes, most, pruning)
    slow = [f"{row.policy} with {row.threads} (x{row.speedup:.2f})" for row in rows if row.speedup < 1]
    if slow and ceilings is None:
        cautions.append(f"slower than one worker: {', '.join(slow)}; are the costs those of a quiet machine?")
    print_answer(options.json, facts, "\n\n".join(filter(None, parts)))
    if not options.json:
        if found.interrupted:
            say("psearch: interrupted; the table covers the searches that were finished")
        if options.log is not None:
            say(f"raw log: {options.log}")
    for caution in cautions:
        complain(caution)
    if options.plot is not None and not rows:
        complain(f"no plot {options.plot}: there is nothing to compare with one worker")
    if options.plot is not None and rows:
        from psearch.lab.studies.plots import plot_simulation, plot_speedup

        driver = f", driver {found.driver}" if found.driver else ""
        title = f"{'Virtual time' if ceilings is None else 'Time'} to depth{driver}\n{scale(positions, nodes)}"
        if ceilings is None:
            plot_simulation(options.plot, rows, title, [found.costs, *cautions])
        else:
            plot_speedup(options.plot, found.samples, rows, ceilings, title, cautions)
    return most
