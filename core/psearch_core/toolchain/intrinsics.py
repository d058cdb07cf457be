"""Operations that numba lacks: views of records at an address, atomic words, a few instructions, vectors of integers.

A kernel holds a record as a pointer, so passing one on costs one register. Records are accessed by address (`view`),
because everything that workers share lives in one mapped block, at a different address in each process. Kernels must
never *return* a record: numba would copy it whole.

Words that several processes write are accessed only by the atomic operations here. Loads acquire, stores release,
read-modify-write is sequentially consistent. The compiler may hoist a plain load out of a loop.

Groups are compiled without loop vectorisation, and numba widens each product of 16-bit integers to 64 bits. So the sums
and the output of the network, and the choice of the best move, are written here as vectors, which LLVM maps to AVX2,
AVX-512, SSE2 or NEON.
Addresses are int64; arrays are contiguous and have any alignment that their type allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from psearch_core.toolchain.jit import CHECK
from psearch_core.toolchain.kernel_cache import is_on

_I8 = ir.IntType(8)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_VOID = ir.VoidType()

_FEATURES = llvmlite.binding.get_host_cpu_features()
HAS_PEXT = bool(_FEATURES.get("bmi2")) and not is_on("PSEARCH_NO_PEXT")


def process_triple() -> str:
    """Return LLVM's name of the target for which kernels are compiled."""
    return str(llvmlite.binding.get_process_triple())


def emitted(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes an intrinsic from a function which emits its code and returns its value, if any.

    The function gets LLVM's builder and the values of the arguments. A record is passed and returned as its address;
    another type of record is a type error.
    """

    def decorate(emit: Callable[..., Any]) -> Any:
        @wraps(emit)  # numba reads the names of the arguments
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
    """Return a pointer to the word `offset` bytes after an address."""
    return builder.inttoptr(builder.add(where, ir.Constant(_I64, offset)) if offset else where, _I64.as_pointer())


def view(record: types.Record) -> Any:
    """Return an intrinsic `at(address: int64)` that gives the record of this type at an address."""
    return emitted(record(types.int64))(lambda builder, address: address)


def element_of(parent: types.Record, base: str, record: types.Record) -> Any:
    """Return an intrinsic `of(parent, number: int64)` that gives a record, by its number in the array whose address is
    in the field `base` of the parent."""
    offset = parent.offset(base)

    @emitted(record(parent, types.int64))
    def of(builder: Any, owner: Any, number: Any) -> Any:
        first = builder.load(_word_at(builder, owner, offset))
        return builder.add(first, builder.mul(number, ir.Constant(_I64, record.size)))

    return of


def target_of(parent: types.Record, name: str, record: types.Record) -> Any:
    """Return an intrinsic `of(parent)` that gives the record whose address is in a field of the parent."""
    offset = parent.offset(name)
    return emitted(record(parent))(lambda builder, owner: builder.load(_word_at(builder, owner, offset)))


def neighbour(record: types.Record, step: int) -> Any:
    """Return an intrinsic `of(record)` that gives the record `step` places further on in the same array."""
    distance = ir.Constant(_I64, step * record.size)
    return emitted(record(record))(lambda builder, instance: builder.add(instance, distance))


def field_address(record: types.Record, name: str) -> Any:
    """Return an intrinsic that gives the address of a field, for the atomic operations."""
    offset = record.offset(name)

    @emitted(types.int64(record))
    def address_of_field(builder: Any, instance: Any) -> Any:
        return builder.add(instance, ir.Constant(_I64, offset))

    return address_of_field


@intrinsic
def address(typing_context: Any, instance: Any) -> Any:
    """Return the address of a record."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], _I64)

    return types.int64(instance), codegen


@intrinsic
def copy_record(typing_context: Any, target: Any, source: Any) -> Any:
    """Copy a record to another of the same type by memcpy; an assignment would load the record as one huge value."""
    if not isinstance(target, types.Record) or target != source:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, origin = (builder.bitcast(arg, _I8.as_pointer()) for arg in args)
        cgutils.raw_memcpy(builder, to, origin, ir.Constant(_I64, target.size), 1, align=8)
        return context.get_dummy_value()

    return types.void(target, source), codegen


@intrinsic
def clear_record(typing_context: Any, target: Any) -> Any:
    """Set all fields of a record to zero."""
    if not isinstance(target, types.Record):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(args[0], _I8.as_pointer())
        cgutils.memset(builder, pointer, ir.Constant(_I64, target.size), 0)
        return context.get_dummy_value()

    return types.void(target), codegen


@emitted(types.void(types.int64, types.int64, types.int64))
def copy_bytes(builder: Any, target: Any, source: Any, size: Any) -> None:
    """Copy `size` bytes from one address to another, both of them multiples of 8."""
    to, origin = (builder.inttoptr(where, _I8.as_pointer()) for where in (target, source))
    cgutils.raw_memcpy(builder, to, origin, size, 1, align=8)


def _load(ordering: str, result: types.Integer) -> Any:
    """Return an intrinsic that reads a word atomically."""
    return emitted(result(types.int64))(
        lambda builder, where: builder.load_atomic(_word_at(builder, where), ordering, 8)
    )


def _store(ordering: str, kind: types.Integer) -> Any:
    """Return an intrinsic that writes a word atomically."""

    @emitted(types.void(types.int64, kind))
    def store(builder: Any, where: Any, value: Any) -> None:
        builder.store_atomic(value, _word_at(builder, where), ordering, 8)

    return store


atomic_load = _load("acquire", types.int64)
atomic_store = _store("release", types.int64)
relaxed_load_u64 = _load("monotonic", types.uint64)
"""Read a word untorn but without ordering. The transposition table needs no more: it validates what it reads."""
relaxed_store_u64 = _store("monotonic", types.uint64)


def racing_read(record: types.Record, name: str) -> Any:
    """Return an intrinsic that reads a signed field once, untorn and without ordering; others may be writing it."""
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
"""Add to a word, and return its old value."""
atomic_or = _read_modify_write("or")
atomic_and = _read_modify_write("and")


@emitted(types.boolean(types.int64, types.int64, types.int64))
def compare_and_swap(builder: Any, where: Any, expected: Any, new: Any) -> Any:
    """Replace `expected` by `new` in a word. Returns whether the word held `expected`."""
    pair = builder.cmpxchg(_word_at(builder, where), expected, new, "seq_cst", "seq_cst")
    return builder.extract_value(pair, 1)


@emitted(types.int64(types.uint64))
def popcount(builder: Any, word: Any) -> Any:
    """Return the number of set bits."""
    return builder.ctpop(word)


@emitted(types.int64(types.uint64))
def lowest_bit(builder: Any, word: Any) -> Any:
    """Return the index of the lowest set bit; undefined for 0."""
    return builder.cttz(word, ir.Constant(ir.IntType(1), 1))


def _called(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Emit a call of a function of LLVM or libc."""
    function_type = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), args)


@emitted(types.int64(types.uint64, types.uint64))
def pext(builder: Any, word: Any, mask: Any) -> Any:
    """Extract the bits of a word under a mask (the BMI2 instruction). Only for processors with `HAS_PEXT`."""
    return _called(builder, "llvm.x86.bmi.pext.64", _I64, word, mask)


@emitted(types.uint64(types.uint64))
def byte_swap(builder: Any, word: Any) -> Any:
    """Reverse the bytes of a word: a bitboard as seen by the other side."""
    return _called(builder, "llvm.bswap.i64", _I64, word)


@emitted(types.int64(types.uint64, types.uint64))
def high_product(builder: Any, a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the 128-bit product, which maps a key to 0 .. b - 1 without a division."""
    wide = ir.IntType(128)
    product = builder.mul(builder.zext(a, wide), builder.zext(b, wide))
    return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _I64)


@emitted(types.void(types.int64))
def prefetch(builder: Any, where: Any) -> None:
    """Start loading the cache line at an address; never faults."""
    how = [ir.Constant(_I32, number) for number in (0, 3, 1)]
    _called(builder, "llvm.prefetch.p0", _VOID, builder.inttoptr(where, _I8.as_pointer()), *how)


@emitted(types.void())
def pause(builder: Any) -> None:
    """Hint to an x86-64 or ARM processor that it is in a spin loop; do nothing on others."""
    if process_triple().startswith("x86_64"):
        _called(builder, "llvm.x86.sse2.pause", _VOID)
    elif process_triple().startswith("aarch64"):
        # `isb` takes about as long as `pause`; on most processors `yield` is a `nop`
        _called(builder, "llvm.aarch64.isb", _VOID, ir.Constant(_I32, 15))


@emitted(types.int64())
def cycle_counter(builder: Any) -> Any:
    """Return the time stamp counter. It is for measuring shares of time, never for decisions of the search."""
    if process_triple().startswith("aarch64"):
        # before LLVM 18 its intrinsic reads a counter that Linux does not let programs read
        return _called(builder, "llvm.read_volatile_register.i64", _I64, builder.module.add_metadata(["cntvct_el0"]))
    return _called(builder, "llvm.readcyclecounter", _I64)


@emitted(types.int64())
def monotonic_ns(builder: Any) -> Any:
    """Return the nanoseconds of the clock behind `time.perf_counter_ns`, which all processes share."""
    parts = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))  # a `timespec`: seconds and nanoseconds
    _called(builder, "clock_gettime", _I32, ir.Constant(_I32, time.CLOCK_MONOTONIC), parts)
    seconds, rest = (builder.load(cgutils.gep_inbounds(builder, parts, 0, i)) for i in range(2))
    return builder.add(builder.mul(seconds, ir.Constant(_I64, 1_000_000_000)), rest)


@intrinsic(prefer_literal=True)
def check(typing_context: Any, condition: Any, message: Any) -> Any:
    """Assert a condition; the message must be a literal. Costs nothing except in a build with checks (`jit.CHECK`).

    In such a build a false condition writes `psearch: check failed: MESSAGE` to stderr and aborts the process. A
    condition must have no side effect and no atomic operation: other builds would still execute them.
    """
    if not isinstance(message, types.StringLiteral):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if CHECK:
            abort_unless(builder, args[0], message.literal_value)
        return context.get_dummy_value()

    return types.void(types.boolean, message), codegen


def abort_unless(builder: Any, condition: Any, message: str) -> None:
    """Emit code that writes a line to stderr and aborts the process if the condition is false."""
    text = f"psearch: check failed: {message}\n".encode()
    with builder.if_then(builder.not_(condition), likely=False):
        constant = cgutils.global_constant(builder, "check", cgutils.make_bytearray(text))
        pointer = builder.bitcast(constant, _I8.as_pointer())
        _called(builder, "write", _I64, ir.Constant(_I32, 2), pointer, ir.Constant(_I64, len(text)))
        _called(builder, "abort", _VOID)
        builder.unreachable()
        builder.position_at_end(builder.append_basic_block())


# called by libc name, so that the machine code of the calling kernel can be cached
sched_yield = types.ExternalFunction("sched_yield", types.int32())
usleep = types.ExternalFunction("usleep", types.int32(types.uint32))


LANES = 32 if _FEATURES.get("avx512bw") else 16
"""Number of 16-bit integers in a vector: one register of AVX-512 or AVX2, two of SSE2 or NEON."""
_CHUNK = 8
"""Number of vectors that `row_adder` keeps in registers: half of the registers of AVX2."""
_I16 = ir.IntType(16)
_ROW = ir.VectorType(_I16, LANES)
_DOT_LANES = 64
"""Number of integers that `square_dot` takes at once: four registers of AVX2, so that four sums grow side by side."""
_UNITS, _WIDE = ir.VectorType(_I16, _DOT_LANES), ir.VectorType(_I32, _DOT_LANES)
_BOARD = ir.VectorType(_I8, 64)
_ENTRIES = ir.VectorType(_I32, 8)


def _row_at(builder: Any, where: Any, index: int, kind: Any = _ROW) -> Any:
    """Return a pointer to the vector with this index in the array at an address."""
    offset = ir.Constant(_I64, index * kind.count * 2)
    return builder.inttoptr(builder.add(where, offset), kind.as_pointer())


def _load_row(builder: Any, where: Any, index: int, kind: Any = _ROW) -> Any:
    return builder.load(_row_at(builder, where, index, kind), align=2)


def row_adder(size: int) -> Any:
    """Return an intrinsic `add(target, source, added, added_count, removed, removed_count)` for rows of `size` int16.

    It sets target to source plus the rows whose addresses (int64) are in the array `added`, minus those in `removed`.
    target may be source. Sums wrap; the rows must be so small that they do not.
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


def row_mover(size: int) -> Any:
    """Return an intrinsic `move(target, source, added, removed, taken)` for rows of `size` int16 at these addresses.

    It sets target to source plus the row `added`, minus `removed` and `taken`, which may be 0: no row. target may be
    source.
    """
    if size % LANES:
        raise AssertionError(f"rows of {size} are no multiple of {LANES}")

    @emitted(types.void(*[types.int64] * 5))
    def move(builder: Any, target: Any, source: Any, added: Any, removed: Any, taken: Any) -> None:
        with builder.if_else(builder.icmp_unsigned("!=", taken, ir.Constant(_I64, 0))) as branches:
            for branch, less in zip(branches, ((removed, taken), (removed,)), strict=True):
                with branch:
                    for index in range(size // LANES):
                        sums = builder.add(_load_row(builder, source, index), _load_row(builder, added, index))
                        for row in less:
                            sums = builder.sub(sums, _load_row(builder, row, index))
                        builder.store(sums, _row_at(builder, target, index), align=2)

    return move


def square_dot(size: int, top: int) -> Any:
    """Return an intrinsic `dot(units, weights)`: the sum of weight * c * c over `size` int16 units, where c is the unit
    clipped to 0 .. `top`. A weight times `top` must fit into 16 bits, and the sum into 32."""
    if size % _DOT_LANES:
        raise AssertionError(f"{size} units are no multiple of {_DOT_LANES}")

    @emitted(types.int64(types.int64, types.int64))
    def dot(builder: Any, units: Any, weights: Any) -> Any:
        zero, most = (ir.Constant(_UNITS, [number] * _DOT_LANES) for number in (0, top))
        total = ir.Constant(_WIDE, [0] * _DOT_LANES)
        for index in range(size // _DOT_LANES):
            clipped = _load_row(builder, units, index, _UNITS)
            clipped = builder.select(builder.icmp_signed(">", clipped, zero), clipped, zero)
            clipped = builder.select(builder.icmp_signed("<", clipped, most), clipped, most)
            product = builder.mul(clipped, _load_row(builder, weights, index, _UNITS))  # in 16 bits
            # LLVM compiles this to one instruction that multiplies and adds pairs (pmaddwd, smlal)
            total = builder.add(total, builder.mul(builder.sext(product, _WIDE), builder.sext(clipped, _WIDE)))
        return builder.sext(_called(builder, f"llvm.vector.reduce.add.v{_DOT_LANES}i32", _I32, total), _I64)

    return dot


@emitted(types.int64(types.int64, types.int64))
def place_of_greatest(builder: Any, entries: Any, count: Any) -> Any:
    """Return the index of the greatest of `count` int32 at an address, of which no two are equal. Whole vectors are
    read: up to 7 integers behind the last one."""
    lanes = ir.Constant(_ENTRIES, list(range(_ENTRIES.count)))
    least, first = (ir.Constant(_ENTRIES, [number] * _ENTRIES.count) for number in (-(1 << 31), 0))
    greatest, where = cgutils.alloca_once_value(builder, least), cgutils.alloca_once_value(builder, first)

    def spread(number: Any) -> Any:
        undefined = ir.Constant(_ENTRIES, ir.Undefined)
        return builder.shuffle_vector(builder.insert_element(undefined, number, ir.Constant(_I32, 0)), undefined, first)

    def reduced(operation: str, vector: Any) -> Any:
        return _called(builder, f"llvm.vector.reduce.{operation}.v{_ENTRIES.count}i32", _I32, vector)

    steps = (ir.Constant(_I64, 0), count, ir.Constant(_I64, _ENTRIES.count))
    end = spread(builder.trunc(count, _I32))
    with cgutils.for_range_slice(builder, *steps) as (begin, _):
        at = builder.add(entries, builder.mul(begin, ir.Constant(_I64, 4)))
        found = builder.load(builder.inttoptr(at, _ENTRIES.as_pointer()), align=4)
        places = builder.add(spread(builder.trunc(begin, _I32)), lanes)
        found = builder.select(builder.icmp_signed("<", places, end), found, least)
        before = builder.load(greatest)
        is_greater = builder.icmp_signed(">", found, before)
        builder.store(builder.select(is_greater, found, before), greatest)
        builder.store(builder.select(is_greater, places, builder.load(where)), where)
    is_greatest = builder.icmp_signed("==", builder.load(greatest), spread(reduced("smax", builder.load(greatest))))
    return builder.sext(reduced("or", builder.select(is_greatest, builder.load(where), first)), _I64)


@emitted(types.uint64(types.int64, types.int64))
def differing_bytes(builder: Any, first: Any, second: Any) -> Any:
    """Compare 64 bytes at two addresses; return a word with a bit for each byte that differs, the first the lowest."""
    one, other = (builder.load(builder.inttoptr(where, _BOARD.as_pointer()), align=1) for where in (first, second))
    return builder.bitcast(builder.icmp_unsigned("!=", one, other), _I64)
