"""Builds of kernels with checks, and groups in which some kernels are replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from artificial_tree import ARTIFICIAL
from paths import SUPPORT

from psearch.lab.studies import study_kernels as study_kernels
from psearch.lab.studies.soundness import SHADOWED
from psearch.scheduler.step import step
from psearch_core.chess.evaluation.evaluate import evaluate
from psearch_core.chess.pruning.sound import skips_soundly
from psearch_core.chess.search.enter_node import enter, finish
from psearch_core.chess.search.quiescence import next_quiescence
from psearch_core.toolchain.compiler.build import Build
from psearch_core.toolchain.compiler.dependencies import closure

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


def test_a_stand_in_comes_with_what_it_calls_and_the_other_goes() -> None:
    whole = closure([step])
    assert {enter.symbol, next_quiescence.symbol, evaluate.symbol} <= set(whole)
    changed = closure([step], {enter.symbol: next_quiescence.symbol})
    assert set(whole) - set(changed) > {enter.symbol}
    assert set(changed) < set(whole)


def test_a_stand_in_that_calls_what_it_replaces_brings_it_along() -> None:
    kept = closure([step], SHADOWED)
    for old, new in SHADOWED.items():
        assert new in kept
        assert (old in kept) == (old != skips_soundly.symbol)


def test_files_of_stand_ins_and_of_what_they_import_are_among_those_of_the_record() -> None:
    build = Build("", {ARTIFICIAL.name: ARTIFICIAL.recipe})
    assert {"artificial_kernels.py", "artificial_tree.py"} <= {Path(file).name for file in build.files}


def test_a_stand_in_is_called_in_the_same_way() -> None:
    with pytest.raises(AssertionError, match="its signature is another"):
        closure([step], {enter.symbol: finish.symbol})


def test_what_nothing_calls_cannot_be_replaced() -> None:
    with pytest.raises(AssertionError, match=r"nothing calls psearch_core\.chess\.search\.enter_node\.gone"):
        closure([step], {"psearch_core.chess.search.enter_node.gone": enter.symbol})
