"""Where machine code is kept, and when it may be used. Needs neither numba nor LLVM.

A folder of the cache is named by all that changes machine code beside the kernels themselves: versions, the processor,
switches. In it lie

- `NAME-DIGEST.o`: the machine code of a group of kernels; the digest covers the text of every function in it, without
  comments and docstrings, and the value of every constant that is frozen into it.
- `DIGEST.bc`: one kernel as LLVM's bitcode before optimisation. A change of one kernel compiles that kernel only.
- `NAME-DIGEST.json`: the files that a group was made from, with a hash of each, and its object. The digest covers the
  installation, and the modules and replaced kernels of the group. While all files are the same nothing has to be
  imported to know which object is right.

Every file is sealed with a checksum and replaced as a whole: one that is torn, cut short, emptied by a power cut or of
another make is as good as none, and is made again. Only folders that nobody else can change are used
(`trusted_folder`), and nothing in them is unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from psearch.core.toolchain.trusted_folder import Folder, NotTrusted, open_folder

Progress = Callable[[str], None]

SWITCHES = ("PSEARCH_NO_PEXT", "PSEARCH_CHECK", "PSEARCH_YIELDS")
"""Environment variables that change machine code."""
_FORMAT = b"psearch kernels 1\n"
_PUBLIC_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
"""Where everybody may make a folder; the last one is memory, and there when no file system can be written."""
_TRIAL_BYTES = 1 << 18
"""A folder is written to if it takes so much: more than the objects of a search."""


class KernelError(Exception):
    """Kernels cannot be had; the text is one line."""


class PlugInError(KernelError):
    """A user's file of kernels has a mistake; the text begins with the file, and the line where there is one."""


class Object(NamedTuple):
    """The machine code of a group."""

    name: str
    """of its file"""
    entries: dict[str, int]
    """name and number of arguments of each function that Python calls"""
    code: bytes
    """an object file"""


# -- the place -----------------------------------------------------------------------------------------------------

_roots: tuple[str, ...] | None = None


def roots() -> tuple[str, ...]:
    """Return the folders that may hold the cache, the most wanted first; absolute, and the same to the program's
    end."""
    global _roots
    if _roots is None:
        user = f"psearch-{os.geteuid()}"
        public = (os.environ.get("TMPDIR"), *_PUBLIC_FOLDERS)
        wanted = [_wanted_root(), *(os.path.join(folder, user) for folder in public if folder)]
        absolute = [_absolute(path) for path in wanted if path]
        _roots = tuple(dict.fromkeys(path for path in absolute if path))
    return _roots


def _wanted_root() -> str | None:
    chosen = os.environ.get("PSEARCH_CACHE_DIR")
    if chosen:
        chosen = os.path.expanduser(chosen)
        return None if chosen.startswith("~") else chosen  # a user who has no home
    home = os.environ.get("XDG_CACHE_HOME")
    if home:
        return os.path.join(home, "psearch")
    home = os.path.expanduser("~")
    # a home that is not there (`/nonexistent` of a service) is none: it is not for us to make
    return os.path.join(home, ".cache", "psearch") if os.path.isabs(home) and os.path.lexists(home) else None


def _absolute(path: str) -> str | None:
    """Not normalised: `..` behind a link is the folder above its target."""
    if os.path.isabs(path):
        return path
    try:
        return os.path.join(os.getcwd(), path)
    except OSError:  # the working folder has been removed
        return None


def _folder_name(key: str) -> str:
    return f"kernels-{key}"


@contextlib.contextmanager
def open_cache(root: str, key: str) -> Iterator[Folder | None]:
    """Open the folder for this key under one of the roots; None when there is none, or none that can be trusted."""
    try:
        with open_folder(root) as outer:
            folder = outer.inner(_folder_name(key))
    except OSError:
        yield None
        return
    with folder:
        yield folder


@contextlib.contextmanager
def open_to_write(key: str, problems: list[str]) -> Iterator[tuple[str, Folder | None]]:
    """Open the first root under which files can be kept, and the folder for this key there, made if need be.

    Without a name, and None, when there is none. problems: gets the reason of each root that was passed over.
    """
    for root in roots():
        try:
            with open_folder(root, make=True) as outer:
                folder = outer.inner(_folder_name(key), make=True)
        except OSError as error:
            problems.append(told(root, error))
            continue
        with folder:
            try:
                folder.check_room(_TRIAL_BYTES)
            except OSError as error:
                problems.append(told(root, error))
            else:
                yield root, folder
                return
    yield "", None


def told(path: str, error: OSError) -> str:
    """Return why a folder is not used."""
    return str(error.strerror) if isinstance(error, NotTrusted) else f"{path}: {error.strerror or error}"


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
    """Return what kind of processor this is, with all that it can do: machine code is made for it.

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
    """Return the name of a cache folder. processor: see `processor`."""
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


def write_sealed(folder: Folder, name: str, content: bytes) -> None:
    """Replace a file as a whole. Not forced to the disk: what a power cut leaves half written is not believed."""
    folder.replace(name, _FORMAT + _digest(name, content) + content)


def read_sealed(folder: Folder, name: str) -> bytes | None:
    """Return the content of a file that `write_sealed` wrote; None when there is none, or none that can be trusted."""
    try:
        text = folder.read(name)
    except OSError:
        return None
    begin = len(_FORMAT) + hashlib.sha256().digest_size
    content = text[begin:]
    if text[:begin] != _FORMAT + _digest(name, content):
        return None
    return content


def _digest(name: str, content: bytes) -> bytes:
    """Return the digest of a file under its own name: one that was copied over another is not the other."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


# -- the files that an object was made from ------------------------------------------------------------------------


def _record_name(group: str, made_of: str) -> str:
    """Two installations may share a cache, and the objects in it: each has a record of its own."""
    place = hashlib.sha256(f"{__file__}\0{made_of}".encode()).hexdigest()[:12]
    return f"{group}-{place}.json"


def file_hash(path: str) -> str:
    """Return a hash of a source file's content; empty when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return content_hash(file.read())
    except OSError:
        return ""


def content_hash(content: bytes) -> str:
    """Return what `file_hash` returns for a file of this content."""
    return hashlib.sha256(content).hexdigest()


def text_hash(text: str) -> str:
    """Return a hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def write_record(folder: Folder, group: str, files: Mapping[str, str], object_name: str, made_of: str = "") -> None:
    """Note that the group is `object_name` while these files have these hashes. made_of: see `Group`."""
    record = json.dumps({"files": dict(files), "object": object_name})
    write_sealed(folder, _record_name(group, made_of), record.encode())


def recorded_object(folder: Folder, group: str, known: dict[str, str] | None = None, made_of: str = "") -> str | None:
    """Return the name of the group's object, if none of the files that it was made from has changed.

    known: hashes found already, by path; filled on the way. made_of: see `Group`.
    """
    content = read_sealed(folder, _record_name(group, made_of))
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


def write_object(folder: Folder, found: Object) -> None:
    """Keep the machine code of a group."""
    write_sealed(folder, found.name, packed(found))


def read_object(folder: Folder, name: str) -> Object | None:
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


def keep(folder: Folder, group: str, found: Object, files: Mapping[str, str], made_of: str = "") -> None:
    """Keep what was compiled for a group, of these files. made_of: see `Group`. Raises OSError."""
    write_object(folder, found)
    write_record(folder, group, files, found.name, made_of)
