"""`psearch uci`, and `psearch` without arguments: the engine for chess programs."""

from __future__ import annotations

import argparse
import contextlib
import os

from psearch.faces.cli.output import complain
from psearch.faces.cli.signals import Signals

DESCRIPTION = """\
Talk UCI on standard input and output, as chess programs with a board expect an engine to.
`psearch` without arguments does the same."""

EXAMPLES = """\
examples:
  psearch uci
  (echo position startpos; echo go movetime 1000; sleep 4) | psearch uci"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: `psearch uci` has no arguments."""


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Talk until `quit`, the end of the input or a signal; does not return. Raises OSError when nobody reads."""
    from psearch.faces.uci.uci_conversation import run_uci

    signals.searching = True  # a signal is noted and ends the conversation, wherever it is
    with contextlib.suppress(KeyboardInterrupt):  # a second signal: the workers end with this process
        run_uci(is_over=lambda: signals.received is not None)
    if signals.received is not None:
        with contextlib.suppress(OSError):
            complain("interrupted")
    # Workers are gone by now. Taking the interpreter down costs some 200 ms, and clients kill an engine that is slow to
    # leave; nor could a thread that is inside the compiler be told to stop. The fork server ends with this process.
    os._exit(signals.exit_status)
