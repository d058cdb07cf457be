"""What numba lacks: views of records at an address, atomic words, a few instructions, vectors of small integers.

A record that a kernel holds is a pointer, so passing one on costs a register. Records are reached by address
(`view`), because everything that workers share lives in one mapped block, at another address in each process.
Kernels must never *return* a record: numba would copy it whole.

Words that several processes write are touched only through the atomic operations here. Loads acquire, stores
release, read-modify-write is sequentially consistent. A plain load in a loop may be hoisted out of it.

A group is compiled without vectorisation of loops, and numba widens every product of 16 bits to 64; so the network's
sums and its output are written out here, 16 lanes at a time. LLVM makes of them what the processor has: AVX2, AVX-512,
SSE2, NEON. Addresses are int64; arrays lie one element behind the other, of any alignment that their type allows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from psearch_core.toolchain.jit import CHECK

_I8 = ir.IntType(8)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_VOID = ir.VoidType()

HAS_PEXT = bool(llvmlite.binding.get_host_cpu_features().get("bmi2")) and not os.environ.get("PSEARCH_NO_PEXT")


def process_triple() -> str:
    """The target that kernels are compiled for."""
    return str(llvmlite.binding.get_process_triple())


def emitted(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes an intrinsic of a function which writes its code and returns its value, if any.

    The function gets LLVM's builder, and the values of the signature's arguments. A record goes in and out as its
    address; no other type of record is taken for it.
    """

    def decorate(emit: Callable[..., Any]) -> Any:
        @wraps(emit)  # numba reads names and number of the arguments
        def typed(typing_context: Any, *given: Any) -> Any:
            pairs = list(zip(signature.args, given, strict=True))
            if any(isinstance(wanted, types.Record) and wanted != kind for wanted, kind in pairs):
                return None

            def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
                kinds = zip(signature.args, args, strict=True)
                value = emit(
                    builder,
                    *[builder.ptrtoint(arg, _I64) if isinstance(kind, types.Record) else arg for kind, arg in kinds],
                )
                if isinstance(signature.return_type, types.Record):
                    return builder.inttoptr(value, context.get_value_type(signature.return_type))
                return context.get_dummy_value() if value is None else value

            return signature, codegen

        return intrinsic(typed)

    return decorate


def _word_at(builder: Any, where: Any, offset: int = 0) -> Any:
    """The pointer to the word at an address, or so many bytes behind it."""
    return builder.inttoptr(builder.add(where, ir.Constant(_I64, offset)) if offset else where, _I64.as_pointer())


def view(record: types.Record) -> Any:
    """Return an intrinsic `at(address: int64)` that gives the record of this type at an address."""
    return emitted(record(types.int64))(lambda builder, address: address)


def element_of(parent: types.Record, base: str, record: types.Record) -> Any:
    """An intrinsic `of(parent, number: int64)`: the record of that number in the array whose address is in the field
    `base` of the parent."""
    offset = parent.offset(base)

    @emitted(record(parent, types.int64))
    def of(builder: Any, owner: Any, number: Any) -> Any:
        first = builder.load(_word_at(builder, owner, offset))
        return builder.add(first, builder.mul(number, ir.Constant(_I64, record.size)))

    return of


def target_of(parent: types.Record, name: str, record: types.Record) -> Any:
    """Return an intrinsic `of(parent)`: the record whose address is in a field of the parent."""
    offset = parent.offset(name)
    return emitted(record(parent))(lambda builder, owner: builder.load(_word_at(builder, owner, offset)))


def neighbour(record: types.Record, step: int) -> Any:
    """Return an intrinsic `of(record)`: the record `step` places further on in the array that it lies in."""
    distance = ir.Constant(_I64, step * record.size)
    return emitted(record(record))(lambda builder, instance: builder.add(instance, distance))


def field_address(record: types.Record, name: str) -> Any:
    """An intrinsic that gives the address of a field, for the atomic operations."""
    offset = record.offset(name)

    @emitted(types.int64(record))
    def address_of_field(builder: Any, instance: Any) -> Any:
        return builder.add(instance, ir.Constant(_I64, offset))

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


@emitted(types.void(types.int64, types.int64, types.int64))
def copy_bytes(builder: Any, target: Any, source: Any, size: Any) -> None:
    """memcpy(target address, source address, bytes); both aligned to 8."""
    to, origin = (builder.inttoptr(where, _I8.as_pointer()) for where in (target, source))
    cgutils.raw_memcpy(builder, to, origin, size, 1, align=8)


def _load(ordering: str, result: types.Integer) -> Any:
    """Return an intrinsic that reads a word as one."""
    return emitted(result(types.int64))(
        lambda builder, where: builder.load_atomic(_word_at(builder, where), ordering, 8)
    )


def _store(ordering: str, kind: types.Integer) -> Any:
    """An intrinsic that writes a word as one."""

    @emitted(types.void(types.int64, kind))
    def store(builder: Any, where: Any, value: Any) -> None:
        builder.store_atomic(value, _word_at(builder, where), ordering, 8)

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

    @emitted(types.int64(record))
    def read(builder: Any, instance: Any) -> Any:
        pointer = builder.bitcast(_word_at(builder, instance, offset), ir.IntType(bits).as_pointer())
        return builder.sext(builder.load_atomic(pointer, "monotonic", bits // 8), _I64)

    return read


def _read_modify_write(operation: str) -> Any:
    return emitted(types.int64(types.int64, types.int64))(
        lambda builder, where, value: builder.atomic_rmw(operation, _word_at(builder, where), value, "seq_cst")
    )


atomic_add = _read_modify_write("add")
"""Add to a word; returns what was there before."""
atomic_or = _read_modify_write("or")
atomic_and = _read_modify_write("and")


@emitted(types.boolean(types.int64, types.int64, types.int64))
def compare_and_swap(builder: Any, where: Any, expected: Any, new: Any) -> Any:
    """True when the word held `expected` and now holds `new`."""
    pair = builder.cmpxchg(_word_at(builder, where), expected, new, "seq_cst", "seq_cst")
    return builder.extract_value(pair, 1)


@emitted(types.int64(types.uint64))
def popcount(builder: Any, word: Any) -> Any:
    """The number of set bits."""
    return builder.ctpop(word)


@emitted(types.int64(types.uint64))
def lowest_bit(builder: Any, word: Any) -> Any:
    """Index of the lowest set bit; undefined for 0."""
    return builder.cttz(word, ir.Constant(ir.IntType(1), 1))


def _called(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """The call of one of LLVM's own functions."""
    function_type = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), args)


@emitted(types.int64(types.uint64, types.uint64))
def pext(builder: Any, word: Any, mask: Any) -> Any:
    """Parallel bit extract (BMI2). Only where `HAS_PEXT`."""
    return _called(builder, "llvm.x86.bmi.pext.64", _I64, word, mask)


@emitted(types.uint64(types.uint64))
def byte_swap(builder: Any, word: Any) -> Any:
    """The bytes of a word in reverse order: a bitboard seen from the other side."""
    return _called(builder, "llvm.bswap.i64", _I64, word)


@emitted(types.int64(types.uint64, types.uint64))
def high_product(builder: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the 128-bit product: maps a key onto 0 .. b - 1 without a division."""
    wide = ir.IntType(128)
    product = builder.mul(builder.zext(a, wide), builder.zext(b, wide))
    return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _I64)


@emitted(types.void(types.int64))
def prefetch(builder: Any, where: Any) -> None:
    """Begin to load the cache line at an address; never faults."""
    how = [ir.Constant(_I32, number) for number in (0, 3, 1)]
    _called(builder, "llvm.prefetch.p0", _VOID, builder.inttoptr(where, _I8.as_pointer()), *how)


@emitted(types.void())
def pause(builder: Any) -> None:
    """A hint to the processor: this is a spin loop; nothing on others than these."""
    if process_triple().startswith("x86_64"):
        _called(builder, "llvm.x86.sse2.pause", _VOID)
    elif process_triple().startswith("aarch64"):
        # `isb` takes about as long as `pause` does; `yield` is no more than a `nop` on most processors
        _called(builder, "llvm.aarch64.isb", _VOID, ir.Constant(_I32, 15))


@emitted(types.int64())
def cycle_counter(builder: Any) -> Any:
    """The time stamp counter: for shares of time, never for decisions of the search."""
    if process_triple().startswith("aarch64"):
        # LLVM's own intrinsic reads a counter that Linux does not let programs read, before LLVM 18
        return _called(builder, "llvm.read_volatile_register.i64", _I64, builder.module.add_metadata(["cntvct_el0"]))
    return _called(builder, "llvm.readcyclecounter", _I64)


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
    with builder.if_then(builder.not_(condition), likely=False):
        constant = cgutils.global_constant(builder, "check", cgutils.make_bytearray(text))
        pointer = builder.bitcast(constant, _I8.as_pointer())
        _called(builder, "write", _I64, ir.Constant(_I32, 2), pointer, ir.Constant(_I64, len(text)))
        _called(builder, "abort", _VOID)
        builder.unreachable()
        builder.position_at_end(builder.append_basic_block())


# by libc name, so that the calling kernel can be cached
sched_yield = types.ExternalFunction("sched_yield", types.int32())
usleep = types.ExternalFunction("usleep", types.int32(types.uint32))


LANES = 16
"""16-bit integers of a vector: 32 bytes, a register of AVX2, two of SSE2 and NEON."""
_CHUNK = 8
"""Vectors that `add_rows` holds in registers at a time: half of those of AVX2."""
_I16 = ir.IntType(16)
_ROW, _WIDE = ir.VectorType(_I16, LANES), ir.VectorType(_I32, LANES)
_BOARD = ir.VectorType(_I8, 64)


def _row_at(builder: Any, where: Any, index: int) -> Any:
    """The pointer to a vector, so many vectors behind an address."""
    offset = ir.Constant(_I64, index * LANES * 2)
    return builder.inttoptr(builder.add(where, offset), _ROW.as_pointer())


def _load_row(builder: Any, where: Any, index: int) -> Any:
    return builder.load(_row_at(builder, where, index), align=2)


def row_adder(size: int) -> Any:
    """Make an intrinsic `add(target, source, added, added_count, removed, removed_count)`: rows of `size` int16 each.

    target becomes source plus the rows whose addresses stand at `added`, minus those at `removed` (int64 each). target
    may be source. Sums wrap; who makes the rows sees to it that they do not.
    """
    if size % LANES:
        raise AssertionError(f"rows of {size} are no multiple of {LANES}")

    @emitted(types.void(*[types.int64] * 6))
    def add(
        builder: Any, target: Any, source: Any, added: Any, added_count: Any, removed: Any, removed_count: Any
    ) -> None:
        vectors = size // LANES
        for begin in range(0, vectors, _CHUNK):
            chunk = range(begin, min(begin + _CHUNK, vectors))
            sums = [cgutils.alloca_once(builder, _ROW) for _ in chunk]
            for place, index in zip(sums, chunk, strict=True):
                builder.store(_load_row(builder, source, index), place)
            for rows, count, operation in ((added, added_count, builder.add), (removed, removed_count, builder.sub)):
                first = builder.inttoptr(rows, _I64.as_pointer())
                with cgutils.for_range(builder, count) as loop:
                    row = builder.load(builder.gep(first, [loop.index]))
                    for place, index in zip(sums, chunk, strict=True):
                        builder.store(operation(builder.load(place), _load_row(builder, row, index)), place)
            for place, index in zip(sums, chunk, strict=True):
                builder.store(builder.load(place), _row_at(builder, target, index), align=2)

    return add


def square_dot(size: int, top: int) -> Any:
    """Make an intrinsic `dot(units, weights)`: the sum of weight * c * c over `size` int16 units, c being the unit
    between 0 and `top`. A weight times `top` must fit into 16 bits, and the sum into 32."""
    if size % LANES:
        raise AssertionError(f"{size} units are no multiple of {LANES}")

    @emitted(types.int64(types.int64, types.int64))
    def dot(builder: Any, units: Any, weights: Any) -> Any:
        zero, most = ir.Constant(_ROW, [0] * LANES), ir.Constant(_ROW, [top] * LANES)
        total = ir.Constant(_WIDE, [0] * LANES)
        for index in range(size // LANES):
            clipped = _load_row(builder, units, index)
            clipped = builder.select(builder.icmp_signed(">", clipped, zero), clipped, zero)
            clipped = builder.select(builder.icmp_signed("<", clipped, most), clipped, most)
            product = builder.mul(clipped, _load_row(builder, weights, index))  # in 16 bits
            # of this LLVM makes one multiplication and addition of pairs (pmaddwd, smlal)
            total = builder.add(total, builder.mul(builder.sext(product, _WIDE), builder.sext(clipped, _WIDE)))
        name = f"llvm.vector.reduce.add.v{LANES}i32"
        reduce = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I32, [_WIDE]), name)
        return builder.sext(builder.call(reduce, [total]), _I64)

    return dot


@emitted(types.uint64(types.int64, types.int64))
def differing_bytes(builder: Any, first: Any, second: Any) -> Any:
    """Which of 64 bytes at two addresses differ: a bit for each, the first byte's lowest."""
    one, other = (builder.load(builder.inttoptr(where, _BOARD.as_pointer()), align=1) for where in (first, second))
    return builder.bitcast(builder.icmp_unsigned("!=", one, other), _I64)
