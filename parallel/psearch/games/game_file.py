"""The file of a game: what it must define, which mistakes it can have, and its functions that stay Python."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from types import ModuleType
from typing import Any

import numpy as np

from psearch.text.values import shown
from psearch_core.toolchain.kernel_cache import PlugInError
from psearch_core.toolchain.kernel_sets import compiled, syntax_mistake

POSITION_BYTES = 128
"""Largest size of a position, in bytes."""
MOST_MOVES = 256
"""Most legal moves in a position."""
LARGEST_MOVE = 65_534
MOST_SCORE = 10_000
"""Largest score of an ended game."""

RULES = {
    "start": ("pos",),
    "moves": ("pos", "found"),
    "make": ("pos", "move"),
    "ended": ("pos",),
    "result": ("pos",),
    "evaluate": ("pos",),
    "key": ("pos",),
}
"""Compiled functions that a file must have, with their arguments."""
WORDS = {
    "move_text": ("pos", "move"),
    "read_position": ("pos", "text"),
    "board_text": ("pos",),
}
"""Functions that stay Python, with their arguments; all but the first may be missing."""

TOO_MANY_MOVES, NO_MOVES, LARGE_MOVE, LARGE_RESULT, LARGE_EVALUATION = range(1, 6)
MISTAKES = {
    TOO_MANY_MOVES: ("moves", f"it found {{}} moves, not 1 to MOST_MOVES = {{most}} (which is at most {MOST_MOVES})"),
    NO_MOVES: ("moves", "it found no move in a position that has not ended"),
    LARGE_MOVE: ("moves", f"it found the move {{}}: moves are numbers from 0 to {LARGEST_MOVE}"),
    LARGE_RESULT: ("result", f"it returned {{}}: scores are from -{MOST_SCORE} to {MOST_SCORE}"),
    LARGE_EVALUATION: ("evaluate", f"it returned {{}}: guesses are from -{MOST_SCORE - 1} to {MOST_SCORE - 1}"),
}
"""Mistakes that a search can notice: the function and the message, in which `{}` stands for the wrong number."""

level_dtype = np.dtype(
    [
        ("position", "u1", (POSITION_BYTES,)),
        ("found", "u2", (MOST_MOVES,)),
        ("count", "i8"),
        ("cursor", "i8"),  # next move; -1: the moves have not been generated
    ]
)
"""Record of one ply of perft."""

BETWEEN = " ,;\t\n"
"""Characters that may separate the moves in a position's text."""
_MOST_LETTERS = 200
_LONGEST_NAME = 60
WANTED = ("NAME", "POSITION", "MOST_MOVES", *RULES, "move_text")
"""Names that a file must define."""


def place_of(function: Callable[..., Any]) -> str:
    """Return file, line and name of a function, for the beginning of a message."""
    function = getattr(function, "py_func", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return getattr(function, "__name__", "?")
    return f"{code.co_filename}:{code.co_firstlineno}: {code.co_name}"


def check_game(names: Mapping[str, Any], file: str) -> None:
    """Raise PlugInError unless the globals of a file define a game."""
    missing = [name for name in WANTED if name not in names]
    if missing:
        raise PlugInError(f"{file}: a game must define {', '.join(WANTED)}; there is no {', '.join(missing)}")
    name, position, most = names["NAME"], names["POSITION"], names["MOST_MOVES"]
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isascii() or not name.isprintable():
        raise PlugInError(f"{file}: NAME must be a text of 1 to {_LONGEST_NAME} ASCII characters, not {shown(name)}")
    if not isinstance(position, np.dtype) or position.names is None or position.hasobject:
        raise PlugInError(f'{file}: POSITION must be like np.dtype([("own", "u8"), ("other", "u8")])')
    if position.itemsize > POSITION_BYTES:
        raise PlugInError(f"{file}: POSITION has {position.itemsize} bytes: at most {POSITION_BYTES} are allowed")
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or not 1 <= most <= MOST_MOVES:
        raise PlugInError(f"{file}: MOST_MOVES must be a whole number from 1 to {MOST_MOVES}, not {shown(most)}")
    for rule, arguments in {**RULES, **WORDS}.items():
        if rule not in names:
            continue
        function: Any = getattr(names[rule], "py_func", names[rule])
        if not inspect.isfunction(function):
            raise PlugInError(f"{file}: {rule} must be a function, not {shown(function)}")
        if len(inspect.signature(function).parameters) != len(arguments):
            words = f"takes {inspect.signature(function)}, and is called with ({', '.join(arguments)})"
            raise PlugInError(f"{place_of(function)} {words}")


def run_file(file: str, source: bytes) -> ModuleType:
    """Run a file in this process, for its functions that stay Python, and return its module. Raises PlugInError."""
    made = ModuleType("game_of_a_user")
    made.__file__ = file
    vars(made)["print"] = _tell
    folder = os.path.dirname(file)
    is_new = folder not in sys.path
    if is_new:
        sys.path.append(folder)
    try:
        with code_of(file), redirect_stdout(sys.stderr):
            exec(compiled(source, file), made.__dict__)
    except SyntaxError as error:
        raise syntax_mistake(error, file) from error
    finally:
        if is_new and folder in sys.path:
            sys.path.remove(folder)
    check_game(vars(made), file)
    return made


def _tell(*values: object, file: Any = None, **how: Any) -> None:
    """Print, in a user's functions: by default to standard error, since it is no answer."""
    print(*values, file=sys.stderr if file is None else file, **how)


@contextmanager
def code_of(file: str) -> Iterator[None]:
    """Run code of a user's file in this process; whatever it raises, even `SystemExit`, becomes PlugInError."""
    try:
        yield
    except (PlugInError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise mistake_of(error, file) from error


def move_text(module: ModuleType, record: Any, move: int, file: str) -> str:
    """Return a move as text. record: the position. Raises PlugInError for an exception of the file's function, and for
    a text that cannot be separated from the next move."""
    with code_of(file):
        text = module.move_text(record, move)
    if not isinstance(text, str) or not text or " " in text or text.strip(BETWEEN) != text or not text.isprintable():
        raise PlugInError(f"{place_of(module.move_text)}: it must return a text without blanks, not {shown(text)}")
    return text


def record_of(module: ModuleType, pos: np.ndarray) -> Any:
    """Return a copy of a position as the record that a file's functions take. pos: the bytes of the position."""
    return pos[: module.POSITION.itemsize].copy().view(module.POSITION).view(np.recarray)[0]


def mistake_of(error: BaseException, file: str) -> PlugInError:
    """Return the error for an exception in a user's code, with the last place in the user's file."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    place = f"{file}:{own[-1].lineno}" if own else file
    name = f" {own[-1].name}:" if own and own[-1].name.isidentifier() else ""
    words = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_LETTERS]
    return PlugInError(f"{place}:{name} {words}")
