"""A Ray that is not one: see tests/support/fake_ray."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parent


@pytest.fixture
def fake_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file with its nodes: one, of two cores."""
    fake = SUPPORT / "fake_ray"
    monkeypatch.syspath_prepend(fake)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(fake), str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    nodes = tmp_path / "nodes"
    nodes.write_text("one 2\n")
    monkeypatch.setenv("FAKE_RAY_NODES", str(nodes))
    return nodes
