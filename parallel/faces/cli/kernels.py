"""The compiled search and its workers, for the commands that need them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from psearch.faces.cli.output import complain
from psearch.terminal.loading import Loading

if TYPE_CHECKING:
    from psearch.core.toolchain.groups import Group, Progress
    from psearch.core.toolchain.kernel_sets import KernelSet
    from psearch.games.game import Game
    from psearch.searcher.searcher import Searcher

_STARTED_S = time.monotonic()
"""Commands import this before anything that takes long."""


def prepare_kernels(*groups: Group) -> None:
    """Load the kernels of every search, and of these groups; compile them on the first run, with the progress on
    stderr. Raises PsearchError when they cannot be had."""
    with Loading(_STARTED_S) as loading:
        _load(groups, loading)


def loaded_game(file: str) -> Game:
    """Return the game of a file, compiled if need be. Raises PsearchError for a file that is none of a game."""
    with Loading(_STARTED_S) as loading:
        from psearch.games.game import Game

        with _progress(loading) as progress:
            return Game(file, progress)


@contextmanager
def ready_engine(
    *groups: Group, threads: int, hash_mb: int, trace: bool = False, kernels: KernelSet | None = None
) -> Iterator[Searcher]:
    """Workers that wait for a search: kernels as by `prepare_kernels`, and workers, whose memory may take seconds.

    kernels: of their searches, if not those of the package.

    The clock of a search begins inside. Raises PsearchError when kernels, memory or processes are not to be had.
    """
    with Loading(_STARTED_S) as loading:
        from psearch.core.toolchain.kernel_sets import STANDARD
        from psearch.scheduler.scheduler_entries import SEARCH

        chosen = kernels or STANDARD
        _load((*groups, chosen.group(SEARCH)), loading)

        from psearch.searcher.notices import Notices
        from psearch.searcher.searcher import Searcher, Size

        engine = Searcher(Notices(complain)).start(Size(threads, hash_mb, trace, kernels=chosen))
    with engine:
        yield engine


@contextmanager
def _progress(loading: Loading) -> Iterator[Progress]:
    """A line of status for the compiler's progress, in place of the one that says that psearch loads."""
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:

        def progress(text: str) -> None:
            loading.end()
            status(text)

        yield progress


def _load(groups: tuple[Group, ...], loading: Loading) -> None:
    from psearch.scheduler.scheduler_entries import load_kernels

    with _progress(loading) as progress:
        load_kernels(*groups, progress=progress)
