"""A user's game for Python programs: its file, its compiled rules, its positions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np

from psearch.defaults import MAX_DEPTH
from psearch.games.game_file import (
    BETWEEN,
    MISTAKES,
    POSITION_BYTES,
    RULES,
    code_of,
    move_text,
    place_of,
    record_of,
    run_file,
)
from psearch.games.rules_process import Rules, RulesProcess
from psearch.options import RULE_HOOKS, check_printable
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels
from psearch.text.values import shown
from psearch_core.toolchain.groups import Progress
from psearch_core.toolchain.kernel_cache import PlugInError, content_hash
from psearch_core.toolchain.kernel_sets import STANDARD, KernelSet, read_plug_in

_ADAPTER = "psearch.games.user_game"
_KIND_BITS = 8
_WIDEST = 60
"""Most characters of moves in a message."""


@contextmanager
def _reported(file: str) -> Iterator[None]:
    """Run code of a user's file, and convert what it raises to PsearchError."""
    try:
        with code_of(file):
            yield
    except PlugInError as error:
        raise PsearchError(str(error)) from error


class Game:
    """The game of a user's file, with its kernels compiled and loaded.

    path: path of the file; progress: gets lines of text during compilation; is_apart: run the rules in this process,
    which may crash with them, not in a separate one. Raises PsearchError, with file and line, for a file that is not a
    game.
    """

    def __init__(self, path: str | os.PathLike[str], progress: Progress | None = None, is_apart: bool = False) -> None:
        name = os.fspath(path)
        self.file = os.path.abspath(name)
        try:
            source = read_plug_in(self.file)
        except (OSError, ValueError) as error:  # ValueError: a null character
            reason = error.strerror if isinstance(error, OSError) else error
            raise PsearchError(f"cannot read the game {shown(name)}: {reason}") from None
        check_printable(self.file, "game", name)
        self.kernels = KernelSet(self.file, "", content_hash(source), adapter=_ADAPTER)
        group = self.kernels.group(SEARCH)
        load_kernels(group, progress=progress)  # first: the compiler runs the file apart, and not for ever
        with _reported(self.file):
            self._module = run_file(self.file, source)
        self.name: str = self._module.NAME
        self._rules = Rules(group) if is_apart else RulesProcess(self.kernels, partial(_place_of, self._module))

    def __reduce__(self) -> tuple[Any, ...]:
        """Read the file again in the other process, and refuse it if it has changed."""
        return _same_game, (self.file, self.kernels.digest, os.getpid())

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of `Rules` and return its result. Raises PsearchError for a rule that crashes or hangs."""
        if isinstance(self._rules, Rules):
            return getattr(self._rules, name)(*arguments)
        try:
            return self._rules.ask(name, *arguments)
        except PlugInError as error:
            raise PsearchError(str(error)) from None

    def start(self) -> GamePosition:
        return GamePosition(self, self.ask("start"))

    def read(self, text: str) -> GamePosition:
        """Return the position that a text describes: moves, or a text for the file's own `read_position`; without
        one the initial position. Raises PsearchError."""
        position = self.start()
        if text.strip() and "read_position" in vars(self._module):
            record, refused = position.record, None
            with _reported(self.file):
                try:
                    self._module.read_position(record, text)
                except ValueError as error:  # the game's way to refuse a text
                    refused = " ".join(str(error).split())
            if refused is not None:
                raise PsearchError(f"position {shown(text)}: {refused}")
            return GamePosition(self, record.tobytes().ljust(POSITION_BYTES, b"\0"))
        rest = text.lstrip(BETWEEN)
        while rest:
            position, rest = position._read_move(text, rest)
        return position

    def board_text(self, position: GamePosition) -> str | None:
        """Return the board as text; None if the file has no `board_text`. Raises PsearchError."""
        if "board_text" not in vars(self._module):
            return None
        with _reported(self.file):
            return str(self._module.board_text(position.record))

    def kernels_with(self, policy: KernelSet) -> KernelSet:
        """Return the kernels of the game with those of a policy. Raises PsearchError for a file with rules of chess."""
        if policy == STANDARD:
            return self.kernels
        rules = sorted(RULE_HOOKS & set(policy.hooks.split()))
        if rules:
            raise PsearchError(f"{shown(policy.file)} replaces {rules[0]}, a rule of chess: it cannot search a game")
        beside = (policy.file, policy.module, policy.digest)
        return replace(self.kernels, beside=beside, words=policy.words + 1)  # the last is for `mistake`

    def mistake(self, word: int) -> PsearchError:
        """Return the mistake that a search has written into the last word of the plug-in's memory."""
        name, words = MISTAKES[word & (1 << _KIND_BITS) - 1]
        number = word >> _KIND_BITS
        text = words.format(number, most=int(self._module.MOST_MOVES))
        return PsearchError(f"{place_of(getattr(self._module, name))}: {text}")


def _place_of(module: ModuleType, rule: str) -> str:
    """Return the place of a rule; the file for any other name."""
    return place_of(vars(module)[rule]) if rule in RULES else f"{module.__file__}{rule and ': '}{rule}"


def _same_game(file: str, digest: str, made_in: int) -> Game:
    game = Game(file, is_apart=os.getpid() != made_in)
    if game.kernels.digest != digest:
        raise PsearchError(f"{file}: it has changed since it was read")
    return game


@dataclass(frozen=True)
class GamePosition:
    """A position of a game; the `Subject` of a search unless the game is over."""

    game: Game
    pos: bytes

    @property
    def record(self) -> Any:
        """Copy of the position as the record that the file's functions take."""
        return record_of(self.game._module, np.frombuffer(self.pos, np.uint8))

    def _ask(self, name: str, *arguments: Any) -> Any:
        return self.game.ask(name, self.pos, *arguments)

    @cached_property
    def _found(self) -> tuple[int, list[int]]:
        """Number of moves, and the moves; -1 and none if the game is over."""
        found: tuple[int, list[int]] = self._ask("look")
        return found

    @property
    def is_over(self) -> bool:
        return self._found[0] < 0

    def result(self) -> int:
        """Return the score of an ended game, for the side to move."""
        return int(self._ask("number", "result"))

    def moves(self) -> list[int]:
        """Return the legal moves, best guess first; none if the game is over. Raises PsearchError."""
        if self.is_over:
            return []
        count, found = self._found
        if not 1 <= count <= int(self.game._module.MOST_MOVES):
            place = place_of(self.game._module.moves)
            raise PsearchError(f"{place}: it found {count} moves in a position that has not ended")
        return list(found)

    def after(self, move: int) -> GamePosition:
        return GamePosition(self.game, self._ask("after", move))

    def move_text(self, move: int) -> str:
        with _reported(self.game.file):
            return move_text(self.game._module, self.record, move, self.game.file)

    def name_of(self, number: int) -> str:
        """Return the text of a move that the search counts from 1; if the game has none for it here, its number."""
        try:
            return self.move_text(number - 1)
        except PsearchError:  # a move of another position
            return str(number - 1)

    def line_text(self, moves: list[int]) -> list[str]:
        """Return the texts of consecutive moves, up to the first that is not legal."""
        line = [GamePosition(self.game, pos) for pos in self._ask("along", moves)]
        return [position.move_text(move) for position, move in zip(line[:-1], moves, strict=False)]

    def perft(self, depth: int) -> int:
        """Return the number of ways to play `depth` moves. Raises PsearchError."""
        if not 0 <= depth <= MAX_DEPTH:
            raise PsearchError(f"the depth of perft must be from 0 to {MAX_DEPTH}, not {shown(depth)}")
        count = int(self._ask("perft", depth))
        if count < 0:
            raise PsearchError(f"{place_of(self.game._module.moves)}: it finds fewer than 0 or more than MOST_MOVES")
        return count

    def _read_move(self, text: str, rest: str) -> tuple[GamePosition, str]:
        """Play the longest move with which the rest of a text begins. Return the position and the rest after it."""
        if self.is_over:
            raise PsearchError(f"position {shown(text)}: the game is over before {shown(rest)}")
        moves = self.moves()
        words = {self.move_text(move): move for move in moves}
        if len(words) < len(moves):
            text = "it returns the same text for two moves of a position"
            raise PsearchError(f"{place_of(self.game._module.move_text)}: {text}")
        fits = [word for word in words if rest.startswith(word)]
        if not fits:
            legal = " ".join(words)
            legal = legal if len(legal) <= _WIDEST else legal[:_WIDEST].rsplit(" ", 1)[0] + " ..."
            raise PsearchError(f"position {shown(text)}: no move begins {shown(rest)}; there are {legal}")
        best = max(fits, key=len)
        return self.after(words[best]), rest[len(best) :].lstrip(BETWEEN)

    @property
    def kernels(self) -> KernelSet:
        return self.game.kernels

    def write_root(self, record: np.ndarray) -> None:
        """Write the position into a record of the search."""
        record.view(np.uint8).reshape(-1)[:POSITION_BYTES] = np.frombuffer(self.pos, np.uint8)
        record["key"] = np.uint64(self._ask("number", "key") & (1 << 64) - 1)

    def root_moves(self) -> list[int]:
        """Return the legal moves as the search counts them, from 1."""
        return [move + 1 for move in self.moves()]

    def static_score(self) -> int:
        return int(self._ask("number", "evaluate"))

    def text(self) -> str:
        """Return the bytes in hexadecimal, since a game may have no other text for a position."""
        return self.pos.rstrip(b"\0").hex()
