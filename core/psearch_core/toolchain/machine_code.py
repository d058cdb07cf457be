"""Places the machine code of an object file in this process's memory.

LLVM has a loader for that (`llvmlite.binding`), but importing it takes longer than everything else at a warm start: a
library of 180 MB is mapped and relocated. The compiler's object files are simple: code and constants that refer to each
other by relative address, and a few functions of libc. So on x86-64 this module places them itself. Everything else
(another processor, an unexpected relocation, a system without anonymous files) is left to LLVM's loader.

Source: System V Application Binary Interface, AMD64 Architecture Processor Supplement, section 4.4 (relocation types).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections import namedtuple
from collections.abc import Iterable
from typing import Any

from psearch_core.toolchain.kernel_cache import KernelError

# Numbers of the ELF format
_ALLOC, _WRITE = 2, 1
_SYMBOLS, _RELOCATIONS, _NOBITS, _UNWIND = 2, 4, 8, 0x70000001
_RELATIVE = {2, 4}
"""Types of relocations by 32-bit distance: R_X86_64_PC32 and R_X86_64_PLT32."""
_X86_64 = 62
_RELOCATABLE = 1
_STUB = b"\xff\x25\x00\x00\x00\x00"
"""Instruction that jumps to the address that follows it."""
_STUB_BYTES = 16
_OFFSETS = "_GLOBAL_OFFSET_TABLE_"
"""Symbol that the loader defines."""
_READ_EXECUTE, _MAP_PRIVATE = 5, 2
_MFD_CLOEXEC, _MFD_ALLOW_SEALING, _MFD_NOEXEC_SEAL = 1, 2, 8
_ADD_SEALS, _ALL_SEALS = 1033, 15
"""Constants of Linux, for which Python has names only if it was built on a system that had them."""

_kept: list[Any] = []
"""LLVM's engines, which own the memory of the machine code until the process ends."""


class NotSimple(Exception):
    """The object must be placed by LLVM's loader."""


_Section = namedtuple("_Section", "name type flags address offset size link info align entry_size")


def place(code: bytes, names: Iterable[str]) -> dict[str, int]:
    """Place an object file in memory and return the addresses of these functions. Raises KernelError for functions that
    do not exist, OSError if no memory is available."""
    try:
        found = place_simple(code)
    except NotSimple:
        return place_by_llvm(code, names)
    return {name: found[name] for name in names}


def place_simple(code: bytes) -> dict[str, int]:
    """Place an object file in memory and return the addresses of its functions by name. Raises NotSimple, OSError."""
    if struct.unpack_from("<H", code, 18)[0] != _X86_64 or os.uname().machine != "x86_64":
        raise NotSimple("another processor")
    sections = _sections(code)
    places, size = _lay_out(sections)
    symbols = _symbols(code, sections)
    outside = sorted({name for name, index, _ in symbols if index == 0 and name})
    memory = bytearray(size + _STUB_BYTES * len(outside))
    for number, offset in places.items():
        section = sections[number]
        if section.type != _NOBITS:
            memory[offset : offset + section.size] = code[section.offset : section.offset + section.size]
    stubs = {}
    libc = ctypes.CDLL(None)
    for number, name in enumerate(outside):
        # a function of libc may be too far away for a 32-bit distance
        stubs[name] = size + _STUB_BYTES * number
        if not hasattr(libc, name):
            raise NotSimple(f"{name} is not in libc")
        address = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
        memory[stubs[name] : stubs[name] + 14] = _STUB + struct.pack("<Q", address)
    where = [
        stubs.get(name) if index == 0 else places[index] + value if index in places else None
        for name, index, value in symbols
    ]
    for section in sections:
        if section.type == _RELOCATIONS and section.info in places:
            _relocate(memory, code, section, places[section.info], where)
    base = _make_executable(memory)
    named = zip(symbols, where, strict=True)
    return {name: base + offset for (name, index, _), offset in named if index and name and offset is not None}


def _make_executable(image: bytearray) -> int:
    """Return the address of an executable copy; no page of it is ever both writable and executable.

    The copy is an anonymous file that is sealed before it is mapped. That also works where memory may not be made
    executable (`MemoryDenyWriteExecute` of systemd). Raises NotSimple if the system has no such files, OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "memfd_create"):
        raise NotSimple("no anonymous files")
    descriptor = libc.memfd_create(b"kernels", _MFD_CLOEXEC | _MFD_NOEXEC_SEAL)
    if descriptor < 0 and ctypes.get_errno() == errno.EINVAL:  # Linux before 6.3
        descriptor = libc.memfd_create(b"kernels", _MFD_CLOEXEC | _MFD_ALLOW_SEALING)
    if descriptor < 0:
        raise NotSimple(os.strerror(ctypes.get_errno()))
    with open(descriptor, "wb") as file:
        try:
            file.write(image)
            file.flush()
        except OSError as error:  # a limit of the size of files
            raise NotSimple(str(error)) from error
        fcntl.fcntl(descriptor, _ADD_SEALS, _ALL_SEALS)
        libc.mmap.restype = ctypes.c_void_p
        size, begin = ctypes.c_size_t(len(image)), ctypes.c_long(0)
        base = libc.mmap(None, size, _READ_EXECUTE, _MAP_PRIVATE, descriptor, begin)
    if base == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(base)


def _sections(code: bytes) -> list[_Section]:
    if code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", code, 16)[0] != _RELOCATABLE:
        raise NotSimple("not an object file of 64 bits")
    (offset,) = struct.unpack_from("<Q", code, 40)
    (count,) = struct.unpack_from("<H", code, 60)
    return [_Section(*struct.unpack_from("<IIQQQQIIQQ", code, offset + 64 * number)) for number in range(count)]


def _lay_out(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """Return the offset of each section of the image by number, and the size of the image."""
    places = {}
    end = 0
    for number, section in enumerate(sections):
        if section.flags & _ALLOC and section.type != _UNWIND and section.size:
            if section.flags & _WRITE:
                raise NotSimple("data that is written to")
            end += -end % max(1, section.align)
            places[number] = end
            end += section.size
    return places, end + -end % _STUB_BYTES


def _symbols(code: bytes, sections: list[_Section]) -> list[tuple[str, int, int]]:
    """Return name, section and value of each symbol."""
    table = next((section for section in sections if section.type == _SYMBOLS), None)
    if table is None:
        raise NotSimple("no symbols")
    names = sections[table.link]
    text = code[names.offset : names.offset + names.size]
    found = []
    for offset in range(table.offset, table.offset + table.size, 24):
        name, _, _, index, value, _ = struct.unpack_from("<IBBHQQ", code, offset)
        found.append((text[name : text.index(b"\0", name)].decode(), index, value))
    return found


def _relocate(memory: bytearray, code: bytes, table: _Section, start: int, where: list[int | None]) -> None:
    for offset in range(table.offset, table.offset + table.size, 24):
        place, info, addend = struct.unpack_from("<QQq", code, offset)
        target = where[info >> 32]
        if info & 0xFFFFFFFF not in _RELATIVE or target is None:
            raise NotSimple(f"relocation {info & 0xFFFFFFFF}")
        struct.pack_into("<i", memory, start + place, target + addend - (start + place))


def place_by_llvm(code: bytes, names: Iterable[str]) -> dict[str, int]:
    """Place an object in memory by LLVM's loader, like `place`. Raises KernelError for functions that do not exist."""
    from llvmlite import binding  # type: ignore[import, unused-ignore]  # not every version has types

    libc = ctypes.CDLL(None)
    for name, index, _ in _symbols(code, _sections(code)):
        if index or name in ("", _OFFSETS):
            continue
        if not hasattr(libc, name) and not binding.address_of_symbol(name):  # LLVM would call address 0
            raise KernelError(f"the kernels cannot be loaded: they need {name}, which does not exist")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _kept.append(engine)
    found = {name: engine.get_function_address(name) for name in names}
    missing = sorted(name for name, address in found.items() if not address)
    if missing:
        raise KernelError(f"the kernels cannot be loaded: {missing[0]} has no address")
    return found
