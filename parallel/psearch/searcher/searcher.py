"""Searches by workers of the wanted size, or of the largest that the system grants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from psearch.closing import Closing
from psearch.processes.pool import INLINE
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import PsearchError, Result
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels
from psearch.searcher.notices import Notices
from psearch_core.toolchain.kernel_sets import STANDARD, KernelSet

_SUBJECT = "workers"


class Size(NamedTuple):
    """Properties of the workers; a change of any needs new workers. trace: room for a trace; inline: no processes, the
    calling thread searches; watched: the workers record their latest events; kernels: used by all searches."""

    threads: int
    hash_mb: int
    trace: bool = False
    inline: bool = False
    watched: bool = False
    kernels: KernelSet = STANDARD

    def start(self) -> Supervisor:
        """Start the workers. Raises PsearchError, or another error if the system refuses."""
        method = INLINE if self.inline else None
        return Supervisor(self.threads, self.hash_mb, method, self.trace, self.watched, self.kernels)

    def words(self) -> str:
        """Return the size as text for a message."""
        return f"{'no worker process' if self.inline else f'Threads {self.threads}'} and Hash {self.hash_mb}"


def smaller_sizes(size: Size) -> Iterator[Size]:
    """Yield sizes to try after a refusal: less memory, then fewer processes, then none and no user's kernels."""
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
    """Search in this thread with the smallest table and the package's kernels, as a last resort."""
    with Size(1, 1, inline=True).start() as supervisor:
        return supervisor.search(request)


class Searcher(Closing):
    """Owner of a supervisor with workers of the wanted size, or the largest that the system grants; a context manager.

    Call `start`, which raises an error when the system refuses, or `settle`, which accepts a smaller size. notices:
    gets reports about the workers. For one thread at a time; any thread may call `close`.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._supervisor: Supervisor | None = None
        self._size: Size | None = None
        """Size of the present workers."""
        self._wanted: Size | None = None
        """Size that was tried last; it is tried again only by `retry`, or after another one."""

    def close(self) -> None:
        """End the workers; a running search fails."""
        if self._supervisor is not None:
            self._supervisor.close()

    def start(self, wanted: Size) -> Searcher:
        """Start workers of this size, with an empty table. If the system refuses, start workers of the former size and
        raise the error. If the kernels cannot be loaded, nothing changes."""
        load_kernels(wanted.kernels.group(SEARCH))
        reason = self._take_first([wanted] if self._size is None else [wanted, self._size])
        self._wanted = self._size
        if reason is not None:
            raise reason
        return self

    def settle(self, wanted: Size) -> None:
        """Get workers of this size or, if the system refuses, of the former size, or else the next smaller one.

        A failure is reported once, even if there can be no workers at all.
        """
        former = self._size if self._supervisor is not None and self._supervisor.is_usable else None
        if former is None or wanted != self._wanted:
            if wanted != self._wanted:
                self._notices.works(_SUBJECT)
            self._settle(wanted, former)

    def _settle(self, wanted: Size, former: Size | None) -> None:
        self._wanted = wanted
        next_best = former or wanted
        if not next_best.inline:
            next_best = next_best._replace(kernels=wanted.kernels)  # with other kernels no request would fit
        before = [next_best] if next_best != wanted else []
        reason = self._take_first((wanted, *before, *smaller_sizes(next_best)))
        if self._size is None:
            self._notices.fails(_SUBJECT, f"{reason}; there are no workers")
        elif reason is not None:
            had, is_other = self._size.trace, self._size.trace != wanted.trace
            tracing = f", {'with' if had else 'without'} a trace" if is_other else ""
            self._notices.fails(_SUBJECT, f"{reason}; continuing with {self._size.words()}{tracing}")
        elif self._notices.works(_SUBJECT):
            self._notices.tell(f"{self._size.words()} are available again")

    def _take_first(self, sizes: Iterable[Size]) -> Exception | None:
        """Start workers of the first size that the system grants; return its first refusal, if there was one."""
        self.close()  # first, since memory may not suffice for both
        self._supervisor = self._size = None
        reason: Exception | None = None
        for size in sizes:
            try:
                self._supervisor = size.start()
                self._size = size
                break
            except Exception as error:  # any refusal: a smaller size may be granted
                reason = reason or error
        return reason

    def restore(self, may_wait: Callable[[], bool] = lambda: True) -> list[str]:
        """Replace lost and late workers; return a line about each problem. may_wait: see `Supervisor.restore`."""
        if self._supervisor is None or self._wanted is None:
            return []
        try:
            return self._supervisor.restore(may_wait)
        except Exception as error:  # not even a search in this thread is possible
            self._settle(self._wanted, None)
            return [str(error)]

    def retry(self) -> None:
        """Try the wanted size again, if the system has refused it."""
        if self._wanted is not None and self._size != self._wanted:
            self._settle(self._wanted, self._size)

    @property
    def are_there(self) -> bool:
        """Whether there are any workers."""
        return self._supervisor is not None

    @property
    def supervisor(self) -> Supervisor:
        """Present supervisor; `start`, `settle`, `restore` and `retry` may replace it. Raises PsearchError if none."""
        if self._supervisor is None:
            raise PsearchError("there are no workers")
        return self._supervisor
