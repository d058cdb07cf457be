"""Whether the extra nodes of a parallel search are wasted: how good its answers are at the same nominal depth.

    python bench/study/same_depth.py --log LOG.jsonl --suite FILE.epd [--more 2,4]

LOG is the raw log of `psearch simulate --tree-nodes ...` over the suite: each position to the same depth by one worker
and by more. Printed are the positions solved and the points by policy and workers, and their differences from one
worker with 95% bootstrap intervals over the positions. With --more each position is also searched by one worker with so
many times the nodes that it needed for that depth: what the extra nodes buy when nothing is parallel.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import chess
import numpy as np
from study_log import Row, read_rows, serial_rows

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.core.chess.board.bridge import to_chess_move
from psearch.lab.studies.speedup_study import mean_interval
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch.terminal.status import StatusLine
from psearch.terminal.table import text_table
from psearch.text.epd_text import SuitePosition, parse_suite
from psearch.text.source import read_source

Moves = dict[str, chess.Move]
"""What is played in each position, by FEN."""


def answer(arena: Arena, board: chess.Board, nodes: int) -> chess.Move:
    """The best move of one worker from an empty table, after so many nodes."""
    arena.forget()
    write_search(arena, board, Limits(nodes=nodes), SearchOptions(policy="serial"))
    work_alone(arena)
    return to_chess_move(int(arena.header[0]["best_move"]), board)


def logged_moves(rows: list[Row], suite: dict[str, SuitePosition]) -> dict[str, Moves]:
    """The answers in the log, by policy and workers."""
    found: dict[str, Moves] = {}
    for row in rows:
        if position := suite.get(row["fen"]):
            name = "serial" if row["policy"] == "serial" else f"{row['policy']}, {row['threads']}"
            found.setdefault(name, {})[row["fen"]] = to_chess_move(row["bestmove"], position.board)
    return found


def interval(differences: np.ndarray) -> str:
    """Mean and 95% bootstrap interval over the positions."""
    low, high = mean_interval(differences)
    return f"{differences.mean():+.2f} ({low:+.2f} to {high:+.2f})"


def table(found: dict[str, Moves], suite: dict[str, SuitePosition]) -> str:
    """One line for each way to search."""
    fens = sorted(set.intersection(*(set(moves) for moves in found.values())))
    solved, points = {}, {}
    for name, moves in found.items():
        solved[name] = np.array([100.0 * suite[fen].accepts(moves[fen]) for fen in fens])
        points[name] = np.array([float(suite[fen].points.get(moves[fen], 0)) for fen in fens])
    head = ["searched by", "solved", "% against serial", "points a position", "against serial"]
    rows = [
        [
            name,
            str(int(solved[name].sum() / 100)),
            interval(solved[name] - solved["serial"]),
            f"{points[name].mean():.2f}",
            interval(points[name] - points["serial"]),
        ]
        for name in found
    ]
    columns = len(head) if points["serial"].any() else 3
    return f"{len(fens)} positions\n" + text_table(head[:columns], [row[:columns] for row in rows])


def main() -> None:
    """Read, search more, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--more", default="", metavar="K,K", help="serial searches with so many times the nodes")
    parser.add_argument("--hash", type=int, default=16)
    options = parser.parse_args()
    try:
        times = [float(word) for word in options.more.split(",") if word]
    except ValueError:
        raise SystemExit(f"same_depth: --more wants numbers, not {options.more[:40]!a}") from None
    rows = read_rows(options.log, "same_depth")
    serial = serial_rows(rows, options.log, "same_depth")
    suite = {position.board.fen(): position for position in parse_suite(read_source(options.suite)) if position.scored}
    found = logged_moves(rows, suite)
    if "serial" not in found:
        raise SystemExit(f"same_depth: no position of {options.suite} is in {options.log}")
    arena = Arena(workers=1, hash_mb=options.hash)
    with StatusLine() as status:
        for more in times:
            moves = found[f"serial, nodes x{more:g}"] = {}
            for number, row in enumerate(serial, start=1):
                status(f"x{more:g}: {number}/{len(serial)}")
                if position := suite.get(row["fen"]):
                    moves[row["fen"]] = answer(arena, position.board, max(1, int(more * row["nodes"])))
    arena.close()
    print(table(found, suite))


if __name__ == "__main__":
    main()
