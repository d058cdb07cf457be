"""Memory and processor time that this process may use, limited by the system and control groups (versions 1 and 2).

A limit may be set at the process's own group or at any of its ancestors: a systemd service, a Slurm job and a container
have theirs somewhere below the root. `root` is the root of the file tree, for tests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

_MEMORY_FILES = {
    1: (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"),
    2: (("memory.max", "memory.high"), "memory.current", "inactive_file"),
}
"""Files with limits, file with the usage, and field of `memory.stat` with evictable cached files, by version."""
_UNLIMITED = 1 << 60
_GROUP = re.compile(r"^\d+:([^:]*):(/.*)$", re.MULTILINE)
"""Pattern of a line of /proc/self/cgroup: controllers (none in version 2) and path."""
_MOUNT = re.compile(r"^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S* (\S+)$")
"""Pattern of a line of mountinfo: topmost group, folder, kind, options."""


def available_memory(root: str = "") -> int:
    """Return the bytes that can be taken without swapping, as limited by the system and the control groups."""
    found = re.search(r"^MemAvailable: *(\d+)", _text(f"{root}/proc/meminfo"), re.MULTILINE)
    if found:
        in_system = int(found[1]) * 1024
    else:  # without /proc the size of evictable cached files is unknown: count half of the memory
        pages = max(os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PHYS_PAGES") // 2)
        in_system = pages * os.sysconf("SC_PAGE_SIZE")
    in_groups = memory_left(root)
    return in_system if in_groups is None else min(in_system, in_groups)


def usable_memory_mb(root: str = "") -> int:
    """Return the MiB that this process may use in all: the machine's memory, or the limit of its control groups."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for limit, _, _ in _memory_limits(root))]) // 2**20


def memory_left(root: str = "") -> int | None:
    """Return the bytes that the control groups still allow, negative above the limit; None without a limit."""
    left = []
    for limit, version, folder in _memory_limits(root):
        _, usage_file, cache = _MEMORY_FILES[version]
        used = _number(_text(f"{folder}/{usage_file}")) or 0
        cached = re.search(rf"^{cache} (\d+)$", _text(f"{folder}/memory.stat"), re.MULTILINE)
        left.append(limit - used + (int(cached[1]) if cached else 0))
    return min(left, default=None)


def _memory_limits(root: str) -> Iterator[tuple[int, int, str]]:
    """Yield limit in bytes, version and folder of each group that limits this process's memory."""
    for version, folder in _groups("memory", root):
        files = _MEMORY_FILES[version][0]
        limits = [limit for name in files if (limit := _number(_text(f"{folder}/{name}"))) is not None]
        if limits:
            yield min(limits), version, folder


def oom_kills(root: str = "") -> int:
    """Return the number of processes that the system has killed because memory ran out; 0 if that is unknown."""
    found = re.search(r"^oom_kill (\d+)$", _text(f"{root}/proc/vmstat"), re.MULTILINE)
    return int(found[1]) if found else 0


def cores_left(root: str = "") -> float | None:
    """Return the limit of processor time, in cores; None without a limit."""
    left = []
    for version, folder in _groups("cpu", root):
        if version == 2:
            words = _text(f"{folder}/cpu.max").split()
        else:
            words = [_text(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        quota, period = map(_number, words) if len(words) == 2 else (None, None)
        if quota is not None and period:
            left.append(quota / period)
    return min(left, default=None)


def usable_cores() -> int:
    """Return the number of cores that this process may keep busy.

    When workers exceed a quota of processor time, the system stops them at any moment, even one that holds a lock.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = cores_left()
    return cores if share is None else min(cores, max(1, int(share)))


def _groups(controller: str, root: str) -> Iterator[tuple[int, str]]:
    """Yield version and folder of each group that limits this process, from its own up to the topmost."""
    own = {}
    for names, path in _GROUP.findall(_text(f"{root}/proc/self/cgroup")):
        if not names or controller in names.split(","):
            own[1 if names else 2] = path
    mountinfo = _text(f"{root}/proc/self/mountinfo") if own else ""
    mounts = [match.groups() for match in map(_MOUNT.match, mountinfo.splitlines()) if match]
    for version, path in own.items():
        # each mount's topmost group and folder, in which blanks and the like are written as `\040`
        shown = [
            [re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), name) for name in (top, point)]
            for top, point, kind, options in mounts
            if (version == 1 and kind == "cgroup" and controller in options.split(","))
            or (version == 2 and kind == "cgroup2")
        ]
        inside = []
        for top, point in shown:
            rest = path.removeprefix(top.rstrip("/"))
            if (path + "/").startswith(top.rstrip("/") + "/") and ".." not in path.split("/"):
                inside.append((point, rest))
        # in some containers no mount contains the process's path: then the mounted group is its own
        for point, rest in inside or [(point, "") for _, point in shown[:1]]:
            while rest.strip("/"):
                yield version, f"{root}{point}{rest}"
                rest = rest.rpartition("/")[0]
            yield version, f"{root}{point}"


def _text(path: str) -> str:
    """Return the content of a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _number(text: str) -> int | None:
    """Parse a limit; None if there is no limit (`max`, -1, 2**63 minus a page) or no text."""
    text = text.strip()
    return int(text) if text.isdecimal() and int(text) < _UNLIMITED else None
