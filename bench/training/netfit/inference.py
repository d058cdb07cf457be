"""From a net in floating point to the file by which the search evaluates."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from netfit.network import Net
from psearch_core.chess.evaluation.network_file import HEAD, MAGIC, VERSION, WEIGHTS, NetworkError, decoded
from psearch_core.records import NETWORK_BUCKETS, NETWORK_FEATURES, NETWORK_HIDDEN, OUT_ONE, ROW_ONE, network_dtype

UNIT = 290
"""Centipawns of the search's margins to a natural unit: there the evaluation by hand has its least error"""


def encoded(record: np.ndarray, notes: dict[str, Any]) -> bytes:
    """Write a network, one `network_dtype` record, as the bytes of a file. Raises NetworkError if it cannot be used."""
    text = json.dumps(notes, sort_keys=True).encode()
    sizes = (NETWORK_FEATURES, NETWORK_HIDDEN, NETWORK_BUCKETS)
    head = HEAD.pack(MAGIC, VERSION, *sizes, int(record["unit"][0]), len(text))
    weights = (np.ascontiguousarray(record[0][name]) for name in WEIGHTS)
    body = head + text + b"".join(array.astype(array.dtype.newbyteorder("<")).tobytes() for array in weights)
    data = body + hashlib.sha256(body).digest()
    decoded(data, "")
    return data


def quantised(rows: np.ndarray, bias: np.ndarray, out: np.ndarray, out_bias: np.ndarray, unit: int) -> np.ndarray:
    """Return the record of a network in floating point.

    rows: (inputs, hidden units); bias: (hidden units,); out: (outputs, 2 * hidden units), the mover's first; out_bias:
    (outputs,), in natural units of `unit` centipawns. Raises NetworkError for other shapes.
    """
    record = np.zeros(1, network_dtype)
    if (rows.shape, bias.shape, out.size, out_bias.shape) != (
        record["rows"].shape[1:],
        record["bias"].shape[1:],
        record["out"].size,
        record["out_bias"].shape[1:],
    ):
        raise NetworkError(f"it has {bias.size} hidden units; this program has {NETWORK_HIDDEN}")
    most_out = np.iinfo(np.int16).max // ROW_ONE - 1
    record["rows"] = np.rint(rows * ROW_ONE)
    record["bias"] = np.rint(bias * ROW_ONE)
    record["out"] = np.rint(out * OUT_ONE).clip(-most_out, most_out).reshape(record["out"].shape)
    record["out_bias"] = np.rint(out_bias * (ROW_ONE * ROW_ONE * OUT_ONE))
    record["unit"] = unit
    return record


def write_network(net: Net, path: Path, notes: dict[str, str]) -> None:
    """Write the net in integers. Raises OSError, and ValueError for a net of another width than the search's."""
    path.write_bytes(encoded(quantised(net.rows, net.bias, net.out, net.out_bias, UNIT), notes))
