"""From a net in floating point to the file by which the search evaluates."""

from __future__ import annotations

from pathlib import Path

from netfit.network import Net
from psearch.core.chess.evaluation.network_file import encoded, quantised

UNIT = 290
"""Centipawns of the search's margins to a natural unit: there the evaluation by hand has its least error"""


def write_network(net: Net, path: Path, notes: dict[str, str]) -> None:
    """Write the net in integers. Raises OSError, and ValueError for a net of another width than the search's."""
    path.write_bytes(encoded(quantised(net.rows, net.bias, net.out, net.out_bias, UNIT), notes))
