"""What several machines are worth, by the moves that they choose: in virtual time, on positions of games.

    python bench/study/machines_study.py --positions FILE --out LOG.jsonl --nodes 10000 --workers 2 \\
        --machines 1x1,1x2,1x4,2,4 --modes root,root+entries

Each position is searched from an empty table by every configuration: one machine with k times as much time (`1xK`),
and so many machines (`M`) in each of the modes (`root`, `root+entries`). --nodes: a worker's nodes in
the time of a move (`x1`). The network's latency and period are those of `Network`, shrunk as the time of a move is
shorter than --move-ms, so that machines hear of each other as often in a move as they would in one so long.

Moves that not all configurations chose are then judged: by a search of the position behind the move by one worker, of
--judge-nodes nodes. What a choice loses is the difference to the best move judged at the position, in expected points
(0 to 1, logistic, 400 centipawns are 10 : 1). The report has the mean loss of each configuration, and what each is
worth: the k at which one machine loses as much, on the line through its losses over ln k; 95% intervals by drawing
positions again. It has the time to depth as well: that of one machine over that until the first of them
had finished the same depth, the deepest that both did.

FILE: lines that begin with a FEN, up to a semicolon. --every N takes each N-th. The log has every search; the same
command goes on where it was. Exit status: 0, 2 bad input, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.core.chess.chess_entries import EXCHANGE
from psearch.core.constants import BOUND_EXACT
from psearch.files.append_only import Journal
from psearch.files.raw_log import OPENING, machine, source_commit
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.remote.one_position.virtual_machines import FleetSample, Network, VirtualMachines, exchanges_entries
from psearch.results import Limits, PsearchError
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.text.values import shown

_HIGHEST = 1500
"""Centipawns: beyond, all is won."""
_DRAWN = 2000
_FAR = 10.0
"""ln of a k that is as good as none."""
_LEAST_PIECES = 8
_BASE = "1x1"


class Log:
    """What was searched, and judged, on disk."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.moves: dict[tuple[str, str], str] = {}
        """by configuration and position"""
        self.reached: dict[tuple[str, str], dict[str, float]] = {}
        """the same: seconds until a depth was finished"""
        self.scores: dict[tuple[str, str], int] = {}
        """by position and move"""
        self._journal = Journal(path, OPENING)
        first = None
        for number, _, entry in self._journal.lines():
            if number == 1:
                first = entry["about"]
            elif "config" in entry:
                self._take(entry)
            elif "judged" in entry:
                self.scores[entry["fen"], entry["judged"]] = entry["score"]
        facts = {"commit": source_commit(), "machine": machine(), "written": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        if first is not None and {name: first.get(name) for name in settings} != settings:
            raise PsearchError(f"{path} is another run: {shown(first)}")
        self._journal.cut()
        if first is None:
            self._journal.append({"about": {**settings, **facts}})
        else:
            self._journal.append({"resumed": facts})

    def add(self, entry: dict[str, Any]) -> None:
        if "config" in entry:
            self._take(entry)
        else:
            self.scores[entry["fen"], entry["judged"]] = entry["score"]
        self._journal.append(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        self.moves[entry["config"], entry["fen"]] = entry["move"]
        self.reached[entry["config"], entry["fen"]] = entry["reached"]

    def close(self) -> None:
        self._journal.close()


def read_positions(path: Path, every: int, most: int) -> list[str]:
    """FENs of positions with several legal moves and not too few pieces."""
    found = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % every or len(found) == most:
                continue
            fields = line.split(";")[0].split()
            fen = " ".join([*fields[:4], *(fields[4:6] if len(fields) > 5 and fields[4].isdecimal() else ("0", "1"))])
            board = chess.Board(fen)
            if board.is_valid() and board.legal_moves.count() > 4 and board.occupied.bit_count() >= _LEAST_PIECES:
                found.append(fen)
    return found


def _configurations(options: argparse.Namespace) -> list[tuple[str, int, float, str]]:
    """Name, machines, factor of time, mode."""
    found = []
    for word in options.machines.split(","):
        if word.startswith("1x"):
            found.append((word, 1, float(word[2:]), "root"))
        else:
            found += [(f"{word} {mode}", int(word), 1.0, mode) for mode in options.modes.split(",")]
    return found


def choose(options: argparse.Namespace, positions: Sequence[str], log: Log) -> None:
    """The moves of every configuration."""
    costs = Costs()
    move_seconds = costs.seconds_of(options.nodes)
    for name, machines, factor, mode in _configurations(options):
        left = [fen for fen in positions if (name, fen) not in log.moves]
        if not left:
            continue
        begun = time.time()
        network = Network().scaled(move_seconds * 1000 / options.move_ms)
        fleet = VirtualMachines(machines, options.workers, options.hash, exchanges_entries(mode), network, costs)
        for fen in left:
            fleet.forget()
            found = fleet.play(chess.Board(fen), move_seconds * factor)
            if found.answer is None:
                raise PsearchError(f"no answer at {fen}")
            entry = {"config": name, "fen": fen, "move": found.answer.pv[0].uci(), "depth": found.answer.depth}
            log.add({**entry, "nodes": found.nodes, "reached": _reached(found)})
        fleet.close()
        print(f"{name}: {len(left)} positions, {time.time() - begun:.0f} s", flush=True)


def _reached(found: FleetSample) -> dict[str, float]:
    """By depth of the root: seconds until it was known at machine 0 that a machine had finished it."""
    reached: dict[str, float] = {}
    for seconds, one in found.reports:
        if one.bound == BOUND_EXACT:
            reached.setdefault(str(one.depth), seconds)
    return reached


def judge(options: argparse.Namespace, positions: Sequence[str], log: Log) -> None:
    """What moves are worth where configurations differ."""
    chosen: dict[str, set[str]] = {}
    for (_, fen), move in log.moves.items():
        chosen.setdefault(fen, set()).add(move)
    wanted = [(fen, move) for fen in positions for move in sorted(chosen.get(fen, ())) if len(chosen[fen]) > 1]
    wanted = [pair for pair in wanted if pair not in log.scores]
    arena = Arena(1, options.hash)
    for fen, move in wanted:
        board = chess.Board(fen)
        board.push_uci(move)
        log.add({"judged": move, "fen": fen, "score": -_value(arena, board, options.judge_nodes)})
    arena.close()


def _value(arena: Arena, board: chess.Board, nodes: int) -> int:
    if board.is_checkmate():
        return -_HIGHEST
    if board.is_game_over():
        return 0
    arena.forget()
    write_search(arena, board, Limits(nodes=nodes), SearchOptions(policy="serial"))
    work_alone(arena)
    return max(-_HIGHEST, min(_HIGHEST, int(arena.header[0]["score"])))


def _losses(log: Log, names: Sequence[str], positions: Iterable[str]) -> np.ndarray:
    """In points, [position, configuration], of positions that all of these have searched, and that are judged."""
    rows = []
    for fen in positions:
        moves = [log.moves.get((name, fen)) for name in names]
        scores = {move: log.scores.get((fen, move)) for (_, at), move in log.moves.items() if at == fen}
        if None in moves or (len(scores) > 1 and None in scores.values()):
            continue
        points = {move: 1 / (1 + 10 ** (-(score or 0) / 400)) for move, score in scores.items()}
        rows.append([max(points.values()) - points[str(move)] for move in moves])
    return np.array(rows)


def _worth(times: np.ndarray, losses: np.ndarray, loss: float) -> float:
    """k at which one machine loses so much, by the line through its losses over ln k; nan if time gains nothing."""
    slope, level = np.polyfit(np.log(times), losses, 1)
    return float(np.exp(np.clip((loss - level) / slope, -_FAR, _FAR))) if slope < 0 else float("nan")


def _speedup(log: Log, name: str, positions: Iterable[str]) -> str:
    """By time to the deepest depth that both this and one machine have finished, geometric mean."""
    logs = []
    for fen in positions:
        alone, here = log.reached.get((_BASE, fen), {}), log.reached.get((name, fen), {})
        both = set(alone) & set(here)
        if both:
            deepest = max(both, key=int)
            logs.append(np.log(alone[deepest] / here[deepest]))
    if not logs:
        return ""
    half = 1.96 * np.std(logs) / np.sqrt(len(logs))
    return "{:.2f} ({:.2f} to {:.2f})".format(*np.exp(np.mean(logs) + np.array([0, -half, half])))


def report(log: Log, positions: Sequence[str]) -> str:
    """The table."""
    names = list(dict.fromkeys(name for name, _ in log.moves))
    alone = [name for name in names if name.startswith("1x")]
    times = np.array([float(name[2:]) for name in alone])
    dice = np.random.default_rng(1)
    lines = [
        "| configuration | positions | loss, points of 100 | worth x time (95%) | time to depth (95%) |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        found = _losses(log, [*alone, name], positions)
        if not len(found):
            continue
        line = f"| {name} | {len(found)} | {100 * found[:, -1].mean():.2f} |"
        if name in alone:
            lines.append(f"{line} | |")
            continue
        if len(alone) < 2:
            lines.append(f"{line} | {_speedup(log, name, positions)} |")
            continue
        samples = (found[dice.integers(0, len(found), len(found))].mean(axis=0) for _ in range(_DRAWN))
        drawn = [_worth(times, sample[:-1], sample[-1]) for sample in samples]
        mean = found.mean(axis=0)
        known = [one for one in drawn if not np.isnan(one)]
        low, high = np.percentile(known, (2.5, 97.5)) if known else (np.nan, np.nan)
        worth = f"{_worth(times, mean[:-1], mean[-1]):.2f} ({low:.2f} to {high:.2f})"
        lines.append(f"{line} {worth} | {_speedup(log, name, positions)} |")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Bad input is one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--most", type=int, default=10**6)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--hash", type=int, default=4, help="MiB a machine (4)")
    parser.add_argument("--machines", default="")
    parser.add_argument("--modes", default="root+entries")
    parser.add_argument("--move-ms", type=float, default=1000.0)
    parser.add_argument("--judge-nodes", type=int, default=100_000)
    options = parser.parse_args(words)
    try:
        positions = read_positions(options.positions, options.every, options.most)
        settings = {name: getattr(options, name) for name in ("nodes", "workers", "hash", "move_ms", "judge_nodes")}
        log = Log(options.out, settings)
        load_kernels(VIRTUAL, EXCHANGE)
        if options.machines:
            choose(options, positions, log)
            judge(options, positions, log)
        print(report(log, positions))
        log.close()
    except (PsearchError, OSError, ValueError, KeyError, TypeError) as error:
        print(f"machines_study.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
