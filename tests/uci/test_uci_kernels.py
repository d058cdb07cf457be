"""What is told of kernels that are compiled."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from uci_talk import Talk

from psearch.scheduler.entries import load_kernels
from psearch.uci import resources


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        ("", ["info string kernels compiled in 1 s, they are kept for the next start"]),
        ("not kept: no room", ["info string kernels compiled in 1 s", "info string not kept: no room"]),
    ],
)
def test_where_compiled_kernels_are_kept(monkeypatch: pytest.MonkeyPatch, problem: str, told: list[str]) -> None:
    def compile_kernels(progress: Callable[[str], None], warn: Callable[[str], None]) -> float:
        load_kernels()
        progress("compiling kernels")
        if problem:
            warn(problem)
        return 1.0

    monkeypatch.setattr(resources, "load_kernels", compile_kernels)
    with Talk() as talk:
        assert talk.ready() == ["info string compiling kernels", *told, "readyok"]
