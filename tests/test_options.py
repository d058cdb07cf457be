"""The switches of a search: checked where they are made."""

from __future__ import annotations

import pytest

from psearch.defaults import POLICY_NAMES
from psearch.options import SearchOptions, pruning_named
from psearch.results import PsearchError


def test_every_policy_and_no_other() -> None:
    for name in POLICY_NAMES:
        assert SearchOptions(policy=name).policy == name
    with pytest.raises(PsearchError, match=r"policy must be one of serial, root, ybw, .*, not 'best'"):
        SearchOptions(policy="best")


def test_a_bad_pruning_text_is_an_error_for_the_user() -> None:
    assert pruning_named("plain") == SearchOptions.plain().pruning
    with pytest.raises(PsearchError, match="best"):
        pruning_named("best")
