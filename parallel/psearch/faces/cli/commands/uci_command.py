"""`psearch uci`, or `psearch` without arguments: run the engine for a chess program."""

from __future__ import annotations

import argparse
import contextlib
import os

from psearch.faces.cli.output import complain
from psearch.faces.cli.signals import Signals

DESCRIPTION = """\
Speak UCI on standard input and output: the protocol by which chess programs use an engine.
`psearch` without arguments does the same. `help` lists the commands."""

EXAMPLES = """\
examples:
  psearch uci
  (echo position startpos; echo go movetime 1000; sleep 4) | psearch uci"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: `psearch uci` has no arguments."""


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Speak UCI until `quit`, the end of the input or a signal, then exit. Raises OSError if the output is closed."""
    from psearch.faces.uci.uci_conversation import run_uci

    signals.searching = True  # a signal now ends the conversation instead of raising
    with contextlib.suppress(KeyboardInterrupt):  # a second signal: the workers end with this process
        run_uci(is_over=lambda: signals.received is not None)
    if signals.received is not None:
        with contextlib.suppress(OSError):
            complain("interrupted")
    # The workers have ended. Finalizing the interpreter takes about 200 ms, and clients kill an engine that exits
    # slowly; a thread inside the compiler could not be stopped either. The fork server ends with this process.
    os._exit(signals.exit_status)
