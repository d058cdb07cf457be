"""A vector of weights: what its columns are, and psearch_core/chess/evaluation/weights.py, read and generated."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from psearch_core.chess.evaluation import weights as current_weights
from psearch_core.chess.tables import term_pairs
from psearch_core.terms import DANGER, TERM_COUNT, TERMS, UNITS

Array = np.ndarray[Any, Any]

PIECES = ("pawn", "knight", "bishop", "rook", "queen", "king")
PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)
MATERIAL = (100, 300, 300, 500, 900, 0)  # what means are pulled to, and the baseline that a fit is compared with
MOBILITY = ("MOBILITY_KNIGHT", "MOBILITY_BISHOP", "MOBILITY_ROOK", "MOBILITY_QUEEN")

N_PSQT = 6 * 64
# Columns of a weight vector float64[2, N_COLUMNS]: 64 * piece + square, then TERMS. Row 0 mg, row 1 eg.
N_COLUMNS = N_PSQT + TERM_COUNT
DANGER_COLUMN = N_PSQT + DANGER


def material_only() -> Array:
    """Weights of plain material, all else zero."""
    weights = np.zeros((2, N_COLUMNS))
    for kind, value in enumerate(MATERIAL):
        ranks = slice(8, 56) if kind == PAWN else slice(0, 64)
        weights[:, 64 * kind : 64 * kind + 64][:, ranks] = value
    return weights


def check_ours(path: Path, opening: str) -> None:
    """Raise ValueError for a file that the tuner would replace and has not written: it may be worth something. The same
    for one without a folder."""
    if not path.absolute().parent.is_dir():
        raise ValueError(f"cannot write {path}: its folder does not exist")
    if path.is_file() and path.stat().st_size and not path.read_bytes().startswith(opening.encode()):
        raise ValueError(f"{path} was not written by this program, and is not replaced")


def weights_in_use() -> tuple[Array, Array]:
    """The weights and units of psearch_core/chess/evaluation/weights.py."""
    weights = np.zeros((2, N_COLUMNS))
    for row, tables in enumerate((current_weights.PSQT_MG, current_weights.PSQT_EG)):
        weights[row, :N_PSQT] = np.array(tables).ravel()
    for term in TERMS:
        pairs = np.array(term_pairs(term))
        weights[:, N_PSQT + term.first : N_PSQT + term.first + term.count] = pairs.T
    units = np.concatenate([np.array(current_weights.UNIT_VALUES[unit.name], dtype=np.float64) for unit in UNITS])
    return weights, units


def _board_rows(values: Array, indent: str) -> str:
    """64 numbers as eight lines of eight, rank 1 first."""
    return "\n".join(indent + " ".join(f"{v:4d}," for v in rank) for rank in values.reshape(8, 8))


def render(weights: Array, units: Array, summary: str) -> str:
    """The text of psearch_core/chess/evaluation/weights.py for whole-number weights."""
    lines = [
        f'"""{summary}"""',
        "",
        "# fmt: off",
        "# Game phase that each piece adds: pawn, knight, bishop, rook, queen, king.",
        f"PHASE = {current_weights.PHASE}",
        "",
    ]
    for row, name, phase in ((0, "PSQT_MG", "Middle-game"), (1, "PSQT_EG", "End-game")):
        lines += [
            f"# {phase} value of each piece on each square, material included, White's view. Read each table",
            "# as a board upside down: the first line is rank 1, a1 to h1. A black piece reads square ^ 56.",
            f"{name} = (",
        ]
        for kind, piece in enumerate(PIECES):
            table = weights[row, 64 * kind : 64 * kind + 64]
            lines += [f"    (  # {piece}", _board_rows(table, "        "), "    ),"]
        lines += [")", ""]
    lines += ["# Pairs (middle game, end game); what each counts is said in psearch_core/terms.py.", "TERM_VALUES = {"]
    for term in TERMS:
        values = weights[:, N_PSQT + term.first : N_PSQT + term.first + term.count].T
        text = " ".join(f"({mg}, {eg})," for mg, eg in values)
        lines.append(textwrap.fill(f'"{term.name}": ({text}),', 112, initial_indent="    ", subsequent_indent=" " * 8))
    lines += ["}", "", "UNIT_VALUES = {"]
    for unit in UNITS:
        text = " ".join(f"{value}," for value in units[unit.first : unit.first + unit.count])
        lines.append(f'    "{unit.name}": ({text}),')
    lines += ["}", "# fmt: on"]
    return "\n".join(lines) + "\n"
