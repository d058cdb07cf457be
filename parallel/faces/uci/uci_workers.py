"""The engine's workers and their table: of the size that the options want, or the largest that the system grants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from psearch.faces.uci.notices import Notices
from psearch.processes.pool import WorkerPool
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import PsearchError, Result

_SUBJECT = "workers"


class Size(NamedTuple):
    """What takes new workers when it changes."""

    threads: int
    hash_mb: int
    trace: bool = False
    """whether there is room for a trace"""
    inline: bool = False
    """no process is started: the calling thread searches"""

    def start(self) -> Supervisor:
        """The workers. Raises PsearchError, or whatever the system refuses with."""
        return Supervisor(self.threads, self.hash_mb, "inline" if self.inline else None, self.trace)

    def words(self) -> str:
        """For a message."""
        if self.inline:
            return f"no worker process and Hash {self.hash_mb}"
        return f"Threads {self.threads} and Hash {self.hash_mb}"


def smaller_sizes(size: Size) -> Iterator[Size]:
    """What may be had when `size` cannot: less and less memory, then fewer processes, then none."""
    size = size._replace(trace=False)
    inline = Size(1, size.hash_mb, inline=True)
    while size.hash_mb > 1:
        size = size._replace(hash_mb=size.hash_mb // 2)
        yield size
    while size.threads > 1:
        size = size._replace(threads=size.threads // 2)
        yield size
    yield inline
    yield inline._replace(hash_mb=1)


def search_here(request: SearchRequest) -> Result:
    """The last resort: search in this thread, with the least table. Raises whatever the system refuses with."""
    with Size(1, 1, inline=True).start() as supervisor:
        return supervisor.search(request)


class EngineWorkers:
    """The workers, replaced when another size is wanted. For one thread; `close` is for any."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._supervisor: Supervisor | None = None
        self._size: Size | None = None
        """of what there is"""
        self._wanted: Size | None = None
        """what was tried last: not tried again before it changes, or `retry`"""
        self._is_fresh = True
        """nothing has been searched since the table was cleared"""

    def close(self) -> None:
        """End the workers. What is being done fails."""
        if self._supervisor is not None:
            self._supervisor.close()

    def settle(self, wanted: Size) -> None:
        """Have workers of this size. If the system refuses: of the size before, or of the next smaller that it grants.

        A failure is told once, also that there can be none at all.
        """
        former = self._size if self._supervisor is not None and self._supervisor.is_usable else None
        if former is not None and wanted == self._wanted:
            return
        if wanted != self._wanted:
            self._notices.works(_SUBJECT)
        self._wanted = wanted
        self._start(wanted, former)

    def _start(self, wanted: Size, former: Size | None) -> None:
        if self._supervisor is not None:
            self._supervisor.close()  # first: the memory may not be there twice
        self._supervisor = self._size = None
        self._is_fresh = True
        before = [former] if former is not None and former != wanted else []
        reason: Exception | None = None
        for size in (wanted, *before, *smaller_sizes(former or wanted)):
            try:
                self._supervisor = size.start()
            except Exception as error:  # whatever was refused and how: less may be granted
                reason = reason or error
                continue
            self._size = size
            self._tell(wanted, reason)
            return
        self._notices.fails(_SUBJECT, f"{reason}; there are no workers")

    def _tell(self, wanted: Size, reason: Exception | None) -> None:
        assert self._size is not None
        if reason is None:
            if self._notices.works(_SUBJECT):
                self._notices.tell(f"{self._size.words()} can be had again")
            return
        tracing = "" if self._size.trace == wanted.trace else f", {'with' if self._size.trace else 'without'} a trace"
        self._notices.fails(_SUBJECT, f"{reason}; going on with {self._size.words()}{tracing}")

    def restore(self, may_wait: Callable[[], bool]) -> list[str]:
        """Replace workers that are lost or late. What was found amiss, a line each. may_wait: see `Supervisor`."""
        if self._supervisor is None or self._wanted is None:
            return []
        try:
            return self._supervisor.restore(may_wait)
        except Exception as error:  # not even one that searches in this thread
            self._start(self._wanted, None)
            return [str(error)]

    def retry(self) -> None:
        """Try again for the size that was wanted, if it could not be had."""
        if self._wanted is not None and self._size != self._wanted:
            self._start(self._wanted, self._size)

    def forget(self) -> None:
        """Forget what was learnt. Nothing to do, and no time to lose, before the first search."""
        if self._supervisor is not None and self._supervisor.is_usable and not self._is_fresh:
            self._supervisor.forget()
            self._is_fresh = True

    @property
    def are_processes(self) -> bool:
        """Whether processes search, or this one, for want of any."""
        return self._supervisor is not None and self._supervisor.workers.are_processes

    @property
    def watched(self) -> int | None:
        """A descriptor that is readable when workers want to be restored; None while there are no processes."""
        pool = None if self._supervisor is None else self._supervisor.pool
        return pool.fileno() if isinstance(pool, WorkerPool) and not pool.is_broken else None

    @property
    def are_there(self) -> bool:
        """Whether there are any."""
        return self._supervisor is not None

    @property
    def supervisor(self) -> Supervisor:
        """The workers, as `settle` left them. Raises PsearchError if there are none."""
        if self._supervisor is None:
            raise PsearchError("there are no workers")
        self._is_fresh = False
        return self._supervisor
