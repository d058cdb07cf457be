"""Files that may be replaced, and files that stay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from psearch.files.own_kind import check_replaceable, is_png
from psearch.results import PsearchError


def check(path: Path) -> None:
    check_replaceable(path, "a PNG picture", is_png)


def test_our_own_kind_and_nothing_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "x"
    check(file)
    for contents in (b"", b" \n", b"\x89PNG\r\n\x1a\n and the rest"):
        file.write_bytes(contents)
        check(file)
    check(Path("/dev/null"))


@pytest.mark.parametrize("contents", [b"alias ls=ls\n", b"\x89PNX", b"\0" * 100_000])
def test_anything_else_stays(tmp_path: Path, contents: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(contents)
    with pytest.raises(PsearchError, match="x is not a PNG picture, and is not replaced"):
        check(file)
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(PsearchError, match="link is not a PNG picture"):
        check(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_looked_at_stays(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"secret")
    file.chmod(0o200)
    with pytest.raises(PsearchError, match="Permission denied"):
        check(file)
