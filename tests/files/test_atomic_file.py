"""A file that is replaced as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from psearch.files.safe_files import AtomicFile


def test_nothing_is_replaced_before_the_commit(tmp_path: Path) -> None:
    place, part = tmp_path / "out", tmp_path / "out.part"
    place.write_text("old")
    place.chmod(0o640)
    with AtomicFile(place, part) as file:
        file.write("new, \u2654\n")
        file.stream.flush()
        assert (place.read_text(), part.read_text("utf-8")) == ("old", "new, \u2654\n")
        file.commit()
        assert place.read_text("utf-8") == "new, \u2654\n"
    assert place.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["out"]


def test_without_a_commit_nothing_has_happened(tmp_path: Path) -> None:
    place, part = tmp_path / "out", tmp_path / "out.part"
    with pytest.raises(RuntimeError), AtomicFile(place, part) as file:
        file.write("half")
        raise RuntimeError
    assert not os.listdir(tmp_path)


def test_a_full_disk_is_told_by_the_name_of_the_part(tmp_path: Path) -> None:
    """The limit on the size of a file stands for it."""
    program = f"""
import resource
from pathlib import Path
from psearch.files.safe_files import AtomicFile
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
with AtomicFile(Path({str(tmp_path / "out")!r}), Path({str(tmp_path / "part")!r})) as file:
    file.write("x" * 1000)
    file.commit()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert f"File too large: '{tmp_path / 'part'}'" in done.stderr.splitlines()[-1]
    assert not os.listdir(tmp_path)


def test_a_link_in_the_place_of_the_part_is_not_followed(tmp_path: Path) -> None:
    """Others who may write to the folder know the name of the part."""
    place, part, target = tmp_path / "out", tmp_path / "out.part", tmp_path / "precious"
    target.write_text("precious")
    part.symlink_to(target)
    with AtomicFile(place, part) as file:
        file.write("new")
        file.commit()
    assert (target.read_text(), place.read_text()) == ("precious", "new")
    assert not place.is_symlink()


def test_the_part_of_a_run_that_was_killed_goes(tmp_path: Path) -> None:
    place, part = tmp_path / "out", tmp_path / "out.part"
    part.write_text("a longer text of long ago")
    with AtomicFile(place, part) as file:
        file.write("new")
        file.commit()
    assert place.read_text() == "new"
    part.mkdir()
    with pytest.raises(IsADirectoryError):
        AtomicFile(place, part)
