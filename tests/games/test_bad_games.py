"""Mistakes in a game are one line each, with file and line of the function, before any worker starts."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from paths import DATA, REPOSITORY
from programs import processes_in_session

from psearch.games import Game, search
from psearch.games.game_file import move_text, run_file
from psearch.results import PsearchError, WorkerDied
from psearch_core.toolchain import compiler_client
from psearch_core.toolchain.kernel_cache import PlugInError

GOOD = (REPOSITORY / "docs" / "examples" / "tic_tac_toe.py").read_text("utf-8")
TAKE_AWAY = (DATA / "games" / "take_away.py").read_text("utf-8")
_GUESS = "def evaluate(pos):\n    return 0"
_END = "    return has_line(pos.other) or (pos.own | pos.other) == FULL"


class Mistake(NamedTuple):
    name: str
    before: str
    """Text in the good file."""
    after: str
    line: str
    """The message behind the path of the file."""


FILE = [
    Mistake("no name", 'NAME = "tic-tac-toe"', "", ": a game must define NAME, .*; there is no NAME"),
    Mistake("name", '"tic-tac-toe"', "3", ": NAME must be a text of 1 to 60 ASCII characters, not 3"),
    Mistake("position", 'np.dtype([("own", "u8"), ("other", "u8")])', "16", ": POSITION must be like .*"),
    Mistake("large", '("other", "u8")', '("other", "u8", 20)', ": POSITION has 168 bytes: at most 128 are allowed"),
    Mistake("moves", "MOVES = 9", "MOVES = 257", ": MOST_MOVES must be a whole number from 1 to 256, not 257"),
    Mistake("no key", "def key(pos)", "def keys(pos)", ": a game must define .*; there is no key"),
    Mistake("arguments", "def make(pos, move)", "def make(pos)", r":\d+: make takes \(pos\), and is called with .*"),
    Mistake("syntax", "def key(pos):", "def key(pos)", r":\d+: expected ':'"),
    Mistake("import", "import numpy as np", "import nump as np", ":3: ModuleNotFoundError: .*"),
]
"""Mistakes that Python finds."""
TYPES = [
    Mistake("type", "    return pos.own <<", '    return "x" + pos.own <<', r":\d+: key: .*"),
    Mistake("field", "pos.own = 0\n", "pos.mine = 0\n", r":\d+: start: .*mine.*"),
    Mistake("global", "if has_line(pos.other)", "if has_lines(pos.other)", r":\d+: result: .*has_lines.*"),
    Mistake("nothing", _GUESS, "def evaluate(pos):\n    pass", r":\d+: evaluate: it returns nothing"),
    Mistake("float", _GUESS, "def evaluate(pos):\n    return 0.5", r":\d+: evaluate: it returns float64.*"),
    Mistake("raises", "    pos.own = 0\n", "    raise ValueError\n", r":\d+: start: a kernel cannot raise exceptions"),
    Mistake("prints", "    pos.own = 0\n", "    print(1)\n    pos.own = 0\n", r":\d+: start: a kernel cannot print"),
    Mistake(
        "itself", "    for line in LINES:\n", "    has_line(squares)\n    for line in LINES:\n", r":\d+: has_line: .*"
    ),
    Mistake("list", "found[count] = square", "found[count] = [square, count][count]", r":\d+: moves: .*"),
]
"""Mistakes that numba finds."""
RULES = [
    Mistake("none", "    return count", "    return 0", r":\d+: moves: it found 0 moves in a position that has not .*"),
    Mistake("many", "MOVES = 9", "MOVES = 8", r":\d+: moves: it found 9 moves of at most MOST_MOVES = 8"),
    Mistake("twice", "found[count] = square", "found[count] = 4", r":\d+: moves: it found the same move twice"),
    Mistake(
        "score", "return -1 if", "return -10001 if", r":\d+: result: it returned -10001: scores are from -10000 to .*"
    ),
    Mistake("guess", _GUESS, "def evaluate(pos):\n    return 10000", r":\d+: evaluate: it returned 10000: .*"),
    Mistake(
        "key", "pos.own << np.uint64(9) | pos.other", "pos.own & pos.other", r":\d+: key: it is the same before and .*"
    ),
    Mistake(
        "stays", "    pos.other = own\n", "    pos.own, pos.other = own ^ (ONE << np.uint64(move)), pos.own\n", ".*"
    ),
    Mistake("writes", _END, "    pos.own = np.uint64(0)\n" + _END, r":\d+: ended: it changes the position: only .*"),
    Mistake(
        "no end",
        "    pos.other = own\n",
        "    pos.other = own\n    if ended(pos):\n        pos.own = pos.other = np.uint64(0)\n",
        r":\d+: ended: none of 32 random games .*",
    ),
    Mistake(
        "loop",
        _GUESS,
        "def evaluate(pos):\n    n = pos.other\n    while pos.own == pos.own:\n        n += ONE\n    return n",
        r":\d+: evaluate: it did not come back within 10 seconds",
    ),
    Mistake("blank", "return str(move + 1)", "return f'{move} x'", r":\d+: move_text: it must return .*, not '\d x'"),
    Mistake("crash", "found[count] =", "found[count + (1 << 44)] =", r":\d+: moves: it crashes: SIGSEGV"),
]
"""Mistakes that games at random find."""


def told(file: Path) -> str:
    with pytest.raises(PsearchError) as raised:
        Game(file)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    "mistake",
    [*FILE, *TYPES, RULES[0], *(pytest.param(each, marks=pytest.mark.slow) for each in RULES[1:])],
    ids=lambda mistake: mistake.name,
)
def test_a_mistake_is_one_line(mistake: Mistake, tmp_path: Path) -> None:
    assert mistake.before in GOOD
    file = tmp_path / "mine.py"
    file.write_text(GOOD.replace(mistake.before, mistake.after, 1))
    said = told(file)
    assert re.fullmatch(re.escape(str(file)) + mistake.line, said), said


PLAYING = """
import time
import numpy as np
from types import SimpleNamespace
from psearch.games import game_compiler

def start(rule, position, argument):
    print("playing", flush=True)
    time.sleep(1000)

game_compiler._PATIENCE_S = 1000
game_compiler.play(SimpleNamespace(MOST_MOVES=1, POSITION=np.dtype("u8")), "x", {"game_rule": start})
"""


def test_games_at_random_end_with_the_compiler() -> None:
    words = [sys.executable, "-c", PLAYING]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as compiler:
        assert compiler.stdout is not None and compiler.stdout.readline() == "playing\n"
        compiler.kill()
    deadline = time.monotonic() + 60
    while processes_in_session(compiler.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes_in_session(compiler.pid) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gone.py", "No such file or directory"), (".", "it is not a regular file"), ("a\0b", "embedded .*")],
)
def test_what_is_no_file_is_one_line(name: str, reason: str) -> None:
    with pytest.raises(PsearchError, match=f"cannot read the game .*: {reason}"):
        Game(name)


def test_the_search_path_of_modules_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the game is left where it is, too: a script beside the game begins with it."""
    for path in ([str(tmp_path), *sys.path], list(sys.path)):
        monkeypatch.setattr(sys, "path", list(path))
        run_file(str(tmp_path / "mine.py"), GOOD.encode())
        assert sys.path == path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("move", "move_text: it must return a text without blanks, not 4"),
        ("f'{move} x'", "move_text: it must return a text without blanks, not '4 x'"),
        ("str(move // 0)", "move_text: ZeroDivisionError: .*"),
    ],
)
def test_words_that_are_none_are_told(text: str, words: str, tmp_path: Path) -> None:
    file = str(tmp_path / "mine.py")
    module = run_file(file, GOOD.replace("return str(move + 1)", f"return {text}").encode())
    with pytest.raises(PlugInError) as raised:
        move_text(module, np.zeros(1, module.POSITION)[0], 4, file)
    assert re.fullmatch(rf"{re.escape(file)}:\d+: {words}", str(raised.value)), str(raised.value)


def test_moves_that_are_written_alike_are_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(GOOD.replace("return str(move + 1)", 'return "x"'))
    with pytest.raises(PsearchError, match="move_text: it returns the same text for two moves"):
        search(file, "5")


DEEPER = [
    (
        "moves",
        "    return count\n",
        "    return 0 if pos.heap == 44 else count\n",
        "it found no move in a position .*",
    ),
    ("evaluate", "% 41 - 20", "% 41 - 20 + (20000 if pos.heap == 50 else 0)", r"it returned 19985: guesses are .*"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "before", "after", "words"), DEEPER, ids=lambda text: text[:9])
def test_a_mistake_that_games_at_random_do_not_meet_ends_the_search(
    name: str, before: str, after: str, words: str, tmp_path: Path
) -> None:
    assert before in TAKE_AWAY
    file = tmp_path / "mine.py"
    source = TAKE_AWAY.replace(before, after, 1)
    # at random nobody gets there: it ends at once, but where the search begins
    source = source.replace("pos.heap = 60", "pos.heap = 1").replace(
        "def move_text", "def read_position(pos, text):\n    pos.heap = int(text)\n\n\ndef move_text"
    )
    file.write_text(source)
    game = Game(file)
    with pytest.raises(PsearchError) as raised:
        search(game, "55", depth=30, threads=2)
    assert re.fullmatch(rf"{re.escape(str(file))}:\d+: {name}: {words}", str(raised.value)), str(raised.value)


def test_a_game_whose_import_does_not_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_client, "_IMPORT_S", 2.0)
    file = tmp_path / "endless.py"
    file.write_text(GOOD + "\nwhile True:\n    pass\n")
    with pytest.raises(PsearchError, match="importing it takes more than 2 s"):
        Game(file)


def test_what_a_game_prints_is_no_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "talking.py"
    file.write_text("print('hello')\n" + GOOD)
    Game(file)
    out, err = capfd.readouterr()
    assert out == "" and "hello" in err


def test_what_its_functions_print_is_no_answer_and_their_exit_ends_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = """def read_position(pos, text):
    print("reading")
    if text == "exit":
        raise SystemExit(0)


def board_text(pos):
    print("drawing")
    return "a board"


def move_text(pos, move):
    print("naming")
"""
    file = tmp_path / "talking.py"
    file.write_text(GOOD.replace("def move_text(pos, move):\n", words))
    game = Game(file)
    position = game.read("here")
    assert game.board_text(position) == "a board" and position.move_text(position.moves()[0])
    out, err = capfd.readouterr()
    assert out == "" and {"reading", "drawing", "naming"} <= {*err.split()}
    with pytest.raises(PsearchError, match=r"talking\.py:[0-9]+: read_position: SystemExit"):
        game.read("exit")


@pytest.mark.parametrize("name", ["line\nfeed.py", "\udce4.py"])
def test_a_path_that_cannot_be_printed_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(GOOD)
    with pytest.raises(PsearchError, match="the path of a game must have only printable characters"):
        Game(tmp_path / name)


def test_without_a_text_a_game_begins_at_its_start(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    words = "def read_position(pos, text):\n    raise ValueError\n\n\ndef move_text"
    file.write_text(GOOD.replace("def move_text", words))
    game = Game(file)
    assert game.read("  ") == game.start()
    with pytest.raises(PsearchError, match="position 'XO'"):
        game.read("XO")


@pytest.mark.slow
def test_a_crash_ends_workers_and_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    source = TAKE_AWAY.replace("pos.heap * 37 % 41 - 20", "TAKEN_FAR[(55 - pos.heap) << 40]")
    source = source.replace("TAKEN = (1, 2, 3, 5)", "TAKEN = (1, 2, 3, 5)\nTAKEN_FAR = np.array([1, 2])")
    source = source.replace("pos.heap = 60", "pos.heap = 55").replace("pos.heap == 0", "pos.heap < 56")
    source = source.replace("def move_text", "def read_position(pos, text):\n    pos.heap = 100\n\n\ndef move_text")
    file.write_text(source)
    with pytest.raises(WorkerDied, match="as those before it"):
        search(Game(file), "far", depth=60, threads=2)
