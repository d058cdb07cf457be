"""Run by the tests of the cache in processes of their own: load `tiny_kernels`, print what happened as JSON.

In the environment: TINY_PATIENCE_S, for which it waits for a program that is stopped; TINY_PUBLIC, the one folder in
which everybody may make a folder.
"""

from __future__ import annotations

import json
import os
import sys
import time

from psearch.core.toolchain import compile_lock, groups, kernel_cache
from psearch.core.toolchain.groups import Group, KernelError

TINY = Group("tiny_kernels", "tiny_kernels")


def main() -> None:
    compile_lock._PATIENCE_S = float(os.environ.get("TINY_PATIENCE_S", compile_lock._PATIENCE_S))
    if "TINY_PUBLIC" in os.environ:
        kernel_cache._PUBLIC_FOLDERS = (os.environ["TINY_PUBLIC"],)
    lines: list[str] = []
    warned: list[str] = []
    start = time.perf_counter()
    error = ""
    value = 0
    try:
        groups.load(TINY, progress=lines.append, warn=warned.append)
        value = TINY.entry("twice")(21)
    except KernelError as failure:
        error = str(failure)
    report = {
        "value": value,
        "lines": lines,
        "warned": warned,
        "error": error,
        "seconds": time.perf_counter() - start,
        "roots": kernel_cache.roots(),
        "numba": "numba" in sys.modules,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
