"""The page's scripts: unit tests, and what a linter would find."""

from __future__ import annotations

import json
import lzma
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import REPOSITORY

import psearch
from psearch.text.pgn_text import split_games
from psearch.text.source import Source

STATIC = Path(str(psearch.__file__)).parent / "faces" / "web" / "static"
SCRIPTS = {path.name: path.read_text("utf-8") for path in sorted(STATIC.glob("*.js"))}
UNIT_TESTS = Path(__file__).with_name("scripts.test.mjs")


@pytest.fixture(scope="module")
def node() -> str:
    """Return Node.js: the system's, or the one that Playwright brings."""
    if found := shutil.which("node"):
        return found
    playwright = pytest.importorskip("playwright", reason="neither Node.js nor playwright (pip install '.[dev]')")
    return str(Path(playwright.__file__).parent / "driver" / "node")


def test_units(node: str, tmp_path: Path) -> None:
    for name in SCRIPTS:
        shutil.copy(STATIC / name, tmp_path)
    shutil.copy(UNIT_TESTS, tmp_path)
    (tmp_path / "package.json").write_text(json.dumps({"type": "module"}))
    done = subprocess.run([node, "--test", UNIT_TESTS.name], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_are_cut_as_the_reader_cuts_them(node: str, tmp_path: Path) -> None:
    """Each begins where `psearch analyse` sees it begin, in games of masters, of engines, and without tags."""
    for name in SCRIPTS:
        shutil.copy(STATIC / name, tmp_path)
    (tmp_path / "package.json").write_text(json.dumps({"type": "module"}))
    (tmp_path / "cut.js").write_text(
        'import fs from "node:fs";\nimport { cutGames } from "./games.js";\n'
        'console.log(JSON.stringify(cutGames(fs.readFileSync(0, "utf8"))));\n'
    )
    texts = [path.read_text("utf-8") for path in sorted((REPOSITORY / "tests/data/games").glob("*.pgn"))]
    texts.append(lzma.decompress((REPOSITORY / "docs/measurements/games/toga2-5s-0.05s.pgn.xz").read_bytes()).decode())
    texts.append("1. e4 (1. d4 {1. c4} d5) e5\n\n1. d4 {open d5 *\n\n1. c4 1-0 1. b4 *\n")
    within = "( { other } 1. d4 d5 ) 1... e5 ( $5 1... c5 ( 1... e6 ) 2. c3 ) ( ; x (\n 1. f4 ) 2. Nf3 *"
    texts.append("".join(f'[Event "{number}"]\n\n1. e4 {within}\n\n' for number in range(4)))
    for text in texts:
        source = Source.of_text("a file", text)
        wanted = [source.text_between(game.begin, game.end) for game in split_games(source)]
        done = subprocess.run([node, "cut.js"], cwd=tmp_path, input=text, capture_output=True, text=True, timeout=60)
        assert len(wanted) > 3 and json.loads(done.stdout) == wanted


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_a_module_without_mistakes_of_grammar(name: str, node: str) -> None:
    command = [node, "--check", "--input-type=module"]
    done = subprocess.run(command, input=SCRIPTS[name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def uses(word: str, code: str) -> int:
    return len(re.findall(rf"\b{word}\b", code))


def complaints(scripts: dict[str, str], tested: str = "") -> Iterator[str]:
    """Yield what is imported or declared and never used, what is exported for nobody, and loose comparisons.

    tested: the unit tests; for them a name may be exported that its own script uses, too.
    """
    codes = {name: re.sub(r"(?m)^\s*//.*$|\s// .*$", "", text) for name, text in scripts.items()}
    wanted: dict[str, set[str]] = {name: set() for name in scripts}
    for name, code in codes.items():
        for names, source in re.findall(r"import \{([^}]*)\} from \"\./([\w-]+\.js)\"", code):
            for word in re.findall(r"\w+", names):
                wanted[source].add(word)
                if uses(word, code) < 2:
                    yield f"{name}: {word} is imported and not used"
        for source, word in re.findall(r"import\(\"\./([\w-]+\.js)\"\)\)\.(\w+)", code):
            wanted[source].add(word)
        for word in re.findall(r"(?m)^\s*(?:const|let|function|class) (\w+)", code):
            if uses(word, code) < 2:
                yield f"{name}: {word} is declared and not used"
        if re.search(r"\bvar |[^=!<>]==[^=]|!=[^=]", code):
            yield f"{name}: var, == or !="
    for name, code in codes.items():
        for word in re.findall(r"(?m)^export (?:async )?(?:const|function|class) (\w+)", code):
            if word not in wanted[name] and not (uses(word, code) > 1 and uses(word, tested)):
                yield f"{name}: {word} is exported for nobody"


def test_nothing_is_imported_declared_or_exported_for_nothing() -> None:
    assert not list(complaints(SCRIPTS, UNIT_TESTS.read_text("utf-8")))


def test_the_linter_finds_what_it_is_for() -> None:
    bad = {
        "a.js": 'import { one, two } from "./b.js";\nconst idle = 1;\none();\nif (two == 2) one();\n',
        "b.js": "export const one = () => 1;\nexport const two = 2;\nexport const three = 3;\nlet used = 1;\nused++;\n",
        "c.js": 'import { one } from "./b.js";\n// one\n',
    }
    assert list(complaints(bad)) == [
        "a.js: idle is declared and not used",
        "a.js: var, == or !=",
        "c.js: one is imported and not used",
        "b.js: three is exported for nobody",
    ]
    only = complaints({"a.js": "export const one = 1;\nexport const two = one;\n"}, "one two")
    assert list(only) == ["a.js: two is exported for nobody"]
