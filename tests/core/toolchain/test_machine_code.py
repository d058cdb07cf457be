"""Machine code in memory: our own placing against LLVM's loader."""

from __future__ import annotations

import ctypes
import platform
import struct
import subprocess
import sys
from typing import Any

import llvmlite.binding as llvm
import pytest

from psearch_core.toolchain import machine_code
from psearch_core.toolchain.compiler.back_end import target_machine
from psearch_core.toolchain.kernel_cache import KernelError

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="LLVM's loader is used there")

SOURCE = """
@table = internal constant [4 x i64] [i64 11, i64 22, i64 33, i64 44]
declare i32 @sched_yield()
declare ptr @memset(ptr, i32, i64)

define internal i64 @twice(i64 %a) noinline {
  %r = add i64 %a, %a
  ret i64 %r
}

define i64 @constant(i64 %index) {
  %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %index
  %v = load volatile i64, ptr %p
  ret i64 %v
}

define i64 @called(i64 %a) {
  %r = call i64 @twice(i64 %a)
  %s = call i64 @twice(i64 %r)
  ret i64 %s
}

define i64 @outside(i64 %a) {
  %status = call i32 @sched_yield()
  %buffer = alloca [64 x i8]
  %p = call ptr @memset(ptr %buffer, i32 7, i64 64)
  %v = load volatile i8, ptr %p
  %w = zext i8 %v to i64
  %s = zext i32 %status to i64
  %r = add i64 %w, %s
  %t = add i64 %r, %a
  ret i64 %t
}

define i64 @jumps(i64 %a) {
  switch i64 %a, label %other [
    i64 0, label %l0
    i64 1, label %l1
    i64 2, label %l2
    i64 3, label %l3
    i64 4, label %l4
  ]
l0:
  call i32 @sched_yield()
  ret i64 5
l1:
  ret i64 -1
l2:
  ret i64 70
l3:
  call i32 @sched_yield()
  ret i64 12
l4:
  ret i64 9
other:
  ret i64 0
}
"""
CALLS = [
    ("constant", 2, 33),
    ("called", 5, 20),
    ("outside", 100, 107),
    *(("jumps", number, result) for number, result in enumerate([5, -1, 70, 12, 9, 0])),
]


def object_of(source: str) -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return bytes(target_machine().emit_object(llvm.parse_assembly(source)))


def call(address: int, argument: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(argument))


@pytest.mark.parametrize("place", ["place_simple", "place_by_llvm"])
def test_placed_code_runs(place: str) -> None:
    code = object_of(SOURCE)
    names = {name for name, _, _ in CALLS}
    arguments: tuple[Any, ...] = (code,) if place == "place_simple" else (code, names)
    addresses = getattr(machine_code, place)(*arguments)
    assert names <= set(addresses)
    for name, argument, result in CALLS:
        assert call(addresses[name], argument) == result


@pytest.mark.parametrize("place", [machine_code.place, machine_code.place_by_llvm])
def test_code_that_needs_what_is_nowhere_has_no_address(place: Any) -> None:
    code = object_of(SOURCE.replace("@sched_yield", "@nowhere_to_be_found"))
    with pytest.raises(KernelError, match="cannot be loaded: they need nowhere_to_be_found, which does not exist"):
        place(code, ["called", "outside"])
    with pytest.raises(KernelError, match="cannot be loaded: nowhere has no address"):
        machine_code.place_by_llvm(object_of(SOURCE), ["called", "nowhere"])


def test_memory_is_not_writable_and_executable() -> None:
    (address,) = machine_code.place(object_of(SOURCE), ["called"]).values()
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            begin, end = (int(word, 16) for word in line.split()[0].split("-"))
            if begin <= address < end:
                assert line.split()[1].startswith("r-x")
                assert call(address, 5) == 20
                return
    pytest.fail("not mapped")


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_system_where_no_memory_becomes_executable(search_kernels: None, method: str) -> None:
    """`MemoryDenyWriteExecute` of a service."""
    program = f"""
import ctypes, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, Linux 6.3
    sys.exit("not here")
import chess
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits
with Supervisor(2, 1, start_method="{method}") as engine:
    print(engine.search(SearchRequest(chess.Board(), Limits(depth=4))).info.depth)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    if done.stderr == "not here\n":
        pytest.skip("the kernel does not know this")
    assert (done.stdout, done.stderr) == ("4\n", "")


def test_what_is_not_simple_is_placed_by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that is written to; an older system, or one that is not Linux."""
    source = "@counter = global i64 3\ndefine i64 @f(i64 %a) {\n %v = load i64, ptr @counter\n ret i64 %v\n}\n"
    with pytest.raises(machine_code.NotSimple):
        machine_code.place_simple(object_of(source))
    assert call(machine_code.place(object_of(source), ["f"])["f"], 0) == 3
    monkeypatch.setattr(machine_code, "_MFD_CLOEXEC", 1 << 20)  # an argument that no memfd_create takes
    monkeypatch.setattr(machine_code, "_MFD_ALLOW_SEALING", 1 << 20)
    with pytest.raises(machine_code.NotSimple, match="Invalid argument"):
        machine_code.place_simple(object_of(SOURCE))
    assert call(machine_code.place(object_of(SOURCE), ["called"])["called"], 5) == 20


@pytest.mark.parametrize(("offset", "format", "value"), [(18, "<H", 183), (16, "<H", 2), (4, "<B", 1)])
def test_other_kinds_of_object_are_not_simple(offset: int, format: str, value: int) -> None:
    """The objects are of aarch64, of an executable and of 32 bits."""
    code = bytearray(object_of(SOURCE))
    struct.pack_into(format, code, offset, value)
    with pytest.raises(machine_code.NotSimple):
        machine_code.place_simple(bytes(code))


def test_a_relocation_that_is_not_expected_is_not_simple() -> None:
    code = bytearray(object_of(SOURCE))
    sections = machine_code._sections(bytes(code))
    table = next(section for section in sections if section.type == machine_code._RELOCATIONS and section.size)
    struct.pack_into("<I", code, table.offset + 8, 10)  # the type: R_X86_64_32
    with pytest.raises(machine_code.NotSimple, match="relocation 10"):
        machine_code.place_simple(bytes(code))


def test_a_search_needs_neither_llvm_nor_numba(kernels: None) -> None:
    """The kernels are in the cache."""
    from psearch.scheduler.scheduler_entries import SEARCH
    from psearch_core.chess.chess_entries import CHESS
    from psearch_core.toolchain import groups

    groups.load(CHESS, SEARCH)
    statement = 'import psearch; print(psearch.search("startpos", depth=3, hash_mb=1).info.depth)'
    assert imported(statement, "numba", "llvmlite", "rich", "scipy", "matplotlib") == ["3", ""]


def test_a_count_of_leaves_needs_neither_llvm_nor_numba(kernels: None) -> None:
    from psearch.lab.studies.uniform_tree import UNIFORM_TREE
    from psearch.scheduler.scheduler_entries import SEARCH
    from psearch_core.toolchain import groups

    groups.load(SEARCH, UNIFORM_TREE)
    assert (
        imported('from psearch.faces.cli.main import main; main(["leaves", "3", "3"])', "numba", "llvmlite")[-1] == ""
    )


def imported(statement: str, *packages: str) -> list[str]:
    """Lines that a program prints; the last one names those of the packages that it needed."""
    program = f"""
import sys
{statement}
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & set({packages})))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()
