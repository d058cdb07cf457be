"""The cache of machine code: where it is kept, and when it may be used. Needs neither numba nor LLVM.

The cache is the folder that `PSEARCH_CACHE_DIR` names, or the user's cache folder. Each folder in it is named by
everything except the kernels that machine code depends on: versions, the processor, switches. It contains

- `NAME-DIGEST.o`: the machine code of a group of kernels. The digest covers the text of every function in it, without
  comments and docstrings, and the value of every constant that is frozen into it.
- `DIGEST.bc`: one kernel as LLVM bitcode, not optimised. If one kernel changes, only that kernel is compiled again.
- `NAME-DIGEST.json`: the name of a group's object, and the source files that it was made from, each with a hash. The
  digest covers the installation and the group's recipe. If no file has changed, the object is valid, and nothing has to
  be imported to find that out.

Every file is sealed with a checksum and replaced as a whole. A file that is torn, truncated, emptied by a power cut or
of another format counts as missing and is made again. Nothing is unpickled.

Whoever can write to the cache can run code in our processes. So the folder and its files must belong to this user or to
root, and nobody else may have write permission; anything else is refused.
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
"""Environment variables that machine code depends on."""
MOST_BYTES = 512 << 20
"""Greatest size of the whole cache, in bytes: about a hundred combinations of version, processor and switches."""
_FORMAT = b"psearch kernels 1\n"
_NOT_TOUCHED_S = 3600.0
"""Seconds for which a file's time of last use is not written again: not every start of a program should write it."""
_SPARED_S = 86400.0
"""Seconds after its last use for which a file stays in a full cache, since a program may still need it."""
_FILE = re.compile(r"[\w.-]+-[0-9a-f]{32}\.o|[0-9a-f]{32}\.bc|[\w.-]+-[0-9a-f]{12}\.json|\.new-\w+")
_NEW = ".new-"
"""Prefix of the name of a file that is being written. An old one was left by a program that was killed."""
_OWN_PACKAGES = ("psearch", "psearch_core")


class KernelError(Exception):
    """Kernels cannot be loaded or compiled; the text is one line."""


class PlugInError(KernelError):
    """A user's file of kernels has a mistake; the text begins with the file and, if known, the line."""


class PlugIn(NamedTuple):
    """A user's file whose kernels stand in for hooks."""

    file: str
    """Absolute path of the file."""
    module: str
    """Name under which the file is imported; empty if it is no module of a package."""
    digest: str
    """Hash of the file, by `content_hash`."""
    beside: tuple[str, ...] = ()
    """File, module and digest of a second file, whose kernels stand in for other hooks: a game's policy."""


class Recipe(NamedTuple):
    """Description of what a group is compiled from."""

    modules: tuple[str, ...]
    """Modules that define the entries."""
    replaced: Mapping[str, str] = {}
    """Symbols of kernels, and of those that stand in for them; a user's file does not replace these."""
    adapter: str = ""
    """Module that makes kernels from a user's plain functions (`adapt`) and tries them out (`try_out`)."""
    plug_in: PlugIn | None = None


class Object(NamedTuple):
    """The machine code of a group."""

    name: str
    """Name of the object's file in the cache."""
    entries: dict[str, int]
    """Number of arguments of each function that Python calls, by name."""
    code: bytes
    """Content of the object file."""


# -- the folder ----------------------------------------------------------------------------------------------------

_root: str | None = None


def root() -> str:
    """Return the absolute path of the cache, fixed while the program runs. Raises KernelError without a home folder."""
    global _root
    if _root is None:
        chosen = os.path.expanduser(os.environ.get("PSEARCH_CACHE_DIR", ""))
        try:
            if not chosen:
                from platformdirs import user_cache_dir

                chosen = user_cache_dir("psearch")
            if chosen.startswith("~"):
                raise RuntimeError  # some versions of platformdirs raise it themselves
            _root = os.path.abspath(chosen)
        except RuntimeError:
            text = "there is no home folder for compiled kernels: PSEARCH_CACHE_DIR must name a folder"
            raise KernelError(text) from None
        except OSError as error:  # the working folder has been removed
            raise refusal(chosen, error) from error
    return _root


def open_folder(key: str, make: bool = False) -> str:
    """Return the path of this key's folder. make: create a missing folder. Raises KernelError for one that cannot be
    used, or that others can write to."""
    path = os.path.join(root(), f"kernels-{key}")
    try:
        if make:
            os.makedirs(path, 0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not make:
            return path  # nothing will be found in it
        raise refusal(path, error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise refusal(path, "it is not a folder")
    if not _is_own(status):
        raise refusal(path, "it belongs to another user, or other users can write to it")
    if make:
        _check_writable(path)
    return path


def _check_writable(path: str) -> None:
    """Raise KernelError for a folder that nothing can be kept in, so that nothing is compiled for it."""
    from tempfile import TemporaryFile  # a warm start does not come here

    try:
        with TemporaryFile(dir=path) as file:
            file.write(bytes(4096))
    except OSError as error:
        raise refusal(path, error) from error


def refusal(path: str, reason: OSError | str) -> KernelError:
    """Return the error for a cache that cannot be used."""
    text = (reason.strerror or str(reason)) if isinstance(reason, OSError) else reason
    return KernelError(f"kernels cannot be kept in {path}: {text} (PSEARCH_CACHE_DIR may name another folder)")


def _is_own(status: os.stat_result) -> bool:
    """Tell whether only root and this user have write permission."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def prune() -> None:
    """Delete the least recently used files until the cache has at most its greatest size.

    Files with other names are left alone. Other programs may use and prune the cache at the same time, so errors are
    ignored.
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
    """Return a description of this processor and its features, for which machine code is made.

    The description comes from the system, since loading LLVM takes long.
    """
    parts = [os.uname().machine]
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file.read(_ENOUGH).partition("\n\n")[0].splitlines():  # only the first core
            name, _, value = line.partition(":")
            if _PROCESSOR_FIELDS.fullmatch(name.strip()):
                parts.append(value.strip())
    if len(parts) == 1:
        from llvmlite import binding  # type: ignore[import, unused-ignore]  # not every version has types

        parts += [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return "\n".join(parts)


def is_on(switch: str) -> bool:
    """Tell whether an environment variable, one of `SWITCHES`, is set to anything but nothing or 0."""
    return os.environ.get(switch, "") not in ("", "0")


def environment_key(processor: str) -> str:
    """Return the key of the folder for a processor, as `processor` describes it, and this environment."""
    digest = hashlib.sha256(_FORMAT)
    for part in (sys.version, processor, *("1" if is_on(name) else "" for name in SWITCHES)):
        digest.update(part.encode() + b"\0")
    for package in ("numba", "llvmlite", "numpy"):
        digest.update(_version_file(package) + b"\0")
    return digest.hexdigest()[:24]


def _version_file(package: str) -> bytes:
    """Return the source text that has a package's version; importing the package would take long."""
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
    """Replace a file atomically: readers get the old content or the new. Raises KernelError.

    The file is not synced to disk; if a power cut leaves it incomplete, its checksum is wrong.
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
    """Return what `write_sealed` wrote, and mark the file as used; None if it is missing or cannot be trusted."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # do not wait for the writer of a named pipe
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
    """Return the digest of a file's name and content, so that a file copied to another name is not valid."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


# -- objects, and the files that they were made from ---------------------------------------------------------------


def _record_name(group: str, recipe: Recipe) -> str:
    """Return the name of a group's record. Installations that share a cache have different records, and so have
    programs that use one name for different kernels, and checkouts whose scripts have modules of one name."""
    homes = [_home(module) for module in recipe.modules]
    made_of = recipe.modules, homes, sorted(recipe.replaced.items()), recipe.adapter, recipe.plug_in
    return f"{group}-{content_hash(f'{__file__}{made_of}'.encode())[:12]}.json"


def _home(module: str) -> str:
    """Return where the package of a module lies, if it is not this one or psearch."""
    package = module.partition(".")[0]
    if package in _OWN_PACKAGES:
        return ""
    found = find_spec(package)
    return "" if found is None else str(found.origin)


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
    """Record that `object_name` is the group's object as long as these files have these hashes."""
    record = json.dumps({"files": dict(files), "object": object_name})
    write_sealed(folder, _record_name(group, recipe), record.encode())


def recorded_object(folder: str, group: str, recipe: Recipe, known: dict[str, str] | None) -> str | None:
    """Return the name of the group's object if none of its source files has changed, else None.

    known: known hashes of files by path; more are added. None: do not look at the files.
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
    """Return an object of the cache; None if it is missing or damaged."""
    content = read_sealed(folder, name)
    return None if content is None else unpacked(name, content)


def packed(found: Object) -> bytes:
    """Return entries and code as bytes, for a file or another process."""
    return json.dumps(found.entries).encode() + b"\n" + found.code


def unpacked(name: str, content: bytes) -> Object:
    """Return the object that `packed` turned into bytes."""
    entries, _, code = content.partition(b"\n")
    return Object(name, json.loads(entries), code)
