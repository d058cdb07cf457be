"""The tuner: its features and its sum are the evaluation, its gradient is one, and it finds weights."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import chess
import numpy as np
import pytest
from positions import sample

from psearch.core.boards import set_position
from psearch.core.endgames import SCALING_PHASE
from psearch.core.inspect_nodes import NodeProbe
from psearch.core.records import position_dtype
from psearch.core.tables import make_tables
from psearch.core.terms import REST_BOUND
from psearch.kernels import load_kernels

pytest.importorskip("scipy")  # of the extra `study`, which the tuner needs

SCRIPT = Path(__file__).resolve().parents[1] / "bench" / "tune.py"


@pytest.fixture(scope="module")
def tune() -> ModuleType:
    load_kernels()
    specification = importlib.util.spec_from_file_location("psearch_tune", SCRIPT)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["psearch_tune"] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tune: ModuleType) -> tuple[object, list[chess.Board]]:
    """Features of boards from random games, with made-up outcomes."""
    tables = make_tables()
    boards = sample(8, 2500)
    positions = np.zeros(len(boards), position_dtype)
    for number, board in enumerate(boards):
        set_position(tables, positions[number : number + 1], board)
    outcome = np.random.default_rng(1).choice((0.0, 0.5, 1.0), len(boards))
    made = tune.features(positions, tables)
    source = np.zeros(len(boards), np.int8)
    return tune.Data(**made, score=400 * (outcome - 0.5), result=outcome, source=source), boards


def test_the_sum_is_the_evaluation(tune: ModuleType, data: tuple) -> None:
    """M, R and the scaled sum are each cut to whole centipawns by the kernel, and not by the tuner."""
    features, boards = data
    weights, units = tune.weights_in_use()
    predicted, scales = tune.predict(features, weights, units)
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


def test_the_gradient_is_one(tune: ModuleType, data: tuple) -> None:
    """Differences of the prediction, against the derivatives by weight and by unit of danger."""
    features, _ = data
    weights, units = tune.weights_in_use()
    dice = np.random.default_rng(2)
    slope = dice.normal(size=len(features))
    grad, unit_grad = np.zeros((tune.N_COLUMNS, 2)), np.zeros(tune.UNIT_COUNT)
    rows = slice(tune.DANGER_COLUMN, tune.DANGER_COLUMN + tune.DANGER_STEPS)
    units = units + dice.uniform(0.1, 0.2, len(units))  # away from the corners of the interpolation
    whole = features.scales.copy()
    features.scales[:] = 1.0
    tune.backward(features.index, features.value, features.used, features.phase, slope, grad)
    table = np.ascontiguousarray(weights.T[rows])
    tune.danger_backward(features.units, features.phase, units, table, True, slope, grad[rows], unit_grad)

    def total(weights: np.ndarray, units: np.ndarray) -> float:
        return float(slope @ tune.predict(features, weights, units, True)[0])

    step = 1e-4
    for column in dice.choice(tune.N_COLUMNS, 60, replace=False):
        for part in range(2):
            more, less = weights.copy(), weights.copy()
            more[part, column] += step
            less[part, column] -= step
            slope_here = (total(more, units) - total(less, units)) / (2 * step)
            assert slope_here == pytest.approx(grad[column, part], rel=1e-3, abs=1e-3)
    for unit in range(tune.UNIT_COUNT):
        more, less = units.copy(), units.copy()
        more[unit] += 1e-6
        less[unit] -= 1e-6
        slope_here = (total(weights, more) - total(weights, less)) / 2e-6
        assert slope_here == pytest.approx(unit_grad[unit], rel=0.02, abs=2.0)
    features.scales[:] = whole


def test_a_fit_from_end_to_end(
    tune: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    for term in tune.TERMS:
        assert len(values[term.name]) == term.count
        assert all(isinstance(part, int) for pair in values[term.name] for part in pair)
