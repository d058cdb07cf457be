"""One position in virtual time under two policies, side by side, and by one worker alone.

Runs in a process of its own (`job`), for it keeps a core busy for seconds. The depth is that of a search apart, at
which one worker has searched about so many nodes; a search that gets far beyond that is stopped, and what it did until
then is shown. The same arguments give the same answer to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import chess

from psearch.defaults import STUDY_DRIVERS
from psearch.lab.studies.prediction_study import bins_of
from psearch.lab.studies.pruning_counts import collect
from psearch.lab.studies.tree_sizes import is_decided, nearest_depth, warnings
from psearch.lab.watching.cells import ABORTED, IDLE, JOIN, LOST, SEARCH, Segment, in_cells, packed
from psearch.options import SearchOptions, pruning_named
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels, merge_now
from psearch.settings import SPLITTING_POLICIES, is_own_policy
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.trace.recorder import Recorder
from psearch.trace.trace_file import Slice
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import TYPE_NAMES

Tell = Callable[[str, float], None]
"""Takes what is being done, and the share that is done, 0 to 1."""
MOST_WORKERS = 64
LEAST_NODES, MOST_NODES = 5_000, 3_000_000
MOST_CELLS = 400
"""Segments of a worker's timeline that are sent; longer ones are in cells of that share of the time."""
_MOST_TIMES = 20
"""A search of more nodes than so many times those of one worker is stopped. Workers that split nothing each search
most of what one does."""
_HASH_MB = 64
_EVENTS = 1 << 20
"""Events of the trace, for all workers: 64 MiB."""
_EVENTS_OF_A_WORKER = 1 << 15
_KINDS = {"search": SEARCH, "join": JOIN, "idle": IDLE, "not recorded": LOST, "aborted work": ABORTED}
"""What workers do, by the names of slices."""
_LONGEST_WORD = 24
"""Most characters of a move, a split node or a bound."""


@dataclass(frozen=True)
class Experiment:
    """What is to be compared. Raises PsearchError for what cannot be."""

    fen: str
    chess960: bool
    workers: int
    """virtual, 1 .. 64"""
    policies: tuple[str, str]
    nodes: int
    """of one worker, about"""
    pruning: str = "modern"
    driver: str = STUDY_DRIVERS[0]
    """of all three searches"""
    rules: str = ""
    """a file of the user's, for all three searches; empty: none"""

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= MOST_WORKERS:
            raise PsearchError(f"workers must be from 1 to {MOST_WORKERS}, not {self.workers}")
        if not LEAST_NODES <= self.nodes <= MOST_NODES:
            raise PsearchError(f"nodes must be from {LEAST_NODES:,} to {MOST_NODES:,}, not {self.nodes}")
        for policy in self.policies:
            if policy not in SPLITTING_POLICIES and not is_own_policy(policy):
                raise PsearchError(f"policy must be one of {', '.join(SPLITTING_POLICIES)}, not {policy[:40]!r}")
        pruning_named(self.pruning)
        if self.driver not in STUDY_DRIVERS:
            raise PsearchError(f"driver must be one of {', '.join(STUDY_DRIVERS)}, not {self.driver[:40]!r}")

    def board(self) -> chess.Board:
        """Return the position. Raises PsearchError when there is nothing to search."""
        try:
            board = chess.Board(self.fen, chess960=self.chess960)
        except ValueError as error:
            raise PsearchError(f"no position: {error}") from None
        if not board.is_valid() or not any(board.legal_moves):
            raise PsearchError("there is nothing to search in this position")
        return board


class _TooMany(Exception):
    """Nodes."""


def run(experiment: Experiment, tell: Tell) -> dict[str, Any]:
    """Search three times; what there is to see, for JSON. Raises PsearchError when the position ends at once."""
    board = experiment.board()
    pruning = pruning_named(experiment.pruning)
    serial_options, *options = (
        SearchOptions(policy=policy, driver=experiment.driver, pruning=pruning, with_=experiment.rules)
        for policy in ("serial", *experiment.policies)
    )
    load_kernels(*dict.fromkeys(each.kernels.group(VIRTUAL) for each in (serial_options, *options)))
    tell("the depth", 0.0)
    depth = _depth(board, experiment.nodes, serial_options)
    if depth is None:
        raise PsearchError("this position is decided at once: there is nothing to share")
    serial = _search(board, depth, 1, serial_options, lambda nodes: tell("one worker", 0.05 + 0.25 * min(nodes, 1.0)))
    runs = []
    for number, each in enumerate(options):
        begun = 0.3 + 0.35 * number

        def report(share: float, begun: float = begun, policy: str = each.policy) -> None:
            tell(policy, begun + 0.35 * min(share / 1.5, 1.0))

        runs.append(_search(board, depth, experiment.workers, each, report, serial["nodes"], serial["seconds"]))
    cautions = warnings(1, serial["nodes"], experiment.workers, serial_options.pruning_words)
    return {
        "fen": board.fen(),
        "chess960": board.chess960,
        "workers": experiment.workers,
        "depth": depth,
        "pruning": serial_options.pruning_words,
        "driver": experiment.driver,
        "warnings": [text[0].upper() + text[1:] + "." for text in cautions],
        "serial": serial,
        "runs": runs,
        "iterations": _compared(runs),
    }


def _depth(board: chess.Board, wanted: int, options: SearchOptions) -> int | None:
    simulator = Simulator(1, _HASH_MB, Costs())
    try:
        return nearest_depth(
            simulator.iterations(board, options, lambda found, nodes: is_decided(found, nodes, wanted)), wanted
        )
    finally:
        simulator.close()


def _search(
    board: chess.Board,
    depth: int,
    workers: int,
    options: SearchOptions,
    report: Callable[[float], None],
    serial_nodes: int = 0,
    serial_seconds: float = 0.0,
) -> dict[str, Any]:
    """One search; against that of one worker, if it is given. report: takes the nodes so far, times those of it."""
    events = min(_EVENTS_OF_A_WORKER, _EVENTS // workers)
    simulator = Simulator(workers, _HASH_MB, Costs(), events)
    arena = simulator.arena
    most = _MOST_TIMES * serial_nodes if serial_nodes else _MOST_TIMES * MOST_NODES

    def watch() -> None:
        nodes = int(arena.worker["nodes"].sum())
        report(nodes / serial_nodes if serial_nodes else 0.5)
        if nodes > most:
            raise _TooMany

    try:
        sample: VirtualSample | None
        try:
            sample = simulator.search("", board, depth, options, watch=watch)
        except _TooMany:
            sample = None
        recorder = simulator.recorder
        assert recorder is not None
        return {
            **_figures(board, sample, simulator, recorder, serial_nodes, serial_seconds),
            "policy": options.policy,
            "workers": workers,
            **timeline(recorder),
            **_predictions(simulator),
            "techniques": collect(arena)["techniques"],
        }
    finally:
        simulator.close()


def _figures(
    board: chess.Board,
    sample: VirtualSample | None,
    simulator: Simulator,
    recorder: Recorder,
    serial_nodes: int,
    serial_seconds: float,
) -> dict[str, Any]:
    """In numbers; of a search that was stopped what it did until then, and no speedup."""
    if sample is None:
        return {
            "stopped": True,
            "seconds": recorder.end_ns / 1e9,
            "nodes": int(simulator.arena.worker["nodes"].sum()),
        }
    move = to_chess_move(sample.bestmove, board)
    found: dict[str, Any] = {
        "stopped": False,
        "seconds": sample.seconds,
        "nodes": sample.nodes,
        "score": sample.score,
        "move": move.uci() if move in board.legal_moves else None,
        "san": board.san(move) if move in board.legal_moves else None,
        "idle": round(sample.idle_share, 5),
        "splits": sample.splits,
        "joins": sample.joins,
        "aborted": round(sample.aborted_nodes / max(sample.nodes, 1), 5),
    }
    if serial_nodes:
        found["speedup"] = round(serial_seconds / sample.seconds, 4)
        found["overhead"] = round(sample.nodes / serial_nodes, 4)
    return found


def timeline(recorder: Recorder) -> dict[str, Any]:
    """Return tracks, iterations and split nodes of the last search of a recorder; times in microseconds."""
    end = recorder.end_ns // 1000
    tracks = [
        packed(in_cells(segments_of(recorder.slices_of(worker)), 0, end, MOST_CELLS))
        for worker in range(recorder.arena.workers)
    ]
    return {
        "end": end,
        "tracks": tracks,
        "depths": [iteration(part.args, part.begin // 1000, part.end // 1000) for part in recorder.iterations()],
        "types": split_types([part.args for part in recorder.lives()]),
    }


def segment(name: str, begin: int, end: int, args: Mapping[str, Any]) -> Segment | None:
    """Return what a worker did, of a slice of its track; None for a slice that is no work, such as an iteration."""
    kind = _KINDS.get(name)
    split = str(args.get("split", ""))[:_LONGEST_WORD]
    return None if kind is None else Segment(kind, begin, end, "" if split == "root" else split)


def segments_of(slices: Iterable[Slice]) -> list[Segment]:
    """Return a worker's slices, those of work thrown away after what they lie in."""
    parts = (each for part in slices for each in (part, *part.within))
    found = (segment(part.name, part.begin // 1000, part.end // 1000, part.args) for part in parts)
    return [each for each in found if each is not None]


def iteration(args: Mapping[str, Any], begin: int, end: int) -> dict[str, Any]:
    """Return a search of the root, of the arguments and the times of its slice. Raises ValueError, TypeError, KeyError
    for what psearch does not write."""
    score, move = args.get("score"), args.get("move")
    return {
        "depth": int(args["depth"]),
        "begin": begin,
        "end": end,
        "bound": str(args["bound"])[:_LONGEST_WORD],
        "score": None if score is None else int(score),
        "move": None if move is None else str(move)[:_LONGEST_WORD],
    }


def split_types(lives: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return of each type of node how many were shared, by how many helpers, and how they ended."""
    found = []
    for name in TYPE_NAMES:
        own = [life for life in lives if life.get("type") == name]
        outcomes = [life.get("outcome") for life in own]
        found.append(
            {
                "type": name,
                "splits": len(own),
                "helpers": sum(int(life.get("helpers", 0)) for life in own),
                "p_needed": round(math.fsum(float(life.get("p_needed", 0)) for life in own) / len(own), 3)
                if own
                else None,
                **{outcome: outcomes.count(outcome) for outcome in ("exhausted", "cutoff", "aborted")},
            }
        )
    return found


def _predictions(simulator: Simulator) -> dict[str, Any]:
    """Reliability curves of this search: of P(no cutoff) at entry, and of P(needed) of moves taken at shared nodes."""
    arena = simulator.arena
    merge_now(arena.context)
    record = arena.header[0]["prediction"]
    outcomes = arena.worker["outcomes"]
    at_entry = bins_of(record["bin_seen"][0], record["bin_no_cut"][0], record["bin_p"][0])
    needed = bins_of(outcomes["needed_seen"].sum(axis=0), outcomes["needed_used"].sum(axis=0))
    return {"no_cutoff": [asdict(one) for one in at_entry], "needed": [asdict(one) for one in needed]}


def _compared(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Where they differ: for each depth what both searches of the root took, and how far apart they are by then."""
    spent: list[dict[int, int]] = []
    for one in runs:
        by_depth: dict[int, int] = {}
        for part in one["depths"]:
            by_depth[part["depth"]] = by_depth.get(part["depth"], 0) + part["end"] - part["begin"]
        spent.append(by_depth)
    found = []
    apart = 0
    for depth in sorted(set(spent[0]) & set(spent[1])):
        first, second = spent[0][depth], spent[1][depth]
        apart += second - first
        found.append({"depth": depth, "first": first, "second": second, "apart": apart})
    return found
