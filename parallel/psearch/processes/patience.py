"""How long a child process may show nothing, or take for something, before the program goes on without it.

What is counted in looks is not counted in seconds: while the machine sleeps there are no looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """When a process that has not ended counts as lost."""

    look_s: float
    """time between two looks; each wakes the program"""
    silent_looks: float
    """looks in a row at which a process that should show something has shown nothing"""
    halted_looks: int = 2
    """looks in a row at which it was stopped: after a single one the whole program may just be going on after a stop"""


SEARCH = Patience(0.15, 100)
"""A worker that searches. 15 s: 512 workers on one core have a turn in three, and a disk may be slow."""
START = Patience(0.15, 800)
"""A worker that starts. 120 s: the pages of its table may have to be found."""
TASK = Patience(1.0, 60)
"""A process with a task, which says every `BEAT_S` that it works."""
TASK_START = Patience(1.0, 120)
"""A process that makes what does its tasks: there may be kernels to compile."""
TASK_IN_SILENCE = Patience(1.0, math.inf)
"""A process that does not say that it works, or has nothing to do."""
RULE = Patience(0.2, 100)
"""A process that answers a question about a user's game."""
LONG_RULE = Patience(0.2, math.inf)
"""A process that counts the leaves of a user's game, which may take hours."""

BEAT_S = 2.0
"""Seconds between two messages of a process with a task, if it has nothing else to say."""
DEATH_S = 0.2
"""Seconds until a process that was killed has ended: longer only in the depths of the kernel."""
QUIT_S = 1.0
"""Seconds until workers that were asked to end have done so."""
END_S = 5.0
"""Seconds until all processes of a list of tasks, which were killed, have ended."""
LOST_STARTS = 5
"""Processes, or sets of workers, that are lost one after the other before they are ready, before none are started."""
TASK_TRIES = 3
"""Processes that are lost with the same task before it is given to no other."""

SERVER = Patience(0.25, 40)
"""The fork server with a request. 10 s: a fork takes milliseconds, but a thousand new workers may be ahead of it."""
SERVER_REAP = Patience(0.25, 1)
"""The fork server when it is asked how a process ended."""
SERVER_START_S = 120.0
"""Seconds until a fork server has loaded the kernels, where there is time."""
SERVER_SEARCH_S = 5.0
"""Seconds until a fork server has loaded the kernels, while a search waits."""
SERVER_END_S = 1.0
"""Seconds until a fork server has ended, after it was asked to."""

CLOSE_S = 2.0
"""Seconds until another thread leaves a search that was stopped, when the engine is closed."""
SETTLE_S = 0.3
"""Seconds for workers that are late from the last search, before the next one."""
SETTLE_SHARE = 0.25
"""Share of the next search's time limit that `SETTLE_S` must not exceed."""
LEAST_SETTLE_S = 0.1
"""Seconds that late workers have at least, since to replace them takes time as well."""
LEAST_SETTLE_SHARE = 0.125
"""Share of a game's clock that `LEAST_SETTLE_S` must not exceed."""
INTERRUPTED_S = 0.1
"""Seconds for workers to stop when the caller's thread has something urgent to raise."""
SHORTAGE_S = 10.0
"""Seconds to wait for the memory of a control block: the workers that had the last one may not have ended yet."""
REPAIR_S = 0.05
"""Seconds to replace workers. Nearer to its time limit than this a search ends with what it has."""
SHORT_LIFE_S = 0.1
"""Workers that end within this time, and find nothing, have had a short life."""
SHORT_LIVES = 5
"""Short lives in a row after which workers are taken to die of the position."""
