"""Files of networks: what is none, torn, foreign or malicious is one clear line; what is one is what was written."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netfit.network import encoded, quantised

from psearch_core.chess.evaluation.network_file import MOST_BYTES, NetworkError, decoded, default_network, read_network
from psearch_core.records import NETWORK_BUCKETS, NETWORK_FEATURES, NETWORK_HIDDEN

HEAD = struct.Struct("<16sHHHHiI")


@pytest.fixture(scope="module")
def good() -> bytes:
    return Path(default_network().path).read_bytes()


def resealed(body: bytes) -> bytes:
    """Return a network file of this body, with its checksum."""
    return body + hashlib.sha256(body).digest()


def changed_head(data: bytes, place: int, value: int) -> bytes:
    head = list(HEAD.unpack_from(data))
    head[place] = value
    return resealed(HEAD.pack(*head) + data[HEAD.size : -32])


def test_the_package_has_one_and_its_name_is_its_hash() -> None:
    network = default_network()
    path = Path(network.path)
    assert path.name == f"psearch-{network.name}.net"
    data = path.read_bytes()
    assert len(data) <= MOST_BYTES
    assert hashlib.sha256(data[:-32]).hexdigest().startswith(network.name)
    assert network.notes, "how it was made"


def test_what_is_written_is_read(good: bytes) -> None:
    network = decoded(good, "")
    assert encoded(network.record, network.notes) == good


def test_weights_are_rounded(good: bytes) -> None:
    rows = np.zeros((NETWORK_FEATURES, NETWORK_HIDDEN))
    rows[3, 4] = 0.5
    out = np.full((NETWORK_BUCKETS, 2 * NETWORK_HIDDEN), -1.99)
    record = quantised(rows, np.full(NETWORK_HIDDEN, 0.1), out, np.ones(NETWORK_BUCKETS), 300)[0]
    assert record["rows"][3, 4] == 128 and record["bias"][0] == 26 and record["out"].min() == -127
    assert record["out_bias"][0] == 255 * 255 * 64 and record["unit"] == 300
    with pytest.raises(NetworkError, match="hidden units"):
        quantised(rows[:, :-1], np.zeros(NETWORK_HIDDEN - 1), out, np.ones(NETWORK_BUCKETS), 300)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (1, 2, "version 2"),
        (2, 769, "769 inputs"),
        (3, NETWORK_HIDDEN + 16, f"{NETWORK_HIDDEN + 16} hidden units"),
        (3, 65535, "65535 hidden units"),
        (4, 1, "1 outputs"),
        (5, 0, "unit is 0"),
        (5, -290, "unit is -290"),
        (5, 1_000_000, "unit is 1000000"),
        (6, 0, "it is damaged"),
        (6, 2**32 - 1, "it is damaged"),
    ],
)
def test_sizes_are_checked_before_anything_is_read(good: bytes, place: int, value: int, words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        decoded(changed_head(good, place, value), "")


def test_damage_is_found(good: bytes) -> None:
    for data in (b"", good[:10], good[:-1], good + b"\0", good[: len(good) // 2]):
        with pytest.raises(NetworkError):
            decoded(data, "")
    for place in range(0, len(good), len(good) // 50):
        data = bytearray(good)
        data[place] ^= 1
        with pytest.raises(NetworkError):
            decoded(bytes(data), "")


@pytest.mark.parametrize("name", ["rows", "bias", "out", "out_bias"])
def test_weights_that_could_overflow_are_refused(name: str) -> None:
    record = default_network().record.copy()
    record[name] = np.iinfo(record[name].dtype).max
    with pytest.raises(NetworkError, match="overflow"):
        encoded(record, {})
    record[name] = np.iinfo(record[name].dtype).min
    with pytest.raises(NetworkError, match="overflow"):
        encoded(record, {})


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_bytes_that_are_no_network(data: bytes) -> None:
    for bytes_ in (data, b"psearch network\n" + data, resealed(b"psearch network\n" + data)):
        with pytest.raises(NetworkError):
            decoded(bytes_, "")


def test_files_that_are_none(tmp_path: Path) -> None:
    large, pipe, torn = tmp_path / "large", tmp_path / "pipe", tmp_path / "torn"
    with large.open("wb") as file:
        file.truncate(1 << 40)
    os.mkfifo(pipe)
    torn.write_bytes(Path(default_network().path).read_bytes()[:-5])
    for path, words in (
        (tmp_path / "missing", "No such file"),
        (tmp_path, "director|regular file"),
        (large, "are the most"),
        (pipe, "regular file"),
        (torn, "torn"),
        (Path("/dev/zero"), "regular file"),
    ):
        with pytest.raises(NetworkError, match=words) as caught:
            read_network(path)
        assert "\n" not in str(caught.value)
