"""Labels positions near those of games by small searches, and keeps them in a file that grows by whole blocks.

A file of labels is records of `sample_dtype`, one behind the other. Beside it, with `.log` added to its name, is a line
of JSON for each block of games: which it was and how, where its records end, and their CRC-32. The line is on the disk
before the records, so the records of the last line may be torn, and no others.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import chess
import numpy as np

from netdata.blocks import Game, Locked, read_blocks
from netdata.playing import options_of
from netdata.reader import TEST_EVERY, Filter, Reader
from netdata.records import MOST_PLIES, label_game, sample_dtype
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.files.append_only import Journal, JournalLine
from psearch.processes.tasks.task_sharing import share_out
from psearch.processes.worker_main import work_alone
from psearch.results import Limits

_HASH_MB = 2
"""The searches of a game fit, and the processor's caches hold most of it."""
_HARD_FACTOR = 10


class Labels(NamedTuple):
    """What decides how positions are labelled."""

    nodes: int
    """of a search; the iteration during which they are passed is its last"""
    fewest: int
    """random moves from a game's position to one that is labelled"""
    most: int
    seed: int
    pruning: str
    """as `--pruning` of the search has it"""
    network: str = ""
    """the name of the network that evaluated; empty: the evaluation by hand"""


class Labeller:
    """Labels blocks of games in this process. network: the file of the one that `labels` name."""

    def __init__(self, labels: Labels, network: str | None = None) -> None:
        self._labels = labels
        self._arena = Arena(workers=1, hash_mb=_HASH_MB)
        self._reader = Reader(Filter(wander=labels.most))
        # a search whose options those of the labels are: positions and limits are the kernel's business
        write_search(
            self._arena,
            chess.Board(),
            Limits(depth=1),
            options_of(labels.pruning, network, labels.network),
        )
        work_alone(self._arena)
        self._room = np.zeros(MOST_PLIES * (1 + labels.most - labels.fewest), sample_dtype)

    def label(self, task: tuple[str, Sequence[Game]]) -> np.ndarray:
        """Return the positions of some games; the text and the labels' seed decide on the random moves."""
        text, games = task
        labels = self._labels
        digest = hashlib.sha256(f"{labels.seed} {text}".encode()).digest()
        self._arena.forget()
        decoder, record = self._reader.decoder, self._reader.record
        decoder["seed"], decoder["fewest"] = int.from_bytes(digest[:8], "little"), labels.fewest
        record["soft_nodes"], record["hard_nodes"] = labels.nodes, labels.nodes * _HARD_FACTOR
        parts = [np.zeros(0, sample_dtype)]
        for game in games:
            found = self._reader.run(game, partial(self._call, self._room.ctypes.data))
            parts.append(self._room[:found].copy())
        return np.concatenate(parts)

    def _call(self, target: int) -> int:
        decoder, record = self._reader.decoder, self._reader.record
        return label_game(self._arena.context, decoder.ctypes.data, record.ctypes.data, target)


def _make(labels: Labels, network: str | None) -> Callable[[tuple[str, Sequence[Game]]], np.ndarray]:
    return Labeller(labels, network).label


class LabelFile:
    """A file of labels that grows; nobody else adds to it meanwhile. What is torn at its end is cut off.

    Raises OSError, Locked when another program has it, and ValueError where the file and its log do not belong
    together, or are none; both stay then.
    """

    def __init__(self, path: Path) -> None:
        log_path = path.with_name(path.name + ".log")
        size = path.stat().st_size if path.exists() else 0
        if size and not log_path.exists():
            raise ValueError(f"{path} has {size:,} bytes, and there is no {log_path.name} that says what they are")
        self.done: set[tuple[Any, ...]] = set()
        self.count = 0
        with ExitStack() as opened:
            try:
                self._log = opened.enter_context(Journal(log_path, b'{"block": ', sync_interval_s=0))
            except BlockingIOError:
                raise Locked(f"{path} is being written by another program") from None
            cut_at = self._read_log(path, size)
            self._log.cut(cut_at)
            self._file = opened.enter_context(path.open("ab"))
            self._file.truncate(self.count * sample_dtype.itemsize)
            self._opened = opened.pop_all()

    def _read_log(self, path: Path, size: int) -> int | None:
        """Take the blocks whose records are there. size: of the records, in bytes; returns where the line of a block
        begins whose records are not complete, None: there is none. Raises ValueError."""
        lines: list[JournalLine] = []
        try:
            for line in self._log.lines():
                lines.append(line)
                self.done.add(_key(line))
                if type(line.value["end"]) is not int or line.value["end"] < self.count:
                    raise TypeError
                self.count = line.value["end"]
        except (KeyError, TypeError):
            raise ValueError(f"{self._log.path}, line {len(lines)}: not a line of a log of labels") from None
        if size == self.count * sample_dtype.itemsize:
            return None
        records = size // sample_dtype.itemsize
        torn = lines.pop() if lines and records < self.count else None
        end = lines[-1].value["end"] if lines else 0
        if (
            (not lines and torn is None)
            or records < end
            or (torn is None and records > end)
            or not _are_whole(path, lines)
        ):
            text = f"tells of {self.count:,} records; {path.name} has {records:,}, and not as they were written"
            raise ValueError(f"{self._log.path} {text}")
        self.count = end
        if torn is None:
            return None
        self.done.discard(_key(torn))
        return torn.offset

    def append(self, block: str, labels: Labels, samples: np.ndarray) -> None:
        """Add the positions of a block."""
        data = samples.tobytes()
        self.count += len(samples)
        self._log.append({"block": block, "labels": labels, "end": self.count, "crc": zlib.crc32(data)})
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._opened.close()


def _key(line: JournalLine) -> tuple[Any, ...]:
    return (line.value["block"], *line.value["labels"])


def _are_whole(path: Path, lines: Sequence[JournalLine]) -> bool:
    """Tell whether the records that these lines tell of are as they were written; where a line does not say, no."""
    end = 0
    with path.open("rb") as file:
        for line in lines:
            data = file.read((line.value["end"] - end) * sample_dtype.itemsize)
            end = line.value["end"]
            if line.value.get("crc") != zlib.crc32(data):
                return False
    return True


def read_labels(path: Path) -> np.ndarray:
    """Return the positions of a file, mapped. Raises OSError."""
    return np.memmap(path, sample_dtype, "r", shape=(path.stat().st_size // sample_dtype.itemsize,))


def training_blocks(path: Path) -> Iterator[tuple[str, list[Game]]]:
    """Yield the name of each block of a file, and its games that are not for testing. Raises OSError and Torn."""
    number = 0
    for i, block in enumerate(read_blocks(path)):
        games = [game for place, game in enumerate(block.games, number) if place % TEST_EVERY != TEST_EVERY - 1]
        number += len(block.games)
        yield f"{path.stem} {i}", games


def label_files(
    paths: Sequence[Path], labels: Labels, target: LabelFile, jobs: int, network: str | None = None
) -> Iterator[tuple[int, int]]:
    """Label the blocks that the target has not; yields after each how many blocks are done, and of how many.

    Raises OSError and Torn.
    """
    tasks = [task for path in paths for task in training_blocks(path) if (task[0], *labels) not in target.done]
    with closing(share_out(partial(_make, labels, network), tasks, jobs)) as answers:
        for done, (place, samples) in enumerate(answers, 1):
            target.append(tasks[place][0], labels, samples)
            yield done, len(tasks)
