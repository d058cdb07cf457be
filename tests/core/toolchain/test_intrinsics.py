"""Machine instructions for processors that the tests do not run on."""

from __future__ import annotations

import re
import time
from typing import Any

import llvmlite.binding as llvm
import pytest
from llvmlite import ir
from numba import njit
from numba.core import types

from psearch_core.toolchain import intrinsics
from psearch_core.toolchain.intrinsics import (
    atomic_add,
    atomic_and,
    atomic_load,
    atomic_or,
    atomic_store,
    compare_and_swap,
    cycle_counter,
    monotonic_ns,
    pause,
    relaxed_load_u64,
    relaxed_store_u64,
)

X86, ARM = "x86_64-linux-gnu", "aarch64-linux-gnu"
_I64 = ir.IntType(64)


class Numba:
    """The part of numba's context that an intrinsic uses."""

    def get_dummy_value(self) -> None:
        return None


def assembly_of(triple: str, operation: Any, arguments: int) -> list[str]:
    """Instructions of a function of 64-bit integers that is an intrinsic alone."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(_I64, [_I64] * arguments), "made")
    builder = ir.IRBuilder(function.append_basic_block())
    signature, generate = operation._defn(None, *[types.int64] * arguments)
    result = generate(Numba(), builder, signature, function.args)
    builder.ret(ir.Constant(_I64, 0) if result is None else builder.zext(result, _I64))
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=3)
    text = machine.emit_assembly(llvm.parse_assembly(str(module))).lower()
    return [re.sub(r"\s+", " ", line.strip()) for line in text.splitlines() if line.startswith("\t")]


@pytest.mark.parametrize(
    ("operation", "triple", "instruction"),
    [
        (cycle_counter, X86, "rdtsc"),
        (cycle_counter, ARM, "mrs x0, cntvct_el0"),
        (pause, X86, "pause"),
        (pause, ARM, "isb"),
    ],
)
def test_an_instruction_is_that_of_the_processor(
    operation: Any, triple: str, instruction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cycle counter is one that programs may read, and a spin loop takes time."""
    monkeypatch.setattr(intrinsics, "process_triple", lambda: triple)
    assert instruction in assembly_of(triple, operation, 0)


@pytest.mark.parametrize(
    ("operation", "arguments", "instructions"),
    [
        (atomic_load, 1, {"ldar"}),
        (atomic_store, 2, {"stlr"}),
        (relaxed_load_u64, 1, {"ldr"}),
        (relaxed_store_u64, 2, {"str"}),
        (atomic_add, 2, {"ldaxr", "stlxr"}),
        (atomic_or, 2, {"ldaxr", "stlxr"}),
        (atomic_and, 2, {"ldaxr", "stlxr"}),
        (compare_and_swap, 3, {"ldaxr", "stlxr"}),
    ],
)
def test_atomic_words_are_ordered_on_arm(operation: Any, arguments: int, instructions: set[str]) -> None:
    """Loads acquire, stores release, read-modify-write does both."""

    found = {line.split()[0] for line in assembly_of(ARM, operation, arguments)}
    assert {name for name in found if re.match(r"(ld|st|cas|dmb|swp)", name)} == instructions


def test_the_clock_is_that_of_python() -> None:
    now = njit(lambda: monotonic_ns())
    now()
    before = time.perf_counter_ns()
    assert before <= now() <= time.perf_counter_ns()
