"""`psearch leaves B N`: compute the leaves that alpha-beta must visit, and count them in small trees."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from psearch.defaults import MAX_DEPTH
from psearch.faces.cli.arguments import add_json, add_number, add_seed, whole_number
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.output import EXIT_WRONG, complain, print_answer
from psearch.faces.cli.signals import Signals
from psearch.terminal.streams import glossary, text_table
from psearch.text.values import counted

if TYPE_CHECKING:
    from psearch.lab.studies.uniform_tree import Count, Leaves

MAX_BREADTH = 1000
DEFAULT_COUNT = 10_000_000

DESCRIPTION = f"""\
Print how many leaves alpha-beta visits in a tree with B moves in every position, the best
always searched first, for depths of 0 to N plies: in total, and by type (PV, CUT and ALL
nodes are types 1, 2 and 3 of Knuth and Moore). The formulas, by them and by Levin, are
exact at any size.

Trees of at most {DEFAULT_COUNT:,} such leaves (see --count) are also searched by plain
alpha-beta, and every rule that predicts node types is tested at every node. The exit
status is 1 if a count differs from the formula, or Knuth's rule predicts a wrong type."""

EXAMPLES = """\
examples:
  psearch leaves 40 8
  psearch leaves --count 200000000 40 10
  psearch leaves --count 0 --json 35 100"""

_LEGEND = """\
Leaves that alpha-beta visits in a tree of this many plies, in total and by type.
counted: whether a search of that tree found the same numbers (only small trees are searched)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("breadth", type=whole_number(1, MAX_BREADTH), metavar="B", help="moves in every position")
    parser.add_argument("plies", type=whole_number(0, MAX_DEPTH), metavar="N", help="depth of the largest tree")
    words = f"search only trees with at most this many leaves (default {DEFAULT_COUNT:,}; 0: none)"
    add_number(parser, "--count", 0, 10**9, words, "LEAVES", default=DEFAULT_COUNT)
    add_seed(parser, "seed of the random leaf values", 1, "N")
    add_json(parser)


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Print the table; search the trees that `--count` allows."""
    from psearch.lab.studies.uniform_tree import least_leaves

    table = [least_leaves(options.breadth, depth) for depth in range(options.plies + 1)]
    counts = _count(table, options)
    facts = {"breadth": options.breadth, "seed": options.seed}
    rows = [_as_json(row, counts.get(row.depth)) for row in table]
    print_answer(options.json, {**facts, "leaves": rows}, "\n".join(_lines(table, counts)))
    problems = [text for depth, count in counts.items() for text in _problems(table[depth], count)]
    for text in problems:
        complain(text)
    return EXIT_WRONG if problems else 0


def _count(table: list[Leaves], options: argparse.Namespace) -> dict[int, Count]:
    """Search the trees that are small enough; return the counts by depth."""
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
    problems = []
    if count.leaves != row:
        problems.append(f"{row.depth} plies: {count.leaves} counted, {row} by formula")
    if count.wrong["knuth"]:
        problems.append(f"{row.depth} plies: {count.wrong['knuth']} nodes whose type Knuth's rule predicted wrongly")
    if count.misvalued:
        problems.append(f"{row.depth} plies: {count.misvalued} nodes with a wrong value")
    return problems


def _lines(table: list[Leaves], counts: dict[int, Count]) -> list[str]:
    rows = []
    for row in table:
        count = counts.get(row.depth)
        compared = "" if count is None else "same" if count.leaves == row else "NOT THE SAME"
        rows.append([str(row.depth), *(f"{number:,}" for number in (row.total, row.pv, row.cut, row.all)), compared])
    lines = [text_table(("plies", "total", "PV", "CUT", "ALL", "counted"), rows, left=0), "", _LEGEND]
    if not counts:
        return lines
    nodes = sum(count.nodes for count in counts.values())
    skipped = sum(count.skipped for count in counts.values())
    rules = []
    for rule in counts[table[0].depth].wrong:
        wrong = sum(count.wrong[rule] for count in counts.values())
        unlike = sum(count.unlike_knuth[rule] for count in counts.values())
        text = f"{wrong:,} nodes predicted wrongly" if wrong else "every node predicted correctly"
        if unlike:
            text += f"; {unlike:,} of the children not visited expected to be CUT, ALL by Knuth's rule"
        rules.append((rule, text))
    visited = f"{nodes:,} nodes visited in {counted(len(counts), 'tree')}"
    lines += ["", f"{visited}; cutoffs skipped {skipped:,} of their children", "predictions of node types:"]
    return [*lines, glossary(rules)]


def _as_json(row: Leaves, count: Count | None) -> dict[str, Any]:
    def by_type(leaves: Leaves) -> dict[str, Any]:
        return {"total": leaves.total, "pv": leaves.pv, "cut": leaves.cut, "all": leaves.all}

    if count is None:
        return {"plies": row.depth, **by_type(row)}
    figures = {name: getattr(count, name) for name in ("nodes", "misvalued", "skipped", "wrong", "unlike_knuth")}
    return {"plies": row.depth, **by_type(row), "counted": {**by_type(count.leaves), **figures}}
