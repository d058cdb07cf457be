"""Arguments of any kind are taken, or refused with PsearchError in one line; nothing else comes out."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import chess
import chess.engine
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings

import psearch
from psearch.api.question import ask
from psearch.options import Settings
from psearch.processes.control import SearchControl
from psearch.settings import SETTINGS

Limit = chess.engine.Limit


class Unprintable:
    """Something that has a repr of several lines."""

    def __repr__(self) -> str:
        return "<\n\n>" * 30


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 300),
    st.sampled_from([10**400, -(10**5000), 2**31, 2**62, 2**63, 0.5, 1e6, 1e300, math.inf, -math.inf, math.nan]),
    st.floats(),
    st.text(max_size=60),
    st.sampled_from(["startpos", "e2e4", "Nf3", "modern", "ybw", "1", ".5", chess.STARTING_FEN]),
    st.binary(max_size=8),
    st.complex_numbers(),
    st.fractions(),
    st.lists(st.sampled_from(["e4", "a2a3", 5, None, chess.Move.null(), chess.Move.from_uci("e2e4")]), max_size=3),
    st.dictionaries(st.sampled_from(["Hash", "Threads", "Policy", "x", 3]), st.integers(), max_size=2),
    st.sampled_from(
        [
            *(np.float32(0.5), np.float64(3), np.int8(5), np.uint64(2**63), np.float16(np.nan), np.bool_(True)),
            *(np.zeros(3), np.array(3), np.array(["a"]), Decimal("0.5"), Fraction(10**400), Unprintable()),
            *(object(), chess.Board(), chess.Board(None), chess.Move.null(), chess.WHITE, chess.engine.INFO_PV),
            *(Limit(time=1), Limit, chess.Board, 5.5, range(3), iter("ab"), b"e2e4"),
        ]
    ),
)
LIMITS = st.one_of(
    ANYTHING,
    st.builds(
        Limit,
        **{
            name: st.one_of(st.none(), ANYTHING)
            for name in (
                *("time", "depth", "nodes", "mate", "white_clock", "white_inc", "black_clock", "black_inc"),
                "remaining_moves",
            )
        },
    ),
)


def check_line(error: pytest.ExceptionInfo[psearch.PsearchError] | psearch.PsearchError) -> None:
    text = str(error)
    assert text and len(text.splitlines()) == 1
    assert len(text) < 500


@settings(max_examples=400, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "board": ANYTHING,
            "limit": LIMITS,
            "multipv": ANYTHING,
            "game": ANYTHING,
            "info": ANYTHING,
            "root_moves": ANYTHING,
        },
    )
)
@example({"limit": Limit(time=np.float32(0.1))})
@example({"root_moves": ["a2a3"]})
@example({"board": "startpos"})
@example({"limit": 5})
@example({"limit": Limit(time=".5")})  # type: ignore[arg-type]
@example({"root_moves": np.array(3)})
@example({"limit": Limit(white_clock=1, remaining_moves="x")})  # type: ignore[arg-type]
def test_questions(given_arguments: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {
        "board": chess.Board(),
        "limit": Limit(depth=1),
        "multipv": None,
        "game": None,
        "info": chess.engine.INFO_ALL,
        "root_moves": None,
        **given_arguments,
    }
    board, limit = arguments.pop("board"), arguments.pop("limit")
    options = Settings.of(hash_mb=1).search
    try:
        question = ask(board, limit, options, **arguments)
    except psearch.PsearchError as error:
        check_line(error)
        return
    request = question.request(SearchControl(), None)
    assert request.board.is_valid()
    assert request.multipv >= 1
    for value in (request.limits.depth, request.limits.nodes, request.limits.mate):
        assert value is None or (type(value) is int and value >= 1)
    assert type(request.clock().deadline_s()) is float
    request.clock().is_due(1.0)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(SETTINGS)), ANYTHING, ANYTHING)
def test_settings(name: str, value: object, options: object) -> None:
    try:
        made = Settings.of(**{name: value})
        assert 1 <= made.threads <= psearch.MAX_THREADS and made.hash_mb >= 1
        made.for_one_search(options)  # type: ignore[arg-type]
    except psearch.PsearchError as error:
        check_line(error)


class _Searched(Exception):
    """The arguments were taken."""


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("position", "threads", "depth", "movetime_ms", "nodes", "hash_mb", "mate", "multipv", "root_moves"),
                *("policy", "pruning"),
            ]
        ),
        ANYTHING,
        min_size=1,
        max_size=2,
    )
)
@example({"movetime_ms": np.float32(100)})
@example({"root_moves": ["a2a3"]})
def test_search(arguments: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("psearch.searcher.searcher.Supervisor", _refuse)
        try:
            psearch.search(**{"position": "startpos", "depth": 1, **arguments})
        except psearch.PsearchError as error:
            check_line(error)
        except _Searched:
            return


def _refuse(*arguments: object) -> None:
    raise _Searched
