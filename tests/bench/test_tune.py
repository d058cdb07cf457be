"""The tuner: its features and its sum are the evaluation, its gradient is one, and it finds weights."""

from __future__ import annotations

import sys
from pathlib import Path

import chess
import fit_wdl
import numpy as np
import pytest
import tune
from fitting.data import Data, features
from fitting.model import backward, danger_backward, predict
from fitting.positions import SCORE_MAX
from fitting.weights import DANGER_COLUMN, N_COLUMNS, weights_in_use
from inspect_node import NodeProbe
from netdata.blocks import Appender
from netdata.playing import Book, Settings, Table
from netdata.reader import read
from positions import sample

from psearch_core.chess.board.bridge import set_position
from psearch_core.chess.evaluation.endgames import SCALING_PHASE
from psearch_core.chess.tables import make_tables
from psearch_core.records import position_dtype
from psearch_core.terms import DANGER_STEPS, REST_BOUND, TERMS, UNIT_COUNT


@pytest.fixture(scope="module")
def data() -> tuple[Data, list[chess.Board]]:
    """Features of boards from random games, with made-up outcomes."""
    tables = make_tables()
    boards = sample(8, 2500)
    positions = np.zeros(len(boards), position_dtype)
    for number, board in enumerate(boards):
        set_position(tables, positions[number : number + 1], board)
    outcome = np.random.default_rng(1).choice((0.0, 0.5, 1.0), len(boards))
    made = features(positions, tables)
    source = np.zeros(len(boards), np.int8)
    return Data(**made, score=400 * (outcome - 0.5), result=outcome, source=source), boards


def test_the_sum_is_the_evaluation(data: tuple[Data, list[chess.Board]]) -> None:
    """M, R and the scaled sum are each cut to whole centipawns by the kernel, and not by the tuner."""
    traced, boards = data
    weights, units = weights_in_use()
    predicted, scales = predict(traced, weights, units)
    probe = NodeProbe(make_tables())
    compared = scaled = 0
    for number, board in enumerate(boards):
        probe.set(board)
        value = probe.evaluate() if board.turn else -probe.evaluate()
        lone = min(chess.popcount(board.occupied_co[color]) for color in chess.COLORS) == 1
        if abs(value - int(probe.material()) * (1 if board.turn else -1)) >= REST_BOUND or lone:
            continue  # the clamp, and the driving of a bare king, are not in the tuner's model
        assert abs(predicted[number] - value) < (2 if scales[number] == 1 else 3), board.fen()
        compared += 1
        scaled += scales[number] < 1
        assert scales[number] == 1 or probe.record["phase"] <= SCALING_PHASE
    assert compared > 2000
    assert scaled > 50


def test_the_gradient_is_one(data: tuple[Data, list[chess.Board]]) -> None:
    """Differences of the prediction, against the derivatives by weight and by unit of danger."""
    traced, _ = data
    weights, units = weights_in_use()
    dice = np.random.default_rng(2)
    slope = dice.normal(size=len(traced))
    grad, unit_grad = np.zeros((N_COLUMNS, 2)), np.zeros(UNIT_COUNT)
    rows = slice(DANGER_COLUMN, DANGER_COLUMN + DANGER_STEPS)
    units = units + dice.uniform(0.1, 0.2, len(units))  # away from the corners of the interpolation
    whole = traced.scales.copy()
    traced.scales[:] = 1.0
    backward(traced.index, traced.value, traced.used, traced.phase, slope, grad)
    table = np.ascontiguousarray(weights.T[rows])
    danger_backward(traced.units, traced.phase, units, table, True, slope, grad[rows], unit_grad)

    def total(weights: np.ndarray, units: np.ndarray) -> float:
        return float(slope @ predict(traced, weights, units, True)[0])

    step = 1e-4
    for column in dice.choice(N_COLUMNS, 60, replace=False):
        for part in range(2):
            more, less = weights.copy(), weights.copy()
            more[part, column] += step
            less[part, column] -= step
            slope_here = (total(more, units) - total(less, units)) / (2 * step)
            assert slope_here == pytest.approx(grad[column, part], rel=1e-3, abs=1e-3)
    for unit in range(UNIT_COUNT):
        more, less = units.copy(), units.copy()
        more[unit] += 1e-6
        less[unit] -= 1e-6
        slope_here = (total(weights, more) - total(weights, less)) / 2e-6
        assert slope_here == pytest.approx(unit_grad[unit], rel=0.02, abs=2.0)
    traced.scales[:] = whole


@pytest.mark.slow
def test_a_fit_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of positions whose results follow material: the error falls, and what is written can be read."""
    lines = []
    for board in sample(9, 600):
        board.castling_rights = 0
        board.ep_square = None
        worth = sum(
            (1 if piece.color else -1) * (100, 300, 300, 500, 900, 0)[piece.piece_type - 1]
            for piece in board.piece_map().values()
        )
        result = 1.0 if worth > 150 else 0.0 if worth < -150 else 0.5
        lines.append(f"{board.fen()};{worth};{result}")
    file = tmp_path / "positions.txt"
    file.write_text("\n".join(lines) + "\n")
    out = tmp_path / "weights.py"
    monkeypatch.setattr(sys, "argv", ["tune.py", str(file), "--out", str(out), "--steps", "15"])
    tune.main()
    said = capsys.readouterr().out
    errors = [float(line.split("held-out error")[1].split()[0]) for line in said.splitlines() if "held-out" in line]
    assert len(errors) == 4
    assert errors[3] < errors[1]
    written: dict[str, object] = {}
    exec(out.read_text(), written)
    values = written["TERM_VALUES"]
    assert isinstance(values, dict)
    for term in TERMS:
        assert len(values[term.name]) == term.count
        assert all(isinstance(part, int) for pair in values[term.name] for part in pair)


def test_games_are_read_as_positions_and_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both programs read them; each position is seen by its mover, who becomes White."""
    path, out = tmp_path / "few.games", tmp_path / "wdl_model.py"
    target = Appender(path)
    target.append(Table(Settings(seed=5, nodes=100, games=16, commit="none", book=""), Book()).play(0))
    target.close()
    samples = read([path], every=1000).training
    fens, results = fit_wdl.read_sample(path, 200, 1)
    assert len(set(fens)) == 200 and set(results.tolist()) <= {0.0, 0.5, 1.0}
    assert all(chess.Board(fen).is_valid() and " w - - " in fen for fen in fens)
    monkeypatch.setattr(sys, "argv", ["tune.py", str(path), "--current-only"])
    tune.main()
    assert f"few.games: {(abs(samples['score']) <= SCORE_MAX).sum()} positions" in capsys.readouterr().out
    words = ["fit_wdl.py", str(path), "--positions", "200", "--nodes", "100", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    fit_wdl.main()
    written: dict[str, object] = {}
    exec(out.read_text(), written)
    assert written["MATERIAL_KNOTS"] == fit_wdl.KNOTS
