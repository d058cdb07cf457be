"""Conversations at random: no exception, no line that is none, no state changed by what was refused, no hang."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from uci_sessions import EngineSessions, check_reader, sessions


@settings(max_examples=300, deadline=None)
@given(lines=sessions())
@example(lines=["go nodes 9999999999999999999 mate 9999999999999999999 wtime 9999999999999999999 depth 999999999999"])
def test_the_reader_bears_anything(lines: list[str]) -> None:
    check_reader(lines)


def test_the_engine_bears_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSEARCH_NO_FILES", "1")
    with EngineSessions() as engine:

        @settings(max_examples=40, deadline=None)
        @given(lines=sessions(8))
        def hold(lines: list[str]) -> None:
            engine.check(lines)

        hold()
