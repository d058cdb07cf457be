"""`psearch stats`: what selective search left out in one search, and what its parameters are."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from psearch.cli.arguments import add_hash, add_limits, add_policy, add_pruning, add_threads, limits_of
from psearch.cli.common import Commands, Signals, check_hash, make_parser, prepare_kernels
from psearch.defaults import DEFAULT_MOVETIME_MS

_USAGE = """\
psearch stats [--depth D | --movetime MS | --nodes N] [--threads N] [--hash MB] [--policy NAME]
                     [--pruning MODE[,NAME=VALUE...]] [--json] FEN
       psearch stats --parameters [--json]"""

_HELP = f"""\
Search a position, {DEFAULT_MOVETIME_MS // 1000} seconds without a limit, and print how often each technique of
selective search was tried and how often it pruned (or reduced, or extended), and how often
nodes expected to be PV, CUT or ALL turned out so. `psearch --stats FEN` prints the same
after the answer. --parameters searches nothing: it lists the switches and margins that
--pruning can change, with their values in each mode."""

_EXAMPLES = """\
examples:
  psearch stats --depth 12 --threads 1 startpos
  psearch stats --pruning ael --depth 10 startpos
  psearch stats --pruning modern,lmr=0 --depth 10 --json startpos
  psearch stats --parameters"""


def stats_parser() -> argparse.ArgumentParser:
    """Of `psearch stats`."""
    parser = make_parser("psearch stats", _USAGE, _HELP, _EXAMPLES)
    parser.add_argument("fen", nargs="*", metavar="FEN", help="the position, or `startpos`")
    add_threads(parser)
    add_limits(parser)
    add_hash(parser)
    add_policy(parser)
    add_pruning(parser)
    parser.add_argument("--parameters", action="store_true", help="list the parameters of --pruning and their values")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    return parser


def stats(options: argparse.Namespace, signals: Signals) -> int:
    """Search and print the counters, or list the parameters."""
    words = [word for word in options.fen if word != "--"]
    if options.parameters:
        if words:
            stats_parser().error("--parameters searches nothing: leave out FEN")
        _print_parameters(options.json)
        return 0
    if not words:
        stats_parser().error("no position given: a FEN or startpos (see psearch stats --help)")
    return _search(options, signals, words)


def _print_parameters(as_json: bool) -> None:
    from psearch.studies.pruning_counts import parameters_object, parameters_table

    print(json.dumps({"parameters": parameters_object()}) if as_json else parameters_table(), flush=True)


def _search(options: argparse.Namespace, signals: Signals, words: Sequence[str]) -> int:
    from psearch.notation.fen import parse_position
    from psearch.results import PsearchError

    board = parse_position(words)
    if not any(board.legal_moves):
        raise PsearchError("the game is over in this position: there is nothing to search")
    check_hash(options.hash)

    from psearch.arena.setup import SearchOptions, pruning_named

    how = SearchOptions(policy=options.policy, pruning=pruning_named(options.pruning))
    prepare_kernels()

    from psearch.core.pruning.modes import pruning_text
    from psearch.notation.report import json_object, score_text
    from psearch.processes.supervisor import Supervisor
    from psearch.studies.pruning_counts import collect, stats_object, stats_table

    with Supervisor(threads=options.threads, hash_mb=options.hash) as engine:
        signals.searching = True
        result = engine.search(board, limits_of(options, DEFAULT_MOVETIME_MS), stop=signals.stop, options=how)
        counted = collect(engine.arena)
    info = result.info
    pruning = pruning_text(how.pruning)
    if options.json:
        facts = {"position": board.fen(), "policy": options.policy, "pruning": pruning}
        search = json_object(board, result, options.threads)
        print(json.dumps({**facts, **search, "stats": stats_object(counted)}, default=int), flush=True)
    else:
        best = board.san(result.bestmove) if result.bestmove else "none"
        print(
            f"depth {info.depth}/{info.seldepth}  best {best} {score_text(info.score, board, info.bound)}  "
            f"nodes {info.nodes:,} in {info.time_s:.2f} s  pruning {pruning}  policy {options.policy}  "
            f"threads {options.threads}\n\n{stats_table(counted)}",
            flush=True,
        )
    return signals.exit_status


COMMANDS: Commands = {"stats": (stats_parser, stats)}
