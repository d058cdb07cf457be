"""Run by the tests of other processors in a process of its own: what LLVM makes of the kernels for them, as JSON.

    python foreign_build.py TRIPLE GROUP,GROUP CPU[:FEATURE,FEATURE] [CPU ...] [--objects FOLDER]

For each processor and group: how often each instruction occurs, the operands of those that read system registers, and
the functions that are called without being there. --objects: those for the first processor go there, as `GROUP.o`.
"""

from __future__ import annotations

import argparse
import atexit
import json
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from cold_build import GROUPS
from llvmlite.binding.targets import FeatureMap
from numba.core.registry import cpu_target

from psearch_core.toolchain import kernel_cache
from psearch_core.toolchain.compiler import back_end
from psearch_core.toolchain.compiler.build import Build

_PREFIXES = {"lock", "rep", "repne"}
_CALL = re.compile(r"^\t(?:bl|b|callq?|jmp)\t([A-Za-z_]\w*)(?:@PLT)?$", re.MULTILINE)
_LABEL = re.compile(r"^([A-Za-z_][\w.]*):", re.MULTILINE)
_SYSTEM_REGISTER = re.compile(r"^\tm(?:rs|sr)\t(.+)$", re.MULTILINE)


def facts(assembly: str) -> dict[str, Any]:
    """Return the facts about a group that its assembly shows."""
    lines = [re.split(r"\s+", line.strip()) for line in assembly.splitlines() if re.match(r"\t[a-z]", line)]
    names = [words[1] if words[0] in _PREFIXES and len(words) > 1 else words[0] for words in lines]
    return {
        "instructions": Counter(names),
        "registers": sorted(set(re.findall(r"\b[yz]mm\d+|\bz\d+\.[bhsd]\b", assembly))),
        "system": sorted(set(_SYSTEM_REGISTER.findall(assembly))),
        "outside": sorted(set(_CALL.findall(assembly)) - set(_LABEL.findall(assembly))),
    }


def pretend(triple: str, objects: list[bytes] | None) -> None:
    """Make the process believe that it runs on another kind of processor. What LLVM seems to make is assembly;
    the objects go to a list, if there is one."""
    assert cpu_target.target_context  # numba asks once, for itself, and goes on compiling for this one
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    parse = llvm.parse_bitcode

    def parse_bitcode(bitcode: bytes) -> Any:
        module = parse(bitcode)
        module.triple = triple
        return module

    llvm.get_process_triple = lambda: triple
    llvm.parse_bitcode = parse_bitcode
    machine_for = back_end.target_machine

    def target_machine() -> Any:
        machine = machine_for()
        emit_object = machine.emit_object

        def emit(module: Any) -> bytes:
            assembly: str = machine.emit_assembly(module)
            if objects is not None:
                objects.append(emit_object(module))
            return assembly.encode()

        machine.emit_object = emit
        return machine

    back_end.target_machine = target_machine


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("triple")
    parser.add_argument("groups", type=lambda text: text.split(","))
    parser.add_argument("processors", nargs="+")
    parser.add_argument("--objects", type=Path)
    options = parser.parse_args()
    objects: list[bytes] | None = None if options.objects is None else []
    pretend(options.triple, objects)
    cache = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, cache)
    build = Build(cache, {name: GROUPS[name].recipe for name in options.groups}, most_processes=8)
    found: dict[str, Any] = {}
    for number, processor in enumerate(options.processors):
        name, _, features = processor.partition(":")
        on = FeatureMap({feature: True for feature in features.split(",") if feature})
        llvm.get_host_cpu_name = lambda name=name: name
        llvm.get_host_cpu_features = lambda on=on: on
        if number == 0:
            build.run()
        for group in options.groups:
            names = [build.bitcode_name(symbol) for symbol in build.closures[group]]
            bitcodes = [content for name in names if (content := kernel_cache.read_sealed(cache, name))]
            found[f"{processor} {group}"] = facts(back_end.object_code(bitcodes, build.entries[group]).decode())
            if number == 0 and objects is not None:
                (options.objects / f"{group}.o").write_bytes(objects[-1])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
