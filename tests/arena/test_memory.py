"""Memory of a searcher: what it forgets, what is refused; blocks from any system, all or none, given up in a fork."""

from __future__ import annotations

import errno
import math
import os
import resource
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import chess
import numpy as np
import pytest
from limits import NEEDS_POPULATE, address_space, block_facts, lowered, next_descriptor, open_files, resident_kb

from psearch.arena import arena as arena_module
from psearch.arena import blocks as memory
from psearch.arena import system_calls
from psearch.arena.arena import Arena
from psearch.arena.blocks import MIB, SharedBlock, drop_blocks_but
from psearch.arena.setup import write_search
from psearch.defaults import MAX_THREADS
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits, PsearchError
from psearch_core.chess.evaluation.network_file import EvaluationNetwork

MIDDLE_GAME = chess.Board("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3")


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = open_files()
    yield
    assert open_files() == before


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(1, 1)
    yield made
    made.close()


def nodes_of_a_search(arena: Arena) -> int:
    write_search(arena, MIDDLE_GAME, Limits(depth=6), SearchOptions(policy="serial"))
    work_alone(arena)
    return int(arena.worker[0]["nodes"])


def test_forgetting_is_as_new(arena: Arena) -> None:
    as_new = nodes_of_a_search(arena)
    assert arena.tt.any() and arena.worker["killers"].any()
    assert nodes_of_a_search(arena) != as_new
    arena.forget()
    assert not arena.tt.any() and not arena.worker["killers"].any()
    assert nodes_of_a_search(arena) == as_new
    arena.clear_table()
    assert nodes_of_a_search(arena) != as_new, "the histories are still there"


@pytest.mark.parametrize("workers", [0, -1, MAX_THREADS + 1])
def test_the_number_of_workers_is_limited(workers: int) -> None:
    with pytest.raises(PsearchError, match=f"threads must be between 1 and {MAX_THREADS}, not {workers}"):
        Arena(workers, 1)


def test_memory_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_module, "available_memory", lambda: 100 * MIB)
    with pytest.raises(PsearchError, match=r"128 MB and 1 threads need about 12[89] MB, 100 MB are available"):
        Arena(1, 128)


def refuse(monkeypatch: pytest.MonkeyPatch, number: int, unless: int = -1) -> None:
    """Let `memfd_create` fail, except with certain flags."""
    create = system_calls.memfd_create

    def refused(name: str, flags: int) -> int:
        if flags == unless:
            return create(name, flags)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(system_calls, "memfd_create", refused)


def use(block: SharedBlock) -> None:
    """It is memory, all zero, and its descriptor is another way to it."""
    array = np.frombuffer(block.map, np.uint64)
    assert len(array) * 8 == block.size and not array.any()
    array[-1] = 7
    again = SharedBlock(block.size, os.dup(block.fd))
    assert np.frombuffer(again.map, np.uint64)[-1] == 7
    del array
    again.close()


def test_a_block() -> None:
    block = SharedBlock(3 * MIB)
    use(block)
    block.close()


def test_a_block_is_not_executable_where_the_kernel_knows_that() -> None:
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 3):
        pytest.skip("Linux before 6.3")
    block = SharedBlock(MIB)
    assert stat.S_IMODE(os.fstat(block.fd).st_mode) & 0o111 == 0
    block.close()


def test_an_older_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, errno.EINVAL, unless=1)
    block = SharedBlock(MIB)
    assert "memfd" in os.readlink(f"/proc/self/fd/{block.fd}")
    use(block)
    block.close()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM, errno.EACCES])
def test_without_memfd_a_block_is_a_file_without_a_name(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    refuse(monkeypatch, number)
    block = SharedBlock(MIB)
    assert os.fstat(block.fd).st_nlink == 0
    assert os.fstat(block.fd).st_blocks * 512 >= MIB, "what is not there now would be SIGBUS later"
    use(block)
    block.close()


def test_a_full_shared_memory_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refuse(monkeypatch, errno.ENOSYS)
    monkeypatch.setattr(memory, "_FILES_FOLDER", str(tmp_path / "nowhere"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    block = SharedBlock(MIB)
    assert os.readlink(f"/proc/self/fd/{block.fd}").startswith(str(tmp_path))
    use(block)
    block.close()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(PsearchError, match=r"^cannot take 1 MiB of shared memory: No such file or directory$"):
        SharedBlock(MIB)


def test_what_the_system_refuses() -> None:
    with (
        lowered(resource.RLIMIT_AS, address_space() + 100 * MIB),
        pytest.raises(PsearchError, match=r"cannot take 1,024 MiB of shared memory: .* \(see ulimit -v"),
    ):
        SharedBlock(1024 * MIB)
    with (
        lowered(resource.RLIMIT_FSIZE, 10 * MIB),
        pytest.raises(PsearchError, match=r"cannot take 16 MiB of shared memory: .* \(see ulimit -f\)"),
    ):
        SharedBlock(16 * MIB)
    with (
        lowered(resource.RLIMIT_NOFILE, next_descriptor()),
        pytest.raises(PsearchError, match=r"cannot take 1 MiB of shared memory: .* \(see ulimit -n\)"),
    ):
        SharedBlock(100)


def test_an_arena_that_fails_halfway() -> None:
    with lowered(resource.RLIMIT_FSIZE, 32 * MIB), pytest.raises(PsearchError, match="64 MiB"):
        Arena(2, 64)
    arena = Arena(2, 1)
    descriptors = [os.dup(descriptor) for descriptor in arena.descriptors()]
    with lowered(resource.RLIMIT_NOFILE, next_descriptor()), pytest.raises(PsearchError, match="ulimit -n"):
        Arena.attach(**arena.layout(), descriptors=descriptors)
    arena.close()


def test_an_arena_without_memory_for_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tables: np.ndarray, network: EvaluationNetwork) -> None:
        raise MemoryError

    monkeypatch.setattr("psearch.arena.arena.make_tables", fail)
    with pytest.raises(PsearchError, match=r"^cannot make the tables: Cannot allocate memory \(see ulimit -v"):
        Arena(1, 1)


def test_the_table_is_not_in_core_dumps() -> None:
    arena = Arena(1, 37)
    flags = block_facts(os.getpid(), 37 * 1024, "VmFlags:")
    assert len(flags) == 1
    assert "dd" in flags[0]
    arena.close()


@NEEDS_POPULATE
@pytest.mark.parametrize("workers", [1, 3, 7, 30])
def test_parts_of_all_workers_are_the_whole(workers: int) -> None:
    block = SharedBlock(37 * MIB)
    taken = 0
    for index in range(workers):
        block.populate(10.0, behind=index / workers, part=1 / workers)
        (resident,) = resident_kb(os.getpid(), 37 * 1024)
        assert resident - taken <= 2048 * math.ceil(19 / workers)
        taken = resident
    assert taken == 37 * 1024
    block.close()


def large_kb(size_kb: int) -> int:
    """Return how much of this process's block of this size is mapped by large pages."""
    ((kb, _),) = block_facts(os.getpid(), size_kb, "ShmemPmdMapped:")
    return int(kb)


def test_whole_pieces_of_a_block_are_large_pages() -> None:
    block = SharedBlock(37 * MIB)
    np.frombuffer(block.map, np.uint8)[-1] = 7
    if not block.enlarge_pages(0, 2 * MIB):
        pytest.skip("this system has no large pages for shared memory (Linux before 6.1, or none free)")
    assert large_kb(37 * 1024) == 2048
    block.populate(10.0)
    assert large_kb(37 * 1024) == 36 * 1024
    again = SharedBlock(block.size, os.dup(block.fd))
    array = np.frombuffer(again.map, np.uint8)
    assert array[-1] == 7
    assert not array[:-1].any()
    del array
    again.close()
    block.close()


@NEEDS_POPULATE
def test_a_system_without_large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pages are used then."""
    monkeypatch.setattr(memory, "_MADV_COLLAPSE", 9999)
    block = SharedBlock(37 * MIB)
    assert not block.enlarge_pages(0, 2 * MIB)
    block.populate(10.0)
    assert large_kb(37 * 1024) == 0
    assert resident_kb(os.getpid(), 37 * 1024) == [37 * 1024]
    block.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_gives_up_what_it_does_not_need() -> None:
    """Its memory, but not its addresses: what is dropped there later must not take another mapping's place away."""
    kept, dropped = SharedBlock(5 * MIB), SharedBlock(7 * MIB)
    for block in (kept, dropped):
        np.frombuffer(block.map, np.uint64)[:] = 1
    child = os.fork()
    if child == 0:
        drop_blocks_but([kept.fd])
        is_right = (
            len(block_facts(os.getpid(), 5 * 1024, "VmFlags:")),
            len(block_facts(os.getpid(), 7 * 1024, "VmFlags:")),
        ) == (1, 0)
        is_right &= bool(np.frombuffer(kept.map, np.uint64).all())
        dropped.close()
        kept.close()
        os._exit(0 if is_right else 9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.frombuffer(dropped.map, np.uint64).all(), "ours is still there"
    dropped.close()
    kept.close()
