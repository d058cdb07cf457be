"""The wheel that is built from a checkout holds every module."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from paths import REPOSITORY

BUILD = "from setuptools import build_meta; print(build_meta.build_wheel('wheels'))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in it."""
    checkout = tmp_path_factory.mktemp("wheel") / "checkout"
    checkout.mkdir()
    for folder in ("core", "parallel"):
        shutil.copytree(REPOSITORY / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / file, checkout)
    subprocess.run([sys.executable, "-c", BUILD], cwd=checkout, capture_output=True, text=True, timeout=200, check=True)
    (built,) = (checkout / "wheels").glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize(("folder", "package"), [("parallel", "psearch"), ("core", "psearch/core")])
def test_no_module_is_missing(wheel: set[str], folder: str, package: str) -> None:
    root = REPOSITORY / folder
    files = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    names = {f"{package}/{path.relative_to(root).as_posix()}" for path in files}
    assert len(names) > 30
    assert names <= wheel


def test_nothing_else_is_in_it(wheel: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel if ".dist-info" not in name} == {"psearch"}
    rest = {name for name in wheel if Path(name).suffix not in (".py", ".typed") and ".dist-info" not in name}
    assert not {name for name in rest if not name.startswith("psearch/web/static/")}
