"""Checks that sound futility is sound: plain and sound mode side by side, and every skipped move in shadow mode.

One worker, the table off, open windows. In shadow mode sound mode is searched by other kernels (`shadow_kernels`): they
skip nothing, so they search the plain tree, ask at every move whether sound mode would skip it, and compare what the
search finds with the bound. Sound mode then must find the same value and the same set of best moves at the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.lab.studies.study_entries import VIOLATIONS, shadow_dtype, shadow_visit_dtype, work_in_shadow
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch.text.epd_text import SuitePosition
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import NULL_MOVE
from psearch_core.records.pruning_record import SOUND, Pruning
from psearch_core.terms import REST_BOUND

_HASH_MB = 1
"""No table is used, and every arena has one."""
_BURSTS_PER_CALL = 1 << 13
"""Bursts of the search between two chances for Ctrl-C."""


@dataclass(frozen=True)
class Violation:
    """A move that sound futility would have skipped wrongly. Scores are centipawns, in the mover's view."""

    fen: str
    """of the node"""
    move: str
    line: list[str]
    """UCI moves from the root to the node"""
    value: int
    """what the search found"""
    bound: int
    """what the move should be worth at most"""
    exact: int
    """M + B of the position after the move"""
    alpha: int

    def __str__(self) -> str:
        line = " ".join(self.line) or "the root"
        return (
            f"{self.fen} {self.move}: value {self.value}, bound {self.bound} (M + B {self.exact}), "
            f"alpha {self.alpha}, after {line}"
        )


@dataclass(frozen=True)
class RootResult:
    """What a mode found out about a root."""

    value: int
    best: list[str]
    """all moves whose value under an open window is that value; UCI, sorted"""
    nodes: int


@dataclass(frozen=True)
class ModeComparison:
    """One position, in both modes and in shadow mode."""

    name: str
    fen: str
    plain: RootResult | None
    """None: a search took too many nodes"""
    sound: RootResult | None
    checked: int
    violations: int
    examples: list[Violation]
    """the first few"""

    @property
    def agrees(self) -> bool:
        """Whether value and best moves are the same, as far as they are known."""
        if self.plain is None or self.sound is None:
            return True
        return (self.plain.value, self.plain.best) == (self.sound.value, self.sound.best)


@dataclass
class SoundnessSummary:
    """All positions together."""

    positions: int = 0
    too_big: int = 0
    """of them; the moves checked until then count"""
    checked: int = 0
    violations: int = 0
    different_roots: int = 0
    plain_nodes: int = 0
    sound_nodes: int = 0
    bound: int = REST_BOUND
    """B, centipawns"""
    examples: list[Violation] = field(default_factory=list)
    differences: list[ModeComparison] = field(default_factory=list)

    def add(self, compared: ModeComparison, most_examples: int) -> None:
        """Take one position in."""
        self.positions += 1
        self.checked += compared.checked
        self.violations += compared.violations
        if compared.plain is None or compared.sound is None:
            self.too_big += 1
        else:
            self.plain_nodes += compared.plain.nodes
            self.sound_nodes += compared.sound.nodes
        self.examples += compared.examples[: max(0, most_examples - len(self.examples))]
        if not compared.agrees:
            self.different_roots += 1
            if len(self.differences) < most_examples:
                self.differences.append(compared)

    @property
    def saving(self) -> float:
        """Share of the plain nodes that sound mode does without."""
        return 1 - self.sound_nodes / self.plain_nodes if self.plain_nodes else 0.0

    @property
    def sound(self) -> bool:
        """Whether nothing speaks against it."""
        return self.violations == 0 and self.different_roots == 0


class Shadow:
    """What searches of an arena by the kernels of `SHADOW` note: whether sound futility would have been right.

    workers: a `shadow_dtype` for each worker.
    """

    def __init__(self, arena: Arena) -> None:
        of_workers = arena.workers * shadow_dtype.itemsize
        memory = np.zeros(of_workers + len(arena.frames) * shadow_visit_dtype.itemsize, np.uint8)
        self.workers = memory[:of_workers].view(shadow_dtype)
        self._visits = memory[of_workers:].view(shadow_visit_dtype)
        arena.use_memory(memory)

    def begin(self) -> None:
        """Forget the last search, and take notes of the next one."""
        self.workers[:] = 0
        self._visits[:] = 0


class Verifier:
    """Searches for the comparison, in an arena of its own. Use as a context manager, or close it.

    bound: B in centipawns, of the evaluation and of what rests on it; max_nodes: of one search, None for no limit. A
    board full of queens has captures without end, and plain mode leaves none out.
    """

    def __init__(self, pruning: Pruning = SOUND, bound: int = REST_BOUND, max_nodes: int | None = None) -> None:
        self._arena = Arena(1, _HASH_MB)
        self._arena.tables["rest_bound"] = bound
        self._max_nodes = max_nodes
        plain = SearchOptions.plain(policy="serial")
        self._sound = replace(plain, pruning=pruning)
        self._shadow = Shadow(self._arena)
        self._checked = 0
        self._violations = 0
        self._examples: list[Violation] = []

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._arena.close()

    def compare(self, position: SuitePosition, depth: int) -> ModeComparison:
        """Return both modes on one position."""
        self._checked = self._violations = 0
        self._examples = []
        plain = self._solve(position.board, depth, in_shadow=True)
        sound = self._solve(position.board, depth, in_shadow=False) if plain is not None else None
        return ModeComparison(
            position.name, position.board.fen(), plain, sound, self._checked, self._violations, self._examples
        )

    def _solve(self, board: chess.Board, depth: int, in_shadow: bool) -> RootResult | None:
        """The root's value, then again without the best move, as long as the value stays. None: too many nodes."""
        left = list(board.legal_moves)
        best: list[str] = []
        value, nodes = 0, 0
        while left:
            found, move, searched = self._search(board, depth, in_shadow, left)
            if self._max_nodes is not None and searched >= self._max_nodes:
                return None
            nodes += searched
            if best and found != value:
                break
            value = found
            best.append(board.uci(move))
            left.remove(move)
        return RootResult(value, sorted(best), nodes)

    def _search(
        self, board: chess.Board, depth: int, in_shadow: bool, moves: list[chess.Move]
    ) -> tuple[int, chess.Move, int]:
        """Value, best move and nodes of a search of some of the root's moves."""
        arena = self._arena
        arena.clear_learning()
        write_search(arena, board, Limits(depth=depth, nodes=self._max_nodes), self._sound, only=moves)
        if in_shadow:
            self._shadow.begin()
            while not work_in_shadow(arena.context, 0, _BURSTS_PER_CALL):
                continue
            self._take(board, self._shadow.workers[0])
        else:
            work_alone(arena)
        header, worker = arena.header[0], arena.worker[0]
        return int(header["score"]), to_chess_move(int(header["best_move"]), board), int(worker["nodes"])

    def _take(self, board: chess.Board, found: np.void) -> None:
        """Add what a search in shadow mode has noted."""
        count = int(found["violations"])
        self._checked += int(found["checked"])
        self._violations += count
        for record in found["found"][: min(count, VIOLATIONS)]:
            codes = [int(code) for code in record["line"][: int(record["ply"])]]
            self._examples.append(_violation(board, codes, record))


def _violation(board: chess.Board, codes: Sequence[int], record: np.void) -> Violation:
    """A record of the arena, with the position it is about."""
    walk = board.copy()
    line = []
    for code in codes:
        move = chess.Move.null() if code == NULL_MOVE else to_chess_move(code, walk)
        line.append(walk.uci(move))
        walk.push(move)
    scores = {name: int(record[name]) for name in ("value", "bound", "exact", "alpha")}
    skipped = walk.uci(to_chess_move(int(record["move"]), walk))
    return Violation(walk.fen(), skipped, line, **scores)


def verify(
    suite: Sequence[SuitePosition],
    depth: int,
    bound: int = REST_BOUND,
    max_nodes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[ModeComparison]:
    """Compare both modes on position after position; `progress` gets how many are done, and the moves checked."""
    checked = 0
    with Verifier(bound=bound, max_nodes=max_nodes) as verifier:
        for number, position in enumerate(suite):
            if progress:
                progress(number, checked)
            compared = verifier.compare(position, depth)
            checked += compared.checked
            yield compared
