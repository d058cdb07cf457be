"""What the system and the control groups of this process, in versions 1 and 2, leave it of memory and processor time.

A limit may be set at the group that the process is in, or at any of its ancestors: a service of systemd, a job of
Slurm and a container have theirs somewhere below the root. All functions take the root of the file tree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

_MEMORY_FILES = {
    1: (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"),
    2: (("memory.max", "memory.high"), "memory.current", "inactive_file"),
}
"""Limits, usage, and the field of `memory.stat` with the cached files, which give way."""
_UNLIMITED = 1 << 60
_GROUP = re.compile(r"^\d+:([^:]*):(/.*)$", re.MULTILINE)
"""Controllers and path; version 2 names none."""
_MOUNT = re.compile(r"^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S* (\S+)$")
"""A line of mountinfo: topmost group, folder, kind, options."""


def available_memory(root: str = "") -> int:
    """Return the bytes that can be taken without swapping: what the kernel says, or what the control groups leave."""
    found = re.search(r"^MemAvailable: *(\d+)", _text(f"{root}/proc/meminfo"), re.MULTILINE)
    if found:
        in_system = int(found[1]) * 1024
    else:  # without /proc nothing says how much of what is not free would give way, as cached files do
        pages = max(os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PHYS_PAGES") // 2)
        in_system = pages * os.sysconf("SC_PAGE_SIZE")
    in_groups = memory_left(root)
    return in_system if in_groups is None else min(in_system, in_groups)


def usable_memory_mb(root: str = "") -> int:
    """Return the MiB that this process may use at most: the machine's, or what its control groups allow."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for limit, _, _ in _memory_limits(root))]) // 2**20


def memory_left(root: str = "") -> int | None:
    """Return the bytes that can still be taken, below zero when more is in use than allowed; None without a limit."""
    left = []
    for limit, version, folder in _memory_limits(root):
        _, usage_file, cache = _MEMORY_FILES[version]
        used = _number(_text(f"{folder}/{usage_file}")) or 0
        cached = re.search(rf"^{cache} (\d+)$", _text(f"{folder}/memory.stat"), re.MULTILINE)
        left.append(limit - used + (int(cached[1]) if cached else 0))
    return min(left, default=None)


def _memory_limits(root: str) -> Iterator[tuple[int, int, str]]:
    """Yield limit, version and folder of each group that limits this process's memory."""
    for version, folder in _groups("memory", root):
        files = _MEMORY_FILES[version][0]
        limits = [limit for name in files if (limit := _number(_text(f"{folder}/{name}"))) is not None]
        if limits:
            yield min(limits), version, folder


def oom_kills(root: str = "") -> int:
    """Return how many processes of this system have been killed for want of memory, in a control group or outside; 0
    where the system does not say."""
    found = re.search(r"^oom_kill (\d+)$", _text(f"{root}/proc/vmstat"), re.MULTILINE)
    return int(found[1]) if found else 0


def cores_left(root: str = "") -> float | None:
    """Return the seconds of processor time in a second; None without a limit."""
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
    """Return the cores that this process may keep busy all the time.

    With more workers than a quota of processor time is for, the system halts them at any moment, also one that holds a
    lock.
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
        # the topmost of its groups that a mount shows, and its folder; blanks and the like are written as `\040`
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
        # outside of what is mounted here, as with some containers: its own group is then what it sees
        for point, rest in inside or [(point, "") for _, point in shown[:1]]:
            while rest.strip("/"):
                yield version, f"{root}{point}{rest}"
                rest = rest.rpartition("/")[0]
            yield version, f"{root}{point}"


def _text(path: str) -> str:
    """Return what a file says; empty when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _number(text: str) -> int | None:
    """Return a limit; None for what says that there is none (`max`, -1, 2**63 less a page), and for no text."""
    text = text.strip()
    return int(text) if text.isdecimal() and int(text) < _UNLIMITED else None
