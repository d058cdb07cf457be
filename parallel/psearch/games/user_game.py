"""How a user's game becomes kernels: what `psearch_core.toolchain.kernel_sets` and the compiler ask of this package.

`REPLACED` and `MODULES` say what a group of kernels has in place of chess, and beside it; `adapt` makes the stand-ins
for the hooks of `rules` from the functions of a file, and `try_out` plays some games with the machine code before
anybody searches. The latter two are called in the compiler's process alone.
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
"""Every kernel of `psearch_core.game`."""
MODULES = ("psearch.games.rules",)


def adapt(module: ModuleType, file: str) -> list[Kernel]:
    """Return the kernels of a file's game, those that stand in for hooks among them. Raises PlugInError."""
    from psearch.games.game_compiler import kernels_of

    return kernels_of(module, file)


def try_out(module: ModuleType, file: str, functions: dict[str, Callable[..., Any]]) -> None:
    """Play some games. functions: the group's entries, in machine code. Raises PlugInError for a game that does not do
    what it must, that crashes or does not come back."""
    from psearch.games.game_compiler import play

    play(module, file, functions)
