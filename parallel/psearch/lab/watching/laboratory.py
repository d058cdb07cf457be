"""Compares policies and one worker on one or several positions in virtual time.

It runs in a separate process (`job`), since it keeps a core busy for seconds. A separate search finds the depth at
which one worker has searched about the wanted nodes; a search with far more nodes is stopped and shown as far as it
got. The same arguments always give the same answer, and histories are those of `psearch simulate`, so its command
repeats the run.
"""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import chess

from psearch.arena.setup import board_text
from psearch.defaults import POLICY_NAMES, STUDY_DRIVERS
from psearch.lab.studies.comparisons import searched, summarise
from psearch.lab.studies.prediction_study import bins_of
from psearch.lab.studies.pruning_counts import collect
from psearch.lab.studies.tree_sizes import sample_seed, warnings
from psearch.lab.studies.virtual_study import Study, do_here, find_depths, run_study
from psearch.lab.watching.recordings import virtual_looks
from psearch.lab.watching.tracks import ABORTED, IDLE, JOIN, LOST, SEARCH, Segment, in_cells, packed
from psearch.options import SearchOptions, pruning_named
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels, merge_now
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.text.epd_text import SuitePosition
from psearch.trace.recorder import Recorder
from psearch.trace.trace_file import Slice
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import TYPE_NAMES

Report = Callable[[str, float], None]
"""Takes the name of the current step, and the share done from 0 to 1."""
MOST_WORKERS = 64
"""Most virtual workers."""
LEAST_NODES, MOST_NODES = 5_000, 3_000_000
MOST_CELLS = 400
"""Most segments of a worker's timeline; longer ones are sampled in this many cells of equal length."""
_MOST_TIMES = 20
"""Node limit of a search, as a multiple of the nodes of one worker. Workers that do not split search most of it."""
_HASH_MB = 64
_EVENTS = 1 << 20
"""Most events of a trace for all workers together: 64 MiB."""
_EVENTS_OF_A_WORKER = 1 << 15
_KINDS = {"search": SEARCH, "join": JOIN, "idle": IDLE, "not recorded": LOST, "aborted work": ABORTED}
"""Kinds of segments by the names of slices."""


@dataclass(frozen=True)
class Experiment:
    """Describes an experiment; the values have been checked."""

    fen: str
    chess960: bool
    workers: int
    """Virtual workers, at most `MOST_WORKERS`."""
    policies: tuple[str, ...]
    nodes: int
    """Approximate nodes of one worker."""
    pruning: str = "modern"
    driver: str = STUDY_DRIVERS[0]
    """Driver of all three searches."""
    rules: str = ""
    """User's file of rules for all searches; empty for none."""
    looks: bool = False
    """Whether the results include recordings, as in `recordings`."""
    others: tuple[str, ...] = ()
    """FENs of more positions; then the figures are means over all of them, for 2, 4, ... workers."""

    def boards(self) -> list[chess.Board]:
        """Return the positions. Raises PsearchError if there is nothing to search."""
        return [self._board(fen) for fen in dict.fromkeys((self.fen, *self.others))]

    def counts(self) -> list[int]:
        """Return the numbers of workers of the study."""
        return [count for count in (2, 4, 8, 16, 32) if self.others and count < self.workers] + [self.workers]

    def command(self) -> str:
        """Return the command that gives the same figures, for a shell; empty for Chess960."""
        names = ",".join(dict.fromkeys(self.policies))
        words = ["psearch", "simulate", "--workers", ",".join(map(str, self.counts())), "--policy", names]
        words += ["--tree-nodes", str(self.nodes), "--pruning", self.pruning, "--driver", self.driver]
        words += ["--with", self.rules] if self.rules else []
        fens = [board.fen() for board in self.boards()]
        return "" if self.chess960 else "\n".join([f"{shlex.join(words)} --suite - <<'END'", *fens, "END"])

    def _board(self, fen: str) -> chess.Board:
        try:
            board = chess.Board(fen, chess960=self.chess960)
        except ValueError as error:
            raise PsearchError(f"not a position: {error}") from None
        if not board.is_valid() or not any(board.legal_moves):
            raise PsearchError("there is nothing to search in this position")
        return board


class _TooManyNodes(Exception):
    pass


def run(experiment: Experiment, report: Report) -> dict[str, Any]:
    """Run one worker and each policy, and return results for JSON. Raises PsearchError if there is nothing to share."""
    board, *_ = boards = experiment.boards()
    pruning = pruning_named(experiment.pruning)
    serial_options, *options = every = [
        SearchOptions(policy=policy, driver=experiment.driver, pruning=pruning, with_=experiment.rules, record=True)
        for policy in ("serial", *experiment.policies)
    ]
    load_kernels(*dict.fromkeys(each.kernels.group(VIRTUAL) for each in every), progress=lambda text: report(text, 0.0))
    study = Study(
        suite=[SuitePosition(f"position {number}", board) for number, board in enumerate(boards, 1)],
        depth=None,
        workers=experiment.counts(),
        policies=list(dict.fromkeys(experiment.policies)),
        costs=Costs(),
        options=serial_options,
        hash_mb=_HASH_MB,
        tree_nodes=experiment.nodes,
        kernels={each.policy: each.kernels for each in every if each.with_ or each.policy not in POLICY_NAMES},
    )
    samples: list[VirtualSample] = []
    common = {"command": experiment.command(), "pruning": serial_options.pruning_words, "driver": experiment.driver}
    report("finding the depth", 0.0)
    if experiment.others:
        return common | _over_positions(study, report)
    if not (depth := find_depths(study, share=do_here)[0]):
        raise PsearchError("this position is decided at once: there is nothing to share")

    step = 0.7 / len(options)

    def reporter(text: str, begun: float) -> Callable[[float], None]:
        return lambda share: report(text, begun + step * min(share / 1.5, 1.0))

    serial = _search(board, depth, 1, serial_options, reporter("one worker", 0.05), samples)
    runs = [
        _search(board, depth, experiment.workers, each, reporter(each.policy, begun), samples, serial, experiment.looks)
        for each, begun in zip(options, (0.3, 0.65), strict=False)
    ]
    return common | {
        "fen": board.fen(),
        "chess960": board.chess960,
        "workers": experiment.workers,
        "depth": depth,
        **_summary(list(dict.fromkeys(samples)), experiment.workers),
        "serial": serial,
        "runs": runs,
        "iterations": _compared(runs) if len(runs) == 2 else [],
    }


def _over_positions(study: Study, report: Report) -> dict[str, Any]:
    """Return the rows of a study of all positions."""
    samples: list[VirtualSample] = []

    def progress(text: str, done: float = 0, total: float = 0) -> None:
        report(text, 0.1 + 0.9 * done / total if total else 0.05)

    run_study(study, 1, samples.append, progress, share=do_here)
    return _summary(samples, study.workers[-1])


def _summary(samples: Sequence[VirtualSample], workers: int) -> dict[str, Any]:
    """Return rows, size and warnings as `psearch simulate` shows them."""
    positions, nodes = searched(samples)
    cautions = [f"{text[0].upper()}{text[1:]}." for text in warnings(positions, nodes, workers, samples[0].pruning)]
    rows = [asdict(row) for row in summarise(samples)]
    return {"rows": rows, "positions": positions, "tree_nodes": nodes, "warnings": cautions}


def _search(
    board: chess.Board,
    depth: int,
    workers: int,
    options: SearchOptions,
    report: Callable[[float], None],
    samples: list[VirtualSample],
    serial: Mapping[str, Any] | None = None,
    looks: bool = False,
) -> dict[str, Any]:
    """Run one search and return it as plain data, compared with that of one worker, if given; a stopped search has no
    speedup. report: takes the nodes so far, relative to one worker; samples: takes the sample; looks: also return a
    recording."""
    with contextlib.closing(Simulator(workers, _HASH_MB, Costs(), min(_EVENTS_OF_A_WORKER, _EVENTS // workers))) as sim:
        arena, recorder = sim.arena, sim.recorder
        assert recorder is not None

        def watch() -> None:
            nodes = int(arena.worker["nodes"].sum())
            report(nodes / serial["nodes"] if serial else 0.5)
            if nodes > _MOST_TIMES * (serial["nodes"] if serial else MOST_NODES):
                raise _TooManyNodes

        found: dict[str, Any] = {"policy": options.policy, "workers": workers, "stopped": False}
        try:
            history = sample_seed(0, board_text(board), options.policy, workers, 0)
            sample = sim.search("", board, depth, options, watch=watch, history=history)
        except _TooManyNodes:
            nodes = int(arena.worker["nodes"].sum())
            found |= {"stopped": True, "seconds": recorder.end_ns / 1e9, "nodes": nodes}
        else:
            samples.append(sample)
            move = to_chess_move(sample.bestmove, board)
            is_legal = move in board.legal_moves
            found |= {
                "seconds": sample.seconds,
                "nodes": sample.nodes,
                "score": sample.score,
                "move": move.uci() if is_legal else None,
                "san": board.san(move) if is_legal else None,
                "idle": round(sample.idle_share, 5),
                "splits": sample.splits,
                "joins": sample.joins,
                "aborted": round(sample.aborted_nodes / max(sample.nodes, 1), 5),
            }
            if serial:
                found["speedup"] = round(serial["seconds"] / sample.seconds, 4)
                found["overhead"] = round(sample.nodes / serial["nodes"], 4)
        merge_now(arena.context)
        record, outcomes = arena.header[0]["prediction"], arena.worker["outcomes"]
        # reliability of P(no cutoff) at entry, and of P(needed) of moves taken at shared nodes
        at_entry = bins_of(record["bin_seen"][0], record["bin_no_cut"][0], record["bin_p"][0])
        needed = bins_of(outcomes["needed_seen"].sum(axis=0), outcomes["needed_used"].sum(axis=0))
        found |= timeline(recorder)
        found |= {
            "no_cutoff": [asdict(one) for one in at_entry],
            "needed": [asdict(one) for one in needed],
            "techniques": collect(arena)["techniques"],
        }
        return found | ({"looks": virtual_looks(sim)} if looks else {})


def timeline(recorder: Recorder) -> dict[str, Any]:
    """Return tracks, iterations and split nodes of a recorder's last search, with times in microseconds."""
    end, lives = recorder.end_ns // 1000, [part.args for part in recorder.lives()]
    tracks = (segments_of(recorder.slices_of(worker)) for worker in range(recorder.arena.workers))
    depths = [
        {name: part.args.get(name) for name in ("depth", "bound", "score", "move")}
        | {"begin": part.begin // 1000, "end": part.end // 1000}
        for part in recorder.iterations()
    ]
    types = []
    for name in TYPE_NAMES:
        own = [life for life in lives if life.get("type") == name]
        outcomes = [life.get("outcome") for life in own]
        needed = math.fsum(float(life.get("p_needed", 0)) for life in own)
        types.append(
            {
                "type": name,
                "splits": len(own),
                "helpers": sum(int(life.get("helpers", 0)) for life in own),
                "p_needed": round(needed / len(own), 3) if own else None,
                **{outcome: outcomes.count(outcome) for outcome in ("exhausted", "cutoff", "aborted")},
            }
        )
    shown = [packed(in_cells(track, 0, end, MOST_CELLS)) for track in tracks]
    return {"end": end, "tracks": shown, "depths": depths, "types": types}


def segments_of(slices: Iterable[Slice]) -> list[Segment]:
    """Return the segments of a worker's slices; work thrown away follows the slice that contains it."""
    return [
        Segment(_KINDS[each.name], each.begin // 1000, each.end // 1000, each.args.get("split", "").replace("root", ""))
        for part in slices
        for each in (part, *part.within)
        if each.name in _KINDS  # others are iterations
    ]


def _compared(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the times of both searches for each depth, and their accumulated difference."""
    spent: list[dict[int, int]] = [{}, {}]
    for by_depth, one in zip(spent, runs, strict=True):
        for part in one["depths"]:
            by_depth[part["depth"]] = by_depth.get(part["depth"], 0) + part["end"] - part["begin"]
    found, apart = [], 0
    for depth in sorted(spent[0].keys() & spent[1].keys()):
        first, second = spent[0][depth], spent[1][depth]
        apart += second - first
        found.append({"depth": depth, "first": first, "second": second, "apart": apart})
    return found
