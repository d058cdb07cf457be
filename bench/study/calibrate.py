"""Measures on this machine what virtual time charges for each action (`Costs`), in about a minute.

    python bench/study/calibrate.py [--out costs.json]

The file is for `psearch simulate --costs FILE`. Nothing else should be running.

Nodes: the benchmark's positions are searched serially in small slices, several times; a slice does the same each time,
so its least time is the one without disturbance, and least squares over the slices give the cost of a node of the
main search from one of quiescence. Joins: real searches with two worker processes, which count the cycles. What
sharing costs: `sharing_costs.py`. All else: loops in `cost_kernels/micro_costs.py`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import chess
import numpy as np
from cost_kernels import MICRO_COSTS, TIMED_LOCKS, micro_costs
from sharing_costs import MEANINGS, SharingCosts, measure_sharing

from psearch.arena.arena import Arena, stack_pool_size
from psearch.arena.setup import write_search
from psearch.bench import BENCH_POSITIONS
from psearch.faces.cli.kernels import prepare_kernels
from psearch.files.raw_log import machine, machine_name
from psearch.lab.studies import StudyProgress
from psearch.lab.studies.tree_sizes import scale_line
from psearch.options import SearchOptions
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits, PsearchError
from psearch.scheduler.scheduler_entries import read_cycles, work
from psearch.simulation.costs import QUIET_LOAD, Costs
from psearch.terminal.status import StatusLine
from psearch.terminal.streams import text_table
from psearch_core.constants import ALL_NODE
from psearch_core.records import CACHE_LINE

try:
    from scipy.optimize import nnls
except ImportError:
    raise SystemExit("this needs scipy: pip install '.[study]'") from None

_BURSTS_PER_SLICE = 64
"""About 20 ms: long against the clock's noise, short against a change in the share of quiescence."""
_PASSES = 3
_HASH_MB = 64
_ROUNDS = 20_000
_REPEATS = 7
_TURNS = 50
_BLOCKS = 100
_LOOKS = 200
_LONGEST_WRITE_NS = 400
"""Longest time of a write to a stack's mask by the other thread; a shared core makes it longer."""
_POOLS = (stack_pool_size(2), stack_pool_size(128))
"""Sizes of the stack pool for the two points of a poll's line."""
_UNWOUND_PLIES = 6
"""Plies from a helper's node to the split node, typically."""


@dataclass(frozen=True)
class Calibration:
    """The measurements, with their errors."""

    costs: Costs
    node_error: float
    """Root mean square error of the slices' times, relative."""
    slices: int
    joins: int
    positions: int
    tree_nodes: float
    """Nodes of one worker, mean over the positions."""
    sharing: SharingCosts

    def table(self) -> str:
        costs, defaults = self.costs, Costs()
        fitted = f"least squares over {self.slices} slices, error {self.node_error:.1%}"
        rows = [
            ("node", f"main search; {fitted}"),
            ("qnode", "quiescence; same"),
            ("open", "open a node"),
            ("join", f"join that succeeds; mean of {self.joins:,} by two worker processes"),
            ("leave", "leave an open node"),
            ("lock", "lock and unlock a node"),
            ("poll", "look for work and pause"),
            ("poll_stack", "more for each stack of the pool"),
            ("poll_line", "more for each line that another core has written since"),
            ("abort", f"notice a cutoff and unwind {_UNWOUND_PLIES} plies"),
            ("claim", "look a claim up, take it and give it back; not measured"),
            ("transfer", "a cache line that another core has just written"),
            *MEANINGS.items(),
        ]
        cells = [[name, *(f"{getattr(of, name):.1f}" for of in (costs, defaults)), what] for name, what in rows]
        table = text_table(["cost", "ns", "default", "what"], cells, left=(0, 3))
        notes = [
            f"{scale_line(self.positions, self.tree_nodes)}; ns: nanoseconds that `psearch simulate` charges each time",
            f"crowd: a node takes x{1 + costs.crowd:.3f} while a second worker shares the search, long after a join; "
            f"default x{1 + defaults.crowd:.3f}",
            f"machine: {costs.machine}, {costs.measured}, load {costs.system_load:.1f}",
        ]
        return f"{table}\n\n" + "\n".join(notes)


def main() -> None:
    """Measure the costs, print them, and write them with `--out`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the costs here, as JSON")
    options = parser.parse_args()
    if options.out is not None and not options.out.absolute().parent.is_dir():
        raise SystemExit(f"calibrate: cannot write {options.out}: its folder does not exist")
    load = os.getloadavg()[0]  # before kernels are compiled, which is load of our own
    if load >= QUIET_LOAD:
        print(f"calibrate: other jobs are running (load {load:.1f}): the costs will be wrong", file=sys.stderr)
    prepare_kernels(MICRO_COSTS, TIMED_LOCKS)
    with StatusLine() as status:
        calibration = calibrate(progress=status)
    calibration = replace(calibration, costs=replace(calibration.costs, system_load=round(load, 2)))
    print(calibration.table(), flush=True)
    if far := calibration.costs.far_off():
        print(f"calibrate: {', '.join(far)}: another machine is so, or a busy one", file=sys.stderr)
    if options.out is not None:
        calibration.costs.save(options.out)


def calibrate(
    depth: int = 14, join_depth: int = 15, positions: int = 16, progress: StudyProgress | None = None
) -> Calibration:
    """Measure everything: a minute with the defaults. Smaller numbers are for tests: on small trees a
    node costs more, for the table is cold."""
    report = progress or (lambda text, done=0, total=0: None)
    boards = [chess.Board(fen, chess960=True) for fen in BENCH_POSITIONS[:positions]]
    report("calibrate: time stamp counter")
    cycles_per_ns = _cycles_per_ns()
    report("calibrate: small operations")
    micro = _micro_costs(boards[0], cycles_per_ns)
    node, qnode, error, slices, nodes = _node_costs(boards, depth, report)
    join, joins = _join_cost(boards, join_depth, cycles_per_ns, report)
    sharing = measure_sharing(boards, depth, cycles_per_ns, report)
    costs = Costs(
        node=round(node, 1),
        qnode=round(qnode, 1),
        # virtual time charges a join's lock beside it
        join=round(max(join - micro["lock"], 0.0), 1),
        machine=machine_name(machine()),
        measured=time.strftime("%Y-%m-%d"),
        **{name: round(value, 2) for name, value in micro.items()},
        **{name: round(value, 4) for name, value in sharing.costs.items()},
    )
    return Calibration(costs, error, slices, joins, len(boards), nodes / len(boards), sharing)


def _cycles_per_ns() -> float:
    start_cycles, start = read_cycles(), time.perf_counter_ns()
    time.sleep(0.2)
    return float(read_cycles() - start_cycles) / (time.perf_counter_ns() - start)


def _slices(arena: Arena, board: chess.Board, depth: int) -> tuple[list[tuple[int, int]], list[float]]:
    """Nodes and quiescence nodes of each slice of one search, and its nanoseconds."""
    options = SearchOptions(policy="serial")
    arena.forget()
    arena.header["age"] = 0
    write_search(arena, board, Limits(depth=depth), options)
    worker = arena.worker[0]
    counts: list[tuple[int, int]] = []
    times: list[float] = []
    nodes = qnodes = done = 0
    while not done:
        start = time.thread_time_ns()  # not the wall: the core may be taken away meanwhile
        done = work(arena.context, 0, _BURSTS_PER_SLICE)
        times.append(time.thread_time_ns() - start)
        counts.append((int(worker["nodes"]) - nodes, int(worker["counters"]["qnodes"]) - qnodes))
        nodes, qnodes = int(worker["nodes"]), int(worker["counters"]["qnodes"])
    return counts, times


def _node_costs(
    boards: Sequence[chess.Board], depth: int, report: StudyProgress
) -> tuple[float, float, float, int, int]:
    """Nanoseconds of a node and of a quiescence node, the relative error, the number of slices, all nodes of a pass."""
    arena = Arena(workers=1, hash_mb=_HASH_MB)
    all_counts: list[tuple[int, int]] = []
    all_times: list[float] = []
    for number, board in enumerate(boards, start=1):
        report(f"calibrate: nodes, position {number}/{len(boards)}")
        passes = [_slices(arena, board, depth) for _ in range(_PASSES)]
        all_counts += passes[0][0]
        all_times += np.min([times for _, times in passes], axis=0).tolist()
    arena.close()
    counts = np.array(all_counts, float)
    times = np.array(all_times)
    terms = np.stack([counts[:, 0] - counts[:, 1], counts[:, 1]], axis=1)
    full = counts[:, 0] > counts[:, 0].max() / 20  # the last slice of a search may be almost nothing
    fitted, _ = nnls(terms[full], times[full])
    relative = terms[full] @ fitted / times[full] - 1
    return *fitted.tolist(), float(np.sqrt(np.mean(relative**2))), int(full.sum()), int(counts[:, 0].sum())


def _join_cost(
    boards: Sequence[chess.Board], depth: int, cycles_per_ns: float, report: StudyProgress
) -> tuple[float, int]:
    """Nanoseconds of a join by two worker processes: the median over searches of the mean; and the joins in all.

    The median leaves out the searches in which the system took a worker's core away during a join.
    """
    means = []
    joins = 0
    with Supervisor(2, _HASH_MB) as engine:
        for number, board in enumerate(boards, start=1):
            report(f"calibrate: joins, position {number}/{len(boards)}")
            engine.forget()
            engine.search(SearchRequest(board, Limits(depth=depth)))
            found = int(engine.arena.worker["counters"]["joins"].sum())
            if found:
                means.append(int(engine.arena.worker["counters"]["join_cycles"].sum()) / found / cycles_per_ns)
                joins += found
    return (statistics.median(means) if means else Costs.join), joins


def _scratch(board: chess.Board, stacks: int) -> Arena:
    """An arena with a search set up, worker 0 at its root, and plain nodes at the first plies of stack 0."""
    arena = Arena(workers=2, hash_mb=1, stacks=stacks)
    write_search(arena, board, Limits(depth=8), SearchOptions())
    micro_costs.begin(arena.context)
    frames = arena.frames[: _UNWOUND_PLIES + 2]
    frames["visit"]["home"] = np.arange(len(frames))
    node = frames["node"]
    node["open_parent"] = np.arange(len(frames)) - 1
    node["depth"] = 8
    node["split_type"] = ALL_NODE
    node["p_needed"] = 1 << 16
    return arena


def _least_ns(measure: Callable[[], Any], cycles_per_ns: float) -> float:
    """The least of several loops: the one that nothing disturbed."""
    return float(min(measure() for _ in range(_REPEATS))) / _ROUNDS / cycles_per_ns


def _word_on_a_line() -> tuple[np.ndarray, int]:
    """A word that is zero, alone on its cache line: what it lies in, which is to be kept, and its address."""
    room = np.zeros(2 * CACHE_LINE // 8, np.int64)
    return room, -(-room.ctypes.data // CACHE_LINE) * CACHE_LINE


def _transfer_ns(cycles_per_ns: float) -> float:
    """Nanoseconds that a cache line takes from one core to the other: the least of many short blocks."""
    room, address = _word_on_a_line()
    other = threading.Thread(target=micro_costs.time_transfers, args=(address, 1, _BLOCKS, _TURNS))
    other.start()
    cycles = micro_costs.time_transfers(address, 0, _BLOCKS, _TURNS)
    other.join()
    del room
    return float(cycles) / _TURNS / 2 / cycles_per_ns


def _poll_of_written_ns(context: int, stacks: int, cycles_per_ns: float) -> float:
    """Nanoseconds of a look for work at stacks that another core has all just written to: the median."""
    room, address = _word_on_a_line()
    longest = int(_LONGEST_WRITE_NS * stacks * cycles_per_ns)
    times = []
    for _ in range(_REPEATS):
        other = threading.Thread(target=micro_costs.write_offers, args=(context, address, _LOOKS))
        other.start()
        times.append(micro_costs.time_polls_of_written(context, 1, address, _LOOKS, longest) / cycles_per_ns)
        other.join()
    del room
    return float(statistics.median([time for time in times if time > 0] or [0.0]))


def _micro_costs(board: chess.Board, cycles_per_ns: float) -> dict[str, float]:
    """Nanoseconds of the operations that can be repeated on a scratch arena."""
    polls = []
    written = 0.0
    for stacks in _POOLS:
        arena = _scratch(board, stacks)
        context = arena.context
        polls.append(_least_ns(partial(micro_costs.time_polls, context, 1, _ROUNDS), cycles_per_ns))
        written = _poll_of_written_ns(context, stacks, cycles_per_ns) / stacks
        arena.close()
    per_stack = max((polls[1] - polls[0]) / (_POOLS[1] - _POOLS[0]), 0.0)
    arena = _scratch(board, _POOLS[0])
    context = arena.context
    frame = 1
    found: dict[str, float] = {
        "lock": _least_ns(partial(micro_costs.time_locks, context, 0, frame, _ROUNDS), cycles_per_ns),
        "open": _least_ns(partial(micro_costs.time_opens, context, 0, frame, _ROUNDS), cycles_per_ns),
        "leave": _least_ns(partial(micro_costs.time_leaves, context, 0, frame, _ROUNDS), cycles_per_ns),
        "poll": max(polls[0] - per_stack * _POOLS[0], 0.0),
        "poll_stack": per_stack,
        "abort": _least_ns(partial(micro_costs.time_aborts, context, 0, _UNWOUND_PLIES, _ROUNDS), cycles_per_ns),
        "transfer": _transfer_ns(cycles_per_ns),
        "poll_line": max(written - per_stack, 0.0),
    }
    arena.close()
    # leaving includes the lock, which virtual time charges beside it
    found["leave"] = max(found["leave"] - found["lock"], 0.0)
    return found


if __name__ == "__main__":
    try:
        main()
    except PsearchError as error:
        raise SystemExit(f"calibrate: {error}") from None
