"""Parameters of time use in one match: what each of them is worth, in games by a clock that counts nodes.

    python bench/match/time_use.py moves_ahead=24:36 settled_percent=40:70 --clock 1000+10 --games 2000 \\
        --book a.epd b.epd --log tries.jsonl [--jobs 2]
    python bench/match/time_use.py --read tries.jsonl [more.jsonl]

The names are those of `psearch.processes.time_manager.TimeUse`; changes, log and table as in `factors.py`. Each side
has a clock for its game, --clock BASE+INCREMENT in thousands of nodes, and the manager of real games decides
here when to stop, with nodes for time: the games are the same whatever else the machine does, and a hundred times
shorter than those by the clock on the wall. What is not seen: the cost of starting and stopping a search, and nodes a
second that differ from position to position.

Exit status: 0, 2 bad input, 130 Ctrl-C (the log has what was played).
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import chess
from factors import Changes, Task, add_arguments, changed, play_changes
from matchplay.errors import Parser, run_script
from matchplay.in_process import play

from psearch.arena.arena import Arena
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.processes.time_manager import DEFAULT_USE, GameClock, TimeManager, TimeUse, allot
from psearch.results import Limits

_HASH_MB = 8
_NODES_A_SECOND = 1_000_000
"""Of the clock: what the manager takes for a second. Any number will do, but for the least time it gives, 1 ms."""
MATE_CP = 32_000


@dataclass
class NodeClock(TimeManager):
    """The manager, told nodes where it asks for seconds."""

    arena: Arena | None = None

    @property
    def _elapsed_s(self) -> float:
        assert self.arena is not None
        return int(self.arena.worker["nodes"].sum()) / _NODES_A_SECOND

    def is_due(self, elapsed_s: float) -> bool:
        """Whether to stop now. elapsed_s: not looked at."""
        return self._elapsed_s >= super().due_s()

    def due_s(self) -> float:
        """At once: it is looked after every slice."""
        return 0.0


class ClockPlayer:
    """One side: its use of time, its clock, and what it remembers of its game."""

    def __init__(self, base: int, increment: int) -> None:
        self._engine = Supervisor(1, _HASH_MB, "inline")
        self._use = DEFAULT_USE
        self._base = base
        self.increment = increment
        """nodes"""
        self.left = base
        """nodes"""

    def play_with(self, use: TimeUse) -> None:
        """Take another use of time, from the next move on."""
        self._use = use

    def close(self) -> None:
        """Give its memory back."""
        self._engine.close()

    def new_game(self) -> None:
        self._engine.forget()
        self.left = self._base

    def move(self, board: chess.Board) -> tuple[chess.Move, int]:
        """The move, and its score in centipawns; a mate is many."""
        clock = GameClock(self.left / _NODES_A_SECOND, self.increment / _NODES_A_SECOND)
        budget = allot(clock, 0.0, self._use)
        manager = NodeClock(budget, board.legal_moves.count(), use=self._use, arena=self._engine.arena)
        request = SearchRequest(
            board, Limits(), control=SearchControl(manager), live_from_s=math.inf, live_interval_s=math.inf
        )
        result = self._engine.search(request)
        assert result.bestmove is not None
        self.left = max(self.left - result.info.nodes, 0) + self.increment
        return result.bestmove, result.info.score.relative.score(mate_score=MATE_CP)


def _make(changes: Changes, base: int, increment: int) -> Callable[[Task], int]:
    players = ClockPlayer(base, increment), ClockPlayer(base, increment)

    def play_pair(task: Task) -> int:
        opening, signs = task
        for player, sign in zip(players, (1, -1), strict=True):
            player.play_with(changed(DEFAULT_USE, changes, [sign * one for one in signs]))
        return sum(play(players, opening, white).half_points for white in (0, 1))

    return play_pair


def _clock(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,7})\+(\d{1,6})", text)
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"must be BASE+INCREMENT in thousands of nodes, not {text[:40]!a}")
    return 1000 * int(found[1]), 1000 * int(found[2])


def run(words: Sequence[str] | None = None) -> int:
    """Play, or read what was played, and print."""
    parser = Parser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--clock", type=_clock, default=(1_000_000, 10_000), metavar="BASE+INC", help="(1000+10)")
    options = parser.parse_args(words)
    base, increment = options.clock
    facts = {"clock": [base, increment]}
    return play_changes(options, DEFAULT_USE, facts, lambda changes: partial(_make, changes, base, increment))


if __name__ == "__main__":
    sys.exit(run_script("time_use"))
