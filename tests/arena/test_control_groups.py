"""The memory of an arena, and what control groups leave of memory and processor."""

from __future__ import annotations

import errno
import math
import os
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import chess
import numpy as np
import pytest
from limits import NEEDS_POPULATE, address_space, block_facts, lowered, next_descriptor, open_files, resident_kb

from psearch.arena import arena as arena_module
from psearch.arena import blocks as memory
from psearch.arena import control_groups, system_calls
from psearch.arena.arena import Arena
from psearch.arena.blocks import MIB, SharedBlock, drop_blocks_but
from psearch.arena.control_groups import cores_left, memory_left
from psearch.arena.setup import write_search
from psearch.defaults import MAX_THREADS
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits, PsearchError
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.chess.evaluation.network_file import EvaluationNetwork

V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1_MOUNTS = """31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct"""


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def write(self, path: str, text: str | int) -> None:
        file = Path(self.root, path.lstrip("/"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def process(self, groups: str, mounts: str) -> None:
        self.write("/proc/self/cgroup", groups)
        self.write("/proc/self/mountinfo", f"23 28 0:21 / /proc rw - proc proc rw\n{mounts}")

    def limit(self, folder: str, limit: int | str, used: int = 0, cached: int = 0) -> None:
        self.write(f"{folder}/memory.max", limit)
        self.write(f"{folder}/memory.current", used)
        self.write(f"{folder}/memory.stat", f"anon 1\nfile 77\ninactive_anon 66\ninactive_file {cached}")

    def limit_v1(self, folder: str, limit: int, used: int = 0, cached: int = 0) -> None:
        self.write(f"{folder}/memory.limit_in_bytes", limit)
        self.write(f"{folder}/memory.usage_in_bytes", used)
        self.write(f"{folder}/memory.stat", f"inactive_file 99\ntotal_inactive_file {cached}")

    @property
    def left(self) -> tuple[int | None, float | None]:
        return memory_left(self.root), cores_left(self.root)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_without_control_groups_nothing_is_limited(tree: Tree) -> None:
    assert tree.left == (None, None)
    tree.process("0::/", V2_MOUNT)
    assert tree.left == (None, None), "the root has no such files"


def test_a_service_is_limited_by_its_own_group(tree: Tree) -> None:
    tree.process("0::/system.slice/bot.service", V2_MOUNT)
    tree.limit("/sys/fs/cgroup/system.slice/bot.service", 1000, 400, 150)
    tree.write("/sys/fs/cgroup/system.slice/bot.service/cpu.max", "150000 100000")
    assert tree.left == (1000 - 400 + 150, 1.5)


def test_the_tightest_of_all_above_counts(tree: Tree) -> None:
    tree.process("0::/a/b/c", V2_MOUNT)
    tree.limit("/sys/fs/cgroup/a/b/c", "max", 100)
    tree.limit("/sys/fs/cgroup/a/b", 5000, 200)
    tree.limit("/sys/fs/cgroup/a", 6000, 5500)
    tree.limit("/sys/fs/cgroup", 9000, 7000)
    tree.write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000")
    tree.write("/sys/fs/cgroup/a/cpu.max", "800000 100000")
    tree.write("/sys/fs/cgroup/cpu.max", "300000 100000")
    assert tree.left == (500, 3.0)
    tree.limit("/sys/fs/cgroup/a/beside", 1)
    tree.limit("/sys/fs/cgroup/a/b/c/below", 1)
    assert tree.left == (500, 3.0), "other groups"


def test_where_a_group_is_slowed_down_is_a_limit_too(tree: Tree) -> None:
    tree.process("0::/a", V2_MOUNT)
    tree.limit("/sys/fs/cgroup/a", "max", 400)
    tree.write("/sys/fs/cgroup/a/memory.high", 1000)
    assert tree.left == (600, None)
    tree.limit("/sys/fs/cgroup/a", 900, 1000)
    assert tree.left == (-100, None), "more in use than the limit allows"


def test_version_1(tree: Tree) -> None:
    job = "slurm/uid_1000/job_7"
    tree.process(f"9:cpuset:/\n4:memory:/{job}\n3:cpu,cpuacct:/{job}\n0::/", f"{V1_MOUNTS}")
    tree.limit_v1(f"/sys/fs/cgroup/memory/{job}", 2**63 - 4096, 300)
    tree.limit_v1("/sys/fs/cgroup/memory/slurm/uid_1000", 5000, 1000, 20)
    tree.write(f"/sys/fs/cgroup/cpu,cpuacct/{job}/cpu.cfs_quota_us", -1)
    tree.write(f"/sys/fs/cgroup/cpu,cpuacct/{job}/cpu.cfs_period_us", 100000)
    assert tree.left == (4020, None)
    tree.write("/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us", 50000)
    tree.write("/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us", 100000)
    assert tree.left == (4020, 0.5)


def test_both_versions_side_by_side(tree: Tree) -> None:
    unified = "38 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
    tree.process("4:memory:/a\n3:cpu,cpuacct:/\n1:name=systemd:/x\n0::/b", f"{V1_MOUNTS}\n{unified}")
    tree.limit_v1("/sys/fs/cgroup/memory/a", 500)
    tree.write("/sys/fs/cgroup/unified/b/cpu.max", "200000 100000")
    assert tree.left == (500, 2.0)


def test_a_container_sees_its_own_group_at_the_mount(tree: Tree) -> None:
    """In a namespace of control groups the paths begin there; without one the mount names the group that it shows."""
    tree.process("0::/", V2_MOUNT)
    tree.limit("/sys/fs/cgroup", 700)
    assert tree.left == (700, None)
    tree.process("0::/docker/0a1b/job", V2_MOUNT.replace(" / /sys", " /docker/0a1b /sys"))
    tree.limit("/sys/fs/cgroup/job", 600)
    assert tree.left == (600, None)
    tree.process("0::/../elsewhere", V2_MOUNT)
    tree.limit("/elsewhere", 1)
    assert tree.left == (700, None), "moved out of its namespace: what it can see"
    tree.process("0::/kube/0a1b", V2_MOUNT.replace(" / /sys", " /docker/0a1b /sys"))
    assert tree.left == (700, None), "below no mount"
    tree.process("0::/docker/0a1b2", V2_MOUNT.replace(" / /sys", " /docker/0a1b /sys"))
    assert tree.left == (700, None), "not below by name alone"


def test_odd_names_and_odd_files(tree: Tree) -> None:
    tree.process("0::/a:b c/d", "30 23 0:26 / /sys/fs/c\\040g rw - cgroup2 none rw\nnonsense\n")
    tree.limit("/sys/fs/c g/a:b c", 800)
    assert tree.left == (800, None)
    tree.write("/sys/fs/c g/a:b c/memory.stat", "nonsense")
    tree.write("/sys/fs/c g/a:b c/memory.current", "nonsense")
    tree.write("/sys/fs/c g/a:b c/cpu.max", "100 0")
    assert tree.left == (800, None)
    tree.write("/sys/fs/c g/a:b c/memory.max", "")
    tree.write("/sys/fs/c g/a:b c/cpu.max", "")
    assert tree.left == (None, None)


def test_memory_is_what_system_and_group_leave(tree: Tree) -> None:
    tree.process("0::/a", V2_MOUNT)
    tree.write("/proc/meminfo", "MemTotal:  900 kB\nMemFree: 1 kB\nMemAvailable:     700 kB")
    assert control_groups.available_memory(tree.root) == 700 * 1024
    tree.limit("/sys/fs/cgroup/a", 300 * 1024)
    assert control_groups.available_memory(tree.root) == 300 * 1024
    tree.limit("/sys/fs/cgroup/a", 900 * 1024)
    assert control_groups.available_memory(tree.root) == 700 * 1024


def test_memory_that_may_be_used_is_the_least_limit_whatever_is_in_use(tree: Tree) -> None:
    machine = control_groups.usable_memory_mb(tree.root)
    tree.process("0::/a/b", V2_MOUNT)
    assert control_groups.usable_memory_mb(tree.root) == machine > 300
    tree.limit("/sys/fs/cgroup/a", 300 << 20, 200 << 20)
    tree.limit("/sys/fs/cgroup/a/b", 400 << 20)
    assert control_groups.usable_memory_mb(tree.root) == 300
    tree.limit("/sys/fs/cgroup/a", machine << 21)
    assert control_groups.usable_memory_mb(tree.root) == 400


def test_kills_for_want_of_memory_are_counted(tree: Tree) -> None:
    assert control_groups.oom_kills(tree.root) == 0
    tree.write("/proc/vmstat", "pgfault 12\noom_kill 7\nnuma_hit 3")
    assert control_groups.oom_kills(tree.root) == 7


def test_without_proc_memory_is_bounded_by_the_machine(tmp_path: Path) -> None:
    page, pages = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
    assert pages // 2 * page <= control_groups.available_memory(str(tmp_path)) <= pages * page


@pytest.mark.parametrize(("share", "cores"), [(None, 8), (0.2, 1), (1.0, 1), (2.9, 2), (64.0, 8)])
def test_usable_cores(monkeypatch: pytest.MonkeyPatch, share: float | None, cores: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(control_groups, "cores_left", lambda: share)
    assert control_groups.usable_cores() == cores


ENTER = """
import os, sys
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
"""


@pytest.fixture
def real_group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A new group below that of this process, with the controller that the test names."""
    for _, folder in list(control_groups._groups(request.param, ""))[:1]:
        group = Path(folder, f"psearch-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            break
        yield group
        with suppress(OSError):
            group.rmdir()
        return
    pytest.skip(f"no control groups of {request.param} can be made here")


def in_group(group: Path, program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ENTER + program, str(group)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def set_limit(group: Path, limits: dict[str, str]) -> None:
    """The first of the files that is there."""
    for name, text in limits.items():
        if (group / name).exists():
            (group / name).write_text(text)
            return
    pytest.skip("the controller is not enabled here")


@pytest.mark.parametrize("real_group", ["cpu"], indirect=True)
def test_a_real_quota(real_group: Path) -> None:
    set_limit(real_group, {"cpu.max": "110000 100000", "cpu.cfs_quota_us": "110000"})
    program = """
from psearch.arena.control_groups import cores_left, usable_cores
print(usable_cores(), cores_left())
"""
    assert in_group(real_group, program).stdout == "1 1.1\n"


@pytest.mark.parametrize("real_group", ["memory"], indirect=True)
def test_a_hash_beyond_a_real_limit_is_refused(real_group: Path) -> None:
    load_kernels()  # compiled here if need be, not within the limit
    set_limit(real_group, {"memory.max": "600M", "memory.limit_in_bytes": "600M"})
    program = """
from psearch.faces.cli.main import main
sys.exit(main(["--threads", "2", "--hash", sys.argv.pop(), "--depth", "2", "startpos"]))
"""
    for hash_mb, why in (("800", "does not fit in the 600 MiB of memory"), ("590", "not enough memory")):
        refused = in_group(real_group, program.replace("sys.argv.pop()", repr(hash_mb)))
        assert refused.returncode == 2 and why in refused.stderr, refused
        assert refused.stderr.count("\n") == 1
    done = in_group(real_group, program.replace("sys.argv.pop()", "'64'"))
    assert done.returncode == 0, done


@pytest.mark.parametrize("real_group", ["memory"], indirect=True)
def test_the_page_is_bounded_by_a_real_limit(real_group: Path) -> None:
    set_limit(real_group, {"memory.max": "800M", "memory.limit_in_bytes": "800M"})
    program = """
from psearch.faces.web.shared_engine import SharedSettings, bounds_of
print(bounds_of(SharedSettings(1, 16)).hash_mb)
"""
    assert in_group(real_group, program).stdout == "200\n"


@pytest.mark.parametrize("real_group", ["memory"], indirect=True)
def test_two_engines_at_once_in_a_group_for_one_say_that_memory_is_short(real_group: Path) -> None:
    """Each looks before the other has taken its table. Which of them is killed the system decides, if any."""
    load_kernels()
    set_limit(real_group, {"memory.max": "400M", "memory.limit_in_bytes": "400M"})
    program = """
import subprocess
words = ["--threads", "1", "--hash", "220", "--movetime", "1000", "startpos"]
code = f"from psearch.faces.cli.main import main; main({words})"
both = [subprocess.Popen([sys.executable, "-c", code], stderr=-1, stdout=-1, text=True) for _ in range(2)]
for one in both:
    print(one.communicate()[1])
"""
    for _ in range(5):
        told = in_group(real_group, program).stdout
        assert "signal 9" not in told, told
        if "is short of memory" in told or "not enough memory" in told:
            return
    pytest.skip("there was room for both")


MIDDLE_GAME = chess.Board("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3")


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = open_files()
    yield
    assert open_files() == before


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(1, 1)
    yield made
    made.close()


def nodes_of_a_search(arena: Arena) -> int:
    write_search(arena, MIDDLE_GAME, Limits(depth=6), SearchOptions(policy="serial"))
    work_alone(arena)
    return int(arena.worker[0]["nodes"])


def test_forgetting_is_as_new(arena: Arena) -> None:
    as_new = nodes_of_a_search(arena)
    assert arena.tt.any() and arena.worker["killers"].any()
    assert nodes_of_a_search(arena) != as_new
    arena.forget()
    assert not arena.tt.any() and not arena.worker["killers"].any()
    assert nodes_of_a_search(arena) == as_new
    arena.clear_table()
    assert nodes_of_a_search(arena) != as_new, "the histories are still there"


@pytest.mark.parametrize("workers", [0, -1, MAX_THREADS + 1])
def test_the_number_of_workers_is_limited(workers: int) -> None:
    with pytest.raises(PsearchError, match=f"threads must be between 1 and {MAX_THREADS}, not {workers}"):
        Arena(workers, 1)


def test_memory_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_module, "available_memory", lambda: 100 * MIB)
    with pytest.raises(PsearchError, match=r"128 MB and 1 threads need about 12[89] MB, 100 MB are available"):
        Arena(1, 128)


def refuse(monkeypatch: pytest.MonkeyPatch, number: int, unless: int = -1) -> None:
    """Let `memfd_create` fail, except with certain flags."""
    create = system_calls.memfd_create

    def refused(name: str, flags: int) -> int:
        if flags == unless:
            return create(name, flags)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(system_calls, "memfd_create", refused)


def use(block: SharedBlock) -> None:
    """It is memory, all zero, and its descriptor is another way to it."""
    array = np.frombuffer(block.map, np.uint64)
    assert len(array) * 8 == block.size and not array.any()
    array[-1] = 7
    again = SharedBlock(block.size, os.dup(block.fd))
    assert np.frombuffer(again.map, np.uint64)[-1] == 7
    del array
    again.close()


def test_a_block() -> None:
    block = SharedBlock(3 * MIB)
    use(block)
    block.close()


def test_a_block_is_not_executable_where_the_kernel_knows_that() -> None:
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 3):
        pytest.skip("Linux before 6.3")
    block = SharedBlock(MIB)
    assert stat.S_IMODE(os.fstat(block.fd).st_mode) & 0o111 == 0
    block.close()


def test_an_older_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, errno.EINVAL, unless=1)
    block = SharedBlock(MIB)
    assert "memfd" in os.readlink(f"/proc/self/fd/{block.fd}")
    use(block)
    block.close()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM, errno.EACCES])
def test_without_memfd_a_block_is_a_file_without_a_name(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    refuse(monkeypatch, number)
    block = SharedBlock(MIB)
    assert os.fstat(block.fd).st_nlink == 0
    assert os.fstat(block.fd).st_blocks * 512 >= MIB, "what is not there now would be SIGBUS later"
    use(block)
    block.close()


def test_a_full_shared_memory_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refuse(monkeypatch, errno.ENOSYS)
    monkeypatch.setattr(memory, "_FILES_FOLDER", str(tmp_path / "nowhere"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    block = SharedBlock(MIB)
    assert os.readlink(f"/proc/self/fd/{block.fd}").startswith(str(tmp_path))
    use(block)
    block.close()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(PsearchError, match=r"^cannot take 1 MiB of shared memory: No such file or directory$"):
        SharedBlock(MIB)


def test_what_the_system_refuses() -> None:
    with (
        lowered(resource.RLIMIT_AS, address_space() + 100 * MIB),
        pytest.raises(PsearchError, match=r"cannot take 1,024 MiB of shared memory: .* \(see ulimit -v"),
    ):
        SharedBlock(1024 * MIB)
    with (
        lowered(resource.RLIMIT_FSIZE, 10 * MIB),
        pytest.raises(PsearchError, match=r"cannot take 16 MiB of shared memory: .* \(see ulimit -f\)"),
    ):
        SharedBlock(16 * MIB)
    with (
        lowered(resource.RLIMIT_NOFILE, next_descriptor()),
        pytest.raises(PsearchError, match=r"cannot take 1 MiB of shared memory: .* \(see ulimit -n\)"),
    ):
        SharedBlock(100)


def test_an_arena_that_fails_halfway() -> None:
    with lowered(resource.RLIMIT_FSIZE, 32 * MIB), pytest.raises(PsearchError, match="64 MiB"):
        Arena(2, 64)
    arena = Arena(2, 1)
    descriptors = [os.dup(descriptor) for descriptor in arena.descriptors()]
    with lowered(resource.RLIMIT_NOFILE, next_descriptor()), pytest.raises(PsearchError, match="ulimit -n"):
        Arena.attach(**arena.layout(), descriptors=descriptors)
    arena.close()


def test_an_arena_without_memory_for_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tables: np.ndarray, network: EvaluationNetwork) -> None:
        raise MemoryError

    monkeypatch.setattr("psearch.arena.arena.make_tables", fail)
    with pytest.raises(PsearchError, match=r"^cannot make the tables: Cannot allocate memory \(see ulimit -v"):
        Arena(1, 1)


def test_the_table_is_not_in_core_dumps() -> None:
    arena = Arena(1, 37)
    flags = block_facts(os.getpid(), 37 * 1024, "VmFlags:")
    assert len(flags) == 1
    assert "dd" in flags[0]
    arena.close()


@NEEDS_POPULATE
@pytest.mark.parametrize("workers", [1, 3, 7, 30])
def test_parts_of_all_workers_are_the_whole(workers: int) -> None:
    block = SharedBlock(37 * MIB)
    taken = 0
    for index in range(workers):
        block.populate(10.0, behind=index / workers, part=1 / workers)
        (resident,) = resident_kb(os.getpid(), 37 * 1024)
        assert resident - taken <= 2048 * math.ceil(19 / workers)
        taken = resident
    assert taken == 37 * 1024
    block.close()


def large_kb(size_kb: int) -> int:
    """Return how much of this process's block of this size is mapped by large pages."""
    ((kb, _),) = block_facts(os.getpid(), size_kb, "ShmemPmdMapped:")
    return int(kb)


def test_whole_pieces_of_a_block_are_large_pages() -> None:
    block = SharedBlock(37 * MIB)
    np.frombuffer(block.map, np.uint8)[-1] = 7
    if not block.enlarge_pages(0, 2 * MIB):
        pytest.skip("this system has no large pages for shared memory (Linux before 6.1, or none free)")
    assert large_kb(37 * 1024) == 2048
    block.populate(10.0)
    assert large_kb(37 * 1024) == 36 * 1024
    again = SharedBlock(block.size, os.dup(block.fd))
    array = np.frombuffer(again.map, np.uint8)
    assert array[-1] == 7
    assert not array[:-1].any()
    del array
    again.close()
    block.close()


@NEEDS_POPULATE
def test_a_system_without_large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pages are used then."""
    monkeypatch.setattr(memory, "_MADV_COLLAPSE", 9999)
    block = SharedBlock(37 * MIB)
    assert not block.enlarge_pages(0, 2 * MIB)
    block.populate(10.0)
    assert large_kb(37 * 1024) == 0
    assert resident_kb(os.getpid(), 37 * 1024) == [37 * 1024]
    block.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_gives_up_what_it_does_not_need() -> None:
    """Its memory, but not its addresses: what is dropped there later must not take another mapping's place away."""
    kept, dropped = SharedBlock(5 * MIB), SharedBlock(7 * MIB)
    for block in (kept, dropped):
        np.frombuffer(block.map, np.uint64)[:] = 1
    child = os.fork()
    if child == 0:
        drop_blocks_but([kept.fd])
        is_right = (
            len(block_facts(os.getpid(), 5 * 1024, "VmFlags:")),
            len(block_facts(os.getpid(), 7 * 1024, "VmFlags:")),
        ) == (1, 0)
        is_right &= bool(np.frombuffer(kept.map, np.uint64).all())
        dropped.close()
        kept.close()
        os._exit(0 if is_right else 9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.frombuffer(dropped.map, np.uint64).all(), "ours is still there"
    dropped.close()
    kept.close()
