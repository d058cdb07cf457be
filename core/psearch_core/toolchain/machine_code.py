"""Places the machine code of an object file into this process's memory.

LLVM has a loader for that (`llvmlite.binding`), but to import it takes longer than anything else that a warm start
needs: a library of 180 MB is mapped and relocated. What the compiler leaves is simple: code and constants, which refer
to each other relative to where they lie, and a handful of functions of libc. So on x86-64 the object is placed here.
Anything else (another processor, a relocation that is not expected, a system without anonymous files) is left to
LLVM's loader.

Source: System V Application Binary Interface, AMD64 Architecture Processor Supplement, section 4.4 (relocation types).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from psearch_core.toolchain.kernel_cache import KernelError

# Numbers of the ELF format
_ALLOC, _WRITE = 2, 1
_SYMBOLS, _RELOCATIONS, _NOBITS, _UNWIND = 2, 4, 8, 0x70000001
_RELATIVE = {2, 4}
"""R_X86_64_PC32, R_X86_64_PLT32: distance from the place, 32 bits."""
_X86_64 = 62
_RELOCATABLE = 1
_STUB = b"\xff\x25\x00\x00\x00\x00"
"""jmp to the address that follows"""
_STUB_BYTES = 16
_OFFSETS = "_GLOBAL_OFFSET_TABLE_"
"""Made by the loader."""
_READ_EXECUTE, _MAP_PRIVATE = 5, 2
_MFD_CLOEXEC, _MFD_ALLOW_SEALING, _MFD_NOEXEC_SEAL = 1, 2, 8
_ADD_SEALS, _ALL_SEALS = 1033, 15
"""Numbers of the kernel; Python has names only for what the machine had that built it."""

_kept: list[Any] = []
"""Holds the memory of all that was placed, which lives as long as the process."""


class NotSimple(Exception):
    """The object needs a real loader."""


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


def place(code: bytes, names: Iterable[str]) -> dict[str, int]:
    """Place an object file; returns the addresses of these functions of it. Raises KernelError for functions that are
    nowhere, OSError where no memory for it can be had."""
    try:
        found = place_simple(code)
    except NotSimple:
        return place_by_llvm(code, names)
    return {name: found[name] for name in names}


def place_simple(code: bytes) -> dict[str, int]:
    """Return addresses of all functions of an object file, by name. Raises NotSimple, OSError."""
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
        # a function of libc may lie further away than 32 bits reach
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
    """Return the address of a copy that can be executed; no page of it is ever writable and executable.

    It lies in an anonymous file that is sealed before it is mapped, which also works where no memory may become
    executable (`MemoryDenyWriteExecute` of systemd). Raises NotSimple where there are no such files, OSError.
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
    """Where each section that is part of the image begins, and where all of them end."""
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
    """Name, section and value of each symbol."""
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
    """Place an object as `place_simple` does, by LLVM's loader. Raises KernelError for functions that are nowhere."""
    from llvmlite import binding

    libc = ctypes.CDLL(None)
    for name, index, _ in _symbols(code, _sections(code)):
        if index or name in ("", _OFFSETS):
            continue
        if not hasattr(libc, name) and not binding.address_of_symbol(name):  # a call of it would be one of address 0
            raise KernelError(f"the kernels cannot be loaded: they need {name}, which is nowhere")
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
