"""How far the node count of one worker depends on luck: the noise under every speedup.

    python bench/study/serial_spread.py --log LOG.jsonl [--times K]

LOG is the raw log of `psearch simulate` or `psearch speedup`. Each of its serial searches is done again K times to the
same depth, from a history of small random numbers instead of zeros, which changes nothing but the order of moves that
nothing is known about. Printed are the geometric mean of nodes over those of the log (more than 1 where depths were
chosen for being cheap: the second time they are less lucky) and the standard deviation of the logarithm.
"""

from __future__ import annotations

import argparse
from math import exp, sqrt
from pathlib import Path

import numpy as np
from study_log import read_serial_rows

from psearch.arena.arena import Arena
from psearch.arena.setup import perturb_history, write_search
from psearch.lab.studies.depths import history_seed
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch.terminal.status import StatusLine
from psearch.text.fen import parse_position


def repeated(arena: Arena, fen: str, depth: int, seed: int) -> int:
    """Nodes of one serial search from the perturbed history of this seed."""
    arena.forget()
    perturb_history(arena, seed)
    write_search(arena, parse_position(fen), Limits(depth=depth), SearchOptions(policy="serial"))
    work_alone(arena)
    return int(arena.worker[0]["nodes"])


def main() -> None:
    """Read, repeat, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--hash", type=int, default=64)
    options = parser.parse_args()
    if options.times < 1:
        raise SystemExit("serial_spread: --times must be at least 1")
    serial = read_serial_rows(options.log, "serial_spread")
    arena = Arena(workers=1, hash_mb=options.hash)
    logs = np.zeros((len(serial), options.times))
    with StatusLine() as status:
        for row, sample in enumerate(serial):
            status(f"{row + 1}/{len(serial)} {sample['position']}", row, len(serial))
            for column in range(options.times):
                nodes = repeated(arena, sample["fen"], sample["depth"], history_seed("spread", sample["fen"], column))
                logs[row, column] = np.log(nodes / sample["nodes"])
    arena.close()
    means = logs.mean(axis=1)
    half = 1.96 * means.std(ddof=1) / sqrt(len(means)) if len(means) > 1 else 0.0
    low, middle, high = (exp(means.mean() + way * half) for way in (-1, 0, 1))
    print(f"{len(serial)} positions, {options.times} times each")
    print(f"nodes against the log: x{middle:.3f} ({low:.3f} to {high:.3f})")
    print(f"standard deviation of ln(nodes): {logs.std():.2f}; from x{exp(logs.min()):.2f} to x{exp(logs.max()):.2f}")


if __name__ == "__main__":
    main()
