"""Looking into the compiled chess layer from Python.

The entries take addresses, as every entry does. `Probe` wraps them around one position:

    probe = Probe(make_tables(), chess.Board())
    probe.legal_moves()   # move codes, captures first
    probe.play(code)      # make_move
    probe.record["key"]   # any field of position_dtype
"""

from __future__ import annotations

from collections.abc import Callable

import chess
import numpy as np
from inspect_entries import INSPECT

from psearch_core.chess.board.attacks import attacks_of as all_attacks
from psearch_core.chess.board.attacks import piece_attacks
from psearch_core.chess.board.bridge import set_position
from psearch_core.chess.board.movegen import count_legal, generate_captures, generate_quiets, is_legal
from psearch_core.chess.board.position import complete, find_pins, insufficient_material, make_move, make_null
from psearch_core.constants import KING, KNIGHT, MOVE_MASK, PAWN
from psearch_core.records import MAX_MOVES, frame_dtype, position_dtype
from psearch_core.toolchain.jit import entry
from psearch_core.views import frame_at, i64, position_at, tables_at, void

_ALL_CODES = 1 << 16
_SIGNED = 1 << 63


@entry(i64(i64, i64), INSPECT)
def legal_moves(tables, frame):
    """Write the legal moves of a frame's position into `node.moves[0:end]`; returns end.

    The captures, with queen promotions, come first, in `node.moves[0:bad_end]`.
    """
    tb = tables_at(tables)
    fr = frame_at(frame)
    find_pins(tb, fr.position)
    captures = generate_captures(tb, fr.position, fr.node, 0)
    fr.node.bad_end = captures
    fr.node.end = generate_quiets(tb, fr.position, fr.node, captures)
    return fr.node.end


@entry(i64(i64, i64), INSPECT)
def count_moves(tables, position):
    """The number of legal moves, counted without generating them."""
    tb = tables_at(tables)
    pos = position_at(position)
    find_pins(tb, pos)
    return count_legal(tb, pos)


@entry(i64(i64, i64, i64), INSPECT)
def check_legal(tables, position, move):
    """1 if a move code is a legal move, else 0."""
    tb = tables_at(tables)
    pos = position_at(position)
    find_pins(tb, pos)
    return 1 if is_legal(tb, pos, move) else 0


@entry(i64(i64, i64), INSPECT)
def accepted_codes(tables, frame):
    """Try `is_legal` on all 65,536 move codes; returns how many pass.

    Those that pass are written into `node.moves`, MAX_MOVES at most.
    """
    tb = tables_at(tables)
    fr = frame_at(frame)
    find_pins(tb, fr.position)
    count = 0
    for code in range(_ALL_CODES):
        if is_legal(tb, fr.position, code):
            if count < MAX_MOVES:
                fr.node.moves[count] = code
            count += 1
    return count


@entry(void(i64, i64, i64, i64), INSPECT)
def play(tables, source, target, move):
    """`make_move`: copy a position and play a legal move on the copy. The two must not be the same."""
    make_move(tables_at(tables), position_at(source), position_at(target), move)


@entry(void(i64, i64, i64), INSPECT)
def play_null(tables, source, target):
    """`make_null`: copy a position that is not in check and pass there. The two must not be the same."""
    make_null(tables_at(tables), position_at(source), position_at(target))


@entry(i64(i64, i64, i64, i64), INSPECT)
def attacks_of(tables, piece, square, occupied):
    """Attacks of a knight, bishop, rook, queen or king; bitboards as int64 with the same bits."""
    return np.int64(piece_attacks(tables_at(tables), piece, square, np.uint64(occupied)))


@entry(i64(i64, i64, i64), INSPECT)
def attacked_by(tables, position, side):
    """Squares that a side attacks, a bitboard as int64 with the same bits."""
    return np.int64(all_attacks(tables_at(tables), position_at(position), side))


@entry(i64(i64), INSPECT)
def insufficient(position):
    """1 if nobody can be mated any more, by material alone, else 0."""
    return 1 if insufficient_material(position_at(position)) else 0


def attacks_bb(tables: np.ndarray, piece: int, square: int, occupied_bb: int) -> int:
    """Attacked squares as a bitboard.

    piece: KNIGHT to KING (`core.constants`); occupied_bb: 0 to 2**64 - 1.
    """
    if not PAWN < piece <= KING:
        raise ValueError(f"piece {piece} is not in {KNIGHT} to {KING}")
    signed = occupied_bb - 2 * _SIGNED if occupied_bb & _SIGNED else occupied_bb
    return int(attacks_of(tables.ctypes.data, piece, square, signed)) & (2 * _SIGNED - 1)


class Probe:
    """One position in compiled form, and what the kernels say of it.

    tables: array of one `tables_dtype` record (`make_tables`).
    """

    def __init__(self, tables: np.ndarray, board: chess.Board | None = None) -> None:
        self.tables = tables
        self._frames = np.zeros(2, frame_dtype)
        if board is not None:
            self.set(board)

    def set(self, board: chess.Board) -> None:
        """Take over a valid board (Chess960 included)."""
        set_position(self.tables, self._frames["position"][:1], board)
        self._frames[0]["node"]["straight_checks"] = 0  # those of the position before

    def copy(self) -> Probe:
        twin = Probe(self.tables)
        twin._frames[0]["position"] = self.record
        return twin

    @property
    def record(self) -> np.void:
        """The position, one `position_dtype` record; writing to it changes the position."""
        record: np.void = self._frames[0]["position"]
        return record

    @property
    def key(self) -> int:
        return int(self.record["key"])

    @property
    def in_check(self) -> bool:
        """Whether the side to move is in check, as the incremental state says."""
        return bool(self.record["checkers"])

    def attacked_by(self, side: int) -> int:
        return self._call(attacked_by, self.tables, self._address, side) & chess.BB_ALL

    def from_scratch(self) -> np.void:
        """A copy of the position with everything that `complete` derives computed again."""
        copy = np.zeros(1, position_dtype)
        copy[0] = self.record
        complete(self.tables.ctypes.data, copy.ctypes.data)
        record: np.void = copy[0]
        return record

    def legal_moves(self) -> list[int]:
        """The codes of all legal moves, captures and queen promotions first."""
        end = self._call(legal_moves, self.tables, self._frames)
        return [int(move) & MOVE_MASK for move in self._frames[0]["node"]["moves"][:end]]

    def captures(self) -> list[int]:
        return self.legal_moves()[: int(self._frames[0]["node"]["bad_end"])]

    def count_moves(self) -> int:
        """The number of legal moves as `count_legal` counts them."""
        return self._call(count_moves, self.tables, self._address)

    def is_legal(self, move: int) -> bool:
        return bool(self._call(check_legal, self.tables, self._address, move))

    def accepted_codes(self) -> list[int]:
        """Return, in ascending order, those of all 65,536 codes that pass as legal moves."""
        count = self._call(accepted_codes, self.tables, self._frames)
        if count > MAX_MOVES:
            raise AssertionError(f"{count} codes pass as legal moves")
        return [int(code) for code in self._frames[0]["node"]["moves"][:count]]

    def play(self, move: int) -> None:
        target = self._address + frame_dtype.itemsize
        self._call(play, self.tables, self._address, target, move)
        self._frames[0]["position"] = self._frames[1]["position"]

    def play_null(self) -> None:
        """Pass. Only when not in check."""
        target = self._address + frame_dtype.itemsize
        self._call(play_null, self.tables, self._address, target)
        self._frames[0]["position"] = self._frames[1]["position"]

    def has_insufficient_material(self) -> bool:
        """Whether nobody can be mated any more, by material alone."""
        return bool(insufficient(self._address))

    @property
    def _address(self) -> int:
        return int(self._frames["position"].ctypes.data)

    def _call(self, entry: Callable[..., int], *arguments: np.ndarray | int) -> int:
        """Call an entry with the addresses of records, and numbers."""
        return int(entry(*(one.ctypes.data if isinstance(one, np.ndarray) else one for one in arguments)) or 0)
