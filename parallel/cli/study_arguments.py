"""The arguments of the commands that measure, and their help."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from psearch.cli.arguments import add_hash, add_pruning
from psearch.cli.common import TRACE_HELP, make_parser, whole_number
from psearch.defaults import MAX_DEPTH, MAX_THREADS

DEFAULT_SECONDS = 5.0
DEFAULT_REPEATS = 3
DEFAULT_POLICIES = "calibrated"
_MAX_SECONDS = 3600.0
_MAX_REPEATS = 1000
_MAX_SEED = 2**63 - 1
_MAX_TREE_NODES = 10**12
_MAX_JOBS = 256

_SPEEDUP_USAGE = """\
psearch speedup [--threads 1,2] --suite FILE [--policy A,B] [--repeat R]
                       [--seconds S | --depth D] [--pruning MODE[,NAME=VALUE...]] [--hash MB]
                       [--positions K] [--json] [--plot PNG] [--log FILE]
       psearch speedup --from-log FILE [--json] [--plot PNG]"""

_SPEEDUP_HELP = """\
Time to depth of real worker processes against one worker. Each position is searched to
the first depth that takes one worker S seconds (or to depth D), from an empty table, with
the worker counts alternating. The table gives geometric means over the positions with a
95% bootstrap interval, and the ceiling: what independent searches side by side reach on
this machine. Every search is a line of the log; --from-log makes the table from it again."""

_SPEEDUP_EXAMPLES = """\
examples:
  psearch speedup --suite bratko_kopec_24.epd
  psearch speedup --threads 1,2,4 --policy calibrated,ybw --seconds 2 --suite suite.epd --plot speedup.png
  psearch speedup --from-log psearch-speedup-20260101-120000.jsonl"""

_SIMULATE_USAGE = """\
psearch simulate --workers 1,2,4,...,1024 --suite FILE (--depth D | --tree-nodes N) [--policy P,Q]
                        [--pruning MODE[,NAME=VALUE...]]
                        [--seed S] [--jitter J] [--costs FILE] [--hash MB] [--split-depth N]
                        [--wait] [--open-busy P] [--open-idle P] [--defer-depth N]
                        [--positions K] [--jobs N] [--validate] [--json] [--plot PNG] [--log FILE]
                        [--trace FILE]
       psearch simulate --from-log FILE [--json] [--plot PNG]"""

_SIMULATE_HELP = """\
Speedup in virtual time: the real scheduler with up to 1,024 workers in one process, in the
order of clocks that advance by measured costs. `1,2,4,...,1024` is taken literally: the dots
mean doubling. Speedups are against one serial worker, geometric means over the positions. The
same arguments give the same node counts to the last digit. The tree comes from the search of
this very position, so give a depth that one worker needs some seconds for."""

_SIMULATE_EXAMPLES = """\
examples:
  psearch simulate --workers 1,2,4,...,64 --suite bratko_kopec_24.epd --depth 9
  psearch simulate --workers 8 --policy calibrated,ybw --suite suite.epd --depth 9 --costs costs.json --jobs 2
  psearch simulate --workers 3 --suite suite.epd --depth 4 --positions 2 --validate --jitter 0.5 --seed 7
  psearch simulate --workers 64 --suite suite.epd --depth 8 --positions 1 --trace trace.json"""

_CALIBRATE_USAGE = "psearch calibrate [--out FILE]"

_CALIBRATE_HELP = """\
Measure on this machine what `psearch simulate` charges for each action, in about half a
minute: nodes, joins by two real worker processes, and small operations in loops. Nothing
else should be running. FILE is for `psearch simulate --costs FILE`."""

_CALIBRATE_EXAMPLES = """\
examples:
  psearch calibrate
  psearch calibrate --out costs.json"""


_PREDICT_USAGE = """\
psearch predict --suite FILE --depth D [--positions K] [--pruning MODE[,NAME=VALUE...]]
                       [--json] [--plot PNG]"""

_PREDICT_HELP = """\
Judge the rules that predict node types: how often nodes expected to be PV, CUT or ALL
turned out so, the share of CUT nodes settled by their first move, Brier scores of the
class and of the calibrated P(no cutoff), and, from searches with 8 workers in virtual
time, whether moves were needed as often as predicted and what mispredictions wasted."""

_PREDICT_EXAMPLES = """\
examples:
  psearch predict --suite suite.epd --depth 9 --plot predict.png"""


def worker_counts(text: str) -> list[int]:
    """`1,2,4,...,64` as rising numbers; dots between two numbers mean doubling. For argparse."""
    count = whole_number(1, MAX_THREADS)
    words = [word.strip() for word in text.split(",")]
    counts: list[int] = []
    doubling = False
    for word in words:
        if word in ("...", "…"):
            if not counts or doubling:
                raise argparse.ArgumentTypeError(f"the dots stand between two numbers, not as in {text[:40]!a}")
            doubling = True
            continue
        number = count(word)
        while doubling and counts[-1] < number:
            counts.append(2 * counts[-1])
        if doubling and counts[-1] != number:
            raise argparse.ArgumentTypeError(f"doubling does not lead to {number} in {text[:40]!a}")
        doubling = False
        counts.append(number)
    if doubling:
        raise argparse.ArgumentTypeError(f"the dots stand between two numbers, not as in {text[:40]!a}")
    return sorted(set(counts))


def _number(low: float, high: float) -> Callable[[str], float]:
    """A converter for argparse, for decimal numbers."""

    def convert(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12}", text) or not low <= float(text) <= high:
            raise argparse.ArgumentTypeError(f"must be a number from {low:g} to {high:g}, not {text[:40]!a}")
        return float(text)

    return convert


def _add_shared(parser: argparse.ArgumentParser) -> None:
    """Options that both studies have."""
    parser.add_argument("--suite", metavar="FILE", help="EPD or FEN positions, one a line; `-` reads standard input")
    parser.add_argument("--positions", type=whole_number(1, 10**6), metavar="K", help="only the first K positions")
    parser.add_argument(
        "--policy",
        default=DEFAULT_POLICIES,
        metavar="P,Q",
        help=f"when nodes are split: root, ybw, knuth, garms, kannan, felten, calibrated, lazy, abdada "
        f"(default {DEFAULT_POLICIES})",
    )
    add_pruning(parser)
    add_hash(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw the table (needs matplotlib)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="raw log (default: a new file named by the time)")
    parser.add_argument(
        "--from-log", type=Path, metavar="FILE", help="measure nothing, summarise this log (FILE#RUN: one of several)"
    )


def speedup_parser() -> argparse.ArgumentParser:
    """Of `psearch speedup`."""
    parser = make_parser("psearch speedup", _SPEEDUP_USAGE, _SPEEDUP_HELP, _SPEEDUP_EXAMPLES)
    parser.add_argument(
        "--threads", type=worker_counts, default=[1, 2], metavar="1,2", help="worker processes (default 1,2)"
    )
    _add_shared(parser)
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--seconds",
        type=_number(0.01, _MAX_SECONDS),
        metavar="S",
        help=f"what one worker takes at least (default {DEFAULT_SECONDS:g})",
    )
    length.add_argument("--depth", type=whole_number(1, MAX_DEPTH), metavar="D", help="the same depth for all")
    parser.add_argument(
        "--repeat",
        type=whole_number(1, _MAX_REPEATS),
        default=DEFAULT_REPEATS,
        metavar="R",
        help=f"searches with each count (default {DEFAULT_REPEATS})",
    )
    return parser


def simulate_parser() -> argparse.ArgumentParser:
    """Of `psearch simulate`."""
    parser = make_parser("psearch simulate", _SIMULATE_USAGE, _SIMULATE_HELP, _SIMULATE_EXAMPLES)
    parser.add_argument(
        "--workers", type=worker_counts, metavar="1,2,...,N", help=f"virtual workers, 1 to {MAX_THREADS}"
    )
    _add_shared(parser)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--depth", type=whole_number(1, MAX_DEPTH), metavar="D", help="plies, the same for all")
    size.add_argument(
        "--tree-nodes",
        type=whole_number(1000, _MAX_TREE_NODES),
        metavar="N",
        help="each position to the depth that one worker finishes within N nodes",
    )
    parser.add_argument(
        "--seed", type=whole_number(0, _MAX_SEED), default=0, metavar="S", help="of the jitter (default 0)"
    )
    parser.add_argument(
        "--jitter",
        type=_number(0, 1),
        metavar="J",
        help="every cost is longer by a random part of this share (default: as in the costs, there 0)",
    )
    parser.add_argument("--costs", type=Path, metavar="FILE", help="from `psearch calibrate --out FILE`")
    parser.add_argument("--split-depth", type=whole_number(1, MAX_DEPTH), metavar="N", help="least depth to split at")
    parser.add_argument(
        "--wait", action="store_true", help="open nothing before its first move is done (young brothers wait)"
    )
    percent = whole_number(0, 100)
    parser.add_argument(
        "--open-busy", type=percent, metavar="P", help="calibrated: percent P(needed) to open a node, all being busy"
    )
    parser.add_argument("--open-idle", type=percent, metavar="P", help="calibrated: the same while somebody is idle")
    parser.add_argument(
        "--defer-depth",
        type=whole_number(0, MAX_DEPTH),
        metavar="N",
        help="least depth to put moves off to positions that another worker is searching; 0 never "
        "(default: 3 with abdada, else never)",
    )
    parser.add_argument(
        "--jobs",
        type=whole_number(1, _MAX_JOBS),
        default=1,
        metavar="N",
        help="processes to run the searches in; the results are the same (default 1)",
    )
    parser.add_argument("--validate", action="store_true", help="check every invariant after every event (very slow)")
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help=f"{TRACE_HELP}; of one position, worker count and policy"
    )
    return parser


def calibrate_parser() -> argparse.ArgumentParser:
    """Of `psearch calibrate`."""
    parser = make_parser("psearch calibrate", _CALIBRATE_USAGE, _CALIBRATE_HELP, _CALIBRATE_EXAMPLES)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the costs here, as JSON")
    return parser


def predict_parser() -> argparse.ArgumentParser:
    """`psearch predict`."""
    parser = make_parser("psearch predict", _PREDICT_USAGE, _PREDICT_HELP, _PREDICT_EXAMPLES)
    parser.add_argument("--suite", metavar="FILE", help="EPD or FEN positions, one a line; `-` reads standard input")
    parser.add_argument("--positions", type=whole_number(1, 10**6), metavar="K", help="only the first K positions")
    parser.add_argument("--depth", type=whole_number(1, MAX_DEPTH), metavar="D", help="plies to search")
    add_pruning(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw reliability curves")
    return parser
