"""How long the processes of a searcher outlive a program that is killed while all of them search.

    python bench/speed/ending.py [--workers N,N] [--hash MIB] [--how alone,stopped,killed]

For each number of workers, start method and way: seconds from the SIGKILL of the program until the last of them is
gone. stopped: one worker was halted before; killed: one was killed with the program, perhaps with a lock in its hand.
The exit status is 1 if any process is left after half a minute; it is killed then.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time

from psearch.processes.lifetime import process_state

PROGRAM = """
import sys
import chess
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits

workers, hash_mb, method = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
engine = Supervisor(workers, hash_mb, start_method=method)
pids = [worker.pid for worker in engine.pool.workers]
if method == "forkserver":
    from psearch.processes.starting.fork_client import fork_server
    pids.append(fork_server()._process.pid)
print(*pids, flush=True)
engine.search(SearchRequest(chess.Board(), Limits(movetime_ms=100_000)))
"""
METHODS = ("fork", "forkserver")
WAYS = {"alone": None, "stopped": signal.SIGSTOP, "killed": signal.SIGKILL}
SEARCHING_S = 2.0
PATIENCE_S = 30.0


def outlived(workers: int, hash_mb: int, method: str, way: str) -> tuple[float, list[int]]:
    """Seconds until all are gone, and those that were not."""
    command = [sys.executable, "-c", PROGRAM, str(workers), str(hash_mb), method]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        left = [int(word) for word in program.stdout.readline().split()]
        time.sleep(SEARCHING_S)
        number = WAYS[way]
        if number is not None:
            os.kill(left[0], number)
        start = time.monotonic()
        program.kill()
        while left and time.monotonic() - start < PATIENCE_S:
            time.sleep(0.005)
            left = [pid for pid in left if process_state(pid) not in (None, "Z")]
        return time.monotonic() - start, left


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="8,512", metavar="N,N")
    parser.add_argument("--hash", type=int, default=64, metavar="MIB")
    parser.add_argument("--how", default=",".join(WAYS), metavar="WAY,WAY")
    options = parser.parse_args()
    status = 0
    for workers in map(int, options.workers.split(",")):
        for method in METHODS:
            for way in options.how.split(","):
                seconds, left = outlived(workers, options.hash, method, way)
                print(f"{workers:4} workers, {options.hash} MiB, {method:10} {way:7} {seconds:6.2f} s", flush=True)
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                    status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
