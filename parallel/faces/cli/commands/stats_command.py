"""`psearch stats`: what selective search left out in one search, and what its parameters are."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from psearch.defaults import DEFAULT_MOVETIME_MS
from psearch.faces.cli.arguments import add_json, add_position, add_search_options, search_options
from psearch.faces.cli.commands.search_command import searched
from psearch.faces.cli.output import print_json, refuse
from psearch.faces.cli.signals import Signals

if TYPE_CHECKING:
    import chess

    from psearch.results import Result

DESCRIPTION = f"""\
Search a position, {DEFAULT_MOVETIME_MS // 1000} seconds without a limit, and print how often each technique of
selective search was tried and how often it pruned (or reduced, or extended), and how often
nodes expected to be PV, CUT or ALL turned out so. `psearch --stats FEN` prints the same
after the answer. --parameters searches nothing: it lists the switches and margins that
--pruning can change, with their values in each mode."""

EXAMPLES = """\
examples:
  psearch stats --depth 12 --threads 1 startpos
  psearch stats --pruning ael --depth 10 startpos
  psearch stats --pruning modern,lmr=0 --depth 10 --json startpos
  psearch stats --with my_rule.py --depth 10 startpos
  psearch stats --parameters"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `psearch stats`."""
    add_position(parser)
    add_search_options(parser)
    parser.add_argument("--parameters", action="store_true", help="list the parameters of --pruning and their values")
    add_json(parser, instead_of="tables")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Search and print the counters, or list the parameters."""
    words = options.fen
    if options.parameters:
        if words:
            refuse("--parameters searches nothing: leave out FEN")
        _print_parameters(options.json)
        return 0
    if not words:
        refuse("no position given: a FEN or startpos (see psearch stats --help)")
    return _search(options, signals, words)


def _print_parameters(as_json: bool) -> None:
    from psearch.lab.studies.pruning_counts import parameters_object, parameters_table

    if as_json:
        print_json({"parameters": parameters_object()})
    else:
        print(parameters_table(), flush=True)


def _search(options: argparse.Namespace, signals: Signals, words: list[str]) -> int:
    from psearch.results import PsearchError
    from psearch.text.fen import parse_position

    board = parse_position(words)
    if not any(board.legal_moves):
        raise PsearchError("the game is over in this position: there is nothing to search")
    with searched(board, options, signals) as (result, engine):
        from psearch.lab.studies.pruning_counts import collect, stats_object, stats_table
        from psearch.text.report import json_object

        counted = collect(engine.arena)
        pruning = search_options(options).pruning_words
        if options.json:
            how = {"policy": options.policy, "driver": options.driver, "pruning": pruning}
            answer = json_object(board, result, options.threads)
            print_json({"position": board.fen(), **how, **answer, "stats": stats_object(counted)})
        else:
            print(f"{_answer_line(board, options, result, pruning)}\n\n{stats_table(counted)}", flush=True)
    return signals.exit_status


def _answer_line(board: chess.Board, options: argparse.Namespace, result: Result, pruning: str) -> str:
    from psearch.text.report import score_text

    info = result.info
    best = board.san(result.bestmove) if result.bestmove else "none"
    return (
        f"depth {info.depth}/{info.seldepth}  best {best} {score_text(info.score, board, info.bound)}  "
        f"nodes {info.nodes:,} in {info.time_s:.2f} s  pruning {pruning}  policy {options.policy}  "
        f"driver {options.driver}  threads {options.threads}"
    )
