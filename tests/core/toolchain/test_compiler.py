"""Kernels become machine code: which are compiled when, by whom, and what numba made of the types."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types as python_types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import multiprocess
import numpy as np
import pytest
from paths import REPOSITORY, SUPPORT
from programs import PIPES
from timing import least

import psearch
import psearch_core
from psearch_core.toolchain import groups, jit, machine_code
from psearch_core.toolchain.compiler import build
from psearch_core.toolchain.compiler.back_end import object_code
from psearch_core.toolchain.compiler.build import ProcessEnded, share_out
from psearch_core.toolchain.compiler.dependencies import closure, digest_of
from psearch_core.toolchain.compiler.front_end import bitcode_of, prepare
from psearch_core.views import i64, u64

COLD_BUILD = SUPPORT / "cold_build.py"
BUILD_TIMEOUT_S = 600
LIBC = {"abort", "clock_gettime", "memcpy", "memmove", "memset", "sched_yield", "usleep"}
"""Functions of others that machine code may call; `abort` where an exception would be raised."""


def copy_package(target: Path) -> Path:
    """Copy all sources as a wheel would hold them; returns the folder of the packages."""
    for package in (psearch, psearch_core):
        folder = Path(package.__path__[0])
        shutil.copytree(folder, target / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    return target


class Builds:
    """Starts `cold_build.py` on a copy of the package, with a cache folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.package = copy_package(folder / "sources")

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.package), "PSEARCH_CACHE_DIR": str(self.cache), **more}

    def start(self, *groups: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, str(COLD_BUILD), *groups], env=self.environment(), **PIPES)

    def finish(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        try:
            output, errors = process.communicate(timeout=BUILD_TIMEOUT_S)
        finally:
            process.kill()
        assert process.returncode == 0, errors
        report: dict[str, Any] = json.loads(output)
        assert Path(report["file"]).is_relative_to(self.package)
        assert report["is_cached"]
        return report

    def run(self, *groups: str) -> dict[str, Any]:
        return self.finish(self.start(*groups))

    def folder(self) -> Path:
        (folder,) = self.cache.glob("kernels-*")
        return folder

    def change(self, file: str, old: str, new: str) -> None:
        path = self.package / file
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    return Builds(tmp_path_factory.mktemp("compiler"))


@pytest.fixture(scope="module")
def two_at_once(builds: Builds) -> list[dict[str, Any]]:
    """Reports of two programs started together on an empty cache; the one that compiled comes first."""
    processes = [builds.start("chess", "perft"), builds.start("chess", "perft")]
    try:
        reports = [builds.finish(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return sorted(reports, key=lambda report: not compiled(report))


def compiled(report: dict[str, Any]) -> list[str]:
    return [" ".join(line.split()[4:-2]) for line in report["lines"] if line.startswith("compiling")]


# -- what is compiled when -----------------------------------------------------------------------------------------


def test_two_programs_at_once_compile_once(two_at_once):
    first, second = two_at_once
    assert compiled(first)
    assert not compiled(second)
    assert not first["was_cached"]
    waiting = ["waiting for another program that is compiling the kernels"]
    assert second["was_cached"] or second["lines"] == waiting


def test_progress_counts_kernels_and_groups(two_at_once):
    lines = two_at_once[0]["lines"]
    total = len(lines)
    assert [line.split()[3] for line in lines] == [f"{done}/{total}" for done in range(1, total + 1)]
    assert sorted(compiled(two_at_once[0])[-2:]) == ["all of chess", "all of perft"]


def test_the_next_program_loads_and_needs_no_numba(builds, two_at_once):
    report = builds.run("chess", "perft")
    assert report["was_cached"]
    assert report["lines"] == []
    assert "numba" not in report["imported"]
    assert least(lambda: builds.run("chess", "perft")["seconds"], 1.0) < 1.0


def test_another_group_compiles_only_what_is_new(builds, two_at_once):
    done = set(compiled(two_at_once[0]))
    new = compiled(builds.run("inspect"))
    assert new[-1] == "all of inspect"
    assert "evaluate" not in new and "evaluate" in done


@pytest.mark.parametrize(
    ("file", "old", "new", "is_known"),
    [
        ("psearch_core/chess/board/movegen.py", '"""', '"""Another word. ', False),
        ("psearch_core/chess/board/movegen.py", "from psearch", "# a comment\n\n\nfrom psearch", False),
        ("psearch_core/chess/evaluation/weights.py", "PHASE = (0, 1, 1, 2, 4, 0)", "PHASE = (0, 1, 1, 2, 4, 1)", True),
    ],
)
def test_words_and_weights_compile_nothing(builds, two_at_once, file, old, new, is_known):
    """is_known: the file holds no kernel; else the compiler has to look whether one has changed."""
    builds.change(file, old, new)
    try:
        report = builds.run("chess", "perft")
    finally:
        builds.change(file, new, old)
    assert report["was_cached"] is is_known
    assert compiled(report) == []
    assert builds.run("chess", "perft")["lines"] == []


def test_a_changed_kernel_is_compiled_with_its_groups_alone(builds, two_at_once):
    builds.change("psearch_core/chess/board/movegen.py", "leaves = 0", "leaves = 0 + 0")
    try:
        assert compiled(builds.run("chess", "perft")) == ["perft", "all of perft"]
    finally:
        builds.change("psearch_core/chess/board/movegen.py", "leaves = 0 + 0", "leaves = 0")
    assert compiled(builds.run("chess", "perft")) == []


def test_a_frozen_constant_compiles_what_it_is_frozen_into(builds, two_at_once):
    builds.change("psearch_core/terms.py", "PAIR_SHIFT = 16", "PAIR_SHIFT = 17")
    try:
        done = compiled(builds.run("chess", "perft"))
    finally:
        builds.change("psearch_core/terms.py", "PAIR_SHIFT = 17", "PAIR_SHIFT = 16")
    assert "middle_game" in done and "all of chess" in done
    assert "generate_captures" not in done and "all of perft" not in done


def test_a_compiler_that_fails_says_why(builds, two_at_once):
    builds.change("psearch_core/chess/board/movegen.py", "leaves = 0", "leaves = unheard_of")
    try:
        process = builds.start("perft")
        _, errors = process.communicate(timeout=BUILD_TIMEOUT_S)
    finally:
        builds.change("psearch_core/chess/board/movegen.py", "leaves = unheard_of", "leaves = 0")
    assert process.returncode == 1
    assert "unheard_of" in errors


# -- what is in an object --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def search_object(kernels: None) -> Any:
    """The machine code of the group that every search needs, as LLVM reads it."""
    from psearch.scheduler.scheduler_entries import SEARCH

    groups.load(SEARCH)
    found = groups.cached(SEARCH)
    assert found is not None
    return found


def test_every_entry_is_in_its_object(search_object):
    assert search_object.entries == {
        "begin_search": 1,
        "request_stop": 1,
        "set_deadline": 2,
        "work": 3,
        "read_cycles": 0,
        "is_done": 1,
        "reports_written": 1,
    }


def symbols(code: bytes, tmp_path: Path) -> tuple[set[str], set[str]]:
    """Names that an object file defines for others, and those it needs, by the binutils' nm."""
    path = tmp_path / "object.o"
    path.write_bytes(code)
    listed = subprocess.run(["nm", "-g", str(path)], capture_output=True, text=True, check=True).stdout
    words = [line.split() for line in listed.splitlines()]
    return {word[-1] for word in words if word[-2] != "U"}, {word[-1] for word in words if word[-2] == "U"}


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs the binutils")
def test_an_object_shows_its_entries_and_needs_libc_alone(search_object, tmp_path):
    defined, needed = symbols(search_object.code, tmp_path)
    assert defined == {f"entry_{name}" for name in search_object.entries}
    assert needed <= LIBC


FUNCTIONS = {
    "chess": (4, 104),
    "perft": (1, 44),
    "search": (7, 432),
    "prediction": (1, 12),
    "virtual": (4, 440),
    "uniform_tree": (1, 12),
    "one_tree": (4, 432),
    "shadow": (4, 432),
}
"""Entries of each group, and functions compiled for it. What a first search waits for is `chess` and `search`: a number
that grows by more than the change at hand needs has pulled in something that belongs to another group."""
SLACK = 5


def test_how_much_is_compiled_for_each_group():
    program = """
import json
from importlib import import_module
import psearch_core.chess.chess_entries, psearch.scheduler.scheduler_entries
import psearch.lab.studies.prediction_study, psearch.lab.studies.soundness, psearch.lab.studies.uniform_tree
from psearch_core.toolchain import groups, jit
from psearch_core.toolchain.compiler.dependencies import closure
found = {}
for group in list(groups._groups.values()):
    for module in (*group.recipe.modules, *(symbol.rpartition(".")[0] for symbol in group.recipe.replaced.values())):
        import_module(module)
    entries = [kernel for kernel in jit.registry.values()
               if isinstance(kernel, jit.EntryKernel) and kernel.py_func.__module__ in group.recipe.modules]
    found[group.name] = len(entries), len(closure(entries, group.recipe.replaced))
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert {name: entries for name, (entries, _) in found.items()} == {n: e for n, (e, _) in FUNCTIONS.items()}
    for name, (_, functions) in FUNCTIONS.items():
        assert abs(found[name][1] - functions) <= SLACK, name


# -- digests ---------------------------------------------------------------------------------------------------------


def made_kernel(source: str, **names: Any) -> jit.Kernel:
    module = python_types.ModuleType("made")
    module.__dict__.update(names, i64=i64, u64=u64, np=np, kernel=jit.kernel)
    path = Path(os.environ["PYTEST_KERNELS"]) / f"made_{abs(hash(source))}.py"
    path.write_text(source)
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    made = next(value for value in module.__dict__.values() if isinstance(value, jit.Kernel))
    jit.registry.pop(made.symbol)
    return made


@pytest.fixture(autouse=True)
def _place_for_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_KERNELS", str(tmp_path))


PLAIN = "@kernel(i64(i64))\ndef f(a):\n    return a + SIZE\n"


@pytest.mark.parametrize(
    ("other", "size", "same"),
    [
        ('@kernel(i64(i64))\ndef f(a):\n    """Words."""\n    # and more\n    return a + SIZE\n', 3, True),
        ("\n\n@kernel(i64(i64))\ndef f(a):\n    return (a + SIZE)\n", 3, True),
        (PLAIN, 4, False),
        ("@kernel(i64(i64))\ndef f(a):\n    return a - SIZE\n", 3, False),
        ("@kernel(i64(u64))\ndef f(a):\n    return a + SIZE\n", 3, False),
        ("@kernel(i64(i64))\ndef g(a):\n    return a + SIZE\n", 3, False),
    ],
)
def test_a_digest_takes_in_what_is_compiled(other, size, same):
    one = digest_of(made_kernel(PLAIN, SIZE=3))
    assert (digest_of(made_kernel(other, SIZE=size)) == one) is same


@pytest.mark.parametrize("value", [[1], {1: 2}, 1.5, os, Path])
def test_a_kernel_cannot_freeze_what_may_change(value):
    if value is Path:
        value = Path(".")
    with pytest.raises(AssertionError, match="a kernel cannot use SIZE"):
        digest_of(made_kernel(PLAIN, SIZE=value))


def test_a_table_is_frozen_by_value():
    digests = {
        digest_of(made_kernel(PLAIN.replace("SIZE", "SIZE[0]"), SIZE=np.array(values, np.int64)))
        for values in ([1, 2], [1, 3], [1, 2])
    }
    assert len(digests) == 2


# -- from kernel to object, in this process ----------------------------------------------------------------------------


def test_kernels_that_call_each_other_are_linked_and_run():
    inner = made_kernel("@kernel(i64(i64))\ndef inner(a):\n    return max(a, 7) * 2\n")
    outer_source = "@entry(i64(i64, i64))\ndef outer(a, b):\n    return inner(a) - inner(b)\n"
    module = python_types.ModuleType("made_outer")
    path = Path(os.environ["PYTEST_KERNELS"]) / "made_outer.py"
    path.write_text(outer_source)
    module.__dict__.update(i64=i64, entry=jit.entry, inner=inner)
    exec(compile(outer_source, str(path), "exec"), module.__dict__)
    outer = module.__dict__["outer"]
    members = closure([outer])
    assert sorted(members) == sorted([inner.symbol, outer.symbol])
    prepare(members.values())
    code = object_code([bitcode_of(member) for member in members.values()], [outer])
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    assert call(machine_code.place(code, ["entry_outer"])["entry_outer"])(10, 3) == 20 - 14
    jit.registry.pop(outer.symbol)


# -- types -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_floats_and_no_mixed_signs():
    """In every kernel of the package. A process of its own: kernels are called by symbol from then on."""
    program = """
import importlib, pkgutil
import psearch, psearch_core
from kernel_types import suspicious
from psearch_core.toolchain import jit
from psearch_core.toolchain.compiler.front_end import prepare, typed
for package in (psearch, psearch_core):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        # no kernels; extras may be missing
        if not module.name.startswith(("psearch.remote", "psearch.faces.web", "psearch.core")):
            importlib.import_module(module.name)
kernels = dict(jit.registry)
prepare(kernels.values())
print(len(kernels))
for symbol, kernel in kernels.items():
    for finding in suspicious(symbol, typed(kernel).type_annotation):
        print(finding)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), str(REPOSITORY)])},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, *findings = done.stdout.splitlines()
    assert int(count) > 350
    assert findings == []


# -- processes that share the work -------------------------------------------------------------------------------------

ITEMS = [str(number) for number in range(100)]
needs_two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="nothing is forked on one core")


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """A folder in which processes leave a file for each item."""
    (tmp_path / "done").mkdir()
    return tmp_path / "done"


def share(work: Callable[[str], object], most_processes: int = 16) -> list[tuple[str, str]]:
    """Share the items out; what is reported."""
    reports: list[tuple[str, str]] = []
    share_out(work, ITEMS, most_processes, lambda kind, text: reports.append((kind, text)))
    assert multiprocess.active_children() == []
    return reports


@pytest.mark.parametrize("most", [1, 16])
def test_every_item_is_done_once(done, most):
    share(lambda item: (done / item).touch(exist_ok=False), most)
    assert sorted(path.name for path in done.iterdir()) == sorted(ITEMS)


@needs_two_cores
def test_a_process_that_fails_reports_it_and_one_that_is_killed_hangs_nobody(done):
    def fail(item: str) -> None:
        if item == "17":
            raise ValueError("no such kernel")

    with pytest.raises(ProcessEnded) as raised, pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_report_error", lambda report, error: (done / "said").write_text(str(error)))
        share(fail)
    assert not raised.value.is_killed
    assert (done / "said").read_text() == "no such kernel"
    with pytest.raises(ProcessEnded, match="signal 9") as raised:
        share(lambda item: os.kill(os.getpid(), signal.SIGKILL) if item == "3" else time.sleep(0.01))
    assert raised.value.is_killed
    assert multiprocess.active_children() == []


@needs_two_cores
@pytest.mark.parametrize("allowed", [0, 1])
def test_where_no_process_can_be_had_the_work_is_done_with_fewer(monkeypatch, done, allowed):
    """A limit of processes or of descriptors causes this."""
    kind = multiprocess.get_context("fork").Process
    start, started = kind.start, []

    def start_few(process):
        if len(started) == allowed:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        started.append(process)
        start(process)

    monkeypatch.setattr(kind, "start", start_few)
    share(lambda item: (done / item).write_text(str(os.getpid())))
    assert {(done / item).read_text() == str(os.getpid()) for item in ITEMS} == {not allowed}
