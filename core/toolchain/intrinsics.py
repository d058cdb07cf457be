"""What numba lacks: views of records at an address, atomic words, and a few machine instructions.

A record that a kernel holds is a pointer, so passing one on costs a register. Records are reached by address
(`view`), because everything that workers share lives in one mapped block, at another address in each process.
Kernels must never *return* a record: numba would copy it whole.

Words that several processes write are touched only through the atomic operations here. Loads acquire, stores
release, read-modify-write is sequentially consistent. A plain load in a loop may be hoisted out of it.
"""

from __future__ import annotations

import os
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from psearch.core.toolchain.jit import CHECK

_I8 = ir.IntType(8)
_I64 = ir.IntType(64)

HAS_PEXT = bool(llvmlite.binding.get_host_cpu_features().get("bmi2")) and not os.environ.get("PSEARCH_NO_PEXT")


def process_triple() -> str:
    """The target that kernels are compiled for."""
    return str(llvmlite.binding.get_process_triple())


def view(record: types.Record) -> Any:
    """An intrinsic `at(address: int64)` that gives the record of this type at an address."""

    @intrinsic
    def at(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(record))

        return record(types.int64), codegen

    return at


def element_of(parent: types.Record, base: str, record: types.Record) -> Any:
    """An intrinsic `of(parent, number: int64)`: the record of that number in the array whose address is in the field
    `base` of the parent."""
    offset = parent.offset(base)

    @intrinsic
    def of(typing_context: Any, owner: Any, number: Any) -> Any:
        if owner != parent:
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            first = _load_field(builder, args[0], offset)
            where = builder.add(first, builder.mul(args[1], ir.Constant(_I64, record.size)))
            return builder.inttoptr(where, context.get_value_type(record))

        return record(parent, types.int64), codegen

    return of


def target_of(parent: types.Record, name: str, record: types.Record) -> Any:
    """An intrinsic `of(parent)`: the record whose address is in a field of the parent."""
    offset = parent.offset(name)

    @intrinsic
    def of(typing_context: Any, owner: Any) -> Any:
        if owner != parent:
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            where = _load_field(builder, args[0], offset)
            return builder.inttoptr(where, context.get_value_type(record))

        return record(parent), codegen

    return of


def neighbour(record: types.Record, step: int) -> Any:
    """An intrinsic `of(record)`: the record `step` places further on in the array that it lies in."""

    @intrinsic
    def of(typing_context: Any, instance: Any) -> Any:
        if instance != record:
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            where = builder.add(builder.ptrtoint(args[0], _I64), ir.Constant(_I64, step * record.size))
            return builder.inttoptr(where, context.get_value_type(record))

        return record(record), codegen

    return of


def _load_field(builder: Any, instance: Any, offset: int) -> Any:
    """The int64 at an offset into a record."""
    where = builder.add(builder.ptrtoint(instance, _I64), ir.Constant(_I64, offset))
    return builder.load(builder.inttoptr(where, _I64.as_pointer()))


def field_address(record: types.Record, name: str) -> Any:
    """An intrinsic that gives the address of a field, for the atomic operations."""
    offset = record.offset(name)

    @intrinsic
    def address_of_field(typing_context: Any, instance: Any) -> Any:
        if instance != record:
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.add(builder.ptrtoint(args[0], _I64), ir.Constant(_I64, offset))

        return types.int64(instance), codegen

    return address_of_field


@intrinsic
def address(typing_context: Any, instance: Any) -> Any:
    """The address of a record."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], _I64)

    return types.int64(instance), codegen


@intrinsic
def copy_record(typing_context: Any, target: Any, source: Any) -> Any:
    """memcpy between two records of the same type (an assignment of records goes through one huge value)."""
    if not isinstance(target, types.Record) or target != source:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _I8.as_pointer()
        size = ir.Constant(_I64, target.size)
        cgutils.raw_memcpy(
            builder, builder.bitcast(args[0], pointer), builder.bitcast(args[1], pointer), size, 1, align=8
        )
        return context.get_dummy_value()

    return types.void(target, source), codegen


@intrinsic
def clear_record(typing_context: Any, target: Any) -> Any:
    """All fields of a record to zero."""
    if not isinstance(target, types.Record):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(args[0], _I8.as_pointer())
        cgutils.memset(builder, pointer, ir.Constant(_I64, target.size), 0)
        return context.get_dummy_value()

    return types.void(target), codegen


@intrinsic
def copy_bytes(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    """memcpy(target address, source address, bytes); both aligned to 8."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _I8.as_pointer()
        cgutils.raw_memcpy(
            builder,
            builder.inttoptr(args[0], pointer),
            builder.inttoptr(args[1], pointer),
            args[2],
            1,
            align=8,
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def _word(builder: Any, value: Any) -> Any:
    return builder.inttoptr(value, _I64.as_pointer())


def _load(ordering: str, result: types.Integer) -> Any:
    """An intrinsic that reads a word as one."""

    @intrinsic
    def load(typing_context: Any, where: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load_atomic(_word(builder, args[0]), ordering, 8)

        return result(types.int64), codegen

    return load


def _store(ordering: str, kind: types.Integer) -> Any:
    """An intrinsic that writes a word as one."""

    @intrinsic
    def store(typing_context: Any, where: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store_atomic(args[1], _word(builder, args[0]), ordering, 8)
            return context.get_dummy_value()

        return types.void(types.int64, kind), codegen

    return store


atomic_load = _load("acquire", types.int64)
atomic_store = _store("release", types.int64)
relaxed_load_u64 = _load("monotonic", types.uint64)
"""Untorn, with no ordering: for the transposition table, which validates what it reads."""
relaxed_store_u64 = _store("monotonic", types.uint64)


def racing_read(record: types.Record, name: str) -> Any:
    """An intrinsic that reads a signed field which another worker may be writing: once, untorn, with no ordering."""
    offset = record.offset(name)
    kind: Any = record.typeof(name)
    if kind not in (types.int32, types.int64):
        raise AssertionError(f"{name} is {kind}")
    bits = kind.bitwidth

    @intrinsic
    def read(typing_context: Any, instance: Any) -> Any:
        if instance != record:
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            where = builder.add(builder.ptrtoint(args[0], _I64), ir.Constant(_I64, offset))
            pointer = builder.inttoptr(where, ir.IntType(bits).as_pointer())
            return builder.sext(builder.load_atomic(pointer, "monotonic", bits // 8), _I64)

        return types.int64(instance), codegen

    return read


def _read_modify_write(operation: str) -> Any:
    @intrinsic
    def modify(typing_context: Any, where: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.atomic_rmw(operation, _word(builder, args[0]), args[1], "seq_cst")

        return types.int64(types.int64, types.int64), codegen

    return modify


atomic_add = _read_modify_write("add")
"""Add to a word; returns what was there before."""
atomic_or = _read_modify_write("or")
atomic_and = _read_modify_write("and")


@intrinsic
def compare_and_swap(typing_context: Any, where: Any, expected: Any, new: Any) -> Any:
    """True when the word held `expected` and now holds `new`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pair = builder.cmpxchg(_word(builder, args[0]), args[1], args[2], "seq_cst", "seq_cst")
        return builder.extract_value(pair, 1)

    return types.boolean(types.int64, types.int64, types.int64), codegen


def _bit_count(name: str) -> Any:
    @intrinsic
    def count(typing_context: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if name == "ctpop":
                return builder.ctpop(args[0])
            undefined_at_zero = ir.Constant(ir.IntType(1), 1)
            return getattr(builder, name)(args[0], undefined_at_zero)

        return types.int64(types.uint64), codegen

    return count


popcount = _bit_count("ctpop")
lowest_bit = _bit_count("cttz")
"""Index of the lowest set bit; undefined for 0."""


@intrinsic
def pext(typing_context: Any, word: Any, mask: Any) -> Any:
    """Parallel bit extract (BMI2). Only where `HAS_PEXT`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function_type = ir.FunctionType(_I64, [_I64, _I64])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.x86.bmi.pext.64")
        return builder.call(function, args)

    return types.int64(types.uint64, types.uint64), codegen


@intrinsic
def byte_swap(typing_context: Any, word: Any) -> Any:
    """The bytes of a word in reverse order: a bitboard seen from the other side."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function_type = ir.FunctionType(_I64, [_I64])
        return builder.call(cgutils.get_or_insert_function(builder.module, function_type, "llvm.bswap.i64"), args)

    return types.uint64(types.uint64), codegen


@intrinsic
def high_product(typing_context: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the 128-bit product: maps a key onto 0 .. b - 1 without a division."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _I64)

    return types.int64(types.uint64, types.uint64), codegen


@intrinsic
def prefetch(typing_context: Any, where: Any) -> Any:
    """Begin to load the cache line at an address; never faults."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        pointer = _I8.as_pointer()
        function_type = ir.FunctionType(ir.VoidType(), [pointer, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(
            function,
            [
                builder.inttoptr(args[0], pointer),
                ir.Constant(i32, 0),
                ir.Constant(i32, 3),
                ir.Constant(i32, 1),
            ],
        )
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def emit_pause(builder: Any, triple: str) -> None:
    """The instruction for a spin loop, for a target; nothing for others than these."""
    void = ir.VoidType()
    if triple.startswith("x86_64"):
        function_type = ir.FunctionType(void, [])
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, "llvm.x86.sse2.pause"), [])
    elif triple.startswith("aarch64"):
        # `isb` takes about as long as `pause` does; `yield` is no more than a `nop` on most processors
        i32 = ir.IntType(32)
        function_type = ir.FunctionType(void, [i32])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.aarch64.isb")
        builder.call(function, [ir.Constant(i32, 15)])


@intrinsic
def pause(typing_context: Any) -> Any:
    """A hint to the processor: this is a spin loop."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit_pause(builder, process_triple())
        return context.get_dummy_value()

    return types.void(), codegen


def emit_cycle_counter(builder: Any, triple: str) -> Any:
    """The instruction that reads the counter, for a target.

    LLVM's own intrinsic reads a counter on ARM that Linux does not let programs read, before LLVM 18.
    """
    if triple.startswith("aarch64"):
        function_type = ir.FunctionType(_I64, [ir.MetaDataType()])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.read_volatile_register.i64")
        return builder.call(function, [builder.module.add_metadata(["cntvct_el0"])])
    function_type = ir.FunctionType(_I64, [])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, "llvm.readcyclecounter"), [])


@intrinsic
def cycle_counter(typing_context: Any) -> Any:
    """The time stamp counter: for shares of time, never for decisions of the search."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return emit_cycle_counter(builder, process_triple())

    return types.int64(), codegen


@intrinsic(prefer_literal=True)
def check(typing_context: Any, condition: Any, message: Any) -> Any:
    """Assert what must be so; message: a literal. Costs nothing but in a build with checks (`jit.CHECK`).

    There a false condition writes `psearch: check failed: MESSAGE` to stderr and aborts the process. A condition must
    have no effect of its own, and no atomic operation in it: these are not dropped.
    """
    if not isinstance(message, types.StringLiteral):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if CHECK:
            abort_unless(builder, args[0], message.literal_value)
        return context.get_dummy_value()

    return types.void(types.boolean, message), codegen


def abort_unless(builder: Any, condition: Any, message: str) -> None:
    """Code that ends the process, with a line to stderr, where the condition is false. By libc's functions."""
    text = f"psearch: check failed: {message}\n".encode()
    i32, pointer, void = ir.IntType(32), _I8.as_pointer(), ir.VoidType()
    write = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I64, [i32, pointer, _I64]), "write")
    abort = cgutils.get_or_insert_function(builder.module, ir.FunctionType(void, []), "abort")
    with builder.if_then(builder.not_(condition), likely=False):
        constant = cgutils.global_constant(builder, "check", cgutils.make_bytearray(text))
        builder.call(write, [ir.Constant(i32, 2), builder.bitcast(constant, pointer), ir.Constant(_I64, len(text))])
        builder.call(abort, [])
        builder.unreachable()
        builder.position_at_end(builder.append_basic_block())


# by libc name, so that the calling kernel can be cached
sched_yield = types.ExternalFunction("sched_yield", types.int32())
usleep = types.ExternalFunction("usleep", types.int32(types.uint32))
