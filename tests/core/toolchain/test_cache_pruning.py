"""What is dropped from the cache: what has not been used for long, when there is too much of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from psearch.core.toolchain import cache_pruning, kernel_cache
from psearch.core.toolchain.cache_pruning import prune
from psearch.core.toolchain.kernel_cache import Object
from psearch.core.toolchain.trusted_folder import open_folder

KB = 1024
DAY_S = 86400


@pytest.fixture(autouse=True)
def _a_small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_pruning, "MOST_BYTES", 100 * KB)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir(mode=0o700)
    return tmp_path / "cache"


def version(number: int) -> str:
    return f"kernels-{number:024x}"


def add(root: Path, folder: str, name: str, days: float, size: int = 10 * KB) -> Path:
    """A file of some size that was used so many days ago."""
    path = root / folder / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - days * DAY_S,) * 2)
    return path


def object_name(number: int) -> str:
    return f"search-{number:032x}.o"


def test_the_least_recently_used_files_go(root):
    paths = [add(root, version(number % 3), object_name(number), days=2 + number) for number in range(14)]
    prune(str(root))
    assert [path.exists() for path in paths] == [True] * 10 + [False] * 4


def test_nothing_goes_while_there_is_room(root):
    """Of six kinds of processor with a home in common none compiles what another has dropped."""
    paths = [add(root, version(number), object_name(number), days=100 + number) for number in range(10)]
    for _ in range(3):
        prune(str(root))
    assert all(path.exists() for path in paths)


def test_what_was_used_today_stays(root):
    paths = [add(root, version(number), object_name(number), days=0.5) for number in range(20)]
    prune(str(root))
    assert all(path.exists() for path in paths)


def test_what_is_read_counts_as_used(root):
    names = [f"search-{number:032x}.o" for number in range(15)]
    for number, name in enumerate(names):
        with open_folder(str(root)) as outer, outer.inner(version(number), make=True) as folder:
            kernel_cache.write_object(folder, Object(name, {}, bytes(10 * KB)))
        path = root / version(number) / name
        os.utime(path, (time.time() - (2 + number) * DAY_S,) * 2)
    with open_folder(str(root)) as outer, outer.inner(version(14)) as folder:
        assert kernel_cache.read_object(folder, names[14]) is not None
    prune(str(root))
    kept = [number for number, name in enumerate(names) if (root / version(number) / name).exists()]
    assert kept == [*range(8), 14]


def test_every_kind_of_file_counts(root):
    for number in range(8):
        add(root, version(1), f"{number:032x}.bc", days=20)
        add(root, version(1), f"search-{number:012x}.json", days=20)
        add(root, version(1), f"tests.some_module-{number:032x}.o", days=20)
        add(root, version(1), f"search-my_policy-{number:032x}.o", days=20)
        add(root, version(1), f"search-my_policy-{number:012x}-{number:012x}.json", days=20)
    prune(str(root))
    assert len(list((root / version(1)).iterdir())) == 10


def test_an_empty_folder_goes_with_its_locks(root):
    add(root, version(1), object_name(1), days=30)
    add(root, version(1), "lock", days=30, size=0)
    add(root, version(1), "lock-2", days=30, size=0)
    for number in range(10):
        add(root, version(2), object_name(number), days=2)
    prune(str(root))
    assert [path.name for path in root.iterdir()] == [version(2)]


def test_what_a_killed_program_left_goes_after_a_day(root):
    old = add(root, version(1), ".new-0123456789abcdef", days=2)
    new = add(root, version(1), ".new-fedcba9876543210", days=0.1)
    prune(str(root))
    assert (old.exists(), new.exists()) == (False, True)


def test_what_is_unknown_is_left_alone(root):
    unknown = [
        add(root, version(1), "notes.txt", days=1000),
        add(root, version(1), "search.o", days=1000),
        add(root, version(2), "notes.txt", days=1000),
        add(root, "kernels-of-somebody", object_name(1), days=1000),
        add(root, "other", object_name(1), days=1000),
        root / version(3),
        root / version(1) / object_name(77),
        root / version(1) / object_name(78),
    ]
    unknown[-3].symlink_to(root / "other")
    unknown[-2].symlink_to(unknown[0])
    unknown[-1].mkdir()
    known = [add(root, version(2), object_name(number), days=500, size=200 * KB) for number in range(3)]
    prune(str(root))
    assert not any(path.exists() for path in known)
    assert all(path.exists() for path in unknown)


def test_two_programs_prune_at_once(root):
    """Each finds gone what the other has dropped."""
    for number in range(300):
        add(root, version(number % 30), object_name(number), days=2 + number / 100, size=KB)
    program = """
import sys
from psearch.core.toolchain import cache_pruning
cache_pruning.MOST_BYTES = 10 * 1024
sys.stdin.readline()
cache_pruning.prune(sys.argv[1])
"""
    words = [sys.executable, "-c", program, str(root)]
    programs = [subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for process in programs:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in programs:
        assert process.communicate(timeout=60)[1] == b""
    assert sorted(path.name for path in root.rglob("*.o")) == [object_name(number) for number in range(10)]


def test_what_goes_meanwhile_is_no_error(root, monkeypatch):
    """As when somebody deletes the cache, or the system its temporary files."""
    import shutil

    for number in range(30):
        add(root, version(number), object_name(number), days=10)
    files = cache_pruning._files

    def files_then_nothing(outer):
        found = list(files(outer))
        shutil.rmtree(root)
        return iter(found)

    monkeypatch.setattr(cache_pruning, "_files", files_then_nothing)
    prune(str(root))
    prune(str(root))
