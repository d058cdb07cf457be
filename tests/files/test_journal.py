"""Append-only files of JSON and the raw log of a study: what a kill, a full disk or a second process leaves of them."""

from __future__ import annotations

import errno
import fcntl
import json
import lzma
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from compare_logs import log_name

from psearch.files import raw_log
from psearch.files.raw_log import RawLog, read_log, source_commit
from psearch.files.safe_files import DamagedLine, Journal
from psearch.results import PsearchError
from psearch.version import __version__

VALUES: list[Any] = [{"a": 1}, {"b": "\u2654" * 20_000}, ["c"]]


def values(journal: Journal) -> list[Any]:
    return [line.value for line in journal.lines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_lines_come_back(path: Path) -> None:
    with Journal(path) as journal:
        offsets = [journal.append(value) for value in VALUES]
        assert [journal.value_at(offset) for offset in offsets] == VALUES
    with Journal(path) as journal:
        assert [(line.number, line.offset, line.value) for line in journal.lines()] == [
            (number, offset, value) for number, (offset, value) in enumerate(zip(offsets, VALUES, strict=True), 1)
        ]
        journal.append("last")
    with Journal(path) as journal:
        assert values(journal) == [*VALUES, "last"] and journal.torn == b""


def test_cut_off_anywhere_it_loses_one_line_at_most(path: Path) -> None:
    small = ["one", {"two": 2}, 3]
    with Journal(path) as journal:
        for value in small:
            journal.append(value)
    whole = path.read_bytes()
    ends = [offset + 1 for offset, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        kept = sum(end <= length for end in ends)
        with Journal(path) as journal:
            assert values(journal) == small[:kept]
            assert journal.torn == whole[ends[kept - 1] if kept else 0 : length]
            journal.cut()
            for value in small[kept:]:
                journal.append(value)
        assert path.read_bytes() == whole


def test_what_is_cut_off_or_begun_afresh_is_gone(path: Path) -> None:
    with Journal(path) as journal:
        offsets = [journal.append(value) for value in VALUES]
        journal.cut(offsets[1])
        journal.append("other")
        assert values(journal) == [VALUES[0], "other"]
    with Journal(path, fresh=True) as journal:
        journal.append(1)
    assert path.read_bytes() == b"1\n"


def test_one_process_at_a_time(path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from psearch.files.safe_files import Journal
try:
    Journal(Path({str(path)!r}), fresh=True)
except BlockingIOError as error:
    sys.exit(error.filename)
"""

    def open_elsewhere() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    with Journal(path) as journal:
        journal.append(1)
        values(journal)
        assert open_elsewhere().stderr == f"{path}\n"
        assert path.read_bytes() == b"1\n"
    assert open_elsewhere().returncode == 0


def test_after_a_full_disk_the_next_line_takes_the_place(path: Path) -> None:
    """The limit on the size of a file stands for it: a write comes short, the next one fails."""
    program = f"""
import resource
from pathlib import Path
from psearch.files.safe_files import Journal
with Journal(Path({str(path)!r})) as journal:
    journal.append(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, 100))
    try:
        journal.append("x" * 100)
    except OSError as error:
        print(error.filename, Path(error.filename).stat().st_size)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    journal.append("y")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"{path} 50\n", "")
    assert path.read_bytes() == b'1\n"y"\n'


def test_every_line_waits_for_the_disk_if_it_should(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    for interval, count in ((0.0, 2), (3600.0, 0)):
        with Journal(path, fresh=True, sync_interval_s=interval) as journal:
            journal.append(1)
            journal.append(2)
        assert len(synced) == count
        synced.clear()


def test_what_is_no_file_gets_the_lines_too() -> None:
    reader, writer = os.pipe()
    with Journal(Path(f"/proc/self/fd/{writer}"), fresh=True) as journal:
        journal.append([1])
    os.close(writer)
    assert os.read(reader, 100) == b"[1]\n"
    os.close(reader)


def test_a_fifo_must_have_a_reader(path: Path) -> None:
    """A write must not wait for ever once the reader has left, as it would if this program held a reading end."""
    os.mkfifo(path)
    with pytest.raises(OSError, match="No such device"):
        Journal(path, fresh=True)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with Journal(path, fresh=True) as journal:
        journal.append(1)
        assert os.read(reader, 10) == b"1\n"
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            journal.append(2)


def test_a_journal_that_another_program_has_cut_does_not_wait_for_its_line(path: Path) -> None:
    with Journal(path) as journal:
        journal.append("one")
        offset = journal.append("two")
        os.truncate(path, offset + 2)
        with pytest.raises(ValueError, match=f"no line begins at {offset}"):
            journal.value_at(offset)
        os.truncate(path, 0)
        with pytest.raises(ValueError, match="no line begins"):
            journal.value_at(0)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *((number, None) for number in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)),
        *((number, BlockingIOError) for number in (errno.EAGAIN, errno.EACCES)),
        (errno.EIO, OSError),
    ],
)
def test_a_file_system_without_locks_is_told_from_another_process_and_from_errors(
    path: Path, number: int, kind: type[OSError] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lockf(*arguments: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    if kind is not None:
        with pytest.raises(kind, match=os.strerror(errno.EAGAIN if kind is BlockingIOError else number)):
            Journal(path)
        return
    with Journal(path) as journal:
        journal.append(1)
    assert path.read_bytes() == b"1\n"


ODD = {"no JSON": b"\xff", "deep": b"[" * 100_000, "long number": b"9" * 5_000, "open": b"{" * 50_000}


@pytest.mark.parametrize("line", ODD.values(), ids=ODD)
def test_a_damaged_line_is_named(path: Path, line: bytes) -> None:
    path.write_bytes(b"1\n" + line + b"\n3\n")
    with Journal(path) as journal, pytest.raises(DamagedLine, match="line 2 is not JSON") as caught:
        values(journal)
    assert caught.value.number == 2


def test_a_line_without_end_is_not_read_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psearch.files.safe_files._LONGEST_LINE", 1000)
    path.write_bytes(b"1\n" + b"x" * 5000)
    with Journal(path) as journal, pytest.raises(DamagedLine, match="line 2"):
        list(journal.lines())


@dataclass(frozen=True)
class Sample:
    position: str
    nodes: int


SAMPLES = [Sample("a", 1000), Sample("b", 2000)]


def test_log_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with RawLog(path, {"suite": "x.epd"}) as log:
        for sample in SAMPLES:
            log.add(sample)
            assert read_log(path, Sample)[0][-1] == sample, "a line must be there before the next search"
        log.note(ceilings={2: 1.9})
    samples, facts = read_log(path, Sample)
    assert samples == SAMPLES
    assert facts["about"]["suite"] == "x.epd"
    assert facts["about"]["machine"]["cores"] >= 1
    assert facts["about"]["commit"] == source_commit()
    assert facts["ceilings"] == {"2": 1.9}
    assert all(isinstance(json.loads(line), dict) for line in path.read_text().splitlines())


@pytest.mark.parametrize("text", ["rubbish\n", "[1, 2]\n", '{"position": "a"}\n', '{"about": {}}\n', ""])
def test_what_is_no_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(PsearchError):
        read_log(path, Sample)


def test_scores_may_be_negative(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Scored:
        position: str
        score: int

    path = tmp_path / "log.jsonl"
    with RawLog(path, {}) as log:
        log.add(Scored("a", -49))
    assert read_log(path, Scored)[0] == [Scored("a", -49)]


def test_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with RawLog(path, {}) as log:
        for sample in SAMPLES:
            log.add(sample)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert read_log(path, Sample)[0] == SAMPLES
    path.write_bytes(whole[:-2])
    assert read_log(path, Sample)[0] == SAMPLES[:1]


def test_one_study_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    program = f"""
import sys
from pathlib import Path
from psearch.results import PsearchError
from psearch.files.raw_log import RawLog
try:
    RawLog(Path({str(path)!r}), {{}})
except PsearchError as error:
    sys.exit(str(error))
"""
    with RawLog(path, {}) as log:
        log.add(SAMPLES[0])
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr == f"another psearch is writing the log {path}\n"
    assert read_log(path, Sample)[0] == SAMPLES[:1]


def pack(path: Path, **runs: list[Sample]) -> Path:
    with lzma.open(path, "wt", encoding="utf-8") as out:
        for run, samples in runs.items():
            out.write(json.dumps({"about": {"suite": run}, "run": run}) + "\n")
            out.writelines(json.dumps({**asdict(sample), "run": run}) + "\n" for sample in samples)
    return path


def test_compressed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "log.jsonl", tmp_path / "log.jsonl.xz"
    with RawLog(plain, {}) as log:
        log.add(SAMPLES[0])
    packed.write_bytes(lzma.compress(plain.read_bytes()))
    assert read_log(packed, Sample) == read_log(plain, Sample)


def test_one_of_several(tmp_path: Path) -> None:
    path = pack(tmp_path / "study.jsonl.xz", ybw=SAMPLES, lazy=SAMPLES[:1])
    samples, facts = read_log(Path(f"{path}#lazy"), Sample)
    assert samples == SAMPLES[:1] and facts == {"about": {"suite": "lazy"}}
    assert read_log(Path(f"{path}#ybw"), Sample)[0] == SAMPLES
    with pytest.raises(PsearchError, match=r"holds several logs: choose one with study.jsonl.xz#RUN, of ybw, lazy$"):
        read_log(path, Sample)
    with pytest.raises(PsearchError, match=r"has no run root; there are ybw, lazy$"):
        read_log(Path(f"{path}#root"), Sample)


def test_a_line_is_counted_in_the_whole_file(tmp_path: Path) -> None:
    path = pack(tmp_path / "study.jsonl.xz", ybw=SAMPLES, lazy=[])
    with lzma.open(path, "at") as out:
        out.write('{"position": "a", "run": "lazy"}\n')
    with pytest.raises(PsearchError, match=r"study.jsonl.xz, line 5: "):
        read_log(Path(f"{path}#lazy"), Sample)
    assert read_log(Path(f"{path}#ybw"), Sample)[0] == SAMPLES


def test_the_only_log_needs_no_name(tmp_path: Path) -> None:
    path = pack(tmp_path / "study.jsonl.xz", ybw=SAMPLES)
    assert read_log(path, Sample) == read_log(Path(f"{path}#ybw"), Sample)


def test_a_file_with_the_mark_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "log#1.jsonl"
    with RawLog(path, {}) as log:
        log.add(SAMPLES[0])
    assert read_log(path, Sample)[0] == SAMPLES[:1]
    with pytest.raises(PsearchError, match=r"has no run ybw$"):
        read_log(Path(f"{path}#ybw"), Sample)


def test_torn_archive(tmp_path: Path) -> None:
    path = pack(tmp_path / "study.jsonl.xz", ybw=SAMPLES)
    for text in (path.read_bytes()[:-20], b"rubbish"):
        path.write_bytes(text)
        with pytest.raises(PsearchError, match="not a complete xz file"):
            read_log(path, Sample)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/plain.jsonl", "plain"),
        ("a/plain.jsonl.xz", "plain"),
        ("a/study.jsonl.xz#sts-1.5", "sts-1.5"),
        ("a/logs.jsonl.xz#b/c", "b/c"),
    ],
)
def test_names(path: str, name: str) -> None:
    assert log_name(Path(path)) == name


def test_the_commit_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "parallel" / "psearch" / "files" / "raw_log.py"
    monkeypatch.setattr(raw_log, "__file__", str(module))
    assert source_commit() == __version__, "an installed package has no commit"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    module.parent.mkdir(parents=True)
    module.write_text("")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    name = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert source_commit() == name[:10]
    module.write_text("changed")
    assert source_commit() == f"{name[:10]}-dirty"


@pytest.mark.parametrize("value", ["1000", -1, 2**64, 1.5, None, True, [1000]])
def test_values_that_no_search_has(tmp_path: Path, value: object) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({**asdict(SAMPLES[0]), "nodes": value}) + "\n")
    with pytest.raises(PsearchError, match="line 1: not a line of this study's log"):
        read_log(path, Sample)
