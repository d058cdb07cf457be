"""Blocks of memory that processes share.

A block is anonymous (memfd): it leaves no file behind, is freed with the last process that maps it, even after a
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
"""Large pages in one request, because each request makes all cores empty their queues of pages."""
_MFD_CLOEXEC, _MFD_NOEXEC_SEAL = 1, 8
_MADV_HUGEPAGE, _MADV_DONTDUMP, POPULATE_WRITE, _MADV_COLLAPSE = 14, 16, 23, 25
"""Kernel constants; `mmap` has names only for those that its build machine knew."""
_FILES_FOLDER = "/dev/shm"

_CLOSED = -1
_mappings: weakref.WeakKeyDictionary[mmap.mmap, int] = weakref.WeakKeyDictionary()
"""Descriptors of all mappings of this process; a closed mapping lives as long as an array in it."""


def _anonymous_file(size: int) -> int:
    """Return a descriptor of `size` bytes of memory. Raises OSError."""
    for flags in (_MFD_CLOEXEC | _MFD_NOEXEC_SEAL, _MFD_CLOEXEC):
        try:
            # not executable: some systems require that (vm.memfd_noexec); Linux before 6.3 does not know the flag
            fd = system_calls.memfd_create("psearch", flags)
            break
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                raise
            if error.errno != errno.EINVAL:
                return _unlinked_file(size)  # the kernel has no memfd, or a filter of system calls forbids it
    else:
        return _unlinked_file(size)
    try:
        # a hole at the end costs nothing, and leaves room to align the mapping to large pages
        os.ftruncate(fd, size + (LARGE_PAGE if size >= LARGE_PAGE else 0))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _unlinked_file(size: int) -> int:
    """Return a descriptor of a deleted file, fully allocated now, since a full file system would cause SIGBUS."""
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
    """Map `size` bytes of the file or, if possible, a longer part that begins at the address of a large page."""
    mapping = mmap.mmap(fd, size)
    beyond = _address(mapping) % LARGE_PAGE
    if 0 < beyond <= os.fstat(fd).st_size - size:
        # the system places a mapping right below the last one: a longer one in its place begins at a lower address
        mapping.close()
        mapping = mmap.mmap(fd, size + beyond)
    return mapping


def drop_blocks_but(descriptors: Collection[int]) -> None:
    """Release, in a fork, the memory of all blocks but these; else it would be held until this process ends.

    Arrays in released blocks must not be used any more.
    """
    for mapping, fd in list(_mappings.items()):
        if fd not in descriptors:
            system_calls.unmap_keeping_addresses(_address(mapping), len(mapping))


class SharedBlock:
    """Anonymous memory that this process and its workers can map.

    size: bytes; fd: descriptor of existing memory, owned by the block from then on, unless this fails. `map` is the
    memory, for `numpy.frombuffer`. Raises PsearchError.
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
        """Ask for large pages, which save TLB misses at random accesses, and for no place in a core dump, which delays
        the end of a process that crashes. The system may ignore both."""
        for advice in (_MADV_HUGEPAGE, _MADV_DONTDUMP):
            with suppress(OSError):
                self.mapping.madvise(advice)

    def populate(self, patience_s: float, behind: float = 0.0, part: float = 1.0) -> None:
        """Take pages now, large ones if possible, and map them: a page that a search has to request takes 2 to 10 us.

        Pages not taken after `patience_s` seconds, or before Linux 5.14, are taken when they are touched. behind, part:
        where to begin, and how much to take, wrapping around at the end; both are shares of the block, 0 to 1.
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
        """Ask for large pages between two offsets, multiples of their size, except for an incomplete last one; return
        whether they were granted.

        This request (`MADV_COLLAPSE`, Linux 6.1) gives large pages of shared memory whatever the system's settings, if
        there are any. They take no more memory than small ones, and save TLB misses.
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
        """Write zeros. The pages are kept, since new ones would take a search longer than this."""
        np.frombuffer(self.map, np.uint64)[:] = 0

    def close(self) -> None:
        """Remove the mapping; arrays in it must not be used any more."""
        _mappings[self.mapping] = _CLOSED
        os.close(self.fd)
        try:
            self.map.release()
            self.mapping.close()
        except BufferError:  # a view still exists: the mapping is removed with it
            return
        del _mappings[self.mapping]
