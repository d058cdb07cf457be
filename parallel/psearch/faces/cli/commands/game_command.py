"""`psearch game FILE [POSITION]`: search a game that a user's file defines."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from psearch.defaults import DEFAULT_MOVETIME_MS
from psearch.faces.cli import arguments
from psearch.faces.cli.kernels import add_trace, check_written, loaded_game, prepare_kernels, traced
from psearch.faces.cli.output import complain, print_answer, refuse
from psearch.faces.cli.signals import Signals

if TYPE_CHECKING:
    from psearch.games.searching import GameResult

DESCRIPTION = f"""\
Search your own game with several worker processes and print the best move. FILE is a
Python file whose functions define the game (docs/guides/own-game.md). They are compiled on
first use and run with your rights. POSITION lists the moves played so far, as the game
writes them; without it the search starts from the initial position.

The game must have two players, zero sum, full information and at most 256 moves in a
position. The score is the exact minimax value at the depth reached, in the game's own
unit, from the side to move's point of view. Without a limit the search takes {DEFAULT_MOVETIME_MS // 1000} seconds;
it ends earlier when the game is solved."""

EXAMPLES = """\
examples:
  psearch game docs/examples/tic_tac_toe.py
  psearch game docs/examples/tic_tac_toe.py 519 --threads 2 --depth 5
  psearch game my_game.py --movetime 5s --json
  psearch simulate --game my_game.py --workers 1,2,4,...,64 --depth 12
                                    estimate the speedup of up to 64 workers"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [options] FILE [POSITION]"  # argparse would repeat both
    words = "file of the game, and the moves played so far"
    parser.add_argument("words", nargs="+", metavar="FILE [POSITION]", help=words)
    arguments.add_threads(parser)
    arguments.add_limits(parser)
    arguments.add_hash(parser)
    arguments.add_settings(parser, "policy")
    arguments.add_json(parser)
    add_trace(parser)
    arguments.add_flag(parser, "--board", "draw the board first (needs the function board_text in FILE)")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Search the position and print the answer."""
    file, *moves = options.words or [""]
    if not file:
        refuse("no game given: give a file such as my_game.py (see psearch game --help)")
    if options.board and options.json:
        refuse("--board and --json exclude each other")
    arguments.check_hash(options.hash)
    check_written(options)
    game = loaded_game(file)
    position = game.read(" ".join(moves))
    if options.board:
        drawn = game.board_text(position)
        if drawn is None:
            refuse("the game cannot draw its board: its file has no function board_text")
        print(drawn)
    from psearch.games import searching
    from psearch.scheduler.scheduler_entries import SEARCH

    def show(result: GameResult) -> None:
        if not options.json:
            print(searching.iteration_text(result), flush=True)

    trace = options.trace
    if trace is not None and position.is_over:
        complain("the game is over: nothing to search, no trace written")
        trace = None
    facts = {"game": game.name, "position": " ".join(moves), "policy": options.policy}
    how = searching.options_for(game, options.policy)
    prepare_kernels(how.kernels.group(SEARCH))
    with searching.supervisor_for(position, options.threads, options.hash, how, trace is not None) as supervisor:
        signals.searching = True
        limits = arguments.limits_of(options, DEFAULT_MOVETIME_MS)
        with traced(supervisor, trace, facts, position):
            result = searching.search_with(supervisor, position, limits, how, show, signals.control, complain)
            facts = searching.json_object(position, result, options.threads)
            print_answer(options.json, facts, searching.final_text(position, result))
    return signals.exit_status
