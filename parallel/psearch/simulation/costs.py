"""Costs of actions in nanoseconds, the parameters of virtual time, and where they were measured.

The costs of sharing (`SHARING`) were added later: a file without them sets them to zero, and gives the same results.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from psearch.files.safe_files import json_value
from psearch.results import PsearchError
from psearch.terminal.streams import printable
from psearch_core.records import COLD_NODES

_TICKS_PER_NS = 1000
_MOST_NS = 1e9
_MOST_BYTES = 1 << 16
"""Most bytes of a file that are read."""
_NODES = ("node", "qnode")
_SHARES = ("jitter", "crowd")
"""Costs that are shares of other costs, not nanoseconds."""
_DEFAULTS_MEASURED = "2026-11-25"
_LONGEST_NAME = 100
"""Most characters of a text from a file that are shown."""
QUIET_LOAD = 0.5
"""Least mean number of jobs in the last minute at which a machine is not quiet."""
_HOT = ("leave", "lock", "abort")
"""Costs that are measured in a hot cache, while the defaults are those of a cold one."""
_HOLDS = ("hold_value", "hold_move", "hold_new_moves", "hold_learn", "hold_join")
SHARING = (*_HOLDS, "handover", "transfer", "poll_line", "cold", "crowd")
"""Costs of sharing locks, polls and cache lines."""


@dataclass(frozen=True)
class Costs:
    """Costs of actions in nanoseconds, as `bench/study/calibrate.py` measures them.

    The defaults are from the reference machine; those of memory shared between cores were measured on an evening when
    its two cores were far apart (docs/design/simulator.md).
    """

    node: float = 280.0
    """Time of a node of the main search."""
    qnode: float = 475.0
    """Time of a node of quiescence search."""
    open: float = 16.0
    join: float = 1630.0
    leave: float = 60.0
    lock: float = 20.0
    poll: float = 385.0
    poll_stack: float = 0.9
    """Extra time of a poll for each stack of the pool."""
    abort: float = 60.0
    claim: float = 110.0
    """Time to look up, take and release a claim in cache lines that another core has just written."""
    jitter: float = 0.0
    """Largest random increase of every cost, as a share of it, 0 to 1."""
    hold_value: float = 24.0
    """Time beyond `lock` for which a node's lock is held when a value arrives, a join fails, or a worker leaves."""
    hold_move: float = 235.0
    """Time beyond `lock` for which the lock is held to take a move that is ready."""
    hold_new_moves: float = 490.0
    """Time beyond `lock` for which the lock is held when moves are generated, valued or sorted first."""
    hold_learn: float = 113.0
    """Time beyond `lock` for which the lock is held when a value causes a cutoff, and histories are updated."""
    hold_join: float = 710.0
    """Time for which the lock is held when a helper takes its first move and reads the whole node, part of `join`."""
    handover: float = 73.0
    """Extra time if another worker held the lock last: the node's cache lines come from its core."""
    transfer: float = 180.0
    """Time to wait for a cache line that another core has just written."""
    poll_line: float = 5.0
    """Extra time of a poll for each line written since the last one; transfers overlap."""
    cold: float = 0.0
    """Extra time of the first node after a join, divided by the root of n for the n-th, up to `COLD_NODES`."""
    crowd: float = 0.04
    """Share by which a node takes longer while a second worker is busy; with many workers, at most twice this share."""
    lock_contended: float = 0.0
    """Time of a lock that another core takes all the time; reported but not used."""
    side_by_side: float = 1.0
    """Time of a node while an independent search runs, over its time alone; reported but not used."""
    machine: str = "2-core EPYC virtual machine"
    measured: str = ""
    """Date of the measurement."""
    system_load: float = 0.0
    """Mean number of jobs on the machine in the minute before the measurement; reported but not used."""

    @property
    def join_in_nodes(self) -> int:
        """Cost of a join in nodes, half of them of quiescence; at least 1."""
        return max(1, round(2 * self.join / (self.node + self.qnode)))

    def seconds_of(self, nodes: float) -> float:
        """Return the virtual time in which one worker searches this number of nodes, half of them of quiescence."""
        return nodes * (self.node + self.qnode) / 2e9

    def origin(self, here: str, file: str = "those of the log") -> str:
        """Return a line about the origin of these costs, for a table. here: name of this machine, as in `machine`;
        file: source of the costs if they are not the defaults."""
        if replace(self, jitter=0.0) == Costs():
            return (
                f"costs: the defaults ({self.machine}, {_DEFAULTS_MEASURED}); with those of this machine "
                "(bench/study/calibrate.py) a speedup may be twofold or half"
            )
        machine = "this machine" if self.machine == here else self.machine
        busy = f", at load {self.system_load:.1f}" if self.system_load >= QUIET_LOAD else ""
        date = self.measured[:_LONGEST_NAME] or "no date"
        return printable(f"costs: {file} ({machine[:_LONGEST_NAME]}, {date}{busy})")

    def far_off(self) -> list[str]:
        """Return a line for each cost that is more than five times the default, or less than a fifth of it."""
        words = []
        for field in fields(self):
            if field.type == "float" and field.default and field.name != "side_by_side":
                share = getattr(self, field.name) / field.default
                if share == 0 and field.name in SHARING:
                    continue
                if share > 5:
                    words.append(f"{field.name} is {share:,.0f} times the default")
                elif share < 1 / 5 and field.name not in _HOT:
                    words.append(f"{field.name} is {share:.2f} of the default")
        return words

    def write(self, record: np.void, stacks: int) -> None:
        """Write the costs in ticks into a `simulation_dtype` record. stacks: size of the pool, for polls."""
        costs = record["costs"]
        for name in costs.dtype.names or ():
            costs[name] = int(getattr(self, name) * ((1 << 16) if name in _SHARES else _TICKS_PER_NS))
        costs["poll"] = int((self.poll + self.poll_stack * stacks) * _TICKS_PER_NS)
        cold = int(self.cold * _TICKS_PER_NS)
        record["cold"] = [(cold << 32) // math.isqrt(number << 64) for number in range(1, COLD_NODES + 1)]

    def without_sharing(self) -> Costs:
        """Return a copy without costs of sharing: locks are held for `lock`, and memory is equally near to all."""
        nothing: dict[str, Any] = dict.fromkeys(SHARING, 0.0)
        return replace(self, **nothing)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")

    @classmethod
    def load(cls, path: Path) -> Costs:
        """Read a file that `save` wrote. Raises PsearchError if it is no such file."""
        try:
            with path.open("rb") as file:
                return cls.of(json_value(file.read(_MOST_BYTES)))
        except (OSError, ValueError) as error:
            raise PsearchError(f"cannot read costs from {path}: {error}") from None

    @classmethod
    def of(cls, values: Any) -> Costs:
        """Convert a JSON object, as written by `save`, to costs. Raises ValueError for any other value."""
        kinds = {field.name: (str,) if field.type == "str" else (int, float) for field in fields(cls)}
        if not isinstance(values, dict) or set(values) - set(kinds):
            raise ValueError("unknown fields")
        for name, value in values.items():
            if type(value) not in kinds[name] or not (isinstance(value, str) or 0 <= value <= _MOST_NS):
                raise ValueError(f"no value of {name}")
            if name in _NODES and value < 1:
                raise ValueError(f"no value of {name}: a node takes 1 ns at least")
        return cls(**{**dict.fromkeys(SHARING, 0.0), **values})
