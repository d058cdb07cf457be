"""`python bad_policies.py FOLDER`: what is wrong with each policy in a folder, as a JSON object by name of the file.

Does what the compiler does, up to the bitcode of the file's own kernels, for all files in one process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from psearch.core.toolchain import jit
from psearch.core.toolchain.compiler.build import Build
from psearch.core.toolchain.compiler.front_end import prepare
from psearch.core.toolchain.kernel_cache import PlugInError, file_hash
from psearch.core.views import context_at, frame_of, i64
from psearch.scheduler.policy import may_open, open_priority


@jit.entry(i64(i64))
def ask(context):
    """Call the hooks that the files replace."""
    ctx = context_at(context)
    node = frame_of(ctx, 0).node
    return open_priority(ctx, node) if may_open(ctx, node, 0) else 0


def mistake_of(path: Path) -> str:
    """The line; empty if there is nothing wrong."""
    plug_in = (str(path), "", file_hash(str(path)))
    try:
        build = Build(None, {"work-bad": ((__name__,), {})}, print, 1, plug_in)
        assert build.loaded is not None
        prepare(jit.registry.values())
        for symbol in sorted(build.loaded.symbols):
            build.front_end(symbol)
    except PlugInError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    print(json.dumps({path.stem: mistake_of(path) for path in sorted(Path(sys.argv[1]).glob("*.py"))}))
