"""`psearch predict`: measure how often the rules that predict node types are right, and what mistakes cost."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from psearch.faces.cli import study
from psearch.faces.cli.arguments import add_settings
from psearch.faces.cli.kernels import prepare_kernels
from psearch.faces.cli.output import complain, print_answer, refuse
from psearch.faces.cli.signals import Signals
from psearch.settings import DEPTH
from psearch.text.values import counted

if TYPE_CHECKING:
    from psearch.lab.studies.prediction_study import RuleReport

DESCRIPTION = """\
Measure the rules that predict node types: how often nodes expected to be PV, CUT or ALL
turned out so, how many CUT nodes the first move cut off, and the Brier scores of the
predicted type and of the calibrated P(no cutoff). Searches with 8 workers in virtual time
add whether moves were needed as often as predicted, and how many nodes mispredictions
wasted. All rules are measured on the same nodes. --suite and --depth are required."""

EXAMPLES = """\
examples:
  psearch predict --suite suite.epd --depth 9 --plot predict.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    study.add_suite(parser, "draw reliability curves")
    DEPTH.add_to(parser, "plies to search")
    words = "measure your own policy, too (several with commas between them)"
    parser.add_argument("--policy", metavar="FILE", help=words)
    add_settings(parser, "pruning", "evaluation", "with_")


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Measure the rules and print the table."""
    if options.suite is None or options.depth is None:
        refuse("predict needs --suite FILE and --depth D")
    study.check_plot(options)
    positions = study.read_positions(options)

    how = study.options_of(options)
    from psearch.lab.studies import prediction_study

    files = study.kernels_of(study.policies(options.policy) if options.policy else [])
    rules = (*prediction_study.RULES, *files)
    own = study.kernels_of(rules, options.with_)
    from psearch.lab.studies.prediction_study import ONE_TREE, WORKERS, legend, table
    from psearch.scheduler.scheduler_entries import PREDICTION, SEARCH

    prepare_kernels(PREDICTION, ONE_TREE, *(each.group(base) for each in own.values() for base in (SEARCH, ONE_TREE)))
    from psearch.lab.studies.tree_sizes import scale, scale_line, warnings
    from psearch.terminal.status import StatusLine

    reports: list[RuleReport] = []
    interrupted = False
    try:
        with StatusLine(only_terminal=True) as status:
            for report in prediction_study.study(
                positions, options.depth, rules=rules, options=how, progress=status, kernels=own
            ):
                reports.append(report)
    except KeyboardInterrupt:
        interrupted = True
    pruned = how.pruning_words
    nodes = reports[0].tree_nodes if reports else 0.0
    facts = {
        "depth": options.depth,
        "positions": len(positions),
        "tree_nodes": nodes,
        "pruning": pruned,
        "rules": [asdict(report) for report in reports],
        "interrupted": interrupted,
    }
    searched = f"{scale_line(len(positions), nodes)}, depth {options.depth}; pruning {pruned}"
    print_answer(options.json, facts, "\n\n".join([table(reports), searched, legend()]) if reports else "")
    cautions = warnings(len(positions), nodes, WORKERS, pruned) if reports else []
    for caution in cautions:
        complain(caution)
    if interrupted:
        complain(f"interrupted; {counted(len(reports), 'rule')} of {len(rules)} finished")
    if options.plot is not None and reports:
        from psearch.lab.studies.plots import plot_prediction

        title = f"{scale(len(positions), nodes)}, depth {options.depth}"
        plot_prediction(options.plot, reports, title, cautions)
    return signals.exit_status
