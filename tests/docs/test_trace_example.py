"""The README's example of a trace is a search worth looking at."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from psearch.faces.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
GUIDE = (ROOT / "docs" / "guides" / "trace.md").read_text("utf-8")


def test_the_example_has_many_events_and_busy_workers(
    kernels: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ((command,),) = [re.findall(r"^psearch (.* --trace .*?) +#", README, re.MULTILINE)]
    assert f"\n    psearch {command}\n" in GUIDE
    assert main(shlex.split(command)) == 0
    events = json.loads(Path("trace.json").read_text("utf-8"))["traceEvents"]
    assert 1000 < len(events) < 20_000
    workers = {event["tid"] for event in events if event["name"] == "idle"}
    assert len(workers) == 2
    for worker in workers:
        spent: Counter[str] = Counter()
        for event in events:
            if event["ph"] == "X" and event["tid"] == worker:
                spent[event["name"].split()[0]] += event["dur"]
        assert spent["search"] > 2 * spent["idle"]
