"""What the engine does for people at a keyboard: perft, the static evaluation, the bench."""

from __future__ import annotations

from collections.abc import Callable

import chess

from psearch.api.counting import static_evaluation
from psearch.faces.uci.uci_messages import perft_lines
from psearch.options import SearchOptions
from psearch.processes.perft_tasks import count_leaves
from psearch.processes.supervisor import Supervisor
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.chess.chess_entries import PERFT


def count_moves(
    board: chess.Board, depth: int, threads: int, progress: Callable[[str], None], is_stopped: Callable[[], bool]
) -> str:
    """Run a perft; the lines that `go perft` prints. Raises PsearchError when it is stopped.

    progress: gets lines while its kernels are compiled, the first time on a machine; that does not count as its time.
    """
    load_kernels(PERFT, progress=progress)
    counts, seconds = count_leaves(board, depth, threads, is_stopped)
    return perft_lines(board, counts, seconds)


def evaluation_line(supervisor: Supervisor, board: chess.Board, options: SearchOptions) -> str:
    """Write the line that `eval` prints. Raises PsearchError."""
    by_network = bool(options.rules.network)
    supervisor.arena.use_network(options.read_network(), by_network)
    value = static_evaluation(supervisor.arena.tables, board, by_network)
    if value is None:
        return "info string no static evaluation: in check"
    white = value if board.turn == chess.WHITE else -value
    return f"static evaluation {white / 100:+.2f} (White's view)"


def bench_line(progress: Callable[[str], None]) -> str:
    """Run the bench; the line that it ends with."""
    from psearch.bench import run_bench

    nodes, seconds = run_bench(progress)
    return f"{nodes} nodes {round(nodes / max(seconds, 1e-9))} nps"
