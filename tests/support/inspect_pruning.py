"""Looking into the decisions of selective search from Python: one node, one decision at a time.

What the tests of `psearch_core/chess/pruning` and `core/checks` call. `PruningProbe` wraps the entries:

    probe = PruningProbe(make_tables(), parse_pruning("ael"), chess.Board())
    probe.enter(depth=1, alpha=200)       # as the search enters a node
    probe.prunes_move(code)               # whether the move would be left out
    probe.counts()["futility"]            # (tried, pruned)
"""

from __future__ import annotations

import chess
import numpy as np
from inspect_entries import INSPECT
from inspect_node import NodeProbe

from psearch_core.chess.board.checks import gives_check, gives_check_at, mate_in_one
from psearch_core.chess.board.movegen import generate_quiet_checks, generate_underpromotions
from psearch_core.chess.board.position import find_pins
from psearch_core.chess.ordering.movepick import PICK_QUIETS
from psearch_core.chess.pruning.move_pruning import extension_of, prunes_capture, prunes_move, reduction_of
from psearch_core.chess.pruning.node_pruning import (
    decide_futility,
    needs_verification,
    null_reduction,
    prune_node,
    wants_iid,
    wants_iir,
    wants_probcut,
    wants_singular,
)
from psearch_core.chess.search.correction import corrected, learn_correction, prefetch_corrections
from psearch_core.constants import (
    ALL_NODE,
    BLACK,
    BOUND_NONE,
    INFINITE,
    MOVE_MASK,
    NO_MOVE,
    NO_SCORE,
    PASS_MAIN,
    PV_NODE,
    WHITE,
)
from psearch_core.records.pruning_record import Pruning
from psearch_core.techniques import TECHNIQUE_NAMES
from psearch_core.toolchain.jit import entry
from psearch_core.views import frame_at, i64, learning_at, position_at, pruning_at, tables_at, void, worker_at

_WISHES = ("verification", "iid", "iir", "probcut", "singular")


@entry(i64(i64, i64, i64), INSPECT)
def check_given(tables, frame, move):
    """Bits of 3 if a legal move of the node gives check: 1 by `gives_check`, 2 by `gives_check_at`."""
    fr = frame_at(frame)
    alone = gives_check(tables_at(tables), fr.position, move)
    return (1 if alone else 0) + (2 if gives_check_at(tables_at(tables), fr.position, fr.node, move) else 0)


@entry(i64(i64, i64, i64), INSPECT)
def find_mate_in_one(tables, position, side):
    """A move of `side` that mates, whoever is to move; NO_MOVE if none is found. Neither king is in check."""
    return mate_in_one(tables_at(tables), position_at(position), side)


@entry(i64(i64, i64), INSPECT)
def list_quiet_checks(tables, frame):
    """Write the legal moves that give check and neither capture nor promote into `node.moves[0:end]`; returns end."""
    tb = tables_at(tables)
    fr = frame_at(frame)
    find_pins(tb, fr.position)
    return generate_quiet_checks(tb, fr.position, fr.node, 0)


@entry(i64(i64, i64), INSPECT)
def list_underpromotions(tables, frame):
    """Write the legal promotions to less than a queen into `node.moves[0:end]`; returns end."""
    tb = tables_at(tables)
    fr = frame_at(frame)
    find_pins(tb, fr.position)
    return generate_underpromotions(tb, fr.position, fr.node, 0)


@entry(void(i64, i64, i64, i64), INSPECT)
def node_futility(worker, pruning, tables, frame):
    fr = frame_at(frame)
    decide_futility(worker_at(worker), pruning_at(pruning), tables_at(tables), fr.position, fr.node)


@entry(i64(i64, i64, i64, i64, i64), INSPECT)
def node_action(worker, pruning, tables, frame, came_by):
    """`prune_node`: what is done without a move."""
    fr = frame_at(frame)
    return prune_node(worker_at(worker), pruning_at(pruning), tables_at(tables), fr.position, fr.node, came_by)


@entry(i64(i64, i64), INSPECT)
def node_reduction(pruning, frame):
    fr = frame_at(frame)
    return null_reduction(pruning_at(pruning), fr.position, fr.node)


@entry(i64(i64, i64), INSPECT)
def node_wishes(pruning, frame):
    """Return the passes that the node wants, as bits in the order of `_WISHES`."""
    fr = frame_at(frame)
    record = pruning_at(pruning)
    wishes = 1 * needs_verification(record, fr.position, fr.node) + 2 * wants_iid(record, fr.node)
    wishes += 4 * wants_iir(record, fr.node) + 8 * wants_probcut(record, fr.node)
    return wishes + 16 * wants_singular(record, fr.node)


@entry(i64(i64, i64, i64, i64, i64, i64), INSPECT)
def move_pruned(worker, pruning, learning, tables, frame, move):
    """1 if `prunes_move` leaves the move out, else 0."""
    fr = frame_at(frame)
    records = worker_at(worker), pruning_at(pruning), learning_at(learning), tables_at(tables)
    return 1 if prunes_move(records[0], records[1], records[2], records[3], fr.position, fr.node, move) else 0


@entry(i64(i64, i64, i64, i64, i64), INSPECT)
def capture_pruned(worker, pruning, tables, frame, move):
    """1 if `prunes_capture` leaves a capture of quiescence out, else 0."""
    fr = frame_at(frame)
    left_out = prunes_capture(worker_at(worker), pruning_at(pruning), tables_at(tables), fr.position, fr.node, move)
    return 1 if left_out else 0


@entry(i64(i64, i64, i64, i64, i64, i64), INSPECT)
def move_extension(worker, pruning, tables, frame, gives, within):
    fr = frame_at(frame)
    tb = tables_at(tables)
    return extension_of(
        worker_at(worker), pruning_at(pruning), tb, fr.position, fr.node, fr.visit, gives != 0, within != 0
    )


@entry(i64(i64, i64, i64, i64, i64), INSPECT)
def move_reduction(cutoffs, pruning, learning, frame, gives):
    fr = frame_at(frame)
    return reduction_of(cutoffs, pruning_at(pruning), learning_at(learning), fr.position, fr.node, fr.visit, gives != 0)


@entry(i64(i64, i64, i64, i64, i64), INSPECT)
def corrected_value(pruning, learning, tables, frame, value):
    """`corrected`: a static evaluation of the node of a frame."""
    fr = frame_at(frame)
    slots = prefetch_corrections(pruning_at(pruning), learning_at(learning), fr.position, fr.node)
    return corrected(pruning_at(pruning), learning_at(learning), tables_at(tables), fr.position, slots, value)


@entry(void(i64, i64, i64, i64, i64), INSPECT)
def learn_from_value(pruning, learning, tables, frame, bound):
    """`learn_correction`: what is learnt from the value of the node of a frame."""
    fr = frame_at(frame)
    learn_correction(pruning_at(pruning), learning_at(learning), tables_at(tables), fr.position, fr.node, bound)


class PruningProbe(NodeProbe):
    """A node of a search, and what selective search would do at it."""

    def __init__(self, tables: np.ndarray, pruning: Pruning, board: chess.Board | None = None) -> None:
        super().__init__(tables, board)
        self._pruning = np.array([pruning.record()])

    def gives_check(self, move: int) -> bool:
        given = self._call(check_given, self.tables, self._frames, move)
        assert given in (0, 3), "what is found once a node agrees with what is found for the move alone"
        return given == 3

    def mate_in_one(self, color: chess.Color) -> int:
        """The code of a move of `color` that mates, were it to move; NO_MOVE if none is found."""
        return self._call(find_mate_in_one, self.tables, self._address, WHITE if color else BLACK)

    def quiet_checks(self) -> list[int]:
        """The codes of the legal moves that give check and neither capture nor promote. Not when in check."""
        return self._listed(self._call(list_quiet_checks, self.tables, self._frames))

    def underpromotions(self) -> list[int]:
        """The codes of the legal promotions to less than a queen."""
        return self._listed(self._call(list_underpromotions, self.tables, self._frames))

    def _listed(self, end: int) -> list[int]:
        return [int(move) & MOVE_MASK for move in self.node["moves"][:end]]

    def enter(self, depth: int, alpha: int, beta: int | None = None, **fields: int) -> None:
        """Make the node what the search makes of it at entry: evaluated, without a table entry, nothing tried yet.

        beta: alpha + 1 if None; fields: any others of `node_dtype`, such as `extended` or `tt_move`.
        """
        node = self.node
        node["depth"] = node["full_depth"] = depth
        node["alpha"] = node["full_alpha"] = node["entry_alpha"] = alpha
        node["beta"] = node["full_beta"] = alpha + 1 if beta is None else beta
        node["in_check"] = int(self.in_check)
        node["eval"] = node["estimate"] = NO_SCORE if self.in_check else self.evaluate()
        node["split_type"] = node["kannan_type"] = ALL_NODE if beta is None else PV_NODE
        node["tt_move"], node["tt_bound"], node["tt_depth"], node["tt_score"] = NO_MOVE, BOUND_NONE, 0, NO_SCORE
        node["best"], node["best_move"], node["moves_done"] = -INFINITE, NO_MOVE, 0
        node["ply"], node["pass_kind"], node["improving"] = 1, PASS_MAIN, 0
        node["extended"] = node["extension"] = node["skip"] = node["cont_1"] = node["cont_2"] = 0
        node["killer_1"] = node["killer_2"] = NO_MOVE
        node["futility"] = NO_SCORE
        for name, value in fields.items():
            node[name] = value
        self.decide_futility()

    def decide_futility(self) -> int:
        """Return the most that a move without gain is worth, NO_SCORE where nothing is futile; the depth may change."""
        self._call(node_futility, self.worker, self._pruning, self.tables, self._frames)
        return int(self.node["futility"])

    def prune_node(self, came_by: int = NO_MOVE) -> tuple[int, int]:
        """PRUNE_NOTHING, PRUNE_RETURN, PRUNE_NULL or PRUNE_RAZOR, and the value that goes with PRUNE_RETURN."""
        action = self._call(node_action, self.worker, self._pruning, self.tables, self._frames, came_by)
        return action, int(self.worker[0]["value"])

    def null_reduction(self) -> int:
        """R."""
        return self._call(node_reduction, self._pruning, self._frames)

    def wishes(self) -> set[str]:
        """The passes that the node wants, of verification, iid, iir, probcut, singular."""
        bits = self._call(node_wishes, self._pruning, self._frames)
        return {name for number, name in enumerate(_WISHES) if bits >> number & 1}

    def prunes_move(self, move: int) -> bool:
        """Whether a move that the picker gives is left out."""
        return bool(self._call(move_pruned, self.worker, self._pruning, self.learning, self.tables, self._frames, move))

    def prunes_capture(self, move: int) -> bool:
        """Whether quiescence leaves a capture out."""
        return bool(self._call(capture_pruned, self.worker, self._pruning, self.tables, self._frames, move))

    def extension(self, move: int, gives: bool, within: bool = True) -> int:
        """Plies more for a move. gives: it gives check; within: the line is not too long already."""
        self._frames[0]["visit"]["move"] = move
        return self._call(
            move_extension, self.worker, self._pruning, self.tables, self._frames, int(gives), int(within)
        )

    def reduction(self, move: int, index: int, picked: int = PICK_QUIETS, gives: bool = False, cutoffs: int = 0) -> int:
        """Plies less for a move. index: its number at the node, from 0; picked: the stage of the picker; cutoffs: how
        many children of the node and its siblings were cut off."""
        visit = self._frames[0]["visit"]
        visit["move"], visit["index"], visit["picked"] = move, index, picked
        return self._call(move_reduction, cutoffs, self._pruning, self.learning, self._frames, int(gives))

    def corrected(self, value: int) -> int:
        """A static evaluation of the node, corrected."""
        return self._call(corrected_value, self._pruning, self.learning, self.tables, self._frames, value)

    def learn_correction(self, best: int, bound: int) -> None:
        """Let the corrections learn that the node is worth `best`, which is a bound of this kind."""
        self.node["best"] = best
        self._call(learn_from_value, self._pruning, self.learning, self.tables, self._frames, bound)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return how often each technique was tried, and how often it pruned."""
        counted = self.worker[0]["pruned"]
        return {name: (int(counted[i, 0]), int(counted[i, 1])) for i, name in enumerate(TECHNIQUE_NAMES)}
