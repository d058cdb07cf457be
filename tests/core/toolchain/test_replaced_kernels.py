"""A group with other versions of some kernels, for tests of what calls them."""

from __future__ import annotations

from pathlib import Path

import pytest
from artificial_tree import ARTIFICIAL

from psearch.lab.studies import study_kernels as study_kernels
from psearch.lab.studies.soundness import SHADOWED
from psearch.scheduler.step import step
from psearch_core.chess.evaluation.evaluate import evaluate
from psearch_core.chess.pruning.sound import skips_soundly
from psearch_core.chess.search.enter_node import enter, finish
from psearch_core.chess.search.quiescence import next_quiescence
from psearch_core.toolchain.compiler.build import Build
from psearch_core.toolchain.compiler.dependencies import closure


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
