"""The kernel cache: where it lies, when it is valid, who compiles; and the types that numba inferred."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from cold_build import suspicious
from paths import SUPPORT

from psearch.core import jit

COLD_BUILD = SUPPORT / "cold_build.py"
BUILD_TIMEOUT_S = 600


def copy_package(target: Path) -> Path:
    """All sources as a wheel would hold them; returns the copy's `core`."""
    core = jit._PACKAGE
    outer = core.parent / "parallel" if (core.parent / "parallel").is_dir() else core.parent
    (target / "psearch" / "core").mkdir(parents=True)
    for path in outer.glob("*.py"):
        shutil.copy2(path, target / "psearch")
    for path in core.glob("*.py"):
        shutil.copy2(path, target / "psearch" / "core")
    return target / "psearch" / "core"


# -- building, in processes of their own ---------------------------------------------------------------------


class Builds:
    """Starts `cold_build.py` on a copy of the package that nobody edits, with a cache folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.sources = folder / "sources"
        copy_package(self.sources)

    def start(self, *options: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.sources), "PSEARCH_CACHE_DIR": str(self.cache)}
        return subprocess.Popen(
            [sys.executable, str(COLD_BUILD), *options],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        try:
            output, errors = process.communicate(timeout=BUILD_TIMEOUT_S)
        finally:
            process.kill()
        assert process.returncode == 0, errors
        report: dict[str, Any] = json.loads(output)
        assert Path(report["file"]).is_relative_to(self.sources)
        assert report["is_cached"]
        return report


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    return Builds(tmp_path_factory.mktemp("jit"))


@pytest.fixture(scope="module")
def two_at_once(builds: Builds) -> list[dict[str, Any]]:
    """Reports of two programs started together on an empty cache; the one that compiled comes first."""
    # which of the two compiles is chance: both are asked for the types
    processes = [builds.start("--types"), builds.start("--types")]
    try:
        reports = [builds.finish(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return sorted(reports, key=lambda report: not compiled(report))


def compiled(report: dict[str, Any]) -> bool:
    return any(line.startswith("compiling") for line in report["lines"])


def test_two_programs_at_once_compile_once(two_at_once):
    first, second = two_at_once
    assert compiled(first)
    assert not compiled(second)
    assert not first["was_cached"]
    waiting = ["waiting for another program that is compiling the kernels"]
    assert second["was_cached"] or second["lines"] == waiting


def test_progress_names_every_kernel_once(two_at_once):
    lines = two_at_once[0]["lines"]
    total = two_at_once[0]["kernels"] + two_at_once[0]["entries"]
    assert [line.split()[3] for line in lines] == [f"{done}/{total}" for done in range(1, total + 1)]


def test_the_next_program_loads(builds, two_at_once):
    report = builds.finish(builds.start())
    assert report["was_cached"]
    assert report["lines"] == []
    assert report["seconds"] < two_at_once[0]["seconds"] / 3


def test_every_function_has_one_version(two_at_once):
    versions = two_at_once[0]["versions"]
    # a second version comes from a call in a kernel that stands above the definition of the function
    assert {name: count for name, count in versions.items() if count != 1} == {}


# -- types ---------------------------------------------------------------------------------------------------


def test_no_floats_and_no_mixed_signs(two_at_once):
    assert two_at_once[0]["findings"] == []


@pytest.mark.parametrize(
    ("function", "signature", "expected"),
    [
        (lambda a, b: a + b, "uint64, int64", ["add of uint64 and int64"]),
        (lambda a, b: a & b, "uint64, int32", ["and_ of uint64 and int32"]),
        (lambda a, b: b < a, "uint64, int64", ["lt of int64 and uint64"]),
        (lambda a, b: a >> 3, "uint64, int64", ["rshift of uint64 and Literal[int](3)"]),
        (lambda a, b: a / b, "int64, int64", ["float64"]),
        (lambda a, b: a if b else 1, "uint64, int64", ["float64"]),
    ],
)
def test_the_type_walk_finds(function, signature, expected):
    dispatcher = numba.njit(function)
    dispatcher.compile(f"({signature})")
    findings = list(suspicious(dispatcher))
    for what in expected:
        assert any(what in finding for finding in findings), findings


def test_the_type_walk_passes_clean_code():
    one = np.uint64(1)
    dispatcher = numba.njit(lambda a, b: (a & (a - one)) != np.uint64(0) and (b + 3) // 2 < 7)
    dispatcher.compile("(uint64, int64)")
    assert list(suspicious(dispatcher)) == []


# -- the cache folder ----------------------------------------------------------------------------------------


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


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
    folder = jit._cache_folder()
    assert folder.parent == places / "home" / ".cache" / "psearch"
    assert mode(folder) == mode(folder.parent) == 0o700


def test_the_environment_chooses_the_folder(places, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(places / "xdg"))
    assert jit._cache_folder().parent == places / "xdg" / "psearch"
    monkeypatch.setenv("PSEARCH_CACHE_DIR", str(places / "chosen"))
    assert jit._cache_folder().parent == places / "chosen"


def test_a_home_that_cannot_be_written_falls_back(places, monkeypatch):
    # a file, not a folder without write permission: that would not stop root
    (places / "file").touch()
    monkeypatch.setenv("HOME", str(places / "file"))
    folder = jit._cache_folder()
    assert folder.parent == temporary_root(places)
    assert mode(folder) == mode(folder.parent) == 0o700


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o720, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(places, monkeypatch, bits):
    shared = places / "shared"
    shared.mkdir()
    shared.chmod(bits)
    monkeypatch.setenv("PSEARCH_CACHE_DIR", str(shared))
    assert jit._cache_folder().parent == temporary_root(places)
    assert list(shared.iterdir()) == []


def test_no_folder_at_all_gives_one_for_this_program(places, monkeypatch):
    monkeypatch.setenv("HOME", "/dev/null")
    temporary_root(places).mkdir()
    temporary_root(places).chmod(0o777)
    folder = jit._cache_folder()
    assert folder.parent.parent == places / "temporary"
    assert mode(folder) == mode(folder.parent) == 0o700
    assert list(temporary_root(places).iterdir()) == []
    monkeypatch.setenv("PSEARCH_CACHE_DIR", str(folder.parent))
    assert jit._cache_folder() == folder  # as a process that this one starts is told


def test_old_versions_are_dropped(tmp_path, monkeypatch):
    for age in range(8):
        folder = tmp_path / f"kernels-{age}"
        folder.mkdir()
        (folder / "file").touch()
        os.utime(folder, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "not-ours").mkdir()
    monkeypatch.setattr(jit, "CACHE_FOLDER", tmp_path / "kernels-7")
    jit._prune()
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"not-ours", "kernels-7", *(f"kernels-{age}" for age in range(jit._KEEP_FOLDERS))}


# -- when a cache is valid -----------------------------------------------------------------------------------


@pytest.fixture
def core_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package that the cache key is computed from."""
    core = copy_package(tmp_path / "copy")
    monkeypatch.setattr(jit, "_PACKAGE", core)
    return core


def test_the_key_is_stable(core_copy):
    assert jit._cache_key() == jit._cache_key()


def test_the_key_changes_with_the_text_of_a_kernel(core_copy):
    before = jit._cache_key()
    path = core_copy / "movegen.py"
    status = path.stat()
    text = path.read_bytes()
    path.write_bytes(text.replace(b"U1", b"U0", 1))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert jit._cache_key() != before


def test_the_key_changes_with_the_time_of_a_file(core_copy):
    before = jit._cache_key()
    os.utime(core_copy / "movegen.py", (1, 1))
    assert jit._cache_key() != before


def test_the_key_covers_the_modules_outside_core_that_have_kernels(core_copy):
    before = jit._cache_key()
    (core_copy.parent / "plain.py").write_text("import sys\n")
    assert jit._cache_key() == before
    (core_copy.parent / "compiled.py").write_text("from psearch.core.jit import kernel\n")
    assert jit._cache_key() != before


@pytest.mark.parametrize("name", ["PSEARCH_NO_PEXT", "NUMBA_BOUNDSCHECK"])
def test_the_key_covers_what_changes_the_machine_code(monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    before = jit._cache_key()
    monkeypatch.setenv(name, "1")
    assert jit._cache_key() != before


def test_a_cache_without_all_entries_is_not_complete(tmp_path, monkeypatch):
    """A program that imported fewer modules leaves a cache that lacks the entries of the others."""
    monkeypatch.setattr(jit, "CACHE_FOLDER", tmp_path)

    def one(a):
        return a

    def other(a):
        return a

    first, second = ((numba.njit(function), "int64(int64)") for function in (one, other))
    monkeypatch.setattr(jit, "_entries", [first])
    assert not jit.is_cached()
    jit._mark_complete()
    assert jit.is_cached()
    monkeypatch.setattr(jit, "_entries", [first, second])
    assert not jit.is_cached()
    jit._mark_complete()
    assert jit.is_cached()
    monkeypatch.setattr(jit, "_entries", [second])
    assert jit.is_cached()
