"""The files of endgame tables: read page by page, where python-chess maps them.

A mapped file that is cut short while it is in use, or that the disk fails to give, ends the whole program (SIGBUS);
one that is read raises an error. python-chess does not check what it reads, and damage may keep it busy for ever: with
pieces that the board does not have, which are refused here, or on a walk from one end of the file to the other, so
that what one probe may read is bounded.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import chess
import chess.syzygy

_PAGE = 4096
_PAGES_KEPT = 64
"""of each open table: most of them hold its header, which is needed at every probe"""
_PAGES_A_PROBE = 5000
"""20 MiB, the headers of more than a hundred tables; reading through so much takes some seconds"""


class Reads:
    """How much one probe has read so far, of all tables together."""

    def __init__(self) -> None:
        self._left = 0

    def begin(self) -> None:
        """Begin a new probe."""
        self._left = _PAGES_A_PROBE

    def count(self) -> None:
        """Count one page more. Raises OSError when that is more than any probe needs."""
        self._left -= 1
        if self._left < 0:
            raise OSError("a probe that does not end")


class TableFile:
    """The bytes of a file, by number or slice from 0 upwards. Raises OSError when it is no regular file."""

    def __init__(self, path: str, reads: Reads) -> None:
        self._reads = reads
        self._pages: dict[int, bytes] = {}
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(self._fd)
        self._size = status.st_size
        if not stat.S_ISREG(status.st_mode) or self._size == 0:
            self.close()
            raise OSError("it is empty, or not a regular file")

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int | slice) -> int | bytes:
        if isinstance(index, slice):
            start, stop, _ = index.indices(self._size)
            return self.read(start, stop - start)
        return self._page(index // _PAGE)[index % _PAGE]

    def read(self, start: int, count: int) -> bytes:
        """Return `count` bytes, fewer than a page. Raises IndexError when they are not there."""
        page, offset = divmod(start, _PAGE)
        data = self._page(page)[offset : offset + count]
        if len(data) < count:
            data += self._page(page + 1)[: count - len(data)]
        if len(data) < count:
            raise IndexError(f"no {count} bytes at {start}")
        return data

    def close(self) -> None:
        """Close the file. Once."""
        os.close(self._fd)

    def _page(self, number: int) -> bytes:
        page = self._pages.get(number)
        if page is None:
            if number < 0:
                raise IndexError("before the begin of the file")
            self._reads.count()
            page = os.pread(self._fd, _PAGE, number * _PAGE)
            if len(self._pages) >= _PAGES_KEPT:
                del self._pages[next(iter(self._pages))]
            self._pages[number] = page
        return page


class _Reading(chess.syzygy.Table):
    """What a table of python-chess does with its file, on a `TableFile`."""

    def __init__(self, path: str, *, variant: type[chess.Board], reads: Reads) -> None:
        super().__init__(path, variant=variant)
        self._reads = reads
        self._keys = (self.key, self.mirrored_key)
        """by the name of the file"""

    def init_mmap(self) -> None:
        if self.data is None:
            data: Any = TableFile(self.path, self._reads)
            if len(data) % 64 != 16:
                data.close()
                raise OSError(f"{len(data):,} bytes are no size of a table")
            self.data = data

    def check_pieces(self, orders: Iterable[Sequence[int]]) -> None:
        """Raise OSError when the pieces in the header are not those of the file's name: a probe would not end."""
        found = {chess.syzygy.recalc_key(list(pieces)) for pieces in orders}
        if found != {self.key} or self.key not in self._keys:
            self.initialized = False  # so that the next probe does not take it for checked
            raise OSError("its pieces are not those of its name")

    def read_uint64_be(self, data_ptr: int) -> int:
        return self._number(data_ptr, 8, "big")

    def read_uint32(self, data_ptr: int) -> int:
        return self._number(data_ptr, 4, "little")

    def read_uint32_be(self, data_ptr: int) -> int:
        return self._number(data_ptr, 4, "big")

    def read_uint16(self, data_ptr: int) -> int:
        return self._number(data_ptr, 2, "little")

    def _number(self, start: int, count: int, order: Any) -> int:
        data: Any = self.data
        return int.from_bytes(data.read(start, count), order)


class _WdlFile(_Reading, chess.syzygy.WdlTable):
    """Win, draw or loss."""

    def init_table_wdl(self) -> None:
        is_new = not self.initialized
        super().init_table_wdl()
        if is_new:
            by_file = [self.pieces] if not self.has_pawns else [file.pieces for file in self.files]
            self.check_pieces(order for orders in by_file for order in orders.values())


class _DtzFile(_Reading, chess.syzygy.DtzTable):
    """Plies to the next capture or pawn move."""

    def init_table_dtz(self) -> None:
        is_new = not self.initialized
        super().init_table_dtz()
        if is_new:
            self.check_pieces([self.pieces] if not self.has_pawns else [file.pieces for file in self.files])


class TableFiles(chess.syzygy.Tablebase):
    """python-chess's tablebase, on files that are read."""

    def __init__(self, reads: Reads) -> None:
        super().__init__()
        self._reads = reads

    def _open_table(self, hashtable: Any, Table: Any, path: str) -> int:
        reading = _WdlFile if Table is chess.syzygy.WdlTable else _DtzFile
        return super()._open_table(hashtable, partial(reading, reads=self._reads), path)  # type: ignore[arg-type]  # it wants a class, and only calls it
