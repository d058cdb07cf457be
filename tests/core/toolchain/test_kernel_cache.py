"""The cache of machine code: where it lies, and what is believed. Whom it trusts: `test_trusted_folder.py`."""

from __future__ import annotations

import errno
import os
import random
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from psearch.core.toolchain import kernel_cache
from psearch.core.toolchain.kernel_cache import Object
from psearch.core.toolchain.trusted_folder import Folder, open_folder

OBJECT = Object("search-00000000000000000000000000000000.o", {"work": 3}, b"\n{machine\ncode}")


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    (tmp_path / "cache").mkdir(mode=0o700)
    with open_folder(str(tmp_path / "cache")) as opened:
        yield opened


# -- the place -------------------------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a cache and an empty folder for temporary files, under the folder that is returned."""
    for name in ("PSEARCH_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("home", "temporary"):
        (tmp_path / name).mkdir()
    (tmp_path / "temporary").chmod(0o1777)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(kernel_cache, "_PUBLIC_FOLDERS", (str(tmp_path / "temporary"),))
    monkeypatch.setattr(kernel_cache, "_roots", None)
    return tmp_path


def temporary_root(places: Path) -> Path:
    return places / "temporary" / f"psearch-{os.getuid()}"


def folder_made(problems: list[str] | None = None) -> Path | None:
    """Where kernels would be kept now."""
    with kernel_cache.open_to_write("key", [] if problems is None else problems) as (root, opened):
        if opened is None:
            assert root == ""
            return None
        assert opened.path == f"{root}/kernels-key"
        assert opened.names() == []
        return Path(opened.path)


def test_the_cache_lies_in_the_home_folder(places):
    made = folder_made()
    assert made == places / "home" / ".cache" / "psearch" / "kernels-key"
    assert mode(made) == mode(made.parent) == mode(made.parent.parent) == 0o700


def test_the_environment_chooses_the_folder(places, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(places / "xdg"))
    assert kernel_cache.roots()[0] == str(places / "xdg" / "psearch")
    monkeypatch.setenv("PSEARCH_CACHE_DIR", str(places / "chosen"))
    assert kernel_cache.roots()[0] == str(places / "xdg" / "psearch")  # as when it was first asked for
    monkeypatch.setattr(kernel_cache, "_roots", None)
    assert kernel_cache.roots()[0] == str(places / "chosen")


def test_tmpdir_comes_before_the_folders_of_everybody(places, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(places / "own"))
    user = f"psearch-{os.getuid()}"
    assert kernel_cache.roots()[1:] == (str(places / "own" / user), str(places / "temporary" / user))


def test_a_tmpdir_that_is_missing_is_made_for_this_user_alone(places, monkeypatch):
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setenv("TMPDIR", str(places / "missing"))
    made = folder_made()
    assert made == places / "missing" / f"psearch-{os.getuid()}" / "kernels-key"
    assert mode(places / "missing") == 0o700


@pytest.mark.parametrize("name", ["PSEARCH_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_relative_folder_stays_where_it_was_at_first(places, monkeypatch, name):
    (places / "elsewhere").mkdir()
    monkeypatch.chdir(places)
    monkeypatch.setenv(name, "relative")
    first = folder_made()
    assert first is not None and first.is_relative_to(places / "relative")
    monkeypatch.chdir(places / "elsewhere")
    assert folder_made() == first
    assert list((places / "elsewhere").iterdir()) == []


def test_a_working_folder_that_is_gone_is_no_place(places, monkeypatch):
    (places / "gone").mkdir()
    monkeypatch.chdir(places / "gone")
    (places / "gone").rmdir()
    monkeypatch.setenv("PSEARCH_CACHE_DIR", "relative")
    assert kernel_cache.roots() == (str(temporary_root(places)),)


@pytest.mark.parametrize("chosen", [None, "~/cache", "~nobody-of-that-name/cache"])
def test_a_user_without_a_home_gets_no_folder_of_that_name(places, monkeypatch, chosen):
    """Without HOME, of a number that is in no list of users."""
    monkeypatch.chdir(places)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    if chosen:
        monkeypatch.setenv("PSEARCH_CACHE_DIR", chosen)
    assert [Path(root).parent for root in kernel_cache.roots()] == [places / "temporary"]
    assert {path.name for path in places.iterdir()} == {"home", "temporary"}


def test_an_empty_home_is_none(places, monkeypatch):
    monkeypatch.setenv("HOME", "")
    assert kernel_cache.roots() in [("/.cache/psearch", str(temporary_root(places))), (str(temporary_root(places)),)]


def test_a_home_that_is_not_there_is_not_made(places, monkeypatch):
    monkeypatch.setenv("HOME", str(places / "nonexistent"))
    made = folder_made()
    assert made is not None and made.parent == temporary_root(places)
    assert not (places / "nonexistent").exists()


def test_a_home_that_cannot_be_written_falls_back(places, monkeypatch):
    # a file, not a folder without write permission: that would not stop root
    (places / "file").touch()
    monkeypatch.setenv("HOME", str(places / "file"))
    problems: list[str] = []
    made = folder_made(problems)
    assert made is not None and made.parent == temporary_root(places)
    assert mode(made) == mode(made.parent) == 0o700
    assert problems == [f"{places}/file/.cache/psearch: Not a directory"]


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(places, monkeypatch, bits):
    shared = places / "shared"
    shared.mkdir()
    shared.chmod(bits)
    monkeypatch.setenv("PSEARCH_CACHE_DIR", str(shared))
    problems: list[str] = []
    made = folder_made(problems)
    assert made is not None and made.parent == temporary_root(places)
    assert list(shared.iterdir()) == []
    assert problems == [f"{shared} can be changed by others"]


def test_no_folder_at_all_is_said(places, monkeypatch):
    """And none is made: it would be one more at every start."""
    monkeypatch.setenv("HOME", "/dev/null")
    temporary_root(places).mkdir()
    temporary_root(places).chmod(0o777)
    problems: list[str] = []
    assert folder_made(problems) is None
    assert problems == [
        "/dev/null/.cache/psearch: Not a directory",
        f"{temporary_root(places)} can be changed by others",
    ]
    assert list(temporary_root(places).iterdir()) == []
    assert [path.name for path in (places / "temporary").iterdir()] == [temporary_root(places).name]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_where_nothing_can_be_written_the_next_folder_is_taken(places, monkeypatch, number):
    write = Folder._write_new

    def fail_at_home(self, content):
        if "home" in self.path:
            raise OSError(number, os.strerror(number))
        return write(self, content)

    monkeypatch.setattr(Folder, "_write_new", fail_at_home)
    problems: list[str] = []
    made = folder_made(problems)
    assert made is not None and made.parent == temporary_root(places)
    assert problems == [f"{places}/home/.cache/psearch: {os.strerror(number)}"]


def test_a_cache_is_read_though_it_cannot_be_written(places, monkeypatch):
    """As one in a read-only image."""
    made = folder_made()
    assert made is not None
    with open_folder(str(made)) as opened:
        kernel_cache.keep(opened, "search", OBJECT, {})
    monkeypatch.setattr(os, "access", lambda *arguments, **others: pytest.fail("asked whether it can be written to"))
    for path in (*made.iterdir(), made, made.parent):
        path.chmod(0o555)
    with kernel_cache.open_cache(kernel_cache.roots()[0], "key") as opened_again:
        assert opened_again is not None
        assert kernel_cache.recorded_object(opened_again, "search") == OBJECT.name
        assert kernel_cache.read_object(opened_again, OBJECT.name) == OBJECT
    for path in (made, made.parent):
        path.chmod(0o755)


# -- the key -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", kernel_cache.SWITCHES)
def test_the_key_covers_what_changes_the_machine_code(monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    before = kernel_cache.environment_key("a processor")
    assert kernel_cache.environment_key("a processor") == before
    assert kernel_cache.environment_key("another processor") != before
    monkeypatch.setenv(name, "1")
    assert kernel_cache.environment_key("a processor") != before


def test_the_key_covers_versions(monkeypatch):
    before = kernel_cache.environment_key("a processor")
    monkeypatch.setattr(kernel_cache, "_version_file", lambda package: f"{package} of the future".encode())
    assert kernel_cache.environment_key("a processor") != before


@pytest.mark.parametrize("package", ["numba", "llvmlite", "numpy"])
def test_versions_are_found_without_an_import(package):
    import importlib

    assert importlib.import_module(package).__version__.encode() in kernel_cache._version_file(package)


KEY = "from psearch.core.toolchain import groups; print(groups.key())"


def key_of(*flags: str, **more: str) -> str:
    """In a Python of its own."""
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


# -- sealed files ----------------------------------------------------------------------------------------------


def test_a_sealed_file_comes_back(folder):
    kernel_cache.write_sealed(folder, "file", b"content")
    assert kernel_cache.read_sealed(folder, "file") == b"content"
    assert folder.names() == ["file"]


def test_every_byte_of_a_sealed_file_counts(folder):
    path = Path(folder.path) / "file"
    kernel_cache.write_sealed(folder, "file", b"machine code")
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        assert kernel_cache.read_sealed(folder, "file") is None
        path.write_bytes(whole[:place])
        assert kernel_cache.read_sealed(folder, "file") is None
    path.write_bytes(whole + b"x")
    assert kernel_cache.read_sealed(folder, "file") is None
    path.write_bytes(whole)
    assert kernel_cache.read_sealed(folder, "file") == b"machine code"


def test_files_that_are_changed_anywhere_are_no_files(folder):
    """Cut, filled with zeros as after a power cut, overwritten, joined: each counts as none, and none raises."""
    kernel_cache.keep(folder, "search", OBJECT, {})
    dice = random.Random(1)
    wholes = {path: path.read_bytes() for path in Path(folder.path).iterdir()}
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
        kernel_cache.recorded_object(folder, "search")
        kernel_cache.read_object(folder, OBJECT.name)


def test_a_write_that_fails_leaves_the_old_file(folder, monkeypatch):
    kernel_cache.write_sealed(folder, "file", b"old")

    def fail(source, target, **others):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="No space"):
        kernel_cache.write_sealed(folder, "file", b"new")
    assert kernel_cache.read_sealed(folder, "file") == b"old"
    assert folder.names() == ["file"]


def test_no_file_is_no_content(folder):
    assert kernel_cache.read_sealed(folder, "file") is None
    assert kernel_cache.read_object(folder, "file") is None
    assert kernel_cache.recorded_object(folder, "search") is None


# -- records and objects -----------------------------------------------------------------------------------------


def test_an_object_is_recorded_for_the_sources_as_they_are(folder, tmp_path):
    source = tmp_path / "source.py"
    source.write_text("a = 1\n")
    files = {str(source): kernel_cache.file_hash(str(source))}
    kernel_cache.write_record(folder, "search", files, "search-1.o")
    assert kernel_cache.recorded_object(folder, "search") == "search-1.o"
    assert kernel_cache.recorded_object(folder, "chess") is None
    source.write_text("a = 2\n")
    assert kernel_cache.recorded_object(folder, "search") is None
    source.write_text("a = 1\n")
    assert kernel_cache.recorded_object(folder, "search") == "search-1.o"
    source.unlink()
    assert kernel_cache.recorded_object(folder, "search") is None


def test_files_are_read_once_for_several_groups(folder, tmp_path):
    source = tmp_path / "source.py"
    source.write_text("a = 1\n")
    files = {str(source): kernel_cache.file_hash(str(source))}
    for group in ("search", "chess"):
        kernel_cache.write_record(folder, group, files, f"{group}.o")
    known: dict[str, str] = {}
    assert kernel_cache.recorded_object(folder, "search", known) == "search.o"
    assert known == files
    source.write_text("a = 2\n")
    assert kernel_cache.recorded_object(folder, "chess", known) == "chess.o"


def test_an_object_comes_back(folder):
    kernel_cache.write_object(folder, OBJECT)
    assert kernel_cache.read_object(folder, OBJECT.name) == OBJECT
