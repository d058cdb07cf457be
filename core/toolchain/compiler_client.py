"""The program's side of the compiler: a process of its own, which this one starts, listens to, and outlives."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from psearch.core.toolchain.interpreter import NotPython, python_command
from psearch.core.toolchain.kernel_cache import KernelError, Object, PlugInError, Progress
from psearch.core.toolchain.recipes import PlugIn, Recipe
from psearch.core.toolchain.trusted_folder import Folder

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from psearch.core.toolchain.compiler.build import main; "
    "raise SystemExit(main({pipe}, {folder}, {groups!r}, {plug_in!r}, {most_processes}, {parent}))"
)
_STARTED_BY = "PSEARCH_COMPILING"
"""Set in the compiler's environment: where the interpreter is the program itself, it must not start another."""
_MOST_PROCESSES = 16
_POLL_MS = 1000
_PATIENCE_S = 300.0
"""Without a word of it. One group takes some 10 s on a core of 2020."""
_IMPORT_S = 30.0
"""Of a user's file."""
_EXIT_S = 10.0
_MOST_WORDS = 400
_MOST_ERRORS = 1 << 16
_READ_BYTES = 1 << 16


class Compiled(NamedTuple):
    """What the compiler made."""

    objects: dict[str, Object]
    """by group"""
    files: dict[str, str]
    """hashes of the files that they were made from"""


class _Interrupted(Exception):
    """The compiler was killed, or one of its processes: perhaps memory was short."""


def compile_groups(
    groups: Mapping[str, Recipe],
    plug_in: PlugIn | None,
    folder: Folder | None,
    progress: Progress | None,
    keep_turn: Callable[[], None],
) -> Compiled:
    """Compile groups, by name, with the kernels of a user's file if one is given.

    folder: where the compiler may keep bitcode. keep_turn: called every second. Raises KernelError, PlugInError where a
    user's file is to blame.
    """
    try:
        try:
            return _Compiler(groups, plug_in, folder, _MOST_PROCESSES).listen(progress, keep_turn)
        except _Interrupted:
            # alone it needs less memory, and what was done is kept
            return _Compiler(groups, plug_in, folder, 1).listen(progress, keep_turn)
    except _Interrupted as error:
        raise KernelError(f"compiling the kernels failed: {error}") from error


class _Compiler:
    """One process that compiles."""

    def __init__(
        self,
        groups: Mapping[str, Recipe],
        plug_in: PlugIn | None,
        folder: Folder | None,
        most_processes: int,
    ) -> None:
        try:
            self._python = python_command(_STARTED_BY)
        except NotPython as other:
            text = f"the kernels need a Python interpreter to compile them, and sys.executable is {other}"
            raise KernelError(text) from None
        self._objects: dict[str, Object] = {}
        self._files: dict[str, str] | None = None
        self._error = ""
        self._is_killed = False
        self._mistake = ""
        """of a user's file"""
        self._importing = ""
        """the user's file that is being imported now"""
        self._is_over = False
        """the last message has come"""
        self._words = b""
        """the compiler's stderr"""
        self._rest = b""
        """of the pipe, not yet a whole line"""
        try:
            self._pipe, theirs = os.pipe()
            try:
                self._process = self._start(theirs, groups, plug_in, folder, most_processes)
            except BaseException:
                os.close(self._pipe)
                raise
            finally:
                os.close(theirs)
        except OSError as error:
            raise KernelError(f"the compiler of the kernels cannot be started: {error.strerror}") from error

    def _start(
        self,
        pipe: int,
        groups: Mapping[str, Recipe],
        plug_in: PlugIn | None,
        folder: Folder | None,
        most_processes: int,
    ) -> subprocess.Popen[bytes]:
        inner = None if folder is None else folder.descriptor
        program = _PROGRAM.format(
            path=_absolute_path(),
            pipe=pipe,
            folder=inner,
            groups={
                name: (tuple(recipe.modules), dict(recipe.replaced), recipe.adapter) for name, recipe in groups.items()
            },
            plug_in=None if plug_in is None else tuple(plug_in),
            most_processes=most_processes,
            parent=os.getpid(),
        )
        # numba's own switches are for the host program: some change the machine code, some break it
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        environment["OPENBLAS_NUM_THREADS"] = "1"  # numpy starts no threads in a process that forks
        environment[_STARTED_BY] = "1"
        return subprocess.Popen(
            [*self._python, "-c", program],
            cwd="/",  # numba reads a file of settings in the working folder
            env=environment,
            pass_fds=[pipe] if inner is None else [pipe, inner],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the program's may be a protocol
            stderr=subprocess.PIPE,
        )

    def listen(self, progress: Progress | None, keep_turn: Callable[[], None]) -> Compiled:
        """Listen to the compiler until it ends. Raises KernelError, and _Interrupted when another try may help."""
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, self._pipe)
            stack.enter_context(self._process)
            stack.callback(self._process.kill)
            self._read(progress, keep_turn)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_EXIT_S)
        if self._files is not None:
            return Compiled(self._objects, self._files)
        if self._mistake:
            raise PlugInError(self._mistake)
        if self._importing:
            raise PlugInError(f"{self._importing}: it ended the process that imported it")
        status = self._process.returncode
        if status < 0:
            raise _Interrupted(f"the compiler was ended by signal {-status}; perhaps there is too little memory")
        error = " ".join((self._error or self._last_words()).split())[:_MOST_WORDS]
        if self._is_killed:
            raise _Interrupted(error)
        failure = KernelError(f"compiling the kernels failed: {error}")
        failure.add_note(self._words.decode(errors="replace"))
        raise failure

    def _read(self, progress: Progress | None, keep_turn: Callable[[], None]) -> None:
        """Messages up to the last one, and what is said on stderr. Not to the ends of the pipes: what the user's file
        has started may hold them."""
        assert self._process.stderr is not None
        errors = self._process.stderr.fileno()
        poll = select.poll()
        ends = {self._pipe, errors}
        for end in ends:
            poll.register(end, select.POLLIN)
        silent_s = importing_s = 0.0
        while ends:
            since = time.monotonic()
            ready = poll.poll(0 if self._is_over else _POLL_MS)
            if not ready and (self._is_over or self._process.poll() is not None):
                return
            keep_turn()
            # no longer than was asked for: this process may have been stopped for a while, and the compiler with it
            waited_s = min(time.monotonic() - since, _POLL_MS / 1000)
            silent_s = 0.0 if ready else silent_s + waited_s
            importing_s = importing_s + waited_s if self._importing else 0.0
            if importing_s > _IMPORT_S:
                raise PlugInError(f"{self._importing}: to import it takes more than {_IMPORT_S:.0f} s")
            if silent_s > _PATIENCE_S:
                raise KernelError(f"compiling the kernels failed: the compiler does nothing for {_PATIENCE_S:.0f} s")
            for end, _ in ready:
                text = os.read(end, _READ_BYTES)
                if not text:
                    poll.unregister(end)
                    ends.discard(end)
                elif end == errors:
                    self._words = (self._words + text)[-_MOST_ERRORS:]
                else:
                    self._take(text, progress)

    def _take(self, text: bytes, progress: Progress | None) -> None:
        """Messages; see `psearch.core.toolchain.compiler.build.main`."""
        *lines, self._rest = (self._rest + text).split(b"\n")
        for message in map(json.loads, lines):
            if "tell" in message:
                if progress:
                    progress(message["tell"])
            elif "group" in message:
                code = base64.b64decode(message["code"])
                self._objects[message["group"]] = Object(message["name"], message["entries"], code)
            elif "importing" in message:
                self._importing = message["importing"]
            else:
                self._is_over = True
                self._files, self._mistake = message.get("files"), message.get("mistake", "")
                self._error, self._is_killed = message.get("error", ""), message.get("killed", False)
                self._importing = ""

    def _last_words(self) -> str:
        lines = self._words.decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "the compiler ended without a word")


def _absolute_path() -> list[str]:
    """Where this program finds modules: the compiler works in another folder."""
    return [os.path.abspath(place) if not place or os.path.exists(place) else place for place in sys.path]
