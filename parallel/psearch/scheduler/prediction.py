"""Predicts how likely a node is to finish without a cutoff, by its expected type and the outcomes counted so far.

Each worker counts its finished nodes by expected type, bound of the table entry, depth, and number of moves done
without a cutoff: how many nodes got that far, and how many of them still cut. Between iterations of a root the counts
of all workers are merged and P(no cutoff) is computed. With few counts the expected type decides (a prior worth
`_PRIOR_WEIGHT` nodes).

The probability that a node is needed is a product along its ancestors: a child is needed if its parent is needed and no
earlier move, which another worker is still searching, causes a cutoff (Texel 1.05 does this with fixed numbers; Felten
and Otto 1988 took the type from the table bound). The probability that one move cuts comes from the same counts.
`policy.py` uses the predictions to open nodes.

Locks: none for counters, since each worker writes its own. Predictions for an open node are computed under its lock.
Only `merge_outcomes` changes the tables, in one worker at a time; workers at other roots may read them meanwhile.
"""

import numpy as np

from psearch_core.constants import BOUND_EXACT, BOUND_NONE, CUT_NODE
from psearch_core.records import BINS, BOUNDS, CERTAIN, DEPTHS, PROGRESS, TYPES
from psearch_core.toolchain.intrinsics import check
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Node, Prediction, Worker, header_of, i64, void, worker_of

RECORD_DEPTH = 1
"""Least depth of nodes that are counted; quiescence is not, since its nodes are never opened."""
_PRIOR_WEIGHT = 16
_DECAY_SHIFT = 1
"""Shift that halves the weight of earlier iterations at each merge."""
_DEFAULT_JOIN_COST = 4
"""Cost of a join in nodes, until joins have been measured."""
_JOINS_TO_MEASURE = 64
_MOST_JOIN_CYCLES = 1 << 40
_MOST_CYCLES = 1 << 52
"""Greatest number of cycles of one worker (three weeks), so that the sum over all workers fits into 64 bits."""
_MOST_JOIN_COST = 1000
_PRIOR_CUT_NODE = np.array([6000, 26000, 36000, 42000, 48000, 54000, 58000, 61000])
_PRIOR_ALL_NODE = np.array([56000, 59000, 60500, 61500, 62500, 63500, 64000, 64500])
_MOVES_IN_STEP = np.array([1, 1, 1, 1, 2, 3, 7, 16])
MOST_UNDER_WAY = 32
"""Greatest number of earlier moves that count. Beyond it P(needed) is small already, or hardly falls any more."""
_MOST_COUNTED = (1 << 31) - 1
"""Greatest value of a counter in `ended`. A worker reaches it after several hours of one iteration."""
_MOST_JUDGED = 1 << 46
"""Greatest number of nodes in a bin of the reliability curves, so that sums of predictions fit into 64 bits."""
_GROWTH = 2
"""Assumed growth of a subtree for each ply, at depths without counts."""
_MOST_SIZE = 1 << 40
"""Greatest expected number of nodes of a subtree. Its product with CERTAIN fits into 64 bits."""


@kernel(i64(i64))
def progress_step(moves_done):
    """Return the step of a number of moves done without a cutoff: 0, 1, 2, 3, 4-5, 6-8, 9-15, 16 and more."""
    if moves_done < 4:
        return moves_done
    if moves_done < 6:
        return 4
    if moves_done < 9:
        return 5
    return 6 if moves_done < 16 else 7


@kernel(i64(i64, i64))
def prior(expected_type, step):
    """Return P(no cutoff) by expected type alone."""
    return _PRIOR_CUT_NODE[step] if expected_type == CUT_NODE else _PRIOR_ALL_NODE[step]


@kernel(i64(i64, i64))
def _prior_cut_in_step(expected_type, step):
    """Return P(cutoff by a move of this step | node got there) that follows from the prior."""
    later = prior(expected_type, step + 1) if step + 1 < PROGRESS else np.int64(CERTAIN)
    return CERTAIN - prior(expected_type, step) * CERTAIN // later


@kernel(i64(Node))
def bound_class(node):
    """Return the bound of the table entry found at entry, a hint at the node's type; an exact one counts as none."""
    return node.tt_bound if node.tt_bound != BOUND_EXACT else BOUND_NONE


@kernel(i64(Node))
def finished_moves(node):
    """Return the number of moves whose search is finished."""
    return max(np.int64(0), np.int64(node.moves_done) - node.inside)


@kernel(i64(Context, Node, i64))
def _p_needed_after(ctx, node, under_way):
    """Return P(needed) of a move, including all ancestors, while `under_way` earlier moves are being searched."""
    depth = min(max(np.int64(node.depth), 0), DEPTHS - 1)
    table = header_of(ctx).prediction.p_pass
    first = finished_moves(node)
    p = np.int64(node.p_needed)
    for move in range(first, first + min(under_way, MOST_UNDER_WAY)):
        p = p * np.int64(table[node.split_type, bound_class(node), depth, progress_step(move)]) >> 16
    check(0 <= p <= CERTAIN, "P(needed) is a probability")
    return p


@kernel(i64(Context, Node))
def p_next_move_needed(ctx, node):
    """Return P(needed) of the move that a helper would take. At a node about to open, its owner takes a move first."""
    return _p_needed_after(ctx, node, max(np.int64(node.inside), 1))


@kernel(i64(Context, Node))
def p_taken_move_needed(ctx, node):
    """Return P(needed) of the move that was taken last."""
    return _p_needed_after(ctx, node, np.int64(node.inside) - 1)


@kernel(i64(Context, Node))
def subtree_size(ctx, node):
    """Return the expected nodes of the node's next move, including the effects of reductions and of the table."""
    depth = min(max(np.int64(node.depth), 0), DEPTHS - 1)
    step = progress_step(np.int64(node.moves_done))
    return np.int64(header_of(ctx).prediction.move_size[node.split_type, depth, step])


@kernel(i64(Context, Node))
def expected_gain(ctx, node):
    """Return the expected useful nodes of a helper's move: P(needed) times size."""
    return subtree_size(ctx, node) * p_next_move_needed(ctx, node) >> 16


@kernel(void(Worker, Node, i64))
def record_outcome(wk, node, cut):
    """Count a finished node; cut: 1 if it failed high. Writes to one cache line, since every node comes here."""
    outcomes = wk.outcomes
    depth = min(np.int64(node.depth), DEPTHS - 1)
    last = progress_step(np.int64(node.cut_index) if cut else np.int64(node.moves_done))
    ended = outcomes.ended[node.split_type, bound_class(node), depth, last]
    if ended[cut] < _MOST_COUNTED:
        ended[cut] += 1
    if depth > outcomes.deepest:
        outcomes.deepest = depth


@kernel(void(Worker, Node, i64, i64))
def record_size(wk, node, index, nodes):
    """Count a move that has been searched. index: its number at the node; nodes: nodes of its search."""
    depth = min(max(np.int64(node.depth), 0), DEPTHS - 1)
    sizes = wk.outcomes.move_sizes[node.split_type, depth, progress_step(index)]
    sizes[0] += 1
    sizes[1] += nodes


@kernel(i64(i64))
def _bin(p):
    """Return the bin of a probability in the reliability curves."""
    check(0 <= p <= CERTAIN, "what is put into a bin is a probability")
    return min(p * BINS // CERTAIN, BINS - 1)


@kernel(void(Prediction, i64, i64, i64, i64))
def _judge(prediction, p, late, seen, no_cut):
    """Compare a prediction used in the search with its outcomes, for reliability curves and Brier scores."""
    slot = _bin(p)
    if prediction.bin_seen[late, slot] >= _MOST_JUDGED:
        return
    prediction.bin_seen[late, slot] += seen
    prediction.bin_no_cut[late, slot] += no_cut
    prediction.bin_p[late, slot] += p * seen
    # in units of 1/65536: sum whole units and remainders apart, since count times square would overflow
    cut = seen - no_cut
    square, miss_square = p * p, (CERTAIN - p) * (CERTAIN - p)
    rest = no_cut * (miss_square & 0xFFFF) + cut * (square & 0xFFFF)
    prediction.bin_error[late, slot] += no_cut * (miss_square >> 16) + cut * (square >> 16) + (rest >> 16)


@kernel(void(Worker, i64))
def count_shared_move(wk, p):
    """Count a move with this P(needed) that is taken while others are inside the node."""
    wk.outcomes.needed_seen[_bin(p)] += 1


@kernel(void(Worker, i64))
def count_used_move(wk, p):
    """Count a shared move with this P(needed) whose result was used."""
    wk.outcomes.needed_used[_bin(p)] += 1


@kernel(void(Prediction, Worker))
def _take_outcomes(prediction, wk):
    """Move a worker's counts to `fresh`, in one sweep, since its memory is in another core's cache."""
    outcomes = wk.outcomes
    deepest = np.int64(outcomes.deepest)
    outcomes.deepest = 0
    for expected_type in range(TYPES):
        for bound in range(BOUNDS):
            for depth in range(deepest + 1):
                for step in range(PROGRESS):
                    for cut in range(2):
                        count = np.int64(outcomes.ended[expected_type, bound, depth, step, cut])
                        if count != 0:  # most are 0, and their cache lines need not be written
                            prediction.fresh[expected_type, bound, depth, step, cut] += count
                            outcomes.ended[expected_type, bound, depth, step, cut] = 0


@kernel(void(Prediction, i64, i64))
def _merge_class(prediction, expected_type, bound):
    """Merge the fresh counts of one class into the predictions."""
    for depth in range(DEPTHS):
        # nodes that ended at a step have passed all earlier steps
        fresh_seen = np.int64(0)
        fresh_cut = np.int64(0)
        cut_later = np.int64(0)
        for step in range(PROGRESS - 1, -1, -1):
            ended = prediction.fresh[expected_type, bound, depth, step]
            fresh_seen += ended[0] + ended[1]
            fresh_cut += ended[1]
            ended[0] = 0
            ended[1] = 0
            prediction.all_seen[expected_type, bound, depth, step] += fresh_seen
            prediction.all_cut[expected_type, bound, depth, step] += fresh_cut
            in_force = np.int64(prediction.p_no_cut[expected_type, bound, depth, step])
            _judge(prediction, in_force, 1 if step > 0 else 0, fresh_seen, fresh_seen - fresh_cut)
            seen = (prediction.seen[expected_type, bound, depth, step] >> _DECAY_SHIFT) + fresh_seen
            cut = (prediction.cut[expected_type, bound, depth, step] >> _DECAY_SHIFT) + fresh_cut
            prediction.seen[expected_type, bound, depth, step] = seen
            prediction.cut[expected_type, bound, depth, step] = cut
            expected = _PRIOR_WEIGHT * prior(expected_type, step)
            p = (expected + CERTAIN * (seen - cut)) // (_PRIOR_WEIGHT + seen)
            check(0 <= p <= CERTAIN, "P(no cutoff) is a probability")
            prediction.p_no_cut[expected_type, bound, depth, step] = p
            expected = _PRIOR_WEIGHT * _prior_cut_in_step(expected_type, step)
            p_cut = (expected + CERTAIN * (cut - cut_later)) // (_PRIOR_WEIGHT + seen)
            check(0 <= p_cut <= CERTAIN, "P(cutoff by a move) is a probability")
            prediction.p_pass[expected_type, bound, depth, step] = CERTAIN - p_cut // _MOVES_IN_STEP[step]
            cut_later = cut


@kernel(void(Prediction, Worker))
def _take_sizes(prediction, wk):
    """Move the sizes that a worker has counted to the common table."""
    for expected_type in range(TYPES):
        for depth in range(DEPTHS):
            for step in range(PROGRESS):
                counted = wk.outcomes.move_sizes[expected_type, depth, step]
                if counted[0] != 0:
                    merged = prediction.move_sizes[expected_type, depth, step]
                    merged[0] += counted[0]
                    merged[1] += counted[1]
                    counted[0] = 0
                    counted[1] = 0


@kernel(void(Context))
def _merge_sizes(ctx):
    """Compute the expected sizes of moves from the workers' counts."""
    hd = header_of(ctx)
    prediction = hd.prediction
    for expected_type in range(TYPES):
        for depth in range(DEPTHS):
            for step in range(PROGRESS):
                merged = prediction.move_sizes[expected_type, depth, step]
                merged[0] >>= _DECAY_SHIFT
                merged[1] >>= _DECAY_SHIFT
    for i in range(hd.worker_count):
        _take_sizes(prediction, worker_of(ctx, i))
    for expected_type in range(TYPES):
        for depth in range(DEPTHS):
            for step in range(PROGRESS):
                merged = prediction.move_sizes[expected_type, depth, step]
                below = np.int64(prediction.move_size[expected_type, depth - 1, step]) if depth > 0 else np.int64(1)
                size = merged[1] // merged[0] if merged[0] > 0 else _GROWTH * below
                prediction.move_size[expected_type, depth, step] = min(max(size, 1), _MOST_SIZE)


@kernel(void(Context))
def _measure_joins(ctx):
    """Compute the cost of a join, in nodes, from the workers' clocks; virtual workers have none and keep the default.

    Products of counts and cycles would exceed 64 bits within minutes. So we divide first, cycles by nodes in units of
    1/256; this is enough for a week of 1,024 workers (2^51 nodes, 2^61 cycles).
    """
    hd = header_of(ctx)
    joins = np.int64(0)
    join_cycles = np.int64(0)
    nodes = np.int64(0)
    busy_cycles = np.int64(0)
    for i in range(hd.worker_count):
        wk = worker_of(ctx, i)
        joins += wk.counters.joins
        join_cycles += min(wk.counters.join_cycles, _MOST_CYCLES)
        nodes += wk.nodes
        busy_cycles += wk.counters.search_cycles - wk.counters.idle_cycles
    if joins >= _JOINS_TO_MEASURE and busy_cycles > 0 and nodes > 0:
        of_a_join = min(max(join_cycles // joins, 0), _MOST_JOIN_CYCLES)
        of_a_node = ((busy_cycles // nodes) << 8) + ((busy_cycles % nodes) << 8) // nodes
        hd.prediction.join_cost = min(max((of_a_join << 8) // max(of_a_node, 1), 1), _MOST_JOIN_COST)


@kernel(i64(Context))
def join_cost(ctx):
    """Return the cost of a join: nodes that a worker could search in the same time."""
    hd = header_of(ctx)
    if hd.options.join_cost > 0:
        return np.int64(hd.options.join_cost)
    return hd.prediction.join_cost if hd.prediction.join_cost > 0 else np.int64(_DEFAULT_JOIN_COST)


@kernel(void(Context))
def merge_outcomes(ctx):
    """Compute the predictions from the workers' counts.

    Workers at other roots may count meanwhile. Each counter is read once, so no probability leaves its range; a count
    that is used twice changes a mean a little."""
    hd = header_of(ctx)
    for i in range(hd.worker_count):
        _take_outcomes(hd.prediction, worker_of(ctx, i))
    for expected_type in range(TYPES):
        for bound in range(BOUNDS):
            _merge_class(hd.prediction, expected_type, bound)
    _merge_sizes(ctx)
    _measure_joins(ctx)
