"""`psearch simulate`: estimate speedups in virtual time."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.defaults import MAX_DEPTH, MAX_THREADS
from psearch.faces.cli import study
from psearch.faces.cli.arguments import add_flag, add_number, add_on, add_settings, decimal_number, worker_counts
from psearch.faces.cli.kernels import add_record, add_trace, check_written, prepare_kernels, report_trace
from psearch.faces.cli.output import complain, refuse, say
from psearch.faces.cli.signals import Signals
from psearch.settings import DEPTH

if TYPE_CHECKING:
    from psearch.lab.studies.virtual_study import Study
    from psearch.lab.watching.watcher import LinesOf
    from psearch.simulation.simulator import Simulator

_BESIDE_MB = 400
"""Memory that a process needs besides the table, with the records of 1,024 workers, in MiB."""
_SCHEDULING = ("wait", "open_busy", "open_idle", "defer_depth")
"""Arguments that are fields of `SearchOptions`, which has their defaults."""

DESCRIPTION = """\
Estimate speedups in virtual time: the real scheduler runs up to 1,024 workers in one
process. Each worker has its own clock, which advances by measured costs, and the worker
whose clock is furthest behind runs next. Speedups are over one serial worker, as geometric
means over the positions. The same arguments always give the same node counts.

Small trees offer little work to share, so choose a depth that takes one worker some
seconds. Type `1,2,4,...,1024` as it stands: the dots mean doubling. Required are --workers,
--suite (or --game) and --depth (or --tree-nodes); or --from-log, which prints the table of
a log again."""

EXAMPLES = """\
examples:
  psearch simulate --workers 1,2,4,...,64 --suite bratko_kopec_24.epd --depth 9
  psearch simulate --workers 8 --policy calibrated,ybw --suite suite.epd --depth 9 --costs costs.json --jobs 2
  psearch simulate --workers 3 --suite suite.epd --depth 4 --positions 2 --validate --jitter 0.5 --seed 7
  psearch simulate --workers 8,64 --suite suite.epd --tree-nodes 2000000 --on ray://head
  psearch simulate --workers 64 --suite suite.epd --depth 8 --positions 1 --trace trace.json
  psearch simulate --workers 32 --suite suite.epd --depth 8 --positions 1 --record search.jsonl
  psearch simulate --workers 8,64,1024 --game my_game.py --depth 12"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = f"numbers of virtual workers, 1 to {MAX_THREADS}"
    parser.add_argument("--workers", type=worker_counts, metavar="1,2,...,N", help=words)
    words = "searches of each position with each worker count, each with other random history values"
    study.add_options(parser, 1, words)
    size = parser.add_mutually_exclusive_group()
    DEPTH.add_to(size, "the same depth for every position, in plies")
    words = "search each position to the depth at which one worker needs about N nodes"
    add_number(size, "--tree-nodes", 1000, 10**12, words)
    words = "lengthen every cost by a random share, J at most (default: that of --costs, else 0)"
    parser.add_argument("--jitter", type=decimal_number(0, 1), metavar="J", help=words)
    parser.add_argument("--costs", type=Path, metavar="FILE", help="costs measured by bench/study/calibrate.py")
    add_settings(parser, "split_depth")
    add_flag(parser, "--wait", "open a node only after its first move (young brothers wait)")
    for flag, when in (("--open-busy", "all workers are busy"), ("--open-idle", "a worker is idle")):
        words = f"policy calibrated: percent P(needed) to open a node while {when}"
        add_number(parser, flag, 0, 100, words, "P")
    words = "least depth at which moves to positions that another worker is searching are deferred; 0: never "
    add_number(parser, "--defer-depth", 0, MAX_DEPTH, words + "(default: 3 with abdada, else never)")
    words = "processes that run the searches; the results do not depend on it (default: 1, all there are with --on)"
    add_number(parser, "--jobs", 1, 256, words)
    add_on(parser, "run the searches on a Ray cluster")
    add_flag(parser, "--validate", "check every invariant after every event (very slow)")
    add_trace(parser, "; for one position, worker count and policy")
    add_record(parser, "; for one position, worker count and policy")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Simulate or read a log, then print the table."""
    study.check("simulate", options, "workers")
    if options.from_log is None and options.depth is None and options.tree_nodes is None:
        refuse("--depth or --tree-nodes is missing (see psearch simulate --help)")
    if _followed(options) and ((options.jobs or 1) > 1 or options.on is not None):
        refuse(f"{_followed(options)} follows one search: leave out {'--jobs' if options.on is None else '--on'}")
    check_written(options)
    study.show(options, _simulate(options) if options.from_log is None else _read(options.from_log))
    return signals.exit_status


def _followed(options: argparse.Namespace) -> str:
    """Return the argument that follows one search; empty for none."""
    return "--trace" if options.trace is not None else "--record" if options.record is not None else ""


def _read(path: Path) -> study.StudyFound:
    from psearch.files.raw_log import machine_name
    from psearch.simulation.costs import Costs
    from psearch.simulation.simulator import VirtualSample

    found, facts = study.read_found(path, VirtualSample)
    machine = facts["about"].get("machine")
    try:
        costs = Costs.of(facts["about"].get("costs"))
        found.costs = costs.origin(machine_name(machine if isinstance(machine, dict) else {}))
    except ValueError:
        found.costs = "costs: the log does not say"
    return found


def _simulate(options: argparse.Namespace) -> study.StudyFound:
    from psearch.files.raw_log import machine, machine_name
    from psearch.games.own_game import GamePosition
    from psearch.lab.studies.virtual_study import run_study
    from psearch.lab.watching.node_lines import GameLines, chess_lines
    from psearch.lab.watching.recordings import virtual_looks, write_recording
    from psearch.simulation.simulation_entries import VIRTUAL
    from psearch.terminal.status import StatusLine

    whole = _study(options)
    file = {} if options.costs is None else {"file": options.costs.name}
    found = study.StudyFound(options.driver, costs=whole.costs.origin(machine_name(machine()), **file))
    traced: list[dict[int, int]] = []

    def write_trace(simulator: Simulator, facts: dict[str, Any]) -> None:
        position, name_of, recorder = whole.suite[0].board, None, simulator.recorder
        assert recorder is not None, "a followed search has a recorder"
        lines_of: LinesOf = chess_lines
        if isinstance(position, GamePosition):
            name_of, lines_of = position.name_of, lambda root: GameLines(position)
            facts |= {"game": position.game.name, "position": " ".join(options.game[1:])}
        if options.trace is not None:
            recorder.write(options.trace, facts, move_name=name_of)
            traced.append(recorder.dropped)
        if options.record is not None:
            facts |= {"clock": "virtual", "workers": recorder.arena.workers}
            write_recording(options.record, facts, virtual_looks(simulator, lines_of))

    def note(text: str) -> None:
        status.make_room()
        complain(text)

    share = None
    if options.on is not None:
        from psearch.remote.cluster_processes import share_out_on

        share = partial(
            share_out_on, options.on, most=options.jobs, memory=(whole.hash_mb + _BESIDE_MB) * 2**20, on_note=note
        )
    with study.recording("simulate", options, found, whole.suite, whole.kernels, costs=asdict(whole.costs)) as keep:
        if options.on is None:
            prepare_kernels(VIRTUAL, *(kernels.group(VIRTUAL) for kernels in whole.kernels.values()))
        try:
            with StatusLine() as status:
                run_study(whole, options.jobs or 1, keep, status, write_trace if _followed(options) else None, share)
        finally:
            for dropped in traced:
                report_trace(dropped, options.trace)
    if options.record is not None:
        say(f"recording: {options.record}")
    return found


def _study(options: argparse.Namespace) -> Study:
    """Return the study to run. Raises PsearchError for a bad suite, policy, pruning mode or file of costs."""
    names = study.policies(options.policy)
    suite, kernels = study.positions_and_kernels(options, names)
    counts = {count for count in options.workers if count > 1} or {1}
    if _followed(options) and not len(suite) == len(counts) == len(names) == options.repeat == 1:
        refuse(
            f"{_followed(options)} follows one search: give one position (--positions 1), one worker count, one "
            f"policy and no --repeat, not {len(suite)}, {len(counts)}, {len(names)} and {options.repeat}"
        )
    from psearch.lab.studies.virtual_study import Study
    from psearch.simulation.costs import Costs

    costs = Costs.load(options.costs) if options.costs is not None else Costs()
    if far := costs.far_off():
        complain(f"{options.costs.name}: {', '.join(far)}: was the machine busy during the measurement?")
    how = study.options_of(options, **{name: getattr(options, name) for name in _SCHEDULING})
    vars(options).update({name: getattr(how, name) for name in _SCHEDULING})  # the log records the defaults, too
    return Study(
        suite=suite,
        depth=options.depth,
        workers=options.workers,
        policies=names,
        costs=costs if options.jitter is None else replace(costs, jitter=options.jitter),
        seed=options.seed,
        options=how,
        tree_nodes=options.tree_nodes,
        repeats=options.repeat,
        hash_mb=options.hash,
        validate=options.validate,
        kernels=kernels,
    )
