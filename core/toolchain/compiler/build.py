"""A whole build: run by `psearch.core.toolchain.compiler_client` in a process of its own."""

from __future__ import annotations

import base64
import contextlib
import gc
import hashlib
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from psearch.core.toolchain import jit, kernel_cache
from psearch.core.toolchain.compiler.back_end import object_code, processor
from psearch.core.toolchain.compiler.compiler_processes import (
    ProcessKilled,
    WorkFailed,
    end_with,
    in_processes,
    summary,
)
from psearch.core.toolchain.compiler.dependencies import circle, closure, digest_of, toolchain
from psearch.core.toolchain.compiler.front_end import bitcode_of, prepare
from psearch.core.toolchain.compiler.plug_ins import Loaded, mistake_in
from psearch.core.toolchain.groups import functions_of
from psearch.core.toolchain.jit import EntryKernel, Kernel
from psearch.core.toolchain.kernel_cache import Object, PlugInError
from psearch.core.toolchain.recipes import PlugIn, Recipe
from psearch.core.toolchain.trusted_folder import Folder

Groups = Mapping[str, Sequence[Any]]
"""By name: the fields of a `Recipe`."""


class Build:
    """Compiles groups; `tell` gets one line at a time.

    folder: of the cache, where bitcode is kept; None: nowhere; plug_in: fields of a `PlugIn`, a user's file that
    replaces kernels of these groups; importing: called with its path before it is imported, and with "" after that.
    """

    def __init__(
        self,
        folder: Folder | None,
        groups: Groups,
        tell: Callable[[str], None],
        most_processes: int,
        plug_in: Sequence[Any] | None = None,
        importing: Callable[[str], None] = lambda file: None,
    ) -> None:
        self.folder = folder
        self.tell = tell
        self.most_processes = most_processes
        self.start = time.perf_counter()
        self.entries: dict[str, list[Kernel]] = {}
        self.replaced: dict[str, Mapping[str, str]] = {}
        self.loaded: Loaded | None = None
        """the user's file"""
        self.adapter = ""
        """of all groups with the file"""
        for name, fields in groups.items():
            recipe = Recipe(*fields)
            for module in (*recipe.modules, *(symbol.rpartition(".")[0] for symbol in recipe.replaced.values())):
                import_module(module)
            self.entries[name] = [
                kernel
                for kernel in jit.registry.values()
                if isinstance(kernel, EntryKernel) and kernel.py_func.__module__ in recipe.modules
            ]
            self.replaced[name] = recipe.replaced
            self.adapter = recipe.adapter
        if plug_in is not None:
            importing(plug_in[0])
            self.loaded = Loaded(PlugIn(*plug_in), self.adapter)
            importing("")
            self.replaced = {name: {**self.loaded.replaced, **own} for name, own in self.replaced.items()}
        # now, and not when all is compiled: somebody may be editing them
        self.files = {file: kernel_cache.file_hash(file) for file in self._imported_files()}
        if self.loaded is not None:
            self.files[self.loaded.file] = self.loaded.digest
        self.closures = {name: closure(entries, self.replaced[name]) for name, entries in self.entries.items()}
        if self.loaded is not None:
            for name, members in self.closures.items():
                self.loaded.check_calls(circle(members, self.replaced[name]))
        self.digests = {
            symbol: self._digest_of(kernel) for members in self.closures.values() for symbol, kernel in members.items()
        }

        self.bitcodes: dict[str, bytes] = {}
        """by symbol"""

    def _is_users(self, kernel: Kernel) -> bool:
        return self.loaded is not None and kernel.py_func.__module__ in self.loaded.imported

    def check_unchanged(self) -> None:
        """Raise PlugInError where files were edited while a user's file was compiled: what is made is of neither."""
        changed = [file for file, known in self.files.items() if kernel_cache.file_hash(file) != known]
        if self.loaded is not None and changed:
            raise PlugInError(f"{changed[0]}: it has changed since it was read")

    def _digest_of(self, kernel: Kernel) -> str:
        try:
            return digest_of(kernel)
        except Exception as error:  # whatever a text of the user's does to Python's parser
            if self._is_users(kernel):
                raise mistake_in(kernel, error) from error
            raise

    def run(self) -> Iterator[Object]:
        """Yield the object of each group, from the cache or made."""
        missing = []
        for name in self.entries:
            kept = None if self.folder is None else kernel_cache.read_object(self.folder, self.object_name(name))
            if kept is None:
                missing.append(name)
            else:
                yield kept
        needed = sorted({symbol for name in missing for symbol in self.closures[name]})
        self.bitcodes = {symbol: found for symbol in needed if (found := self._kept_bitcode(symbol)) is not None}
        # the longest first: no process is left with one at the end
        order = sorted(
            set(needed) - set(self.bitcodes), key=lambda symbol: -len(jit.registry[symbol].py_func.__code__.co_code)
        )
        if order:
            prepare(jit.registry.values())
        total = len(order) + len(missing)
        done = 0
        # kernels first: a group needs all of them
        for symbol, bitcode in in_processes(self.front_end, order, self.most_processes):
            self.bitcodes[symbol] = bitcode
            self._keep_bitcode(symbol)
            done += 1
            self._tell_of(done, total, symbol.rpartition(".")[2])
        for name, made in in_processes(self.back_end, missing, self.most_processes):
            done += 1
            self._tell_of(done, total, f"all of {name}")
            yield made

    def _tell_of(self, done: int, total: int, what: str) -> None:
        self.tell(f"compiling kernels, once: {done}/{total} {what} ({time.perf_counter() - self.start:.0f} s)")

    def _imported_files(self) -> list[str]:
        """Every file of this package that was imported to compile, and every one beside kernels elsewhere: they may
        import constants and layouts from there."""
        files = {
            name: str(module.__file__) for name, module in sys.modules.items() if getattr(module, "__file__", None)
        }
        modules = {kernel.py_func.__module__ for kernel in jit.registry.values()}
        folders = {Path(files[name]).parent for name in modules & set(files)}
        of_user = set() if self.loaded is None else self.loaded.imported
        return sorted(
            file
            for name, file in files.items()
            if name.partition(".")[0] == "psearch" or Path(file).parent in folders or name in of_user
        )

    def _bitcode_name(self, symbol: str) -> str:
        return f"{self.digests[symbol]}.bc"

    def _kept_bitcode(self, symbol: str) -> bytes | None:
        return None if self.folder is None else kernel_cache.read_sealed(self.folder, self._bitcode_name(symbol))

    def _keep_bitcode(self, symbol: str) -> None:
        """Keep bitcode for the next change of another kernel. Not told when there is no room: so will be the object's
        fate."""
        if self.folder is not None:
            with contextlib.suppress(OSError):
                kernel_cache.write_sealed(self.folder, self._bitcode_name(symbol), self.bitcodes[symbol])

    def object_name(self, group: str) -> str:
        """Return the name of a group's object: it is named by all that is in it, and the processor that it is made
        for."""
        parts = [toolchain(), *processor(), *(kernel.symbol for kernel in self.entries[group])]
        parts += [self.digests[symbol] for symbol in sorted(self.closures[group])]
        parts += [str(sorted(self.replaced[group].items()))]
        # a copy of a user's file at another place is another group, of the same code
        prefix = group if self.loaded is None else group.rpartition("-")[0]
        return f"{prefix}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:32]}.o"

    def front_end(self, symbol: str) -> tuple[str, bytes]:
        """Compile one kernel to bitcode."""
        kernel = jit.registry[symbol]
        try:
            return symbol, bitcode_of(kernel)
        except Exception as error:  # whatever numba says of it
            if self._is_users(kernel):
                raise mistake_in(kernel, error) from error
            raise
        finally:
            gc.collect(0)  # what this kernel has left, and nothing older

    def try_out(self, made: Object) -> None:
        """Have the user's functions run for a while, where they are such as can be. Raises PlugInError."""
        if self.loaded is not None:
            self.loaded.try_out(functions_of(made))

    def back_end(self, group: str) -> tuple[str, Object]:
        """Link and optimise one group."""
        entries = self.entries[group]
        counts = {kernel.py_func.__name__: len(kernel.arguments) for kernel in entries}
        bitcodes = [self.bitcodes[symbol] for symbol in sorted(self.closures[group])]
        return group, Object(self.object_name(group), counts, object_code(bitcodes, entries, self.replaced[group]))


def main(
    descriptor: int,
    folder: int | None,
    groups: Groups,
    plug_in: Sequence[Any] | None,
    most_processes: int,
    parent: int,
) -> int:
    """Compile groups, and write what happens to a pipe, a line of JSON for each message.

    folder: descriptor of the folder in the cache; plug_in: see `Build`; parent: the process that waits for it. The
    messages: `tell`, a line of progress; `importing`, the user's file, then an empty text; `group`, with `name`,
    `entries` and `code` of its object; and one at last: `files`, with a hash of each, `mistake`, in a user's file, or
    `error`, one line, with `killed` if memory may have been short. What else there is to say goes to stderr.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
    gc.disable()  # what numba keeps is looked at again and again, a tenth of the time; see `front_end`
    with open(descriptor, "w", encoding="ascii") as pipe:
        try:
            _build(None if folder is None else Folder(folder, "the cache"), groups, plug_in, most_processes, pipe)
        except (KeyboardInterrupt, BrokenPipeError):
            return 1
        except PlugInError as error:
            _send(pipe, mistake=str(error))
            return 1
        except WorkFailed as error:
            print(error.words, file=sys.stderr)
            _send(pipe, error=str(error), killed=False)
            return 1
        except ProcessKilled as error:
            _send(pipe, error=f"one of its processes ended by {error}", killed=True)
            return 1
        except Exception as error:
            traceback.print_exc()
            _send(pipe, error=summary(error), killed=isinstance(error, MemoryError))
            return 1
    return 0


def _build(
    folder: Folder | None, groups: Groups, plug_in: Sequence[Any] | None, most_processes: int, pipe: IO[str]
) -> None:
    def tell(text: str) -> None:
        _send(pipe, tell=text)

    build = Build(folder, groups, tell, most_processes, plug_in, lambda file: _send(pipe, importing=file))
    names = {build.object_name(group): group for group in groups}
    for made in build.run():
        build.try_out(made)
        code = base64.b64encode(made.code).decode()
        _send(pipe, group=names[made.name], name=made.name, entries=made.entries, code=code)
    build.check_unchanged()
    _send(pipe, files=build.files)


def _send(pipe: IO[str], **message: Any) -> None:
    print(json.dumps(message), file=pipe, flush=True)
