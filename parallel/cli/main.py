"""The command line: `psearch FEN`, `psearch perft`, `psearch bench`, and the studies in `cli_studies.py`.

Results go to stdout, everything else to stderr. Exit status: 0 answered, 1 perft counts or search modes differ or the
system refused something (a full disk), 2 bad input, 3 a worker died, 128 + N ended by signal N. Modules that take
long to import are imported when they are needed, so that `--help` and errors answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.cli.arguments import MAX_NODES, add_hash, add_limits, add_policy, add_pruning, add_threads, limits_of
from psearch.cli.common import (
    EXIT_BAD_INPUT,
    EXIT_PERFT_FAILED,
    EXIT_SIGNAL,
    EXIT_SYSTEM,
    EXIT_WORKER_DIED,
    SHELLS,
    STUDIES,
    TRACE_HELP,
    Commands,
    Signals,
    check_hash,
    complain,
    make_parser,
    prepare_kernels,
    say,
    tell_of_trace,
    whole_number,
)
from psearch.cli.search import add_root_options, candidates, choose, draw, play, probe, table_line, table_object
from psearch.defaults import DEFAULT_MOVETIME_MS, MAX_DEPTH
from psearch.version import __version__

if TYPE_CHECKING:
    import chess

    from psearch.notation.perft_epd import PerftCheck
    from psearch.notation.syzygy import RootProbe
    from psearch.processes.supervisor import Supervisor
    from psearch.results import Result

DEFAULT_MAX_NODES = 10_000_000
_PERFT_HASH_MB = 1
"""Perft uses no transposition table."""

_SEARCH_USAGE = """\
psearch [--threads N] [--depth D | --movetime MS | --nodes N] [--hash MB] [--policy NAME]
               [--pruning MODE[,NAME=VALUE...]] [--moves "M M"] [--searchmoves "M M"] [--multipv N]
               [--syzygy PATH] [--board | --json] [--stats] [--trace FILE] FEN
       psearch stats [--parameters] FEN
       psearch analyse [--out FILE] FILE.epd | FILE.pgn | -
       psearch perft [--threads N] DEPTH FEN
       psearch perft [--threads N] [--max-nodes M] --epd FILE
       psearch bench
       psearch speedup | simulate | predict | calibrate ...
       psearch verify-sound --epd FILE
       psearch leaves [--json] B N
       psearch completion bash|zsh|fish
       psearch uci
       psearch --help | --version"""

_SEARCH_HELP = f"""\
Search a chess position with several worker processes and print the best move.

FEN may be quoted or given as bare words; `startpos` is the initial position. Chess960
castling rights may be written as X-FEN or Shredder-FEN. Scores are in pawns from the
side to move's point of view; #5 is mate in 5 moves, #-3 is being mated in 3. Without a
limit the search takes {DEFAULT_MOVETIME_MS // 1000} seconds. Ctrl-C ends it with the best line so far."""

_SEARCH_EXAMPLES = """\
examples:
  psearch startpos
  psearch --threads 2 --movetime 10000 "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"
  psearch --depth 12 --json r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3
  psearch --depth 10 --trace trace.json startpos
                                    a picture of the search for https://ui.perfetto.dev
  psearch --multipv 3 --moves "e4 e5 Nf3" --board startpos
  psearch --syzygy ~/tables "8/8/8/8/3k4/8/8/3K3R w - - 0 1"
  psearch analyse --movetime 1000 --out annotated.pgn games.pgn
  psearch analyse --depth 10 wac.epd    how many of a suite's best moves are found, and how soon
  psearch perft 5 startpos          move path counts, one line per root move
  psearch perft --epd suite.epd     check the counts of a suite
  psearch bench                     a fixed search on one worker: `N nodes M nps`
  psearch uci                       the engine for chess programs; also plain `psearch`
  psearch stats --depth 12 startpos
                                    what selective search left out, technique by technique
  psearch speedup --suite FILE      time to depth with 1 and 2 worker processes
  psearch simulate --workers 1,2,4,...,1024 --suite FILE --depth 10
                                    the same in virtual time, with any number of workers
  psearch calibrate --out FILE      what virtual time charges, measured on this machine
  psearch verify-sound --epd FILE   whether `--pruning sound` keeps every value, as it must
  psearch leaves 40 8               the leaves alpha-beta must visit, by formula and counted"""

_PERFT_USAGE = """\
psearch perft [--threads N] DEPTH FEN
       psearch perft [--threads N] [--max-nodes M] --epd FILE"""

_PERFT_HELP = """\
Count the move paths of DEPTH plies from a position, for each root move; or check the
expected counts of a suite, one position per line: FEN ;D1 20 ;D2 400 ...
The exit status is 1 when a count differs."""

_PERFT_EXAMPLES = """\
examples:
  psearch perft 5 startpos
  psearch perft --threads 2 4 bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9
  psearch perft --epd suite.epd --max-nodes 1000000
  psearch perft --epd - < suite.epd"""

_BENCH_HELP = """\
Search a fixed set of positions on one worker. The last line is `N nodes M nps`; N is the
same every time and everywhere, and changes only when the search does."""

_BENCH_EXAMPLES = """\
examples:
  psearch bench"""


_COMPLETION_HELP = """\
Print a script that lets the shell complete psearch's commands, options and file names."""

_COMPLETION_EXAMPLES = """\
examples:
  eval "$(psearch completion bash)"            in ~/.bashrc
  psearch completion zsh > ~/.zfunc/_psearch   a folder of $fpath
  psearch completion fish > ~/.config/fish/completions/psearch.fish"""

_UCI_HELP = """\
Talk UCI on standard input and output, as chess programs with a board expect an engine to.
`psearch` without arguments does the same."""

_UCI_EXAMPLES = """\
examples:
  psearch uci
  (echo position startpos; echo go movetime 1000; sleep 4) | psearch uci"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; bad options leave through SystemExit."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words:
        words = ["uci"]
        if sys.stdin is not None and sys.stdin.isatty():
            say("psearch speaks UCI now; `quit` ends it, `psearch --help` tells what else there is")
    commands = _commands_for(words[0])
    parser_of, command = commands.get(words[0], (_search_parser, _search))
    options = parser_of().parse_intermixed_args(words[1:] if words[0] in commands else words)
    with Signals() as signals:
        return _guarded(command, options, signals)


def _commands_for(word: str) -> Commands:
    """The commands of the module that holds this one; other modules are not imported."""
    if word in STUDIES:
        from psearch.cli import studies as cli_studies

        return cli_studies.COMMANDS
    if word == "analyse":
        from psearch.cli import analyse as cli_analyse

        return cli_analyse.COMMANDS
    if word == "verify-sound":
        from psearch.cli import verify_sound as cli_verify

        return cli_verify.COMMANDS
    if word == "stats":
        from psearch.cli import stats as cli_stats

        return cli_stats.COMMANDS
    if word == "leaves":
        from psearch.cli import leaves as cli_leaves

        return cli_leaves.COMMANDS
    return {
        "perft": (_perft_parser, _perft),
        "bench": (_bench_parser, _bench),
        "uci": (_uci_parser, _uci),
        "completion": (_completion_parser, _completion),
    }


def _guarded(
    command: Callable[[argparse.Namespace, Signals], int], options: argparse.Namespace, signals: Signals
) -> int:
    """Run a command and turn what can go wrong into an exit status and at most one line."""
    try:
        status = command(options, signals)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        complain("interrupted")
        return signals.exit_status or EXIT_SIGNAL + signal.SIGINT
    except OSError as error:
        reader_left = isinstance(error, BrokenPipeError) and _stdout_has_no_reader()
        _abandon_stdout()
        if reader_left:
            return EXIT_SIGNAL + signal.SIGPIPE
        complain(f"cannot go on: {error}")
        return EXIT_SYSTEM
    except Exception as error:
        # imported only now: it needs python-chess, and `uciok` should not wait for that
        from psearch.results import PsearchError, WorkerDied

        if not isinstance(error, PsearchError):
            raise
        complain(str(error))
        return EXIT_WORKER_DIED if isinstance(error, WorkerDied) else EXIT_BAD_INPUT


def _search(options: argparse.Namespace, signals: Signals) -> int:
    from psearch.notation.fen import parse_position
    from psearch.notation.report import finished_result, terminal_line

    words = _without_dashes(options.fen)
    if not words:
        _search_parser().error("no position given: a FEN or startpos (see psearch --help)")
    if options.board and options.json:
        _search_parser().error("--board draws, --json is for programs: choose one")
    board = parse_position(words)
    if options.trace is not None:
        from psearch.trace.trace_file import check_trace

        check_trace(options.trace)
    if options.moves is not None:
        play(board, options.moves)
    asked = choose(board, options.searchmoves) if options.searchmoves is not None else None
    found = probe(board, options.syzygy) if options.syzygy is not None else None
    if options.board:
        draw(board)
    finished = finished_result(board)
    if finished is None:
        return _search_with_workers(board, options, signals, asked, found)
    if options.trace is not None:
        complain("the game is over: nothing is searched, and no trace written")
    if options.json:
        _print_json(board, finished, options.threads)
    else:
        print(terminal_line(board))
    return 0


def _search_with_workers(
    board: chess.Board,
    options: argparse.Namespace,
    signals: Signals,
    asked: list[chess.Move] | None,
    found: RootProbe | None,
) -> int:
    """asked: the only moves to choose from, if the user named some; found: what the endgame tables say, if anything."""
    check_hash(options.hash)

    from psearch.arena.setup import SearchOptions, pruning_named

    how = SearchOptions(policy=options.policy, pruning=pruning_named(options.pruning))
    prepare_kernels()

    from psearch.notation.report import final_report
    from psearch.processes.supervisor import Supervisor
    from psearch.terminal.display import search_display

    with Supervisor(threads=options.threads, hash_mb=options.hash, trace=options.trace is not None) as engine:
        signals.searching = True
        search = partial(
            engine.search,
            board,
            limits_of(options, DEFAULT_MOVETIME_MS),
            stop=signals.stop,
            options=how,
            only=candidates(asked, found),
            multipv=options.multipv,
        )
        with _traced(board, options, engine):
            if options.json:
                more: dict[str, Any] = {} if found is None else {"syzygy": table_object(board, found)}
                result = search()
                if options.stats:
                    more["stats"] = _stats(engine)[0]
                _print_json(board, result, options.threads, **more)
            else:
                with search_display(board) as display:
                    result = search(on_info=display)
                print(final_report(board, result), flush=True)
                if found is not None:
                    print(table_line(board, found), flush=True)
                if options.stats:
                    print(f"\n{_stats(engine)[1]}", flush=True)
    return signals.exit_status


def _stats(engine: Supervisor) -> tuple[dict[str, Any], str]:
    """What selective search did, as data and as text."""
    from psearch.studies.pruning_counts import collect, stats_object, stats_table

    counted = collect(engine.arena)
    return stats_object(counted), stats_table(counted)


@contextlib.contextmanager
def _traced(board: chess.Board, options: argparse.Namespace, engine: Supervisor) -> Iterator[None]:
    """Write the trace when the answer is out; also of a search that ended with a worker."""
    from psearch.results import WorkerDied

    recorder = engine.recorder
    if recorder is None:
        yield
        return
    facts = {"position": board.fen(), "policy": options.policy, "pruning": options.pruning}
    try:
        yield
    except WorkerDied:
        try:
            recorder.write(options.trace, facts)
            tell_of_trace(recorder.dropped, options.trace)
        except OSError as error:
            complain(f"cannot write the trace {options.trace}: {error.strerror}")
        raise
    recorder.write(options.trace, facts)
    tell_of_trace(recorder.dropped, options.trace)


def _perft(options: argparse.Namespace, signals: Signals) -> int:
    words = _without_dashes(options.words)
    if options.epd is not None:
        if words:
            _perft_parser().error("--epd takes its positions from the file: leave out DEPTH and FEN")
        return _perft_suite(options)
    if options.max_nodes is not None:
        _perft_parser().error("--max-nodes goes with --epd")
    if len(words) < 2:
        _perft_parser().error("perft needs DEPTH and FEN, or --epd FILE")
    try:
        depth = whole_number(1, MAX_DEPTH)(words[0])
    except argparse.ArgumentTypeError as error:
        _perft_parser().error(f"DEPTH {error}")
    return _perft_divide(depth, words[1:], options.threads)


def _perft_divide(depth: int, fen: list[str], threads: int) -> int:
    from psearch.notation.fen import parse_position

    board = parse_position(fen, strict=False)
    divide: dict[chess.Move, int] = {}
    seconds = 0.0
    if any(board.legal_moves):
        prepare_kernels()

        from psearch.processes.supervisor import Supervisor

        with Supervisor(threads=threads, hash_mb=_PERFT_HASH_MB) as engine:
            divide, seconds = engine.perft(board, depth)
    for move, nodes in sorted((board.uci(move), nodes) for move, nodes in divide.items()):
        print(f"{move}: {nodes}")
    total = sum(divide.values())
    print(f"total {total}  time {seconds:.2f}  nps {_per_second(total, seconds):,}")
    return 0


def _perft_suite(options: argparse.Namespace) -> int:
    from psearch.notation.perft_epd import Outcome, check_suite, read_suite

    cases = read_suite(options.epd)
    max_nodes = options.max_nodes or DEFAULT_MAX_NODES

    prepare_kernels()

    from psearch.processes.supervisor import Supervisor
    from psearch.terminal.display import StatusLine

    checks: list[PerftCheck] = []
    failures: list[str] = []
    total = sum(len(case.counts) for case in cases)
    with (
        Supervisor(threads=options.threads, hash_mb=_PERFT_HASH_MB) as engine,
        StatusLine(only_terminal=True) as status,
    ):
        for check in check_suite(engine.perft, cases, max_nodes):
            checks.append(check)
            if check.outcome is Outcome.WRONG:
                failures.append(check.failure_line)
            status(f"{len(checks)}/{total} counts, {len(failures)} wrong, {check.case.source}")
    for failure in failures:
        print(failure)
    print(_suite_summary(checks, len(cases), max_nodes))
    return EXIT_PERFT_FAILED if failures else 0


def _suite_summary(checks: list[PerftCheck], positions: int, max_nodes: int) -> str:
    from psearch.notation.perft_epd import Outcome

    number = {outcome: sum(check.outcome is outcome for check in checks) for outcome in Outcome}
    nodes = sum(check.nodes for check in checks)
    seconds = sum(check.seconds for check in checks)
    skipped = f"{number[Outcome.TOO_BIG]} skipped (more than {max_nodes:,})"
    if number[Outcome.UNSUPPORTED]:
        skipped += f", {number[Outcome.UNSUPPORTED]} skipped (more than 16 pieces of one colour)"
    right, wrong = number[Outcome.RIGHT], number[Outcome.WRONG]
    return (
        f"{positions} positions, {right} counts right, {wrong} wrong, {skipped}\n"
        f"total {nodes}  time {seconds:.2f}  nps {_per_second(nodes, seconds):,}"
    )


def _bench(options: argparse.Namespace, signals: Signals) -> int:
    from psearch.bench import run_bench
    from psearch.terminal.display import StatusLine

    prepare_kernels()
    with StatusLine(only_terminal=True) as status:
        nodes, seconds = run_bench(status)
    print(f"{nodes} nodes {_per_second(nodes, seconds)} nps")
    return 0


def _uci(options: argparse.Namespace, signals: Signals) -> int:
    from psearch.uci.conversation import run_uci

    run_uci()
    sys.stdout.flush()
    # Workers are gone by now. Taking the interpreter down costs some 200 ms, and clients kill an engine that is slow to
    # leave; nor could a thread that is inside the compiler be told to stop. The nursery ends with this process.
    os._exit(0)


def _search_parser() -> argparse.ArgumentParser:
    parser = make_parser("psearch", _SEARCH_USAGE, _SEARCH_HELP, _SEARCH_EXAMPLES)
    parser.add_argument("fen", nargs="*", metavar="FEN", help="the position, or `startpos`")
    add_threads(parser)
    add_limits(parser)
    add_hash(parser)
    add_policy(parser)
    add_pruning(parser)
    add_root_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument("--stats", action="store_true", help="also what was pruned: see psearch stats")
    parser.add_argument("--trace", type=Path, metavar="FILE", help=TRACE_HELP)
    parser.add_argument("--version", action="version", version=f"psearch {__version__}")
    return parser


def _perft_parser() -> argparse.ArgumentParser:
    parser = make_parser("psearch perft", _PERFT_USAGE, _PERFT_HELP, _PERFT_EXAMPLES)
    parser.add_argument("words", nargs="*", metavar="DEPTH FEN", help="depth in plies, then the position")
    add_threads(parser)
    parser.add_argument("--epd", metavar="FILE", help="check the counts in a file; `-` reads standard input")
    parser.add_argument(
        "--max-nodes",
        type=whole_number(1, MAX_NODES),
        metavar="M",
        help=f"skip expected counts above M (default {DEFAULT_MAX_NODES:,})",
    )
    return parser


def _bench_parser() -> argparse.ArgumentParser:
    return make_parser("psearch bench", "psearch bench", _BENCH_HELP, _BENCH_EXAMPLES)


def _completion(options: argparse.Namespace, signals: Signals) -> int:
    from psearch.cli.completion import completion_script

    every: Commands = {}
    for word in ("perft", "analyse", "leaves", "stats", "verify-sound", *STUDIES):
        every |= _commands_for(word)
    print(completion_script(options.shell, _search_parser(), every), end="")
    return 0


def _completion_parser() -> argparse.ArgumentParser:
    usage = f"psearch completion {'|'.join(SHELLS)}"
    parser = make_parser("psearch completion", usage, _COMPLETION_HELP, _COMPLETION_EXAMPLES)
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    return parser


def _uci_parser() -> argparse.ArgumentParser:
    return make_parser("psearch uci", "psearch uci", _UCI_HELP, _UCI_EXAMPLES)


def _print_json(board: chess.Board, result: Result, threads: int, **more: object) -> None:
    from psearch.notation.report import json_object

    # default=int: counters may come as numpy integers
    print(json.dumps({**json_object(board, result, threads), **more}, default=int), flush=True)


def _without_dashes(words: list[str]) -> list[str]:
    """The words without `--`, which some versions of argparse leave in."""
    return [word for word in words if word != "--"]


def _per_second(nodes: int, seconds: float) -> int:
    return round(nodes / seconds) if seconds > 0 else 0


def _stdout_has_no_reader() -> bool:
    """Tells the broken pipe of `psearch ... | head -1` from one between processes."""
    if sys.stdout is None:
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _abandon_stdout() -> None:
    """stdout cannot be written: keep the interpreter from complaining when it flushes at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
