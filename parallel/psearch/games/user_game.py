"""The adapter that makes kernels of a user's game, for `psearch_core.toolchain.kernel_sets` and the compiler.

`REPLACED` and `MODULES` name the kernels that replace those of chess, and additional modules. `adapt` makes the
replacements for the hooks of `rules` from the functions of a file; `try_out` plays test games with the machine code
before the first search. Only the compiler's process calls these two.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psearch_core.toolchain.jit import Kernel

_KERNELS = (
    "after_move after_null after_quiescence begin_moves child_depth defer_move enter enter_quiescence finish "
    "finish_pass is_exhausted learn make_child next_move next_quiescence push_move push_null"
)
REPLACED = {f"psearch_core.game.{name}": f"psearch.games.node_kernels.{name}" for name in _KERNELS.split()}
"""Replacement of every kernel of `psearch_core.game`."""
MODULES = ("psearch.games.rules",)


def adapt(module: ModuleType, file: str) -> list[Kernel]:
    """Return the kernels of a file's game, including the replacements of hooks. Raises PlugInError."""
    from psearch.games.game_compiler import kernels_of

    return kernels_of(module, file)


def try_out(module: ModuleType, file: str, functions: dict[str, Callable[..., Any]]) -> None:
    """Play test games. functions: entries of the group, in machine code. Raises PlugInError for a game that breaks the
    rules of `game_file`, crashes or hangs."""
    from psearch.games.game_compiler import play

    play(module, file, functions)
