"""A program gets its kernels whatever its cache, its home and its disk are like: real programs, real file systems."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from limits import open_files
from paths import SUPPORT
from programs import WAITING

from psearch_core.toolchain import compiler_client, groups, kernel_cache
from psearch_core.toolchain.compiler_client import compile_turn
from psearch_core.toolchain.groups import Group, KernelError
from psearch_core.toolchain.kernel_cache import Progress, Recipe

PROGRAM = SUPPORT / "tiny_program.py"
TIMEOUT_S = 240
NOBODY = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes users, or mounts")
SUFFIXES = {"object": ".o", "bitcode": ".bc", "record": ".json"}


class Programs:
    """Programs that load the tiny kernels, with a cache of their own."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache

    def start(self, *before: str, **more: Any) -> subprocess.Popen[str]:
        """before: a program that runs it; env: variables to set, or, if None, to leave out."""
        changed: dict[str, str | None] = {"PSEARCH_CACHE_DIR": str(self.cache), **more.pop("env", {})}
        environment = {name: value for name, value in {**os.environ, **changed}.items() if value is not None}
        words = [*before, sys.executable, str(PROGRAM)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(words, env=environment, text=True, **pipes, **more)

    def finish(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        try:
            output, errors = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
        assert process.returncode == 0, errors
        assert errors == ""
        report: dict[str, Any] = json.loads(output)
        return report

    def run(self, *before: str, **more: Any) -> dict[str, Any]:
        report = self.finish(self.start(*before, **more))
        assert report["error"] == ""
        assert report["value"] == 42
        return report

    def files(self, kind: str) -> list[Path]:
        return sorted(self.cache.glob(f"kernels-*/*{SUFFIXES[kind]}"))


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "cache")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the tiny kernels; not to be changed."""
    cache = tmp_path_factory.mktemp("filled") / "cache"
    assert len(Programs(cache).run()["lines"]) == 3
    return cache


@pytest.fixture
def copied(filled: Path, tmp_path: Path) -> Programs:
    shutil.copytree(filled, tmp_path / "cache")
    return Programs(tmp_path / "cache")


def test_what_was_compiled_is_loaded(copied):
    report = copied.run()
    assert report["lines"] == []
    assert not report["numba"]


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    """Empty a file, as a power cut does on some file systems."""
    path.write_bytes(b"")


def test_a_cache_of_which_nothing_is_whole_is_made_again(copied):
    for kind in SUFFIXES:
        for path, damage in zip(copied.files(kind), (empty, halve), strict=False):
            damage(path)
    assert len(copied.run()["lines"]) == 3
    assert copied.run()["lines"] == []


def test_a_folder_that_cannot_be_written_to_is_one_line(programs):
    """A full disk, a quota and a read-only image fail alike: the first file that cannot be kept ends the compiling."""
    report = programs.finish(programs.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))))
    (folder,) = programs.cache.iterdir()
    assert report["error"] == (
        f"kernels cannot be kept in {folder}: File too large (PSEARCH_CACHE_DIR may name another folder)"
    )
    assert not programs.files("object")
    assert not list(folder.glob(".new-*"))


def mounted(*commands: str) -> tuple[str, ...]:
    """Words before a program that mount for it alone; nothing over /tmp, where the interpreter itself may lie."""
    mounts = ("unshare", "--mount", "--propagation=private", "sh", "-c")
    words = (*mounts, " && ".join([*commands, 'exec "$@"']), "sh")
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    return words


@needs_root
def test_a_cache_in_a_read_only_image_is_used(copied):
    """Root and another user can use it: it need not belong to whoever runs. A missing file is one line."""
    for path in (copied.cache, *copied.cache.rglob("*")):
        path.chmod(0o755)
    words = mounted(f"mount --bind {copied.cache} /mnt", "mount -o remount,bind,ro /mnt")
    whole, copied.cache = copied.cache, Path("/mnt")
    for before in ((), as_user(NOBODY)):
        assert copied.run(*words, *before, cwd="/", env={"HOME": None})["lines"] == []
    next(whole.glob("*/*.o")).unlink()
    report = copied.finish(copied.start(*words, cwd="/"))
    assert report["error"].startswith("kernels cannot be kept in /mnt/")
    assert ": Read-only file system (" in report["error"]


def as_user(number: int) -> tuple[str, ...]:
    """Words before a program that run it as a user who may read everything, wherever the interpreter lies."""
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv")
    who = (f"--reuid={number}", f"--regid={number}", "--clear-groups")
    return ("setpriv", *who, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")


@needs_root
def test_a_folder_of_somebody_else_is_one_line_and_nothing_of_it_is_loaded(copied):
    for path in copied.cache.rglob("*"):
        os.chown(path, NOBODY, NOBODY)
    report = copied.finish(copied.start())
    assert "it belongs to another user" in report["error"]
    assert report["lines"] == []


SWITCHES = {
    "NUMBA_DISABLE_JIT": "1",
    "NUMBA_CACHE_DIR": "/nowhere",
    "NUMBA_CACHE_LOCATOR_CLASSES": "NoSuchLocator",
    "NUMBA_DEBUG": "1",
    "NUMBA_DUMP_ASSEMBLY": "1",
    "NUMBA_OPT": "0",
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_BOUNDSCHECK": "1",
}


def test_switches_of_numba_change_nothing(programs, filled, tmp_path):
    """They are the host program's: same key, same machine code, and no word of numba's."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".numba_config.yaml").write_text("disable_jit: 1\n")
    assert len(programs.run(env=SWITCHES, cwd=tmp_path / "work")["lines"]) == 3
    for kind in SUFFIXES:
        names = [path.relative_to(programs.cache) for path in programs.files(kind)]
        assert names == [path.relative_to(filled) for path in Programs(filled).files(kind)] != []
    (ours,), (theirs,) = programs.files("object"), Programs(filled).files("object")
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("count", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_many_programs_at_once_compile_once(programs, count):
    started = [programs.start() for _ in range(count)]
    try:
        reports = [programs.finish(process) for process in started]
    finally:
        for process in started:
            process.kill()
    assert {report["value"] for report in reports} == {42}
    assert {report["error"] for report in reports} == {""}
    assert len([report for report in reports if any("compiling kernels" in line for line in report["lines"])]) == 1
    assert not any(path.name.startswith(".new-") for path in programs.cache.rglob("*"))


def test_a_program_that_is_stopped_while_it_compiles_stops_nobody(programs):
    """The others go on without it, one of them with the compiling."""
    first = programs.start(env={"PYTHONPATH": str(SUPPORT), "TINY_PATIENCE_S": "1"})
    try:
        wait_until(lambda: programs.cache.exists() and bool(children(first.pid)))
        first.send_signal(signal.SIGSTOP)
        others = [programs.start(env={"TINY_PATIENCE_S": "1"}) for _ in range(2)]
        assert {report["value"] for report in [programs.finish(process) for process in others]} == {42}
        first.send_signal(signal.SIGCONT)
        assert programs.finish(first)["value"] == 42
    finally:
        first.kill()


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_a_program_that_is_killed_takes_its_compiler_along(programs):
    """A program that is stopped first does so, too."""
    process = programs.start()
    try:
        wait_until(lambda: bool(children(process.pid)))
        compiler = children(process.pid)
        wait_until(lambda: any(children(pid) for pid in compiler) or process.poll() is not None)
        for pid in compiler:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)  # it cannot notice by itself
    finally:
        process.kill()
        process.communicate()
    wait_until(lambda: not any(is_running(pid) for pid in compiler))
    programs.run()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_client, "_LOCK_PATIENCE_S", 0.5)


def test_whoever_comes_later_waits_as_long_as_the_first_one_compiles(tmp_path, patience):
    lines: list[str] = []
    with compile_turn(str(tmp_path)):
        until = time.monotonic() + 2

        def compiles() -> None:
            while time.monotonic() < until:
                os.utime(tmp_path)
                time.sleep(0.05)

        first = threading.Thread(target=compiles)
        first.start()
        with compile_turn(str(tmp_path), lines.append):
            assert time.monotonic() > until
        first.join()
    assert lines == [WAITING]


def test_nobody_waits_for_a_stopped_one_for_long(tmp_path, patience):
    with compile_turn(str(tmp_path)), compile_turn(str(tmp_path)):
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_where_nothing_can_be_locked_everybody_compiles(tmp_path):
    (tmp_path / "lock").mkdir()
    before = open_files()
    with compile_turn(str(tmp_path)), compile_turn(str(tmp_path)):
        pass
    assert open_files() == before


GROUPS = {"tiny": Recipe(("tiny_kernels",))}


def compile_with(monkeypatch: pytest.MonkeyPatch, program: str, progress: Progress | None = None) -> None:
    """Replace the compiler by a program, which can read `most_processes`."""
    text = "most_processes = {most_processes}\n" + program.replace("{", "{{").replace("}", "}}")
    monkeypatch.setattr(compiler_client, "_PROGRAM", text)
    compiler_client.compile_groups("/nowhere", GROUPS, progress)


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("raise SystemExit(3)", "compiling the kernels failed: the compiler ended without a message"),
        ("1 / 0", "compiling the kernels failed: ZeroDivisionError: division by zero"),
        (
            "import no_such_module",
            "compiling the kernels failed: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            "compiling the kernels failed: the compiler was ended by signal 9; perhaps there is too little memory",
        ),
        (
            "import os; os.abort()",
            "compiling the kernels failed: the compiler was ended by signal 6; perhaps there is too little memory",
        ),
        ("""import os; os.write(1, b'["error", "Odd:\\\\n  two\\\\n lines"]\\n'); os._exit(1)""", "Odd: two lines"),
    ],
)
def test_a_compiler_that_fails_is_one_line(monkeypatch, program, error):
    before = open_files()
    with pytest.raises(KernelError) as raised:
        compile_with(monkeypatch, program)
    assert str(raised.value) == error
    assert open_files() == before


@pytest.mark.parametrize(
    "program",
    [
        "import time; time.sleep(600)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "import os, time; os.close(2); os.close(1); time.sleep(600)",
    ],
)
def test_a_compiler_that_hangs_is_killed(monkeypatch, program):
    monkeypatch.setattr(compiler_client, "_PATIENCE_S", 0.3)
    with pytest.raises(KernelError, match="no message from the compiler for 0 s"):
        compile_with(monkeypatch, program)


def test_a_compiler_that_is_killed_once_is_tried_again_alone(monkeypatch):
    compile_with(monkeypatch, "import os; most_processes > 1 and os.kill(os.getpid(), 9)")
    compile_with(monkeypatch, """most_processes > 1 and print('["killed", "no memory"]', flush=True)""")
    with pytest.raises(KernelError, match="compiling the kernels failed: no memory"):
        compile_with(monkeypatch, """print('["killed", "no memory"]', flush=True)""")


def test_a_compiler_that_cannot_be_started_is_one_line(monkeypatch):
    def fail(*arguments: Any, **others: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    before = open_files()
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", fail)
        with pytest.raises(KernelError, match="cannot be started: Resource temporarily unavailable"):
            compiler_client.compile_groups("/nowhere", GROUPS, None)
    assert open_files() == before


@pytest.mark.parametrize("way", ["frozen", "", "/usr/bin/uwsgi", "compiler"])
def test_a_program_that_is_no_python_does_not_start_itself(monkeypatch, way):
    """Again and again: where the interpreter is embedded, or the program frozen, it is what would be started."""
    if way == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    elif way == "compiler":
        monkeypatch.setenv(compiler_client._STARTED_BY, "1")
    else:
        monkeypatch.setattr(sys, "executable", way)
    monkeypatch.setattr(subprocess, "Popen", lambda *arguments, **others: pytest.fail("started"))
    with pytest.raises(KernelError, match="need a Python interpreter"):
        compiler_client.compile_groups("/nowhere", GROUPS, None)


def test_an_exception_of_whoever_hears_the_progress_goes_on(monkeypatch):
    def leave(line: str) -> None:
        raise BrokenPipeError(line)

    with pytest.raises(BrokenPipeError, match="compiling kernels, once: 1/0 a line"):
        compile_with(monkeypatch, """import time; print('["done", "a line"]', flush=True); time.sleep(600)""", leave)


@pytest.fixture
def never_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Group]:
    """A group that no cache has, and whose compiler fails."""
    monkeypatch.setattr(kernel_cache, "_root", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler_client, "_PROGRAM", "raise ValueError('no such luck')")
    yield Group("never_compiled", "tiny_kernels")
    groups._groups.pop("never_compiled")


def test_a_search_that_cannot_be_compiled_is_one_line_and_status_2(run, monkeypatch, never_compiled):
    from psearch.scheduler import scheduler_entries as entries

    monkeypatch.setattr(entries, "SEARCH", never_compiled)
    status, output, errors = run("--depth", "1", "startpos")
    assert status == 2
    assert output == ""
    assert errors == "psearch: compiling the kernels failed: ValueError: no such luck\n"


def test_a_failure_is_not_remembered(never_compiled, monkeypatch):
    for _ in range(2):
        with pytest.raises(KernelError, match="no such luck"):
            never_compiled.entry("twice")(21)
    monkeypatch.undo()


def test_memory_that_cannot_be_executed_is_one_line(monkeypatch):
    from psearch_core.toolchain import machine_code

    def fail(code: bytes, names: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(machine_code, "place", fail)
    group = Group("never_placed", "tiny_kernels")
    try:
        with pytest.raises(KernelError, match="the kernels cannot be loaded: Permission denied"):
            group._take(kernel_cache.Object("x.o", {"f": 1}, b""))
        assert not group.is_loaded
    finally:
        groups._groups.pop("never_placed")
