"""Text files: pipes and devices, encodings, lines that never end, memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest
from limits import PEAK_KIB, open_files

from psearch.results import PsearchError
from psearch.text import source as source_module
from psearch.text.source import Source, Stream, open_source, parse_lines, parse_stream, read_source


def text_of(source: Source) -> str:
    return "".join(line.text for line in source.lines())


def test_it_can_be_read_again_and_in_parts(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes("\ufeffä\nb\r\n\nlast".encode())
    source = read_source(str(file))
    assert [line.text for line in source.lines()] == ["ä\n", "b\r\n", "\n", "last"]
    begins = [line.begin for line in source.lines()]
    assert begins == [0, 6, 9, 10]
    assert source.text_between(begins[1], begins[3]) == "b\r\n\n"
    assert text_of(source) == "ä\nb\r\n\nlast"


def test_it_stays_as_it_was(tmp_path: Path) -> None:
    """A program that writes to the file meanwhile does not add to the analysis."""
    file = tmp_path / "x"
    file.write_text("one\n")
    source = read_source(str(file))
    with file.open("a") as more:
        more.write("two\n")
    assert text_of(source) == "one\n"
    os.truncate(file, 0)
    assert text_of(source) == ""


def test_a_pipe_is_waited_for_and_read_twice(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(b"a\xfcb\n" * 100_000,))
    writer.start()
    source = read_source(str(fifo))
    writer.join()
    assert text_of(source) == text_of(source) == "aüb\n" * 100_000


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_devices_without_end(device: str) -> None:
    with pytest.raises(PsearchError, match=f"{device} is not a text file"):
        read_source(device)


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(source_module, "_BLOCK", 1 << 10)
    monkeypatch.setattr(source_module, "_LONGEST_LINE", 1 << 20)
    file = tmp_path / "x"
    file.write_bytes(b"a\n" + b"x" * (1 << 20) + b"\n")
    assert len(list(read_source(str(file)).lines())) == 2
    file.write_bytes(b"a\n" + b"x" * (1 << 20) + b"y\n")
    with pytest.raises(PsearchError, match="x, line 2: longer than 1 MiB"):
        read_source(str(file))


def test_a_pipe_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "_MOST_COPIED", 1 << 20)
    reader, writer = os.pipe()
    with subprocess.Popen(["yes"], stdout=writer) as endless:
        os.close(writer)
        with pytest.raises(PsearchError, match="does not end within"):
            read_source(f"/dev/fd/{reader}")
        os.close(reader)
        endless.kill()


def test_one_line_is_in_memory_at_a_time(tmp_path: Path) -> None:
    """The file has 60 MB."""
    file = tmp_path / "x.epd"
    with file.open("wb") as out:
        for _ in range(60):
            out.write((b"#" * 4_999 + b"\n") * 200)
        out.write(b"end\n")
    program = f"""
{PEAK_KIB}
from psearch.text.source import parse_lines, read_source
before = peak_kib()
source = read_source({str(file)!r})
assert list(parse_lines(source, lambda text, number: text)) == ["end"]
print(peak_kib() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert int(done.stdout) < 20_000


def test_numbers_of_lines_count_all_ends() -> None:
    found = parse_lines(Source.of_text("x", "a\r\nb\rc\x0b\n# no\nd"), lambda text, number: (number, text))
    assert list(found) == [(1, "a"), (2, "b"), (3, "c"), (6, "d")]


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a\n")
    before = open_files()
    for _ in range(20):
        text_of(read_source(str(tmp_path / "x")))
        text_of(Source.of_text("y", "b\n"))
    assert open_files() == before


@pytest.fixture
def piped() -> Iterator[tuple[Stream, FileIO]]:
    """A stream, and where to write."""
    reader, writer = os.pipe()
    stream = Stream("a pipe", reader)
    with open(writer, "wb", buffering=0) as file:
        yield stream, file


def test_lines_of_a_pipe_are_there_as_soon_as_they_are_written(piped: tuple[Stream, FileIO]) -> None:
    stream, writer = piped
    lines = stream.lines()
    assert [next(lines), next(lines)] == [None, None]
    writer.write(b"\xef\xbb\xbfone\nt")
    assert [next(lines), next(lines)] == ["one\n", None]
    writer.write("wö\n\nthree".encode())
    assert [next(lines), next(lines), next(lines)] == ["twö\n", "\n", None]
    writer.close()
    assert list(lines) == ["three"]


def test_what_was_looked_at_first_comes_again(piped: tuple[Stream, FileIO]) -> None:
    stream, writer = piped
    writer.write(b"one\ntwo\nthr")
    first = stream.first_lines()
    assert [next(first), next(first)] == ["one\n", "two\n"]
    lines = stream.lines()
    assert [next(lines), next(lines), next(lines)] == ["one\n", "two\n", None]


def test_a_pipe_that_was_looked_at_is_copied_from_its_beginning(piped: tuple[Stream, FileIO]) -> None:
    stream, writer = piped
    writer.write(b"one\ntwo\nthr")
    assert next(stream.first_lines()) == "one\n"
    writer.write(b"ee")
    writer.close()
    source = stream.copied()
    assert text_of(source) == text_of(source) == "one\ntwo\nthree"


def test_a_pipe_of_no_text(piped: tuple[Stream, FileIO], monkeypatch: pytest.MonkeyPatch) -> None:
    stream, writer = piped
    lines = stream.lines()
    writer.write(b"one\nM\xfcller\n")
    assert [next(lines), next(lines)] == ["one\n", "Müller\n"]
    monkeypatch.setattr(source_module, "_LONGEST_LINE", 1 << 10)
    writer.write(b"x" * 600)
    assert next(lines) is None
    writer.write(b"x" * 600)
    with pytest.raises(PsearchError, match="a pipe, line 3: longer than"):
        next(lines)
    reader, other = os.pipe()
    os.write(other, b"a\0b\n")
    with pytest.raises(PsearchError, match="a pipe is not a text file"):
        next(Stream("a pipe", reader).lines())
    os.close(other)


def test_a_line_of_a_pipe_is_named_by_its_number(piped: tuple[Stream, FileIO]) -> None:
    stream, writer = piped
    writer.write(b"1\n# no\n\n2\nx\n")
    parsed = parse_stream(stream, lambda text, number: (number, int(text)))
    assert [next(parsed), next(parsed)] == [(1, 1), (4, 2)]
    with pytest.raises(PsearchError, match="a pipe, line 5: invalid literal"):
        next(parsed)


def test_files_are_no_streams_unless_somebody_has_read_of_them(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("one\ntwo\n")
    assert isinstance(open_source(str(file)), Source)
    with file.open("rb", buffering=0) as opened:
        opened.read(4)
        rest = open_source(f"/proc/self/fd/{opened.fileno()}")  # opened anew
        assert isinstance(rest, Source)
    assert list(Stream("x", os.open(file, os.O_RDONLY)).lines()) == ["one\n", "two\n"]
    assert isinstance(open_source("/dev/null"), Stream)
