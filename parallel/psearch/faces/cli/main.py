"""Runs the command line: `psearch FEN`, or a command of `commands`.

A command's module is imported only when the command is given. Slow imports (numba, python-chess, rich) are further
delayed until they are needed, so that `--help` and errors appear at once.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
from collections.abc import Sequence

from psearch.defaults import POLICY_NAMES
from psearch.faces.cli import command_list, output
from psearch.faces.cli.command_list import ANALYSE, COMMANDS, SEARCH, Command
from psearch.faces.cli.signals import Signals, run_apart
from psearch.terminal.streams import is_terminal

_MOST_SECONDS = 60
"""Largest `--movetime` without a unit that was probably meant in seconds."""
_NO_OPTION = "\0"
"""Marks words after `--`; no word of a command line contains this character."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status (see `output.py`). Raises SystemExit for bad options."""
    # numpy's threads are useless here, and numpy fails where no more threads can be started
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with output.steady_streams():
        return _main(list(sys.argv[1:] if arguments is None else arguments), arguments is None)


def _main(words: list[str], ends_program: bool) -> int:
    if not words:
        words = ["uci"]
        if sys.stdin is not None and sys.stdin.isatty():
            output.say("psearch speaks UCI now: `help` shows its commands, `quit` ends it; more: `psearch --help`")
    try:
        command, options = _understood(words)
    except KeyboardInterrupt:  # while the command is imported
        output.complain("interrupted")
        return output.EXIT_SIGNAL + signal.SIGINT
    movetime = getattr(options, "movetime", None)
    if movetime is not None and not movetime.has_unit and is_terminal(sys.stderr):
        number = movetime.milliseconds
        if number <= _MOST_SECONDS:
            output.complain(f"--movetime {number} is {number} milliseconds; {number}s would be seconds")
    with Signals(ends_program) as signals:
        if ends_program and _calls_kernels_of_a_file(command, options):
            return run_apart(lambda: _guarded(command, options, signals), signals)
        return _guarded(command, options, signals)


def _understood(words: list[str]) -> tuple[Command, argparse.Namespace]:
    """Return the command and its options. Raises SystemExit for words that cannot be understood."""
    words = command_list.spelled_out(words)
    if words and words[0] in COMMANDS:
        return _parsed(words[0], words[1:])
    if words and not words[0].startswith("-"):
        command_list.check_command(words)  # before parsing: the options may belong to the intended command
    command, options = _parsed(SEARCH, words)
    if options.fen:
        first = options.fen[0]
        command_list.check_position(words, first)
        if command_list.is_file(first):
            if first == "-" or os.path.exists(first):  # otherwise one error message is enough
                what = "standard input is read as" if first == "-" else f"{first} is"
                output.complain(f"{what} a file: running psearch {ANALYSE}")
            return _parsed(ANALYSE, words)
    return command, options


def _parsed(name: str, words: list[str]) -> tuple[Command, argparse.Namespace]:
    parser = command_list.parser_of(name)
    if "--" in words:  # parse_known_intermixed_args forgets that no options follow
        at = words.index("--")
        words = [*words[:at], *(_NO_OPTION + word if word.startswith("-") else word for word in words[at + 1 :])]
    options, others = parser.parse_known_intermixed_args(words)
    if others:
        output.refuse(command_list.unknown(parser, others))
    for dest, value in vars(options).items():
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            setattr(options, dest, [word.removeprefix(_NO_OPTION) for word in value])
    return command_list.load(name), options


def _calls_kernels_of_a_file(command: Command, options: argparse.Namespace) -> bool:
    """Tell whether a command runs kernels of a user's file in this process, where a crash would end it."""
    name = command.__name__.rpartition(".")[2]
    if name not in ("bench_command", "predict_command") and (name != "simulate_command" or options.trace is None):
        return False
    named = set((getattr(options, "policy", None) or "").split(","))
    return bool(getattr(options, "with_", None) or getattr(options, "game", None) or named - {"", *POLICY_NAMES})


def _guarded(command: Command, options: argparse.Namespace, signals: Signals) -> int:
    """Run a command, and turn errors into an exit status and at most one line."""
    try:
        try:
            status = command.run(options, signals)
            if sys.stdout is not None:
                sys.stdout.flush()
        finally:
            signals.is_over = True
        return status
    except KeyboardInterrupt:
        return signals.interrupted()
    except OSError as error:
        reader_left = False
        if sys.stdout is not None:
            poll = select.poll()  # distinguishes `psearch ... | head -1` from a broken pipe to a worker
            poll.register(sys.stdout.fileno(), select.POLLOUT)
            is_broken = any(event & select.POLLERR for _, event in poll.poll(0))
            reader_left = isinstance(error, BrokenPipeError) and is_broken
            output.abandon(sys.stdout)
        if signals.received is not None:
            return signals.exit_status  # the terminal is gone, as the signal has reported
        if reader_left:
            return output.EXIT_SIGNAL + signal.SIGPIPE
        output.complain(f"cannot continue: {error}")
        return output.EXIT_SYSTEM
    except MemoryError:
        output.complain("cannot continue: not enough memory (see ulimit -v)")
        return output.EXIT_SYSTEM
    except Exception as error:
        # a late import: it needs python-chess, for which `uciok` should not wait
        from psearch.results import PsearchError, WorkerDied

        if not isinstance(error, PsearchError):
            raise
        output.complain(str(error))
        return output.EXIT_WORKER_DIED if isinstance(error, WorkerDied) else output.EXIT_BAD_INPUT
