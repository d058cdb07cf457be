"""Games between two settings in one process: counted, the same again, and bad input in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import run_bench


def quick(*words: str) -> tuple[int, str, str]:
    done = run_bench("match/quick.py", *words)
    return done.returncode, done.stdout, done.stderr


def test_games_are_counted_and_the_same_again(kernels: None, book: Path) -> None:
    """Against itself every pair is one point."""
    words = ("--nodes", "300", "--games", "6", "--book", str(book))
    status, out, err = quick("--second", "modern", *words)
    assert (status, err) == (0, "")
    assert "6 games, pairs [0, 0, 3, 0, 0]: Elo +0.0 +- 0.0" in out
    first = quick("--second", "plain", *words, "--jobs", "1")
    assert first[0] == 0 and "6 games" in first[1]
    assert quick("--second", "plain", *words, "--jobs", "2") == first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--second", "modern,lmr=7", "--games", "4"], "pruning parameter lmr"),
        (["--second", "modern", "--games", "100"], "need 50 different openings"),
        (["--second", "modern", "--sprt=0,-3"], "two numbers of Elo"),
        (["--second", "modern", "--book", "/nowhere.epd"], "cannot read"),
    ],
)
def test_bad_input_is_one_line(book: Path, words: list[str], said: str) -> None:
    status, out, err = quick("--book", str(book), *words)
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1
