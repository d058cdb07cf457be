"""The raw log of a study: written line by line, read back plain, compressed, and as one of several in a file."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from compare_logs import log_name

from psearch.files import raw_log
from psearch.files.raw_log import RawLog, read_log, source_commit
from psearch.results import PsearchError
from psearch.version import __version__


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
    """Several logs in one compressed file."""
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
