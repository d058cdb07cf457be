"""`psearch serve`: serve a page with a board that shows the search."""

from __future__ import annotations

import argparse
import os
import sys
import threading

from psearch.defaults import DEFAULT_POLICY
from psearch.faces.cli.arguments import add_flag, add_hash, add_number, add_settings, add_threads, check_hash
from psearch.faces.cli.kernels import loaded_game, prepare_kernels
from psearch.faces.cli.output import complain, say
from psearch.faces.cli.signals import Signals

DEFAULT_PORT = 8960

DESCRIPTION = """\
Serve a page on this machine and open it in a browser: a board to analyse and play on, with
the lines, the evaluation and the workers of the search, live. Ctrl-C ends it.

The server listens on 127.0.0.1 only, and answers only requests with the secret token in
the printed address. It reads no files but those named on the command line.
Requires `pip install starlette uvicorn websockets`."""

EXAMPLES = """\
examples:
  psearch serve
  psearch serve --threads 2 --hash 256
  psearch serve --no-browser --port 0
  psearch serve --game my_game.py --policy my_policy.py --with my_rule.py"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = f"port on 127.0.0.1 (default {DEFAULT_PORT}; 0: any free port)"
    add_number(parser, "--port", 0, 65_535, words, default=DEFAULT_PORT)
    add_flag(parser, "--no-browser", "print the address, but open no browser")
    add_threads(parser)
    add_hash(parser)
    parser.add_argument("--game", metavar="FILE", default="", help="your own game, to be searched in the tab Workers")
    words = "your own policy, added to the choices of the tab Laboratory (may be repeated)"
    parser.add_argument("--policy", metavar="FILE", action="append", default=[], help=words)
    add_settings(parser, "with_")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Serve until a signal arrives. Raises PsearchError for a missing library, a taken port or an unusable file."""
    from psearch.results import PsearchError

    check_hash(options.hash)
    try:
        import websockets  # noqa: F401  # uvicorn needs it

        from psearch.faces.web.server import Access, listen
        from psearch.faces.web.server import run as serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "websockets"):
            raise
        raise PsearchError(f"{error.name} is not installed: pip install starlette uvicorn websockets") from None

    if options.policy or options.with_:
        from psearch.options import kernels_of
        from psearch.simulation.simulation_entries import VIRTUAL

        default = [DEFAULT_POLICY] if options.with_ else []
        prepare_kernels(*(kernels_of(name, options.with_).group(VIRTUAL) for name in (*default, *options.policy)))
    if options.game:
        loaded_game(options.game)

    def open_pages():  # type: ignore[no-untyped-def]  # its type needs python-chess
        from psearch.faces.web.page import Pages
        from psearch.faces.web.shared_engine import SharedSettings

        named = options.game, tuple(options.policy), options.with_
        return Pages(SharedSettings(options.threads, options.hash, *named))

    listener = listen(options.port)
    with listener:
        access = Access(listener.getsockname()[1])
        print(access.address, flush=True)

        def began() -> None:
            say("psearch: serving on this machine only; Ctrl-C ends it")
            # a text browser would take over the terminal
            has_screen = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
            if has_screen and not options.no_browser:
                threading.Thread(target=_open, args=(access.address_for_once(),), daemon=True).start()

        signals.searching = True  # a signal now stops the server cleanly
        serve(listener, access, open_pages, signals.control, began)
        signals.searching = False
    return signals.exit_status


def _open(address: str) -> None:
    import webbrowser

    try:
        opened = webbrowser.open(address)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        complain("cannot open a browser: open the address yourself")
