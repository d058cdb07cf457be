"""How the commands of this folder end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from matchplay.scripts import MatchError

from psearch.results import PsearchError

EXIT_BAD_INPUT, EXIT_INTERRUPTED = 2, 130


def exit_status(name: str, run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a command and return its exit status; bad input is one line that begins with the script's name."""
    try:
        return run(options)
    except (OSError, ValueError, MatchError, PsearchError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
