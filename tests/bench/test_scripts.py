"""Every script of bench starts, and explains itself."""

from __future__ import annotations

import pytest
from paths import BENCH
from programs import run_bench

SCRIPTS = sorted(
    path.relative_to(BENCH).as_posix()
    for path in BENCH.rglob("*.py")
    if '\nif __name__ == "__main__":\n' in path.read_text("utf-8")
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(script: str) -> None:
    done = run_bench(script, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
