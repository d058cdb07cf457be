"""The simulator's error: virtual against real time to depth, position by position.

    python bench/study/simulator_error.py --real LOG.jsonl [--policy P] [--every K] [--costs FILE] [--jobs J]
                                          [--out FILE]

LOG is the raw log of `psearch speedup`. Every K-th of its positions is searched again in virtual time, to the same
depth, by one worker and by each worker count of the log; printed are both speedups and node overheads and the error,
and the geometric means with the 95% interval and the spread of the error.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

import numpy as np

from psearch.defaults import JOB_HASH_MB
from psearch.faces.cli.arguments import add_hash
from psearch.files.raw_log import read_log
from psearch.lab.studies.comparisons import mean_interval
from psearch.lab.studies.speedup_study import Sample
from psearch.lab.studies.virtual_study import Study, run_study
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import VirtualSample
from psearch.terminal.status import StatusLine
from psearch.terminal.table import text_table
from psearch.text.epd_text import SuitePosition
from psearch.text.fen import parse_position


def main() -> None:
    """Read, simulate, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path, required=True)
    parser.add_argument("--policy", default="calibrated")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--costs", type=Path)
    add_hash(parser, JOB_HASH_MB)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    real, _ = read_log(options.real, Sample)
    costs = Costs.load(options.costs) if options.costs else Costs()
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in real:
        groups[sample.fen].append(sample)
    chosen = list(groups.values())[:: options.every]
    counts = sorted({sample.threads for sample in real if sample.threads > 1})
    virtual: list[VirtualSample] = []
    with StatusLine() as status:
        for place, group in enumerate(chosen):
            board = parse_position(group[0].fen)
            position = SuitePosition(group[0].position, board)
            study = Study([position], group[0].depth, counts, (options.policy,), costs, hash_mb=options.hash)
            run_study(study, options.jobs, virtual.append)
            status(f"{place + 1}/{len(chosen)} {position.name}", place + 1, len(chosen))
    if options.out:
        options.out.write_text("".join(json.dumps(asdict(sample)) + "\n" for sample in virtual), "utf-8")
    head = ["position", "workers", "real", "virtual", "error", "nodes", "virtual"]
    for count in counts:
        rows, found = [], []
        for group in chosen:
            mine = [s for s in virtual if s.fen == group[0].fen]
            alone = next(s for s in mine if s.threads == 1)
            shared = next(s for s in mine if s.threads == count)

            def median(what: str, threads: int, samples: list[Sample] = group) -> float:
                wanted = [s for s in samples if s.threads == threads and s.policy in (options.policy, "serial")]
                return statistics.median(getattr(s, what) for s in wanted)

            real_speedup = median("seconds", 1) / median("seconds", count)
            virtual_speedup = alone.seconds / shared.seconds
            real_nodes = median("nodes", count) / median("nodes", 1)
            virtual_nodes = shared.nodes / alone.nodes
            found.append((real_speedup, virtual_speedup, real_nodes, virtual_nodes))
            error = virtual_speedup / real_speedup - 1
            speedups = [f"{real_speedup:.2f}", f"{virtual_speedup:.2f}", f"{error:+.1%}"]
            rows.append([group[0].position, str(count), *speedups, f"{real_nodes:.2f}", f"{virtual_nodes:.2f}"])
        print(text_table(head, rows))
        logs = np.log(found)
        errors = logs[:, 1] - logs[:, 0]
        spread = errors.std(ddof=1) if len(errors) > 1 else 0.0
        low, high = np.exp(mean_interval(errors))
        real_speedup, virtual_speedup, real_nodes, virtual_nodes = np.exp(logs.mean(axis=0))
        print(
            f"{count} workers, {len(errors)} positions: virtual over real x{virtual_speedup / real_speedup:.3f} "
            f"({low:.3f} to {high:.3f}), spread of a position {spread:.1%}; "
            f"real x{real_speedup:.3f}, virtual x{virtual_speedup:.3f}; "
            f"nodes, real x{real_nodes:.3f}, virtual x{virtual_nodes:.3f}"
        )


if __name__ == "__main__":
    main()
