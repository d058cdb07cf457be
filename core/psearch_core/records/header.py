"""Records that all workers share: options, root, the answer so far, learning, reports; and the addresses of all."""

from psearch_core.records.chess import position_dtype
from psearch_core.records.layout import CLAIM_SLOTS, INFO_RING, MAX_HISTORY, MAX_MOVES, record
from psearch_core.records.node_record import info_dtype
from psearch_core.records.pruning_record import pruning_dtype
from psearch_core.records.worker_record import prediction_dtype

MOVED = 1024
"""Number of values of `piece_to`, board code * 64 + target square."""
CORRECTIONS = 1 << 14
"""Number of entries of a table of corrections, a power of two."""

learning_dtype = record(
    [
        # By side, by whether a move leaves (2) and goes to (1) a square that the other side attacks, and by
        # from * 64 + to; within +-HISTORY_MAX. All workers share it without locks: a lost update changes the order of
        # moves a little, and separate tables cost more nodes (docs/decisions/004).
        ("quiet", "i2", (2, 4, 4096)),
        # History of a move after another: by `piece_to` of the move one or two plies before, and of this move
        ("continuation", "i2", (MOVED, MOVED)),
        # History of captures: by `piece_to` and the type of the captured piece
        ("capture", "i2", (MOVED, 8)),
        # Differences of searches from the static evaluation (`correction` in `chess/search`), by side to move and a
        # hash; within +-1024
        ("pawn_correction", "i2", (2, CORRECTIONS)),  # by hash of the pawns
        ("piece_correction", "i2", (2, 2, CORRECTIONS)),  # by hash of the pieces of a colour
        ("move_correction", "i2", (2, CORRECTIONS)),  # by hash of the last two moves
    ]
)

options_dtype = record(
    [
        ("tt", "i4"),  # 1: use the transposition table
        ("pruning", pruning_dtype),
        ("see_pruning", "i4"),  # quiescence skips losing captures
        ("mate_distance", "i4"),
        ("policy", "i4"),  # POLICY_SERIAL, ... see scheduler/policy.py
        ("split_depth", "i4"),  # least depth of a node that may be opened
        ("wait", "i4"),  # 1: no node opens before its first move is done (young brothers wait)
        ("open_busy", "i4"),  # calibrated: percent P(needed) from which a node opens while all workers are busy
        ("open_idle", "i4"),  # percent P(needed) from which a node opens while a worker is idle
        ("join_cost", "i4"),  # cost of a join, in nodes; 0: the measured `prediction.join_cost`
        ("defer_depth", "i4"),  # least depth at which moves that others search are deferred; 0 never, -1 by policy
        ("record", "i4"),  # 1: count outcomes for the prediction
        ("aspiration", "i4"),  # half width of the first window, centipawns; 0: full window
        ("roots", "i4"),  # roots searched at the same time when work is split; a policy may give one to each worker
        ("null_windows", "i4"),  # least depth at which null windows find the value of the root; 0 never
        ("early_evaluation", "i4"),  # 1: the network evaluates while the table's entry is on its way
    ]
)

header_dtype = record(
    [
        ("stop", "i8"),  # atomic; 1: unwind and store nothing. Written by the supervisor, or at a limit
        ("deadline", "i8"),  # atomic; `monotonic_ns` at which a worker stops the search, 0 never
        ("pad_0", "i8", (6,)),
        ("abort_epoch", "i8"),  # atomic; rises at every cutoff of a shared node and at a stop
        ("pad_1", "i8", (7,)),
        ("done", "i8"),  # atomic; 1 when the root is finished. Written by the worker that finishes it
        ("pad_3", "i8", (7,)),
        ("info_count", "i8"),  # atomic; reports written to `infos` so far
        ("pad_4", "i8", (7,)),
        ("idle_workers", "i8"),  # atomic; workers without a stack. Changes only at joins and leaves
        ("pad_5", "i8", (7,)),
        ("roots", "i8"),  # atomic; roots still being searched
        ("first_roots", "i8"),  # atomic; roots at the start, on stacks 0, 1 ..; 0 until worker 0 has asked the policy
        ("pad_6", "i8", (6,)),
        # the following fields are written by the supervisor between searches, then only read
        ("worker_count", "i8"),
        ("stack_count", "i8"),
        ("node_limit", "i8"),  # 0 none
        ("max_depth", "i8"),
        ("first_depth", "i8"),  # above 1: the search continues from `line_scores` after workers were replaced
        ("multipv", "i8"),  # lines to find, 1 .. root_count
        ("legal_root_moves", "i8"),  # legal moves of the root; root_count may be less, if the caller has chosen some
        ("age", "i8"),  # age of this search's entries of the transposition table, 0 .. 63
        ("options", options_dtype),
        ("root", position_dtype),
        ("root_count", "i8"),
        ("root_moves", "i4", (MAX_MOVES,)),  # best first, by what is known before the search
        ("root_nodes", "i8", (MAX_MOVES,)),  # nodes below each, at the main root. Under its lock once open
        ("history_count", "i8"),
        ("history", "u8", (MAX_HISTORY,)),  # keys of the positions before the root, latest first
        # the answer so far; written by the worker that runs the main root, between iterations, and by the vote
        ("depth", "i8"),
        ("score", "i8"),  # score of the last finished iteration
        ("best_move", "i8"),
        ("exhausted", "i8"),  # 1: the last iteration searched the whole game; never so in chess
        ("line_scores", "i4", (MAX_MOVES,)),  # last score of each line (MultiPV); the first is set at `first_depth`
        ("learning", learning_dtype),
        ("prediction", prediction_dtype),  # merged from all workers between iterations of the main root
        ("claim_depth", "i8"),  # least depth at which workers claim the positions that they search; 0 never
        ("claim_slots", "i8"),  # slots in use, a power of two: few for few workers, so that they stay in caches
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
        # memory for the kernels of a user's file alone
        ("plug_in", "i8"),
        ("plug_in_words", "i8"),  # 64-bit words, at least one
        ("has_read_idle", "i8"),  # 1: a worker has read the number of idle workers, which costs virtual time
        # in virtual time only
        ("lock_times", "i8"),  # address of a `lock_dtype` for each frame
        ("clock", "i8"),  # clock of the worker whose turn it is
    ]
)
