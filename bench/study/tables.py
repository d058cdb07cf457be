"""The tables of the study in virtual time, all again with one command.

    python bench/study/tables.py --minutes 40 --out FOLDER [--jobs J] [--only default,policies]
    psearch simulate --from-log docs/measurements/study-selective/tables.jsonl.xz#policies

Each run of TABLES below is searched and kept as FOLDER/NAME.jsonl; one that is there already is not searched again, so
an interrupted command goes on where it was. Then the logs go into docs/measurements/study-selective/tables.jsonl.xz,
from which the second command prints a table.

--minutes is about the time that one core takes. It decides how many positions of its suite each run gets, evenly
spread, and beyond all of them how many repeats: the intervals are as wide as the square root of it is small. The trees
stay as they are, for their size changes what is found.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log2
from pathlib import Path

from pack_logs import read_packed, write_packed

from psearch.files.raw_log import RawLog, read_log
from psearch.lab.studies.tree_sizes import rule_name
from psearch.lab.studies.virtual_study import Study, run_study
from psearch.options import SearchOptions, pruning_named
from psearch.results import PsearchError
from psearch.simulation.costs import Costs
from psearch.terminal.status import StatusLine
from psearch.text.epd_text import SuitePosition, read_suite

DOCS = Path(__file__).resolve().parents[2] / "docs" / "measurements"
_SELECTIVE = DOCS / "study-selective"
LOGS = _SELECTIVE / "tables.jsonl.xz"
_NODES_A_SECOND = 0.8e6
"""Nodes a second in virtual time on one core, roughly."""
_SURVEY = 1.5
"""Nodes that finding a depth takes, times those of the tree, roughly."""
_FEWEST = 2
_POLICIES = ("calibrated", "felten", "ybw", "kannan", "garms", "knuth", "abdada", "lazy", "root")


@dataclass(frozen=True)
class Table:
    """A run: what is searched, and how much of the time it gets."""

    name: str
    suite: Path
    tree_nodes: int
    workers: tuple[int, ...]
    share: float
    policies: tuple[str, ...] = ("calibrated",)
    pruning: str = "modern"
    driver: str = "pvs"
    hash_mb: int = 16

    def nodes_a_position(self) -> float:
        """Return how many nodes one repeat of a position takes, roughly."""
        searches = 1 + _SURVEY + sum(_overhead(policy, count) for policy in self.policies for count in self.workers)
        return self.tree_nodes * searches

    def size(self, minutes: float, most: int) -> tuple[int, int]:
        """Positions, of so many, and repeats for so many minutes of all tables together."""
        searches = round(minutes * self.share * 60 * _NODES_A_SECOND / self.nodes_a_position())
        return min(max(searches, _FEWEST), most), max(1, searches // most)


def _overhead(policy: str, workers: int) -> float:
    """Nodes of so many workers times those of one, roughly."""
    return workers**0.7 if policy in ("abdada", "lazy") else 1.0 + 0.25 * log2(workers)


_BOTH = DOCS / "study" / "both.epd"
TABLES = (
    Table("default", _BOTH, 1_000_000, (2, 8, 32, 64), share=0.3, hash_mb=64),
    Table("null-windows", _BOTH, 1_000_000, (2, 8, 32, 64), share=0.3, driver="null", hash_mb=64),
    Table("default-small", _SELECTIVE / "sts250.epd", 150_000, (2, 8, 32), share=0.12),
    Table("policies", _SELECTIVE / "sts125.epd", 150_000, (8, 32), share=0.2, policies=_POLICIES),
    Table("plain", _SELECTIVE / "sts125.epd", 150_000, (2, 8, 32), share=0.08, pruning="plain"),
)
"""The trees of the first two have work for 64 workers (10,000 nodes for each, and more); the others compare."""


def spread(suite: Sequence[SuitePosition], count: int) -> list[SuitePosition]:
    """Return this many of the positions, evenly spread; all if there are no more."""
    count = min(count, len(suite))
    return [suite[number * len(suite) // count] for number in range(count)]


def measure(table: Table, minutes: float, folder: Path, jobs: int, status: StatusLine) -> None:
    """Search one table into its log, unless that is there."""
    path = folder / f"{table.name}.jsonl"
    if path.exists():
        return
    suite = read_suite(str(table.suite))
    positions, repeats = table.size(minutes, len(suite))
    study = Study(
        spread(suite, positions), None, table.workers, table.policies, Costs(),
        options=SearchOptions(pruning=pruning_named(table.pruning), driver=table.driver),
        hash_mb=table.hash_mb, tree_nodes=table.tree_nodes, repeats=repeats,
    )  # fmt: skip
    names = ("workers", "policies", "pruning", "driver", "tree_nodes")
    arguments = {"suite": table.suite.name, **{name: getattr(table, name) for name in names}, "hash": table.hash_mb}
    arguments |= {"positions": positions, "repeat": repeats, "minutes": minutes}
    about = {"study": "tables", "arguments": arguments, "costs": asdict(study.costs), "depths": rule_name(None)}
    unfinished = path.with_suffix(".part")

    with RawLog(unfinished, about) as log:
        run_study(study, jobs, log.add, lambda text, done=0, total=0: status(f"{table.name}: {text}", done, total))
    unfinished.rename(path)


def pack(logs: Path, folder: Path) -> None:
    """Put the runs of the folder into the file, beside those that are in it."""
    runs = read_packed(logs) if logs.exists() else {}
    for table in TABLES:
        path = folder / f"{table.name}.jsonl"
        if path.exists():
            samples, facts = read_log(path, dict)
            runs[table.name] = [facts, *samples]
    write_packed(logs, runs)


def main() -> None:
    """Measure what is missing, and pack it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="of the logs")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", metavar="NAME,NAME")
    parser.add_argument("--logs", type=Path, default=LOGS, help="the packed file")
    options = parser.parse_args()
    names = [table.name for table in TABLES]
    only = options.only.split(",") if options.only else names
    if not 0 < options.minutes < 1e6 or options.jobs < 1:
        parser.error("--minutes must be above 0 and below 1,000,000, --jobs positive")
    if not set(only) <= set(names):
        parser.error(f"--only wants some of {', '.join(names)}")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        with StatusLine() as status:
            for table in TABLES:
                if table.name in only:
                    measure(table, options.minutes, options.out, options.jobs, status)
        pack(options.logs, options.out)
    except (PsearchError, OSError) as error:
        raise SystemExit(f"tables: {error}") from None
    print(options.logs)


if __name__ == "__main__":
    main()
