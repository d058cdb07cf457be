"""Where machine code is kept, and when it may be used. Needs neither numba nor LLVM.

A folder of the cache is named by all that changes machine code beside the kernels themselves: versions, the processor,
switches. In it lie

- `NAME-DIGEST.o`: the machine code of a group of kernels; the digest covers the text of every function in it, without
  comments and docstrings, and the value of every constant that is frozen into it.
- `DIGEST.bc`: one kernel as LLVM's bitcode before optimisation. A change of one kernel compiles that kernel only.
- `NAME-PATH.json`: the files that this installation's group was made from, with a hash of each, and its object. While
  all of them are the same nothing has to be imported to know which object is right.

Every file is sealed with a checksum and replaced as a whole: one that is torn, cut short or of another make is as good
as none.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Progress = Callable[[str], None]

SWITCHES = ("PSEARCH_NO_PEXT", "PSEARCH_CHECK")
"""Environment variables that change machine code."""
_FORMAT = b"psearch kernels 1\n"
_KEEP_FOLDERS = 4
_KEEP_OBJECTS = 40
_KEEP_BITCODE = 4000


# -- the place -----------------------------------------------------------------------------------------------------


def _is_private(folder: Path) -> bool:
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _candidate_roots() -> Iterator[Path]:
    chosen = os.environ.get("PSEARCH_CACHE_DIR")
    if chosen:
        yield Path(chosen).expanduser()
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        yield Path(home) / "psearch"
    yield Path(tempfile.gettempdir()) / f"psearch-{os.getuid()}"


def cache_folder(key: str) -> Path:
    """The folder for this key; made if need be, writable by this user alone."""
    for root in _candidate_roots():
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            # what is cached is code: a folder that others can write to is code that others can run
            if not _is_private(root):
                continue
            folder = root / f"kernels-{key}"
            folder.mkdir(mode=0o700, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
        except OSError:
            continue
    # of the same shape: a process of ours that is told its parent finds it
    folder = Path(tempfile.mkdtemp(prefix="psearch-")) / f"kernels-{key}"
    folder.mkdir(mode=0o700)
    return folder


_PROCESSOR_FIELDS = {
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "flags",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
    "Features",
}
_ENOUGH = 1 << 16


def processor() -> str:
    """What kind of processor this is, with all that it can do: machine code is made for it.

    As the system tells it, for to ask LLVM one has to load it.
    """
    said = [os.uname().machine]
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file.read(_ENOUGH).partition("\n\n")[0].splitlines():  # the first one stands for all
            name, _, value = line.partition(":")
            if name.strip() in _PROCESSOR_FIELDS:
                said.append(value.strip())
    if len(said) == 1:
        from llvmlite import binding

        said += [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return "\n".join(said)


def environment_key(processor: str) -> str:
    """Names a cache folder. processor: see `processor`."""
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


def write_sealed(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    descriptor, new = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with open(descriptor, "wb") as out:
            out.write(_FORMAT + hashlib.sha256(content).digest() + content)
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def read_sealed(path: Path) -> bytes | None:
    """The content of a file that `write_sealed` wrote; None when there is none, or when it is damaged."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            text = file.read()
    except OSError:
        return None
    begin = len(_FORMAT) + hashlib.sha256().digest_size
    content = text[begin:]
    if text[:begin] != _FORMAT + hashlib.sha256(content).digest():
        return None
    return content


# -- the files that an object was made from ------------------------------------------------------------------------


def _record_path(folder: Path, group: str) -> Path:
    """Two installations may share a cache, and the objects in it: each has a record of its own."""
    place = hashlib.sha256(__file__.encode()).hexdigest()[:12]
    return folder / f"{group}-{place}.json"


def file_hash(path: str) -> str:
    """Of a source file's content; empty when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def write_record(folder: Path, group: str, files: Mapping[str, str], object_name: str) -> None:
    """Note that the group is `object_name` while these files have these hashes."""
    write_sealed(_record_path(folder, group), json.dumps({"files": dict(files), "object": object_name}).encode())


def recorded_object(folder: Path, group: str, known: dict[str, str] | None = None) -> str | None:
    """The name of the group's object, if none of the files that it was made from has changed.

    known: hashes found already, by path; filled on the way.
    """
    content = read_sealed(_record_path(folder, group))
    if content is None:
        return None
    record: dict[str, Any] = json.loads(content)
    known = {} if known is None else known
    for path, wanted in record["files"].items():
        if path not in known:
            known[path] = file_hash(path)
        if known[path] != wanted:
            return None
    return str(record["object"])


# -- objects -------------------------------------------------------------------------------------------------------


def write_object(folder: Path, name: str, entries: Mapping[str, int], code: bytes) -> None:
    """Keep the machine code of a group. entries: name and number of arguments of each function that Python calls."""
    write_sealed(folder / name, json.dumps(dict(entries)).encode() + b"\n" + code)


def read_object(folder: Path, name: str) -> tuple[dict[str, int], bytes] | None:
    """Entries and machine code of a group; None when there is no such object, or it is damaged."""
    content = read_sealed(folder / name)
    if content is None:
        return None
    entries, _, code = content.partition(b"\n")
    for used in (folder / name, folder):  # for `prune`
        with contextlib.suppress(OSError):
            os.utime(used)
    return json.loads(entries), code


# -- several programs at once --------------------------------------------------------------------------------------


@contextlib.contextmanager
def compile_lock(folder: Path, progress: Progress | None = None) -> Iterator[None]:
    """One program compiles, the others wait."""
    with open(folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if progress:
                progress("waiting for another program that is compiling the kernels")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prune(folder: Path) -> None:
    """Drop what has not been used for long: folders of older versions, objects and bitcode of older kernels."""
    siblings = [path for path in folder.parent.glob("kernels-*") if path != folder]
    for old in _least_recent(siblings, _KEEP_FOLDERS):
        shutil.rmtree(old, ignore_errors=True)
    for pattern, keep in (("*.o", _KEEP_OBJECTS), ("*.bc", _KEEP_BITCODE), (".new-*", _KEEP_OBJECTS)):
        for old in _least_recent(list(folder.glob(pattern)), keep):
            with contextlib.suppress(OSError):
                old.unlink()


def _least_recent(paths: list[Path], keep: int) -> list[Path]:
    def used(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:
            return 0.0

    return sorted(paths, key=used, reverse=True)[keep:]
