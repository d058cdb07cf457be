"""Memory from the system: blocks of it that processes share.

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
from psearch.results import PsearchError

MIB = 1 << 20
LARGE_PAGE = 2 * MIB
_PIECES_AT_ONCE = 16
"""Large pages asked for at once, since that makes all cores empty their queues of pages."""
_MFD_CLOEXEC, _MFD_NOEXEC_SEAL = 1, 8
_MADV_HUGEPAGE, _MADV_DONTDUMP, POPULATE_WRITE, _MADV_COLLAPSE = 14, 16, 23, 25
"""Numbers of the kernel; `mmap` has names only for what the machine had that built it."""
_FILES_FOLDER = "/dev/shm"

_CLOSED = -1
_mappings: weakref.WeakKeyDictionary[mmap.mmap, int] = weakref.WeakKeyDictionary()
"""All mappings of this process, with the descriptor of each; closed ones live as long as an array in them."""


def _anonymous_file(size: int) -> int:
    """Return a descriptor of this much memory. Raises OSError."""
    for flags in (_MFD_CLOEXEC | _MFD_NOEXEC_SEAL, _MFD_CLOEXEC):
        try:
            # not executable: a system may insist on that (vm.memfd_noexec), and Linux before 6.3 knows nothing of it
            fd = system_calls.memfd_create("psearch", flags)
            break
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                raise
            if error.errno != errno.EINVAL:
                return _unlinked_file(size)  # the kernel has none, or a filter of system calls forbids it
    else:
        return _unlinked_file(size)
    try:
        # a file with a hole behind it costs nothing, and leaves room to map it where large pages may lie
        os.ftruncate(fd, size + (LARGE_PAGE if size >= LARGE_PAGE else 0))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _unlinked_file(size: int) -> int:
    """Return a descriptor of a file without a name, for where there is no memfd. All of it is taken now: a file system
    that is full later on ends a process (SIGBUS)."""
    import tempfile

    def taken(folder: str | None) -> int:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return os.dup(file.fileno())

    try:
        return taken(_FILES_FOLDER)
    except OSError:
        return taken(None)


def _address(mapping: mmap.mmap) -> int:
    return int(np.frombuffer(mapping, np.uint8).ctypes.data)


def _mapped(fd: int, size: int) -> mmap.mmap:
    """Map the file, or `size` bytes of it; if it can be, from an address where a large page may begin."""
    mapping = mmap.mmap(fd, size)
    beyond = _address(mapping) % LARGE_PAGE
    if 0 < beyond <= os.fstat(fd).st_size - size:
        # the system puts one mapping right below another: a longer one in the place of this begins lower
        mapping.close()
        mapping = mmap.mmap(fd, size + beyond)
    return mapping


def drop_blocks_but(descriptors: Collection[int]) -> None:
    """Give up, in a fork, the memory of all blocks but these, which would else live as long as this process.

    Arrays in them must not be touched any more.
    """
    for mapping, fd in list(_mappings.items()):
        if fd not in descriptors:
            system_calls.unmap_keeping_addresses(_address(mapping), len(mapping))


class SharedBlock:
    """Anonymous memory that can be mapped by this process and its workers.

    size: bytes; fd: a descriptor of memory that is there already, taken over unless this fails. Raises PsearchError.
    `map` is the memory, for `numpy.frombuffer`.
    """

    def __init__(self, size: int, fd: int | None = None) -> None:
        self.size = size
        try:
            self.fd = _anonymous_file(size) if fd is None else fd
            try:
                self.mapping = _mapped(self.fd, size)
            except BaseException:
                if fd is None:
                    os.close(self.fd)
                raise
        except (OSError, MemoryError) as error:
            reason = system_calls.refusal(error)
            raise PsearchError(f"cannot take {-(-size // MIB):,} MiB of shared memory: {reason}") from error
        self.map = memoryview(self.mapping)[:size]
        _mappings[self.mapping] = self.fd

    def advise_table(self) -> None:
        """Ask for large pages, for fewer TLB misses in a big block that is read at random, and for no place in a core
        dump: until that is written the death of the process is not seen. Wishes only."""
        for advice in (_MADV_HUGEPAGE, _MADV_DONTDUMP):
            with suppress(OSError):
                self.mapping.madvise(advice)

    def populate(self, patience_s: float, behind: float = 0.0, part: float = 1.0) -> None:
        """Take all pages now and map them for this process: a page that a search has to ask for costs it 2 to 10 us.

        Large pages where the system has them. A wish only: what is not there after `patience_s`, or at all (Linux
        before 5.14), comes when it is touched.
        behind, part: shares of the block, 0 to 1: where it begins, going on at the start after the end, and how much.
        """
        latest = time.monotonic() + patience_s
        count = -(-self.size // LARGE_PAGE)
        first = int(behind * count)
        wanted = math.ceil(part * count)
        runs = (range(first, min(first + wanted, count)), range(max(0, first + wanted - count)))
        large = True
        with suppress(OSError):
            for run in runs:
                for begin in range(run.start, run.stop, _PIECES_AT_ONCE):
                    pieces = range(begin, min(begin + _PIECES_AT_ONCE, run.stop))
                    large = large and self.enlarge_pages(pieces.start * LARGE_PAGE, pieces.stop * LARGE_PAGE)
                    for piece in pieces:
                        if time.monotonic() > latest:
                            return
                        where = piece * LARGE_PAGE
                        self.mapping.madvise(POPULATE_WRITE, where, min(LARGE_PAGE, self.size - where))

    def enlarge_pages(self, begin: int, end: int) -> bool:
        """Ask for large pages between two places, multiples of their size, but for a last one that is no whole page;
        returns whether the wish was granted.

        Asked for like this (`MADV_COLLAPSE`, Linux 6.1) there are some for shared memory whatever the system's
        settings, if only it has any: they cost nothing that small ones would not, and fewer misses of the TLB.
        """
        end = min(end, self.size // LARGE_PAGE * LARGE_PAGE)
        if begin >= end:
            return True
        try:
            for piece in range(begin, end, LARGE_PAGE):
                # memory that has not been touched is not collapsed
                self.mapping.madvise(POPULATE_WRITE, piece, mmap.PAGESIZE)
            self.mapping.madvise(_MADV_COLLAPSE, begin, end - begin)
        except OSError:
            return False
        return True

    def clear(self) -> None:
        """Write zeros. Pages stay where they are: to take new ones costs a search more than this."""
        np.frombuffer(self.map, np.uint64)[:] = 0

    def close(self) -> None:
        """Drop the mapping; arrays made from it must not be used any more."""
        _mappings[self.mapping] = _CLOSED
        os.close(self.fd)
        try:
            self.map.release()
            self.mapping.close()
        except BufferError:  # a view is still alive somewhere: the mapping goes when it does
            return
        del _mappings[self.mapping]
