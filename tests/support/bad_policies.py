"""`python bad_policies.py FOLDER`: what is wrong with each policy in a folder, as a JSON object by name of the file.

Does what the compiler does, up to the bitcode of the file's own kernels, for all files in one process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from psearch.scheduler.policy import claim_depth, may_open, open_priority
from psearch_core.chess.search.decisions import evaluation_of, extension_of, prune_node, prunes_move, reduction_of
from psearch_core.toolchain import jit
from psearch_core.toolchain.compiler.build import Build
from psearch_core.toolchain.compiler.front_end import prepare
from psearch_core.toolchain.kernel_cache import PlugIn, PlugInError, Recipe, file_hash
from psearch_core.views import context_at, frame_of, i64, worker_of


@jit.entry(i64(i64))
def ask(context):
    ctx = context_at(context)
    frame = frame_of(ctx, 0)
    node, pos, visit, wk = frame.node, frame.position, frame.visit, worker_of(ctx, 0)
    found = claim_depth(ctx) + evaluation_of(ctx, wk, pos) + prune_node(ctx, wk, pos, node, 0)
    if not may_open(ctx, node, 0) or prunes_move(ctx, wk, pos, node, 0):
        return found
    extended = extension_of(ctx, wk, pos, node, visit, False, True)
    return found + open_priority(ctx, node) + extended - reduction_of(ctx, wk, pos, node, visit, False)


def mistake_of(path: Path) -> str:
    """The line; empty if there is nothing wrong."""
    plug_in = PlugIn(str(path), "", file_hash(str(path)))
    try:
        build = Build("", {"work-bad": Recipe((__name__,), plug_in=plug_in)})
        prepare(jit.registry.values())
        for symbol in sorted(build.loaded.symbols):
            build.front_end(symbol)
    except PlugInError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    print(json.dumps({path.stem: mistake_of(path) for path in sorted(Path(sys.argv[1]).glob("*.py"))}))
