"""Run by a test in a process of its own: compile what every search needs for another processor, and run the benchmark.

    python old_processor.py NAME FEATURES FOLDER

NAME, and FEATURES with commas, as LLVM has them: what the compiler is told of this processor. Writes the objects into
the folder, and prints the nodes of the benchmark. Bitcode is the same for all processors but where a kernel asks for an
instruction: it comes from the cache of this one, as far as it is there.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from llvmlite import binding

HOST = binding.get_host_cpu_features()


def pretend(name: str, features: list[str]) -> None:
    """LLVM shall take this processor for another."""
    unknown = set(features) - set(HOST)
    assert not unknown, unknown
    for feature in HOST:
        HOST[feature] = feature in features
    binding.get_host_cpu_name = lambda: name
    binding.get_host_cpu_features = lambda: HOST


def main(name: str, features: str, folder: str) -> None:
    from psearch_core.toolchain import kernel_cache
    from psearch_core.toolchain.groups import key

    key_here = key()
    pretend(name, features.split(","))

    from psearch.scheduler.scheduler_entries import SEARCH
    from psearch_core.chess.chess_entries import CHESS
    from psearch_core.toolchain.compiler.build import Build

    groups = {group.name: group for group in (CHESS, SEARCH)}
    with tempfile.TemporaryDirectory() as cache:
        shutil.copytree(kernel_cache.open_folder(key_here), cache, dirs_exist_ok=True)
        build = Build(cache, {name: group.recipe for name, group in groups.items()}, most_processes=16)
        build.run()
        for name, group in groups.items():
            made = kernel_cache.read_object(cache, build.object_name(name))
            (Path(folder) / made.name).write_bytes(made.code)
            group._take(made)

    from psearch.bench import run_bench

    print(run_bench()[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
