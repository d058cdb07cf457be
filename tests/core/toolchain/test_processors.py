"""Machine code for processors that lack what this one has: other objects, the same search."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from paths import SUPPORT

from psearch.bench import BENCH_NODES
from psearch_core.toolchain.compiler import back_end
from psearch_core.toolchain.compiler.build import Build
from psearch_core.toolchain.kernel_cache import Recipe

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="its features are those of x86-64")
BASE = ("64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
NEHALEM = (*BASE, "cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2", "crc32")
HASWELL = (*NEHALEM, "avx", "avx2", "bmi", "bmi2", "lzcnt", "movbe", "fma")
BMI2 = {"pext", "pdep", "mulx", "rorx", "sarx", "shlx", "shrx", "bzhi"}
LATER = BMI2 | {"andn", "blsr", "blsi", "blsmsk", "lzcnt"}


def instructions(path: Path) -> set[str]:
    """The mnemonics in an object file, by the binutils' objdump; `%ymm` if a register so long is used."""
    words = ["objdump", "-d", "--no-show-raw-insn", str(path)]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^ +[0-9a-f]+:\t(?:rep |lock )?(\w+)", listed, re.MULTILINE)) | set(
        re.findall(r"%ymm", listed)
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs the binutils")
@pytest.mark.parametrize(
    ("name", "features", "has_pext"), [("x86-64", BASE, False), ("nehalem", NEHALEM, False), ("haswell", HASWELL, True)]
)
def test_the_search_is_the_same_on_every_processor(tmp_path, name, features, has_pext):
    if not set(features) <= {feature for feature, is_there in llvm.get_host_cpu_features().items() if is_there}:
        pytest.skip("this processor lacks some of it")
    words = [sys.executable, str(SUPPORT / "old_processor.py"), name, ",".join(features), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=850)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == BENCH_NODES
    found = set().union(*(instructions(path) for path in tmp_path.iterdir()))
    assert {"mov", "lea", "call"} <= found
    assert ("pext" in found) is has_pext
    if not has_pext:
        assert not found & LATER
        assert "%ymm" not in found
    assert ("popcnt" in found) is (name != "x86-64")


def test_an_object_is_named_by_the_processor_that_it_is_made_for(monkeypatch):
    """LLVM's name counts: the system may name another one (an emulator, a debugger)."""

    def object_name(name: str, features: str) -> str:
        monkeypatch.setattr(back_end.llvm, "get_host_cpu_name", lambda: name)
        monkeypatch.setattr(back_end.llvm, "get_host_cpu_features", lambda: llvm.FeatureMap({features: True}))
        return Build("", {"perft": Recipe(("psearch_core.chess.board.movegen",))}).object_name("perft")

    names = [object_name("nehalem", "avx"), object_name("nehalem", "avx2"), object_name("haswell", "avx")]
    assert len(set(names)) == 3
    assert object_name("nehalem", "avx") == names[0]
