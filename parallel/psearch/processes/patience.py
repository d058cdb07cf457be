"""Time limits for child processes: how long one may be silent or slow before the program continues without it.

Silence is counted in checks, not in seconds, because there are no checks while the machine is suspended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """Limits after which a process that has not ended counts as lost."""

    look_s: float
    """Seconds between two checks, each of which wakes the program."""
    silent_looks: float
    """Consecutive checks without a sign of progress after which the process is lost."""
    halted_looks: int = 2
    """Consecutive checks in a stopped state after which it is lost: at one, the whole program may just be resuming."""


SEARCH = Patience(0.15, 100)
"""Limit for a worker that searches. 15 s: each of 512 workers on one core runs every three, and a disk may be slow."""
START = Patience(0.15, 800)
"""Limit for a worker that starts. 120 s: the system may have to find the pages of its table."""
TASK = Patience(1.0, 60)
"""Limit for a process with a task, which sends a heartbeat every `BEAT_S`."""
TASK_START = Patience(1.0, 120)
"""Limit for a process that prepares for its tasks: it may have to compile kernels."""
TASK_IN_SILENCE = Patience(1.0, math.inf)
"""Limit for a process that is idle or sends no heartbeats: only a stopped one is lost."""
RULE = Patience(0.2, 100)
"""Limit for a process that answers a question about a user's game."""
LONG_RULE = Patience(0.2, math.inf)
"""Limit for a process that counts the leaves of a user's game, which may take hours."""

BEAT_S = 2.0
"""Seconds between two heartbeats of a process with a task."""
DEATH_S = 0.2
"""Seconds until a killed process has ended, unless it is stuck in the kernel."""
QUIT_S = 1.0
"""Seconds until workers that were asked to end have ended."""
END_S = 5.0
"""Seconds until all killed processes of a list of tasks have ended."""
LOST_STARTS = 5
"""Consecutive losses before a process, or a set of workers, is ready after which no other is started."""
TASK_TRIES = 3
"""Losses of a process with the same task after which the task is not tried again."""

SERVER = Patience(0.25, 40)
"""Limit for a request to the fork server. 10 s: a fork takes milliseconds, but a thousand may be ahead of it."""
SERVER_REAP = Patience(0.25, 1)
"""Limit for an exit code from the fork server."""
SERVER_START_S = 120.0
"""Seconds until a fork server has loaded the kernels, while nothing waits for it."""
SERVER_SEARCH_S = 5.0
"""Seconds until a fork server has loaded the kernels, while a search waits."""
SERVER_END_S = 1.0
"""Seconds until a fork server that was asked to end has ended."""

CLOSE_S = 2.0
"""Seconds until another thread has left its stopped search, when the engine is closed."""
SETTLE_S = 0.3
"""Seconds to wait for workers that are still busy with the last search before the next one starts."""
SETTLE_SHARE = 0.25
"""Share of the next search's time limit that `SETTLE_S` must not exceed."""
LEAST_SETTLE_S = 0.1
"""Least seconds to wait for late workers, since replacing them takes time too."""
LEAST_SETTLE_SHARE = 0.125
"""Share of a game's clock that `LEAST_SETTLE_S` must not exceed."""
INTERRUPTED_S = 0.1
"""Seconds for workers to stop when an exception ends the search."""
SHORTAGE_S = 10.0
"""Seconds to wait for the memory of a control block: workers with the previous one may not have ended yet."""
REPAIR_S = 0.05
"""Expected seconds to replace workers. With less time left, a search ends with the result it has."""
SHORT_LIFE_S = 0.1
"""Seconds within which workers that end without a result had a short life."""
SHORT_LIVES = 5
"""Consecutive short lives after which the position is taken to be the cause."""
