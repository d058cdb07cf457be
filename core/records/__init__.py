"""The layout of everything in memory: one place, every field with its unit and its writer.

Records are C structs (`align=True`); kernels see them through `view` at an address, Python through numpy.
"Owner" of a frame means the worker that runs the stack the frame is on; for a frame whose node is open, the fields
of the node belong to whoever holds its lock.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from psearch.core.intrinsics import view
from psearch.core.terms import TERM_COUNT, UNIT_COUNT

MAX_PLY = 128
"""Frames on a stack; a search that gets this deep returns the static evaluation."""
MAX_MOVES = 256
"""More than the 218 moves of the richest legal position."""
MAX_HISTORY = 128
"""Positions of the game before the root that are kept for repetitions: more than the fifty-move rule needs."""
INFO_RING = 256
"""Iteration reports that may wait for the supervisor; more than it can fall behind between two looks."""
CACHE_LINE = 64
MAX_VIRTUAL_WORKERS = 1024
CLAIM_SLOTS = 1 << 16
"""Most of the table of positions being searched, in groups of four: 64 a worker."""
PAWN_ENTRIES = 1024
"""Of the pawn hash of a worker, a power of two."""
KPK_WORDS = 2 * 24 * 64
"""Side to move, square of the pawn (files a to d, ranks 2 to 7), square of its king: a bitboard of the other king."""

i32 = types.int32
i64 = types.int64
u64 = types.uint64
void = types.void
boolean = types.boolean


def _record(fields: list[tuple[Any, ...]]) -> np.dtype[np.void]:
    return np.dtype(fields, align=True)


# -- chess ---------------------------------------------------------------------------------------------------------

position_dtype = _record(
    [
        ("piece_bb", "u8", (6,)),  # by piece type, both colours: P N B R Q K
        ("color_bb", "u8", (2,)),  # white, black
        ("castling_bb", "u8"),  # the rooks that may still castle (any file: Chess960)
        ("key", "u8"),  # Zobrist: pieces, side, castling rooks, en passant file if a capture is legal
        ("checkers", "u8"),  # pieces that give check to the side to move
        ("pinned", "u8"),  # own pieces of the side to move that shield its king; set by `find_pins`
        ("pawn_key", "u8"),  # Zobrist: pawns and kings only
        ("board", "u1", (64,)),  # 0 empty, else colour * 8 + piece type + 1
        ("psq_mg", "i4"),  # material and piece-square sum, centipawns, White minus Black, middle game
        ("psq_eg", "i4"),  # the same, end game
        ("phase", "i2"),  # sum of PHASE over the pieces on the board, 24 at the start, more after promotions
        ("ep", "i2"),  # square a pawn may capture to en passant, legally; -1 none
        ("side", "i4"),  # 0 White, 1 Black to move
        ("rule50", "i4"),  # plies since the last capture or pawn move
        (
            "reversible",
            "i4",
        ),  # plies since the last irreversible or null move: how far back a repetition can lie
    ]
)

tables_dtype = _record(
    [
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
        (
            "passed",
            "u8",
            (2, 64),
        ),  # own and neighbour files in front: no enemy pawn there makes a passed pawn
        ("front", "u8", (2, 64)),  # own file in front
        ("neighbours", "u8", (8,)),  # the files beside a file
        ("zobrist_piece", "u8", (16, 64)),
        ("zobrist_castling", "u8", (64,)),
        ("zobrist_ep", "u8", (8,)),
        ("zobrist_side", "u8"),
        ("psq_mg", "i4", (16, 64)),  # by board code; White positive, Black negative
        ("psq_eg", "i4", (16, 64)),
        ("phase", "i4", (16,)),
        ("terms", "i4", (TERM_COUNT,)),  # weights of core/terms.py: middle game * 65536 + end game, centipawns
        ("units", "i4", (UNIT_COUNT,)),  # of danger to a king
        ("rest_bound", "i8"),  # B: what terms beside material and piece-square tables may add up to, centipawns
        ("kpk", "u8", (KPK_WORDS,)),  # king and pawn against king, a bit for each position that is won
    ]
)

# -- one node of the search ----------------------------------------------------------------------------------------

node_dtype = _record(
    [
        ("lock", "i8"),  # atomic; 0 free, 1 held. Taken only while the node is, or is being, opened
        ("open", "i8"),  # atomic; 1 while others may join. Written under the lock
        ("closed", "i8"),  # atomic; 0, CLOSED_CUTOFF or CLOSED_ABORTED. Written under the lock
        ("inside", "i8"),  # workers that hold a visit of this open node. Under the lock
        ("joined", "i8"),  # helpers that ever joined. Under the lock
        ("open_parent", "i8"),  # frame of the nearest open ancestor, -1 none. Owner, at entry
        ("alpha", "i4"),  # rises as moves are searched
        ("beta", "i4"),
        ("entry_alpha", "i4"),  # alpha at entry: tells an exact result from an upper bound
        ("depth", "i4"),  # plies to go; 0 and below is quiescence
        ("type", "i4"),  # expected: PV_NODE, CUT_NODE, ALL_NODE
        ("best", "i4"),  # best value so far, fail-soft
        ("best_move", "i4"),  # the move that raised alpha or cut; 0 none
        ("eval", "i4"),  # static evaluation, side to move; NO_SCORE in check
        ("tt_move", "i4"),
        ("killer_1", "i4"),  # copies made at entry, so that every worker inside skips the same moves
        ("killer_2", "i4"),
        ("stage", "i4"),  # of the move picker
        ("cursor", "i4"),  # next entry of `moves`
        ("end", "i4"),  # end of the generated part of `moves`
        ("bad_end", "i4"),  # losing captures are kept in moves[0:bad_end]
        ("moves_done", "i4"),  # moves handed out
        ("in_check", "i4"),
        (
            "futility",
            "i4",
        ),  # a quiet move of at most this value cannot raise alpha; NO_SCORE: no pruning here
        ("priority", "i4"),  # for offers: bigger is more worth joining. Under the lock
        ("tt_bound", "i4"),  # bound of the table entry found at entry: a hint at the type. BOUND_NONE without one
        ("cut_index", "i4"),  # number of the move that failed high
        ("p_needed", "i4"),  # probability that the node is needed, in 1/65536. Owner, at entry
        ("owner", "i4"),  # the worker that entered it
        ("deferred", "i4"),  # moves put off while another worker searches the position; from the end of `moves`
        ("ply", "i4"),
        (
            "expected",
            "i4",
        ),  # type by Kannan's rule whatever the policy: steers reductions
        ("estimate", "i4"),  # static evaluation, or the table's score where its bound is on the right side of it
        ("improving", "i4"),  # 1: the static evaluation has risen since this side's last move
        ("tt_score", "i4"),  # of the entry found at entry, NO_SCORE without one
        ("tt_depth", "i4"),
        ("tt_kind", "i4"),  # its bound; BOUND_NONE without one
        ("phase", "i4"),  # PHASE_ENTRY .. PHASE_MAIN: what the present pass over the moves is for
        ("full_alpha", "i4"),  # window and depth of the node itself, while a phase searches it with others
        ("full_beta", "i4"),
        ("full_depth", "i4"),
        ("extension", "i4"),  # plies more for the table's move, as the singular search found
        ("extended", "i4"),  # 1: the move that led here was extended
        ("skip", "i4"),  # SKIP_NOTHING, SKIP_QUIETS, SKIP_ALL_QUIETS: from here on. Under the lock
        ("see_threshold", "i4"),  # PHASE_PROBCUT: what a capture must win
        ("cont_1", "i4"),  # piece and target of the move that led here, and of the one before: `piece_to`; 0 none
        ("cont_2", "i4"),
        ("nodes_before", "i8"),  # the owner's `nodes` at entry; -1 once a helper has joined. Owner; under the lock
        ("pv_length", "i4"),
        ("moves", "i4", (MAX_MOVES,)),  # score << 16 | move; owner, or under the lock once open
        ("pv", "i4", (MAX_PLY,)),  # line below this node, this node's move first; as for `best`
    ]
)

visit_dtype = _record(
    [
        ("home", "i8"),  # frame whose node this visit works on: this frame, or a helper's split node
        ("move", "i4"),  # the move being searched
        ("index", "i4"),  # its number at the node, from 0
        ("stage", "i2"),  # VISIT_NULL, VISIT_REDUCED, VISIT_SCOUT, VISIT_FULL
        ("put_off", "i2"),  # 1: the move was put off once, and is not again
        ("alpha", "i4"),  # the window the child is searched with, in the node's view
        ("beta", "i4"),
        ("depth", "i4"),  # of the child
        ("resume", "i4"),  # worker state that takes the child's value
        ("worker", "i4"),  # who began this visit
        ("nodes_before", "i8"),  # that worker's `nodes` when it did: prices what an abort throws away
        ("p_needed", "i4"),  # of the child, in 1/65536
        ("shared", "i4"),  # 1: taken while others were inside the node
        ("new_depth", "i4"),  # of the child without reduction: for the search that follows if a reduced one fails high
        ("picked", "i4"),  # stage of the picker when the move was taken
        ("claim", "u8"),  # of the child's position in the table of positions being searched; 0 none
        ("bound", "i4"),  # shadow mode: what the move is worth at most, had it been skipped; NO_SCORE: it had not
    ]
)

# In the time of the trace's clock (`trace_log_dtype`), and written only while a trace is recorded
frame_trace_dtype = _record(
    [
        ("opened", "i8"),  # when the node was opened. Under the lock
        ("split", "i8"),  # number of the open node, unlike any other of the search. Under the lock
        ("began", "i8"),  # when the visit's move was taken, at an open node. Runner of the stack
        ("entered", "i8"),  # of a root: when the present search of it began. Runner of the stack
    ]
)

frame_dtype = _record(
    [
        ("node", node_dtype),
        ("visit", visit_dtype),  # private to the worker that runs the stack
        # Helpers read the position of a split node while its visit changes: on a line of its own, so there is room for
        # 72 bytes here. An odd number of lines per frame spreads the frames over the cache sets.
        ("trace", frame_trace_dtype),
        ("pad", "u1", (40,)),
        ("position", position_dtype),  # written when the frame is entered, then only read
    ]
)

path_dtype = _record(
    [
        ("key", "u8"),  # of the position at this ply
        ("move", "i4"),  # that led to it; NULL_MOVE after a null move
        ("eval", "i4"),  # static evaluation there
    ]
)

stack_dtype = _record(
    [
        ("state", "i8"),  # atomic; STACK_FREE, STACK_ACTIVE, STACK_PARKED. Claimed by compare-and-swap
        (
            "open_mask",
            "i8",
            (2,),
        ),  # atomic; bit per ply: open, not closed, moves left. Changed under the node's lock
        ("home", "i8"),  # frame of the split node that this stack helps, -1 for the root's stack. Joiner
        ("base", "i8"),  # ply of that split node; 0 for the root's stack. Joiner
        (
            "parked_ply",
            "i8",
        ),  # where it was parked: its former runner has left that node. The one who parks it
        # iterative deepening; meaningful on the stack of a root, but the depth is copied to helpers' stacks
        ("root_depth", "i8"),
        ("root_window", "i8"),  # half width of the aspiration window
        ("root_alpha", "i8"),
        ("root_beta", "i8"),
        ("root_moves", "i4", (MAX_MOVES,)),  # best first; reordered between iterations by the worker at the root
        ("root_line", "i8"),  # MultiPV: lines found at this depth; their moves stand in front and are left out
        ("pad", "i8", (5,)),
        ("path", path_dtype, (MAX_PLY,)),  # from the root to here. Joiner copies 0 .. base
    ]
)

# -- node type prediction: counters and what is learnt from them -----------------------------------------------------

TYPES = 3
BOUNDS = 3  # of the table entry: none (or exact), upper, lower
DEPTHS = 20  # remaining depth, the last for all above
PROGRESS = 8  # moves done without a cutoff, in steps: see `progress_step`
BINS = 16
"""Of probabilities, in reliability curves."""
CERTAIN = 1 << 16
"""Probabilities are integers in units of 1/65536, so that every machine computes the same."""

outcomes_dtype = _record(
    [
        # by expected type, table bound, depth, progress at the end: nodes that failed low or were exact, nodes that cut
        ("ended", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS, 2)),
        ("deepest", "i8"),  # depth among them
        ("size_sum", "i8", (DEPTHS,)),  # nodes of unshared subtrees of this depth
        ("size_count", "i8", (DEPTHS,)),
        # moves taken at nodes that other workers were inside, by P(needed) at that time: all, and those whose result
        # was used in the end
        ("needed_seen", "i8", (BINS,)),
        ("needed_used", "i8", (BINS,)),
        ("wasted", "i8", (TYPES,)),  # nodes thrown away, by the expected type of the node that was cut off
    ]
)

prediction_dtype = _record(
    [
        ("seen", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # all outcomes so far; older iterations count less
        ("cut", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        ("p_no_cut", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # P(no cutoff), in 1/65536
        ("p_pass", "i4", (TYPES, BOUNDS, DEPTHS, PROGRESS)),  # P(the next move is done without a cutoff), the same
        ("size_sum", "i8", (DEPTHS,)),
        ("size_count", "i8", (DEPTHS,)),
        ("size", "i8", (DEPTHS,)),  # expected nodes of a subtree by depth
        ("join_cost", "i8"),  # nodes that a worker could search in the time a join takes, measured
        ("least_depth", "i8"),  # of a node that `calibrated` may open while all are busy: below it moves are too small
        ("fresh", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS, 2)),  # `ended` of all workers; zero but during a merge
        # for the study of predictions: what no merge forgets
        ("all_seen", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        ("all_cut", "i8", (TYPES, BOUNDS, DEPTHS, PROGRESS)),
        # by the P(no cutoff) that was in force, at entry and after moves: nodes, nodes without cutoff, sum of the
        # predictions and of their squared errors (in 1/65536)
        ("bin_seen", "i8", (2, BINS)),
        ("bin_no_cut", "i8", (2, BINS)),
        ("bin_p", "i8", (2, BINS)),
        ("bin_error", "i8", (2, BINS)),
    ]
)

# -- what the search learns about moves ------------------------------------------------------------------------------

MOVED = 1024
"""Values of `piece_to`: board code * 64 + target square."""

learning_dtype = _record(
    [
        # By side, from * 64 + to; within +-HISTORY_MAX. Shared by all workers without locks: an update that gets lost
        # changes the order of moves a little, and learning apart costs more nodes (docs/decisions/004).
        ("quiet", "i4", (2, 4096)),
        # The same for a move after another: by `piece_to` of the earlier move, one or two plies before, and of this one
        ("continuation", "i2", (MOVED, MOVED)),
        # Of captures: by `piece_to` and the type of what is taken
        ("capture", "i2", (MOVED, 8)),
    ]
)

# -- what was pruned -------------------------------------------------------------------------------------------------

TECHNIQUE_NAMES = (
    "futility",
    "extended_futility",
    "limited_razoring",
    "deep_futility",
    "quiet_shortcut",
    "null_move",
    "null_verify",
    "reverse_futility",
    "razoring",
    "probcut",
    "iid",
    "iir",
    "singular",
    "multicut",
    "check_extension",
    "lmr",
    "lmp",
    "history_pruning",
    "move_futility",
    "see_quiets",
    "see_captures",
    "see_quiescence",
    "delta",
    "sound",
    "sound_delta",
)
"""What workers count: tried, and pruned (reduced, extended). In the order of the constants of `core/pruning.py`."""
TECHNIQUES = 32
"""Room for them."""
# -- what evaluating a position needs beside the tables --------------------------------------------------------------

pawn_entry_dtype = _record(
    [
        ("key", "u8"),  # `pawn_key` of the position
        ("passed", "u8"),  # passed pawns of both sides
        ("spans", "u8", (2,)),  # squares that pawns of a side attack, or may after advancing
        ("score", "i8"),  # pawn and shelter terms, White minus Black, as a pair
        ("units", "i4", (2,)),  # danger to the king of a side from its shelter
        ("pad", "u1", (16,)),  # to a cache line
    ]
)

evaluation_dtype = _record(
    [
        # scratch: attack maps of the position being evaluated, by side
        ("by_piece", "u8", (2, 6)),
        ("attacked", "u8", (2,)),
        ("twice", "u8", (2,)),
        ("mobility_area", "u8", (2,)),
        ("ring", "u8", (2,)),  # squares around the king
        ("units", "i8", (2,)),  # danger to the king of the other side
        ("queen_diagonal", "u8", (2,)),  # the bishop's half of what the last queen attacks; stale without a queen
        ("queen_straight", "u8", (2,)),
        ("pad", "u1", (48,)),  # to a cache line
        ("pawns", pawn_entry_dtype, (PAWN_ENTRIES,)),  # private to a worker: no races, and the same on every run
    ]
)

# -- sound futility ----------------------------------------------------------------------------------------------------

# Gates of sound futility (`core/sound.py`), bits of `sound_gates`: together they make it sound
SOUND_CHECKS = 1 << 0  # no move that gives check
SOUND_FRONTIER = 1 << 1  # the child is quiescence
SOUND_EN_PASSANT = 1 << 2  # exact material: the pawn taken in passing
SOUND_PROMOTION = 1 << 3  # what a pawn becomes
SOUND_CASTLING = 1 << 4  # king and rook both move
SOUND_PHASE = 1 << 5  # the game phase changes with the pieces
SOUND_REPETITION = 1 << 6  # the child may be drawn: by repetition
SOUND_FIFTY_MOVES = 1 << 7  # by the fifty-move rule
SOUND_MATERIAL = 1 << 8  # for lack of material
SOUND_SCALING = 1 << 13  # its evaluation may be scaled towards zero
SOUND_BOUND = 1 << 9  # B is added: the rest of the evaluation is bounded, not absent
SOUND_RAW = 1 << 10  # quiescence reads no table: it stands pat on the evaluation itself
SOUND_LEGALITY = 1 << 11  # a skipped move is a legal move
SOUND_BOOKKEEPING = 1 << 12  # its bound counts as a value
SOUND_GATES = (1 << 14) - 1
"""All of them."""

VIOLATIONS = 4
"""Violations that a worker keeps for the user to look at; all are counted."""

violation_dtype = _record(
    [
        ("move", "i4"),
        ("value", "i4"),  # what the search found, centipawns, in the node's view
        ("bound", "i4"),  # what sound futility claimed
        ("exact", "i4"),  # M(C) + B from the child's own sums
        ("alpha", "i4"),  # the window it was searched with
        ("ply", "i4"),
        ("line", "u2", (MAX_PLY,)),  # moves from the root to the node, `ply` of them
    ]
)

# -- what belongs to a worker ----------------------------------------------------------------------------------------

worker_dtype = _record(
    [
        # the first line changes all the time and is read by the supervisor every now and then
        ("nodes", "i8"),
        ("index", "i8"),  # this worker's number
        ("state", "i8"),  # STATE_IDLE .. : which handler runs next
        ("stack", "i8"),  # -1 when idle
        ("ply", "i8"),
        ("value", "i8"),  # what the last finished child returned, in the child's view
        ("seen_epoch", "i8"),  # the abort epoch this worker has acted on; -1 forces a look
        ("next_check", "i8"),  # look at the node limit when `nodes` gets here
        ("seldepth", "i8"),
        ("qnodes", "i8"),
        ("tt_probes", "i8"),
        ("tt_hits", "i8"),
        ("opens", "i8"),
        ("splits", "i8"),  # nodes finished that had helpers; counted by the last one out
        ("joins", "i8"),
        ("parks", "i8"),
        ("adopts", "i8"),
        ("aborts", "i8"),  # unwinds begun
        ("aborted_nodes", "i8"),
        ("polls", "i8"),  # looks for work that found none
        ("failed_joins", "i8"),
        ("claims", "i8"),  # positions claimed
        ("last_victim", "i8"),  # where the next look for work begins
        ("last_stack", "i8"),  # where the next look for a free stack begins
        ("last_lock", "i8"),  # frame of the node last locked, -1 none since the driver looked: for virtual time
        ("join_cycles", "i8"),  # time stamp counter, spent in joins that succeeded
        ("idle_cycles", "i8"),  # time stamp counter, by the process driver
        ("search_cycles", "i8"),  # the same, since this worker began the search
        ("shadow_checked", "i8"),  # shadow mode: moves that would have been skipped, and were searched
        ("shadow_violations", "i8"),  # those of them whose bound was wrong
        ("pad", "u1", (16,)),  # `ended` of the outcomes begins a cache line
        ("outcomes", outcomes_dtype),  # since the last merge
        ("killers", "i4", (MAX_PLY, 2)),
        ("pruned", "i8", (TECHNIQUES, 2)),  # by technique: times tried, times it pruned (reduced, extended)
        ("violations", violation_dtype, (VIOLATIONS,)),  # the first of them
        ("evaluation", evaluation_dtype),
    ]
)

# -- what all share --------------------------------------------------------------------------------------------------

REDUCTIONS = 64
"""Depths and move numbers in the table of reductions, the last for all above."""

pruning_dtype = _record(
    [
        # Switches are 1 or 0, margins centipawns, depths plies. What each technique does: `core/pruning.py`
        ("futility", "i4"),
        ("futility_margin", "i4"),
        ("extended_futility", "i4"),
        ("extended_futility_margin", "i4"),
        ("limited_razoring", "i4"),
        ("limited_razoring_margin", "i4"),
        ("futility_by_material", "i4"),  # 1: margins are added to material and piece-square sum; 0: to the evaluation
        ("futility_captures", "i4"),  # 1: captures are futile too, with what they take added
        ("exempt_checks", "i4"),
        ("exempt_seventh", "i4"),
        ("exempt_bishop_pair", "i4"),
        ("exempt_advanced_pawn", "i4"),
        ("exempt_queen", "i4"),
        ("quiet_shortcut", "i4"),
        ("deep_futility", "i4"),
        ("deep_futility_margin", "i4"),
        ("null_move", "i4"),
        ("null_adaptive", "i4"),  # 1: Heinz's R; 0: the formula of the three fields that follow
        ("null_base", "i4"),
        ("null_depth_divisor", "i4"),
        ("null_eval_divisor", "i4"),
        ("null_verify", "i4"),
        ("null_verify_depth", "i4"),
        ("reverse_futility", "i4"),
        ("reverse_futility_depth", "i4"),
        ("reverse_futility_margin", "i4"),  # per ply
        ("reverse_futility_net", "i4"),  # 1: not with the king in a mating net
        ("reverse_futility_net_depth", "i4"),
        ("razoring", "i4"),
        ("razoring_depth", "i4"),
        ("razoring_margin", "i4"),  # per ply
        ("probcut", "i4"),
        ("probcut_depth", "i4"),
        ("probcut_margin", "i4"),
        ("iid", "i4"),
        ("iid_depth", "i4"),
        ("iir", "i4"),
        ("iir_depth", "i4"),
        ("singular", "i4"),
        ("singular_depth", "i4"),
        ("singular_margin", "i4"),  # per ply
        ("double_margin", "i4"),  # below the singular bound, from which the move gets two plies
        ("check_extension", "i4"),  # 1: checks that lose nothing; 2: all checks
        ("lmr", "i4"),
        ("lmr_base", "i4"),  # reduction = base + ln(depth) ln(move number) / divisor, both in 1/100 ply
        ("lmr_divisor", "i4"),
        ("lmr_history", "i4"),  # history that is worth a ply
        ("lmp", "i4"),
        ("lmp_depth", "i4"),
        ("lmp_base", "i4"),
        ("history_pruning", "i4"),
        ("history_pruning_depth", "i4"),
        ("history_pruning_margin", "i4"),  # history per ply
        ("move_futility", "i4"),
        ("move_futility_depth", "i4"),
        ("move_futility_base", "i4"),
        ("move_futility_margin", "i4"),  # per ply of reduced depth
        ("see_quiets", "i4"),
        ("see_quiets_margin", "i4"),  # per ply squared
        ("see_captures", "i4"),
        ("see_captures_margin", "i4"),  # per ply
        ("see_depth", "i4"),
        ("delta", "i4"),
        ("delta_margin", "i4"),
        ("table_in_quiescence", "i4"),  # 1: quiescence reads and writes the transposition table
        ("sound", "i4"),  # 1: sound futility at frontier nodes
        ("sound_delta", "i4"),  # 1: the same in quiescence
        ("sound_gates", "i4"),  # SOUND_GATES; tests leave some out
        ("reductions", "i2", (REDUCTIONS, REDUCTIONS)),  # by depth and move number, in 1/256 ply; derived
    ]
)

options_dtype = _record(
    [
        ("tt", "i4"),  # 1: use the transposition table
        ("pruning", pruning_dtype),
        ("see_pruning", "i4"),  # quiescence skips losing captures
        ("mate_distance", "i4"),
        ("policy", "i4"),  # POLICY_SERIAL, ... see scheduler/policy.py
        ("split_depth", "i4"),  # a node of less depth is never opened
        ("wait", "i4"),  # 1: nothing opens before its first move is done (young brothers wait)
        ("open_busy", "i4"),  # calibrated: percent P(needed) from which a node opens while all are busy
        ("open_idle", "i4"),  # and while somebody is idle
        ("join_cost", "i4"),  # what a join costs, in nodes; 0: as measured, `prediction.join_cost`
        ("defer_depth", "i4"),  # moves to positions that another worker is searching this deep are put off; 0 never
        ("record", "i4"),  # 1: count outcomes for the prediction
        ("shadow", "i4"),  # 1: sound futility skips nothing; what it would skip is searched and checked
        ("aspiration", "i4"),  # half width of the first window, centipawns; 0: full window
    ]
)

info_dtype = _record(
    [
        ("nodes", "i8"),
        ("depth", "i4"),
        ("seldepth", "i4"),
        ("score", "i4"),
        ("bound", "i4"),  # BOUND_EXACT, BOUND_LOWER, BOUND_UPPER
        ("pv_length", "i4"),
        ("line", "i4"),  # MultiPV: 0 for the best line, 1 for the one without its move, and so on
        ("pv", "i4", (MAX_PLY,)),
    ]
)

header_dtype = _record(
    [
        ("stop", "i8"),  # atomic; 1: unwind and store nothing. Supervisor, or a worker at the node limit
        ("pad_0", "i8", (7,)),
        ("abort_epoch", "i8"),  # atomic; rises at every cutoff of a shared node and at a stop
        ("pad_1", "i8", (7,)),
        ("done", "i8"),  # atomic; 1 when the root is finished. Written by the worker that finishes it
        ("pad_3", "i8", (7,)),
        ("info_count", "i8"),  # atomic; reports written to `infos` so far
        ("pad_4", "i8", (7,)),
        ("idle_workers", "i8"),  # atomic; workers without a stack. Rises and falls at joins and leaves only
        ("pad_5", "i8", (7,)),
        ("roots", "i8"),  # atomic; roots still being searched: one, or one a worker where nothing is split
        ("pad_6", "i8", (7,)),
        # from here on: written by the supervisor between searches, then only read
        ("worker_count", "i8"),
        ("stack_count", "i8"),
        ("node_limit", "i8"),  # 0 none
        ("max_depth", "i8"),
        ("multipv", "i8"),  # lines to find, 1 .. root_count
        ("legal_root_moves", "i8"),  # root_count may be less: the caller's choice
        ("age", "i8"),  # of transposition table entries, 0 .. 63
        ("options", options_dtype),
        ("root", position_dtype),
        ("root_count", "i8"),
        (
            "root_moves",
            "i4",
            (MAX_MOVES,),
        ),  # best first; reordered between iterations by the worker at the root
        ("history_count", "i8"),
        ("history", "u8", (MAX_HISTORY,)),  # keys of the game's positions before the root, the last one first
        # the answer so far; written by the worker that runs the main root, between iterations
        ("depth", "i8"),
        ("score", "i8"),  # of the last finished iteration
        ("best_move", "i8"),
        ("line_scores", "i4", (MAX_MOVES,)),  # MultiPV: the last score of each line
        ("learning", learning_dtype),
        ("prediction", prediction_dtype),  # merged from all workers between iterations, when nobody searches
        ("claim_slots", "i8"),  # in use, a power of two: few for few workers, to stay in their caches
        ("claims", "i8", (CLAIM_SLOTS,)),  # atomic; positions being searched; see `claims.py`
        ("infos", info_dtype, (INFO_RING,)),
    ]
)

# -- virtual time: one tick is a picosecond --------------------------------------------------------------------------

costs_dtype = _record(
    [
        ("node", "i8"),  # of the main search
        ("qnode", "i8"),  # of quiescence
        ("open", "i8"),
        ("join", "i8"),  # the whole of a join that succeeds, the copying included
        ("leave", "i8"),  # leaving an open node: park, adopt, or free
        ("lock", "i8"),  # what a node's lock is held for
        ("poll", "i8"),  # a look for work that finds none
        ("poll_stack", "i8"),  # more for each stack of the pool
        ("abort", "i8"),  # noticing a cutoff above
        ("claim", "i8"),  # of a position being searched, the look before and the release after included
        ("jitter", "i8"),  # every cost varies by up to this share, in 1/65536
    ]
)

simulation_dtype = _record(
    [
        ("costs", costs_dtype),
        ("now", "i8"),  # clock of the worker that moved last
        ("deadline", "i8"),  # clock at which the search is told to stop; 0 never
        ("random", "u8"),
        ("heap_size", "i8"),
        ("sleepers", "i8"),
        ("events", "i8"),
        ("heap", "i8", (MAX_VIRTUAL_WORKERS,)),  # clock << 10 | worker: ties go to the lower number
        ("sleeping", "i8", (MAX_VIRTUAL_WORKERS,)),  # workers that wait for an offer, in the order they fell asleep
        ("idle_since", "i8", (MAX_VIRTUAL_WORKERS,)),
        ("idle_time", "i8", (MAX_VIRTUAL_WORKERS,)),
    ]
)

# -- the trace: what the workers did, if somebody wants to see it ------------------------------------------------------

# Events that a worker may have in its log; which fields an event has is said in `psearch.scheduler.trace_log`
TRACE_TAKE, TRACE_JOIN, TRACE_IDLE, TRACE_ABORT, TRACE_SPLIT, TRACE_ROOT = range(1, 7)

trace_event_dtype = _record(
    [
        ("time", "i8"),  # when it happened, or ended: time stamp counter, or virtual ticks
        ("begin", "i8"),  # when it began
        ("split", "i8"),  # number of the open node it is about, as in `frame_trace_dtype`
        ("value", "i8"),  # nodes thrown away (TRACE_ABORT); score (TRACE_ROOT)
        ("kind", "i4"),
        ("frame", "i4"),  # of the node it is about, -1 none
        ("depth", "i4"),
        ("type", "i4"),  # expected type of the node
        ("p_needed", "i4"),  # in 1/65536
        ("move", "i4"),  # taken by the helper (TRACE_JOIN); best (TRACE_ROOT)
        ("helpers", "i4"),  # that joined (TRACE_SPLIT)
        (
            "outcome",
            "i4",
        ),  # `closed` of the node (TRACE_SPLIT); 1: the value came too late (TRACE_ABORT); bound (TRACE_ROOT)
    ]
)

trace_log_dtype = _record(
    [
        # Before the events of each worker, and written by that worker; the clock also by the driver in virtual time
        ("count", "i8"),  # atomic; events in the log: an event is complete once it is counted
        ("dropped", "i8"),  # events that found no room
        ("dropped_from", "i8"),  # when the first of them happened
        ("clock", "i8"),  # virtual time at which this worker's turn began; -1: use the time stamp counter
        ("pad", "i8", (4,)),
    ]
)

context_dtype = _record(
    [
        # addresses in this process; each process has its own copy of this record
        ("header", "i8"),
        ("workers", "i8"),
        ("stacks", "i8"),
        ("frames", "i8"),
        ("tables", "i8"),
        ("tt", "i8"),
        ("tt_clusters", "u8"),
        ("trace", "i8"),  # address of the workers' logs, 0 while no trace is recorded
        ("trace_capacity", "i8"),  # events in each log
    ]
)


def _numba_record(dtype: np.dtype[np.void]) -> types.Record:
    record = numba.from_dtype(dtype)
    if not isinstance(record, types.Record):
        raise AssertionError(f"{dtype} is no record")
    return record


Position = _numba_record(position_dtype)
Tables = _numba_record(tables_dtype)
Node = _numba_record(node_dtype)
Visit = _numba_record(visit_dtype)
Frame = _numba_record(frame_dtype)
Stack = _numba_record(stack_dtype)
PawnEntry = _numba_record(pawn_entry_dtype)
Evaluation = _numba_record(evaluation_dtype)
Worker = _numba_record(worker_dtype)
Pruning = _numba_record(pruning_dtype)
Options = _numba_record(options_dtype)
Info = _numba_record(info_dtype)
Outcomes = _numba_record(outcomes_dtype)
Prediction = _numba_record(prediction_dtype)
Learning = _numba_record(learning_dtype)
Header = _numba_record(header_dtype)
Context = _numba_record(context_dtype)
Simulation = _numba_record(simulation_dtype)
TraceEvent = _numba_record(trace_event_dtype)
TraceLog = _numba_record(trace_log_dtype)

position_at = view(Position)
tables_at = view(Tables)
frame_at = view(Frame)
stack_at = view(Stack)
evaluation_at = view(Evaluation)
worker_at = view(Worker)
header_at = view(Header)
learning_at = view(Learning)
context_at = view(Context)
simulation_at = view(Simulation)
trace_event_at = view(TraceEvent)
trace_log_at = view(TraceLog)

FRAME_SIZE = frame_dtype.itemsize
STACK_SIZE = stack_dtype.itemsize
WORKER_SIZE = worker_dtype.itemsize
TRACE_EVENT_SIZE = trace_event_dtype.itemsize
TRACE_LOG_SIZE = trace_log_dtype.itemsize

if FRAME_SIZE % (2 * CACHE_LINE) != CACHE_LINE or STACK_SIZE % CACHE_LINE or WORKER_SIZE % CACHE_LINE:
    raise AssertionError(f"record sizes: frame {FRAME_SIZE}, stack {STACK_SIZE}, worker {WORKER_SIZE}")
if Worker.offset("outcomes") % CACHE_LINE or _numba_record(outcomes_dtype).offset("ended"):
    raise AssertionError("the counts of a class lie in two cache lines")
if TRACE_EVENT_SIZE != CACHE_LINE or TRACE_LOG_SIZE != CACHE_LINE:
    raise AssertionError(f"record sizes: trace event {TRACE_EVENT_SIZE}, trace log {TRACE_LOG_SIZE}")
