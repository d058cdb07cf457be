"""Savings and costs of each step of selective search: nodes and solved positions by depth, mode by mode.

    python bench/study/pruning_study.py --suite FILE [--every K] [--depth D] [--cap NODES] [--jobs J] [--log FILE]
        [--plot PNG]
    python bench/study/pruning_study.py --from-log FILE [--plot PNG]

Each position is searched by one worker from an empty table, iteration by iteration, in each configuration of STEPS: the
ladder of Heinz (ICCA Journal 21/2, 1998) from full width to his AEL pruning, and `modern`. A position leaves the table
at the first depth that any configuration did not reach within --cap nodes, so that every column of the table sums over
the same positions. The raw log holds one line for each position, configuration and depth.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.files.raw_log import RawLog, read_log
from psearch.options import SearchOptions
from psearch.processes.task_processes import share_out
from psearch.processes.worker_main import work_alone
from psearch.results import Limits, PsearchError
from psearch.terminal.status import StatusLine
from psearch.terminal.streams import text_table
from psearch.text.epd_text import SuitePosition, parse_suite
from psearch.text.source import read_source
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import BOUND_EXACT
from psearch_core.records.pruning_record import parse_pruning

STEPS = {
    "plain": "plain",
    "sound": "sound",
    "futility": "plain,futility=1",
    "+extended": "plain,futility=1,extended_futility=1",
    "+razoring": "plain,futility=1,extended_futility=1,limited_razoring=1",
    "null move": "ael,futility=0,extended_futility=0,limited_razoring=0",
    "ael": "ael",
    "modern": "modern",
}


@dataclass(frozen=True)
class Iteration:
    """One finished iteration: nodes in all so far, and what it would play."""

    position: str
    fen: str
    step: str
    depth: int
    nodes: int
    score: int
    move: str
    solved: bool


Task = tuple[SuitePosition, str]
"""A position and the configuration to search it in."""


def iterations(task: Task, depth: int, cap: int, hash_mb: int) -> list[Iteration]:
    """Search a position to `depth`, or to the last depth within `cap` nodes."""
    position, step = task
    found = []
    arena = Arena(workers=1, hash_mb=hash_mb)
    try:
        options = SearchOptions(policy="serial", pruning=parse_pruning(STEPS.get(step, step)))
        write_search(arena, position.board, Limits(depth=depth, nodes=cap), options)
        work_alone(arena)
        header = arena.header[0]
        for info in header["infos"][: int(header["info_count"])]:
            if int(info["bound"]) == BOUND_EXACT:
                move = to_chess_move(int(info["pv"][0]), position.board)
                numbers = (int(info[name]) for name in ("depth", "nodes", "score"))
                place = position.name, position.board.fen(), step
                found.append(Iteration(*place, *numbers, move.uci(), position.accepts(move)))
    finally:
        arena.close()
    return found


def _steps(found: Sequence[Iteration]) -> list[str]:
    """The configurations that were searched: those of STEPS in their order, then others."""
    names = dict.fromkeys(one.step for one in found)
    return [*(name for name in STEPS if name in names), *(name for name in names if name not in STEPS)]


def table(found: Sequence[Iteration]) -> str:
    """Return a table by depth and configuration: nodes against the step before and the first, and positions solved."""
    by_case: dict[tuple[int, str], dict[str, Iteration]] = defaultdict(dict)
    for one in found:
        by_case[one.depth, one.step][one.fen] = one
    steps = _steps(found)
    rows = []
    for depth in sorted({one.depth for one in found}):
        shared = set.intersection(*(set(by_case[depth, step]) for step in steps))
        if not shared:
            break
        first = 0
        for step in steps:
            cases = [by_case[depth, step][fen] for fen in shared]
            nodes = sum(case.nodes for case in cases)
            first = first or nodes
            solved = sum(case.solved for case in cases)
            rows.append([str(depth), step, str(len(cases)), f"{nodes:,}", f"{nodes / first:.4f}", str(solved)])
    return text_table(["depth", "configuration", "positions", "nodes", "to the first", "solved"], rows, left=(1,))


def plot(path: Path, found: Sequence[Iteration]) -> None:
    """Nodes by depth, one line a configuration: the geometric mean over the positions that all have reached."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    cases: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for one in found:
        cases[one.step, one.depth][one.fen] = one.nodes
    steps = _steps(found)
    for step in steps:
        depths, means = [], []
        for depth in sorted({one.depth for one in found if one.step == step}):
            shared = set.intersection(*(set(cases[other, depth]) for other in steps))
            if shared:
                depths.append(depth)
                means.append(statistics.geometric_mean(cases[step, depth][fen] for fen in shared))
        axes.plot(depths, means, marker="o", markersize=4, label=step)
    axes.set_yscale("log")
    axes.set_xlabel("depth")
    axes.set_ylabel("nodes a position (geometric mean)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Search, log, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every K-th position")
    parser.add_argument(
        "--step",
        action="append",
        metavar="MODE[,NAME=VALUE...]",
        help="search this configuration in place of those of STEPS; may be given again",
    )
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--cap", type=int, default=20_000_000, metavar="NODES")
    parser.add_argument("--hash", type=int, default=64, metavar="MB")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--log", type=Path, default=Path("pruning_study.jsonl"))
    parser.add_argument("--from-log", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="PNG")
    options = parser.parse_args()
    try:
        for text in options.step or ():
            parse_pruning(text)
    except ValueError as error:
        parser.error(str(error))
    if options.from_log:
        try:
            found, _ = read_log(options.from_log, Iteration)
        except PsearchError as error:
            parser.error(str(error))
    elif options.suite:
        found = _measure(options)
    else:
        parser.error("give --suite FILE, or --from-log FILE")
    print(table(found))
    if options.plot:
        plot(options.plot, found)


def _measure(options: argparse.Namespace) -> list[Iteration]:
    suite = [p for p in parse_suite(read_source(str(options.suite))) if p.scored][:: options.every]
    found: list[Iteration] = []
    about = {"study": "pruning", "suite": options.suite.name, "every": options.every, "depth": options.depth}
    steps = {text: text for text in options.step} if options.step else STEPS
    about |= {"cap": options.cap, "hash": options.hash, "steps": steps}
    tasks = [(position, step) for position in suite for step in steps]
    make = partial(_begin_job, options.depth, options.cap, options.hash)
    with RawLog(options.log, about) as log, StatusLine() as status:
        for number, (_, answers) in enumerate(share_out(make, tasks, options.jobs), start=1):
            for one in answers:
                log.add(one)
                found.append(one)
            status(f"{number}/{len(tasks)} searches", number, len(tasks))
    return found


def _begin_job(depth: int, cap: int, hash_mb: int) -> Callable[[Task], list[Iteration]]:
    """In a process of several: what searches there."""
    return partial(iterations, depth=depth, cap=cap, hash_mb=hash_mb)


if __name__ == "__main__":
    main()
