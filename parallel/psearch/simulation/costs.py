"""What things cost, in nanoseconds: the parameters of virtual time, with where they were measured.

The costs of sharing were added later than the others (`SHARING`). A file without them is from before, and charges
nothing for them: what was simulated with it comes out the same.
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
"""Size of the largest file that is read."""
_SHARES = ("jitter", "crowd")
"""Costs that are no nanoseconds, but shares of what something costs."""
_DEFAULTS_MEASURED = "2026-11-25"
_LONGEST_NAME = 100
"""Characters that are shown: a file may say anything."""
QUIET_LOAD = 0.5
"""Mean number of jobs in the last minute from which on a machine is not quiet."""
_HOT = ("leave", "lock", "abort")
"""Costs measured in a hot cache; the defaults are raised to what they cost in a cold one."""
_HOLDS = ("hold_value", "hold_move", "hold_new_moves", "hold_learn", "hold_join")
SHARING = (*_HOLDS, "handover", "transfer", "poll_line", "cold", "crowd")
"""Costs of locks, polls and cache lines when they are shared."""


@dataclass(frozen=True)
class Costs:
    """Nanoseconds of each action, as `bench/study/calibrate.py` measures them.

    The defaults are of the reference machine; what memory costs between cores is of an evening when its two were far
    apart (docs/design/simulator.md).
    """

    node: float = 280.0
    """a node of the main search"""
    qnode: float = 475.0
    """a node of quiescence"""
    open: float = 16.0
    join: float = 1630.0
    leave: float = 60.0
    lock: float = 20.0
    poll: float = 385.0
    poll_stack: float = 0.9
    """more for each stack of the pool"""
    abort: float = 60.0
    claim: float = 110.0
    """looking a claim up, taking it and giving it back, in lines that another core has just written"""
    jitter: float = 0.0
    """share by which every cost may be longer, drawn anew each time; 0 to 1"""
    hold_value: float = 24.0
    """how long a node's lock is held beyond `lock`, and others wait: a value comes in, a join fails, a worker leaves"""
    hold_move: float = 235.0
    """a move is taken from those there are"""
    hold_new_moves: float = 490.0
    """moves are generated, valued or sorted first"""
    hold_learn: float = 113.0
    """a value cuts the node off, and histories learn from it"""
    hold_join: float = 710.0
    """a helper takes a move: it reads all of the node for the first time. Its own time for it is part of `join`"""
    handover: float = 73.0
    """more where another worker has held the lock last: the node's lines come from its cache"""
    transfer: float = 180.0
    """a cache line that another core has just written, waited for"""
    poll_line: float = 5.0
    """more of a look for work for each line that was written since the last one; many are under way at a time"""
    cold: float = 0.0
    """the first node after a join; the n-th costs this over the square root of n more, up to `COLD_NODES`"""
    crowd: float = 0.04
    """share by which a node is longer while a second worker is busy; twice this share at most while many are"""
    lock_contended: float = 0.0
    """a lock that another core takes all the time; reported, not used"""
    side_by_side: float = 1.0
    """time of a node while a second, independent search runs, over its time alone; reported, not used: virtual workers
    do not slow each other down"""
    machine: str = "2-core EPYC virtual machine"
    measured: str = ""
    """date"""
    system_load: float = 0.0
    """jobs on the machine in the minute before it was measured, in the mean; reported, not used"""

    @property
    def join_in_nodes(self) -> int:
        """Return what a join costs, in nodes, half of them of quiescence; at least 1."""
        return max(1, round(2 * self.join / (self.node + self.qnode)))

    def seconds_of(self, nodes: float) -> float:
        """Return the virtual time in which one worker searches about so many nodes: the mean of what a node of the main
        search and one of quiescence cost."""
        return nodes * (self.node + self.qnode) / 2e9

    def told(self, here: str, file: str = "those of the log") -> str:
        """Return whose costs these are, in a line below a table. here: the machine, as `machine` has it, where it is
        made; file: where they come from if they are not the defaults."""
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
        """Return the costs that are more than five times the defaults, or less than a fifth, in words."""
        words = []
        for field in fields(self):
            if field.type == "float" and field.default and field.name != "side_by_side":
                share = getattr(self, field.name) / field.default
                if share > 5:
                    words.append(f"{field.name} is {share:,.0f} times the default")
                elif share < 1 / 5 and field.name not in _HOT:
                    words.append(f"{field.name} is {share:.2f} of the default")
        return words

    def write(self, record: np.void, stacks: int) -> None:
        """Fill the costs of a `simulation_dtype` record with ticks; a poll of a pool of this size."""
        costs = record["costs"]
        for name in costs.dtype.names or ():
            costs[name] = int(getattr(self, name) * ((1 << 16) if name in _SHARES else _TICKS_PER_NS))
        costs["poll"] = int((self.poll + self.poll_stack * stacks) * _TICKS_PER_NS)
        cold = int(self.cold * _TICKS_PER_NS)
        record["cold"] = [(cold << 32) // math.isqrt(number << 64) for number in range(1, COLD_NODES + 1)]

    def without_sharing(self) -> Costs:
        """Return the same costs, with nothing charged for what is shared: locks held for `lock`, and memory equally
        near to all."""
        nothing: dict[str, Any] = dict.fromkeys(SHARING, 0.0)
        return replace(self, **nothing)

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")

    @classmethod
    def load(cls, path: Path) -> Costs:
        """Read what `save` wrote. Raises PsearchError when it is not that."""
        try:
            with path.open("rb") as file:
                return cls.of(json_value(file.read(_MOST_BYTES)))
        except (OSError, ValueError) as error:
            raise PsearchError(f"cannot read costs from {path}: {error}") from None

    @classmethod
    def of(cls, values: Any) -> Costs:
        """Return what `save` writes, as a file or a log has it. Raises ValueError when it is not that."""
        kinds = {field.name: (str,) if field.type == "str" else (int, float) for field in fields(cls)}
        if not isinstance(values, dict) or set(values) - set(kinds):
            raise ValueError("unknown fields")
        for name, value in values.items():
            if type(value) not in kinds[name] or not (isinstance(value, str) or 0 <= value <= _MOST_NS):
                raise ValueError(f"no value of {name}")
        return cls(**{**dict.fromkeys(SHARING, 0.0), **values})
