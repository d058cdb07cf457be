"""The compiled search and its workers, for the commands that need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from psearch.faces.cli.output import complain

if TYPE_CHECKING:
    from psearch.games.own_game import Game
    from psearch.searcher.searcher import Searcher
    from psearch_core.toolchain.groups import Group
    from psearch_core.toolchain.kernel_sets import KernelSet


def prepare_kernels(*groups: Group) -> None:
    """Load the kernels of every search, and of these groups; compile them on the first run, with the progress on
    stderr. Raises PsearchError when they cannot be had."""
    from psearch.scheduler.scheduler_entries import load_kernels
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        load_kernels(*groups, progress=status)


def loaded_game(file: str) -> Game:
    """Return the game of a file, compiled if need be. Raises PsearchError for a file that is none of a game."""
    from psearch.games.own_game import Game
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        return Game(file, status)


@contextmanager
def ready_engine(
    *groups: Group, threads: int, hash_mb: int, trace: bool = False, kernels: KernelSet | None = None
) -> Iterator[Searcher]:
    """Workers that wait for a search: kernels as by `prepare_kernels`, and workers, whose memory may take seconds.

    kernels: of their searches, if not those of the package.

    The clock of a search begins inside. Raises PsearchError when kernels, memory or processes are not to be had.
    """
    from psearch.scheduler.scheduler_entries import SEARCH
    from psearch_core.toolchain.kernel_sets import STANDARD

    chosen = kernels or STANDARD
    prepare_kernels(*groups, chosen.group(SEARCH))

    from psearch.searcher.notices import Notices
    from psearch.searcher.searcher import Searcher, Size

    with Searcher(Notices(complain)).start(Size(threads, hash_mb, trace, kernels=chosen)) as engine:
        yield engine
