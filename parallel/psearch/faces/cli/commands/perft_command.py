"""`psearch perft`: count the move paths from a position, or check the counts of a suite."""

from __future__ import annotations

import argparse
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from psearch.defaults import MAX_DEPTH, MAX_NODES
from psearch.faces.cli.arguments import add_number, add_threads, whole_number
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.output import EXIT_WRONG, refuse
from psearch.faces.cli.signals import Signals
from psearch.terminal.streams import printable
from psearch.text.values import counted

if TYPE_CHECKING:
    import chess

    from psearch.text.epd_text import PerftCheck

DEFAULT_MAX_NODES = 10_000_000

DESCRIPTION = """\
Count the move paths of DEPTH plies from a position, for each root move. With --epd, check
the expected counts of a suite instead, with one position per line: FEN ;D1 20 ;D2 400 ...
The exit status is 1 if a count differs."""

EXAMPLES = """\
examples:
  psearch perft 5
  psearch perft --threads 2 4 bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9
  psearch perft --epd suite.epd --max-nodes 1000000
  psearch perft --epd - < suite.epd"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "the depth in plies, then the position (default: startpos)"
    parser.add_argument("words", nargs="*", metavar="DEPTH FEN", help=words)
    add_threads(parser)
    parser.add_argument("--epd", metavar="FILE", help="check the counts in this file; `-` reads standard input")
    words = f"with --epd: skip expected counts above M (default {DEFAULT_MAX_NODES:,})"
    add_number(parser, "--max-nodes", 1, MAX_NODES, words, "M")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Count the move paths of a position, or check a suite."""
    words = options.words
    if options.epd is not None:
        if words:
            refuse("--epd reads the positions from the file: leave out DEPTH and FEN")
        return _check_suite(options)
    if options.max_nodes is not None:
        refuse("--max-nodes needs --epd")
    if not words:
        refuse("perft needs DEPTH, or --epd FILE")
    try:
        depth = whole_number(1, MAX_DEPTH)(words[0])
    except argparse.ArgumentTypeError as error:
        refuse(f"DEPTH {error}")
    return _divide(depth, words[1:] or ["startpos"], options.threads)


def _divide(depth: int, fen: list[str], threads: int) -> int:
    from psearch.text.fen import parse_position

    board = parse_position(fen, strict=False)
    divide: dict[chess.Move, int] = {}
    seconds = 0.0
    if any(board.legal_moves):
        from psearch_core.chess.chess_entries import PERFT

        prepare_kernels(PERFT)
        from psearch.processes.perft_tasks import count_leaves

        divide, seconds = count_leaves(board, depth, threads)
    for move, nodes in sorted((board.uci(move), nodes) for move, nodes in divide.items()):
        print(f"{move}: {nodes}")
    print(_total_line(sum(divide.values()), seconds))
    return 0


def _check_suite(options: argparse.Namespace) -> int:
    from psearch.text.epd_text import PerftOutcome, check_suite, parse_perft_suite
    from psearch.text.source import read_source

    cases = parse_perft_suite(read_source(options.epd))
    max_nodes = options.max_nodes or DEFAULT_MAX_NODES

    from psearch.terminal.status import StatusLine
    from psearch_core.chess.chess_entries import PERFT

    prepare_kernels(PERFT)
    from psearch.processes.perft_tasks import count_leaves

    checks: list[PerftCheck] = []
    failures: list[str] = []
    total = sum(len(case.counts) for case in cases)
    with StatusLine(only_terminal=True) as status:
        for check in check_suite(partial(count_leaves, threads=options.threads), cases, max_nodes):
            checks.append(check)
            if check.outcome is PerftOutcome.WRONG:
                failures.append(check.failure_line)
            status(f"{len(checks)}/{total} counts, {len(failures)} wrong, {check.case.source}")
    for failure in failures:
        print(printable(failure))
    number = Counter(check.outcome for check in checks)
    skipped = f"{number[PerftOutcome.TOO_BIG]} skipped (more than {max_nodes:,})"
    if number[PerftOutcome.UNSUPPORTED]:
        skipped += f", {number[PerftOutcome.UNSUPPORTED]} skipped (more than 16 pieces of one colour)"
    right = counted(number[PerftOutcome.RIGHT], "count")
    print(f"{counted(len(cases), 'position')}, {right} right, {number[PerftOutcome.WRONG]} wrong, {skipped}")
    print(_total_line(sum(check.nodes for check in checks), sum(check.seconds for check in checks)))
    return EXIT_WRONG if failures else 0


def _total_line(nodes: int, seconds: float) -> str:
    nps = round(nodes / seconds) if seconds > 0 else 0
    return f"total {nodes}  time {seconds:.2f}  nps {nps:,}"
