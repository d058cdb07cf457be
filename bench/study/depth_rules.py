"""What the choice of the depth does to a speedup: a policy against itself, which must give 1.00, by three rules.

    python bench/study/depth_rules.py --suite FILE.epd [--tree-nodes N] [--repeat R] [--workers 8] [--log LOG.jsonl]
                                      [--nearest-only]

In virtual time. *Nearest* is what `psearch simulate` and `psearch speedup` do: the depth comes from a search apart, and
every search has luck of its own. *First* and *last* are what they did: the first depth beyond so many nodes and the
last one within them, of the serial search that is then the base; all from empty histories. Printed are the ratios that
each rule finds: of the serial search over serial searches with other luck, of one worker of the default policy over the
serial search, and with --workers of so many workers. A base that was unlucky shows as more than 1.00.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from psearch.defaults import DEFAULT_POLICY, JOB_HASH_MB
from psearch.faces.cli.arguments import add_hash
from psearch.files.raw_log import RawLog
from psearch.lab.studies.depths import sample_seed
from psearch.lab.studies.speedup_study import Row, compare
from psearch.lab.studies.virtual_study import Study, run_study
from psearch.options import SearchOptions
from psearch.results import PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.terminal.status import StatusLine
from psearch.terminal.table import text_table
from psearch.text.epd_text import SuitePosition, read_suite

_TOO_QUICK = 0.05
_LONGEST = 12
"""An iteration that takes the whole beyond this many times the nodes is not waited for."""
_SERIAL = SearchOptions(policy="serial")


def first_beyond(sizes: Mapping[int, float], wanted: float) -> int:
    """The first depth that needs so many nodes; 0 if none was finished."""
    return min((depth for depth, size in sizes.items() if size >= wanted), default=0)


def last_within(sizes: Mapping[int, float], wanted: float) -> int:
    """The last depth within so many nodes; 0 if they are less than a twentieth of them."""
    depth = max((depth for depth, size in sizes.items() if size <= wanted), default=0)
    return depth if depth and sizes[depth] >= _TOO_QUICK * wanted else 0


OLD_RULES = {"first": first_beyond, "last": last_within}


@dataclass(frozen=True)
class RuleSample(VirtualSample):
    """A search, for the log."""

    rule: str = ""
    compared: str = ""
    """as what it counts: the base, or what is compared with it"""


@dataclass(frozen=True)
class Finding:
    """One ratio."""

    rule: str
    compared: str
    row: Row


class Rules:
    """Searches the positions by each rule."""

    def __init__(self, options: argparse.Namespace, suite: Sequence[SuitePosition], log: RawLog | None) -> None:
        self.options = options
        self.suite = suite
        self.log = log
        self.costs = Costs()

    def _keep(self, rule: str, compared: str, samples: Sequence[VirtualSample]) -> None:
        for sample in samples if self.log is not None else ():
            assert self.log is not None
            self.log.add(RuleSample(**asdict(sample), rule=rule, compared=compared))

    def nearest(self, status: StatusLine) -> list[Finding]:
        """As the commands do it: the first half of the repeats is the base, the second is compared with it."""
        repeats = self.options.repeat
        study = Study(
            self.suite, None, [1], (), self.costs, self.options.seed, hash_mb=self.options.hash,
            tree_nodes=self.options.tree_nodes, repeats=2 * repeats,
        )  # fmt: skip
        found = []
        base: list[VirtualSample] = []
        for policy in ("serial", DEFAULT_POLICY):
            samples: list[VirtualSample] = []
            run_study(replace(study, base=policy), self.options.jobs, samples.append, status)
            if not base:
                base = [sample for sample in samples if sample.repeat < repeats]
                self._keep("nearest", "base", base)
            others = [sample for sample in samples if sample.repeat >= repeats]
            found.append(self._found("nearest", f"one worker, {policy}", others, base))
        if self.options.workers:
            samples = []
            study = replace(study, workers=[self.options.workers], policies=[DEFAULT_POLICY], repeats=repeats)
            run_study(study, self.options.jobs, samples.append, status)
            shared = [sample for sample in samples if sample.threads > 1]
            found.append(self._found("nearest", f"{self.options.workers} workers", shared, base))
        return found

    def old(self, rule: str, status: StatusLine) -> list[Finding]:
        """As the commands did it, and the base against serial searches with other luck."""
        wanted = self.options.tree_nodes
        base, others, shared = [], [], []
        alone = Simulator(1, self.options.hash, self.costs)
        many = Simulator(self.options.workers, self.options.hash, self.costs) if self.options.workers else None

        def is_enough(found: dict[int, int], nodes: int) -> bool:
            return max(found.values(), default=0) >= wanted or nodes >= _LONGEST * wanted

        for number, position in enumerate(self.suite, start=1):
            name, board = position.name, position.board
            status(f"{rule} {number}/{len(self.suite)} {name}", number, len(self.suite))
            depth = OLD_RULES[rule](alone.iterations(board, _SERIAL, is_enough), wanted)
            if depth == 0:
                continue
            base.append(alone.search(name, board, depth, _SERIAL))
            for repeat in range(self.options.repeat):
                history = sample_seed(self.options.seed, board.fen(), "serial", 1, repeat)
                others.append(alone.search(name, board, depth, _SERIAL, history=history))
            if many is not None:
                shared.append(many.search(name, board, depth, SearchOptions()))
        self._keep(rule, "base", base)
        found = [self._found(rule, "one worker, serial", others, base)]
        if many is not None:
            found.append(self._found(rule, f"{self.options.workers} workers", shared, base))
            many.close()
        alone.close()
        return found

    def _found(
        self, rule: str, compared: str, samples: Sequence[VirtualSample], base: Sequence[VirtualSample]
    ) -> Finding:
        self._keep(rule, compared, samples)
        return Finding(rule, compared, compare(samples, base))


def table(findings: Sequence[Finding]) -> str:
    """One line for each ratio."""
    lines = []
    for finding in findings:
        row = finding.row
        half = "-" if row.low is None or row.high is None else f"{math.log(row.high / row.low) / 2:.1%}"
        interval = "-" if row.low is None or row.high is None else f"{row.low:.3f} - {row.high:.3f}"
        cells = [str(row.positions), f"{row.speedup:.3f}", interval, half, f"{row.node_overhead:.3f}"]
        lines.append([finding.rule, finding.compared, *cells])
    head = ["rule", "against the base", "positions", "speedup", "95% interval", "half width", "nodes"]
    return text_table(head, lines, left=2)


def main() -> None:
    """Search, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--tree-nodes", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3, help="searches with luck of their own, on each side")
    parser.add_argument("--workers", type=int, default=0, help="so many against one as well")
    parser.add_argument("--nearest-only", action="store_true", help="not the old rules")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes for the rule that is used")
    add_hash(parser, JOB_HASH_MB)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    if options.tree_nodes < 1000 or options.repeat < 1 or options.workers < 0 or options.workers == 1:
        parser.error("--tree-nodes from 1000, --repeat from 1, --workers from 2")
    try:
        suite = read_suite(options.suite)
        about = {"study": "depth rules", "suite": options.suite, "tree_nodes": options.tree_nodes}
        log = RawLog(options.log, {**about, "repeat": options.repeat, "seed": options.seed}) if options.log else None
        rules = Rules(options, suite, log)
        with StatusLine() as status:
            findings = rules.nearest(status)
            for rule in () if options.nearest_only else OLD_RULES:
                findings += rules.old(rule, status)
    except PsearchError as error:
        raise SystemExit(f"depth_rules: {error}") from None
    print(f"{len(suite)} positions, about {options.tree_nodes:,} nodes, repeats: {options.repeat}")
    print(table(findings))
    if log is not None:
        log.__exit__()


if __name__ == "__main__":
    main()
