"""Machine code for processors that the tests do not run on: nothing in it traps, and the order of memory is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from paths import TESTS

LIBC = {"abort", "clock_gettime", "memcpy", "memmove", "memset", "sched_yield", "usleep"}
"""Functions that are linked to a kernel: none of a compiler's own library, which no process needs to have loaded."""
TRAPS = {"brk", "udf", "hlt", "hvc", "smc", "svc", "wfi", "ud2", "ud1", "int3", "int", "hint"}
WHOLE = ("chess", "search")
TIMEOUT_S = 900


def compiled(triple: str, groups: tuple[str, ...], *processors: str) -> dict[str, dict[str, Any]]:
    """Compile groups; return what was made by processor and group."""
    command = [sys.executable, str(TESTS / "support" / "foreign_build.py"), triple, ",".join(groups), *processors]
    environment = {**os.environ, "PSEARCH_NO_PEXT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    assert len(found) == len(groups) * len(processors)
    for name, group in found.items():
        assert sum(group["instructions"].values()) > 300, name
        assert set(group["outside"]) <= LIBC, name
        assert not TRAPS & set(group["instructions"]), name
        assert group["registers"] == [], f"{name}: vectors that not every such processor has"
    return found


def check_arm(group: dict[str, Any], shares: bool, has_lse: bool) -> None:
    """The only system register read is the counter that programs may read; what workers share is ordered."""
    instructions = set(group["instructions"])
    assert all(operands.endswith(", CNTVCT_EL0") for operands in group["system"])
    if not shares:
        return
    assert group["system"], "the clock is read"
    counts = group["instructions"]
    assert counts.get("ldar", 0) + counts.get("ldapr", 0) > 50 and counts["stlr"] > 30
    assert counts["isb"] > 0, "spin loops"
    if has_lse:
        assert {"casal", "ldaddal"} <= instructions and not {"ldaxr", "stlxr"} & instructions
    else:
        assert counts["ldaxr"] == counts["stlxr"] > 20, "read-modify-write acquires and releases"
    assert not {"cas", "casa", "casl", "ldadd", "ldset", "ldclr", "ldxr", "stxr"} & instructions, "of a weaker order"


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S)
def test_whole_groups_for_arm() -> None:
    old, new = "generic", "neoverse-n1:lse,rcpc,crc"
    found = compiled("aarch64-unknown-linux-gnu", WHOLE, old, new)
    for processor in (old, new):
        check_arm(found[f"{processor} chess"], shares=False, has_lse=processor == new)
        check_arm(found[f"{processor} search"], shares=True, has_lse=processor == new)
