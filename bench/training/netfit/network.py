"""A net with one hidden layer, seen from both sides, and an output for each of eight numbers of men; and its files.

768 inputs (whose piece, which piece, which square) lead to `hidden` units, from the side of the mover and, by the same
weights, from that of the other; each side's board is mirrored so that its own king stands on files a to d. A unit gives
the square of its sum, cut off at 0 and 1. The output of the bucket that the number of men chooses, in natural units of
the expected score: `1 / (1 + exp(-value))`. The search evaluates by the same net in whole numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from psearch_core.chess.evaluation.network_file import (
    HEAD,
    MAGIC,
    VERSION,
    WEIGHTS,
    NetworkError,
    decoded,
    read_network,
)
from psearch_core.records import NETWORK_BUCKETS, NETWORK_FEATURES, NETWORK_HIDDEN, OUT_ONE, ROW_ONE, network_dtype

FEATURES = 768
BUCKETS = 8
MOST_MEN = 32
UNIT_CP = 400.0
"""centipawns to one natural unit: a score s in centipawns is an expected score of 1 / (1 + exp(-s / 400))"""

Array = np.ndarray


class Net(NamedTuple):
    """Weights, float32."""

    rows: Array
    """(768, hidden)"""
    bias: Array
    """(hidden,)"""
    out: Array
    """(8, 2 * hidden): the mover's units first"""
    out_bias: Array
    """(8,)"""

    @property
    def hidden(self) -> int:
        return len(self.bias)

    def save(self, path: Path, **notes: str) -> None:
        """Write the net, with notes on how it was made. Raises OSError."""
        np.savez_compressed(path, **self._asdict(), **{name: np.array(text) for name, text in notes.items()})


def load(path: Path) -> Net:
    """Read a net, or a network of the search (.net). Raises OSError, and ValueError when the file is none."""
    if path.suffix == ".net":
        return dequantised(read_network(path).record)
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            net = Net(*(np.ascontiguousarray(file[name], np.float32) for name in Net._fields))
    except (KeyError, ValueError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path} is no net: {error}") from None
    hidden = net.hidden
    if [array.shape for array in net] != [(FEATURES, hidden), (hidden,), (BUCKETS, 2 * hidden), (BUCKETS,)]:
        raise ValueError(f"{path} is no net: its arrays have other shapes")
    return net


def unit_of(path: Path) -> int:
    """Return the centipawns of a network's (.net) natural unit. Raises OSError, and ValueError."""
    return int(read_network(path).record["unit"][0])


def mean_of(nets: Sequence[Net]) -> Net:
    """Return the net whose weights are the means of those of nets that have an ancestor in common."""
    return Net(*(np.mean(arrays, axis=0, dtype=np.float64).astype(np.float32) for arrays in zip(*nets, strict=True)))


def random_net(hidden: int, seed: int) -> Net:
    """Return a net to begin training with."""
    dice = np.random.default_rng(seed)
    rows = dice.normal(0.0, 0.08, (FEATURES, hidden)).astype(np.float32)
    bias = np.full(hidden, 0.25, np.float32)
    out = (dice.normal(0.0, 1.0, (BUCKETS, 2 * hidden)) / np.sqrt(2 * hidden)).astype(np.float32)
    return Net(rows, bias, out, np.zeros(BUCKETS, np.float32))


def bucket(men: Array | int) -> Array | int:
    """Return the output that a number of men, kings included, chooses."""
    return (men - 1) // (MOST_MEN // BUCKETS)


def features(sample: np.void) -> tuple[list[int], list[int]]:
    """Return the inputs of a `sample_dtype` record that are on, from the mover's side and from the other's."""
    occupied = int(sample["occupied"])
    squares = [square for square in range(64) if occupied >> square & 1]
    nibbles = [int(sample["pieces"][i >> 1]) >> (4 * (i & 1)) & 15 for i in range(len(squares))]
    sides: tuple[list[int], list[int]] = ([], [])
    for side, flip in ((0, 0), (1, 56)):
        king = next(square for square, nibble in zip(squares, nibbles, strict=True) if nibble == 5 + 8 * side)
        mirror = 7 if king & 4 else 0
        for square, nibble in zip(squares, nibbles, strict=True):
            is_others = (nibble >> 3) ^ side
            sides[side].append(384 * is_others + 64 * (nibble & 7) + (square ^ flip ^ mirror))
    return sides


def value(net: Net, sample: np.void) -> float:
    """Return the net's value of one position in natural units, by definition: the twin of the fast kernels."""
    mine, others = features(sample)
    sums = [net.bias.astype(float) + net.rows[side].astype(float).sum(axis=0) for side in (mine, others)]
    units = np.concatenate([np.clip(side, 0, 1) ** 2 for side in sums])
    chosen = bucket(len(mine))
    return float(net.out[chosen].astype(float) @ units + net.out_bias[chosen])


UNIT = 290
"""Centipawns of the search's margins to a natural unit: there the handwritten evaluation has its least error"""


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


def dequantised(record: np.ndarray) -> Net:
    """Return a record's weights in floating point, the inverse of `quantised` but for what rounding took."""
    scales = ROW_ONE, ROW_ONE, OUT_ONE, ROW_ONE * ROW_ONE * OUT_ONE
    rows, bias, out, out_bias = (
        (record[0][name] / scale).astype(np.float32) for name, scale in zip(Net._fields, scales, strict=True)
    )
    return Net(rows, bias, out.reshape(BUCKETS, -1), out_bias)


def write_network(net: Net, path: Path, notes: dict[str, str], unit: int = UNIT) -> None:
    """Write the net in integers. unit: centipawns of a natural unit. Raises OSError, and ValueError for a net of
    another width than the search's."""
    path.write_bytes(encoded(quantised(net.rows, net.bias, net.out, net.out_bias, unit), notes))
