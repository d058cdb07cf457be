"""Machine instructions for processors that the tests do not run on."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from psearch.core.intrinsics import emit_cycle_counter


@pytest.mark.parametrize(
    ("triple", "instruction"), [("x86_64-linux-gnu", "rdtsc"), ("aarch64-linux-gnu", "mrs x0, cntvct_el0")]
)
def test_the_cycle_counter_is_one_that_programs_may_read(triple: str, instruction: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.IntType(64), []), "cycles")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(emit_cycle_counter(builder, triple))
    machine = llvm.Target.from_triple(triple).create_target_machine()
    assembly = machine.emit_assembly(llvm.parse_assembly(str(module)))
    assert instruction in assembly.lower().replace("\t", " ")
