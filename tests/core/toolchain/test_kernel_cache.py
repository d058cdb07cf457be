"""The cache of machine code: where it lies, whom it trusts, what is believed, what is dropped."""

from __future__ import annotations

import errno
import os
import random
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from psearch_core.toolchain import kernel_cache
from psearch_core.toolchain.kernel_cache import KernelError, Object, Recipe

OBJECT = Object("search-00000000000000000000000000000000.o", {"work": 3}, b"\n{machine\ncode}")
RECIPE = Recipe(("some_module",))
STRANGER = 54321
KB, DAY_S = 1024, 86400
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PSEARCH_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "_root", None)
    return tmp_path


@pytest.fixture
def folder(home: Path) -> str:
    return kernel_cache.open_folder("0" * 24, make=True)


def test_the_cache_lies_in_the_home_folder_and_is_the_user_s_alone(folder, home):
    assert Path(folder) == home / ".cache" / "psearch" / f"kernels-{'0' * 24}"
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_the_environment_chooses_the_folder_once(home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setenv("PSEARCH_CACHE_DIR", "chosen")
    assert kernel_cache.root() == f"{home}/chosen"
    monkeypatch.chdir("/")
    monkeypatch.setenv("PSEARCH_CACHE_DIR", "other")
    assert kernel_cache.root() == f"{home}/chosen"


@pytest.mark.parametrize("chosen", ["", "~nobody-of-that-name/cache"])
def test_a_user_without_a_home_is_told(home, monkeypatch, chosen):
    """No folder named `~` is made."""
    monkeypatch.chdir(home)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: STRANGER)
    monkeypatch.setenv("PSEARCH_CACHE_DIR", chosen)
    with pytest.raises(KernelError, match="no home folder for compiled kernels: PSEARCH_CACHE_DIR must name a folder"):
        kernel_cache.root()
    assert list(home.iterdir()) == []


def refused(make: bool) -> str:
    with pytest.raises(KernelError) as raised:
        kernel_cache.open_folder("0" * 24, make)
    return str(raised.value)


@pytest.mark.parametrize("make", [False, True])
@pytest.mark.parametrize("bits", [0o770, 0o707, 0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(folder, bits, make):
    Path(folder).chmod(bits)
    assert refused(make) == (
        f"kernels cannot be kept in {folder}: it belongs to another user, or other users can write to it "
        "(PSEARCH_CACHE_DIR may name another folder)"
    )


@needs_root
@pytest.mark.parametrize("make", [False, True])
def test_a_folder_of_somebody_else_is_refused(folder, make):
    os.chown(folder, STRANGER, STRANGER)
    assert "it belongs to another user" in refused(make)


def test_a_folder_that_nothing_can_be_written_to_is_refused_before_anything_is_compiled(folder, monkeypatch):
    """The folder is there: an image has it, or the disk is full."""

    def fail(dir):
        assert dir == folder
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    assert kernel_cache.open_folder("0" * 24) == folder
    assert "Read-only file system" in refused(True)


def test_a_link_to_a_folder_is_refused(folder, home):
    """Whoever made the link may have chosen which."""
    Path(folder).rename(home / "elsewhere")
    Path(folder).symlink_to(home / "elsewhere")
    assert "it is not a folder" in refused(False)


def test_a_folder_of_root_s_is_read_by_all(folder, monkeypatch):
    """An image contains such a folder."""
    kernel_cache.write_sealed(folder, OBJECT.name, kernel_cache.packed(OBJECT))
    for path in (Path(folder), *Path(folder).iterdir()):
        path.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER if os.getuid() == 0 else os.getuid())
    assert kernel_cache.read_object(kernel_cache.open_folder("0" * 24), OBJECT.name) == OBJECT


@pytest.mark.parametrize("name", kernel_cache.SWITCHES)
def test_the_key_covers_what_changes_the_machine_code(monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    before = kernel_cache.environment_key("a processor")
    assert kernel_cache.environment_key("a processor") == before
    assert kernel_cache.environment_key("another processor") != before
    for off in ("", "0"):
        monkeypatch.setenv(name, off)
        assert kernel_cache.environment_key("a processor") == before and not kernel_cache.is_on(name)
    monkeypatch.setenv(name, "1")
    assert kernel_cache.environment_key("a processor") != before


@pytest.mark.parametrize("package", ["numba", "llvmlite", "numpy"])
def test_versions_are_found_without_an_import(package):
    import importlib

    assert importlib.import_module(package).__version__.encode() in kernel_cache._version_file(package)


KEY = "from psearch_core.toolchain import groups; print(groups.key())"


def key_of(*flags: str, **more: str) -> str:
    words = [sys.executable, *flags, "-c", KEY]
    return subprocess.run(words, env={**os.environ, **more}, capture_output=True, text=True).stdout


def test_the_key_of_other_pythons(tmp_path):
    """An isolated one finds the same packages; one that finds another numba has another key. numba has no say in it."""
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").touch()
    (tmp_path / "numba" / "_version.py").write_text("version = 'of somebody'\n")
    plain = key_of()
    assert len(plain.strip()) == 24
    assert key_of("-I") == plain
    assert key_of(NUMBA_CPU_NAME="generic", NUMBA_CACHE_DIR="/nowhere") == plain
    assert key_of(PYTHONPATH=str(tmp_path)) not in ("", plain)


def test_files_that_are_changed_anywhere_are_no_files(folder):
    """Cut, filled with zeros as after a power cut, overwritten, joined: each counts as none, and none raises."""
    kernel_cache.write_sealed(folder, OBJECT.name, kernel_cache.packed(OBJECT))
    kernel_cache.write_record(folder, "search", RECIPE, {}, OBJECT.name)
    dice = random.Random(1)
    wholes = {path: path.read_bytes() for path in Path(folder).iterdir()}
    assert len(wholes) == 2
    for _ in range(1000):
        for path, whole in wholes.items():
            place = dice.randrange(len(whole))
            begin, end = whole[:place], whole[place:]
            other = dice.choice(list(wholes.values()))[dice.randrange(50) :]
            byte = bytes([dice.randrange(256)])
            changed = dice.choice(
                [begin, begin + bytes(len(end)), begin + byte + end[1:], begin + byte + end, begin + other]
            )
            path.write_bytes(changed)
            assert (kernel_cache.read_sealed(folder, path.name) is not None) == (changed == whole)
        kernel_cache.recorded_object(folder, "search", RECIPE, {})
        kernel_cache.read_object(folder, OBJECT.name)


@pytest.mark.parametrize("damage", ["link", "pipe", "writable", pytest.param("stranger", marks=needs_root)])
def test_a_file_that_is_none_of_the_cache_s_is_not_read(folder, damage):
    kernel_cache.write_sealed(folder, OBJECT.name, kernel_cache.packed(OBJECT))
    assert kernel_cache.read_object(folder, OBJECT.name) == OBJECT
    path = Path(folder, OBJECT.name)
    if damage == "link":
        path.symlink_to(path.rename(path.with_name("other")))
    elif damage == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif damage == "writable":
        path.chmod(0o620)
    else:
        os.chown(path, STRANGER, STRANGER)
    assert kernel_cache.read_object(folder, OBJECT.name) is None


def test_a_write_that_fails_is_a_line_and_leaves_the_old_file(folder, monkeypatch):
    kernel_cache.write_sealed(folder, "file", b"old")

    def fail(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KernelError, match=rf"kernels cannot be kept in {folder}: No space left on device"):
        kernel_cache.write_sealed(folder, "file", b"new")
    assert kernel_cache.read_sealed(folder, "file") == b"old"
    assert os.listdir(folder) == ["file"]


def test_an_object_is_recorded_for_the_sources_as_they_are(folder, tmp_path):
    source = tmp_path / "source.py"
    source.write_text("a = 1\n")
    files = {str(source): kernel_cache.file_hash(str(source))}
    kernel_cache.write_record(folder, "search", RECIPE, files, "search-1.o")
    known: dict[str, str] = {}
    assert kernel_cache.recorded_object(folder, "search", RECIPE, known) == "search-1.o"
    assert known == files
    assert kernel_cache.recorded_object(folder, "chess", RECIPE, {}) is None
    source.write_text("a = 2\n")
    assert kernel_cache.recorded_object(folder, "search", RECIPE, {}) is None
    assert kernel_cache.recorded_object(folder, "search", RECIPE, known) == "search-1.o", "read once for all groups"
    assert kernel_cache.recorded_object(folder, "search", RECIPE, None) == "search-1.o"


@pytest.mark.parametrize("other", [Recipe(("other",)), Recipe(("some_module",), {"a.half": "b.half"})])
def test_two_programs_may_mean_different_kernels_by_one_name(folder, other):
    kernel_cache.write_record(folder, "search", RECIPE, {}, "search-1.o")
    assert kernel_cache.recorded_object(folder, "search", other, {}) is None


def test_two_checkouts_may_have_modules_of_one_name(folder, tmp_path, monkeypatch):
    recipe = Recipe(("psearch_core.games", "games_of_a_checkout.kernels"))
    known = []
    for checkout in ("one", "two"):
        package = tmp_path / checkout / "games_of_a_checkout"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(package.parent))
            known.append(kernel_cache.recorded_object(folder, "games", recipe, {}))
            kernel_cache.write_record(folder, "games", recipe, {}, f"{checkout}.o")
            known.append(kernel_cache.recorded_object(folder, "games", recipe, {}))
    assert known == [None, "one.o", None, "two.o"]


@pytest.fixture
def small(folder: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that has room for ten files of ten kilobytes."""
    monkeypatch.setattr(kernel_cache, "MOST_BYTES", 100 * KB)
    return Path(folder).parent


def add(root: Path, name: str, days: float, number: int = 0, size: int = 10 * KB) -> Path:
    """A file of some size that was used so many days ago."""
    path = root / f"kernels-{number:024x}" / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - days * DAY_S,) * 2)
    return path


def object_name(number: int) -> str:
    return f"search-{number:032x}.o"


def test_the_least_recently_used_files_go(small):
    names = [f"{5:032x}.bc", f"search-{5:012x}.json", f"tests.module-{5:032x}.o", f"search-my-{5:012x}-{5:012x}.json"]
    names += map(object_name, range(10))
    paths = [add(small, name, days=2 + number, number=number % 3) for number, name in enumerate(names)]
    kernel_cache.prune()
    assert [path.exists() for path in paths] == [True] * 10 + [False] * 4


def test_what_was_used_today_stays(small):
    paths = [add(small, object_name(number), days=0.5) for number in range(20)]
    kernel_cache.prune()
    assert all(path.exists() for path in paths)


def test_what_is_read_counts_as_used(small, folder):
    kernel_cache.write_sealed(folder, OBJECT.name, kernel_cache.packed(OBJECT))
    path = Path(folder, OBJECT.name)
    os.utime(path, (0, 0))
    assert kernel_cache.read_object(folder, OBJECT.name) is not None
    assert time.time() - path.stat().st_mtime < DAY_S


def test_what_is_unknown_or_new_is_left_alone(small):
    unknown = [add(small, name, days=1000) for name in ("notes.txt", "search.o", "lock")]
    (small / f"kernels-{9:024x}").symlink_to(add(small, object_name(7), days=1000).parent)
    (unknown[0].parent / object_name(78)).mkdir()
    left, new = add(small, ".new-left", days=2), add(small, ".new-now", days=0.1)
    known = [add(small, object_name(number), days=500, size=200 * KB) for number in range(3)]
    kernel_cache.prune()
    assert not any(path.exists() for path in (*known, left))
    assert all(path.exists() for path in (*unknown, new, unknown[0].parent / object_name(78)))
