"""The files of the page, read from the package when the server starts: a request names one of these or nothing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

_STATIC = Path(__file__).parent / "static"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""What else lies there (licences, the list of what was taken from others) is not for the page."""
PAGE = "/"
_PAGE_FILE = "/index.html"


@dataclass(frozen=True)
class StaticFile:
    """What is sent."""

    data: bytes
    kind: str
    """the media type"""
    tag: str
    """the entity tag: changes with the data"""


def read_files() -> dict[str, StaticFile]:
    """Return every file of the page by its path in the address; the page itself is at `/`. Raises OSError."""
    found = {}
    for path in sorted(_STATIC.rglob("*")):
        kind = _KINDS.get(path.suffix)
        if kind is not None and path.is_file():
            data = path.read_bytes()
            tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
            found["/" + path.relative_to(_STATIC).as_posix()] = StaticFile(data, kind, tag)
    found[PAGE] = found.pop(_PAGE_FILE)
    return found
