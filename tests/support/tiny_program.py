"""Run by the tests of the cache in processes of their own: load `tiny_kernels`, print what happened as JSON.

TINY_PATIENCE_S in the environment: for which it waits for a program that is stopped.
"""

from __future__ import annotations

import json
import os
import sys

from psearch_core.toolchain import compiler_client, groups
from psearch_core.toolchain.groups import Group, KernelError

TINY = Group("tiny_kernels", "tiny_kernels")


def main() -> None:
    compiler_client._LOCK_PATIENCE_S = float(os.environ.get("TINY_PATIENCE_S", compiler_client._LOCK_PATIENCE_S))
    lines: list[str] = []
    error, value = "", 0
    try:
        groups.load(TINY, progress=lines.append)
        value = TINY.entry("twice")(21)
    except KernelError as failure:
        error = str(failure)
    print(json.dumps({"value": value, "lines": lines, "error": error, "numba": "numba" in sys.modules}))


if __name__ == "__main__":
    main()
