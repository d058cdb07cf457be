"""`bench/study/cluster_faults.py`: an analysis on machines of which one is killed, halted or added."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import cluster_faults
import pytest

from psearch.bench import BENCH_POSITIONS


def _has_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.skipif(not _has_namespaces(), reason="needs root, ip and unshare")
def test_an_analysis_on_machines_in_trouble(kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "")  # what the program sets is undone
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # each machine has a /tmp of its own
        suite, out = Path(folder, "suite.fen"), Path(folder, "faults")
        suite.write_text("\n".join(BENCH_POSITIONS * 4) + "\n")
        words = ["--machines", "3", "--events", "kill@20,task@40,add@60", "--out", str(out)]
        assert cluster_faults.main([str(suite), *words]) == 0
        figures = json.loads(out.with_name("faults.json").read_text())
    assert figures["positions"] == 4 * len(BENCH_POSITIONS)
    assert [one["event"] for one in figures["happened"] if "event" in one] == ["kill", "task", "add", "end"]


def test_an_event_of_no_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cluster_faults.main(["suite.fen", "--events", "flood@20", "--out", str(tmp_path / "x")])
    assert left.value.code == 2 and "'flood@20' is not KIND@PERCENT" in capsys.readouterr().err
