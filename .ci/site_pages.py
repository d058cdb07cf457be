"""Make the site's pages of the repository's documents: a hook of mkdocs.

README.md, CONTRIBUTING.md and CHANGELOG.md lie above docs/ and become pages of the site; docs/README.md becomes
`documents.md`. A link to a page or picture of the site is rewritten to where that lies; a link to anything else of the
repository (a folder, a log, a source file) becomes its text, since the site has no copy.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
ABOVE = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)|\[([^\[\]]+)\]\[(\w*)\]")


def on_files(files: Files, config: Any) -> Files:
    """Add the documents that lie above docs/, and move docs/README.md out of the way of the start page."""
    for name, page in ABOVE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    index = files.get_file_from_path("README.md")
    assert index is not None
    files.remove(index)
    files.append(File.generated(config, "documents.md", content=(ROOT / "docs" / "README.md").read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite the links of a page."""
    source = _place_in_repository(page.file.src_uri)
    targets = dict(re.findall(r"^\[([^\]]+)\]: (\S+)$", markdown, re.MULTILINE))

    def rewritten(match: re.Match[str]) -> str:
        mark, text, link, reference, name = match.groups()
        if link is None:
            text, link = reference, targets.get(name or reference, "")
        if not link or re.match(r"[a-z]+:", link) or link.startswith("#"):
            return match[0]
        path, _, anchor = link.partition("#")
        found = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        there = _page_of(found)
        file = files.get_file_from_path(there) if there else None
        if there is None or file is None or file.inclusion.is_excluded():
            return text
        way = posixpath.relpath(there, posixpath.dirname(page.file.src_uri) or ".")
        return f"{mark}[{text}]({way}{'#' * bool(anchor)}{anchor})"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(rewritten, part) for part in parts)


def _place_in_repository(page: str) -> str:
    above = {there: name for name, there in ABOVE.items()}
    return above.get(page) or ("docs/README.md" if page == "documents.md" else f"docs/{page}")


def _page_of(path: str) -> str | None:
    if path in ABOVE:
        return ABOVE[path]
    if not path.startswith("docs"):
        return None
    inside = path.removeprefix("docs").lstrip("/")
    if inside in ("", "README.md"):
        return "documents.md"
    return f"{inside}/README.md" if "." not in posixpath.basename(inside) else inside
