"""A whole build: run by `psearch.core.kernels` in a process of its own."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from psearch.core import jit, kernel_cache
from psearch.core.compiler.back_end import object_code
from psearch.core.compiler.dependencies import closure, digest_of, toolchain
from psearch.core.compiler.front_end import bitcode_of, prepare
from psearch.core.compiler.processes import in_processes
from psearch.core.jit import EntryKernel, Kernel

Groups = Mapping[str, tuple[Sequence[str], Mapping[str, str]]]
"""By name: the modules of its entries, and what it replaces."""


class Build:
    """Compiles groups into a cache folder; `tell` gets one line at a time."""

    def __init__(self, folder: Path, groups: Groups, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self.tell = tell
        self.start = time.perf_counter()
        self.entries: dict[str, list[Kernel]] = {}
        self.replaced = {name: replaced for name, (_, replaced) in groups.items()}
        for name, (modules, replaced) in groups.items():
            for module in (*modules, *(symbol.rpartition(".")[0] for symbol in replaced.values())):
                import_module(module)
            self.entries[name] = [
                kernel
                for kernel in jit.registry.values()
                if isinstance(kernel, EntryKernel) and kernel.py_func.__module__ in modules
            ]
        self.closures = {name: closure(entries, self.replaced[name]) for name, entries in self.entries.items()}
        self.digests = {
            symbol: digest_of(kernel) for members in self.closures.values() for symbol, kernel in members.items()
        }

    def run(self) -> None:
        """Make the objects that are missing, and note which object each group has now."""
        missing = [name for name in self.entries if not kernel_cache.read_object(self.folder, self.object_name(name))]
        stale = {
            symbol
            for name in missing
            for symbol in self.closures[name]
            if kernel_cache.read_sealed(self.bitcode_path(symbol)) is None
        }
        # the longest first: no process is left with one at the end
        order = sorted(stale, key=lambda symbol: -len(jit.registry[symbol].py_func.__code__.co_code))
        if order:
            prepare(jit.registry.values())
        total = len(order) + len(missing)
        for done, what in enumerate(self._done(order, missing), start=1):
            self.tell(f"compiling kernels, once: {done}/{total} {what} ({time.perf_counter() - self.start:.0f} s)")
        files = {file: kernel_cache.file_hash(file) for file in self.files()}
        for name in self.entries:
            kernel_cache.write_record(self.folder, name, files, self.object_name(name))

    def _done(self, symbols: list[str], groups: list[str]) -> Iterator[str]:
        """Do all the work on all cores; says what is done. Kernels first: a group needs all of them."""
        yield from in_processes(self.front_end, symbols)
        yield from in_processes(self.back_end, groups)

    def files(self) -> list[str]:
        """Every file of this package that was imported to compile, and those of kernels elsewhere."""
        others = {kernel.py_func.__module__ for kernel in jit.registry.values()}
        own = [module for name, module in sys.modules.items() if name.partition(".")[0] == "psearch" or name in others]
        return sorted(str(module.__file__) for module in own if getattr(module, "__file__", None))

    def bitcode_path(self, symbol: str) -> Path:
        return self.folder / f"{self.digests[symbol]}.bc"

    def object_name(self, group: str) -> str:
        """Of a group: named by all that is in it."""
        parts = [toolchain(), *(kernel.symbol for kernel in self.entries[group])]
        parts += [self.digests[symbol] for symbol in sorted(self.closures[group])]
        parts += [str(sorted(self.replaced[group].items()))]
        return f"{group}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:32]}.o"

    def front_end(self, symbol: str) -> str:
        """Compile one kernel to bitcode."""
        kernel_cache.write_sealed(self.bitcode_path(symbol), bitcode_of(jit.registry[symbol]))
        return symbol.rpartition(".")[2]

    def back_end(self, group: str) -> str:
        """Link and optimise one group."""
        bitcodes = []
        for symbol in sorted(self.closures[group]):
            bitcode = kernel_cache.read_sealed(self.bitcode_path(symbol))
            if bitcode is None:
                raise OSError(f"{self.bitcode_path(symbol)} cannot be read")
            bitcodes.append(bitcode)
        entries = self.entries[group]
        counts = {kernel.py_func.__name__: len(kernel.arguments) for kernel in entries}
        code = object_code(bitcodes, entries, self.replaced[group])
        kernel_cache.write_object(self.folder, self.object_name(group), counts, code)
        return f"all of {group}"


def main(folder: str, groups: Groups) -> int:
    """Compile groups. Progress goes to stdout, a line of JSON each."""

    def tell(text: str) -> None:
        print(json.dumps(text), flush=True)

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        Build(Path(folder), groups, tell).run()
    except (KeyboardInterrupt, BrokenPipeError):
        return 1
    return 0
