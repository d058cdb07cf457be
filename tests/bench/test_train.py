"""bench/training/train.py and netfit: a net's value, its gradient, its training, and games with it."""

from __future__ import annotations

import json
from pathlib import Path

import chess
import numpy as np
import pytest
from matchplay.scripts import EXIT_BAD_INPUT
from netdata.blocks import Appender
from netdata.playing import Book, Settings, Table
from netdata.reader import board_codes
from netdata.records import sample_dtype
from netfit.gradients import Gradient, values
from netfit.lessons import Plan, error, expected, read_lessons, targets
from netfit.lessons import train as fit
from netfit.network import UNIT, Net, bucket, features, load, random_net, value, write_network
from paths import REPOSITORY
from programs import run_bench

from psearch_core.chess.board.bridge import set_position
from psearch_core.chess.chess_entries import evaluate_position_by_network
from psearch_core.chess.evaluation.network_file import read_network
from psearch_core.chess.tables import make_tables
from psearch_core.records import NETWORK_HIDDEN, OUT_ONE, ROW_ONE, evaluation_dtype, position_dtype, tables_dtype

BOOK = REPOSITORY / "bench/training/books/2moves_v1.epd"


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("games") / "few.games"
    target = Appender(path)
    table = Table(Settings(seed=5, nodes=100, games=12, commit="none", book=""), Book((), ""))
    for number in range(2):
        target.append(table.play(number))
    target.close()
    return path


@pytest.fixture(scope="module")
def samples(games: Path) -> np.ndarray:
    return read_lessons([games], 0.3).positions.training


def test_the_fast_value_is_the_one_by_definition(samples: np.ndarray) -> None:
    net = random_net(24, 3)
    found = values(net, samples, 2)
    for i in range(0, len(samples), 7):
        assert found[i] == pytest.approx(value(net, samples[i]), abs=1e-5)


def seen(pieces: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The features of a board, square and nibble of each piece, from both sides."""
    sample = np.zeros((), sample_dtype)
    sample["occupied"] = sum(1 << square for square, _ in pieces)
    for i, (_, nibble) in enumerate(sorted(pieces)):
        sample["pieces"][i >> 1] |= nibble << (4 * (i & 1))
    mine, others = features(sample[()])
    return sorted(mine), sorted(others)


def test_a_mirrored_board_has_the_same_features_and_an_exchange_of_sides_exchanges_them(samples: np.ndarray) -> None:
    for sample in samples[::11]:
        squares = [square for square in range(64) if int(sample["occupied"]) >> square & 1]
        pieces = [(square, int(sample["pieces"][i >> 1]) >> (4 * (i & 1)) & 15) for i, square in enumerate(squares)]
        plain = seen(pieces)
        assert seen([(square ^ 7, nibble) for square, nibble in pieces]) == plain
        assert seen([(square ^ 56, nibble ^ 8) for square, nibble in pieces]) == plain[::-1]


def test_buckets() -> None:
    assert [bucket(men) for men in (2, 4, 5, 8, 9, 28, 29, 32)] == [0, 0, 1, 1, 2, 6, 7, 7]


def test_the_gradient_is_that_of_the_error(samples: np.ndarray) -> None:
    net = Net(*(array.astype(np.float32) for array in random_net(8, 2)))
    wanted = targets(samples, 0.3)
    order = np.arange(len(samples))
    found, squared = Gradient(8, 2).of(net, samples, order, wanted)
    mean = squared / len(samples)
    assert mean == pytest.approx(error(net, samples, wanted, 2), rel=1e-4)
    dice = np.random.default_rng(1)
    row = features(samples[0])[0][2]
    for name, place in (("out", (7, 3)), ("out", (5, 11)), ("rows", (row, 5)), ("bias", (2,)), ("out_bias", (6,))):
        step = 0.02
        errors = []
        for sign in (1, -1):
            moved = Net(*(array.copy() for array in net))
            getattr(moved, name)[place] += sign * step
            errors.append(error(moved, samples, wanted, 2))
        slope = (errors[0] - errors[1]) / (2 * step) / 2
        assert found[Net._fields.index(name)][place] == pytest.approx(slope, rel=0.03, abs=2e-6), name
    # the order of positions, and how many threads share them, change nothing but roundings
    other, _ = Gradient(8, 1).of(net, samples, dice.permutation(order), wanted)
    for one, two in zip(found, other, strict=True):
        assert np.allclose(one, two, atol=1e-6)


def test_training_learns_and_is_the_same_again(samples: np.ndarray) -> None:
    wanted = targets(samples, 0.3)
    plan = Plan(epochs=6, batch=128, rate=5e-3, threads=1)
    begin = random_net(8, 1)
    before = error(begin, samples, wanted, 1)
    epochs = []
    net = fit(begin, samples, wanted, (samples, wanted), plan, epochs.append)
    assert error(net, samples, wanted, 1) < 0.6 * before
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4, 5, 6]
    assert epochs[-1].test_error == error(net, samples, wanted, 1)
    again = fit(begin, samples, wanted, (samples, wanted), plan)
    assert all(np.array_equal(one, two) for one, two in zip(net, again, strict=True))


def test_expected_scores_and_targets() -> None:
    assert expected(np.array([0, 400, -400])) == pytest.approx([0.5, 0.731059, 0.268941], abs=1e-6)
    sample = np.zeros(1, sample_dtype)
    sample["score"], sample["result"] = 400, 2
    assert targets(sample, 0.3)[0] == pytest.approx(0.7 * 0.731059 + 0.3)


def test_a_net_survives_its_file(tmp_path: Path) -> None:
    net = random_net(5, 1)
    net.save(tmp_path / "net.npz", made_by="a test")
    assert all(np.array_equal(one, two) for one, two in zip(load(tmp_path / "net.npz"), net, strict=True))
    (tmp_path / "other.npz").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match="is no net"):
        load(tmp_path / "other.npz")
    net._replace(bias=np.zeros(4, np.float32)).save(tmp_path / "wrong.npz")
    with pytest.raises(ValueError, match="other shapes"):
        load(tmp_path / "wrong.npz")


def test_the_search_evaluates_by_the_net(samples: np.ndarray, tmp_path: Path) -> None:
    net = random_net(NETWORK_HIDDEN, 4)
    write_network(net, tmp_path / "some.net", {})
    network = read_network(tmp_path / "some.net")
    weights = network.record[0]
    rounded = Net(
        weights["rows"] / ROW_ONE,
        weights["bias"] / ROW_ONE,
        weights["out"].reshape(len(net.out_bias), -1) / OUT_ONE,
        weights["out_bias"] / (ROW_ONE * ROW_ONE * OUT_ONE),
    )
    tables = np.zeros(1, tables_dtype)
    make_tables(tables, network)
    position, scratch = np.zeros(1, position_dtype), np.zeros(1, evaluation_dtype)
    compared = 0
    for sample, codes in zip(samples[::40], board_codes(samples[::40]), strict=True):
        board = chess.Board(None)
        for square in range(64):
            if codes[square]:
                board.set_piece_at(square, chess.Piece(int(codes[square]) & 7, not codes[square] & 8))
        if not all(board.pieces(chess.PAWN, color) for color in chess.COLORS):
            continue  # what is known of endings scales these
        compared += 1
        set_position(tables, position, board)
        found = evaluate_position_by_network(*(array.ctypes.data for array in (tables, scratch, position)))
        assert found == pytest.approx(UNIT * value(rounded, sample), abs=1.01), "but for the division"
        assert found == pytest.approx(UNIT * value(net, sample), abs=0.1 * UNIT), "random outputs are coarse in 1/64"
    assert compared > 10


@pytest.mark.slow
def test_the_command_trains_saves_and_reports(games: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    done = run_bench(
        "training/train.py", games, "--hidden", f"4,{NETWORK_HIDDEN}", "--epochs", "2", "--first-epochs", "1",
        "--first-stage", "900", "--positions", "300,600", "--save", tmp_path / "nets", "--json", rows, "--batch", "100",
        "--rehearse",
        "--picture", tmp_path / "curves.png",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "24 games" in done.stdout and "900 for the first stage" in done.stdout
    assert "handwritten evaluation" in done.stdout
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [(row["hidden"], row["positions"]) for row in found] == [
        (4, 300),
        (4, 600),
        (NETWORK_HIDDEN, 300),
        (NETWORK_HIDDEN, 600),
    ]
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    net = load(tmp_path / f"nets/{NETWORK_HIDDEN}-600.npz")
    assert error(net, *read_lessons([games], 0.3).test, 1) == pytest.approx(found[-1]["error"], rel=1e-4)
    played = run_bench(
        "match/quick.py", "--first-evaluation", tmp_path / f"nets/{NETWORK_HIDDEN}-600.net", "--second", "modern",
        "--book", BOOK, "--games", "12", "--nodes", "150", "--jobs", "2",
    )  # fmt: skip
    assert played.returncode == 0, played.stderr
    assert "12 games, pairs" in played.stdout and "pairs [0, 0, 6, 0, 0]" not in played.stdout


def test_bad_input_is_one_line(games: Path, tmp_path: Path) -> None:
    for words, name in (
        ([games, "--positions", "999999999"], "positions to train on"),
        ([tmp_path / "none.games"], "none.games"),
    ):
        done = run_bench("training/train.py", *words)
        assert done.returncode == EXIT_BAD_INPUT
        assert done.stderr.count("\n") == 1 and name in done.stderr, done.stderr
