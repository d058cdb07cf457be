"""Kernels as they come out for a 64-bit ARM processor, made on any.

`python aarch64_build.py FOLDER` writes assembly and object of the search to FOLDER, as `search.s` and `search.o`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

TRIPLE = "aarch64-unknown-linux-gnu"


def main(folder: Path) -> None:
    """Front end as on this machine, but for what asks for the target; back end for the other one."""
    os.environ["PSEARCH_NO_PEXT"] = "1"  # an instruction of x86
    import llvmlite.binding as llvm

    from psearch.core.toolchain import intrinsics, jit

    intrinsics.process_triple = lambda: TRIPLE
    from psearch.core.toolchain.compiler import back_end, front_end
    from psearch.core.toolchain.compiler.dependencies import closure
    from psearch.scheduler.scheduler_entries import SEARCH

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(opt=3, reloc="pic", codemodel="default")

    class Writer:
        """A target machine that leaves its assembly, too."""

        target_data = machine.target_data
        _as_parameter_ = machine._as_parameter_

        def emit_object(self, module: llvm.ModuleRef) -> bytes:
            (folder / "search.s").write_text(machine.emit_assembly(module))
            return bytes(machine.emit_object(module))

    back_end.target_machine = lambda: Writer()
    for module in SEARCH.modules:
        import_module(module)
    entries = [
        kernel
        for kernel in jit.registry.values()
        if isinstance(kernel, jit.EntryKernel) and kernel.py_func.__module__ in SEARCH.modules
    ]
    front_end.prepare(jit.registry.values())
    bitcodes = []
    for kernel in closure(entries).values():
        part = llvm.parse_bitcode(front_end.bitcode_of(kernel))
        part.triple = TRIPLE
        bitcodes.append(bytes(part.as_bitcode()))
    (folder / "search.o").write_bytes(back_end.object_code(bitcodes, entries))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
