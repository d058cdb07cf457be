"""The commands that measure: `psearch speedup`, `simulate`, `predict`, `calibrate`.

Imported only when one of them is asked for; numba and matplotlib only once the arguments are known to be right.
Ctrl-C ends a study with a table of what is finished; the raw log holds those searches.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.cli.common import Commands, Signals, check_hash, prepare_kernels, say, tell_of_trace, usable_cores
from psearch.cli.study_arguments import (
    DEFAULT_SECONDS,
    calibrate_parser,
    predict_parser,
    simulate_parser,
    speedup_parser,
)
from psearch.defaults import POLICY_NAMES

if TYPE_CHECKING:
    from psearch.notation.epd import SuitePosition
    from psearch.studies.speedup import Row, Sample
    from psearch.trace.recorder import Recorder

_CEILING_ROUNDS = 7
_CEILING_S = (0.2, 2.0)
"""Least and most seconds of a search that measures the hardware."""


def _check(options: argparse.Namespace, parser: argparse.ArgumentParser, needed: Sequence[str]) -> None:
    """Refuse what argparse cannot know, before anything takes long."""
    if options.from_log is None:
        for name in needed:
            if getattr(options, name) is None:
                parser.error(f"--{name} is missing (see {parser.prog} --help)")
        check_hash(options.hash)
    elif options.suite is not None or options.log is not None:
        parser.error("--from-log measures nothing: leave out --suite and --log")
    if options.plot is not None:
        from psearch.studies.plots import check_plot

        check_plot(options.plot)


def _check_trace(options: argparse.Namespace) -> None:
    if options.trace is None:
        return
    from psearch.trace.trace_file import check_trace

    if options.from_log is not None:
        simulate_parser().error("--from-log searches nothing: leave out --trace")
    if options.jobs > 1:
        simulate_parser().error("--trace follows one search: leave out --jobs")
    check_trace(options.trace)


def _read_positions(options: argparse.Namespace) -> list[SuitePosition]:
    """The suite's first positions, each once: results are told apart by position."""
    from psearch.notation.epd import read_suite

    once = {position.board.fen(): position for position in reversed(read_suite(options.suite)[: options.positions])}
    return list(reversed(once.values()))


def _policies(text: str) -> list[str]:
    """Names of policies, each once, in their order."""
    from psearch.results import PsearchError

    names = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for name in names:
        if name not in POLICY_NAMES or name == "serial":
            known = ", ".join(policy for policy in POLICY_NAMES if policy != "serial")
            raise PsearchError(f"no policy is called {name[:40]!a}; there are {known}")
    return names


def _log_path(options: argparse.Namespace, study: str) -> Path:
    """The given one; else beside the plot; else a new name in the current folder."""
    if options.log is not None:
        return Path(options.log)
    if options.plot is not None:
        return Path(options.plot).with_suffix(".jsonl")
    return Path(f"psearch-{study}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl")


def _about(options: argparse.Namespace, study: str) -> dict[str, Any]:
    """The first line of the log: every argument that changes the figures."""
    left_out = ("json", "plot", "log", "from_log", "jobs", "costs", "trace")
    arguments = {name: value for name, value in vars(options).items() if name not in left_out}
    return {"study": study, "command": ["psearch", *sys.argv[1:]], "arguments": arguments}


# -- psearch speedup -------------------------------------------------------------------------------------------------


def speedup(options: argparse.Namespace, signals: Signals) -> int:
    """Measure, or read a log, and print the table."""
    _check(options, speedup_parser(), ["suite"])
    from psearch.studies.raw_log import read_log
    from psearch.studies.speedup import Sample, summarise

    if options.from_log is not None:
        samples, facts = read_log(options.from_log, Sample)
        path = options.from_log
        interrupted = False
    else:
        path = _log_path(options, "speedup")
        samples, facts, interrupted = _measure(options, path)
    ceilings = {int(count): float(value) for count, value in facts.get("ceilings", {}).items()}
    rows = summarise(samples)
    _print_speedup(options, rows, _pruning_of(samples), ceilings, path, interrupted)
    if options.plot is not None and rows:
        from psearch.studies.plots import plot_speedup

        positions = len({sample.fen for sample in samples})
        plot_speedup(options.plot, rows, ceilings, f"time to depth, {positions} positions, 95% intervals")
    return signals.exit_status


def _measure(options: argparse.Namespace, path: Path) -> tuple[list[Sample], dict[str, Any], bool]:
    """The searches, the facts for the log, and whether they were cut short."""
    suite = _read_positions(options)
    policies = _policies(options.policy)
    options.seconds = options.seconds or DEFAULT_SECONDS
    from psearch.arena.setup import pruning_named
    from psearch.results import PsearchError
    from psearch.studies.raw_log import RawLog

    pruning = pruning_named(options.pruning)

    samples: list[Sample] = []
    ceilings: dict[int, float] = {}
    with RawLog(path, _about(options, "speedup")) as log:
        prepare_kernels()
        from psearch.studies.speedup import hardware_ceiling, measure
        from psearch.terminal.display import StatusLine

        def keep(sample: Sample) -> None:
            samples.append(sample)
            log.add(sample)

        seconds = options.seconds
        try:
            with StatusLine() as status:
                measure(
                    suite,
                    options.threads,
                    policies,
                    seconds,
                    options.repeat,
                    options.hash,
                    depth=options.depth,
                    pruning=pruning,
                    progress=status,
                    on_sample=keep,
                )
                if not samples:
                    raise PsearchError(f"no position takes one worker {seconds:g} s at any depth")
                alone = sorted(sample.seconds for sample in samples if sample.threads == 1)
                length = min(max(alone[len(alone) // 2], _CEILING_S[0]), _CEILING_S[1])
                for count in options.threads:
                    if count > 1:
                        ceilings[count] = hardware_ceiling(
                            suite, count, options.hash, length, _CEILING_ROUNDS, pruning, status
                        )
        except KeyboardInterrupt:
            return samples, {"ceilings": ceilings}, True
        finally:
            log.note(ceilings=ceilings)
        searched = {sample.fen for sample in samples}
        left_out = [position.name for position in suite if position.board.fen() not in searched]
        if left_out:
            log.note(left_out=left_out)
            say(f"left out, too quick at any depth: {', '.join(left_out)}")
    return samples, {"ceilings": ceilings}, False


def _print_speedup(
    options: argparse.Namespace,
    rows: Sequence[Row],
    pruning: str,
    ceilings: dict[int, float],
    path: Path,
    interrupted: bool,
) -> None:
    from psearch.studies.speedup import table

    if options.json:
        report = {
            "rows": [asdict(row) for row in rows],
            "pruning": pruning,
            "ceilings": ceilings,
            "log": str(path),
            "interrupted": interrupted,
        }
        print(json.dumps(report), flush=True)
        return
    print(table(rows, ceilings), flush=True)
    _tell_of_pruning(pruning)
    most = max((row.threads for row in rows), default=1)
    if most > usable_cores() and options.from_log is None:
        say(f"psearch: {most} workers share {usable_cores()} cores; see psearch simulate")
    _tell_of_log(options, path, interrupted)


def _pruning_of(samples: Sequence[Any]) -> str:
    """What the searches pruned, the same in all; empty if their log does not say."""
    return str(samples[0].pruning) if samples else ""


def _tell_of_pruning(pruning: str) -> None:
    if pruning:
        print(f"pruning {pruning}", flush=True)


def _tell_of_log(options: argparse.Namespace, path: Path, interrupted: bool) -> None:
    if interrupted:
        say("psearch: interrupted; the table is of the searches that were finished")
    if options.from_log is None:
        say(f"raw log: {path}")


# -- psearch simulate ------------------------------------------------------------------------------------------------


def simulate(options: argparse.Namespace, signals: Signals) -> int:
    """Simulate, or read a log, and print the table."""
    _check(options, simulate_parser(), ["workers", "suite"])
    if options.from_log is None and options.depth is None and options.tree_nodes is None:
        simulate_parser().error("--depth or --tree-nodes is missing (see psearch simulate --help)")
    _check_trace(options)
    from psearch.simulation.simulator import VirtualSample
    from psearch.studies.raw_log import read_log
    from psearch.studies.speedup import summarise, table
    from psearch.studies.time_fit import fit_lines, fit_times

    if options.from_log is not None:
        samples, _ = read_log(options.from_log, VirtualSample)
        path = options.from_log
        interrupted = False
    else:
        path = _log_path(options, "simulate")
        samples, interrupted = _simulate(options, path)
    rows = summarise(samples)
    fits = fit_times(rows)
    if options.json:
        report = {
            "rows": [asdict(row) for row in rows],
            "pruning": _pruning_of(samples),
            "fits": [asdict(fit) for fit in fits],
            "log": str(path),
            "interrupted": interrupted,
        }
        print(json.dumps(report), flush=True)
    else:
        print(table(rows))
        _tell_of_pruning(_pruning_of(samples))
        if fits:
            print("\n" + fit_lines(fits))
        sys.stdout.flush()
        _tell_of_log(options, path, interrupted)
    if options.plot is not None and rows:
        from psearch.studies.plots import plot_simulation

        positions = len({sample.fen for sample in samples})
        title = f"virtual time to depth, {positions} positions of {_tree_size(samples)} nodes, geometric means"
        plot_simulation(options.plot, rows, title)
    return signals.exit_status


def _tree_size(samples: Sequence[Any]) -> str:
    """The mean nodes of one worker, in words."""
    nodes = [sample.nodes for sample in samples if sample.threads == 1]
    mean = sum(nodes) / max(len(nodes), 1)
    return f"{mean / 1e6:.1f} M" if mean >= 1e6 else f"{mean / 1e3:.0f} k"


def _simulate(options: argparse.Namespace, path: Path) -> tuple[list[Any], bool]:
    """The searches, and whether they were cut short."""
    suite = _read_positions(options)
    policies = _policies(options.policy)
    counts = {count for count in options.workers if count > 1} or {1}
    if options.trace is not None and not len(suite) == len(counts) == len(policies) == 1:
        simulate_parser().error(
            "--trace follows one search: give one position (--positions 1), one worker count and one policy, "
            f"not {len(suite)}, {len(counts)} and {len(policies)}"
        )
    from dataclasses import replace

    from psearch.arena.setup import SearchOptions, pruning_named
    from psearch.simulation.costs import Costs
    from psearch.studies.raw_log import RawLog

    how = SearchOptions(pruning=pruning_named(options.pruning))
    for name in ("split_depth", "wait", "open_busy", "open_idle", "defer_depth"):
        if getattr(options, name) is None:
            setattr(options, name, getattr(how, name))
        how = replace(how, **{name: getattr(options, name)})
    costs = Costs.load(options.costs) if options.costs is not None else Costs()
    if options.jitter is not None:
        costs = replace(costs, jitter=options.jitter)
    samples: list[Any] = []
    with RawLog(path, {**_about(options, "simulate"), "costs": asdict(costs)}) as log:
        prepare_kernels()
        from psearch.studies.virtual_study import Study, run_study
        from psearch.terminal.display import StatusLine

        def keep(sample: Any) -> None:
            samples.append(sample)
            log.add(sample)

        study = Study(
            suite=suite,
            depth=options.depth,
            workers=options.workers,
            policies=policies,
            costs=costs,
            seed=options.seed,
            options=how,
            tree_nodes=options.tree_nodes,
            hash_mb=options.hash,
            validate=options.validate,
        )
        traced: list[dict[int, int]] = []

        def write_trace(recorder: Recorder, facts: dict[str, Any]) -> None:
            recorder.write(options.trace, facts)
            traced.append(recorder.dropped)

        try:
            with StatusLine() as status:
                run_study(study, options.jobs, keep, status, write_trace if options.trace is not None else None)
        except KeyboardInterrupt:
            return samples, True
        finally:
            for dropped in traced:
                tell_of_trace(dropped, options.trace)
    return samples, False


# -- psearch predict -------------------------------------------------------------------------------------------------


def predict(options: argparse.Namespace, signals: Signals) -> int:
    """Judge the rules and print the table."""
    if options.suite is None or options.depth is None:
        predict_parser().error("predict needs --suite FILE and --depth D")
    if options.plot is not None:
        from psearch.studies.plots import check_plot

        check_plot(options.plot)
    positions = _read_positions(options)
    from psearch.arena.setup import pruning_named

    pruning = pruning_named(options.pruning)
    prepare_kernels()
    from psearch.core.pruning.modes import pruning_text
    from psearch.studies.prediction_study import as_json, study, table
    from psearch.terminal.display import StatusLine

    with StatusLine(only_terminal=True) as status:
        reports = study(positions, options.depth, pruning=pruning, progress=status)
    facts = {"depth": options.depth, "pruning": pruning_text(pruning)}
    if options.json:
        print(json.dumps({**facts, "rules": as_json(reports)}), flush=True)
    else:
        print(f"{table(reports)}\npruning {facts['pruning']}", flush=True)
    if options.plot is not None:
        from psearch.studies.plots import plot_prediction

        plot_prediction(options.plot, reports, f"{len(positions)} positions, depth {options.depth}")
    return 0


# -- psearch calibrate -----------------------------------------------------------------------------------------------


def calibrate(options: argparse.Namespace, signals: Signals) -> int:
    """Measure the costs, print them, and write them if asked to."""
    from psearch.results import PsearchError

    if options.out is not None and not options.out.absolute().parent.is_dir():
        raise PsearchError(f"cannot write {options.out}: its folder does not exist")
    from psearch.studies import micro_costs as microcosts  # noqa: F401  # its entries are compiled together with all others

    prepare_kernels()
    from psearch.studies.calibration import calibrate as measure_costs
    from psearch.terminal.display import StatusLine

    with StatusLine() as status:
        calibration = measure_costs(progress=status)
    print(calibration.table(), flush=True)
    if options.out is not None:
        calibration.costs.save(options.out)
    return 0


COMMANDS: Commands = {
    "speedup": (speedup_parser, speedup),
    "simulate": (simulate_parser, simulate),
    "predict": (predict_parser, predict),
    "calibrate": (calibrate_parser, calibrate),
}
