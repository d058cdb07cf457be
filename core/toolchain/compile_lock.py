"""One program compiles, the others wait: as long as the first one shows that it is alive, and no longer.

The lock is an advisory one on a file of the cache (flock), and is gone with the program that holds it. One that is
stopped keeps it: so its holder touches the file while it compiles, and whoever sees no touch for long goes on to the
next lock. Where locks do not work, every program compiles for itself, which costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator

from psearch.core.toolchain.kernel_cache import Progress
from psearch.core.toolchain.trusted_folder import Folder

_NAMES = ("lock", "lock-2", "lock-3")
"""Of those who wait for a holder that is stopped, too, only one shall compile."""
_PATIENCE_S = 30.0
"""Without a touch by the holder. File systems of a network may show it many seconds late."""
_POLL_S = 0.1


@contextlib.contextmanager
def compile_lock(folder: Folder | None, progress: Progress | None = None) -> Iterator[Callable[[], None]]:
    """Wait for the turn to compile into a folder; gives a function that is to be called every second meanwhile."""
    lock = None if folder is None else _take(folder, progress)
    try:
        yield lambda: _touch(lock)
    finally:
        if lock is not None:
            os.close(lock)


def _touch(lock: int | None) -> None:
    if lock is not None:
        with contextlib.suppress(OSError):
            os.utime(lock)


def _take(folder: Folder, progress: Progress | None) -> int | None:
    """Descriptor of a file that this program has locked; None when locks do not work, or every holder is stopped."""
    for name in _NAMES:
        try:
            lock = folder.lock_file(name)
        except OSError:
            return None
        is_ours = False
        try:
            is_ours = _wait_for(lock, progress)
        except OSError:  # ENOLCK, ENOSYS, EOPNOTSUPP: some file systems have no locks
            return None
        finally:
            if not is_ours:
                os.close(lock)
        if is_ours:
            return lock
    return None


def _wait_for(lock: int, progress: Progress | None) -> bool:
    """Lock the file; False when another program has it and does not touch it any more."""
    touched: int | None = None
    quiet_s = 0.0
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            _touch(lock)
            return True
        if touched is None and progress:
            progress("waiting for another program that is compiling the kernels")
        # compared with itself, not with a clock: that of a file server may be another
        last, touched = touched, os.fstat(lock).st_mtime_ns
        quiet_s = quiet_s + _POLL_S if touched == last else 0.0
        if quiet_s > _PATIENCE_S:
            return False
        time.sleep(_POLL_S)
