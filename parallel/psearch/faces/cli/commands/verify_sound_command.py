"""`psearch verify-sound`: check that sound futility pruning never changes a value."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from psearch.defaults import MAX_NODES
from psearch.faces.cli.arguments import add_json, add_number
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.output import EXIT_WRONG, complain, print_answer, refuse
from psearch.faces.cli.signals import Signals
from psearch.settings import DEPTH

if TYPE_CHECKING:
    from psearch.lab.studies.soundness import SoundnessSummary

_DEFAULT_DEPTH = 4
_DEFAULT_MAX_NODES = 10_000_000
_DEFAULT_SHOWN = 10

DESCRIPTION = f"""\
Check that `--pruning sound` is sound, on one worker and without a table. Every position is
searched in plain and in sound mode, which must agree on the value and on the set of best
moves. During the plain search, every move that sound mode would skip is compared with the
bound that justifies the skip: value <= bound <= alpha. The exit status is 1 if a check
fails. Plain mode prunes nothing: depth {_DEFAULT_DEPTH} takes about a second per position, and each
further ply takes ten times as long."""

EXAMPLES = """\
examples:
  psearch verify-sound --epd suite.epd
  psearch verify-sound --epd suite.epd --depth 3 --positions 100 --json"""

_LEGEND = """\
moves checked: moves that sound mode would skip and plain mode searched; violations: moves
whose value was above the bound that justified the skip; roots that differ: positions where
the modes disagree on the value or the best moves. B (centipawns) limits what the
evaluation may add to material and piece-square tables."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "EPD or FEN positions, one per line (required); `-` reads standard input"
    parser.add_argument("--epd", metavar="FILE", help=words)
    DEPTH.add_to(parser, f"plies to search (default {_DEFAULT_DEPTH})", default=_DEFAULT_DEPTH)
    add_number(parser, "--positions", 1, 10**6, "only the first K positions", "K")
    words = "limit what the evaluation may add to material and piece-square tables to B centipawns; a smaller B skips "
    words += "more moves (default: as in every search)"
    add_number(parser, "--bound", 0, 5000, words, "B")
    words = f"give up a position when a search needs more than M nodes (default {_DEFAULT_MAX_NODES:,})"
    add_number(parser, "--max-nodes", 1, MAX_NODES, words, "M", default=_DEFAULT_MAX_NODES)
    words = f"show at most N violations and differences (default {_DEFAULT_SHOWN})"
    add_number(parser, "--show", 0, 10**6, words, default=_DEFAULT_SHOWN)
    add_json(parser, instead_of="the lines")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Verify the suite and print the figures; after Ctrl-C, those so far."""
    if options.epd is None:
        refuse("--epd FILE is missing (see psearch verify-sound --help)")
    from psearch.text.epd_text import read_suite

    suite = read_suite(options.epd, complain)[: options.positions]
    from psearch.lab.studies.soundness import SHADOW, SoundnessSummary, Verifier

    prepare_kernels(SHADOW)
    from psearch.terminal.status import StatusLine
    from psearch_core.terms import REST_BOUND

    bound = REST_BOUND if options.bound is None else options.bound
    summary = SoundnessSummary(bound=bound)
    interrupted = False
    try:
        with StatusLine() as status, Verifier(bound=bound, max_nodes=options.max_nodes) as verifier:
            for done, position in enumerate(suite):
                text = f"{done}/{len(suite)} positions, {summary.checked:,} moves checked, {summary.violations} wrong"
                status(text, done, len(suite))
                summary.add(verifier.compare(position, options.depth), options.show)
    except KeyboardInterrupt:
        interrupted = True
    facts = {
        "depth": options.depth,
        "positions_given": len(suite),
        **asdict(summary),
        "saving": round(summary.saving, 4),
        "sound": summary.sound,
        "interrupted": interrupted,
    }
    print_answer(options.json, facts, _lines(summary, options.depth, len(suite)))
    if summary.too_big and summary.too_big == summary.positions:
        complain("every position was given up: use a smaller --depth, or a larger --max-nodes")
    elif summary.positions and summary.sound and not summary.checked:
        complain("no move was checked: sound mode skips nothing in trees this small; use a larger --depth")
    if interrupted:
        complain(f"interrupted; the figures cover the {summary.positions} positions that were finished")
    return signals.exit_status if summary.sound else EXIT_WRONG


def _lines(summary: SoundnessSummary, depth: int, given: int) -> str:
    from psearch.lab.studies.tree_sizes import size_text

    whole = summary.positions - summary.too_big
    lines = [f"violation: {example}" for example in summary.examples]
    for compared in summary.differences:
        plain, sound = (f"{found.value} {' '.join(found.best)}" for found in (compared.plain, compared.sound) if found)
        lines.append(f"difference: {compared.fen}: plain {plain}, sound {sound}")
    of = "" if summary.positions == given else f" of {given}"
    too_big = f", {summary.too_big} given up (too many nodes)" if summary.too_big else ""
    lines += [
        f"positions         {summary.positions:,}{of}, depth {depth}, B = {summary.bound}{too_big}",
        f"moves checked     {summary.checked:,}",
        f"violations        {summary.violations:,}",
        f"roots that differ {summary.different_roots:,}",
        f"nodes             plain {summary.plain_nodes:,}, sound {summary.sound_nodes:,} ({-summary.saving:+.1%})",
        f"nodes a position  plain {size_text(summary.plain_nodes / max(whole, 1))}, sound "
        f"{size_text(summary.sound_nodes / max(whole, 1))}, by one worker",
        "",
        _LEGEND,
    ]
    return "\n".join(lines)
