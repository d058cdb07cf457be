"""Looking into a node of the search from Python: move order, evaluation, exchanges, table entries, windows of the root.

The entries take and return int64 only, as every entry does; `NodeProbe`, `TableProbe` and `RootProbe` wrap them:

    probe = NodeProbe(make_tables(), chess.Board())
    probe.evaluate()                  # centipawns for the side to move
    probe.pick_order(tt_move=code)    # [(stage, code), ...] as the search would try them
    TableProbe(arena.context).probe(probe.key)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import chess
import numpy as np
from inspect_entries import INSPECT
from inspect_position import Probe

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.root_windows import bound_of, searches_again, set_window
from psearch.scheduler.thread_vote import elected
from psearch_core.arithmetic import score_to_table
from psearch_core.chess.board.position import find_pins
from psearch_core.chess.chess_entries import evaluate_position, evaluate_position_by_network
from psearch_core.chess.evaluation.endgames import known_scale, leaves_no_win
from psearch_core.chess.evaluation.evaluate import material, taper
from psearch_core.chess.evaluation.network import network_value
from psearch_core.chess.ordering.history import learn_cutoff
from psearch_core.chess.ordering.movepick import PICK_CAPTURES, PICK_QUIETS, PICK_TT, begin_picking, pick_move
from psearch_core.chess.ordering.see import see_at_least
from psearch_core.chess.pruning.sound import material_after
from psearch_core.chess.search.tt import (
    cuts,
    entry_age,
    entry_bound,
    entry_depth,
    entry_eval,
    entry_move,
    entry_score,
    pack_entry,
    probe,
    store,
)
from psearch_core.constants import MOVE_MASK, NO_MOVE
from psearch_core.records import (
    FRAME_SIZE,
    MAX_MOVES,
    NETWORK_HIDDEN,
    SOUND_GATES,
    evaluation_dtype,
    learning_dtype,
    worker_dtype,
)
from psearch_core.records.pruning_record import Pruning
from psearch_core.toolchain.intrinsics import (
    differing_bytes,
    high_product,
    place_of_greatest,
    row_adder,
    row_mover,
    square_dot,
)
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import (
    Frame,
    Learning,
    Node,
    Tables,
    context_at,
    evaluation_at,
    frame_at,
    i64,
    learning_at,
    position_at,
    pruning_at,
    stack_of,
    tables_at,
    void,
    worker_at,
)

_FIELD_MOVE, _FIELD_SCORE, _FIELD_EVAL, _FIELD_DEPTH, _FIELD_BOUND, _FIELD_AGE = range(6)
_WORD = 1 << 64


@kernel(i64(Tables, Learning, Frame, Node, i64))
def _pick(tb, learning, fr, target, limit):
    """Let the picker go on until it has given out `limit` moves, or all, into `target.moves`; returns how many."""
    count = 0
    while count < limit:
        move = pick_move(tb, learning, fr.position, fr.node)
        if move == NO_MOVE:
            break
        target.moves[count] = (np.int64(fr.node.stage) << 16) | move
        count += 1
    return count


@entry(i64(i64, i64, i64, i64), INSPECT)
def pick_order(tables, learning, frame, limit):
    """Run the move picker of a frame until it has given out `limit` moves, or all; returns how many.

    `tt_move`, `killer_1` and `killer_2` of the frame's node must be set; limit: MAX_MOVES at most. The moves go to
    `node.moves` of the next frame, as `stage << 16 | move` with the stage the picker was left in.
    """
    tb = tables_at(tables)
    fr = frame_at(frame)
    find_pins(tb, fr.position)
    begin_picking(fr.node, PICK_TT)
    return _pick(tb, learning_at(learning), fr, frame_at(frame + FRAME_SIZE).node, limit)


@entry(i64(i64, i64, i64), INSPECT)
def pick_rest(tables, learning, frame):
    return _pick(
        tables_at(tables), learning_at(learning), frame_at(frame), frame_at(frame + FRAME_SIZE).node, MAX_MOVES
    )


@entry(void(i64, i64, i64, i64, i64, i64), INSPECT)
def learn_from_cutoff(worker, pruning, learning, frame, move, ply):
    """`learn_cutoff`: what a worker keeps of a cutoff by `move` at the node of a frame."""
    fr = frame_at(frame)
    captures = 1 if fr.node.stage == PICK_CAPTURES else 0
    quiets = 1 if fr.node.stage == PICK_QUIETS else 0
    learn_cutoff(
        worker_at(worker), pruning_at(pruning), learning_at(learning), fr.position, fr.node, move, ply, captures, quiets
    )


@entry(i64(i64), INSPECT)
def material_of(position):
    """M of a position, for the side to move: the tapered piece-square sum."""
    return material(position_at(position))


@entry(i64(i64, i64, i64), INSPECT)
def material_after_move(tables, position, move):
    """`material_after`: M of the position after a legal move, for the side that makes it."""
    return material_after(tables_at(tables), position_at(position), move, SOUND_GATES)


@entry(i64(i64, i64, i64), INSPECT)
def scale_of_side(tables, position, strong):
    """`known_scale`: how much of a side's advantage the theory of endings leaves; in 64ths."""
    return known_scale(tables_at(tables), position_at(position), strong)


@entry(i64(i64, i64, i64), INSPECT)
def move_leaves_no_win(tables, position, move):
    """`leaves_no_win`: 1 if the other side cannot win after a legal move."""
    return 1 if leaves_no_win(tables_at(tables), position_at(position), move) else 0


@entry(i64(i64, i64, i64), INSPECT)
def tapered(middle_game, end_game, phase):
    """`taper`: blend two values by phase, 0 .. 24."""
    return taper(middle_game, end_game, phase)


@entry(i64(i64, i64, i64, i64), INSPECT)
def exchange_at_least(tables, position, move, threshold):
    """1 if the exchange that a legal move starts is worth `threshold` or more, else 0."""
    return 1 if see_at_least(tables_at(tables), position_at(position), move, threshold) else 0


@entry(i64(i64, i64, i64, i64, i64, i64), INSPECT)
def packed_entry(move, score, eval, depth, bound, age):
    """`pack_entry`, the data word as int64 with the same bits."""
    return np.int64(pack_entry(move, score, eval, depth, bound, age))


@entry(i64(i64, i64, i64), INSPECT)
def entry_field(data, field, ply):
    """One field of a data word; the score as seen from the root at `ply`."""
    word = np.uint64(data)
    if field == _FIELD_MOVE:
        return entry_move(word)
    if field == _FIELD_SCORE:
        return entry_score(word, ply)
    if field == _FIELD_EVAL:
        return entry_eval(word)
    if field == _FIELD_DEPTH:
        return entry_depth(word)
    return entry_bound(word) if field == _FIELD_BOUND else entry_age(word)


@entry(i64(i64, i64, i64, i64, i64), INSPECT)
def entry_cuts(data, depth, alpha, beta, ply):
    """1 if a data word answers a search of this depth and window, else 0."""
    return 1 if cuts(np.uint64(data), depth, alpha, beta, ply) else 0


@entry(i64(i64, i64), INSPECT)
def stored_score(score, ply):
    """`score_to_table`: a mate as distance from the node."""
    return score_to_table(score, ply)


@entry(i64(i64, i64), INSPECT)
def probe_table(context, key):
    """The data word stored for a key, 0 when there is none; both as int64 with the same bits."""
    return np.int64(probe(context_at(context), np.uint64(key)))


@entry(void(i64, i64, i64, i64, i64, i64, i64, i64), INSPECT)
def store_in_table(context, age, key, move, score, eval, depth, bound):
    """`store`; the score relative to the node."""
    store(context_at(context), age, np.uint64(key), move, score, eval, depth, bound)


@entry(i64(i64), INSPECT)
def elect(context):
    """`elected`: the vote among workers whose answers a test has written."""
    return elected(context_at(context))


@entry(i64(i64, i64), INSPECT)
def cluster_index(context, key):
    return high_product(np.uint64(key), context_at(context).tt_clusters)


def signed(word: int) -> int:
    """A 64-bit word as the int64 that an entry takes."""
    return word - _WORD if word >= _WORD // 2 else word


class NodeProbe(Probe):
    """A position, and what one node of a search would make of it. Killers and history are its own."""

    def __init__(self, tables: np.ndarray, board: chess.Board | None = None) -> None:
        super().__init__(tables, board)
        self.worker = np.zeros(1, worker_dtype)
        self.learning = np.zeros(1, learning_dtype)
        self._pruning = np.array([Pruning().record()])

    @property
    def node(self) -> np.void:
        """The node, one `node_dtype` record; writing to it changes what is decided."""
        record: np.void = self._frames[0]["node"]
        return record

    def evaluate(self) -> int:
        """E: the static evaluation for the side to move, in centipawns."""
        return self._call(evaluate_position, self.tables, self.worker["evaluation"], self._address)

    def material(self) -> int:
        """M: the part of the evaluation that is material and piece-square tables."""
        return int(material_of(self._address))

    def material_after(self, move: int) -> int:
        """M of the position after a legal move, for the side that makes it; the move is not made."""
        return self._call(material_after_move, self.tables, self._address, move)

    def see_at_least(self, move: int, threshold: int) -> bool:
        """Whether the exchange that a legal move starts is worth `threshold` centipawns or more."""
        return bool(self._call(exchange_at_least, self.tables, self._address, move, threshold))

    def known_scale(self, side: chess.Color) -> int:
        """Return how much of a side's advantage the theory of endings leaves, 0 to 64, with few men on the board."""
        return self._call(scale_of_side, self.tables, self._address, int(not side))

    def cannot_win(self, side: chess.Color) -> bool:
        """Whether the theory of endings knows that a side cannot win."""
        return self.known_scale(side) == 0

    def leaves_no_win(self, move: int) -> bool:
        """Whether it knows after a legal move that the other side cannot win; the move is not made."""
        return bool(self._call(move_leaves_no_win, self.tables, self._address, move))

    def evaluate_by_network(self) -> int:
        scratch = np.zeros(1, evaluation_dtype)
        return self._call(evaluate_position_by_network, self.tables, scratch, self._address)

    def pick_order(
        self, tt_move: int = NO_MOVE, killers: tuple[int, int] = (0, 0), limit: int = MAX_MOVES
    ) -> list[tuple[int, int]]:
        """The first `limit` moves in the order the search would try them: (stage the picker was left in, code).

        Any 16-bit codes will do for `tt_move` and the two killers, which differ or are NO_MOVE.
        """
        node = self._frames[0]["node"]
        node["tt_move"] = tt_move
        node["killer_1"], node["killer_2"] = killers
        return self._picked(self._call(pick_order, self.tables, self.learning, self._frames, min(limit, MAX_MOVES)))

    def pick_rest(self) -> list[tuple[int, int]]:
        return self._picked(self._call(pick_rest, self.tables, self.learning, self._frames))

    def _picked(self, count: int) -> list[tuple[int, int]]:
        return [(int(word) >> 16, int(word) & MOVE_MASK) for word in self._frames[1]["node"]["moves"][:count]]

    def learn_cutoff(self, move: int, ply: int, depth: int) -> None:
        """Let the worker learn that `move`, the last one that `pick_order` gave out, cut at this depth."""
        self._frames[0]["node"]["depth"] = depth
        self._call(learn_from_cutoff, self.worker, self._pruning, self.learning, self._frames, move, ply)


@dataclass(frozen=True)
class TableEntry:
    """The fields of a table entry's data word; `score` is relative to the node it was stored for."""

    move: int
    score: int
    eval: int
    depth: int
    bound: int
    age: int

    @classmethod
    def unpack(cls, data: int, ply: int = 0) -> TableEntry:
        """Unpack a data word of 0 to 2**64 - 1; mates count from the root of a search that is at `ply`."""
        word = signed(data)
        return cls(*(int(entry_field(word, field, ply)) for field in range(6)))

    def pack(self) -> int:
        return int(packed_entry(self.move, self.score, self.eval, self.depth, self.bound, self.age)) % _WORD

    def cuts(self, depth: int, alpha: int, beta: int, ply: int = 0) -> bool:
        """Whether it answers a search of this depth and window."""
        return bool(entry_cuts(signed(self.pack()), depth, alpha, beta, ply))


class TableProbe:
    """The transposition table of an arena, entry by entry.

    context: address of an arena's context record; the arena must outlive the probe. Keys are 0 to 2**64 - 1.
    """

    def __init__(self, context: int) -> None:
        self._context = context

    def word(self, key: int) -> int:
        """The data word stored for a key, 0 when there is none."""
        return int(probe_table(self._context, signed(key))) % _WORD

    def probe(self, key: int) -> TableEntry | None:
        """The entry stored for a key."""
        data = self.word(key)
        return TableEntry.unpack(data) if data else None

    def store(self, key: int, entry: TableEntry) -> None:
        """Store as the search does: the table decides what is replaced, and may keep what it has."""
        fields = (entry.move, entry.score, entry.eval, entry.depth, entry.bound)
        store_in_table(self._context, entry.age, signed(key), *fields)

    def cluster(self, key: int) -> int:
        return int(cluster_index(self._context, signed(key)))


_add_rows = row_adder(NETWORK_HIDDEN)
_move_rows = row_mover(NETWORK_HIDDEN)
_square_dot = square_dot(NETWORK_HIDDEN, 255)


@entry(i64(i64, i64, i64, i64), INSPECT)
def value_by_network(tables, evaluation, position, ply):
    return network_value(tables_at(tables), evaluation_at(evaluation), position_at(position), ply)


@entry(void(i64, i64, i64, i64, i64, i64), INSPECT)
def sum_rows(target, source, added, added_count, removed, removed_count):
    """An adder of rows, as `network` has it."""
    _add_rows(target, source, added, added_count, removed, removed_count)


@entry(void(i64, i64, i64, i64, i64), INSPECT)
def move_rows(target, source, added, removed, taken):
    """A mover of rows, as `network` has it."""
    _move_rows(target, source, added, removed, taken)


@entry(i64(i64, i64), INSPECT)
def greatest_of(entries, count):
    """`place_of_greatest`."""
    return place_of_greatest(entries, count)


@entry(i64(i64, i64), INSPECT)
def dot_of_squares(units, weights):
    """`square_dot` as `network` has it."""
    return _square_dot(units, weights)


@entry(i64(i64, i64), INSPECT)
def bytes_that_differ(first, second):
    """`differing_bytes`, as int64 with the same bits."""
    return i64(differing_bytes(first, second))


Answers = Callable[[int, int], int]
"""Function of alpha and beta that returns a search's score."""


@entry(void(i64, i64), INSPECT)
def first_window(context, score):
    set_window(context_at(context), 0, score)


@entry(i64(i64, i64), INSPECT)
def next_window(context, score):
    """1 if the first stack's root has to be searched again after a search that has found this score."""
    stack = stack_of(context_at(context), 0)
    return 1 if searches_again(stack, score, bound_of(stack.root_alpha, stack.root_beta, score)) else 0


class RootProbe:
    """A root that is never entered. driver: as in `SearchOptions`."""

    def __init__(self, driver: str) -> None:
        self._arena = Arena(1, 1)
        write_search(self._arena, chess.Board(), Limits(depth=9), SearchOptions(policy="serial", driver=driver))
        self._stack = self._arena.stack[0]
        self._stack["root_depth"] = 8
        self.value = 0
        """Value of the last iteration."""

    def iteration(self, last: int, answers: Answers, most: int) -> list[tuple[int, int]]:
        """Return the windows of an iteration after one of this value, at most so many."""
        first_window(self._arena.context, last)
        windows = []
        while len(windows) < most:
            alpha, beta = int(self._stack["root_alpha"]), int(self._stack["root_beta"])
            windows.append((alpha, beta))
            self.value = answers(alpha, beta)
            if not next_window(self._arena.context, self.value):
                if beta - alpha == 1:
                    self.value = int(self._stack["root_low"])
                break
        return windows

    def close(self) -> None:
        self._arena.close()
