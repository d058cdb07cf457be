"""`psearch FEN`: search one position, show the progress and print the best move."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from psearch.defaults import DEFAULT_MOVETIME_MS
from psearch.faces.cli import arguments
from psearch.faces.cli.command_list import COMMANDS, check_moves
from psearch.faces.cli.kernels import add_record, add_trace, check_written, prepare_kernels, recorded, traced
from psearch.faces.cli.output import complain, print_answer, print_json, refuse
from psearch.faces.cli.signals import Signals
from psearch.settings import MATE, MOVETIME, MULTIPV, NODES, SYZYGY
from psearch.terminal.streams import folded
from psearch.version import __version__

if TYPE_CHECKING:
    import chess

    from psearch.options import SearchOptions
    from psearch.processes.supervisor import Supervisor
    from psearch.processes.time_manager import TimeManager
    from psearch.results import Info, Result
    from psearch.searcher.root import Root
    from psearch.text.chess_files import RootProbe

_VERDICTS = {
    2: "won",
    1: "won, but drawn by the fifty-move rule",
    0: "drawn",
    -1: "lost, but drawn by the fifty-move rule",
    -2: "lost",
}
_MOST_TABLE_MOVES = 8
_CLOCK = {
    "wtime": "White's time on the clock in milliseconds, or a time like 5m: take a suitable part of it",
    "btime": "Black's time on the clock",
    "winc": "White's increment for each move",
    "binc": "Black's increment for each move",
}
"""Arguments of a clock, named as in UCI's `go`."""

DESCRIPTION = f"""\
Search a chess position with several worker processes and print the best move.

FEN may be quoted or given as separate words; `startpos` is the initial position.
Chess960 castling rights may be written as X-FEN or Shredder-FEN.

Scores are in pawns from the side to move's point of view. #5 means mate in 5 moves, #-3
means being mated in 3, and `won` means a mate whose length is unknown ("cp": 20000 in
JSON). >= or <= marks a bound ("bound": "lower" or "upper" in JSON).

Without a limit the search takes {DEFAULT_MOVETIME_MS // 1000} seconds. Ctrl-C stops it and prints the best line
found so far. Numbers other than times may be written as 1M, 1e6 or 1,000,000."""

_COMMAND_LINES = "\n".join(f"  psearch {name:<14}{summary}" for name, summary in COMMANDS.items())

EXAMPLES = f"""\
commands (`psearch help COMMAND` describes each of them):
{_COMMAND_LINES}

examples:
  psearch startpos
  psearch --threads 2 --movetime 10000 "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"
  psearch --depth 12 --json r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3
  psearch --depth 20 --trace trace.json startpos
                                    record the workers, to view on https://ui.perfetto.dev
  psearch --threads 2 --depth 18 --record search.jsonl startpos
                                    record the search, to open in the page of psearch serve
  psearch --stats --depth 12 --threads 1 --pruning modern,lmr=0 startpos
                                    show what each pruning technique left out
  psearch --multipv 3 --board --moves "1. e4 e5 2. Nf3"
  psearch --syzygy ~/tables "8/8/8/8/3k4/8/8/3K3R w - - 0 1"
  psearch analyse --movetime 1000 --out annotated.pgn games.pgn
  psearch analyse --depth 10 wac.epd    count the best moves found, and how soon"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fen", nargs="*", metavar="FEN", help="the position, or `startpos`")
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add every argument except the position."""
    arguments.add_threads(parser)
    arguments.add_limits(parser)
    MATE.add_to(parser, "stop when a mate in at most N moves has been found")
    arguments.add_flag(parser, "--infinite", "search until Ctrl-C or another limit")
    time = arguments.duration(0, MOVETIME.high)
    for flag, words in _CLOCK.items():
        parser.add_argument(f"--{flag}", type=time, metavar="TIME", help=words)
    words = "moves until the clock is reset (default: the whole game)"
    arguments.add_number(parser, "--movestogo", 1, NODES.high, words)
    arguments.add_hash(parser)
    arguments.add_settings(parser)
    words = "moves to play before the search, in UCI, SAN or PGN notation (from startpos if no FEN is given); "
    parser.add_argument("--moves", metavar='"M M"', help=words + "repetitions count from here")
    parser.add_argument("--searchmoves", metavar='"M M"', help="consider only these moves")
    MULTIPV.add_to(parser, default=1)
    SYZYGY.add_to(parser)
    arguments.add_flag(parser, "--board", "draw the position first, with White at the bottom")
    parser.add_argument("--on", help=argparse.SUPPRESS)  # belongs to `psearch analyse`, which runs if FEN is a file
    arguments.add_json(parser)
    arguments.add_flag(parser, "--wdl", "also print the chances to win, draw and lose")
    words = "also print how often each pruning technique was tried and succeeded, and how often node types were "
    arguments.add_flag(parser, "--stats", words + "predicted correctly")
    words = "do not search: list the parameters that --pruning can change, in each mode"
    arguments.add_flag(parser, "--parameters", words)
    add_trace(parser)
    add_record(parser, "; at most the last minute")
    parser.add_argument("-v", "-V", "--version", action="version", version=f"psearch {__version__}")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Search the position and print the answer, unless the game is over."""
    words = options.fen or ([] if options.moves is None else ["startpos"])
    if options.parameters:
        if words:
            refuse("--parameters searches nothing: leave out FEN")
        from psearch.lab.studies.pruning_counts import parameters_object, parameters_table

        print_answer(options.json, {"parameters": parameters_object()}, parameters_table())
        return 0
    if not words:
        refuse("no position given: give a FEN or startpos (see psearch --help)")
    check_moves(words)
    if options.board and options.json:
        refuse("--board and --json exclude each other")
    if options.on is not None:
        refuse("--on needs many positions: use psearch analyse --on CLUSTER FILE")
    from psearch.text.fen import parse_position
    from psearch.text.report import finished_result, json_object, terminal_line

    board = parse_position(words)
    check_written(options)
    only = None
    if options.moves is not None or options.searchmoves is not None:
        from psearch.text.moves import choose_moves, play_moves

        if options.moves is not None:
            play_moves(board, options.moves, "--moves")
        if options.searchmoves is not None:
            only = choose_moves(board, options.searchmoves, "--searchmoves")
    from psearch.searcher.root import Root

    with Root(options.syzygy or "", complain) as root:
        if options.board:
            from psearch.terminal.live_display import draw

            draw(board)
        finished = finished_result(board)
        if finished is None:
            _search(board, options, signals, only, root)
            return signals.exit_status
    for what, path in (("trace", options.trace), ("recording", options.record)):
        if path is not None:
            complain(f"the game is over: nothing to search, no {what} written")
    print_answer(options.json, json_object(board, finished, options.threads), terminal_line(board))
    return 0


def _search(
    board: chess.Board, options: argparse.Namespace, signals: Signals, only: list[chess.Move] | None, root: Root
) -> None:
    """Search and print the answer. only: the root moves to consider, None for all; root: the endgame tables. Raises
    PsearchError for options that cannot be used, and WorkerDied."""
    arguments.check_hash(options.hash)
    how = arguments.search_options(options, record=options.stats or None)
    clock = _clock_of(board, options, only)
    limits = arguments.limits_of(options, None if options.infinite or clock is not None else DEFAULT_MOVETIME_MS)
    display: AbstractContextManager[Callable[[Info], None] | None] = nullcontext()
    if not options.json:
        from psearch.terminal.display import search_display

        display = search_display(board, limits.movetime_ms)
    exact: list[Info] = []

    def take(info: Info) -> None:
        """Keep the last exact report of the best line, and show every report."""
        if info.multipv == 1 and not info.is_live and info.bound == "exact" and info.pv:
            exact[:] = [info]
        if show is not None:
            show(info)

    from psearch.scheduler.scheduler_entries import SEARCH

    prepare_kernels(how.kernels.group(SEARCH))
    from psearch.processes.request import SearchRequest
    from psearch.searcher.notices import Notices
    from psearch.searcher.searcher import Searcher, Size

    # preparing the workers' memory may take seconds: the clock starts only when they are ready
    size = Size(
        options.threads,
        options.hash,
        options.trace is not None,
        watched=options.record is not None,
        kernels=how.kernels,
    )
    with Searcher(Notices(complain)).start(size) as searcher:
        engine = searcher.supervisor
        signals.searching = True
        signals.control.clock = clock
        facts = {name: getattr(options, name) for name in ("policy", "pruning", "driver")}
        about = {**facts, "position": board.fen()}
        with traced(engine, options.trace, about), recorded(engine, options.record, about):
            with display as show:
                asked = root.prepared(
                    SearchRequest(
                        board,
                        limits,
                        how,
                        only,
                        options.multipv,
                        on_info=take,
                        live_interval_s=0.1 if show is not None else math.inf,
                        control=signals.control,
                        on_note=complain,
                    )
                )
                result = asked.finished(engine.search(asked.request))
            _print_answer(board, options, how, result, engine, asked.probe, exact)


def _clock_of(board: chess.Board, options: argparse.Namespace, only: Sequence[chess.Move] | None) -> TimeManager | None:
    """Return the time manager for the clock of the side to move, if the user gave one. Raises PsearchError for a clock
    of the other side alone."""
    import chess.engine

    from psearch.api.question import time_manager
    from psearch.results import PsearchError
    from psearch.text.report import side_name

    given = {name: getattr(options, name) for name in _CLOCK}
    seconds = {name: None if value is None else value.milliseconds / 1000 for name, value in given.items()}
    own = "wtime" if board.turn else "btime"
    if seconds[own] is None:
        if options.movestogo or any(value is not None for value in given.values()):
            raise PsearchError(f"{side_name(board.turn)} is to move: give --{own}")
        return None
    limit = chess.engine.Limit(
        time=None if options.movetime is None else options.movetime.milliseconds / 1000,
        white_clock=seconds["wtime"],
        black_clock=seconds["btime"],
        white_inc=seconds["winc"],
        black_inc=seconds["binc"],
        remaining_moves=options.movestogo,
    )
    return time_manager(board, limit, len(only) if only else board.legal_moves.count())


def _print_answer(
    board: chess.Board,
    options: argparse.Namespace,
    how: SearchOptions,
    result: Result,
    engine: Supervisor,
    found: RootProbe | None,
    exact: Sequence[Info],
) -> None:
    from psearch.text.report import LABEL_WIDTH, final_report, json_object

    last = exact[0] if exact else None

    if options.json:
        report: dict[str, Any] = json_object(board, result, options.threads, last)
        if found is not None:
            best = [board.uci(move) for move in found.best]
            report["syzygy"] = {"wdl": found.wdl, "dtz": found.dtz, "best": best, "hits": found.hits}
    else:
        answer = final_report(board, result, last, options.wdl)
        if found is not None:
            names = [board.san(move) for move in found.best]
            moves = " ".join(names[:_MOST_TABLE_MOVES]) + " ..." * (len(names) > _MOST_TABLE_MOVES)
            distance = f", DTZ {found.dtz}" if found.dtz else ""
            answer += f"\n{'tables':<{LABEL_WIDTH}} {_VERDICTS[found.wdl]}{distance}: {moves}"
        print(folded(answer, sys.stdout, LABEL_WIDTH + 1), flush=True)
    if options.stats:
        from psearch.lab.studies.pruning_counts import collect, stats_table

        stats = collect(engine.arena)
        if options.json:
            report |= {"policy": options.policy, "driver": options.driver}
            report |= {"pruning": how.pruning_words, "stats": stats}
        else:
            words = f"pruning {how.pruning_words}  policy {options.policy}  driver {options.driver}"
            print(f"\n{words}  threads {options.threads}\n\n{stats_table(stats)}", flush=True)
    if options.json:
        print_json(report)
