"""The wheel that is built from a checkout holds every module."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from paths import REPOSITORY

from psearch_core.chess.evaluation.network_file import default_network

BUILD = "from setuptools import build_meta; print(build_meta.build_wheel('wheels'))"


GIT = ("git", "-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "commit.gpgsign=false")
HAS_GIT = shutil.which("git") is not None


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a checkout; from a clone of a commit where there is git."""
    checkout = tmp_path_factory.mktemp("wheel") / "checkout"
    checkout.mkdir()
    for folder in ("core", "parallel"):
        shutil.copytree(REPOSITORY / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / file, checkout)
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")) if HAS_GIT else ():
        subprocess.run([*GIT, *command], cwd=checkout, timeout=60, check=True)
    subprocess.run([sys.executable, "-c", BUILD], cwd=checkout, capture_output=True, text=True, timeout=200, check=True)
    (built,) = (checkout / "wheels").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> set[str]:
    """The names of the files in it."""
    with zipfile.ZipFile(wheel_file) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize(("folder", "package"), [("parallel", "psearch"), ("core", "psearch_core")])
def test_no_module_is_missing(wheel: set[str], folder: str, package: str) -> None:
    root = REPOSITORY / folder / package
    files = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    names = {f"{package}/{path.relative_to(root).as_posix()}" for path in files}
    assert len(names) > 30
    assert names <= wheel


def test_it_is_not_the_psearch_of_others(wheel: set[str]) -> None:
    """The package index has another distribution of that name: what is installed by name has to be this one."""
    assert {name.split("-")[0] for name in wheel if ".dist-info" in name} == {"psearch_chess"}


def test_nothing_else_is_in_it(wheel: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel if ".dist-info" not in name} == {"psearch", "psearch_core"}
    rest = {name for name in wheel if Path(name).suffix not in (".py", ".typed") and ".dist-info" not in name}
    rest -= {"psearch/commit.txt", f"psearch_core/chess/evaluation/psearch-{default_network().name}.net"}
    rest -= {"psearch/text/openings.tsv.xz"}
    assert not {name for name in rest if not name.startswith("psearch/faces/web/static/")}


@pytest.mark.skipif(not HAS_GIT, reason="git is not installed")
def test_what_is_installed_names_its_commit(wheel_file: Path, tmp_path: Path) -> None:
    head = subprocess.run([*GIT, "rev-parse", "HEAD"], cwd=wheel_file.parents[1], capture_output=True, check=True)
    with zipfile.ZipFile(wheel_file) as archive:
        archive.extractall(tmp_path)
    command = "from psearch.files.raw_log import source_commit as c; import psearch; print(psearch.__file__, c())"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True
    )
    where, commit = done.stdout.split()
    assert Path(where).is_relative_to(tmp_path)
    assert len(commit) >= 10 and head.stdout.decode().startswith(commit)
