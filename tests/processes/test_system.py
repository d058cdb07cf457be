"""Systems that lack something, or refuse it: it works, or says in one line what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

TIMEOUT_S = 100

LACKING = """
import os, signal
for module, names in (os, ("memfd_create", "pidfd_open", "eventfd")), (signal, ("pidfd_send_signal",)):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
if os.environ["LACKING"] == "the kernel":
    import ctypes
    function_of = ctypes.CDLL.__getattr__
    def lacking(self, name):
        if name in ("syscall", "memfd_create"):
            raise AttributeError(name)
        return function_of(self, name)
    ctypes.CDLL.__getattr__ = lacking
"""
"""Run by the program and by its fork server at their start."""

SEARCH_AND_KILL = """
import os, sys, threading, time
import chess
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits
with Supervisor(2, 16, start_method=sys.argv[1]) as engine:
    print(engine.search(SearchRequest(chess.Board(), Limits(depth=4))).bestmove is not None)
    print(engine.pool.workers[0].sentinel is not None)
    print("memfd:psearch" in open(f"/proc/{engine.pool.workers[0].pid}/maps").read())
    workers = engine.pool.workers
    times = []
    begun = threading.Event()
    def kill():
        begun.wait()
        times.append(time.monotonic())
        os.kill(workers[1].pid, 9)
    threading.Thread(target=kill).start()
    limits = Limits(movetime_ms=1000)
    request = SearchRequest(
        chess.Board(), limits, on_info=lambda info: begun.set(), on_note=lambda note: times.append(time.monotonic())
    )
    print(engine.search(request).notes[0].split(";")[0], times[1] - times[0] < 2)

    for worker in workers:
        worker.join(10)
print([worker.exitcode for worker in workers])
"""


@pytest.mark.parametrize("method", ["fork", "forkserver"])
@pytest.mark.parametrize("lacking", ["this Python", "the kernel"])
def test_without_memfd_and_pidfd(tmp_path: Path, lacking: str, method: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(LACKING)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "LACKING": lacking}
    command = [sys.executable, "-c", SEARCH_AND_KILL, method]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S)
    has_it = lacking != "the kernel"
    note = "worker 1 was killed by signal 9"
    assert (done.stdout, done.stderr) == (f"True\n{has_it}\n{has_it}\n{note} True\n[-9, -9]\n", "")


START = """
import resource, sys
from psearch.results import PsearchError
from psearch.processes.supervisor import Supervisor
import psearch.processes.fork_server
limit = getattr(resource, sys.argv[2])
number = int(sys.argv[3])
if limit == resource.RLIMIT_AS:
    number += int(open("/proc/self/status").read().split("VmSize:")[1].split()[0]) << 10
resource.setrlimit(limit, (number, number))
try:
    with Supervisor(3, 64, start_method=sys.argv[1]) as engine:
        print("started")
except PsearchError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("method", "limit", "number", "hint"),
    [
        ("fork", "RLIMIT_NOFILE", 8, "(see ulimit -n)"),
        ("fork", "RLIMIT_NOFILE", 11, "(see ulimit -n)"),
        ("forkserver", "RLIMIT_NOFILE", 15, "(see ulimit -n)"),
        ("fork", "RLIMIT_FSIZE", 1_000_000, "(see ulimit -f)"),
        ("fork", "RLIMIT_AS", 30_000_000, "(see ulimit -v, or the limit of the control group)"),
    ],
)
def test_limits_are_named_in_one_line(method: str, limit: str, number: int, hint: str) -> None:
    command = [sys.executable, "-c", START, method, limit, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.stdout.startswith("cannot ") and done.stdout.endswith(f" {hint}\n"), done
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


@pytest.fixture
def process_group() -> Iterator[Path]:
    """A new control group that limits the number of processes."""
    for folder in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        group = Path(folder, f"psearch-test-{os.getpid()}")
        with suppress(OSError):
            group.mkdir()
            if (group / "pids.max").exists():
                yield group
                group.rmdir()
                return
            group.rmdir()
    pytest.skip("no control group of processes can be made here")


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_processes(process_group: Path, most: int) -> None:
    (process_group / "pids.max").write_text(str(most))
    enter = f"import os; open({str(process_group / 'cgroup.procs')!r}, 'w').write(str(os.getpid())); "
    run = "import sys; from psearch.faces.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["--threads", "4", "--depth", "2", "startpos"]
    done = subprocess.run(
        [sys.executable, "-c", enter + run, *words], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "psearch: cannot start 4 worker processes: Resource temporarily unavailable "
        "(see ulimit -u, or pids.max of the control group)\n"
    )


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_without_proc(method: str) -> None:
    """A folder lies over it that has the processor only, lest kernels be compiled for an unknown one."""
    mount = 'about=$(cat /proc/cpuinfo); mount -t tmpfs none /proc && echo "$about" > /proc/cpuinfo && exec "$0" "$@"'
    hide = ["unshare", "--mount", "sh", "-c", mount]
    if shutil.which("unshare") is None or subprocess.run([*hide, "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    program = """
    import os, sys, chess
    from psearch.processes.request import SearchRequest
    from psearch.processes.supervisor import Supervisor
    from psearch.results import Limits
    with Supervisor(2, 16, start_method=sys.argv[1]) as engine:
        print(engine.search(SearchRequest(chess.Board(), Limits(depth=4))).bestmove is not None)
        workers = engine.pool.workers
        workers[0].kill()
        workers[0].join(10)
    print([worker.exitcode for worker in workers], os.listdir("/proc"))
    """
    command = [*hide, sys.executable, "-c", textwrap.dedent(program), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.stdout, done.stderr) == ("True\n[-9, 0] ['cpuinfo']\n", "")


def test_the_limit_of_open_files_is_raised_only_when_it_is_in_the_way() -> None:
    program = """
    import resource
    from psearch.processes.supervisor import Supervisor
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (150, hard))
    with Supervisor(10, 1):
        print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 150)
    with Supervisor(80, 1):
        print(150 < resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 300)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")
