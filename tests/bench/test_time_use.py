"""Games by a clock of nodes: what is kept of the clock, what changes, and the same games each time."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import chess
import pytest
from programs import run_bench
from time_use import ClockPlayer

from psearch.processes.time_manager import TimeUse


def time_use(*words: str) -> tuple[int, str, str]:
    done = run_bench("match/time_use.py", *words)
    return done.returncode, done.stdout, done.stderr


def thought(player: ClockPlayer, plies: int) -> list[int]:
    """Nodes that each move of a game against itself took."""
    board = chess.Board()
    player.new_game()
    found = []
    for _ in range(plies):
        before = player.left
        board.push(player.move(board)[0])
        found.append(before - player.left + player.increment)
    return found


def test_the_clock_is_kept_and_shared_out(kernels: None) -> None:
    with closing(ClockPlayer(400_000, 4_000)) as player:
        usual = thought(player, 30)
        assert player.left >= 0
        assert 3_000 < sum(usual[:10]) / 10 < 60_000
        assert thought(player, 30) == usual, "the games are the same each time"
        player.play_with(TimeUse(moves_ahead=6))
        assert sum(thought(player, 10)) > 2 * sum(usual[:10])


def test_pairs_are_played_and_written(kernels: None, book: Path, tmp_path: Path) -> None:
    """A change that never matters: the sides play alike, and draw each pair."""
    log = tmp_path / "log.jsonl"
    words = ("settled_iterations=98:99", "--clock", "20+1", "--games", "2", "--book", str(book), "--jobs", "1")
    status, out, err = time_use(*words, "--log", str(log))
    assert (status, out, err) == (0, "1 pairs: too few for 1 changes\n", "")
    head, row = [json.loads(line) for line in log.read_text().splitlines()]
    assert head["clock"] == [20_000, 1_000]
    assert row["half_points"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing=0:1"], "no TimeUse parameter is called 'nothing'"),
        (["moves_ahead=24:36", "--clock", "5"], "BASE+INCREMENT"),
        (["moves_ahead=24:36", "--clock", "0+1"], "BASE+INCREMENT"),
    ],
)
def test_bad_input_is_one_line_of_time_use(book: Path, tmp_path: Path, words: list[str], said: str) -> None:
    status, out, err = time_use("--book", str(book), "--log", str(tmp_path / "log"), *words)
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1
