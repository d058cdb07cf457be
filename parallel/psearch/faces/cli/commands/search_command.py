"""`psearch FEN`: one search, watched while it runs, and its answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.defaults import DEFAULT_MOVETIME_MS
from psearch.faces.cli.arguments import (
    add_json,
    add_position,
    add_search_options,
    check_hash,
    limits_of,
    search_options,
)
from psearch.faces.cli.command_list import COMMANDS
from psearch.faces.cli.guesses import check_moves
from psearch.faces.cli.kernels import ready_engine
from psearch.faces.cli.output import complain, print_json, refuse
from psearch.faces.cli.root_arguments import add_root_options, candidates, moved, probe, table_line, table_object
from psearch.faces.cli.signals import Signals
from psearch.faces.cli.traces import add_trace, traced
from psearch.version import __version__

if TYPE_CHECKING:
    import chess

    from psearch.processes.supervisor import Supervisor
    from psearch.results import Info, Result
    from psearch.text.syzygy import RootProbe

DESCRIPTION = f"""\
Search a chess position with several worker processes and print the best move.

FEN may be quoted or given as bare words; `startpos` is the initial position. Chess960
castling rights may be written as X-FEN or Shredder-FEN. Scores are in pawns from the
side to move's point of view; #5 is mate in 5 moves, #-3 is being mated in 3, won is a
mate in nobody knows how many (in JSON "cp": 20000), and after >= or <= stands a bound
(in JSON "bound": "lower" or "upper"). Without a limit the search takes {DEFAULT_MOVETIME_MS // 1000} seconds.
Ctrl-C ends it with the best line so far."""

_COMMAND_LINES = "\n".join(f"  psearch {name:<14}{summary}" for name, summary in COMMANDS.items())

EXAMPLES = f"""\
commands, each with a --help of its own:
{_COMMAND_LINES}

examples:
  psearch startpos
  psearch --threads 2 --movetime 10000 "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"
  psearch --depth 12 --json r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3
  psearch --depth 20 --trace trace.json startpos
                                    a picture of the search for https://ui.perfetto.dev
  psearch --stats --depth 12 --threads 1 --pruning modern,lmr=0 startpos
                                    what selective search left out, technique by technique
  psearch --multipv 3 --board --moves "1. e4 e5 2. Nf3"
  psearch --syzygy ~/tables "8/8/8/8/3k4/8/8/3K3R w - - 0 1"
  psearch analyse --movetime 1000 --out annotated.pgn games.pgn
  psearch analyse --depth 10 wac.epd    how many of a suite's best moves are found, and how soon
  psearch perft 5 startpos          move path counts, one line per root move
  psearch perft --epd suite.epd     check the counts of a suite
  psearch simulate --workers 1,2,4,...,1024 --suite FILE --depth 10
                                    speedup in virtual time, with any number of workers
  psearch leaves 40 8               the leaves alpha-beta must visit, by formula and counted"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `psearch FEN`."""
    add_position(parser)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments with a name."""
    add_search_options(parser)
    add_root_options(parser)
    parser.add_argument("--on", help=argparse.SUPPRESS)  # of `psearch analyse`, which a file as FEN means
    add_json(parser)
    parser.add_argument(
        "--stats",
        action="store_true",
        help="also how often each technique of selective search was tried and pruned, and which nodes were as expected",
    )
    parser.add_argument(
        "--parameters", action="store_true", help="search nothing: list what --pruning can change, in each mode"
    )
    add_trace(parser)
    parser.add_argument("-v", "-V", "--version", action="version", version=f"psearch {__version__}")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Search, unless the game is over on the board."""
    from psearch.text.fen import parse_position
    from psearch.text.report import finished_result, json_object, terminal_line

    words = options.fen or ([] if options.moves is None else ["startpos"])
    if options.parameters:
        if words:
            refuse("--parameters searches nothing: leave out FEN")
        _print_parameters(options.json)
        return 0
    if not words:
        refuse("no position given: a FEN or startpos (see psearch --help)")
    check_moves(words)
    if options.board and options.json:
        refuse("--board draws, --json is for programs: choose one")
    if options.on is not None:
        refuse("one position is searched on this machine: psearch analyse --on CLUSTER FILE shares out many")
    board = parse_position(words)
    if options.trace is not None:
        from psearch.trace.trace_file import check_trace

        check_trace(options.trace)
    named = moved(board, options)
    found = probe(board, options.syzygy) if options.syzygy is not None else None
    if options.board:
        from psearch.terminal.board_drawing import draw

        draw(board)
    finished = finished_result(board)
    if finished is None:
        return _search(board, options, signals, named, found)
    if options.trace is not None:
        complain("the game is over: nothing is searched, and no trace written")
    if options.json:
        print_json(json_object(board, finished, options.threads))
    else:
        print(terminal_line(board))
    return 0


def _search(
    board: chess.Board,
    options: argparse.Namespace,
    signals: Signals,
    named: list[chess.Move] | None,
    found: RootProbe | None,
) -> int:
    """named: the only moves to choose from, if the user named some; found: what the endgame tables say, if anything."""
    display: AbstractContextManager[Callable[[Info], None] | None] = nullcontext()
    if not options.json:
        from psearch.terminal.display import search_display

        display = search_display(board, limits_of(options, DEFAULT_MOVETIME_MS).movetime_ms)
        if found is not None:
            display = _scored_display(display, found)
    only = candidates(named, found)
    with searched(board, options, signals, display, only, options.multipv, options.trace) as (result, engine):
        if found is not None:
            result = found.scored_result(result)
        if options.json:
            _print_json(board, options, result, engine, found)
        else:
            _print_text(board, options, result, engine, found)
    return signals.exit_status


@contextmanager
def _scored_display(
    display: AbstractContextManager[Callable[[Info], None]], found: RootProbe
) -> Iterator[Callable[[Info], None]]:
    """A display of what the search reports, with the scores of the endgame tables."""
    with display as show:
        yield lambda info: show(found.scored(info))


@contextmanager
def searched(
    board: chess.Board,
    options: argparse.Namespace,
    signals: Signals,
    display: AbstractContextManager[Callable[[Info], None] | None] | None = None,
    only: list[chess.Move] | None = None,
    multipv: int = 1,
    trace: Path | None = None,
) -> Iterator[tuple[Result, Supervisor]]:
    """Search as the options say; inside, the result is there and the workers still are.

    display: gets what the search reports; only: the moves to choose from, None for all; trace: a file, written when the
    answer is out. Raises PsearchError for what cannot be searched, WorkerDied.
    """
    check_hash(options.hash)
    how = search_options(options)
    facts = {name: getattr(options, name) for name in ("policy", "pruning", "driver")}
    facts["position"] = board.fen()
    with ready_engine(
        threads=options.threads, hash_mb=options.hash, trace=trace is not None, kernels=how.kernels
    ) as searcher:
        from psearch.processes.request import SearchRequest

        signals.searching = True
        with traced(searcher.supervisor, trace, facts):
            with display or nullcontext() as on_info:
                request = SearchRequest(
                    board,
                    limits_of(options, DEFAULT_MOVETIME_MS),
                    how,
                    only,
                    multipv,
                    on_info=on_info,
                    control=signals.control,
                    on_note=complain,
                )
                result = searcher.supervisor.search(request)
            yield result, searcher.supervisor


def _print_json(
    board: chess.Board, options: argparse.Namespace, result: Result, engine: Supervisor, found: RootProbe | None
) -> None:
    from psearch.text.report import json_object

    report: dict[str, Any] = json_object(board, result, options.threads)
    if found is not None:
        report["syzygy"] = table_object(board, found)
    if options.stats:
        from psearch.lab.studies.pruning_counts import collect

        report |= {"policy": options.policy, "driver": options.driver}
        report |= {"pruning": search_options(options).pruning_words, "stats": collect(engine.arena)}
    print_json(report)


def _print_text(
    board: chess.Board, options: argparse.Namespace, result: Result, engine: Supervisor, found: RootProbe | None
) -> None:
    from psearch.terminal.streams import folded
    from psearch.text.report import LABEL_WIDTH, final_report

    answer = final_report(board, result)
    if found is not None:
        answer += f"\n{table_line(board, found)}"
    print(folded(answer, sys.stdout, LABEL_WIDTH + 1), flush=True)
    if options.stats:
        from psearch.lab.studies.pruning_counts import collect, stats_table

        how = f"pruning {search_options(options).pruning_words}  policy {options.policy}  driver {options.driver}"
        print(f"\n{how}  threads {options.threads}\n\n{stats_table(collect(engine.arena))}", flush=True)


def _print_parameters(as_json: bool) -> None:
    from psearch.lab.studies.pruning_counts import parameters_object, parameters_table

    if as_json:
        print_json({"parameters": parameters_object()})
    else:
        print(parameters_table(), flush=True)
