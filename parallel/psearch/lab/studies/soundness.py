"""Checks that sound futility is sound: plain and sound mode side by side, and every skipped move in shadow mode.

One worker, the table off, open windows. In shadow mode sound mode is searched by other kernels (`study_kernels`): they
skip nothing, so they search the plain tree, ask at every move whether sound mode would skip it, and compare what the
search finds with the bound. Sound mode then must find the same value and the same set of best moves at the root.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch.text.epd_text import SuitePosition
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.constants import NULL_MOVE
from psearch_core.records import MAX_PLY
from psearch_core.records.pruning_record import SOUND, Pruning
from psearch_core.terms import REST_BOUND
from psearch_core.toolchain.groups import Group

_BURSTS_PER_CALL = 1 << 13
"""Bursts of the search between two chances for Ctrl-C."""

SHADOWED = {
    f"psearch_core.chess.{kernel}": f"psearch.lab.studies.study_kernels.{stand_in}"
    for kernel, stand_in in (
        ("pruning.sound.skips_soundly", "skips_nothing"),
        ("search.children.set_child", "set_child_noting"),
        ("search.enter_node.after_move", "after_move_checking"),
        ("search.quiescence.after_quiescence", "after_quiescence_checking"),
    )
}
"""Kernels that search all that sound futility would skip, and check it."""
SHADOW = Group("shadow", "psearch.scheduler.work", replaced=SHADOWED)
work_in_shadow = SHADOW.entry("work")

VIOLATIONS = 4
"""Violations that a worker keeps for the user to look at; all are counted."""

violation_dtype = np.dtype(
    [
        ("move", "i4"),
        ("value", "i4"),  # what the search found, centipawns, in the node's view
        ("bound", "i4"),  # what sound futility claimed
        ("exact", "i4"),  # M(C) + B from the child's own sums
        ("alpha", "i4"),  # the window it was searched with
        ("ply", "i4"),
        ("line", "u2", (MAX_PLY,)),  # moves from the root to the node, `ply` of them
    ],
    align=True,
)

# one for each worker
shadow_dtype = np.dtype(
    [
        ("checked", "i8"),  # moves that would have been skipped, and were searched
        ("violations", "i8"),  # those of them whose bound was wrong
        ("found", violation_dtype, (VIOLATIONS,)),  # the first of these
    ],
    align=True,
)

# one for each frame
shadow_visit_dtype = np.dtype(
    [
        ("bound", "i4"),  # what the visit's move is worth at most, had it been skipped; NO_SCORE: it had not
        ("again", "i4"),  # 1: the move is searched again, with another window
    ],
    align=True,
)


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


@dataclass
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
        """Tell whether value and best moves are the same, as far as they are known."""
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
        """Add one position."""
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
        """Return the share of the plain nodes that sound mode does without."""
        return 1 - self.sound_nodes / self.plain_nodes if self.plain_nodes else 0.0

    @property
    def sound(self) -> bool:
        """Tell whether nothing speaks against it."""
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


class Verifier(AbstractContextManager["Verifier"]):
    """Searches for the comparison, in a separate arena, which goes when the context ends.

    bound: B in centipawns, of the evaluation and of what rests on it; max_nodes: of one search, None for no limit. A
    board full of queens has captures without end, and plain mode leaves none out.
    """

    def __init__(self, pruning: Pruning = SOUND, bound: int = REST_BOUND, max_nodes: int | None = None) -> None:
        self._arena = Arena(1, hash_mb=1)  # no table is used, and every arena has one
        self._arena.tables["rest_bound"] = bound
        self._max_nodes = max_nodes
        self._options = replace(SearchOptions.plain(policy="serial"), pruning=pruning)
        self._shadow = Shadow(self._arena)

    def __exit__(self, *exception: object) -> None:
        self._arena.close()

    def compare(self, position: SuitePosition, depth: int) -> ModeComparison:
        """Return both modes on one position."""
        compared = ModeComparison(position.name, position.board.fen(), None, None, 0, 0, [])
        compared.plain = self._solve(position.board, depth, compared)
        if compared.plain is not None:
            compared.sound = self._solve(position.board, depth, None)
        return compared

    def _solve(self, board: chess.Board, depth: int, notes: ModeComparison | None) -> RootResult | None:
        """Return the root's value, searched again without the best move as long as the value stays. None: too many
        nodes. notes: where a search in shadow mode, which is plain, adds what it has noted; None: sound mode."""
        arena, left = self._arena, list(board.legal_moves)
        header, worker = arena.header[0], arena.worker[0]
        best: list[str] = []
        value, nodes = 0, 0
        while left:
            arena.clear_learning()
            write_search(arena, board, Limits(depth=depth, nodes=self._max_nodes), self._options, only=left)
            if notes is None:
                work_alone(arena)
            else:
                self._shadow.begin()
                while not work_in_shadow(arena.context, 0, _BURSTS_PER_CALL):
                    continue
                noted = self._shadow.workers[0]
                notes.checked += int(noted["checked"])
                notes.violations += int(noted["violations"])
                kept = min(int(noted["violations"]), VIOLATIONS)
                notes.examples += [_violation(board, record) for record in noted["found"][:kept]]
            if self._max_nodes is not None and worker["nodes"] >= self._max_nodes:
                return None
            nodes += int(worker["nodes"])
            if best and header["score"] != value:
                break
            value = int(header["score"])
            move = to_chess_move(int(header["best_move"]), board)
            best.append(board.uci(move))
            left.remove(move)
        return RootResult(value, sorted(best), nodes)


def _violation(board: chess.Board, record: np.void) -> Violation:
    """Return what a record of the arena says, with the position it is about."""
    walk = board.copy()
    line = []
    for code in record["line"][: int(record["ply"])].tolist():
        move = chess.Move.null() if code == NULL_MOVE else to_chess_move(code, walk)
        line.append(walk.uci(move))
        walk.push(move)
    scores = {name: int(record[name]) for name in ("value", "bound", "exact", "alpha")}
    skipped = walk.uci(to_chess_move(int(record["move"]), walk))
    return Violation(walk.fen(), skipped, line, **scores)
