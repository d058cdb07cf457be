"""Builds groups of kernels on all cores, in the process that `psearch_core.toolchain.compiler_client` starts."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from psearch_core.toolchain import jit, kernel_cache
from psearch_core.toolchain.compiler.back_end import object_code, processor
from psearch_core.toolchain.compiler.dependencies import circle, closure, digest_of, toolchain
from psearch_core.toolchain.compiler.front_end import bitcode_of, prepare
from psearch_core.toolchain.compiler.plug_ins import Loaded, mistake_in
from psearch_core.toolchain.groups import functions_of
from psearch_core.toolchain.jit import EntryKernel, Kernel
from psearch_core.toolchain.kernel_cache import KernelError, Object, PlugInError, Recipe

try:
    tempfile.gettempdir()
except OSError:
    tempfile.tempdir = "/"  # multiprocess imports dill, which asks for a temporary folder but never uses it

import multiprocess
from multiprocess.connection import wait

Report = Callable[[str, str], None]
"""Function that sends the program a message, as a kind and a text: `total` (number of parts), `done` (name of a part),
`importing` (the user's file; empty once it is imported). A build that fails ends with `mistake` (in a user's file),
`error`, or `killed` (memory may have been short)."""
_NUMBER_BYTES = 4
_PR_SET_PDEATHSIG = 1


class ProcessEnded(Exception):
    """A process ended before its work was done. One that was not killed has reported why."""

    def __init__(self, exit_code: int) -> None:
        self.is_killed = exit_code < 0
        super().__init__(f"one of the compiler's processes ended by signal {-exit_code}")


class Build:
    """Compiles groups into a folder of the cache. All recipes (by group name) have the same user's file, or none."""

    def __init__(
        self,
        folder: str,
        recipes: Mapping[str, Recipe],
        report: Report = lambda kind, text: None,
        most_processes: int = 1,
    ) -> None:
        self.folder = folder
        self.recipes = recipes
        self.report = report
        self.most_processes = most_processes
        self.entries: dict[str, list[Kernel]] = {}
        self.replaced: dict[str, Mapping[str, str]] = {}
        self.loaded: Loaded | None = None
        """The user's file."""
        for name, recipe in recipes.items():
            for module in (*recipe.modules, *(symbol.rpartition(".")[0] for symbol in recipe.replaced.values())):
                import_module(module)
            self.entries[name] = [
                kernel
                for kernel in jit.registry.values()
                if isinstance(kernel, EntryKernel) and kernel.py_func.__module__ in recipe.modules
            ]
            self.replaced[name] = recipe.replaced
        recipe = next(iter(recipes.values()))
        if recipe.plug_in is not None:
            report("importing", recipe.plug_in.file)
            self.loaded = Loaded(recipe.plug_in, recipe.adapter)
            report("importing", "")
            self.replaced = {name: {**self.loaded.replaced, **own} for name, own in self.replaced.items()}
        # hash the files now, not after compiling: the user may be editing them
        self.files = {file: kernel_cache.file_hash(file) for file in self._imported_files()}
        if self.loaded is not None:
            self.files[self.loaded.file] = self.loaded.digest
        self.closures = {name: closure(entries, self.replaced[name]) for name, entries in self.entries.items()}
        if self.loaded is not None:
            for name, members in self.closures.items():
                self.loaded.check_calls(circle(members, self.replaced[name]))
        self.digests: dict[str, str] = {}
        for members in self.closures.values():
            for symbol, kernel in members.items():
                with self._mistakes_in(kernel):
                    self.digests[symbol] = digest_of(kernel)
        changed = [file for file, known in self.files.items() if kernel_cache.file_hash(file) != known]
        if changed:  # the imported code may belong to neither version
            raise (KernelError if self.loaded is None else PlugInError)(
                f"{changed[0]}: it has changed since it was read"
            )

    @contextlib.contextmanager
    def _mistakes_in(self, kernel: Kernel) -> Iterator[None]:
        """Report an error of Python's parser or of numba in a user's kernel as a mistake in the file."""
        try:
            yield
        except Exception as error:
            if self.loaded is not None and kernel.py_func.__module__ in self.loaded.imported:
                raise mistake_in(kernel, error) from error
            raise

    def run(self) -> None:
        """Make the objects that the cache lacks, and record which files they were made from."""
        missing = [name for name in self.entries if self._is_missing(self.object_name(name))]
        symbols = {symbol for name in missing for symbol in self.closures[name]}
        # longest first, so that no process is left with a long one at the end
        needed = sorted(
            (symbol for symbol in symbols if self._is_missing(self.bitcode_name(symbol))),
            key=lambda symbol: (-len(jit.registry[symbol].py_func.__code__.co_code), symbol),
        )
        if needed:
            prepare(jit.registry.values())
        self.report("total", str(len(needed) + len(missing)))
        # kernels first: a group needs all of them
        share_out(self._make_bitcode, needed, self.most_processes, self.report)
        share_out(self._make_object, missing, self.most_processes, self.report)
        for name, recipe in self.recipes.items():
            kernel_cache.write_record(self.folder, name, recipe, self.files, self.object_name(name))

    def _is_missing(self, file: str) -> bool:
        return kernel_cache.read_sealed(self.folder, file) is None

    def _imported_files(self) -> list[str]:
        """Return the files that machine code may depend on: imported files of this package, and imported files in
        the folders of other kernels, from which these may import constants."""
        files = {
            name: str(module.__file__) for name, module in sys.modules.items() if getattr(module, "__file__", None)
        }
        modules = {kernel.py_func.__module__ for kernel in jit.registry.values()}
        folders = {Path(files[name]).parent for name in modules & set(files)}
        of_user = set() if self.loaded is None else self.loaded.imported
        return sorted(
            file
            for name, file in files.items()
            if name.partition(".")[0] in ("psearch", "psearch_core") or Path(file).parent in folders or name in of_user
        )

    def bitcode_name(self, symbol: str) -> str:
        """Return the name of a kernel's bitcode."""
        return f"{self.digests[symbol]}.bc"

    def object_name(self, group: str) -> str:
        """Return the name of a group's object: a digest of all its code and of the processor that it is made for."""
        parts = [toolchain(), *processor(), *(kernel.symbol for kernel in self.entries[group])]
        parts += [self.digests[symbol] for symbol in sorted(self.closures[group])]
        parts += [str(sorted(self.replaced[group].items()))]
        # copies of a user's file in two folders are two groups of the same code
        prefix = group if self.loaded is None else group.rpartition("-")[0]
        return f"{prefix}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:32]}.o"

    def front_end(self, symbol: str) -> bytes:
        """Compile one kernel to bitcode."""
        with self._mistakes_in(jit.registry[symbol]):
            return bitcode_of(jit.registry[symbol])

    def _make_bitcode(self, symbol: str) -> None:
        kernel_cache.write_sealed(self.folder, self.bitcode_name(symbol), self.front_end(symbol))
        gc.collect(0)  # only the garbage of this kernel
        self.report("done", symbol.rpartition(".")[2])

    def _make_object(self, group: str) -> None:
        """Link and optimise one group; an adapter then tries out the user's functions."""
        entries = self.entries[group]
        counts = {kernel.py_func.__name__: len(kernel.arguments) for kernel in entries}
        bitcodes = []
        for name in map(self.bitcode_name, sorted(self.closures[group])):
            bitcodes.append(kernel_cache.read_sealed(self.folder, name))
            if bitcodes[-1] is None:
                raise kernel_cache.refusal(self.folder, f"{name} has disappeared")
        code = object_code(filter(None, bitcodes), entries, self.replaced[group])
        made = Object(self.object_name(group), counts, code)
        if self.loaded is not None:
            self.loaded.try_out(functions_of(made))
        kernel_cache.write_sealed(self.folder, made.name, kernel_cache.packed(made))
        self.report("done", f"all of {group}")


def main(folder: str, recipes: Mapping[str, Recipe], most_processes: int, parent: int) -> int:
    """Compile groups, and write the messages of `Report` to stdout, each as a line of JSON.

    folder: folder of the cache; parent: the process that waits for this one. All other output goes to stderr.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
    gc.disable()  # it would scan numba's permanent objects again and again, a tenth of the time; see `_make_bitcode`
    channel = os.dup(1)
    os.dup2(2, 1)  # what the user's file prints must not reach the reports

    def report(kind: str, text: str) -> None:
        os.write(channel, json.dumps([kind, text]).encode() + b"\n")

    try:
        Build(folder, recipes, report, most_processes).run()
    except (KeyboardInterrupt, BrokenPipeError):
        return 1
    except Exception as error:
        _report_error(report, error)
        return 1
    return 0


def share_out(work: Callable[[str], None], items: Sequence[str], most_processes: int, report: Report) -> None:
    """Do the work for every item, in forked processes that take one item after another.

    There is one process for each core, or as many as the system allows. They read item numbers from a pipe, since
    semaphores and shared memory need a writable folder. No process outlives this call. Raises ProcessEnded.
    """
    count = min(len(os.sched_getaffinity(0)), most_processes, len(items))
    context = multiprocess.get_context("fork")
    numbers, fill = os.pipe()
    with open(fill, "wb") as pipe:
        pipe.write(b"".join(number.to_bytes(_NUMBER_BYTES, "little") for number in range(len(items))))
    started: list[Any] = []
    try:
        with contextlib.suppress(OSError):
            while 1 < count != len(started):
                arguments = (work, items, numbers, os.getpid(), report)
                process = context.Process(target=_work_off, args=arguments, daemon=True)
                process.start()
                started.append(process)
        if not started:
            for item in items:
                work(item)
        running = list(started)
        while running:
            wait([process.sentinel for process in running])
            codes = [process.exitcode for process in running]
            for code in filter(None, codes):
                raise ProcessEnded(code)
            running = [process for process, code in zip(running, codes, strict=True) if code is None]
    finally:
        os.close(numbers)
        for each in started:
            each.kill()
            each.join()


def _work_off(work: Callable[[str], None], items: Sequence[str], numbers: int, parent: int, report: Report) -> None:
    """Run one process, which ignores Ctrl-C and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
    while number := os.read(numbers, _NUMBER_BYTES):
        try:
            work(items[int.from_bytes(number, "little")])
        except Exception as error:
            _report_error(report, error)
            raise SystemExit(1) from None


def _report_error(report: Report, error: Exception) -> None:

    if isinstance(error, PlugInError):
        report("mistake", str(error))
    elif isinstance(error, KernelError):
        report("error", str(error))
    elif isinstance(error, ProcessEnded):
        if error.is_killed:
            report("killed", str(error))
    else:
        traceback.print_exc()
        words = ": ".join(part for part in (type(error).__name__, str(error)) if part)
        if isinstance(error, MemoryError):
            report("killed", words)
        else:
            report("error", f"compiling the kernels failed: {words}")


def end_with(parent: int) -> None:
    """Have the system kill this process when its parent ends; exit at once if it already has."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
