"""Kernel sets: which kernels a search runs, as a value that travels with its memory and workers.

It is the package's own, or the same with hooks (`jit.hook`) replaced by the kernels of one file, or of a game's and a
policy's. What has such a set asks it for the group to call in place of one of the package's. A file is known by its
path and a hash of its content: one that has been edited is another set, and no process runs another than the one that
was asked for.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from psearch_core.toolchain import kernel_cache
from psearch_core.toolchain.groups import Group
from psearch_core.toolchain.kernel_cache import PlugIn

_DIGITS, _MOST_LETTERS = 12, 32
_lock = threading.Lock()
_groups: dict[tuple[str, PlugIn, str], Group] = {}


@dataclass(frozen=True)
class KernelSet:
    """The kernels of the package, or with those of a file in place of some."""

    file: str = ""
    """absolute path; empty: nothing is replaced"""
    module: str = ""
    """by which the file is imported; empty: it is no module of a package"""
    digest: str = ""
    """hash of the file's content"""
    words: int = 0
    """of 64 bits, in the memory that all workers share, for the file's kernels alone"""
    hooks: str = ""
    """names of the hooks that the file replaces, as its text has them, with spaces between"""
    adapter: str = ""
    """the module that makes kernels of the file, where it is one of plain functions: it names, as `REPLACED` and
    `MODULES`, what every group has in its kernels' place, and besides; see `Recipe`"""
    beside: tuple[str, ...] = ()
    """see `PlugIn`"""

    @property
    def brings_game(self) -> bool:
        """Whether the file says what is searched: the package's own kernels cannot search it then."""
        return bool(self.adapter)

    def group(self, base: Group) -> Group:
        """Return the group with this set's kernels; `base` itself where nothing is replaced."""
        if not self.file:
            return base
        plug_in = PlugIn(self.file, self.module, self.digest, self.beside)
        with _lock:
            if (base.name, plug_in, self.adapter) not in _groups:
                stem = re.sub(r"[^A-Za-z0-9_]", "_", Path(self.file).stem)[:_MOST_LETTERS]
                mark = kernel_cache.text_hash(repr((*plug_in, self.adapter)))[:_DIGITS]
                modules, replaced = base.recipe.modules, base.recipe.replaced
                if self.adapter:
                    adapter = import_module(self.adapter)
                    modules, replaced = (*modules, *adapter.MODULES), {**replaced, **adapter.REPLACED}
                name = f"{base.name}-{stem}-{mark}"
                made = Group(name, *modules, replaced=replaced, plug_in=plug_in, adapter=self.adapter)
                _groups[base.name, plug_in, self.adapter] = made
            return _groups[base.name, plug_in, self.adapter]


STANDARD = KernelSet()
"""The package's own kernels."""
