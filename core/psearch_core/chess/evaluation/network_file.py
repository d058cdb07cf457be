"""Reads network files, and refuses a file that is not a valid network.

A file has a head of 32 bytes (magic, sizes, length of the notes), notes in JSON on how the network was made, the
weights of `network_dtype` in little-endian order, and the SHA-256 of all that. The name of the package's file contains
the beginning of this hash; it was trained on games of psearch, and on games of TCEC with psearch's scores
(github.com/TCEC-Chess/tcecgames, attribution: TCEC organization, CC BY-SA 3.0).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from psearch_core.records import NETWORK_BUCKETS, NETWORK_FEATURES, NETWORK_HIDDEN, ROW_ONE, network_dtype

MOST_BYTES = 2 << 20
MAGIC = b"psearch network\n"
HEAD = struct.Struct("<16sHHHHiI")
"""Head of a file: magic, version, inputs, hidden units, outputs, centipawns of a natural unit, bytes of notes."""
VERSION = 1
_DIGEST_BYTES = 32
_NAME_DIGITS = 12
WEIGHTS = ("rows", "bias", "out", "out_bias")
_MOST_MEN = 32
_MOST_UNIT = 10_000
_FOLDER = Path(__file__).parent


class NetworkError(ValueError):
    """A file is no usable network; the text is one line."""


@dataclass(frozen=True)
class EvaluationNetwork:
    """A network that has been read and checked."""

    name: str
    """Beginning of the network's hash, which `psearch version` and `bench` print."""
    path: str
    record: np.ndarray
    """Array of one `network_dtype` record."""
    notes: dict[str, Any]
    """Notes on how the network was made."""


def decoded(data: bytes, path: str) -> EvaluationNetwork:
    """Return the network of a file with these bytes. Raises NetworkError."""
    if len(data) < HEAD.size + _DIGEST_BYTES or not data.startswith(MAGIC):
        raise NetworkError("it is not a psearch network")
    _, version, *sizes, unit, notes_bytes = HEAD.unpack_from(data)
    if version != VERSION:
        raise NetworkError(f"it has version {version}; this program reads version {VERSION}")
    if sizes != [NETWORK_FEATURES, NETWORK_HIDDEN, NETWORK_BUCKETS]:
        wanted = f"{NETWORK_FEATURES} inputs, {NETWORK_HIDDEN} hidden units and {NETWORK_BUCKETS} outputs"
        raise NetworkError(f"it has {sizes[0]} inputs, {sizes[1]} hidden units and {sizes[2]} outputs, not {wanted}")
    record = np.zeros(1, network_dtype)
    begin = HEAD.size + notes_bytes
    end = begin + sum(record[name].nbytes for name in WEIGHTS)
    if len(data) != end + _DIGEST_BYTES:
        raise NetworkError(f"it has {len(data):,} bytes, not {end + _DIGEST_BYTES:,}: it is damaged")
    digest = hashlib.sha256(data[:end])
    if digest.digest() != data[end:]:
        raise NetworkError("its checksum is wrong: it is damaged")
    try:
        notes = json.loads(data[HEAD.size : begin])
    except (ValueError, RecursionError):
        raise NetworkError("its notes are not JSON") from None
    for name in WEIGHTS:
        place = record[name]
        place[:] = np.frombuffer(data, place.dtype.newbyteorder("<"), place.size, begin).reshape(place.shape)
        begin += place.nbytes
    record["unit"] = unit
    _check_range(record)
    return EvaluationNetwork(digest.hexdigest()[:_NAME_DIGITS], path, record, notes if isinstance(notes, dict) else {})


def _check_range(record: np.ndarray) -> None:
    """Raise NetworkError if integer arithmetic could overflow in some position."""
    rows, bias, out, out_bias = (np.abs(record[0][name].astype(np.int64)) for name in WEIGHTS)
    top = np.iinfo(np.int16).max
    is_sum_safe = (bias + _MOST_MEN * rows.max(axis=0) <= top).all()
    is_product_safe = out.max() * ROW_ONE <= top
    is_total_safe = (out.sum(axis=(1, 2)) * ROW_ONE**2 + out_bias <= np.iinfo(np.int32).max).all()
    if not (is_sum_safe and is_product_safe and is_total_safe):
        raise NetworkError("its weights are so large that sums could overflow")
    if not 0 < record["unit"][0] <= _MOST_UNIT:
        raise NetworkError(f"its unit is {record['unit'][0]} centipawns, not 1 to {_MOST_UNIT}")


def read_network(path: str | os.PathLike[str]) -> EvaluationNetwork:
    """Read a network file. Raises NetworkError, whose text names the file."""
    shown = ascii(os.fspath(path))
    try:
        # do not wait for a pipe or read a device without end
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise NetworkError("it is not a regular file")
            if status.st_size > MOST_BYTES:
                raise NetworkError(f"it has {status.st_size:,} bytes; {MOST_BYTES:,} are the most")
            return decoded(file.read(MOST_BYTES + 1), os.path.abspath(path))
    except OSError as error:
        raise NetworkError(f"cannot read the network {shown}: {error.strerror or error}") from None
    except ValueError as error:  # a path with a null character raises it, too
        raise NetworkError(f"cannot use the network {shown}: {error}") from None


@cache
def default_network() -> EvaluationNetwork:
    """Return the package's network, which is read once. Raises NetworkError if it is damaged or missing."""
    found = sorted(_FOLDER.glob("psearch-*.net"))
    if len(found) != 1:
        raise NetworkError(f"the package has {len(found)} networks, not one: it is not installed properly")
    return read_network(found[0])
