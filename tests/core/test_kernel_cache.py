"""The cache of machine code: where it lies, what is believed, what is dropped."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from psearch.core import kernel_cache


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


# -- the place -------------------------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a cache and an empty folder for temporary files, under the folder that is returned."""
    for name in ("PSEARCH_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("home", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def temporary_root(places: Path) -> Path:
    return places / "temporary" / f"psearch-{os.getuid()}"


def test_the_cache_lies_in_the_home_folder(places):
    folder = kernel_cache.cache_folder("key")
    assert folder == places / "home" / ".cache" / "psearch" / "kernels-key"
    assert mode(folder) == mode(folder.parent) == 0o700


def test_the_environment_chooses_the_folder(places, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(places / "xdg"))
    assert kernel_cache.cache_folder("key").parent == places / "xdg" / "psearch"
    monkeypatch.setenv("PSEARCH_CACHE_DIR", str(places / "chosen"))
    assert kernel_cache.cache_folder("key").parent == places / "chosen"


def test_a_home_that_cannot_be_written_falls_back(places, monkeypatch):
    # a file, not a folder without write permission: that would not stop root
    (places / "file").touch()
    monkeypatch.setenv("HOME", str(places / "file"))
    folder = kernel_cache.cache_folder("key")
    assert folder.parent == temporary_root(places)
    assert mode(folder) == mode(folder.parent) == 0o700


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o720, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(places, monkeypatch, bits):
    shared = places / "shared"
    shared.mkdir()
    shared.chmod(bits)
    monkeypatch.setenv("PSEARCH_CACHE_DIR", str(shared))
    assert kernel_cache.cache_folder("key").parent == temporary_root(places)
    assert list(shared.iterdir()) == []


def test_no_folder_at_all_gives_one_for_this_program(places, monkeypatch):
    monkeypatch.setenv("HOME", "/dev/null")
    temporary_root(places).mkdir()
    temporary_root(places).chmod(0o777)
    folder = kernel_cache.cache_folder("key")
    assert folder.parent.parent == places / "temporary"
    assert mode(folder) == mode(folder.parent) == 0o700
    assert list(temporary_root(places).iterdir()) == []
    monkeypatch.setenv("PSEARCH_CACHE_DIR", str(folder.parent))
    assert kernel_cache.cache_folder("key") == folder  # as a process that this one starts is told


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


# -- sealed files ----------------------------------------------------------------------------------------------


def test_a_sealed_file_comes_back(tmp_path):
    kernel_cache.write_sealed(tmp_path / "file", b"content")
    assert kernel_cache.read_sealed(tmp_path / "file") == b"content"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_every_byte_of_a_sealed_file_counts(tmp_path):
    path = tmp_path / "file"
    kernel_cache.write_sealed(path, b"machine code")
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        assert kernel_cache.read_sealed(path) is None
        path.write_bytes(whole[:place])
        assert kernel_cache.read_sealed(path) is None
    path.write_bytes(whole + b"x")
    assert kernel_cache.read_sealed(path) is None
    path.write_bytes(whole)
    assert kernel_cache.read_sealed(path) == b"machine code"


def test_a_file_of_another_user_is_not_believed(tmp_path, monkeypatch):
    kernel_cache.write_sealed(tmp_path / "file", b"content")
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert kernel_cache.read_sealed(tmp_path / "file") is None


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    kernel_cache.write_sealed(tmp_path / "file", b"old")

    def fail(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        kernel_cache.write_sealed(tmp_path / "file", b"new")
    assert kernel_cache.read_sealed(tmp_path / "file") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_no_file_is_no_content(tmp_path):
    assert kernel_cache.read_sealed(tmp_path / "file") is None
    assert kernel_cache.read_object(tmp_path, "file") is None
    assert kernel_cache.recorded_object(tmp_path, "search") is None


# -- records and objects -----------------------------------------------------------------------------------------


def test_an_object_is_recorded_for_the_sources_as_they_are(tmp_path):
    source = tmp_path / "source.py"
    source.write_text("a = 1\n")
    files = {str(source): kernel_cache.file_hash(str(source))}
    kernel_cache.write_record(tmp_path, "search", files, "search-1.o")
    assert kernel_cache.recorded_object(tmp_path, "search") == "search-1.o"
    assert kernel_cache.recorded_object(tmp_path, "chess") is None
    source.write_text("a = 2\n")
    assert kernel_cache.recorded_object(tmp_path, "search") is None
    source.write_text("a = 1\n")
    assert kernel_cache.recorded_object(tmp_path, "search") == "search-1.o"
    source.unlink()
    assert kernel_cache.recorded_object(tmp_path, "search") is None


def test_files_are_read_once_for_several_groups(tmp_path):
    source = tmp_path / "source.py"
    source.write_text("a = 1\n")
    files = {str(source): kernel_cache.file_hash(str(source))}
    for group in ("search", "chess"):
        kernel_cache.write_record(tmp_path, group, files, f"{group}.o")
    known: dict[str, str] = {}
    assert kernel_cache.recorded_object(tmp_path, "search", known) == "search.o"
    assert known == files
    source.write_text("a = 2\n")
    assert kernel_cache.recorded_object(tmp_path, "chess", known) == "chess.o"


def test_an_object_comes_back(tmp_path):
    kernel_cache.write_object(tmp_path, "search.o", {"work": 3}, b"\n{machine\ncode}")
    assert kernel_cache.read_object(tmp_path, "search.o") == ({"work": 3}, b"\n{machine\ncode}")


# -- what is dropped -----------------------------------------------------------------------------------------------


def test_old_versions_are_dropped(tmp_path):
    for age in range(8):
        folder = tmp_path / f"kernels-{age}"
        folder.mkdir()
        (folder / "file").touch()
        os.utime(folder, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "not-ours").mkdir()
    kernel_cache.prune(tmp_path / "kernels-7")
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"not-ours", "kernels-7", *(f"kernels-{age}" for age in range(kernel_cache._KEEP_FOLDERS))}


def test_a_version_that_is_used_is_not_the_oldest(tmp_path):
    """Also when nothing has been compiled for it in a long time."""
    for age in range(kernel_cache._KEEP_FOLDERS + 2):
        folder = tmp_path / f"kernels-{age}"
        folder.mkdir()
        kernel_cache.write_object(folder, "search.o", {}, b"code")
        os.utime(folder, (1_000_000 - age, 1_000_000 - age))
    oldest = tmp_path / f"kernels-{kernel_cache._KEEP_FOLDERS + 1}"
    assert kernel_cache.read_object(oldest, "search.o") is not None
    kernel_cache.prune(tmp_path / "kernels-0")
    assert oldest.exists()


def test_objects_of_older_kernels_are_dropped(tmp_path):
    most = kernel_cache._KEEP_OBJECTS
    for age in range(most + 5):
        path = tmp_path / f"search-{age:03}.o"
        path.touch()
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    kernel_cache.prune(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.o")) == [f"search-{age:03}.o" for age in range(most)]
