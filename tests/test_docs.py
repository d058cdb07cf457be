"""What the documents say of the program's layout is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from psearch.core import records

ARCHITECTURE = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text("utf-8")
FRAMES_PER_STACK = records.MAX_PLY


@pytest.mark.parametrize(
    ("label", "size"),
    [
        (r"\| header +", records.header_dtype.itemsize),
        (r"\| worker records +", records.worker_dtype.itemsize),
        (r"\| stack records +", records.stack_dtype.itemsize),
        (r"\| chess tables +", records.tables_dtype.itemsize),
        (r"\| frames +", records.frame_dtype.itemsize),
        (r"\| node +", records.node_dtype.itemsize),
        (r"\| visit +", records.visit_dtype.itemsize),
        (r"\| position \(copy-make\) +", records.position_dtype.itemsize),
        (r"\| learning +", records.learning_dtype.itemsize),
        (r"\| prediction +", records.prediction_dtype.itemsize),
        (r"frame, ", records.frame_dtype.itemsize // 64),
        (r"context, ", records.context_dtype.itemsize),
        (r"outcomes \(", records.outcomes_dtype.itemsize),
        (r"evaluation\s+\(", records.evaluation_dtype.itemsize),
        (r"One stack with its frames takes ", records.stack_dtype.itemsize + FRAMES_PER_STACK * records.FRAME_SIZE),
    ],
)
def test_sizes_of_records(label: str, size: int) -> None:
    said = {int(number.replace(",", "")) for number in re.findall(label + r"([0-9][0-9,]*)\b", ARCHITECTURE)}
    assert said == {size}
