"""The benchmark: one worker searches fixed positions to a fixed depth, without a clock. Its node count is a
fingerprint of the search."""

from __future__ import annotations

import time

import chess

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch_core.toolchain.groups import Progress

BENCH_DEPTH = 14
BENCH_HASH_MB = 16
BENCH_NODES = 1_718_174
"""Node count of `psearch bench`. A commit that changes this number changes the search, and states it as `Bench: N`."""
# Chosen for variety by the project: openings, tactics, endings, a mate, a Chess960 start.
BENCH_POSITIONS = (
    chess.STARTING_FEN,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r1bqkb1r/pp2pppp/2np1n2/8/3NP3/2N5/PPP2PPP/R1BQKB1R w KQkq - 2 6",
    "rnbq1rk1/pp2ppbp/3p1np1/2p5/2PPP3/2N2N2/PP2BPPP/R1BQK2R w KQ - 0 7",
    "r2q1rk1/pb1nbppp/1p2pn2/2pp4/3P4/1PNBPN2/PB3PPP/2RQ1RK1 w - - 0 11",
    "2rq1rk1/pp1bppbp/2np1np1/8/3NP3/1BN1BP2/PPPQ2PP/2KR3R b - - 8 12",
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "8/k7/3p4/p2P1p2/P2P1P2/8/8/K7 w - - 0 1",
    "6k1/5pp1/4p2p/3pP3/3P1P2/r1P3P1/5K1P/1R6 b - - 0 30",
    "3r1rk1/p4pp1/1p2pn1p/2q5/2P5/1Q3NP1/PP3P1P/R2R2K1 w - - 0 20",
    "5rk1/1b3pp1/pq2p2p/1p1nP3/3N4/1P2QN2/P4PPP/3R2K1 b - - 0 23",
    "4k3/8/8/8/8/8/4P3/4K2R w K - 0 1",
    "r1b2rk1/2q1bppp/p2p1n2/np2p3/3PP3/5N1P/PPBN1PP1/R1BQR1K1 w - - 2 13",
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
    "7k/5Q2/8/6K1/8/8/8/8 w - - 10 60",
)


def run_bench(progress: Progress | None = None, options: SearchOptions | None = None) -> tuple[int, float]:
    """Search every position to `BENCH_DEPTH` from an empty table. Return the total of nodes and of seconds.

    options: the search to measure, with policy `serial`; None: the default search. Raises PsearchError.
    """
    options = options or SearchOptions(policy="serial")
    arena = Arena(workers=1, hash_mb=BENCH_HASH_MB, kernels=options.kernels)
    nodes = 0
    seconds = 0.0
    for number, fen in enumerate(BENCH_POSITIONS, start=1):
        board = chess.Board(fen, chess960=True)
        arena.forget()
        write_search(arena, board, Limits(depth=BENCH_DEPTH), options)
        start = time.perf_counter()
        work_alone(arena)
        seconds += time.perf_counter() - start
        nodes += int(arena.worker[0]["nodes"])
        if progress:
            progress(f"bench {number}/{len(BENCH_POSITIONS)}: {nodes:,} nodes")
    arena.close()
    return nodes, seconds
