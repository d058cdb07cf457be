"""Vectors of 16-bit and 8-bit integers at an address, as LLVM has them: what numba's loops do not become.

A group is compiled without vectorisation of loops, and numba widens every product of 16 bits to 64; so the network's
sums and its output are written out here, 16 lanes at a time. LLVM makes of them what the processor has: AVX2, AVX-512,
SSE2, NEON. Naive twins are in `tests/support/naive_vectors.py`.

Addresses are int64; arrays lie one element behind the other, of any alignment that their type allows.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from psearch_core.toolchain.intrinsics import emitted

LANES = 16
"""16-bit integers of a vector: 32 bytes, a register of AVX2, two of SSE2 and NEON."""
_CHUNK = 8
"""Vectors that `add_rows` holds in registers at a time: half of those of AVX2."""
_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_ROW, _WIDE = ir.VectorType(_I16, LANES), ir.VectorType(_I32, LANES)
_BOARD = ir.VectorType(_I8, 64)


def _vector_at(builder: Any, where: Any, index: int) -> Any:
    """The pointer to a vector, so many vectors behind an address."""
    offset = ir.Constant(_I64, index * LANES * 2)
    return builder.inttoptr(builder.add(where, offset), _ROW.as_pointer())


def _load(builder: Any, where: Any, index: int) -> Any:
    return builder.load(_vector_at(builder, where, index), align=2)


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
                builder.store(_load(builder, source, index), place)
            for rows, count, operation in ((added, added_count, builder.add), (removed, removed_count, builder.sub)):
                first = builder.inttoptr(rows, _I64.as_pointer())
                with cgutils.for_range(builder, count) as loop:
                    row = builder.load(builder.gep(first, [loop.index]))
                    for place, index in zip(sums, chunk, strict=True):
                        builder.store(operation(builder.load(place), _load(builder, row, index)), place)
            for place, index in zip(sums, chunk, strict=True):
                builder.store(builder.load(place), _vector_at(builder, target, index), align=2)

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
            clipped = _load(builder, units, index)
            clipped = builder.select(builder.icmp_signed(">", clipped, zero), clipped, zero)
            clipped = builder.select(builder.icmp_signed("<", clipped, most), clipped, most)
            product = builder.mul(clipped, _load(builder, weights, index))  # in 16 bits
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
