"""`bench/study/cluster_faults.py`: some searches on machines of which one is killed, cut off, halted or added."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import cluster_faults
import pytest


def _has_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.skipif(not _has_namespaces(), reason="needs root, ip and unshare")
def test_searches_on_machines_in_trouble(kernels: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late they may be here: the tests share the machine."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "")  # what the program sets is undone
    out = tmp_path / "faults"
    cluster_faults.main(["--searches", "10", "--machines", "3", "--movetime", "1000", "--out", str(out)])
    rows = [json.loads(line) for line in out.with_name("faults.jsonl").read_text().splitlines()]
    found = rows[-1]["summary"]
    assert found["searches"] == 10 and 0 < found["struck"] <= 4
    assert set(found["problems"]) <= {"late"} and found["leaving"] == []
    assert any("machines " in note for row in rows[1:-1] for note in row["notes"])


def test_either_a_suite_or_searches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cluster_faults.main(["--out", str(tmp_path / "x")])
    assert left.value.code == 2 and "either a suite or --searches" in capsys.readouterr().err
