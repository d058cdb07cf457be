"""From a request to a result: by workers of the size that is wanted, or the largest that the system grants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from psearch.processes.pool import INLINE
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import PsearchError, Result
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels
from psearch.searcher.notices import Notices
from psearch_core.toolchain.kernel_sets import STANDARD, KernelSet

_SUBJECT = "workers"


class Size(NamedTuple):
    """What takes new workers when it changes. trace: room for a trace; inline: no process, the calling thread searches;
    watched: the workers note what they do, for those who look on; kernels: of all searches."""

    threads: int
    hash_mb: int
    trace: bool = False
    inline: bool = False
    watched: bool = False
    kernels: KernelSet = STANDARD

    def start(self) -> Supervisor:
        """Start the workers. Raises PsearchError, or whatever the system refuses with."""
        method = INLINE if self.inline else None
        return Supervisor(self.threads, self.hash_mb, method, self.trace, self.watched, self.kernels)

    def words(self) -> str:
        """Name it in a message."""
        return f"{'no worker process' if self.inline else f'Threads {self.threads}'} and Hash {self.hash_mb}"


def smaller_sizes(size: Size) -> Iterator[Size]:
    """Yield what may be had when `size` cannot: less and less memory, then fewer processes, then none, and no kernels
    of a user's."""
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
    """Search in this thread, with the least table and the package's kernels: the last resort. Raises whatever the
    system refuses with."""
    with Size(1, 1, inline=True).start() as supervisor:
        return supervisor.search(request)


class Searcher:
    """Has the supervisor whose workers are of the size that is wanted, or of the next that the system grants; a context
    manager.

    It comes with `start`, which raises when the system refuses, or with `settle`, which takes what it grants. notices:
    told what happens to the workers. For one thread at a time; `close` is for any.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._supervisor: Supervisor | None = None
        self._size: Size | None = None
        """of what there is"""
        self._wanted: Size | None = None
        """what was tried last: not tried again before it changes, or `retry`"""

    def __enter__(self) -> Searcher:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers. What is being done fails."""
        if self._supervisor is not None:
            self._supervisor.close()

    def start(self, wanted: Size) -> Searcher:
        """Have workers of this size, with an empty table. If the system refuses there are such as before, and what it
        refused with is raised, as PsearchError. Where there are no such kernels, nothing has changed."""
        load_kernels(wanted.kernels.group(SEARCH))
        reason = self._take_first([wanted] if self._size is None else [wanted, self._size])
        self._wanted = self._size
        if reason is not None:
            raise reason
        return self

    def settle(self, wanted: Size) -> None:
        """Have workers of this size. If the system refuses: of the size before, or of the next smaller that it grants.

        A failure is reported once, also that there can be none at all.
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
            next_best = next_best._replace(kernels=wanted.kernels)  # with others they would search nothing
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
        """Start workers of the first size that is granted; returns why those before it were not."""
        self.close()  # first: the memory may not be there twice
        self._supervisor = self._size = None
        reason: Exception | None = None
        for size in sizes:
            try:
                self._supervisor = size.start()
                self._size = size
                break
            except Exception as error:  # whatever was refused and how: less may be granted
                reason = reason or error
        return reason

    def restore(self, may_wait: Callable[[], bool] = lambda: True) -> list[str]:
        """Replace workers that are lost or late. What was found amiss, a line each. may_wait: see `Supervisor`."""
        if self._supervisor is None or self._wanted is None:
            return []
        try:
            return self._supervisor.restore(may_wait)
        except Exception as error:  # not even one that searches in this thread
            self._settle(self._wanted, None)
            return [str(error)]

    def retry(self) -> None:
        """Try again for the size that was wanted, if it could not be had."""
        if self._wanted is not None and self._size != self._wanted:
            self._settle(self._wanted, self._size)

    @property
    def are_there(self) -> bool:
        """Whether there are any workers."""
        return self._supervisor is not None

    @property
    def supervisor(self) -> Supervisor:
        """The present one, others after `start`, `settle`, `restore` and `retry`. Raises PsearchError if there is
        none."""
        if self._supervisor is None:
            raise PsearchError("there are no workers")
        return self._supervisor
