"""Numbers of colours, pieces, squares, moves, scores, node types and states.

Bitboards and keys must be combined only with uint64 constants: in numba `uint64 op int64` is silently signed.
"""

import numpy as np

WHITE, BLACK = 0, 1
PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)
NO_SQUARE = -1

U0 = np.uint64(0)
U1 = np.uint64(1)
ALL_BB = np.uint64(0xFFFFFFFFFFFFFFFF)
FILE_A_BB = np.uint64(0x0101010101010101)
NOT_FILE_A_BB = np.uint64(0xFEFEFEFEFEFEFEFE)
NOT_FILE_H_BB = np.uint64(0x7F7F7F7F7F7F7F7F)
RANK_1_BB = np.uint64(0xFF)
RANK_3_BB = np.uint64(0xFF0000)
RANK_6_BB = np.uint64(0xFF0000000000)
RANK_8_BB = np.uint64(0xFF00000000000000)
LIGHT_BB = np.uint64(0x55AA55AA55AA55AA)

# A move is from | to << 6 | kind << 12. Castling is king takes own rook, as in Chess960.
KIND_NORMAL = 0
KIND_DOUBLE = 1
KIND_EP = 2
KIND_CASTLE = 3
KIND_PROMOTE = 4
"""First kind of promotion: 4 knight, 5 bishop, 6 rook, 7 queen (4 + piece type - KNIGHT)."""
NO_MOVE = 0
NULL_MOVE = 65
MOVE_MASK = 0xFFFF

# Scores are centipawns for the side to move; a mate in n plies is MATE - n.
MATE = 32000
MATE_IN_MAX_PLY = MATE - 256
"""Lowest score that is a mate."""
INFINITE = 32001
NO_SCORE = -32002
DRAW = 0
QUIESCENCE_BUDGET = 1 << 14
"""Greatest number of positions in a quiescence search on a crowded board, unless some can be pruned. The first
iteration then takes about 10 ms."""
UNLIMITED = 1 << 62

CLUSTER_BYTES = 64
"""Size in bytes of a cluster of the transposition table: a cache line with four entries."""
ENTRY_BYTES = 16
"""Size in bytes of an entry of the transposition table."""
AGES = 64
"""Number of ages of table entries: searches are numbered modulo this."""

BOUND_NONE, BOUND_UPPER, BOUND_LOWER, BOUND_EXACT = 0, 1, 2, 3

# Expected node types: types 1, 2, 3 of Knuth and Moore 1975
PV_NODE, CUT_NODE, ALL_NODE = 0, 1, 2
TYPE_NAMES = ("PV", "CUT", "ALL")

CLOSED_CUTOFF = 1
"""State of an open node after a cutoff: its value is final, its unfinished moves do not matter."""
CLOSED_ABORTED = 2
"""State of an open node after a cutoff above it or a stop: it has no value."""

# Worker states: which handler runs next
STATE_IDLE, STATE_ENTER, STATE_NEXT, STATE_CHILD = 0, 1, 2, 3
STATE_QNEXT, STATE_QCHILD, STATE_UNWIND, STATE_FINISH = 4, 5, 6, 7
STATE_ROOT, STATE_BEGIN = 8, 9
STATE_NAMES = ("idle", "enter", "next", "child", "qnext", "qchild", "unwind", "finish", "root", "begin")

STACK_FREE, STACK_ACTIVE, STACK_PARKED = 0, 1, 2
STACK_NAMES = ("free", "active", "parked")

# Which search a visit is waiting for
VISIT_NULL, VISIT_SCOUT, VISIT_FULL, VISIT_REDUCED = 0, 1, 2, 3

# Passes over the moves of a node, in the order in which a node makes some of them
PASS_ENTRY, PASS_VERIFY, PASS_IID, PASS_PROBCUT, PASS_SINGULAR, PASS_MAIN = range(6)

# Which moves the picker skips
SKIP_NOTHING = 0
SKIP_QUIETS = 1
"""Skip quiet moves, except checks if these are exempt from futility."""
SKIP_ALL_QUIETS = 2

# What a handler of a node wants next
DO_RETURN, DO_MOVES, DO_NULL, DO_CHILD, DO_CUTOFF, DO_QUIESCENCE = range(6)

HISTORY_MAX = 8192
