"""Text files as the user names them; `-` is standard input."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from psearch.results import PsearchError

STANDARD_STREAM = "-"

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class Source:
    """A text and where it is from."""

    name: str
    """for messages"""
    text: str
    sha256: str
    """of the bytes"""


def read_source(file: str, encodings: tuple[str, ...] = ("utf-8-sig", "latin-1")) -> Source:
    """Read a whole file, `-` for standard input. Raises PsearchError when it cannot be read or is no text."""
    name = "standard input" if file == STANDARD_STREAM else file
    try:
        if file == STANDARD_STREAM:
            data = sys.stdin.buffer.read() if sys.stdin else b""
        else:
            data = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise PsearchError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
    text = None if b"\0" in data else _decode(data, encodings)
    if text is None:
        raise PsearchError(f"{name} is not a text file")
    return Source(name, text, hashlib.sha256(data).hexdigest())


def _decode(data: bytes, encodings: tuple[str, ...]) -> str | None:
    for encoding in encodings:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def parse_lines(source: Source, parse: Callable[[str, int], Parsed]) -> list[Parsed]:
    """What `parse` makes of each line and its number, from 1; lines that are empty or begin with # are left out.

    Raises PsearchError, naming source and line, for the first that `parse` refuses with a ValueError or PsearchError.
    """
    parsed = []
    for number, line in enumerate(source.text.splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            try:
                parsed.append(parse(text, number))
            except (PsearchError, ValueError) as error:
                raise PsearchError(f"{source.name}, line {number}: {error}") from None
    return parsed
