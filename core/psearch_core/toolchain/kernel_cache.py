"""Where machine code is kept, and when it may be used. Needs neither numba nor LLVM.

The cache is the folder that `PSEARCH_CACHE_DIR` names, or this user's folder for caches. A folder in it is named by all
that changes machine code beside the kernels themselves: versions, the processor, switches. In that lie

- `NAME-DIGEST.o`: the machine code of a group of kernels; the digest covers the text of every function in it, without
  comments and docstrings, and the value of every constant that is frozen into it.
- `DIGEST.bc`: one kernel as LLVM's bitcode before optimisation. A change of one kernel compiles that kernel only.
- `NAME-DIGEST.json`: the files that a group was made from, with a hash of each, and its object. The digest covers the
  installation and the group's recipe. While all files are the same nothing has to be imported to know which object is
  right.

Every file is sealed with a checksum and replaced as a whole: one that is torn, cut short, emptied by a power cut or of
another make is as good as none, and is made again. Nothing is unpickled.

Whoever can write there can have other code run. So the folder and each file in it must belong to this user, or to root,
and nobody else may be able to write to them; anything else is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

Progress = Callable[[str], None]

SWITCHES = ("PSEARCH_NO_PEXT", "PSEARCH_CHECK", "PSEARCH_YIELDS")
"""Environment variables that change machine code."""
MOST_BYTES = 512 << 20
"""Size of the whole cache: some hundred versions, processors and switches."""
_FORMAT = b"psearch kernels 1\n"
_NOT_TOUCHED_S = 3600.0
"""A file's time of last use is written at most this often, not at every start of a program."""
_SPARED_S = 86400.0
"""A file that was used this recently stays, however full the cache is: it may be in use."""
_FILE = re.compile(r"[\w.-]+-[0-9a-f]{32}\.o|[0-9a-f]{32}\.bc|[\w.-]+-[0-9a-f]{12}\.json|\.new-\w+")
_NEW = ".new-"
"""Begins the name of a file that is being written; one that stays was left by a program that was killed."""


class KernelError(Exception):
    """Kernels cannot be had; the text is one line."""


class PlugInError(KernelError):
    """A user's file of kernels has a mistake; the text begins with the file, and the line where there is one."""


class PlugIn(NamedTuple):
    """A user's file whose kernels stand in for hooks."""

    file: str
    """absolute path"""
    module: str
    """by which it is imported; empty: it is no module of a package"""
    digest: str
    """`content_hash` of the file"""
    beside: tuple[str, ...] = ()
    """file, module and digest of a second file, whose kernels stand in for other hooks: a game's policy"""


class Recipe(NamedTuple):
    """Says from what a group is compiled."""

    modules: tuple[str, ...]
    """those that define its entries"""
    replaced: Mapping[str, str] = {}
    """kernels of which it has another version, by symbol; a user's file does not replace these"""
    adapter: str = ""
    """the module that makes kernels of a user's plain functions, by `adapt`, and tries them out, by `try_out`"""
    plug_in: PlugIn | None = None


class Object(NamedTuple):
    """The machine code of a group."""

    name: str
    """of its file"""
    entries: dict[str, int]
    """name and number of arguments of each function that Python calls"""
    code: bytes
    """an object file"""


# -- the folder ----------------------------------------------------------------------------------------------------

_root: str | None = None


def root() -> str:
    """Return the folder of the cache: absolute, and the same to the program's end. Raises KernelError for a user who
    has none."""
    global _root
    if _root is None:
        chosen = os.path.expanduser(os.environ.get("PSEARCH_CACHE_DIR", ""))
        try:
            if not chosen:
                from platformdirs import user_cache_dir

                chosen = user_cache_dir("psearch")
            if chosen.startswith("~"):
                raise RuntimeError  # as some versions of platformdirs do
            _root = os.path.abspath(chosen)
        except RuntimeError:
            text = "there is no home to keep compiled kernels in: PSEARCH_CACHE_DIR must name a folder"
            raise KernelError(text) from None
        except OSError as error:  # the working folder has been removed
            raise refusal(chosen, error) from error
    return _root


def open_folder(key: str, make: bool = False) -> str:
    """Return the path of this key's folder. make: if there is none. Raises KernelError for one that cannot be had, or
    that others can write to."""
    path = os.path.join(root(), f"kernels-{key}")
    try:
        if make:
            os.makedirs(path, 0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not make:
            return path  # in which nothing is found
        raise refusal(path, error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise refusal(path, "it is no folder")
    if not _is_own(status):
        raise refusal(path, "it belongs to somebody else, or others can write to it")
    return path


def refusal(path: str, reason: OSError | str) -> KernelError:
    """Return what is said where the cache cannot be used."""
    text = (reason.strerror or str(reason)) if isinstance(reason, OSError) else reason
    return KernelError(f"kernels cannot be kept in {path}: {text} (PSEARCH_CACHE_DIR may name another folder)")


def _is_own(status: os.stat_result) -> bool:
    """Whether nobody but root and this user can write there."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def prune() -> None:
    """Drop the least recently used files of the cache beyond its size.

    What has another name than the files of the cache is left alone. Other programs may use the cache meanwhile, and
    prune it too; what cannot be done is left.
    """
    files = []
    for path in Path(root()).glob("kernels-" + "[0-9a-f]" * 24 + "/*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if _FILE.fullmatch(path.name) and stat.S_ISREG(status.st_mode) and not path.parent.is_symlink():
                files.append((status.st_mtime, status.st_size, path))
    spared = time.time() - _SPARED_S
    size = 0
    for used_s, bytes_, path in sorted(files, reverse=True):
        size += bytes_
        if used_s < spared and (size > MOST_BYTES or path.name.startswith(_NEW)):
            with contextlib.suppress(OSError):
                path.unlink()


# -- the key -------------------------------------------------------------------------------------------------------

_PROCESSOR_FIELDS = re.compile(
    "vendor_id|cpu family|model|model name|stepping|flags|Features|CPU (implementer|architecture|variant|part|revision)"
)
_ENOUGH = 1 << 16


def processor() -> str:
    """Return what kind of processor this is, with all that it can do: machine code is made for it.

    As the system tells it, for to ask LLVM one has to load it.
    """
    said = [os.uname().machine]
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file.read(_ENOUGH).partition("\n\n")[0].splitlines():  # the first one stands for all
            name, _, value = line.partition(":")
            if _PROCESSOR_FIELDS.fullmatch(name.strip()):
                said.append(value.strip())
    if len(said) == 1:
        from llvmlite import binding

        said += [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return "\n".join(said)


def environment_key(processor: str) -> str:
    """Return the key of a folder. processor: see `processor`."""
    digest = hashlib.sha256(_FORMAT)
    for part in (sys.version, processor, *(os.environ.get(name, "") for name in SWITCHES)):
        digest.update(part.encode() + b"\0")
    for package in ("numba", "llvmlite", "numpy"):
        digest.update(_version_file(package) + b"\0")
    return digest.hexdigest()[:24]


def _version_file(package: str) -> bytes:
    """The text that says a package's version, without importing the package: that may take long."""
    found = find_spec(package)
    if found is None or found.origin is None:
        return b""
    folder = Path(found.origin).parent
    for name in ("_version.py", "version.py"):
        with contextlib.suppress(OSError):
            return (folder / name).read_bytes()
    return found.origin.encode()


# -- sealed files --------------------------------------------------------------------------------------------------


def write_sealed(folder: str, name: str, content: bytes) -> None:
    """Replace a file as a whole: who reads it gets the old content or the new. Raises KernelError.

    Not forced to the disk: what a power cut leaves half written is not believed.
    """
    new = os.path.join(folder, f"{_NEW}{os.urandom(8).hex()}")
    try:
        with open(new, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(_FORMAT + _digest(name, content) + content)
        os.replace(new, os.path.join(folder, name))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise refusal(folder, error) from error


def read_sealed(folder: str, name: str) -> bytes | None:
    """Return the content of a file that `write_sealed` wrote, which counts as used now; None when there is none, or
    none that can be trusted."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe has perhaps no writer
    try:
        with open(os.open(os.path.join(folder, name), flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_own(status):
                return None
            if time.time() - status.st_mtime > _NOT_TOUCHED_S:
                with contextlib.suppress(OSError):
                    os.utime(file.fileno())
            text = file.read(status.st_size)
    except OSError:
        return None
    begin = len(_FORMAT) + hashlib.sha256().digest_size
    content = text[begin:]
    return content if text[:begin] == _FORMAT + _digest(name, content) else None


def _digest(name: str, content: bytes) -> bytes:
    """Return the digest of a file under its own name: one that was copied over another is not the other."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


# -- objects, and the files that they were made from ---------------------------------------------------------------


def _record_name(group: str, recipe: Recipe) -> str:
    """Two installations may share a cache, and the objects in it: each has a record of its own. And another program may
    mean other kernels by the same name."""
    made_of = recipe.modules, sorted(recipe.replaced.items()), recipe.adapter, recipe.plug_in
    return f"{group}-{content_hash(f'{__file__}{made_of}'.encode())[:12]}.json"


def content_hash(content: bytes) -> str:
    """Return what `file_hash` returns for a file of this content."""
    return hashlib.sha256(content).hexdigest()


def file_hash(path: str) -> str:
    """Return a hash of a source file's content; empty when it cannot be read."""
    try:
        return content_hash(Path(path).read_bytes())
    except OSError:
        return ""


def write_record(folder: str, group: str, recipe: Recipe, files: Mapping[str, str], object_name: str) -> None:
    """Note that the group is `object_name` while these files have these hashes."""
    record = json.dumps({"files": dict(files), "object": object_name})
    write_sealed(folder, _record_name(group, recipe), record.encode())


def recorded_object(folder: str, group: str, recipe: Recipe, known: dict[str, str] | None) -> str | None:
    """Return the name of the group's object, if none of the files that it was made from has changed.

    known: hashes found already, by path; filled on the way. None: whatever has changed.
    """
    content = read_sealed(folder, _record_name(group, recipe))
    if content is None:
        return None
    record: dict[str, Any] = json.loads(content)
    if known is not None:
        for path, wanted in record["files"].items():
            if path not in known:
                known[path] = file_hash(path)
            if known[path] != wanted:
                return None
    return str(record["object"])


def read_object(folder: str, name: str) -> Object | None:
    """Return the machine code of a group; None when there is no such object, or it is damaged."""
    content = read_sealed(folder, name)
    return None if content is None else unpacked(name, content)


def packed(found: Object) -> bytes:
    """Return entries and code, for a file or another process."""
    return json.dumps(found.entries).encode() + b"\n" + found.code


def unpacked(name: str, content: bytes) -> Object:
    """Return what `packed` has packed."""
    entries, _, code = content.partition(b"\n")
    return Object(name, json.loads(entries), code)
