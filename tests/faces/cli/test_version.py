"""`psearch version`: what a report of a problem says."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from importlib.metadata import version

import pytest

from psearch.faces.cli.commands import version_command as command
from psearch.version import __version__

Run = Callable[..., tuple[int, str, str]]


def test_one_fact_a_line(run: Run) -> None:
    status, out, err = run("version")
    assert (status, err) == (0, "")
    facts = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert list(facts)[:4] == ["psearch", "commit", "network", "python"]
    assert facts["psearch"] == __version__
    assert facts["python"].endswith(platform.python_version())
    assert (facts["numba"], facts["llvmlite"]) == (version("numba"), version("llvmlite"))
    assert int(facts["cores"]) >= 1 and int(facts["memory_mb"]) > 100
    assert facts["cpu"]


def test_the_same_as_json(run: Run) -> None:
    status, out, _ = run("version", "--json")
    facts = json.loads(out)
    assert status == 0
    assert list(facts) == [line.split()[0] for line in run("version")[1].splitlines()]


def test_a_library_that_is_missing_is_no_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_LIBRARIES", ("numba", "no-such-library"))
    assert "no-such-library  not installed" in run("version")[1]
