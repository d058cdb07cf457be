"""What all workers share: options, root, the answer so far, what is learnt, reports; and the addresses of it all."""

from __future__ import annotations

from psearch_core.records.chess import position_dtype
from psearch_core.records.layout import CLAIM_SLOTS, INFO_RING, MAX_HISTORY, MAX_MOVES, record
from psearch_core.records.node_record import info_dtype
from psearch_core.records.pruning_record import pruning_dtype
from psearch_core.records.worker_record import prediction_dtype

MOVED = 1024
"""Values of `piece_to`: board code * 64 + target square."""
CORRECTIONS = 1 << 14
"""Entries of a table of corrections, a power of two."""

learning_dtype = record(
    [
        # By side, by whether a move leaves (2) and goes to (1) a square that the other side attacks, and by
        # from * 64 + to; within +-HISTORY_MAX. Shared by all workers without locks: an update that gets lost
        # changes the order of moves a little, and learning apart costs more nodes (docs/decisions/004).
        ("quiet", "i4", (2, 4, 4096)),
        # The same for a move after another: by `piece_to` of the earlier move, one or two plies before, and of this one
        ("continuation", "i2", (MOVED, MOVED)),
        # Of captures: by `piece_to` and the type of what is taken
        ("capture", "i2", (MOVED, 8)),
        # By how much searches differ from the static evaluation (`correction` in `chess/search`), by side to move and a
        # hash; within +-1024
        ("pawn_correction", "i2", (2, CORRECTIONS)),  # of the pawns
        ("piece_correction", "i2", (2, 2, CORRECTIONS)),  # of the pieces of a colour
        ("move_correction", "i2", (2, CORRECTIONS)),  # of the last two moves
    ]
)

options_dtype = record(
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
        ("defer_depth", "i4"),  # from so much depth moves others are at are put off; 0 never, -1 as the policy has it
        ("record", "i4"),  # 1: count outcomes for the prediction
        ("aspiration", "i4"),  # half width of the first window, centipawns; 0: full window
        ("roots", "i4"),  # searched at once where work is split; the policy may want one for each worker
        ("null_windows", "i4"),  # from so much depth on the value of the root is proved by null windows; 0 never
    ]
)

header_dtype = record(
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
        ("roots", "i8"),  # atomic; roots still being searched
        ("first_roots", "i8"),  # atomic; how many there were, on stacks 0, 1 ..; 0 until worker 0 has asked the policy
        ("pad_6", "i8", (6,)),
        # from here on: written by the supervisor between searches, then only read
        ("worker_count", "i8"),
        ("stack_count", "i8"),
        ("node_limit", "i8"),  # 0 none
        ("max_depth", "i8"),
        ("first_depth", "i8"),  # more than 1: with `line_scores` of the depth before, by workers replaced since
        ("multipv", "i8"),  # lines to find, 1 .. root_count
        ("legal_root_moves", "i8"),  # root_count may be less: the caller's choice
        ("age", "i8"),  # of transposition table entries, 0 .. 63
        ("evaluated_by", "i8"),  # 0 nothing yet, 1 by hand, 2 by the network: what the table's values rest on
        ("options", options_dtype),
        ("root", position_dtype),
        ("root_count", "i8"),
        # best first; reordered between iterations by the worker at the root
        ("root_moves", "i4", (MAX_MOVES,)),
        ("history_count", "i8"),
        ("history", "u8", (MAX_HISTORY,)),  # keys of the game's positions before the root, the last one first
        # the answer so far; written by the worker that runs the main root, between iterations, and by the vote
        ("depth", "i8"),
        ("score", "i8"),  # of the last finished iteration
        ("best_move", "i8"),
        ("exhausted", "i8"),  # 1: the last iteration has searched the whole game; chess never does
        ("line_scores", "i4", (MAX_MOVES,)),  # MultiPV: the last score of each line; of the first at `first_depth`
        ("learning", learning_dtype),
        ("prediction", prediction_dtype),  # merged from all workers between iterations of the main root
        ("claim_depth", "i8"),  # remaining depth from which positions being searched are claimed; 0 never
        ("claim_slots", "i8"),  # in use, a power of two: few for few workers, to stay in their caches
        ("claims", "i8", (CLAIM_SLOTS,)),  # atomic; positions being searched; see `claims.py`
        ("infos", info_dtype, (INFO_RING,)),
    ]
)

context_dtype = record(
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
        # memory of kernels that stand in for others: what it holds is theirs to say
        ("plug_in", "i8"),
        ("plug_in_words", "i8"),  # of 64 bits, one at least
        ("has_read_idle", "i8"),  # 1: a worker has asked how many are idle; virtual time charges for it
        # in virtual time only
        ("lock_times", "i8"),  # address of a `lock_dtype` for each frame
        ("clock", "i8"),  # of the worker whose turn it is
    ]
)
