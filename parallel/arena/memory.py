"""Memory from the system: how much there is to take, and blocks of it that processes share.

A block is anonymous (memfd): it has no name to leave behind, dies with the last process that maps it even after a
SIGKILL, and is not limited by the size of /dev/shm.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import time
import weakref
from collections.abc import Collection
from contextlib import suppress

import numpy as np

from psearch.arena import system_calls
from psearch.arena.control_groups import memory_left
from psearch.results import PsearchError

MIB = 1 << 20
_PIECE = 2 * MIB
_MFD_CLOEXEC, _MFD_NOEXEC_SEAL = 1, 8
_MADV_HUGEPAGE, _MADV_DONTDUMP, POPULATE_WRITE = 14, 16, 23
"""Numbers of the kernel; `mmap` has names only for what the machine had that built it."""
_FILES_FOLDER = "/dev/shm"

_blocks: weakref.WeakSet[SharedBlock] = weakref.WeakSet()
"""all of this process"""


def available_memory(root: str = "") -> int:
    """Bytes that can be taken without swapping: what the kernel says, or what the control groups leave."""
    in_system, in_groups = _available_in_system(root), memory_left(root)
    return in_system if in_groups is None else min(in_system, in_groups)


def _available_in_system(root: str) -> int:
    try:
        with open(f"{root}/proc/meminfo") as meminfo:
            for line in meminfo:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    # without /proc nobody tells how much of what is not free would give way, as cached files do
    pages = max(os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PHYS_PAGES") // 2)
    return pages * os.sysconf("SC_PAGE_SIZE")


def _anonymous_file(size: int) -> int:
    """A descriptor of so much memory. Raises OSError."""
    try:
        fd = _memfd()
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        return _unlinked_file(size)  # the kernel has none, or a filter of system calls forbids it
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _memfd() -> int:
    try:
        # not executable: a system may insist on that (vm.memfd_noexec)
        return system_calls.memfd_create("psearch", _MFD_CLOEXEC | _MFD_NOEXEC_SEAL)
    except OSError as error:
        if error.errno != errno.EINVAL:  # Linux before 6.3
            raise
        return system_calls.memfd_create("psearch", _MFD_CLOEXEC)


def _unlinked_file(size: int) -> int:
    """Where there is no memfd. All of it is taken now: a file system that is full later on ends a process (SIGBUS)."""
    import tempfile

    try:
        return _file_in(_FILES_FOLDER, size)
    except OSError:
        return _file_in(tempfile.gettempdir(), size)


def _file_in(folder: str, size: int) -> int:
    import tempfile

    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)
        return os.dup(file.fileno())


def drop_blocks_but(descriptors: Collection[int]) -> None:
    """In a fork: give up the memory of all blocks but these, which would else live as long as this process.

    Arrays in them must not be touched any more.
    """
    for block in _blocks:
        if block.fd not in descriptors:
            address = np.frombuffer(block.map, np.uint8).ctypes.data
            system_calls.unmap_keeping_addresses(address, block.size)


class SharedBlock:
    """Anonymous memory that can be mapped by this process and its workers.

    size: bytes; fd: a descriptor of memory that is there already, taken over unless this fails. Raises PsearchError.
    """

    def __init__(self, size: int, fd: int | None = None) -> None:
        self.size = size
        try:
            self.fd = _anonymous_file(size) if fd is None else fd
            try:
                self.map = mmap.mmap(self.fd, size)
            except BaseException:
                if fd is None:
                    os.close(self.fd)
                raise
        except (OSError, MemoryError) as error:
            reason = system_calls.refusal(error)
            raise PsearchError(f"cannot take {-(-size // MIB):,} MiB of shared memory: {reason}") from error
        _blocks.add(self)

    def advise_table(self) -> None:
        """For a big block that is read at random: large pages, for fewer TLB misses, and no place in a core dump.

        Until a dump is written the death of the process is not seen. Wishes only.
        """
        for advice in (_MADV_HUGEPAGE, _MADV_DONTDUMP):
            with suppress(OSError):
                self.map.madvise(advice)

    def populate(self, patience_s: float, behind: float = 0.0, part: float = 1.0) -> None:
        """Take all pages now and map them for this process: a page that a search has to ask for costs it 2 to 10 us.

        A wish only: what is not there after `patience_s`, or at all (Linux before 5.14), comes when it is touched.
        behind, part: shares of the block, 0 to 1: where it begins, going on at the start after the end, and how much.
        """
        since = time.monotonic()
        pieces = range(0, self.size, _PIECE)
        first = int(behind * len(pieces))
        wanted = math.ceil(part * len(pieces))
        with suppress(OSError):
            for begin in (*pieces[first:], *pieces[:first])[:wanted]:
                if time.monotonic() - since > patience_s:
                    return
                self.map.madvise(POPULATE_WRITE, begin, min(_PIECE, self.size - begin))

    def clear(self) -> None:
        """All zero again. Pages stay where they are: to take new ones costs a search more than to write zeros here."""
        np.frombuffer(self.map, np.uint64)[:] = 0

    def close(self) -> None:
        """Drop the mapping; arrays made from it must not be used any more."""
        _blocks.discard(self)
        os.close(self.fd)
        try:
            self.map.close()
        except BufferError:
            # a view is still alive somewhere: the mapping goes when it does
            return
