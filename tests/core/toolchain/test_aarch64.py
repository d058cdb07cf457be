"""Machine code for 64-bit ARM processors, run where an emulator is installed.

Debian has it in `qemu-user`, `gcc-aarch64-linux-gnu` and `libc6-dev-arm64-cross`. An emulator on an x86 processor is
no weaker in its ordering of memory than that: that the orders are there is seen in the assembly alone
(`test_foreign_processors.py`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import SUPPORT

from psearch_core.records import header_dtype, offset_of, worker_dtype

EMULATOR, COMPILER = "qemu-aarch64", "aarch64-linux-gnu-gcc"
FEN = "r1bqkb1r/pp2pppp/2np1n2/8/3NP3/2N5/PPP2PPP/R1BQKB1R w KQkq - 2 6"
DEPTH = 8

SET_UP = """
import sys
import chess
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits

workers, file = int(sys.argv[1]), sys.argv[2]
arena = Arena(workers, 1)
options = SearchOptions.plain() if workers > 1 else SearchOptions()
write_search(arena, chess.Board({fen!r}), Limits(depth={depth} if workers == 1 else {depth} // 2), options)
with open(file, "wb") as out:
    out.write(arena._block.map)
offsets = [arena._offsets[name][0] for name in ("header", "worker", "stack", "frames", "tables")]
print(*offsets, len(arena._block.map), 1 << 20, workers)
if workers > 1:
    arena = Arena(1, 1)
    write_search(arena, chess.Board({fen!r}), Limits(depth={depth} // 2), SearchOptions.plain("serial"))
work_alone(arena)
header = arena.header[0]
print(arena.worker["nodes"].sum(), header["score"], header["best_move"])
"""

MISSING = [name for name in (EMULATOR, COMPILER) if shutil.which(name) is None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aarch64")
    script = [sys.executable, str(SUPPORT / "foreign_build.py"), "aarch64-unknown-linux-gnu", "search", "generic"]
    environment = {**os.environ, "PSEARCH_NO_PEXT": "1"}
    words = [*script, "--objects", str(folder)]
    subprocess.run(words, check=True, timeout=800, env=environment, stdout=subprocess.PIPE)
    return folder / "search.o"


@pytest.mark.parametrize("workers", [1, 4])
def test_a_search_in_an_emulator(built: Path, tmp_path: Path, workers: int) -> None:
    """One worker visits the same nodes as here; several find the same value."""
    program, block = tmp_path / "search", tmp_path / "arena"
    source = str(SUPPORT / "search_in_c.c")
    subprocess.run([COMPILER, "-static", "-pthread", "-o", program, source, built], check=True)
    here = subprocess.run(
        [sys.executable, "-c", SET_UP.format(fen=FEN, depth=DEPTH), str(workers), block],
        env={**os.environ, "PSEARCH_NO_PEXT": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    offsets, expected = here.stdout.splitlines()
    fields = [worker_dtype.itemsize, offset_of(header_dtype, "score"), offset_of(header_dtype, "best_move")]
    command = [EMULATOR, program, block, *offsets.split(), *map(str, fields)]
    there = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    if workers == 1:
        assert there.stdout.split() == expected.split()
    else:
        assert there.stdout.split()[1] == expected.split()[1]
