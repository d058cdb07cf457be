"""Checks that sound futility is sound: compares plain and sound mode, and checks every skip in shadow mode.

All searches have one worker, open windows and no table. Shadow mode replaces kernels of sound mode (`study_kernels`):
they skip nothing, so they search the plain tree, but compare each move that sound mode would skip with its bound.
Sound mode must then find the same value and the same set of best moves at the root.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.closing import Closing
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
"""Bursts of the search between two checks for Ctrl-C."""

SHADOWED = {
    f"psearch_core.chess.{kernel}": f"psearch.lab.studies.study_kernels.{stand_in}"
    for kernel, stand_in in (
        ("pruning.sound.skips_soundly", "skips_nothing"),
        ("search.children.set_child", "set_child_noting"),
        ("search.enter_node.after_move", "after_move_checking"),
        ("search.quiescence.after_quiescence", "after_quiescence_checking"),
    )
}
"""Kernels replaced by others that search and check what sound futility would skip."""
SHADOW = Group("shadow", "psearch.scheduler.work", replaced=SHADOWED)
work_in_shadow = SHADOW.entry("work")

VIOLATIONS = 4
"""Violations that a worker keeps as examples; all are counted."""

violation_dtype = np.dtype(
    [
        ("move", "i4"),
        ("value", "i4"),  # result of the search, in centipawns from the node's view
        ("bound", "i4"),  # upper bound that sound futility claims
        ("exact", "i4"),  # M(C) + B, from the child's own sums
        ("alpha", "i4"),  # alpha of the move's search
        ("ply", "i4"),
        ("line", "u2", (MAX_PLY,)),  # moves from the root to the node, `ply` of them
    ],
    align=True,
)

# a record for each worker
shadow_dtype = np.dtype(
    [
        ("checked", "i8"),  # moves that sound mode would skip, and that were searched
        ("violations", "i8"),  # checked moves with a wrong bound
        ("found", violation_dtype, (VIOLATIONS,)),  # the first violations
    ],
    align=True,
)

# a record for each frame
shadow_visit_dtype = np.dtype(
    [
        ("bound", "i4"),  # upper bound of the visit's move if it would be skipped, else NO_SCORE
        ("again", "i4"),  # 1 if the move is searched again with another window
    ],
    align=True,
)


@dataclass(frozen=True)
class Violation:
    """Move that sound futility would skip wrongly. Scores are in centipawns from the mover's view."""

    fen: str
    """Position of the node."""
    move: str
    line: list[str]
    """UCI moves from the root to the node."""
    value: int
    """Result of the search."""
    bound: int
    """Upper bound that sound futility claims."""
    exact: int
    """M + B of the position after the move."""
    alpha: int

    def __str__(self) -> str:
        line = " ".join(self.line) or "the root"
        return (
            f"{self.fen} {self.move}: value {self.value}, bound {self.bound} (M + B {self.exact}), "
            f"alpha {self.alpha}, after {line}"
        )


@dataclass(frozen=True)
class RootResult:
    """Result of one mode at a root."""

    value: int
    best: list[str]
    """All moves with that value under an open window, as sorted UCI moves."""
    nodes: int


@dataclass
class ModeComparison:
    """Comparison of the modes on one position."""

    name: str
    fen: str
    plain: RootResult | None
    """Result of plain mode; None if a search took too many nodes."""
    sound: RootResult | None
    checked: int
    violations: int
    examples: list[Violation]
    """First violations."""

    @property
    def agrees(self) -> bool:
        """Tell whether both modes found the same value and best moves, or one of them is unknown."""
        if self.plain is None or self.sound is None:
            return True
        return (self.plain.value, self.plain.best) == (self.sound.value, self.sound.best)


@dataclass
class SoundnessSummary:
    """Sums over all positions."""

    positions: int = 0
    too_big: int = 0
    """Positions given up; their checked moves count."""
    checked: int = 0
    violations: int = 0
    different_roots: int = 0
    plain_nodes: int = 0
    sound_nodes: int = 0
    bound: int = REST_BOUND
    """Bound B in centipawns."""
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
        """Return the share of the plain nodes that sound mode saves."""
        return 1 - self.sound_nodes / self.plain_nodes if self.plain_nodes else 0.0

    @property
    def sound(self) -> bool:
        """Tell whether no check failed."""
        return self.violations == 0 and self.different_roots == 0


class Shadow:
    """Memory in which the kernels of `SHADOW` record their checks. workers: a `shadow_dtype` for each worker."""

    def __init__(self, arena: Arena) -> None:
        of_workers = arena.workers * shadow_dtype.itemsize
        memory = np.zeros(of_workers + len(arena.frames) * shadow_visit_dtype.itemsize, np.uint8)
        self.workers = memory[:of_workers].view(shadow_dtype)
        self._visits = memory[of_workers:].view(shadow_visit_dtype)
        arena.use_memory(memory)

    def begin(self) -> None:
        """Clear the records before the next search."""
        self.workers[:] = 0
        self._visits[:] = 0


class Verifier(Closing):
    """Compares the modes in its own arena; a context manager.

    bound: B in centipawns; max_nodes: limit of one search, None for no limit. Plain mode needs a limit on boards full
    of queens, whose captures never end.
    """

    def __init__(self, pruning: Pruning = SOUND, bound: int = REST_BOUND, max_nodes: int | None = None) -> None:
        self._arena = Arena(1, hash_mb=1)  # the table is not used, but every arena has one
        self._arena.tables["rest_bound"] = bound
        self._max_nodes = max_nodes
        self._options = replace(SearchOptions.plain(policy="serial"), pruning=pruning)
        self._shadow = Shadow(self._arena)

    def close(self) -> None:
        self._arena.close()

    def compare(self, position: SuitePosition, depth: int) -> ModeComparison:
        """Compare both modes on one position."""
        compared = ModeComparison(position.name, position.board.fen(), None, None, 0, 0, [])
        compared.plain = self._solve(position.board, depth, compared)
        if compared.plain is not None:
            compared.sound = self._solve(position.board, depth, None)
        return compared

    def _solve(self, board: chess.Board, depth: int, notes: ModeComparison | None) -> RootResult | None:
        """Return value and best moves of the root, by searching again without the best move while the value stays the
        same; None after too many nodes. notes: record of the checks, for plain search in shadow mode; None for sound
        mode."""
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
    walk = board.copy()
    line = []
    for code in record["line"][: int(record["ply"])].tolist():
        move = chess.Move.null() if code == NULL_MOVE else to_chess_move(code, walk)
        line.append(walk.uci(move))
        walk.push(move)
    scores = {name: int(record[name]) for name in ("value", "bound", "exact", "alpha")}
    skipped = walk.uci(to_chess_move(int(record["move"]), walk))
    return Violation(walk.fen(), skipped, line, **scores)
