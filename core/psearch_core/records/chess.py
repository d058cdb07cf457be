"""Records of a chess position, of the tables that every kernel reads (with the network), and of the evaluation.

Another game keeps its own position in the first 128 bytes of a chess position, before `key`.
"""

import numpy as np

from psearch_core.records.layout import (
    ACCUMULATORS,
    KPK_WORDS,
    NETWORK_BUCKETS,
    NETWORK_FEATURES,
    NETWORK_HIDDEN,
    PAWN_ENTRIES,
    record,
)
from psearch_core.terms import TERM_COUNT, UNIT_COUNT

ROW_ONE = 255
"""Integer for 1.0 in a row and in a hidden unit, which is clipped at this."""
OUT_ONE = 64
"""Integer for 1.0 in an output weight."""

network_dtype = record(
    [
        ("rows", "i2", (NETWORK_FEATURES, NETWORK_HIDDEN)),  # by input: whose piece, type, square; 1/ROW_ONE
        ("bias", "i2", (NETWORK_HIDDEN,)),  # 1/ROW_ONE
        ("out", "i2", (NETWORK_BUCKETS, 2, NETWORK_HIDDEN)),  # by number of men; the mover's units first; 1/OUT_ONE
        ("out_bias", "i4", (NETWORK_BUCKETS,)),  # 1 / (ROW_ONE * ROW_ONE * OUT_ONE)
        ("unit", "i4"),  # centipawns of one natural unit, whose expected score is 1 / (1 + exp(-1))
        ("pad", "u1", (28,)),  # to a cache line
    ]
)

accumulator_dtype = record(
    [
        ("board", "u1", (64,)),  # board of the position that the sums belong to, as in `position_dtype`
        ("sums", "i2", (2, NETWORK_HIDDEN)),  # hidden units with bias, from White's side and from Black's
        ("views", "i8", (2,)),  # how each side sees the board, see `_view`; 0 before the first sum
        ("pad", "u1", (48,)),  # to a cache line
    ]
)

network_scratch_dtype = record(
    [
        ("accumulators", accumulator_dtype, (ACCUMULATORS,)),  # by ply
        ("added", "i8", (64,)),  # addresses of rows to be added (below: to be subtracted)
        ("removed", "i8", (64,)),
    ]
)

if network_dtype.itemsize % 64 or accumulator_dtype.itemsize % 64:
    raise AssertionError(f"sizes: network {network_dtype.itemsize}, accumulator {accumulator_dtype.itemsize}")
if np.iinfo(np.int16).max < ROW_ONE * 2 * OUT_ONE:
    raise AssertionError("an output weight times a unit does not fit into 16 bits")

pawn_entry_dtype = record(
    [
        ("key", "u8"),  # `pawn_key` of the position
        ("passed", "u8"),  # passed pawns of both sides
        ("spans", "u8", (2,)),  # squares that pawns of a side attack, or may after advancing
        ("score", "i8"),  # pawn and shelter terms, White minus Black, as a pair
        ("units", "i4", (2,)),  # danger to the king of a side from its shelter
        ("pad", "u1", (16,)),  # to a cache line
    ]
)

evaluation_dtype = record(
    [
        # scratch memory: attack maps of the position being evaluated, by side
        ("by_piece", "u8", (2, 6)),
        ("attacked", "u8", (2,)),
        ("twice", "u8", (2,)),
        ("mobility_area", "u8", (2,)),
        ("ring", "u8", (2,)),  # squares around the king
        ("units", "i8", (2,)),  # danger to the king of the other side
        ("queen_diagonal", "u8", (2,)),  # the bishop's half of what the last queen attacks; stale without a queen
        ("queen_straight", "u8", (2,)),
        ("pad", "u1", (48,)),  # to a cache line
        ("network", network_scratch_dtype),
        ("pawns", pawn_entry_dtype, (PAWN_ENTRIES,)),  # private to a worker: no races, and reproducible
    ]
)

position_dtype = record(
    [
        ("piece_bb", "u8", (6,)),  # by piece type, both colours: P N B R Q K
        ("color_bb", "u8", (2,)),  # white, black
        ("board", "u1", (64,)),  # 0 empty, else colour * 8 + piece type + 1
        ("castling_bb", "u8"),  # the rooks that may still castle (any file: Chess960)
        ("key", "u8"),  # Zobrist: pieces, side, castling rooks, en passant file if a capture is legal
        ("checkers", "u8"),  # pieces that give check to the side to move
        ("pinned", "u8"),  # own pieces of the side to move that shield its king; set by `find_pins`
        ("pawn_key", "u8"),  # Zobrist: pawns and kings only
        ("psq_mg", "i4"),  # material and piece-square sum, centipawns, White minus Black, middle game
        ("psq_eg", "i4"),  # the same, end game
        ("phase", "i2"),  # sum of PHASE over the pieces on the board, 24 at the start, more after promotions
        ("ep", "i2"),  # square to which a pawn can legally capture en passant; -1 none
        ("side", "i4"),  # 0 White, 1 Black to move
        ("rule50", "i4"),  # plies since the last capture or pawn move
        # plies since the last irreversible or null move: the range of repetitions
        ("reversible", "i4"),
    ]
)

tables_dtype = record(
    [
        ("network", network_dtype),  # comes first so that its rows begin cache lines
        ("slider", "u8", (107648,)),  # rook and bishop attacks, indexed by pext or magic
        ("rook_offset", "i8", (64,)),
        ("bishop_offset", "i8", (64,)),
        ("rook_mask", "u8", (64,)),
        ("bishop_mask", "u8", (64,)),
        ("knight", "u8", (64,)),
        ("king", "u8", (64,)),
        ("pawn", "u8", (2, 64)),  # squares attacked by a pawn of that colour
        ("between", "u8", (4096,)),  # from * 64 + to: squares strictly between, on a line
        ("line", "u8", (4096,)),  # from * 64 + to: the whole line through both, edge to edge
        # squares in front on the own and the neighbour files: a pawn without enemy pawns there is passed
        ("passed", "u8", (2, 64)),
        ("front", "u8", (2, 64)),  # squares in front on the own file
        ("neighbours", "u8", (8,)),  # the files beside a file
        ("zobrist_piece", "u8", (16, 64)),
        ("zobrist_castling", "u8", (64,)),
        ("zobrist_ep", "u8", (8,)),
        ("zobrist_side", "u8"),
        ("psq_mg", "i4", (16, 64)),  # by board code; White positive, Black negative
        ("psq_eg", "i4", (16, 64)),
        ("phase", "i4", (16,)),
        ("terms", "i4", (TERM_COUNT,)),  # weights of psearch_core/terms.py: middle game * 65536 + end game, centipawns
        ("units", "i4", (UNIT_COUNT,)),  # of danger to a king
        ("rest_bound", "i8"),  # bound on the sum of all terms except material and piece-square tables, centipawns
        ("kpk", "u8", (KPK_WORDS,)),  # king and pawn against king: one bit for each won position
    ]
)
