"""bench/training/label.py and netdata/labelling.py: positions near those of games, with scores of small searches."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from netdata.blocks import Appender
from netdata.commands import EXIT_BAD_INPUT
from netdata.labelling import LabelFile, Labeller, Labels, read_labels, training_blocks
from netdata.openings import Book
from netdata.playing import PRUNING, Settings, Table
from netdata.reader import TEST_EVERY, Filter, Reader
from netdata.records import NO_RESULT, sample_dtype
from netfit.fit import expected, targets
from programs import run_bench

LABELS = Labels(nodes=60, fewest=0, most=2, seed=1, pruning=PRUNING)


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("games") / "few.games"
    target = Appender(path)
    table = Table(Settings(seed=5, nodes=100, games=6, commit="none", book="", pruning=PRUNING), Book((), ""))
    for number in range(2):
        target.append(table.play(number))
    target.close()
    return path


@pytest.fixture(scope="module")
def labeller() -> Labeller:
    return Labeller(LABELS)


def boards(samples: np.ndarray) -> set[bytes]:
    return {sample["occupied"].tobytes() + sample["pieces"].tobytes() for sample in samples}


def test_games_for_testing_are_left_out(games: Path) -> None:
    blocks = list(training_blocks(games))
    assert [name for name, _ in blocks] == ["few 0", "few 1"]
    assert [len(found) for _, found in blocks] == [6, 5]
    assert TEST_EVERY == 10


def test_positions_are_quiet_have_a_score_and_a_result_only_in_the_game(games: Path, labeller: Labeller) -> None:
    name, found = next(training_blocks(games))
    samples = labeller.label((name, found))
    assert np.all(np.abs(samples["score"]) <= Filter().most_score)
    assert np.any(samples["static"] != samples["score"])
    reader = Reader(Filter(noisy=True, most_score=32000))
    in_games = set.union(*(boards(reader.game(game)) for game in found))
    own = samples[samples["result"] != NO_RESULT]
    assert len(own) > 50
    assert boards(own) <= in_games
    others = samples[samples["result"] == NO_RESULT]
    assert len(others) > 50
    assert not boards(others) <= in_games
    # a search of so few nodes knows little more than the evaluation by hand
    assert np.corrcoef(samples["score"], samples["static"])[0, 1] > 0.8


def test_labels_are_the_same_again_and_others_with_another_name(games: Path, labeller: Labeller) -> None:
    _, found = next(training_blocks(games))
    once, again, other = (labeller.label((name, found[:2])) for name in ("one", "one", "two"))
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other[: len(once)])


def test_targets_leave_a_missing_result_out() -> None:
    samples = np.zeros(2, sample_dtype)
    samples["score"], samples["result"] = 120, [2, NO_RESULT]
    score = expected(np.array([120]))[0]
    assert targets(samples, 0.3) == pytest.approx([0.7 * score + 0.3, score])


def test_a_file_keeps_what_its_log_tells_of(tmp_path: Path) -> None:
    path = tmp_path / "some.samples"
    target = LabelFile(path)
    target.append("few 0", LABELS, np.ones(3, sample_dtype))
    target.close()
    with path.open("ab") as file:
        file.write(b"torn")
    with path.with_name("some.samples.log").open("a") as file:
        file.write('{"block": "few 1"')
    target = LabelFile(path)
    assert target.done == {("few 0", *LABELS)} and target.count == 3
    target.append("few 1", LABELS, np.zeros(2, sample_dtype))
    target.close()
    assert read_labels(path)["score"].tolist() == [1, 1, 1, 0, 0]


@pytest.mark.slow
def test_the_command_adds_what_is_not_there(games: Path, tmp_path: Path) -> None:
    path = tmp_path / "some.samples"
    words = ["training/label.py", path, games, "--nodes", "60", "--most", "1", "--jobs", "2"]
    for seed, blocks in ((1, 2), (1, 2), (2, 4)):
        done = run_bench(*words, "--seed", str(seed))
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in path.with_name("some.samples.log").read_text().splitlines()]
        assert len(lines) == blocks
        assert lines[-1]["end"] == len(read_labels(path))
    done = run_bench("training/train.py", games, "--labels", path, "--hidden", "4", "--epochs", "1")
    assert done.returncode == 0, done.stderr
    assert f"{len(read_labels(path)):,} of them labelled" in done.stdout


def test_bad_input_is_one_line(games: Path, tmp_path: Path) -> None:
    for words, name in (([tmp_path / "none.games"], "none.games"), ([games, "--pruning", "bold"], "bold")):
        done = run_bench("training/label.py", tmp_path / "x.samples", *words)
        assert done.returncode == EXIT_BAD_INPUT
        assert done.stderr.splitlines()[-1].startswith("label.py: ") and name in done.stderr, done.stderr
