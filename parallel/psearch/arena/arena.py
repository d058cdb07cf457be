"""Shared memory: a block with header, workers, stacks, frames and tables, and the transposition table.

Everything is taken before a search starts. Where a search could later fail for want of memory, by SIGBUS or the
out-of-memory killer, the arena raises a clear error instead.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import astuple, replace
from typing import Any

import numpy as np

from psearch.arena.blocks import LARGE_PAGE, MIB, SharedBlock
from psearch.arena.control_groups import available_memory, usable_cores
from psearch.arena.system_calls import refusal
from psearch.defaults import MAX_THREADS
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import SEARCH
from psearch_core.chess.evaluation.network_file import EvaluationNetwork, NetworkError, default_network
from psearch_core.chess.tables import make_tables
from psearch_core.constants import AGES, CLUSTER_BYTES
from psearch_core.records import (
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
from psearch_core.toolchain.groups import Group
from psearch_core.toolchain.kernel_sets import STANDARD, KernelSet

_TAKE_S = 2.0
"""Longest seconds to take the table's pages. 3 GiB need half of that on one core, if the host has the memory ready."""
STACKS_PER_WORKER = 4
"""Stacks for each worker: one to run, the others parked. A worker that finds none free waits: slower, never wrong."""
_TOUCHED_PLIES = 40
"""Frames of a stack that a search is expected to touch; the others take no memory."""


class MemoryShortage(PsearchError):
    """There is not enough memory now."""


def stack_pool_size(workers: int) -> int:
    """Return the number of stacks that workers share."""
    return 1 if workers == 1 else STACKS_PER_WORKER * workers + 4


def _rounded_up(size: int, unit: int) -> int:
    return size + -size % unit


class Arena:
    """The memory of one searcher, as numpy arrays, and the context record that kernels take.

    workers: 1 .. 1024; hash_mb: size of the transposition table in MiB, at least 1; stacks: size of the stack pool
    (tests make it small); trace_events: size of each worker's log, 0: no trace; populate: take the table's pages now,
    not in `take_table`; kernels: used by all searches. Raises PsearchError when the memory is not there.
    """

    _has_table = True
    """Whether this arena still owns the table, which moves to a renewed arena."""
    _is_table_taken = False
    """Whether earlier workers have taken the table's pages."""
    _evaluation: str | None = None
    """Evaluation behind what was learnt: name of a network, empty for the handcrafted one; None: nothing was learnt."""
    _pruning: bytes | None = None
    """Pruning parameters behind the values in the table; None: there are no values yet."""

    def __init__(
        self,
        workers: int,
        hash_mb: int,
        stacks: int | None = None,
        trace_events: int = 0,
        populate: bool = True,
        kernels: KernelSet = STANDARD,
    ) -> None:
        if not 1 <= workers <= MAX_THREADS:
            raise PsearchError(f"threads must be between 1 and {MAX_THREADS}, not {workers}")
        if hash_mb < 1:
            raise PsearchError(f"hash must be at least 1 MB, not {hash_mb}")
        self._set_layout(kernels, workers, hash_mb, stacks or 0, trace_events)
        self._check_memory(with_table=True)
        with ExitStack() as taken:  # released when something fails
            self._table = SharedBlock(hash_mb * MIB)
            taken.callback(self._table.close)
            self._table.advise_table()
            if populate:
                self._table.populate(_TAKE_S)
            self._take_control_block()
            taken.pop_all()

    def _set_layout(self, kernels: KernelSet, workers: int, hash_mb: int, stacks: int, trace_events: int) -> None:
        self.workers = workers
        self.hash_mb = hash_mb
        self.stacks = stacks or stack_pool_size(workers)
        self.trace_events = trace_events
        self.kernels = kernels
        self.driver = kernels.group(SEARCH)
        log_bytes = trace_log_dtype.itemsize + trace_events * trace_event_dtype.itemsize
        self._trace_bytes = workers * log_bytes if trace_events else 0
        self._offsets: dict[str, tuple[int, np.dtype[Any], int]] = {}
        self._size = 0
        for name, dtype, count in (
            ("header", header_dtype, 1),
            ("worker", worker_dtype, workers),
            ("stack", stack_dtype, self.stacks),
            ("tables", tables_dtype, 1),
            ("frames", frame_dtype, self.stacks * MAX_PLY),
            ("plug_in", np.dtype(np.int64), max(1, kernels.words)),
        ):
            self._offsets[name] = (self._size, dtype, count)
            self._size += _rounded_up(dtype.itemsize * count, CACHE_LINE)
        self._size = _rounded_up(self._size, LARGE_PAGE)

    def use_kernels(self, kernels: KernelSet, driver: Group) -> None:
        """Use these kernels in this process; clear the table if others were used. driver: their group for searches."""
        if kernels != self.kernels:
            self.clear_table()
        self.kernels = kernels
        self.driver = kernels.group(driver)
        words = max(1, kernels.words)
        if words != len(self.plug_in):  # exactly as many: an index beyond the end wraps around by their number
            self.use_memory(np.zeros(words, np.int64))

    def use_memory(self, words: np.ndarray) -> None:
        """Use this memory, in this process, for the words of kernels that replace others."""
        self.plug_in = words
        self.context_array["plug_in"] = words.ctypes.data
        self.context_array["plug_in_words"] = words.nbytes // 8

    def _take_control_block(self) -> None:
        """Take all memory except the table."""
        with ExitStack() as taken:
            self._block = SharedBlock(self._size)
            taken.callback(self._block.close)
            self._trace = SharedBlock(self._trace_bytes) if self.trace_events else None
            if self._trace is not None:
                taken.callback(self._trace.close)
            self._map()
            try:
                self._network = default_network()
                make_tables(self.tables, self._network)
            except MemoryError as error:
                raise PsearchError(f"cannot make the tables: {refusal(error)}") from error
            except NetworkError as error:
                raise PsearchError(str(error)) from error
            # Histories and tables are accessed at random, as the transposition table is. Most frames are never touched:
            # only those that share a large page with the tables' end, which are all of one worker, get a large one
            self._block.enlarge_pages(0, _rounded_up(self._offsets["frames"][0], LARGE_PAGE))
            self.header[0]["worker_count"] = self.workers
            self.header[0]["stack_count"] = self.stacks
            taken.pop_all()

    def renew(self, workers: int, kernels: KernelSet) -> Arena:
        """Return an arena for other workers, with a new control block and this one's transposition table.

        After the loss of a worker nothing in the old control block can be trusted, and killed workers may still write
        there. The table stays, since its entries verify themselves, unless the kernels are others, which may prune and
        evaluate differently. Histories are copied, being small numbers at any moment; the statistics of node types are
        related sums, and begin anew. Afterwards this arena can only be closed, without effect on the table. Raises
        PsearchError when there is not enough memory, MemoryShortage if there may be soon; then this arena is unchanged.
        """
        renewed = Arena.__new__(Arena)
        renewed._set_layout(kernels, workers, self.hash_mb, 0, self.trace_events)
        renewed._check_memory(with_table=False)
        renewed._table = self._table
        renewed._is_table_taken = True
        renewed._evaluation, renewed._pruning = self._evaluation, self._pruning
        renewed._take_control_block()
        if kernels != self.kernels:
            renewed.clear_table()
        renewed.take_network(self._network)
        renewed.header["learning"] = self.header["learning"]
        renewed.header["age"] = self.header["age"] % AGES
        self._has_table = False
        return renewed

    def _check_memory(self, with_table: bool) -> None:
        touched = self.stacks * _TOUCHED_PLIES * frame_dtype.itemsize + self.workers * worker_dtype.itemsize
        needed = with_table * self.hash_mb * MIB + touched + self._trace_bytes
        available = available_memory()
        if needed > available:
            in_mb = f"about {-(-needed // MIB):,} MB, {max(available, 0) // MIB:,} MB are available"
            subject = f"{self.workers} workers need" if self.workers > 1 else "1 worker needs"
            if with_table:
                subject = f"a hash of {self.hash_mb} MB and {self.workers} threads need"
            raise MemoryShortage(f"not enough memory: {subject} {in_mb}")

    def _map(self) -> None:
        """Make the arrays, and this process's context record."""
        block = self._block.map
        self.header, self.worker, self.stack, self.tables, self.frames, plug_in = (
            np.frombuffer(block, dtype, count, offset) for offset, dtype, count in self._offsets.values()
        )
        self.tt = np.frombuffer(self._table.map, np.uint64)
        self.context_array = np.zeros(1, context_dtype)
        self.context = int(self.context_array.ctypes.data)
        """Address of the context record, the first argument of every driver entry."""
        record = self.context_array[0]
        places = {"header": self.header, "workers": self.worker, "stacks": self.stack, "frames": self.frames}
        for name, array in {**places, "tables": self.tables, "tt": self.tt}.items():
            record[name] = array.ctypes.data
        record["tt_clusters"] = self.hash_mb * MIB // CLUSTER_BYTES
        self.use_memory(plug_in)
        self.trace_logs: np.ndarray | None = None
        if self._trace is not None:
            log = np.dtype([("head", trace_log_dtype), ("events", trace_event_dtype, (self.trace_events,))])
            self.trace_logs = np.frombuffer(self._trace.map, log)
            record["trace"] = self.trace_logs.ctypes.data
            record["trace_capacity"] = self.trace_events

    def take_table(self, index: int) -> None:
        """Take the pages of the transposition table and map them for this process, so that no search waits for them.

        All workers do this at once: each begins with another part, and finds the others taken. If there are more
        workers than cores, each takes only its own part: to map the same pages hundreds of times would take a minute,
        and to unmap them seconds. Workers that replace others map pages when they touch them: the search is waiting.
        """
        if not self._is_table_taken:
            part = 1.0 if self.workers <= usable_cores() else 1 / self.workers
            self._table.populate(_TAKE_S, behind=index / self.workers, part=part)

    def take_network(self, network: EvaluationNetwork) -> None:
        """Put a network in the place of the one before. No search may be running."""
        if network is not self._network:
            self._network = network
            self.tables["network"] = network.record
            self.worker["evaluation"]["network"]["accumulators"]["views"] = 0

    def use_rules(self, network: EvaluationNetwork, pruning: np.void) -> None:
        """Search with these parameters from now on, and evaluate with this network if they say so. No search may be
        running. Another pruning clears the table, since a mode that leaves nothing out would be cut off by values from
        one that does; another evaluation clears all that was learnt, too."""
        evaluation, parameters = network.name if pruning["network"] else "", pruning.tobytes()
        self.take_network(network)
        if self._evaluation not in (None, evaluation):
            self.forget()
        elif self._pruning not in (None, parameters):
            self.clear_table()
        self._evaluation, self._pruning = evaluation, parameters
        self.header[0]["options"]["pruning"] = pruning

    def clear_table(self) -> None:
        self._table.clear()
        self._pruning = None

    def clear_learning(self) -> None:
        """Clear killers, histories, and the statistics of node types."""
        self.worker["killers"] = 0
        self.worker["outcomes"] = 0
        header = self.header.view(np.uint8)  # as bytes: numpy would take four times as long, field by field
        for name in ("learning", "prediction"):
            begin = self.header[name].ctypes.data - self.header.ctypes.data
            header[begin : begin + self.header.dtype[name].itemsize] = 0

    def forget(self) -> None:
        """Clear the transposition table and all that was learnt. No search may be running."""
        self.clear_table()
        self.clear_learning()

    def fill_permille(self) -> int:
        """Return the share of table entries that the present search has written, in thousandths, from a sample."""
        sample = self.tt[1 : 2 * 1000 : 2]
        age = int(self.header[0]["age"])
        return int(np.count_nonzero((sample != 0) & (sample >> np.uint64(58) == age)) * 1000 // len(sample))

    def layout(self) -> dict[str, Any]:
        """Return the arguments of `attach` besides the descriptors."""
        sizes = (self.workers, self.hash_mb, self.stacks, self.trace_events)
        return {"sizes": sizes, "is_table_taken": int(self._is_table_taken), "kernels": astuple(self.kernels)}

    def descriptors(self) -> list[int]:
        """Return the blocks' descriptors for `attach`: control block, transposition table, and the trace if any."""
        return [block.fd for block in (self._block, self._table, self._trace) if block is not None]

    @classmethod
    def attach(
        cls, sizes: Sequence[int], is_table_taken: int, kernels: Sequence[Any], descriptors: Sequence[int]
    ) -> Arena:
        """Map memory that another process has taken; the arena then owns the descriptors. Raises PsearchError."""
        arena = cls.__new__(cls)
        *fields, beside = kernels  # `beside` may have become a list
        arena._set_layout(replace(KernelSet(*fields), beside=tuple(beside)), *sizes)
        arena._is_table_taken = bool(is_table_taken)
        with ExitStack() as taken:
            for descriptor in descriptors:
                taken.callback(os.close, descriptor)
            arena._block = SharedBlock(arena._size, descriptors[0])
            arena._table = SharedBlock(arena.hash_mb * MIB, descriptors[1])
            arena._table.advise_table()
            arena._trace = SharedBlock(arena._trace_bytes, descriptors[2]) if arena.trace_events else None
            arena._map()
            taken.pop_all()
        return arena

    def close(self) -> None:
        """Release the memory. The arrays must not be used afterwards."""
        del self.header, self.worker, self.stack, self.tables, self.frames, self.tt, self.trace_logs, self.plug_in
        self._block.close()
        if self._has_table:
            self._table.close()
        if self._trace is not None:
            self._trace.close()
