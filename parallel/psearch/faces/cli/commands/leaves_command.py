"""`psearch leaves B N`: the leaves that alpha-beta must visit, by formula and counted."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from psearch.defaults import MAX_DEPTH
from psearch.faces.cli.arguments import add_json
from psearch.faces.cli.exit_status import EXIT_WRONG
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.numbers import whole_number
from psearch.faces.cli.output import complain, print_json
from psearch.faces.cli.signals import Signals

if TYPE_CHECKING:
    from psearch.lab.studies.uniform_tree import Count, Leaves

MAX_BREADTH = 1000
DEFAULT_COUNT = 10_000_000
_MOST_COUNT = 10**9
_MOST_SEED = 2**63 - 1

DESCRIPTION = f"""\
Print how many leaves alpha-beta visits in a tree of B moves everywhere, the best one
always first, for 0 to N plies; in total, and as PV, CUT and ALL nodes (Knuth and Moore's
types 1, 2 and 3; their and Levin's formulas, exact at any size).

Trees of no more than {DEFAULT_COUNT:,} such leaves (--count) are searched as well, by plain
alpha-beta, and every rule that predicts node types is asked about every node on the way.
The exit status is 1 when a count or a type of Knuth's rule is not as predicted."""

EXAMPLES = """\
examples:
  psearch leaves 40 8
  psearch leaves --count 200000000 40 10
  psearch leaves --count 0 --json 35 100"""


_LEGEND = """\
Leaves that alpha-beta visits in one tree of so many plies, in total and by the type of
the leaf; counted: whether a search of such a tree, where it is small enough, found the same"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `psearch leaves`."""
    parser.add_argument("breadth", type=whole_number(1, MAX_BREADTH), metavar="B", help="moves in every position")
    parser.add_argument("plies", type=whole_number(0, MAX_DEPTH), metavar="N", help="depth of the largest tree")
    parser.add_argument(
        "--count",
        type=whole_number(0, _MOST_COUNT),
        default=DEFAULT_COUNT,
        metavar="LEAVES",
        help=f"search the trees of no more leaves than that (default {DEFAULT_COUNT:,}; 0: none)",
    )
    parser.add_argument(
        "--seed",
        type=whole_number(0, _MOST_SEED),
        default=1,
        metavar="N",
        help="of the values of the trees that are searched (default 1)",
    )
    add_json(parser)


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Print the table, counted as far as `--count` says."""
    from psearch.lab.studies.uniform_tree import least_leaves

    table = [least_leaves(options.breadth, depth) for depth in range(options.plies + 1)]
    counts = _count(table, options)
    if options.json:
        print_json(_as_json(table, counts, options))
    else:
        print("\n".join(_lines(table, counts)), flush=True)
    problems = [text for depth, count in counts.items() for text in _problems(table[depth], count)]
    for text in problems:
        complain(text)
    return EXIT_WRONG if problems else 0


def _count(table: list[Leaves], options: argparse.Namespace) -> dict[int, Count]:
    """Count the trees that are small enough; returns the counts by depth."""
    chosen = [row.depth for row in table if row.total <= options.count]
    if not chosen:
        return {}
    from psearch.lab.studies.uniform_tree import UNIFORM_TREE, count_uniform

    prepare_kernels(UNIFORM_TREE)

    from psearch.terminal.status import StatusLine

    counts = {}
    with StatusLine(only_terminal=True) as status:
        for depth in chosen:
            for count in count_uniform(options.breadth, depth, options.seed):
                status(f"{depth} plies: {count.leaves.total:,} of {table[depth].total:,} leaves")
            counts[depth] = count
    return counts


def _problems(row: Leaves, count: Count) -> list[str]:
    """What is not as predicted."""
    problems = []
    if count.leaves != row:
        problems.append(f"{row.depth} plies: {count.leaves} counted, {row} by formula")
    if count.wrong["knuth"]:
        problems.append(f"{row.depth} plies: {count.wrong['knuth']} nodes of another type than Knuth's rule expects")
    if count.misvalued:
        problems.append(f"{row.depth} plies: {count.misvalued} nodes of a wrong value")
    return problems


def _lines(table: list[Leaves], counts: dict[int, Count]) -> list[str]:
    from psearch.terminal.table import text_table

    def compared(row: Leaves) -> str:
        if row.depth not in counts:
            return ""
        return "same" if counts[row.depth].leaves == row else "NOT THE SAME"

    rows = [
        (str(row.depth), f"{row.total:,}", f"{row.pv:,}", f"{row.cut:,}", f"{row.all:,}", compared(row))
        for row in table
    ]
    lines = [text_table(("plies", "total", "PV", "CUT", "ALL", "counted"), rows, left=0)]
    lines += ["", _LEGEND]
    if counts:
        lines += ["", *_rule_lines(list(counts.values()))]
    return lines


def _rule_lines(counts: list[Count]) -> list[str]:
    from psearch.terminal.table import text_table
    from psearch.text.values import counted

    nodes = sum(count.nodes for count in counts)
    skipped = sum(count.skipped for count in counts)
    rows = []
    for rule in counts[0].wrong:
        wrong = sum(count.wrong[rule] for count in counts)
        unlike = sum(count.unlike_knuth[rule] for count in counts)
        text = f"{wrong:,} nodes of another type" if wrong else "every node right"
        if unlike:
            text += f"; {unlike:,} of the children left out expected to be CUT, by Knuth's rule ALL"
        rows.append((f"  {rule}", text))
    return [
        f"{nodes:,} nodes visited in {counted(len(counts), 'tree')}; cutoffs left out {skipped:,} of their children",
        "node types predicted:",
        text_table(("", ""), rows, left=2),
    ]


def _as_json(table: list[Leaves], counts: dict[int, Count], options: argparse.Namespace) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for row in table:
        entry: dict[str, Any] = {"plies": row.depth, "total": row.total, "pv": row.pv, "cut": row.cut, "all": row.all}
        count = counts.get(row.depth)
        if count is not None:
            found = count.leaves
            entry["counted"] = {
                "total": found.total,
                "pv": found.pv,
                "cut": found.cut,
                "all": found.all,
                "nodes": count.nodes,
                "misvalued": count.misvalued,
                "skipped": count.skipped,
                "wrong": count.wrong,
                "unlike_knuth": count.unlike_knuth,
            }
        rows.append(entry)
    return {"breadth": options.breadth, "seed": options.seed, "leaves": rows}
