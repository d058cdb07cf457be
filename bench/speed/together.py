"""What one search by several machines costs and brings, on a cluster that is there: against this machine alone.

    python bench/speed/together.py --on ADDRESS [--threads N] [--movetimes 100,1000] [--rounds N] [--hash MB]

The benchmark's positions, each searched for each time by this machine alone and together with the others, in turn;
every search begins with empty tables. Late: when the answer came after the time was up. Entries: what this machine has
sent to each of the others, what has come, and how much of that said more than what was there. Nodes: of all machines.
CPU: what the program needed beside its workers, of one core.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

import chess

from psearch.bench import BENCH_POSITIONS
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.remote.one_position.entry_sharing import Sharing
from psearch.remote.one_position.joint_search import search_together
from psearch.remote.one_position.team import Team
from psearch.results import Limits, PsearchError

_ENTRY_BYTES = 16


class Row:
    """Searches of one kind."""

    def __init__(self) -> None:
        self.late_ms: list[float] = []
        self.nodes: list[float] = []
        self.seconds = 0.0
        self.sent = self.received = self.taken = 0
        self.cpu_s = 0.0

    def text(self) -> str:
        """As a row of a table."""
        late = sorted(self.late_ms)
        most = late[-1]
        median = statistics.median(late)
        speed = sum(self.nodes) / self.seconds
        sent, received = self.sent / self.seconds, self.received / self.seconds
        share = f"{self.taken / self.received:.0%}" if self.received else ""
        return (
            f"{median:.1f}, {most:.1f} | {speed:,.0f} | {sent:,.0f} | {received:,.0f} | {share} | "
            f"{(sent + received) * _ENTRY_BYTES / 1e6:.2f} | {self.cpu_s / self.seconds:.1%}"
        )


def measure(supervisor: Supervisor, team: Team, movetimes: Sequence[int], rounds: int) -> dict[tuple[int, str], Row]:
    """Rows by milliseconds and kind."""
    rows: dict[tuple[int, str], Row] = {}
    sharing = team.sharing(supervisor)
    for _ in range(rounds):
        for milliseconds in movetimes:
            for fen in BENCH_POSITIONS:
                for kind in ("alone", "together"):
                    supervisor.forget()
                    team.forget()
                    row = rows.setdefault((milliseconds, kind), Row())
                    _search(supervisor, team, fen, milliseconds, kind == "together", row, sharing)
    return rows


def _search(
    supervisor: Supervisor, team: Team, fen: str, milliseconds: int, is_joint: bool, row: Row, sharing: Sharing
) -> None:
    time.sleep(0.1)  # whoever is still at the last one is through
    request = SearchRequest(chess.Board(fen, chess960=True), Limits(movetime_ms=milliseconds))
    before = sharing.sent, sharing.received, sharing.taken
    cpu, begun = time.process_time(), time.perf_counter()
    result = search_together(supervisor, team, request) if is_joint else supervisor.search(request)
    seconds = time.perf_counter() - begun
    row.cpu_s += time.process_time() - cpu
    row.late_ms.append(1000 * seconds - milliseconds)
    row.nodes.append(result.info.nodes)
    row.seconds += seconds
    row.sent += sharing.sent - before[0]
    row.received += sharing.received - before[1]
    row.taken += sharing.taken - before[2]


def main(words: Sequence[str] | None = None) -> int:
    """Bad input is one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", required=True, metavar="ADDRESS")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hash", type=int, default=64)
    parser.add_argument("--movetimes", default="100,1000")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args(words)
    try:
        with Supervisor(options.threads, options.hash) as supervisor, Team(options.on, options.hash) as team:
            team.wait()
            names = ", ".join(f"{member.name} with {member.threads}" for member in team.members)
            print(f"this machine with {options.threads} threads; {names}\n")
            rows = measure(supervisor, team, list(map(int, options.movetimes.split(","))), options.rounds)
    except PsearchError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print("| ms | | late, ms: median, most | nodes/s | sent/s | received/s | news | MB/s | CPU of the program |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (milliseconds, kind), row in rows.items():
        print(f"| {milliseconds} | {kind} | {row.text()} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
