"""Shared memory: the block of header, workers, stacks and frames, the tables, and the transposition table.

Everything is taken before a search starts. What could fail later, with SIGBUS or the out-of-memory killer, is refused
here with a clear error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psearch.arena.memory import MIB, SharedBlock, available_memory
from psearch.core.constants import CLUSTER_BYTES
from psearch.core.records import (
    CACHE_LINE,
    MAX_PLY,
    context_dtype,
    frame_dtype,
    header_dtype,
    stack_dtype,
    tables_dtype,
    trace_event_dtype,
    trace_log_dtype,
    worker_dtype,
)
from psearch.core.tables import make_tables
from psearch.defaults import MAX_THREADS
from psearch.results import PsearchError

_TAKE_S = 2.0
"""3 GiB take half of it on one core, unless the machine below has to find the memory first."""
STACKS_PER_WORKER = 4
"""One to run, the rest parked. When none is free a worker stays idle until one is: slower, never wrong."""
_TOUCHED_PLIES = 40
"""Frames of a stack that a search is expected to touch; the rest of the mapping costs no memory."""


def stack_pool_size(workers: int) -> int:
    return 1 if workers == 1 else STACKS_PER_WORKER * workers + 4


def _round_up(size: int) -> int:
    return -(-size // CACHE_LINE) * CACHE_LINE


class Arena:
    """The memory of one searcher, as numpy arrays, and the context record that kernels take.

    workers: 1 .. 1024; hash_mb: size of the transposition table in MiB, at least 1; stacks: size of the stack pool
    (tests make it small); trace_events: room for so many in each worker's log, 0: no trace is recorded; populate: take
    the table's pages now, rather than leave them to `take_table`. Raises PsearchError when the memory is not there.
    """

    def __init__(
        self, workers: int, hash_mb: int, stacks: int | None = None, trace_events: int = 0, populate: bool = True
    ) -> None:
        if not 1 <= workers <= MAX_THREADS:
            raise PsearchError(f"threads must be between 1 and {MAX_THREADS}, not {workers}")
        if hash_mb < 1:
            raise PsearchError(f"hash must be at least 1 MB, not {hash_mb}")
        self.workers = workers
        self.hash_mb = hash_mb
        self.stacks = stacks or stack_pool_size(workers)
        self.trace_events = trace_events
        self._check_memory()
        self._block = SharedBlock(self._lay_out())
        self._table = SharedBlock(hash_mb * MIB)
        self._table.advise_huge_pages()
        if populate:
            self._table.populate(_TAKE_S)
        self._trace = SharedBlock(self._trace_bytes()) if trace_events else None
        self._map()
        make_tables(self.tables)
        self.header[0]["worker_count"] = workers
        self.header[0]["stack_count"] = self.stacks

    def _check_memory(self) -> None:
        touched = self.stacks * _TOUCHED_PLIES * frame_dtype.itemsize + self.workers * worker_dtype.itemsize
        needed = self.hash_mb * MIB + touched + self._trace_bytes()
        available = available_memory()
        if needed > available:
            raise PsearchError(
                f"not enough memory: a hash of {self.hash_mb} MB and {self.workers} threads need about "
                f"{needed // MIB:,} MB, {max(available, 0) // MIB:,} MB are available"
            )

    def _trace_bytes(self) -> int:
        log = trace_log_dtype.itemsize + self.trace_events * trace_event_dtype.itemsize
        return self.workers * log if self.trace_events else 0

    def _lay_out(self) -> int:
        self._offsets: dict[str, tuple[int, np.dtype[Any], int]] = {}
        end = 0
        for name, dtype, count in (
            ("header", header_dtype, 1),
            ("worker", worker_dtype, self.workers),
            ("stack", stack_dtype, self.stacks),
            ("tables", tables_dtype, 1),
            ("frames", frame_dtype, self.stacks * MAX_PLY),
        ):
            self._offsets[name] = (end, dtype, count)
            end = _round_up(end + dtype.itemsize * count)
        return end

    def _map(self) -> None:
        """Make the arrays and this process's context record."""

        def array(name: str) -> np.ndarray:
            offset, dtype, count = self._offsets[name]
            return np.frombuffer(self._block.map, dtype, count, offset)

        self.header = array("header")
        self.worker = array("worker")
        self.stack = array("stack")
        self.tables = array("tables")
        self.frames = array("frames")
        self.tt = np.frombuffer(self._table.map, np.uint64)
        self.context_array = np.zeros(1, context_dtype)
        record = self.context_array[0]
        record["header"] = self.header.ctypes.data
        record["workers"] = self.worker.ctypes.data
        record["stacks"] = self.stack.ctypes.data
        record["frames"] = self.frames.ctypes.data
        record["tables"] = self.tables.ctypes.data
        record["tt"] = self.tt.ctypes.data
        record["tt_clusters"] = self.hash_mb * MIB // CLUSTER_BYTES
        self.trace_logs: np.ndarray | None = None
        if self._trace is not None:
            log = np.dtype([("head", trace_log_dtype), ("events", trace_event_dtype, (self.trace_events,))])
            self.trace_logs = np.frombuffer(self._trace.map, log)
            record["trace"] = self.trace_logs.ctypes.data
            record["trace_capacity"] = self.trace_events

    @property
    def context(self) -> int:
        """Address of the context record: the first argument of every driver entry."""
        return int(self.context_array.ctypes.data)

    def take_table(self, index: int) -> None:
        """Take the pages of the transposition table, and map all of them for this process: no search waits for them.

        All workers do this at once: each begins with a part of its own, and finds the rest taken.
        """
        self._table.populate(_TAKE_S, share=index / self.workers)

    def clear_table(self) -> None:
        """Empty the transposition table."""
        self._table.clear()

    def clear_learning(self) -> None:
        """Clear killers, history, and what was learnt of node types."""
        self.worker["killers"] = 0
        self.header["learning"] = 0
        self.worker["outcomes"] = 0
        self.header["prediction"] = 0

    def forget(self) -> None:
        """As new: an empty transposition table, nothing learnt. No search may be running."""
        self.clear_table()
        self.clear_learning()

    def fill_permille(self) -> int:
        """Share of table entries written by the present search, from a sample, in thousandths."""
        sample = self.tt[1 : 2 * 1000 : 2]
        age = int(self.header[0]["age"])
        return int(np.count_nonzero((sample != 0) & (sample >> np.uint64(58) == age)) * 1000 // len(sample))

    # -- the way to another process: descriptors travel, addresses are made again ------------------------------------

    def layout(self) -> dict[str, int]:
        """What `attach` must know besides the descriptors."""
        return {
            "workers": self.workers,
            "hash_mb": self.hash_mb,
            "stacks": self.stacks,
            "trace_events": self.trace_events,
        }

    def descriptors(self) -> list[int]:
        """Of the blocks, in the order that `attach` takes them: arena, transposition table, trace if there is one."""
        return [block.fd for block in (self._block, self._table, self._trace) if block is not None]

    @classmethod
    def attach(cls, workers: int, hash_mb: int, stacks: int, trace_events: int, descriptors: Sequence[int]) -> Arena:
        """Map memory that another process has taken; takes over the descriptors."""
        arena = cls.__new__(cls)
        arena.workers = workers
        arena.hash_mb = hash_mb
        arena.stacks = stacks
        arena.trace_events = trace_events
        arena._block = SharedBlock(arena._lay_out(), descriptors[0])
        arena._table = SharedBlock(hash_mb * MIB, descriptors[1])
        arena._trace = SharedBlock(arena._trace_bytes(), descriptors[2]) if trace_events else None
        arena._map()
        return arena

    def close(self) -> None:
        """Give the memory back. The arrays must not be used afterwards."""
        del self.header, self.worker, self.stack, self.tables, self.frames, self.tt, self.trace_logs
        self._block.close()
        self._table.close()
        if self._trace is not None:
            self._trace.close()
