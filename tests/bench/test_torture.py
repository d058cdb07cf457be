"""`bench/study/torture.py`: workers that lose their core at random."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torture
from paths import BENCH, DATA
from torture import Torture, WrongError

from psearch.games import Game


@pytest.fixture
def two() -> Iterator[Torture]:
    made = Torture(2)
    yield made
    made.close()


def test_right_answers_pass(two: Torture) -> None:
    for seed in range(8):
        two.search(seed)
    assert two.counts["searches"] == 8 and two.counts["stopped"] == 2


def test_a_wrong_value_is_noticed(two: Torture, monkeypatch: pytest.MonkeyPatch) -> None:
    right = torture.serial_search
    monkeypatch.setattr(torture, "serial_search", lambda *given: (right(*given)[0], right(*given)[1] + 1))
    with pytest.raises(WrongError, match="one worker finds"):
        two.search(0)


def test_what_is_left_behind_is_noticed(two: Torture) -> None:
    two.supervisor.arena.frames["node"]["open"][100] = 1
    with pytest.raises(WrongError, match="node 100 is open"):
        two.search(0)


@pytest.mark.slow
@pytest.mark.timeout(100)  # a search that hangs after a kill has no limit of its own
def test_a_game_whose_workers_are_killed() -> None:
    made = Torture(2, Game(DATA / "games" / "take_away.py"), kill_ms=50)
    try:
        seed = 0
        while made.counts["kills"] < 3:  # searches are short: not every one meets a kill
            made.search(seed)
            seed += 1
    finally:
        made.close()
    assert made.counts["searches"] == seed


@pytest.mark.slow
def test_with_yields(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    program = [sys.executable, str(BENCH / "study" / "torture.py"), "--minutes", "0.1", "--log", str(log)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0 and done.stdout.startswith("torture: nothing is wrong: "), done.stderr
    assert json.loads(log.read_text().splitlines()[-1])["searches"] > 0
