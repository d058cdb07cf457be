"""Kernels of the scheduler with something wrong in them, made from their source: the changes of `tests/model`.

`python kernel_mutations.py FOLDER NAME SEEDS` says what a search finds of it, and ends with status 1 if it does.
"""

from __future__ import annotations

import inspect
import sys
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from preemptive import group_of, hunt

from psearch_core.toolchain.groups import Group

_SPLITTING, _STEP = "psearch.scheduler.splitting", "psearch.scheduler.step"
_ITERATIONS = "psearch.scheduler.iterations"


@dataclass(frozen=True)
class Change:
    """In the source of one kernel."""

    kernel: str
    before: str
    after: str = ""
    module: str = _SPLITTING

    @property
    def symbol(self) -> str:
        return f"{self.module}.{self.kernel}"


_TAKE_NEXT = "        return _take_move(ctx, wk, frame, node, True, False)"
_TAKE_WITHOUT_LOCK = """        release(ctx, wk, node)
        cursor = node.cursor
        preemption_point(ctx)
        node.cursor = cursor
        acquire(ctx, wk, home)
        return _take_move(ctx, wk, frame, node, True, False)"""
_OPEN = "        open_node(ctx, wk, home)\n"
_REPORT_LOCK = """        acquire(ctx, wk, home)
        if atomic_load(closed_of(node)) != 0:
            lost ="""
_REPORT_WITHOUT_LOCK = """        alpha, best = node.alpha, node.best
        preemption_point(ctx)
        node.alpha, node.best = alpha, best
        acquire(ctx, wk, home)
        if atomic_load(closed_of(node)) != 0:
            lost ="""
_CUTOFF = """        withdraw(ctx, home)
        preemption_point(ctx)
        atomic_store(closed_of(node), CLOSED_CUTOFF)
        if node.inside > 1:
            raise_abort_epoch(ctx)
"""
_PARK = """        parked.nodes_before_runner += wk.nodes
        preemption_point(ctx)
        atomic_store(state_of(parked), STACK_PARKED)
    release(ctx, wk, node)
"""
_PARK_LATE = """        parked.nodes_before_runner += wk.nodes
    release(ctx, wk, node)
    if not last and not helper:
        atomic_store(state_of(stack_of(ctx, home_stack)), STACK_PARKED)
"""
_GIVE_STACK_BACK = """        release(ctx, wk, node)
        free_stack(ctx, stack)
"""

MUTATIONS = {
    "JOIN_KEEPS_EPOCH": [Change("join", "    wk.seen_epoch = -1\n")],
    "JOIN_SKIPS_OPEN": [Change("join", "atomic_load(open_of(node)) != 0 and ")],
    "JOIN_COUNTS_LATE": [
        Change("join", "    node.inside += 1\n", "    inside = node.inside\n"),
        Change("join", "    atomic_add(idle", "    node.inside = inside + 1\n    atomic_add(idle"),
    ],
    "JOIN_KEEPS_STACK": [Change("join", _GIVE_STACK_BACK, _GIVE_STACK_BACK.partition("        free_stack")[0])],
    "JOIN_KEEPS_LOCK": [Change("join", "        release(ctx, wk, node)\n        free", "        free")],
    "LEAVE_COUNTS_LATE": [
        Change("leave", "    node.inside -= 1\n", "    inside = node.inside - 1\n"),
        Change("leave", "    last = node.inside == 0\n", "    last = inside == 0\n"),
        Change("leave", "    if ctx.trace != 0 and last", "    node.inside = inside\n    if ctx.trace != 0 and last"),
    ],
    "LEAVE_STAYS_OPEN": [Change("leave", "        atomic_store(open_of(node), 0)\n")],
    "LEAVE_NEVER_LAST": [Change("leave", "last = node.inside == 0", "last = node.inside < 0")],
    "PARK_AFTER_RELEASE": [Change("leave", _PARK, _PARK_LATE)],
    "FREE_INSTEAD_OF_PARK": [Change("leave", "STACK_PARKED", "STACK_FREE")],
    "ADOPT_STAYS_PARKED": [
        Change("leave", "        atomic_store(state_of(stack_of(ctx, home_stack)), STACK_ACTIVE)\n")
    ],
    "ADOPT_NOTHING": [Change("leave", "    if not last:\n", "    if not last or helper:\n")],
    "EPOCH_BEFORE_CLOSED": [
        Change("_after_child", "        if node.inside > 1:\n            raise_abort_epoch(ctx)\n", module=_STEP),
        Change(
            "_after_child",
            "        atomic_store(closed_of(node), CLOSED_CUTOFF)\n",
            "        raise_abort_epoch(ctx)\n        preemption_point(ctx)\n"
            "        atomic_store(closed_of(node), CLOSED_CUTOFF)\n",
            _STEP,
        ),
    ],
    "CUTOFF_KEEPS_EPOCH": [Change("_after_child", "            raise_abort_epoch(ctx)\n", "            pass\n", _STEP)],
    "CUTOFF_NOT_CLOSED": [Change("_after_child", "        atomic_store(closed_of(node), CLOSED_CUTOFF)\n", "", _STEP)],
    "CUTOFF_NOT_WITHDRAWN": [Change("_after_child", _CUTOFF, _CUTOFF.partition("\n")[2], _STEP)],
    "EXHAUSTED_NOT_WITHDRAWN": [
        Change("join", "        if move == NO_MOVE:\n            withdraw(ctx, home)\n"),
        Change("_take_move", "        withdraw(ctx, home)\n", "", _STEP),
    ],
    "OPEN_WITHOUT_LOCK": [
        Change("open_node", "    acquire(ctx, wk, home)"),
        Change("_next_move", _OPEN, _OPEN + "        offer(ctx, home)\n        acquire(ctx, wk, home)\n", _STEP),
    ],
    "OPEN_STAYS_CLOSED": [Change("open_node", "    atomic_store(closed_of(node), 0)\n")],
    "TAKE_WITHOUT_LOCK": [Change("_after_child", _TAKE_NEXT, _TAKE_WITHOUT_LOCK, _STEP)],
    "REPORT_WITHOUT_LOCK": [Change("_after_child", _REPORT_LOCK, _REPORT_WITHOUT_LOCK, _STEP)],
    "UNWIND_NOT_CLOSED": [Change("unwind", "        atomic_store(closed_of(node), CLOSED_ABORTED)\n")],
    "UNWIND_LOOKS_AT_STOP_ONLY": [Change("unwind", "np.int64(node.open_parent)", "np.int64(-1)")],
    "ENTER_LOOKS_AT_PARENT_ONLY": [Change("is_dead", "np.int64(node.open_parent)", "np.int64(-1)")],
    "ABORTED_IS_FINISHED": [
        Change("leave", "STATE_UNWIND if closed == CLOSED_ABORTED else STATE_FINISH", "STATE_FINISH")
    ],
    "STOP_KEEPS_EPOCH": [Change("stop_all", "    raise_abort_epoch(ctx)\n")],
    "MAIN_ROOT_STOPS_NOBODY": [Change("_end_search", "        stop_all(ctx)\n", "        pass\n", _ITERATIONS)],
    "MAIN_ROOT_OF_WORKER": [Change("_end_search", "wk.stack == _MAIN_ROOT", "wk.index == _MAIN_ROOT", _ITERATIONS)],
    "ANY_ROOT_ENDS_SEARCH": [Change("_end_search", "roots_of(hd), -1) == 1", "roots_of(hd), -1) >= 1", _ITERATIONS)],
    "ABORTED_ROOT_NOT_COUNTED": [
        Change(
            "root_aborted",
            "    return _end_search(ctx, wk)",
            "    free_stack(ctx, wk.stack)\n    become_idle(ctx, wk)\n    return STATE_IDLE",
            _ITERATIONS,
        )
    ],
    "ROOTS_NOT_ATOMIC": [
        Change(
            "_end_search",
            "    free_stack(ctx",
            "    roots = atomic_load(roots_of(hd)) - 1\n    free_stack(ctx",
            _ITERATIONS,
        ),
        Change(
            "_end_search",
            "    if atomic_add(roots_of(hd), -1) == 1:\n",
            "    atomic_store(roots_of(hd), roots)\n    if roots == 0:\n",
            _ITERATIONS,
        ),
    ],
}
"""Changes of the kernels, by the names of `tests/model/mutations.py`."""

NEEDS_CHECKS = ("OPEN_WITHOUT_LOCK",)
"""Noticed by an assertion of a kernel, in a build that has them: it takes a rare order of steps to do harm."""

ONLY_IN_THE_MODEL = {
    "JOIN_TAKES_BEFORE_LOCK": "to take a move is one kernel, which is not interrupted here: as TAKE_WITHOUT_LOCK",
    "JOIN_SKIPS_CLOSED": "whoever has joined a closed node sees that at its next node, and leaves: wasted time only",
    "REPORT_TO_CLOSED": "the value is right, and nobody needs it",
    "TAKE_SKIPS_CLOSED": "as JOIN_SKIPS_CLOSED",
    "ANSWER_OF_WORKER": "what a root has shown lies on its stack: a worker has no place for it",
    "VOTE_READS_COPIED_FIELD": "a wrong depth beside the answer, which these searches do not look at",
}
"""Mutations that a search cannot notice, and why."""

_HEAD = """from {module} import *
import {module} as _original

globals().update({{name: value for name, value in vars(_original).items() if not name.startswith("__")}})


"""


def changed_sources(name: str) -> dict[str, str]:
    """The kernels of one mutation with its changes made; an `AssertionError` where the source has become another."""
    sources: dict[str, str] = {}
    for change in MUTATIONS[name]:
        if change.symbol not in sources:
            kernel = getattr(import_module(change.module), change.kernel)
            sources[change.symbol] = inspect.getsource(kernel.py_func)
        if sources[change.symbol].count(change.before) != 1:
            raise AssertionError(f"{name}: not once in {change.symbol}: {change.before!r}")
        sources[change.symbol] = sources[change.symbol].replace(change.before, change.after)
    return sources


def _write(folder: Path, name: str) -> dict[str, str]:
    """A module for each kernel that is changed; gives what replaces what.

    Its name has a checksum: the cache of kernels knows a module by name, and takes that of an older folder for it.
    """
    replaced = {}
    for symbol, source in changed_sources(name).items():
        module, _, kernel = symbol.rpartition(".")
        own = f"mutated_{name.lower()}_{zlib.crc32(source.encode()):08x}"
        (folder / f"{own}.py").write_text(_HEAD.format(module=module) + source)
        replaced[symbol] = f"{own}.{kernel}"
    return replaced


def groups(folder: Path, names: Iterable[str]) -> dict[str, Group]:
    """The group of each mutation; its modules are written into the folder, which must be on `sys.path`."""
    return {name: group_of(f"mutated_{name.lower()}", _write(folder, name)) for name in names}


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    found = hunt(groups(Path(sys.argv[1]), [sys.argv[2]])[sys.argv[2]], range(int(sys.argv[3])))
    print(found or "nothing")
    raise SystemExit(bool(found))
