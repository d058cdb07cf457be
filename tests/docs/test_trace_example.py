"""The README's example of a trace is a search worth looking at."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from psearch.faces.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
GUIDE = (ROOT / "docs" / "guides" / "trace.md").read_text("utf-8")


def test_the_example_has_many_events_and_busy_workers(
    kernels: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ((command,),) = [re.findall(r"^psearch (.* --trace .*?) +#", README, re.MULTILINE)]
    assert f"\n    psearch {command}\n" in GUIDE
    assert main([*shlex.split(command), "--json"]) == 0
    events = json.loads(Path("trace.json").read_text("utf-8"))["traceEvents"]
    assert 1000 < len(events) < 20_000
    for name in ("idle", "search"):
        assert len({event["tid"] for event in events if event["name"].split()[0] == name}) >= 2
    # by nodes: other programs may have the cores, while a worker that waits for the other one is idle
    nodes = [worker["nodes"] for worker in json.loads(capsys.readouterr().out)["workers"]]
    assert len(nodes) == 2 and min(nodes) > 0.25 * sum(nodes)
