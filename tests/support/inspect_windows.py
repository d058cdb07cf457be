"""The windows of one root, a search after the other, with answers that a test gives."""

from __future__ import annotations

from collections.abc import Callable

import chess
from inspect_entries import INSPECT

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.root_windows import bound_of, searches_again, set_window
from psearch_core.toolchain.jit import entry
from psearch_core.views import context_at, i64, stack_of, void

Answers = Callable[[int, int], int]
"""What a search with this alpha and beta says."""


@entry(void(i64, i64), INSPECT)
def first_window(context, score):
    """`set_window` of the first stack."""
    set_window(context_at(context), 0, score)


@entry(i64(i64, i64), INSPECT)
def next_window(context, score):
    """1 if the first stack's root has to be searched again after a search that has found this score."""
    stack = stack_of(context_at(context), 0)
    return 1 if searches_again(stack, score, bound_of(stack.root_alpha, stack.root_beta, score)) else 0


class RootProbe:
    """A root that is never entered. driver: as in `SearchOptions`."""

    def __init__(self, driver: str) -> None:
        self._arena = Arena(1, 1)
        write_search(self._arena, chess.Board(), Limits(depth=9), SearchOptions(policy="serial", driver=driver))
        self._stack = self._arena.stack[0]
        self._stack["root_depth"] = 8
        self.value = 0
        """of the last iteration"""

    def iteration(self, last: int, answers: Answers, most: int) -> list[tuple[int, int]]:
        """Return the windows of an iteration after one of this value, at most so many."""
        first_window(self._arena.context, last)
        windows = []
        while len(windows) < most:
            alpha, beta = int(self._stack["root_alpha"]), int(self._stack["root_beta"])
            windows.append((alpha, beta))
            self.value = answers(alpha, beta)
            if not next_window(self._arena.context, self.value):
                if beta - alpha == 1:
                    self.value = int(self._stack["root_low"])
                break
        return windows

    def close(self) -> None:
        """Give the memory back."""
        self._arena.close()
