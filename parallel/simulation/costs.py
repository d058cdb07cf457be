"""What things cost, in nanoseconds: the parameters of virtual time, with where they were measured."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from psearch.notation.own_kind import check_replaceable
from psearch.results import PsearchError

_TICKS_PER_NS = 1000
_MOST_NS = 1e9
_MOST_BYTES = 1 << 16
"""of a file"""


@dataclass(frozen=True)
class Costs:
    """Nanoseconds of each action. `psearch calibrate` measures them; the defaults are from the reference machine."""

    node: float = 710.0
    """a node of the main search"""
    qnode: float = 790.0
    """a node of quiescence"""
    open: float = 20.0
    join: float = 850.0
    leave: float = 60.0
    lock: float = 20.0
    poll: float = 151.0
    poll_stack: float = 1.3
    """more for each stack of the pool"""
    abort: float = 60.0
    claim: float = 110.0
    """looking a claim up, taking it and giving it back, in lines that another core has just written"""
    jitter: float = 0.0
    """share by which every cost may be longer, drawn anew each time; 0 to 1"""
    lock_contended: float = 0.0
    """a lock that another core takes all the time; told, not used"""
    side_by_side: float = 1.0
    """time of a node while a second, independent search runs, over its time alone; told, not used: virtual workers
    do not slow each other down"""
    machine: str = "2-core Xeon virtual machine"
    measured: str = ""
    """date"""

    @property
    def join_in_nodes(self) -> int:
        """What a join costs, in nodes, half of them of quiescence; at least 1."""
        return max(1, round(2 * self.join / (self.node + self.qnode)))

    def write(self, record: np.void, stacks: int) -> None:
        """Fill a `costs_dtype` record with ticks; a poll of a pool of this size."""
        for name in record.dtype.names or ():
            if name == "jitter":
                record[name] = int(self.jitter * 65536)
            else:
                record[name] = int(getattr(self, name) * _TICKS_PER_NS)
        record["poll"] = int((self.poll + self.poll_stack * stacks) * _TICKS_PER_NS)

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")

    @classmethod
    def check_place(cls, path: Path) -> None:
        """Raise PsearchError for a file that `save` would replace and that holds no costs."""
        check_replaceable(path, "a file of costs", _has_costs)

    @classmethod
    def load(cls, path: Path) -> Costs:
        """Read what `save` wrote. Raises PsearchError when it is not that."""
        try:
            with path.open("rb") as file:
                values = json.loads(file.read(_MOST_BYTES))
            kinds = {field.name: (str,) if field.type == "str" else (int, float) for field in fields(cls)}
            if not isinstance(values, dict) or set(values) - set(kinds):
                raise ValueError("unknown fields")
            for name, value in values.items():
                if type(value) not in kinds[name] or not (isinstance(value, str) or 0 <= value <= _MOST_NS):
                    raise ValueError(f"no value of {name}")
            return cls(**values)
        except (OSError, ValueError, RecursionError) as error:
            raise PsearchError(f"cannot read costs from {path}: {error}") from None


def _has_costs(head: bytes) -> bool:
    try:
        values = json.loads(head)
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and {"node", "qnode"} <= values.keys()
