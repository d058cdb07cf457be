"""Iterative deepening, run by the worker that finishes a root; `root_windows.py` sets the windows.

The supervisor writes the search into the header. Worker 0 asks the policy which workers have a root, since a user's
policy runs only in worker processes. No worker waits for the supervisor between iterations: the worker that finishes
the root writes a report into a ring in the header and sets up the next search itself. The supervisor has the clock and
decides when to stop; workers keep its hard limit, too (`work.py`).

A search that splits has one or several roots, on stacks 0, 1 .., at separate depths; workers without a root join open
nodes of all of them. In a search that does not split (Lazy SMP, ABDADA) every worker has a root. Only the root on stack
0 reports, and when it ends it stops the others. If it was stopped, all roots vote on the answer (`thread_vote.py`).

Locks: none. A root's stack is written by the worker that runs it, the answer in the header by the worker that runs
stack 0, or after a vote by the last worker. The words of `words.py` change atomically.
"""

import numpy as np

from psearch.defaults import MAX_DEPTH
from psearch.scheduler.claims import clear_claims
from psearch.scheduler.policy import claim_depth, skips_depth, splits_nothing
from psearch.scheduler.prediction import merge_outcomes
from psearch.scheduler.root_windows import (
    bound_of,
    expected_type,
    has_proof,
    is_far,
    proves,
    searches_again,
    set_window,
    take_extent,
)
from psearch.scheduler.scheduler_entries import SEARCH
from psearch.scheduler.splitting import become_idle, free_stack, stop_all
from psearch.scheduler.thread_vote import elected
from psearch.scheduler.trace_log import trace_root, trace_root_entered, trace_take
from psearch.scheduler.words import (
    abort_epoch_of,
    deadline_of,
    done_of,
    first_roots_of,
    idle_workers_of,
    info_count_of,
    roots_of,
    state_of,
    stop_of,
)
from psearch_core.constants import (
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_UPPER,
    INFINITE,
    MATE,
    NO_MOVE,
    PV_NODE,
    STACK_ACTIVE,
    STATE_BEGIN,
    STATE_ENTER,
    STATE_IDLE,
)
from psearch_core.game import is_exhausted
from psearch_core.records import CERTAIN, INFO_RING, MAX_PLY, ROOT_STOPPED, TECHNIQUE_ROOM
from psearch_core.toolchain.intrinsics import atomic_add, atomic_load, atomic_store, check, clear_record, copy_record
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Context, Header, Worker, context_at, frame_of, header_of, i64, stack_of, void, worker_of

_MAIN_ROOT = 0
"""Number of the stack whose root reports, and whose answer counts without a vote."""
_LEAST_ROOT_NODES = 50_000
"""Number of nodes from which the shares of the root's moves say something: in smaller searches chance decides them."""


@kernel(i64(Context, Worker))
def _enter_root(ctx, wk):
    """Start a search of this worker's root with the window of its stack."""
    stack = stack_of(ctx, wk.stack)
    node = frame_of(ctx, wk.stack * MAX_PLY).node
    node.alpha = stack.root_alpha
    node.beta = stack.root_beta
    node.depth = stack.root_depth
    node.split_type = expected_type(stack)
    node.kannan_type = PV_NODE
    node.cont_1 = 0
    node.cont_2 = 0
    node.extended = 0
    node.p_needed = CERTAIN
    node.best_move = NO_MOVE  # a stop may come before the node is entered
    wk.ply = 0
    if ctx.trace != 0:
        trace_root_entered(ctx, wk)
    return STATE_ENTER


@kernel(void(Context, i64))
def _publish(ctx, count):
    """Add the work of all workers to the report with this number, and publish it to the supervisor."""
    hd = header_of(ctx)
    total = np.int64(0)
    deepest = np.int64(0)
    for i in range(hd.worker_count):
        other = worker_of(ctx, i)
        total += other.nodes
        deepest = max(deepest, other.counters.seldepth)
    info = hd.infos[count % INFO_RING]
    info.nodes = total
    info.seldepth = deepest
    atomic_store(info_count_of(hd), count + 1)


@kernel(i64(Header, i64))
def _place_of(hd, move):
    """Return the place of a root move in the header's list."""
    place = 0
    while hd.root_moves[place] != move and place < hd.root_count - 1:
        place += 1
    return place


@kernel(void(Context, i64, i64))
def count_root_move(ctx, move, nodes):
    """Count nodes that were searched below a move of the main root. The caller holds the lock if the root is open."""
    hd = header_of(ctx)
    hd.root_nodes[_place_of(hd, move)] += nodes


@kernel(i64(Context, i64))
def _share_of(ctx, move):
    """Return the share of the main root's nodes that were searched below a move, in thousandths; -1 if there are few,
    or if the share does not tell how clear the move is: with several lines, or with null windows, where a cutoff by the
    first move says nothing of the others."""
    hd = header_of(ctx)
    total = np.int64(0)
    for i in range(hd.root_count):
        total += hd.root_nodes[i]
    if total < _LEAST_ROOT_NODES or hd.multipv > 1 or hd.options.null_windows:
        return -1
    return 1000 * np.int64(hd.root_nodes[_place_of(hd, move)]) // total


@kernel(void(Context, i64, i64))
def _report(ctx, score, bound):
    """Append a report to the ring: depth, score, nodes and line of the main root."""
    hd = header_of(ctx)
    node = frame_of(ctx, _MAIN_ROOT * MAX_PLY).node
    count = atomic_load(info_count_of(hd))
    info = hd.infos[count % INFO_RING]
    info.depth = hd.depth
    info.score = score
    info.bound = bound
    info.line = stack_of(ctx, _MAIN_ROOT).root_line
    info.pv_length = node.pv_length
    for i in range(node.pv_length):
        info.pv[i] = node.pv[i]
    if node.pv_length == 0:
        # a bound without a line: report at least the first move
        stack = stack_of(ctx, _MAIN_ROOT)
        info.pv[0] = hd.best_move if stack.root_line == 0 else stack.root_moves[stack.root_line]
        info.pv_length = 1
    info.share = _share_of(ctx, np.int64(info.pv[0]))
    _publish(ctx, count)


@kernel(void(Context, i64, i64))
def _bring_to_front(ctx, stack_index, move):
    """Make a root move the first of those without a line (MultiPV); the others keep their order."""
    stack = stack_of(ctx, stack_index)
    carried = np.int64(move)
    for i in range(stack.root_line, header_of(ctx).root_count):
        here = np.int64(stack.root_moves[i])
        stack.root_moves[i] = carried
        if here == move:
            break
        carried = here


@kernel(void(Context, i64))
def _order_moves(ctx, stack_index):
    """Order the root moves behind the lines by the nodes below them, since later moves are searched less deep. Other
    workers may count nodes meanwhile: whatever a count is, the moves stay the same ones."""
    hd = header_of(ctx)
    stack = stack_of(ctx, stack_index)
    for i in range(hd.multipv + 1, hd.root_count):
        move = np.int64(stack.root_moves[i])
        nodes = np.int64(hd.root_nodes[_place_of(hd, move)])
        place = np.int64(i)
        while place > hd.multipv and hd.root_nodes[_place_of(hd, np.int64(stack.root_moves[place - 1]))] < nodes:
            stack.root_moves[place] = stack.root_moves[place - 1]
            place -= 1
        stack.root_moves[place] = move


@kernel(void(Context, Worker, i64))
def _take_best_move(ctx, wk, score):
    hd = header_of(ctx)
    move = np.int64(frame_of(ctx, wk.stack * MAX_PLY).node.best_move)
    if move != NO_MOVE:
        _bring_to_front(ctx, wk.stack, move)
        line = stack_of(ctx, wk.stack).root_line
        # a later line may be better than the first
        if wk.stack == _MAIN_ROOT and (line == 0 or score > hd.score):
            hd.best_move = move
            hd.score = score


@kernel(void(Context, Worker, i64, i64))
def _keep_answer(ctx, wk, score, bound):
    """Keep the result of the root on this worker's stack for the vote, with as much of its line as is known."""
    if header_of(ctx).first_roots == 1:
        return
    stack = stack_of(ctx, wk.stack)
    node = frame_of(ctx, wk.stack * MAX_PLY).node
    answer = stack.answer
    answer.depth = stack.root_depth
    answer.score = score
    answer.bound = bound
    if bound == BOUND_EXACT:
        stack.finished_depth = stack.root_depth
    if bound == BOUND_UPPER or node.best_move == NO_MOVE:
        return  # the previous line is still the best known
    if node.pv_length > 0 and node.pv[0] == node.best_move:
        answer.pv_length = node.pv_length
        for i in range(node.pv_length):
            answer.pv[i] = node.pv[i]
    elif answer.pv_length == 0 or answer.pv[0] != node.best_move:  # a move that failed high has no line
        answer.pv_length = 1
        answer.pv[0] = node.best_move


@kernel(void(Context))
def _hold_vote(ctx):
    """Let the roots vote on the answer, after all of them have ended, if the main one was stopped."""
    hd = header_of(ctx)
    if hd.first_roots == 1 or hd.multipv > 1 or hd.exhausted != 0:
        return
    if stack_of(ctx, _MAIN_ROOT).finished_depth >= hd.max_depth:
        return
    winner = elected(ctx)
    if winner == _MAIN_ROOT:
        return
    answer = stack_of(ctx, winner).answer
    hd.best_move = np.int64(answer.pv[0])
    hd.score = np.int64(answer.score)
    hd.depth = np.int64(answer.depth)  # not `root_depth`: a helper may have taken the stack meanwhile
    count = atomic_load(info_count_of(hd))
    answer.share = -1
    copy_record(hd.infos[count % INFO_RING], answer)
    _publish(ctx, count)


@kernel(i64(Context, Worker))
def _end_search(ctx, wk):
    """End this worker's root. The main root stops all others; the last one to end holds the vote and sets `done`."""
    hd = header_of(ctx)
    check(wk.ply == 0, "a search ends at its root")
    if wk.stack == _MAIN_ROOT:
        stop_all(ctx)
    free_stack(ctx, wk.stack)
    become_idle(ctx, wk)
    if atomic_add(roots_of(hd), -1) == 1:
        wk.state = STATE_IDLE
        _hold_vote(ctx)
        atomic_store(done_of(hd), 1)
    return STATE_IDLE


@kernel(i64(Context, Worker))
def _deepest(ctx, wk):
    """Return the last depth of this worker's root: that of the limits for the main root, the greatest for all others,
    which continue until the main root ends."""
    return np.int64(header_of(ctx).max_depth) if wk.stack == _MAIN_ROOT else np.int64(MAX_DEPTH)


@kernel(void(Context, Worker))
def _deepen(ctx, wk):
    """Set the next depth of this worker's root."""
    hd = header_of(ctx)
    stack = stack_of(ctx, wk.stack)
    stack.root_depth += 1
    if hd.first_roots > 1:
        while stack.root_depth < _deepest(ctx, wk) and skips_depth(ctx, wk.stack, stack.root_depth):
            stack.root_depth += 1
    if wk.stack == _MAIN_ROOT:
        hd.depth = stack.root_depth
        if hd.options.record and not splits_nothing(ctx):
            merge_outcomes(ctx)


@kernel(i64(Context, Worker, i64))
def _next_depth(ctx, wk, score):
    """After an iteration go one ply deeper, or end the search."""
    hd = header_of(ctx)
    stack = stack_of(ctx, wk.stack)
    stack.root_line = 0
    if wk.stack == _MAIN_ROOT:
        hd.exhausted = stack.root_whole
    if stack.root_whole != 0 or stack.root_depth >= _deepest(ctx, wk) or atomic_load(stop_of(hd)) != 0:
        return _end_search(ctx, wk)
    _deepen(ctx, wk)
    _order_moves(ctx, wk.stack)
    set_window(ctx, wk.stack, score if hd.multipv == 1 else np.int64(hd.line_scores[0]))
    return _enter_root(ctx, wk)


@kernel(i64(Context, Worker))
def root_finished(ctx, wk):
    """Handle the value of a root: report it, then search a wider window, the next line or one ply deeper, or end."""
    hd = header_of(ctx)
    stack = stack_of(ctx, wk.stack)
    main = wk.stack == _MAIN_ROOT
    check(wk.ply == 0 and abs(wk.value) < INFINITE, "a finished root has a value")
    score = min(max(wk.value, 1 - MATE), MATE - 1)  # a user's kernel may write any number
    check(0 < stack.root_depth <= _deepest(ctx, wk), "a root is searched to a depth within its limit")
    bound = bound_of(stack.root_alpha, stack.root_beta, score)
    if ctx.trace != 0:
        trace_root(ctx, wk, score, bound)
    _keep_answer(ctx, wk, score, bound)
    node = frame_of(ctx, wk.stack * MAX_PLY).node
    is_news = bound != BOUND_EXACT and (not proves(stack) or is_far(ctx, stack, score, bound))
    if bound != BOUND_UPPER:
        _take_best_move(ctx, wk, score)
    if bound == BOUND_LOWER:
        node.pv_length = 1
        node.pv[0] = node.best_move
    if main and is_news:
        _report(ctx, score, bound)
    take_extent(stack, is_exhausted(ctx, frame_of(ctx, wk.stack * MAX_PLY)))
    if searches_again(stack, score, bound):
        return _enter_root(ctx, wk)
    if bound != BOUND_EXACT:
        score = np.int64(stack.root_low)
        _keep_answer(ctx, wk, score, BOUND_EXACT)
    if main:
        _report(ctx, score, BOUND_EXACT)
        hd.line_scores[stack.root_line] = score
    stack.root_line += 1
    if stack.root_line < hd.multipv and atomic_load(stop_of(hd)) == 0:
        set_window(ctx, wk.stack, np.int64(hd.line_scores[stack.root_line]))
        return _enter_root(ctx, wk)
    return _next_depth(ctx, wk, score)


@kernel(i64(Context, Worker))
def root_aborted(ctx, wk):
    """End a search that was stopped during an iteration. A move that has raised alpha in it is better than the last
    answer, and so is a bound that null windows have proved."""
    stack = stack_of(ctx, wk.stack)
    node = frame_of(ctx, wk.stack * MAX_PLY).node
    if ctx.trace != 0:
        trace_root(ctx, wk, np.int64(node.alpha), ROOT_STOPPED)
    if node.best_move != NO_MOVE:
        _keep_answer(ctx, wk, np.int64(node.alpha), BOUND_LOWER)
    if wk.stack == _MAIN_ROOT and node.best_move != NO_MOVE:
        score = np.int64(node.alpha)
        _take_best_move(ctx, wk, score)
        if node.pv_length == 0 or node.pv[0] != node.best_move:  # a move that failed high has no line
            node.pv_length = 1
            node.pv[0] = node.best_move
        _report(ctx, score, BOUND_LOWER)
    elif wk.stack == _MAIN_ROOT and has_proof(stack):
        node.pv_length = 0  # the report takes the known best move
        _report(ctx, np.int64(stack.root_low), BOUND_LOWER)
    return _end_search(ctx, wk)


@kernel(void(Worker, i64))
def _reset_worker(wk, index):
    """Reset a worker for a new search; killers and outcomes are kept from the last one."""
    wk.index = index
    wk.nodes = 0
    wk.state = STATE_BEGIN
    wk.stack = -1
    wk.ply = 0
    wk.seen_epoch = -1
    wk.next_check = 0
    wk.last_victim = 0
    wk.last_stack = index
    wk.last_lock = -1
    wk.locks = 0
    clear_record(wk.counters)
    for technique in range(TECHNIQUE_ROOM):
        wk.pruned[technique, 0] = 0
        wk.pruned[technique, 1] = 0


@kernel(i64(Context, Worker))
def begin_root(ctx, wk):
    """Begin a search: a worker takes the root on the stack of its number, or is idle. Worker 0 asks the policy how many
    workers have a root; until then the others stay in this state, and -1 is returned."""
    hd = header_of(ctx)
    if wk.index == 0:
        hd.claim_depth = claim_depth(ctx)
        roots = hd.worker_count if splits_nothing(ctx) else np.int64(hd.options.roots)
        for number in range(roots):  # before another worker looks for a free stack
            atomic_store(state_of(stack_of(ctx, number)), STACK_ACTIVE)
        atomic_store(roots_of(hd), roots)
        atomic_store(first_roots_of(hd), roots)
    roots = atomic_load(first_roots_of(hd))
    if roots == 0:
        return -1
    if wk.index >= roots:
        return STATE_IDLE
    _lay_root(ctx, wk.index)
    wk.stack = wk.index
    atomic_add(idle_workers_of(hd), -1)
    if ctx.trace != 0:
        trace_take(ctx, wk)
    return _enter_root(ctx, wk)


@kernel(void(Context, i64))
def _lay_root(ctx, index):
    hd = header_of(ctx)
    stack = stack_of(ctx, index)
    stack.home = -1
    stack.base = 0
    stack.nodes_before_runner = 0
    stack.root_depth = hd.first_depth
    stack.root_line = 0
    stack.finished_depth = 0
    stack.answer.pv_length = 0
    for ply in range(MAX_PLY):
        stack.cutoffs[ply] = 0
    for i in range(hd.root_count):
        stack.root_moves[i] = hd.root_moves[i]
    stack.path[0].key = hd.root.key
    stack.path[0].move = NO_MOVE
    frame = frame_of(ctx, index * MAX_PLY)
    frame.visit.home = index * MAX_PLY
    copy_record(frame.position, hd.root)
    set_window(ctx, index, np.int64(hd.line_scores[0]))


@entry(void(i64), SEARCH)
def request_stop(context):
    """Stop the search: each worker notices within one node and unwinds."""
    stop_all(context_at(context))


@entry(void(i64), SEARCH)
def begin_search(context):
    """Let every worker begin the search that is set up in the header.

    No worker may be running. `root`, `root_moves`, `legal_root_moves`, `history`, `options`, `first_depth`,
    `max_depth`, `multipv`, `line_scores`, `node_limit` and `age` must be set.
    """
    ctx = context_at(context)
    hd = header_of(ctx)
    for i in range(hd.worker_count):
        _reset_worker(worker_of(ctx, i), i)
    atomic_store(stop_of(hd), 0)
    atomic_store(deadline_of(hd), 0)
    atomic_store(done_of(hd), 0)
    atomic_store(abort_epoch_of(hd), 0)
    atomic_store(info_count_of(hd), 0)
    atomic_store(first_roots_of(hd), 0)
    atomic_store(idle_workers_of(hd), hd.worker_count)
    clear_claims(ctx)
    hd.depth = hd.first_depth
    hd.score = hd.line_scores[0]
    hd.exhausted = 0
    hd.best_move = np.int64(hd.root_moves[0])
    for i in range(hd.root_count):
        hd.root_nodes[i] = 0
    merge_outcomes(ctx)
