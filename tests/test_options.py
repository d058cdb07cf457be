"""The switches of a search: checked where they are made."""

from __future__ import annotations

import pickle

import chess
import pytest

import psearch
from psearch.defaults import POLICY_NAMES
from psearch.options import SearchOptions, Settings, pruning_named
from psearch.processes.request import SearchRequest
from psearch.results import Limits, PsearchError
from psearch.settings import SEARCH_SETTINGS, Face, SearchKeywords


def test_every_policy_and_no_other() -> None:
    for name in POLICY_NAMES:
        assert SearchOptions(policy=name).policy == name
    with pytest.raises(PsearchError, match=r"policy must be one of serial, root, ybw, .*, not 'best'"):
        SearchOptions(policy="best")


def test_a_bad_pruning_text_is_an_error_for_the_user() -> None:
    assert pruning_named("plain") == SearchOptions.plain().pruning
    with pytest.raises(PsearchError, match="best"):
        pruning_named("best")


def test_type_checkers_know_every_keyword() -> None:
    assert list(SearchKeywords.__annotations__) == [one.field for one in SEARCH_SETTINGS if Face.PYTHON in one.faces]


def test_keywords_are_settings() -> None:
    assert Settings.of(threads=2, hash_mb=None, driver="null", split_depth=3).search.split_depth == 3
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        Settings.of(depth=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'policies'"):
        psearch.search("startpos", depth=1, policies="ybw")  # type: ignore[call-arg]
    with pytest.raises(PsearchError, match="driver must be one of auto, pvs, null, not 'mtd'"):
        Settings.of(driver="mtd")


def test_a_request_can_be_pickled() -> None:
    board = chess.Board()
    board.push_san("e4")
    request = SearchRequest(board, Limits(depth=3), SearchOptions(policy="ybw"), on_info=print, on_note=print)
    copy = pickle.loads(pickle.dumps(request))
    assert (copy.board, copy.limits, copy.options) == (board, request.limits, request.options)
    assert copy.board.move_stack == board.move_stack
    assert copy.on_info is None and not copy.control.is_stopped
