"""SPSA, on matches whose best values are known."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from matchplay.scripts import EXIT_BAD_INPUT, MatchError
from programs import run_bench
from spsa import Course, Pair, Parameter, Values, parameter_of, tune

from psearch.files.safe_files import Journal

PARAMETERS = [Parameter("lmr_base", 60, 0, 200, 10.0), Parameter("null_base", 9, 0, 10, 1.0)]
BEST = {"lmr_base": 140, "null_base": 3}
PAIRS = 3000
FACTS: dict[str, object] = {"seed": 1}


def loss(values: Values) -> float:
    """Elo below the best, quadratic: 64 and 36 at the start."""
    return sum(((values[one.name] - BEST[one.name]) / one.step) ** 2 for one in PARAMETERS)


def games(missing: Sequence[Pair], turn: int = 1) -> Generator[tuple[int, int]]:
    """Results as chance has them, drawn by the pair's number, in any order."""
    for number, first, second in missing[::turn]:
        dice = random.Random(f"game {number}")
        score = 1 / (1 + 10 ** ((loss(first) - loss(second)) / 400))
        yield number, sum(dice.choices((2, 1, 0), (0.7 * score, 0.3, 0.7 * (1 - score)))[0] for _ in range(2))


def course() -> Course:
    return Course(PARAMETERS, PAIRS, 0.05, 1)


def tuned(path: Path, pairs: int = PAIRS, turn: int = 1) -> list[float]:
    found = course()
    with Journal(path, b'{"spsa": ') as log:
        for done in tune(found, pairs, 10, lambda missing: games(missing, turn), log, FACTS):
            assert done % 10 == 0
    return found.values


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    path = tmp_path_factory.mktemp("spsa") / "log.jsonl"
    return path, tuned(path)


def test_it_finds_the_best_values(whole: tuple[Path, list[float]]) -> None:
    """One begins eight steps from the best value, one begins six: 100 Elo, of which a tenth stays at most."""
    names = [one.name for one in PARAMETERS]
    assert loss({one.name: one.start for one in PARAMETERS}) == 100
    assert loss(dict(zip(names, map(round, whole[1]), strict=True))) < 10


def test_a_match_without_a_difference_moves_little(tmp_path: Path) -> None:
    found = course()

    def even(missing: Sequence[Pair]) -> Generator[tuple[int, int]]:
        for number, _, _ in missing:
            yield number, random.Random(f"even {number}").choice((1, 2, 2, 3))

    with Journal(tmp_path / "log.jsonl", b'{"spsa": ') as log:
        list(tune(found, PAIRS, 10, even, log, FACTS))
    for one, value in zip(PARAMETERS, found.values, strict=True):
        assert abs(value - one.start) < 3 * one.step


def test_the_order_in_which_pairs_end_changes_nothing(whole: tuple[Path, list[float]], tmp_path: Path) -> None:
    backwards = tuned(tmp_path / "log.jsonl", 500, turn=-1)
    assert backwards == tuned(tmp_path / "other.jsonl", 500) != course().values


@pytest.mark.parametrize("cut", [0, 10, 2_000, 30_000, -1])
def test_a_run_that_is_cut_anywhere_goes_on_to_the_same_values(
    whole: tuple[Path, list[float]], tmp_path: Path, cut: int
) -> None:
    path = tmp_path / "log.jsonl"
    text = whole[0].read_bytes()
    path.write_bytes(text[:cut])
    assert tuned(path) == whole[1]
    assert sorted(path.read_bytes().splitlines()) == sorted(text.splitlines())


def test_sides_stand_apart_within_their_bounds() -> None:
    found = Course(PARAMETERS, 100, 0.02, 1)
    distances = []
    for pair in range(100):
        first, second = found.sides(pair)
        distances.append(abs(first["lmr_base"] - second["lmr_base"]))
        assert all(one.low <= side[one.name] <= one.high for side in (first, second) for one in PARAMETERS)
    assert distances[0] > distances[-1] == 20
    before = list(found.values)
    found.move({0: 4})
    ahead = [first > second for first, second in zip(*(side.values() for side in found.sides(0)), strict=True)]
    assert [now > then for now, then in zip(found.values, before, strict=True)] == ahead


def test_the_log_of_other_settings_is_refused(whole: tuple[Path, list[float]], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(whole[0].read_bytes()[:5000])
    with Journal(path, b'{"spsa": ') as log, pytest.raises(MatchError, match="other settings"):
        next(tune(course(), PAIRS, 10, games, log, {"seed": 2}))
    path.write_text('{"spsa": {"seed": 1}}\n{"pair": 1, "half_points": 9}\n')
    with Journal(path, b'{"spsa": ') as log, pytest.raises(MatchError, match="line 2"):
        next(tune(course(), PAIRS, 10, games, log, FACTS))


def test_games_are_played_and_go_on(kernels: None, tmp_path: Path) -> None:
    """Values that nothing depends on at 300 nodes stay: each pair is even."""
    book, log = tmp_path / "book.epd", tmp_path / "log.jsonl"
    lines = ("e4 e5", "d4 d5", "c4 e5", "Nf3 d5")
    book.write_text("".join(f'[White "{i}"]\n\n1. {line} *\n\n' for i, line in enumerate(lines)))
    book = book.rename(book.with_suffix(".pgn"))
    words = ["match/spsa.py", "null_verify_depth=90:85:99:2", "--book", book, "--log", log, "--games", "6"]
    words += ["--nodes", "300", "--batch", "2"]
    done = run_bench(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "null_verify_depth=90" and "6 games" in done.stdout
    head, *rows = log.read_text().splitlines()
    assert sorted(json.loads(row)["half_points"] for row in rows) == [2, 2, 2]
    log.write_text("\n".join([head, rows[0], rows[1][:9]]))
    torn = log.read_bytes()
    with Journal(log, b'{"spsa": '):  # another run writes it
        assert run_bench(*words, "--table").stdout.startswith("0 games")
        refused = run_bench(*words)
        assert refused.returncode == EXIT_BAD_INPUT and "this tuning is under way" in refused.stderr
    assert log.read_bytes() == torn
    assert run_bench(*words).stdout == done.stdout == run_bench(*words, "--table").stdout
    assert sorted(log.read_text().splitlines()[1:]) == sorted(rows)
    for bad, said in (
        (["lmr_base=9"], "NAME=START:LOW:HIGH"),
        (["lmr_base=90:95:120"], "must ascend"),
        (["nothing=1:0:2"], "nothing"),
        (["lmr_base=90:60:120", "--rate", "0"], "--rate"),
        (["lmr_base=90:60:120", "--table", "--log", tmp_path / "none.jsonl"], "none.jsonl"),
    ):
        done = run_bench("match/spsa.py", "--book", book, "--log", log, "--games", "2", *bad)
        assert done.returncode == EXIT_BAD_INPUT and done.stderr.count("\n") == 1 and said in done.stderr, done.stderr


def test_a_step_is_a_twentieth_unless_it_is_said() -> None:
    assert parameter_of("lmr_base=90:60:140") == Parameter("lmr_base", 90, 60, 140, 4.0)
    assert parameter_of("x=-1:-3:3:0.5") == Parameter("x", -1, -3, 3, 0.5)
