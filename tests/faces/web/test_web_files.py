"""The files of the page: what was taken from others is as it came, and nothing comes from elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

import psearch
from psearch.faces.web.server import read_files

STATIC = Path(str(psearch.__file__)).parent / "faces" / "web" / "static"
VENDOR = STATIC / "vendor"
LICENCES = {"GPL-3.0-or-later", "MIT"}


def own_files() -> list[Path]:
    return [path for path in sorted(STATIC.rglob("*")) if path.is_file() and VENDOR not in path.parents]


def test_what_was_taken_from_others_is_as_it_came() -> None:
    listed = json.loads((VENDOR / "manifest.json").read_text("utf-8"))
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert found == {name: sha256 for package in listed.values() for name, sha256 in package["files"].items()}
    for name, package in listed.items():
        assert package["licence"] in LICENCES, name
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"]), name
        assert any("LICENSE" in file for file in package["files"]), name
        assert package["from"].startswith("npm "), name


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in own_files():
        packed = path.read_bytes()
        text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode("utf-8")
        addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"')]*", text)) if path.suffix != ".js" else set()
        assert not addresses - {"//www.w3.org/2000/svg", "http://www.w3.org/2000/svg"}, path.name
        if path.suffix == ".js":
            code = re.sub(r"//.*", "", text)
            assert "eval(" not in code and "innerHTML" not in code and "new Function" not in code, path.name
            for name in re.findall(r"from \"([^\"]+)\"|import\(\"([^\"]+)\"\)", code):
                assert (path.parent / (name[0] or name[1])).is_file(), f"{path.name}: {name}"
        if path.suffix == ".html":
            assert "style=" not in text and not re.search(r"<script(?![^>]*src=)", text)
            for name in re.findall(r"(?:src|href)=\"([^\"]+)\"", text):
                assert (STATIC / name).is_file(), name


def test_each_identifier_that_a_script_asks_for_is_in_the_page() -> None:
    page = (STATIC / "index.html").read_text("utf-8")
    there = re.findall(r"\bid=\"([\w-]+)\"", page)
    assert len(there) == len(set(there))
    for path in own_files():
        if path.suffix == ".js":
            assert set(re.findall(r"byId\(\"([\w-]+)\"\)", path.read_text("utf-8"))) <= set(there), path.name


def test_every_control_has_a_name() -> None:
    page = (STATIC / "index.html").read_text("utf-8")
    for tag in re.findall(r"<(?:input|select|textarea|progress)\b[^>]*>", page, re.DOTALL):
        before = page[: page.index(tag)]
        inside_label = before.rfind("<label") > before.rfind("</label>")
        assert inside_label or "aria-label" in tag, tag


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_contrast(theme: str) -> None:
    light, dark = (STATIC / "colours.css").read_text("utf-8").split("@media", 1)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    if theme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark))
    for name, other in re.findall(r"--([\w-]+): var\(--([\w-]+)\);", light):
        colours[name] = colours[other]
    for ground in ("background", "surface", "raised"):
        for name in ("text", "muted", "accent", "dubious", "mistake", "blunder"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        assert contrast(colours["border"], colours[ground]) >= 3 or ground == "raised"
    assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
    for name in colours:
        if re.match(r"curve|node|searching|joining|wasted", name):
            assert contrast(colours[name], colours["surface"]) >= 3, name


def contrast(one: str, other: str) -> float:
    """Return the contrast that WCAG 2.1 defines, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_only_files_of_the_page_are_served() -> None:
    files = read_files()
    assert {"/", "/app.js", "/page.css", "/icon.svg"} <= files.keys()
    assert not {name for name in files if name.endswith((".json", ".txt", ".py")) or "LICENSE" in name}
    assert "/index.html" not in files
