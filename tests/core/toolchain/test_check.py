"""Assertions of kernels: they end the process in a build with checks, and are not there in any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from paths import SUPPORT

PROGRAM = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from checking_kernels import quarter
from psearch_core.toolchain import groups

print(quarter(8), quarter(int(sys.argv[1])), flush=True)
code = groups.cached(quarter.call.group).code
print([word in code for word in (b"check failed", b"only even numbers", b"write")])
"""


def run(cache: Path, checks: str, number: int) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PSEARCH_CACHE_DIR": str(cache), "PSEARCH_CHECK": checks}
    words = [sys.executable, "-c", PROGRAM, str(number)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_what_is_true_passes(cache: Path) -> None:
    done = run(cache, "1", 20)
    assert (done.returncode, done.stdout) == (0, "2 5\n[True, True, True]\n"), done.stderr


def test_what_is_false_aborts_and_says_what(cache: Path) -> None:
    done = run(cache, "1", 6)
    assert done.returncode == -signal.SIGABRT
    assert done.stderr == "psearch: check failed: only even numbers have a half\n"
    assert done.stdout == ""


def test_another_build_has_no_trace_of_it(cache: Path) -> None:
    done = run(cache, "", 6)
    assert (done.returncode, done.stdout) == (0, "2 1\n[False, False, False]\n"), done.stderr
