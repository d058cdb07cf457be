"""The compiled scheduler, a worker losing the processor between any two steps that others can see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kernel_mutations
import pytest
from paths import SUPPORT, TESTS
from preemptive import group_of, hunt

from psearch_core.toolchain import groups
from psearch_core.toolchain.groups import Group
from psearch_core.toolchain.jit import CHECK

PREEMPTIVE = group_of("unchanged", {})
SEARCHES = 400
"""Among them something is found of every mutation; of most in the first few."""


def test_nothing_is_wrong_in_any_order() -> None:
    assert hunt(PREEMPTIVE, range(120)) == ""


@pytest.mark.slow
def test_nothing_is_wrong_in_many_orders() -> None:
    assert hunt(PREEMPTIVE, range(120, 3000)) == ""


def test_every_mutation_of_the_model_has_a_twin_here() -> None:
    sys.path.insert(0, str(TESTS / "model"))
    try:
        import mutations
    finally:
        sys.path.remove(str(TESTS / "model"))
    named = {name for number, name in mutations.NAMES.items() if number and number not in mutations.HARMLESS}
    assert named == set(kernel_mutations.MUTATIONS) | set(kernel_mutations.ONLY_IN_THE_MODEL)


@pytest.mark.parametrize("name", kernel_mutations.MUTATIONS)
def test_a_mutation_fits_the_source(name: str) -> None:
    """Whether it is noticed takes minutes; that it still says what it changes is seen at once."""
    for source in kernel_mutations.changed_sources(name).values():
        compile(source, name, "exec")


@pytest.fixture(scope="module")
def mutated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all mutations, compiled."""
    folder = tmp_path_factory.mktemp("mutated")
    sys.path.insert(0, str(folder))
    made: dict[str, Group] = kernel_mutations.groups(folder, kernel_mutations.MUTATIONS)
    groups.load(*made.values())
    sys.path.remove(str(folder))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(CHECK, reason="done by the build without checks")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", kernel_mutations.MUTATIONS)
def test_a_mutation_is_noticed(mutated: Path, name: str) -> None:
    """In a process of its own: it may end with a bad access to memory as well."""
    checks = {"PSEARCH_CHECK": "1"} if name in kernel_mutations.NEEDS_CHECKS else {}
    program = [sys.executable, str(SUPPORT / "kernel_mutations.py"), str(mutated), name, str(SEARCHES)]
    done = subprocess.run(program, env={**os.environ, **checks}, capture_output=True, text=True, timeout=900)
    assert done.returncode != 0, done.stdout
    assert done.returncode < 0 or "Traceback" not in done.stderr, done.stderr
