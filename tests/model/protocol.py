"""The protocol by which workers share a tree, as a model that is small enough to be explored whole.

It follows `psearch/scheduler/splitting.py`, `step.py`, `claims.py` and `iterations.py` line by line, without chess:
one or two roots, below each a tree of one or two levels of nodes that may be opened, leaves whose values are chosen
when they are first looked at, and every choice of policy or driver left open: whether a node opens before a move is
taken, whether a move is put off, which offer and which free stack a worker finds, after which iteration a side root is
through, when the search is stopped. The leaves below each root have values of their own, as each root is at a depth of
its own.

`advance` makes one step of one worker: one access to memory that another worker may see or change at that moment, and
what the worker then does by itself. Nothing of it is lost by putting these together: what is left out of the
interleaving is a worker's own memory, fields that change only under a node's lock while the worker holds it, and `open`
of a node that the worker is inside of. That these are what they are said to be is among the properties checked. Memory
is sequentially consistent here.

Fields called ghosts are not in the program: they remember what is needed to tell whether a property holds. Where the
program branches on `c.mutation` it does something wrong if the setting says so; all other branches are the program's.
"""

from __future__ import annotations

import mutations as mutation
import numpy as np
import outcomes as found
import steps as step
from numba import njit

inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
"""Compiled, and called by what is compiled only."""
entry = njit(no_cfunc_wrapper=True, error_model="numpy")
"""Compiled, and called by Python, too."""

WORKERS, STACKS, PLIES, MOVES, ROOTS = 3, 4, 3, 3, 2
"""Greatest number of each."""
MAIN = 0
"""The main root, and the stack that it lies on. The side root lies on the next one."""
INFINITE = 4
"""Beyond every value: leaves are worth 0, 1 or 2 to the side to move at the root."""
FREE, ACTIVE, PARKED = 0, 1, 2
CUTOFF, ABORTED = 1, 2
SCOUT, FULL = 0, 1
NONE = -1
ROOT, LEAF = 1, 9
"""Number of the tree's node in a frame: the root, its children from 2 on, a leaf; 0: none."""
TREE = 16
"""Added to those numbers in the tree of the side root."""

worker_dtype = np.dtype(
    [
        ("pc", "i1"),  # the step that comes next
        ("stack", "i1"),  # NONE when idle
        ("ply", "i1"),
        ("value", "i1"),  # what the last finished child returned, in the child's view
        ("fresh", "i1"),  # 1: `seen_epoch` is the present abort epoch; nothing else of these two matters
        ("home", "i1"),  # the node that is locked, left or joined
        ("claimed", "i1"),  # while joining: the stack
        ("walk", "i1"),  # while looking at open ancestors: the next one
        ("walk_id", "i1"),  # ghost: which node that was when the walk began
        ("dead", "i1"),  # while unwinding
        ("again", "i1"),  # after a child: the move is to be searched again
        ("last", "i1"),  # while leaving: this worker is the last one out
        ("closed", "i1"),  # while leaving: what the node was then
        ("began", "i1"),  # of two mutations: 1 + the root that this worker began with
        ("answer", "i1"),  # of a mutation: 1: this worker has shown something of a root
        ("pad", "i1"),
    ]
)

node_dtype = np.dtype(
    [
        ("lock", "i1"),
        ("open", "i1"),
        ("closed", "i1"),
        ("offered", "i1"),  # its bit in the stack's `open_mask`
        ("inside", "i1"),
        ("parent", "i1"),  # `open_parent`
        ("alpha", "i1"),
        ("beta", "i1"),
        ("best", "i1"),
        ("cursor", "i1"),  # moves taken from the list
        ("put_off", "i1"),  # bit per move: put off, and to be taken behind the list
        ("id", "i1"),  # ghost: which node of the tree lies in the frame
        ("parent_id", "i1"),  # ghost: which node `parent` was
        ("taken", "i1"),  # ghost: bit per move
        ("reported", "i1"),  # ghost: bit per move
        ("out", "i1"),  # ghost: somebody has seen that no move is left
    ]
)

visit_dtype = np.dtype(
    [
        ("home", "i1"),
        ("home_id", "i1"),  # ghost: which node `home` was
        ("inside", "i1"),  # ghost: counted in `inside` of that node
        ("move", "i1"),
        ("stage", "i1"),
        ("alpha", "i1"),
        ("beta", "i1"),
        ("deferred", "i1"),  # the move was put off before
    ]
)

state_dtype = np.dtype(
    [
        ("worker", worker_dtype, (WORKERS,)),  # first: they are sorted, for all are alike
        ("node", node_dtype, (STACKS * PLIES,)),
        ("visit", visit_dtype, (STACKS * PLIES,)),
        ("stack", "i1", (STACKS,)),
        ("runner", "i1", (STACKS,)),  # ghost: workers that run the stack
        ("leaf", "i1", (ROOTS, MOVES, MOVES)),  # ghost: values chosen so far, in the root's view; NONE
        ("low", "i1", (ROOTS, MOVES)),  # ghost: of each root move whose value was taken in: worth at least, at most
        ("high", "i1", (ROOTS, MOVES)),
        ("stop", "i1"),
        ("done", "i1"),
        ("idle", "i1"),  # `idle_workers`
        ("supervisor", "i1"),  # 0: has not stopped the search, 1: `stop` is set, 2: and the epoch raised
        ("iteration", "i1"),  # of the main root
        ("roots", "i1"),  # still being searched
        ("answers", "i1"),  # bit per root: its stack holds an answer
        ("shown", "i1"),  # ghost: bit per root: it has shown something
        ("ended", "i1"),  # ghost: bit per root: it is through
        ("pad", "i1"),
    ]
)
if state_dtype.itemsize % 8 or worker_dtype.itemsize != 16:
    raise AssertionError(f"sizes: state {state_dtype.itemsize}, worker {worker_dtype.itemsize}")

_SETTINGS = ("workers", "stacks", "levels", "moves", "values", "iterations", "stops", "roots", "defers", "mutation")
setting_dtype = np.dtype([(name, "i8") for name in _SETTINGS])
"""levels: of nodes that may open; values: of a leaf, from 0; iterations: of the main root; stops: 1 if the search may
be stopped from outside; defers: 1 if moves may be put off."""

CHOICES = 1 + STACKS * PLIES
"""The most choices that a step has."""


# -- small things ------------------------------------------------------------------------------------------------------


@inner
def frame_at(c, stack, ply):
    """Number of a frame: as in the program, only that a stack has fewer."""
    return stack * PLIES + ply


@inner
def clear_node(node):
    """Clear the fields that nobody may look at any more, so that states which differ only in them are the same."""
    node.parent = NONE
    node.alpha = node.beta = node.best = node.cursor = node.put_off = 0
    node.id = node.parent_id = node.taken = node.reported = node.out = 0


@inner
def forget_move(visit):
    """The visit's move is done with; whose visit it is stays."""
    visit.move = visit.stage = visit.alpha = visit.beta = visit.deferred = 0


@inner
def clear_visit(visit):
    visit.home = visit.home_id = visit.inside = 0
    forget_move(visit)


@inner
def clear_registers(wk):
    wk.home = wk.claimed = wk.walk = wk.walk_id = wk.dead = wk.again = wk.last = wk.closed = 0


@inner
def to(wk, then):
    wk.pc = then
    return found.DONE


@inner
def lock(s, wk, home, then):
    """`acquire`: waits while another worker has the lock."""
    node = s.node[home]
    if node.lock:
        return found.BLOCKED
    node.lock = 1
    wk.home = home
    return to(wk, then)


@inner
def locked(s, wk, then, check):
    """Before a write to what a lock guards. check: only if the write is right under the lock alone."""
    wk.pc = then
    return found.DONE if s.node[wk.home].lock or not check else found.NOT_LOCKED


@inner
def withdraw(s, wk, then):
    result = locked(s, wk, then, True)
    s.node[wk.home].offered = 0
    return result


@inner
def release(s, wk, then):
    result = locked(s, wk, then, True)
    s.node[wk.home].lock = 0
    return result


@inner
def raise_epoch(s):
    for w in range(WORKERS):
        s.worker[w].fresh = 0


@inner
def run_stack(s, stack):
    """Ghost: one more worker runs it."""
    s.runner[stack] += 1
    return found.DONE if s.runner[stack] == 1 else found.TWO_RUNNERS


@inner
def take(s, c, visit):
    """`next_move`, and the visit: True when there was a move. Under the lock of an open node."""
    node = s.node[visit.home]
    if node.cursor < c.moves:
        visit.move = node.cursor
        visit.deferred = 0
        node.cursor += 1
        return True
    for move in range(c.moves):
        if node.put_off >> move & 1:
            node.put_off &= ~(1 << move)
            visit.move = move
            visit.deferred = 1
            return True
    return False


@inner
def has_ended(node):
    """Ghost: nothing is to be done here any more."""
    return (node.open and node.closed) or node.best >= node.beta


@inner
def note_taken(node, move):
    """Ghost."""
    if node.taken >> move & 1:
        return found.MOVE_TWICE
    if has_ended(node):
        return found.AFTER_THE_END
    node.taken |= 1 << move
    return found.DONE


@inner
def is_right_home(s, visit):
    """Whether the node that the visit works on is still in its frame."""
    return s.node[visit.home].id == visit.home_id


# -- idle, join --------------------------------------------------------------------------------------------------------


@inner
def idle(s, wk, choice, c):
    """`work` looks whether the search is over; `best_offer` finds any of the open nodes, or none."""
    if choice == 0:
        if not s.done:
            return found.BLOCKED
        return to(wk, step.GONE)
    home = choice - 1
    if home >= c.stacks * PLIES or not s.node[home].offered:
        return found.BLOCKED
    wk.home = home
    return to(wk, step.J_CLAIM)


@inner
def claim_stack(s, wk, choice, c):
    """Any free stack; none only if there is none, for who is sent away looks for work again."""
    if choice < c.stacks:
        if s.stack[choice] != FREE:
            return found.BLOCKED
        s.stack[choice] = ACTIVE
        wk.claimed = choice
        wk.pc = step.J_EARLY_TAKE if c.mutation == mutation.JOIN_TAKES_BEFORE_LOCK else step.J_LOCK
        return run_stack(s, choice)
    for stack in range(c.stacks):
        if s.stack[stack] == FREE:
            return found.BLOCKED
    if choice > c.stacks:
        return found.BLOCKED
    clear_registers(wk)
    return to(wk, step.IDLE)


@inner
def join_locked(s, wk, c):
    """Do the first part of `join`, under the lock."""
    node = s.node[wk.home]
    visit = s.visit[frame_at(c, wk.claimed, wk.home % PLIES)]
    is_open = node.open or c.mutation == mutation.JOIN_SKIPS_OPEN
    if not is_open or (node.closed and c.mutation != mutation.JOIN_SKIPS_CLOSED):
        return to(wk, step.J_FAIL_RELEASE)
    visit.home = wk.home
    visit.home_id = node.id
    if not take(s, c, visit):
        clear_visit(visit)
        node.out = 1
        return to(wk, step.J_FAIL_RELEASE if c.mutation == mutation.EXHAUSTED_NOT_WITHDRAWN else step.J_WITHDRAW)
    visit.inside = 1
    if c.mutation != mutation.JOIN_COUNTS_LATE:
        node.inside += 1
    wk.pc = step.J_RELEASE
    return note_taken(node, visit.move)


@inner
def join(s, wk, c):
    pc = wk.pc
    node = s.node[wk.home]
    visit = s.visit[frame_at(c, wk.claimed, wk.home % PLIES)]
    if pc == step.J_EARLY_TAKE:  # a mutation: the move is chosen before the lock is had
        visit.move = node.cursor
        return to(wk, step.J_LOCK)
    if pc == step.J_LOCK:
        if lock(s, wk, wk.home, step.J_RELEASE) == found.BLOCKED:  # `try_acquire`: a helper does not wait
            return to(wk, step.J_FAIL_FREE)
        if c.mutation != mutation.JOIN_TAKES_BEFORE_LOCK:
            return join_locked(s, wk, c)
        if not node.open or node.closed or visit.move >= c.moves:
            clear_visit(visit)
            return to(wk, step.J_FAIL_RELEASE)
        visit.home = wk.home
        visit.home_id = node.id
        node.cursor = visit.move + 1
        visit.inside = 1
        node.inside += 1
        return note_taken(node, visit.move)
    if pc == step.J_WITHDRAW:
        return withdraw(s, wk, step.J_FAIL_RELEASE)
    if pc == step.J_RELEASE:
        s.idle -= 1
        late = c.mutation == mutation.JOIN_COUNTS_LATE
        return release(s, wk, step.J_LATE_READ if late else step.J_COPY)
    if pc == step.J_LATE_READ:
        wk.walk = node.inside
        return to(wk, step.J_LATE_WRITE)
    if pc == step.J_LATE_WRITE:
        node.inside = wk.walk + 1
        return to(wk, step.J_COPY)
    if pc == step.J_COPY:  # `_copy_line`, and the rest of `join`
        right = is_right_home(s, visit)
        if c.mutation == mutation.VOTE_READS_COPIED_FIELD:
            s.answers &= ~(1 << wk.claimed)
        wk.stack = wk.claimed
        wk.ply = wk.home % PLIES
        if c.mutation != mutation.JOIN_KEEPS_EPOCH:
            wk.fresh = 0
        clear_registers(wk)
        wk.pc = step.START
        return found.DONE if right else found.REUSED_FRAME
    if pc == step.J_FAIL_RELEASE and c.mutation != mutation.JOIN_KEEPS_LOCK:
        return release(s, wk, step.J_FAIL_FREE)
    if pc == step.J_FAIL_RELEASE:
        return to(wk, step.J_FAIL_FREE)
    if c.mutation != mutation.JOIN_KEEPS_STACK:
        s.stack[wk.claimed] = FREE
        s.runner[wk.claimed] -= 1
    clear_registers(wk)
    return to(wk, step.IDLE)


# -- a move: start, enter ----------------------------------------------------------------------------------------------


@inner
def descend(s, wk, c, stage, alpha, beta):
    """`push_move`: the child of the visit's move, on the frame above. The window is in the node's view."""
    here = frame_at(c, wk.stack, wk.ply)
    visit = s.visit[here]
    visit.stage = stage
    visit.alpha = alpha
    visit.beta = beta
    child = s.node[here + 1]
    child.alpha = -beta
    child.beta = -alpha
    child.id = visit.home_id // TREE * TREE + (LEAF if wk.ply + 1 == c.levels else ROOT + 1 + visit.move)
    wk.ply += 1
    if wk.ply < c.levels:
        own = s.visit[here + 1]
        own.home = here + 1
        own.home_id = child.id
    wk.pc = step.ENTER


@inner
def search_move(s, wk, c, alpha, upper):
    """The end of `_start_move`. upper: alpha again, as a mutation reads it."""
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    node = s.node[visit.home]
    if visit.move == 0 and node.beta - alpha > 1:
        descend(s, wk, c, FULL, alpha, node.beta)
    else:
        descend(s, wk, c, SCOUT, alpha, upper + 1)


@inner
def begin_move(s, wk, c):
    """`_start_move` after the claim: alpha of a node that is not open is this worker's own."""
    node = s.node[s.visit[frame_at(c, wk.stack, wk.ply)].home]
    if node.open:
        wk.pc = step.S_ALPHA
    else:
        search_move(s, wk, c, node.alpha, node.alpha)


@inner
def start(s, wk, c):
    """`_start_move` reads alpha of an open node, without its lock."""
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    if not is_right_home(s, visit):
        return found.REUSED_FRAME
    alpha = s.node[visit.home].alpha
    if wk.pc == step.S_ALPHA and c.mutation == mutation.ALPHA_READ_TWICE:
        wk.walk = alpha
        wk.pc = step.S_ALPHA_AGAIN
    elif wk.pc == step.S_ALPHA_AGAIN:
        first, wk.walk = wk.walk, 0
        search_move(s, wk, c, first, alpha)
    else:
        search_move(s, wk, c, alpha, alpha)
    return found.DONE


@inner
def put_back(s, wk, c):
    """`defer_move`. Under the lock of an open node."""
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    node = s.node[visit.home]
    node.put_off |= 1 << visit.move
    node.taken &= ~(1 << visit.move)
    forget_move(visit)


@inner
def put_off(s, wk, choice, c):
    """`begin_move` and `_put_off` of `claims.py`: another worker may be searching the position, or not."""
    pc = wk.pc
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    if not is_right_home(s, visit):
        return found.REUSED_FRAME
    if pc == step.D_CLAIM:
        if choice > 1:
            return found.BLOCKED
        if choice == 0:
            begin_move(s, wk, c)
        elif s.node[visit.home].open:
            wk.pc = step.D_LOCK
        else:
            put_back(s, wk, c)
            wk.pc = step.NEXT
        return found.DONE
    if pc == step.D_LOCK:
        if lock(s, wk, visit.home, step.D_RELEASE) == found.BLOCKED:
            return found.BLOCKED
        if s.node[wk.home].closed:
            wk.pc = step.LEAVE
        else:
            put_back(s, wk, c)
        return found.DONE
    result = release(s, wk, step.NEXT)
    wk.home = 0
    return result


@inner
def link(s, wk, c):
    """The beginning of `_enter`: the nearest open ancestor."""
    node = s.node[frame_at(c, wk.stack, wk.ply)]
    if wk.ply == 0:
        node.parent, node.parent_id = NONE, 0
        return to(wk, step.E_EPOCH)
    visit = s.visit[frame_at(c, wk.stack, wk.ply - 1)]
    if not is_right_home(s, visit):
        return found.REUSED_FRAME
    parent = s.node[visit.home]
    if parent.open:
        node.parent, node.parent_id = visit.home, parent.id
    else:
        node.parent, node.parent_id = parent.parent, parent.parent_id
    return to(wk, step.E_EPOCH)


@inner
def begin_walk(wk, node, walking, then):
    """Begin the walk along the chain of open ancestors, if there is one."""
    if node.parent == NONE:
        wk.pc = then
        return
    wk.walk, wk.walk_id = node.parent, node.parent_id
    wk.pc = walking


@inner
def walk_on(s, wk, closed, then, only_one):
    """One node of `is_dead`."""
    node = s.node[wk.walk]
    if node.id != wk.walk_id or not node.open:
        return found.REUSED_FRAME
    if node.closed:
        wk.pc = closed
    elif node.parent == NONE or only_one:
        wk.pc = then
    else:
        wk.walk, wk.walk_id = node.parent, node.parent_id
        return found.DONE
    wk.walk = wk.walk_id = 0
    return found.DONE


@inner
def epoch_is_due(s, c):
    """Ghost: somebody has closed a node, or stopped the search, and is about to raise the epoch."""
    if s.supervisor == 1:
        return True
    for w in range(c.workers):
        pc = s.worker[w].pc
        if pc == step.C_EPOCH or pc == step.X_EPOCH:
            return True
    return False


@inner
def missed_abort(s, wk, c):
    """Ghost: the worker has seen the epoch and goes on, although it is in vain."""
    if not wk.fresh or epoch_is_due(s, c):
        return False
    if s.stop:
        return True
    here = s.node[frame_at(c, wk.stack, wk.ply)].parent
    while here != NONE:
        if s.node[here].closed:
            return True
        here = s.node[here].parent
    return False


@inner
def leaf_value(s, wk, choice, c):
    """A leaf is worth what was chosen when it was looked at first; otherwise any value."""
    below = s.visit[frame_at(c, wk.stack, wk.ply - 1)]
    root = below.home_id // TREE
    row = 0 if c.levels == 1 else below.home_id % TREE - ROOT - 1
    value = s.leaf[root, row, below.move]
    if value == NONE:
        if choice >= c.values:
            return found.BLOCKED
        value = choice
        s.leaf[root, row, below.move] = value
    elif choice > 0:
        return found.BLOCKED
    wk.value = value if wk.ply % 2 == 0 else -value
    return to(wk, step.POP)


@inner
def enter(s, wk, choice, c):
    """`_enter`, from the abort epoch on."""
    pc = wk.pc
    node = s.node[frame_at(c, wk.stack, wk.ply)]
    if pc == step.E_BODY:
        if choice == 0 and missed_abort(s, wk, c):
            return found.MISSED_ABORT
        if wk.ply == c.levels:
            return leaf_value(s, wk, choice, c)
        if choice > 0:
            return found.BLOCKED
    if pc == step.E_EPOCH:
        wk.pc = step.E_BODY if wk.fresh else step.E_STOP
        wk.fresh = 1
        return found.DONE
    if pc == step.E_STOP:
        if s.stop:
            wk.pc = step.UNWIND
        else:
            begin_walk(wk, node, step.E_WALK, step.E_BODY)
        return found.DONE
    if pc == step.E_WALK:
        only_one = c.mutation == mutation.ENTER_LOOKS_AT_PARENT_ONLY
        return walk_on(s, wk, step.UNWIND, step.E_BODY, only_one)
    node.best = -INFINITE
    node.cursor = node.put_off = node.taken = node.reported = node.out = 0
    return to(wk, step.NEXT)


# -- next move, open ---------------------------------------------------------------------------------------------------


@inner
def take_shared(s, wk, c):
    """`_take_move` at an open node, whose lock is held."""
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    node = s.node[visit.home]
    if not take(s, c, visit):
        node.out = 1
        return to(wk, step.LEAVE if c.mutation == mutation.EXHAUSTED_NOT_WITHDRAWN else step.N_WITHDRAW)
    wk.pc = step.N_RELEASE
    return note_taken(node, visit.move)


@inner
def next_move(s, wk, choice, c):
    """`_next_move`. The policy may open the node, or not."""
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    if wk.pc == step.N_BEGIN:
        if choice > 1:
            return found.BLOCKED
        if choice == 1:
            return to(wk, step.O_LOCK)
        if not take(s, c, visit):
            return to(wk, step.FINISH)
        wk.pc = step.START
        return note_taken(s.node[visit.home], visit.move)
    if wk.pc == step.N_LOCK:
        if not is_right_home(s, visit):
            return found.REUSED_FRAME
        if c.mutation == mutation.TAKE_WITHOUT_LOCK and s.node[visit.home].cursor < c.moves:
            wk.walk = s.node[visit.home].cursor
            return to(wk, step.N_UNLOCKED_TAKE)
        if lock(s, wk, visit.home, step.N_RELEASE) == found.BLOCKED:
            return found.BLOCKED
        if s.node[wk.home].closed and c.mutation != mutation.TAKE_SKIPS_CLOSED:
            return to(wk, step.LEAVE)
        return take_shared(s, wk, c)
    if wk.pc == step.N_UNLOCKED_TAKE:
        visit.move, wk.walk = wk.walk, 0
        s.node[visit.home].cursor = visit.move + 1
        wk.pc = step.START
        return note_taken(s.node[visit.home], visit.move)
    if wk.pc == step.N_WITHDRAW:
        return withdraw(s, wk, step.LEAVE)
    result = release(s, wk, step.START)
    wk.home = 0
    return result


@inner
def open_node(s, wk, c):
    pc = wk.pc
    unlocked = c.mutation == mutation.OPEN_WITHOUT_LOCK
    own = frame_at(c, wk.stack, wk.ply)
    node = s.node[own]
    if pc == step.O_LOCK:
        if unlocked:
            wk.home = own
        elif lock(s, wk, own, step.O_CLOSED) == found.BLOCKED:
            return found.BLOCKED
        if node.open:
            return found.OPENED_TWICE
        node.inside = 1
        s.visit[own].inside = 1
        return to(wk, step.O_OPEN if c.mutation == mutation.OPEN_STAYS_CLOSED else step.O_CLOSED)
    if pc == step.O_CLOSED:
        node.closed = 0
        return locked(s, wk, step.O_OPEN, not unlocked)
    if pc == step.O_OPEN:
        node.open = 1
        if unlocked:
            return locked(s, wk, step.O_OFFER, False)
        result = take_shared(s, wk, c)
        if wk.pc == step.N_RELEASE:
            wk.pc = step.O_OFFER
        return result
    node.offered = 1
    return locked(s, wk, step.N_LOCK if unlocked else step.N_RELEASE, not unlocked)


# -- after a child -----------------------------------------------------------------------------------------------------


@inner
def sum_up(s, visit, c):
    """Ghost: the value of a root move has been taken in, so of its leaves only the bounds matter."""
    root = visit.home_id // TREE
    if c.levels == 1 or visit.home_id % TREE != ROOT:
        return
    low = high = c.values - 1
    for column in range(c.moves):
        value = s.leaf[root, visit.move, column]
        low = min(low, 0 if value == NONE else value)
        if value != NONE:
            high = min(high, value)
        s.leaf[root, visit.move, column] = NONE
    s.low[root, visit.move] = low
    s.high[root, visit.move] = high


@inner
def take_in(s, wk, c):
    """`after_move`. In `wk.again` whether the move is to be searched again; True: it failed high."""
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    node = s.node[visit.home]
    value, wk.value = -wk.value, 0
    alpha, beta = node.alpha, node.beta
    wk.again = 0
    if value > visit.alpha and value < beta and visit.stage == SCOUT:
        visit.alpha = alpha
        visit.stage = FULL if value > alpha else SCOUT
        visit.beta = beta if value > alpha else alpha + 1
        wk.again = 1
        return False
    node.best = max(node.best, value)
    node.reported |= 1 << visit.move
    sum_up(s, visit, c)
    if value > alpha:
        node.alpha = value
    return value >= beta and value > alpha


@inner
def is_reported(s, wk, c):
    """Ghost: the value of the visit's move was taken in before."""
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    return s.node[visit.home].reported >> visit.move & 1


@inner
def go_on(s, wk, c):
    """After a value that did not fail high, with no lock held: the same move again, or the next one."""
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    if wk.again:
        wk.again = 0
        descend(s, wk, c, visit.stage, visit.alpha, visit.beta)
    else:
        forget_move(visit)
        wk.pc = step.NEXT


@inner
def report_locked(s, wk, c):
    """`_after_child` under the lock of an open node."""
    node = s.node[wk.home]
    if node.closed and c.mutation != mutation.REPORT_TO_CLOSED:
        wk.pc = step.LEAVE
        wk.value = 0
        return found.DONE
    if is_reported(s, wk, c):
        return found.REPORT_TWICE
    if has_ended(node):
        return found.AFTER_THE_END
    if take_in(s, wk, c):
        wk.pc = step.C_WITHDRAW
        if c.mutation == mutation.CUTOFF_NOT_WITHDRAWN:
            wk.pc = step.C_CLOSE
        elif c.mutation == mutation.CUTOFF_NOT_CLOSED:
            wk.pc = step.LEAVE
        return found.DONE
    if wk.again or c.mutation == mutation.TAKE_WITHOUT_LOCK or c.mutation == mutation.TAKE_SKIPS_CLOSED:
        return to(wk, step.C_RELEASE)
    forget_move(s.visit[frame_at(c, wk.stack, wk.ply)])
    return take_shared(s, wk, c)  # under the same lock


@inner
def after_child(s, wk, c):
    """`_after_child` at an open node."""
    pc = wk.pc
    visit = s.visit[frame_at(c, wk.stack, wk.ply)]
    if pc == step.C_LOCK:
        if not is_right_home(s, visit):
            return found.REUSED_FRAME
        if c.mutation == mutation.REPORT_WITHOUT_LOCK and not s.node[visit.home].closed:
            wk.home = visit.home
            wk.walk = s.node[visit.home].reported
            return to(wk, step.C_UNLOCKED_REPORT)
        if lock(s, wk, visit.home, step.C_RELEASE) == found.BLOCKED:
            return found.BLOCKED
        return report_locked(s, wk, c)
    if pc == step.C_UNLOCKED_REPORT:
        node = s.node[visit.home]
        before, wk.walk = wk.walk, 0
        if before >> visit.move & 1:
            return found.REPORT_TWICE
        node.reported = before  # what was read before is written now: the other's report is lost
        cuts = take_in(s, wk, c)
        wk.pc = step.C_WITHDRAW
        if not cuts:
            wk.home = 0
            go_on(s, wk, c)
        return found.DONE
    if pc == step.C_WITHDRAW:
        early = c.mutation == mutation.EPOCH_BEFORE_CLOSED and s.node[wk.home].inside > 1
        return withdraw(s, wk, step.C_EARLY_EPOCH if early else step.C_CLOSE)
    if pc == step.C_RELEASE:
        result = release(s, wk, step.NEXT)
        wk.home = 0
        go_on(s, wk, c)
        return result
    if pc == step.C_CLOSE:  # after a cutoff: `closed` first, then the epoch
        node = s.node[wk.home]
        node.closed = CUTOFF
        raises = node.inside > 1 and c.mutation != mutation.CUTOFF_KEEPS_EPOCH
        raises = raises and c.mutation != mutation.EPOCH_BEFORE_CLOSED
        return locked(s, wk, step.C_EPOCH if raises else step.LEAVE, True)
    raise_epoch(s)
    return to(wk, step.C_CLOSE if pc == step.C_EARLY_EPOCH else step.LEAVE)


# -- leave -------------------------------------------------------------------------------------------------------------


@inner
def count_out(s, wk, c):
    """The beginning of `leave`, under the lock."""
    own = frame_at(c, wk.stack, wk.ply)
    node = s.node[wk.home]
    wk.closed = node.closed
    forget_move(s.visit[own])
    s.visit[own].inside -= 1
    if s.visit[own].inside != 0 or not node.open or s.visit[own].home_id != node.id:
        return found.NOT_INSIDE
    if c.mutation == mutation.LEAVE_COUNTS_LATE:
        return to(wk, step.L_RELEASE)
    node.inside -= 1
    wk.last = 1 if node.inside == 0 and c.mutation != mutation.LEAVE_NEVER_LAST else 0
    wk.pc = step.L_RELEASE
    if wk.last:
        wk.pc = step.L_WITHDRAW
    elif own == wk.home and c.mutation != mutation.PARK_AFTER_RELEASE:
        wk.pc = step.L_PARK
    elif own != wk.home and c.mutation == mutation.FREE_BEFORE_RELEASE:
        wk.pc = step.L_EARLY_FREE
    return found.DONE


@inner
def be_idle(s, wk, c):
    """`become_idle`, and what nobody knows any more."""
    s.idle += 1
    if c.mutation != mutation.JOIN_KEEPS_EPOCH:
        wk.fresh = 0
    wk.stack = NONE
    wk.ply = wk.value = 0
    clear_registers(wk)
    wk.pc = step.IDLE


@inner
def free_own_stack(s, wk, c):
    """The stack is another's to take from here on."""
    clear_visit(s.visit[frame_at(c, wk.stack, wk.ply)])
    s.stack[wk.stack] = FREE
    s.runner[wk.stack] -= 1


@inner
def park(s, wk, c):
    s.stack[wk.stack] = FREE if c.mutation == mutation.FREE_INSTEAD_OF_PARK else PARKED
    s.runner[wk.stack] -= 1


@inner
def after_release(s, wk, c):
    """The lock is given back: what becomes of this worker."""
    own = frame_at(c, wk.stack, wk.ply)
    if own != wk.home:
        wk.pc = step.L_FREE
        if c.mutation == mutation.FREE_BEFORE_RELEASE and not wk.last:
            be_idle(s, wk, c)
    elif wk.last:
        go_on_alone(wk, c)
    elif c.mutation == mutation.PARK_AFTER_RELEASE:
        wk.pc = step.L_LATE_PARK
    else:
        be_idle(s, wk, c)


@inner
def go_on_alone(wk, c):
    """The last one out finishes the node, or unwinds further."""
    aborted = wk.closed == ABORTED and c.mutation != mutation.ABORTED_IS_FINISHED
    clear_registers(wk)
    wk.pc = step.UNWIND if aborted else step.FINISH


@inner
def leave_late(s, wk, c):
    """A mutation: `inside` is counted down after the lock was given back."""
    own = frame_at(c, wk.stack, wk.ply)
    node = s.node[wk.home]
    if wk.pc == step.L_LATE_READ:
        wk.walk = node.inside
        return to(wk, step.L_LATE_WRITE)
    node.inside = wk.walk - 1
    wk.last = 1 if node.inside == 0 else 0
    if wk.last:
        node.open = 0
        node.offered = 0
    elif own == wk.home:
        park(s, wk, c)
    after_release(s, wk, c)
    return found.DONE


@inner
def leave(s, wk, c):
    pc = wk.pc
    if pc == step.L_WITHDRAW:
        return withdraw(s, wk, step.L_RELEASE if c.mutation == mutation.LEAVE_STAYS_OPEN else step.L_OPEN)
    if pc == step.L_OPEN:
        s.node[wk.home].open = 0
        if c.mutation != mutation.OPEN_STAYS_CLOSED:
            s.node[wk.home].closed = 0  # who sees that the node is not open looks no further
        return locked(s, wk, step.L_RELEASE, True)
    if pc == step.L_PARK:
        park(s, wk, c)
        return to(wk, step.L_RELEASE)
    if pc == step.L_EARLY_FREE:
        s.stack[wk.stack] = FREE
        s.runner[wk.stack] -= 1
        return to(wk, step.L_RELEASE)
    if pc == step.L_RELEASE:
        result = release(s, wk, step.L_LATE_READ)
        if c.mutation != mutation.LEAVE_COUNTS_LATE:
            after_release(s, wk, c)
        return result
    if pc == step.L_LATE_PARK:
        park(s, wk, c)
        be_idle(s, wk, c)
        return found.DONE
    if pc == step.L_FREE:
        free_own_stack(s, wk, c)
        if not wk.last or c.mutation == mutation.ADOPT_NOTHING:
            be_idle(s, wk, c)
        else:
            wk.pc = step.L_ADOPT
        return found.DONE
    if pc != step.L_ADOPT:
        return leave_late(s, wk, c)
    stack = wk.home // PLIES  # that the node lies in
    if s.stack[stack] != PARKED:
        return found.NOT_PARKED
    if c.mutation != mutation.ADOPT_STAYS_PARKED:
        s.stack[stack] = ACTIVE
    wk.stack = stack
    if c.mutation != mutation.ADOPT_KEEPS_EPOCH:
        wk.fresh = 0
    go_on_alone(wk, c)
    return run_stack(s, stack)


# -- unwind, root ------------------------------------------------------------------------------------------------------


@inner
def unwind(s, wk, c):
    """`unwind` at an open node: is anything above it dead? Then it is, too."""
    pc = wk.pc
    if pc == step.U_STOP:
        wk.dead = s.stop
        if s.stop:
            wk.pc = step.U_LOCK
        else:
            begin_walk(wk, s.node[wk.home], step.U_WALK, step.U_LOCK)
        return found.DONE
    if pc == step.U_WALK:
        closed = s.node[wk.walk].closed != 0
        result = walk_on(s, wk, step.U_LOCK, step.U_LOCK, False)
        wk.dead = 1 if closed and c.mutation != mutation.UNWIND_LOOKS_AT_STOP_ONLY else 0
        return result
    if pc == step.U_LOCK:
        then = step.U_CLOSE if wk.dead and c.mutation != mutation.UNWIND_NOT_CLOSED else step.LEAVE
        return lock(s, wk, wk.home, then)
    if pc == step.U_CLOSE:
        s.node[wk.home].closed = ABORTED
        return locked(s, wk, step.U_WITHDRAW, True)
    return withdraw(s, wk, step.LEAVE)


@inner
def root_bounds(s, root, c):
    """Ghost: what the root is worth at least and at most, whatever the leaves are that nobody has looked at."""
    low = high = 0
    for move in range(c.moves):
        if c.levels == 1:
            value = s.leaf[root, 0, move]
            low = max(low, 0 if value == NONE else value)
            high = max(high, c.values - 1 if value == NONE else value)
        elif s.low[root, move] != NONE:
            low = max(low, s.low[root, move])
            high = max(high, s.high[root, move])
        else:
            worst = best = c.values - 1
            for column in range(c.moves):
                value = s.leaf[root, move, column]
                worst = min(worst, 0 if value == NONE else value)
                best = min(best, c.values - 1 if value == NONE else value)
            low = max(low, worst)
            high = max(high, best)
    return low, high


@inner
def enter_root(s, wk, c):
    """`_enter_root`: another search of the tree of the root on this worker's stack."""
    root = wk.stack
    s.leaf[root] = NONE  # ghosts
    s.low[root] = NONE
    s.high[root] = NONE
    frame = frame_at(c, root, 0)
    node = s.node[frame]
    beta = node.beta
    clear_node(node)
    clear_visit(s.visit[frame])
    node.alpha = -INFINITE
    node.beta = beta
    node.best = -INFINITE  # a stop may come before the node is entered
    node.id = s.visit[frame].home_id = root * TREE + ROOT
    s.visit[frame].home = frame
    wk.value = 0
    wk.pc = step.ENTER


@inner
def keep_answer(s, wk, c):
    """`_keep_answer`: only that there is one."""
    if c.roots == 1:
        return
    s.shown |= 1 << wk.stack
    if c.mutation == mutation.ANSWER_OF_WORKER:
        wk.answer = 1
    else:
        s.answers |= 1 << wk.stack


@inner
def is_main(wk, c):
    if c.mutation == mutation.MAIN_ROOT_OF_WORKER:
        return wk.began == 1 + MAIN
    return wk.stack == MAIN


@inner
def end_root(wk, c):
    """The beginning of `_end_search`."""
    stops_all = is_main(wk, c) and c.mutation != mutation.MAIN_ROOT_STOPS_NOBODY
    wk.pc = step.X_STOP if stops_all else step.X_FREE


@inner
def abort_root(s, wk, c):
    """`root_aborted`: what has been found by then is an answer."""
    if s.node[frame_at(c, wk.stack, 0)].best > -INFINITE:
        keep_answer(s, wk, c)
    end_root(wk, c)
    wk.dead = 1 if c.mutation == mutation.ABORTED_ROOT_NOT_COUNTED else 0


@inner
def finish_root(s, wk, choice, c):
    """`root_finished`, `_next_depth`. A side root goes on until it is stopped, but may be through after any iteration:
    its tree has been searched whole."""
    main = is_main(wk, c)
    if choice > (0 if main else 1):
        return found.BLOCKED
    # ghost: what the root is said to be worth follows from the leaves; its window has no lower bound
    low, high = root_bounds(s, wk.stack, c)
    fails_high = wk.value >= s.node[frame_at(c, wk.stack, 0)].beta
    if low < wk.value or (not fails_high and (low != wk.value or high != wk.value)):
        return found.WRONG_VALUE
    keep_answer(s, wk, c)
    if s.stop or choice == 1 or (main and s.iteration + 1 >= c.iterations):
        end_root(wk, c)
        return found.DONE
    s.iteration += 1 if main else 0
    enter_root(s, wk, c)
    return found.SEARCHES_ON if s.ended >> MAIN & 1 else found.DONE


@inner
def end_search(s, c):
    """The end of `_end_search`, by whoever has lowered `roots` to 0. `_hold_vote` must find an answer of each root that
    has shown something, and of no other."""
    if s.done or s.ended != (1 << c.roots) - 1:
        return found.DONE_WRONGLY
    for f in range(c.stacks * PLIES):
        if s.visit[f].inside or s.node[f].open:
            return found.DONE_WRONGLY
    s.done = 1
    answers = s.answers
    if c.mutation == mutation.ANSWER_OF_WORKER:
        answers = 0
        for w in range(c.workers):
            if s.worker[w].answer and s.worker[w].began:
                answers |= 1 << (s.worker[w].began - 1)
    return found.DONE if answers == s.shown else found.WRONG_VOTE


@inner
def root(s, wk, choice, c):
    """`root_finished`, and `_end_search`."""
    pc = wk.pc
    if pc == step.R_STOP:
        return finish_root(s, wk, choice, c)
    if pc == step.X_FREE:  # the root's stack is given back
        number, uncounted = wk.stack, wk.dead
        if s.ended >> number & 1:
            return found.ENDED_TWICE
        s.ended |= 1 << number
        free_own_stack(s, wk, c)
        clear_node(s.node[frame_at(c, number, 0)])
        be_idle(s, wk, c)
        wk.pc = step.X_LATE_READ if c.mutation == mutation.ROOTS_NOT_ATOMIC else step.X_COUNT
        if uncounted:
            wk.pc = step.IDLE
        return found.DONE
    if pc == step.X_DONE:
        wk.pc = step.IDLE
        return end_search(s, c)
    if pc == step.X_STOP:
        s.stop = 1
        wk.pc = step.X_FREE if c.mutation == mutation.STOP_KEEPS_EPOCH else step.X_EPOCH
    elif pc == step.X_EPOCH:
        raise_epoch(s)
        wk.pc = step.X_FREE
    elif pc == step.X_LATE_READ:
        wk.walk = s.roots
        wk.pc = step.X_LATE_WRITE
    else:
        s.roots = (wk.walk if pc == step.X_LATE_WRITE else s.roots) - 1
        wk.walk = 0
        wk.pc = step.X_DONE if s.roots == 0 or c.mutation == mutation.ANY_ROOT_ENDS_SEARCH else step.IDLE
    return found.DONE


# -- what a worker does by itself --------------------------------------------------------------------------------------


@inner
def drop_frame(s, wk, c):
    """One ply down: what lies above is nobody's any more."""
    gone = frame_at(c, wk.stack, wk.ply)
    clear_node(s.node[gone])
    clear_visit(s.visit[gone])
    wk.ply -= 1


@inner
def run_locally(s, wk, c):
    """Run to the next step that others can see."""
    while wk.pc >= step.LOCAL:
        pc = wk.pc
        here = frame_at(c, wk.stack, wk.ply)
        result = found.DONE
        if pc == step.ENTER:
            result = link(s, wk, c)
        elif pc == step.START:
            visit = s.visit[here]
            if c.defers and visit.move > 0 and not visit.deferred:
                wk.pc = step.D_CLAIM
            else:
                begin_move(s, wk, c)
        elif pc == step.NEXT:
            wk.pc = step.N_LOCK if s.node[s.visit[here].home].open else step.N_BEGIN
        elif pc == step.POP:
            if wk.ply == 0:
                wk.pc = step.R_STOP
            else:
                drop_frame(s, wk, c)
                wk.pc = step.CHILD
        elif pc == step.CHILD:
            if not is_right_home(s, s.visit[here]):
                return found.REUSED_FRAME
            if s.node[s.visit[here].home].open:
                wk.pc = step.C_LOCK
            elif is_reported(s, wk, c):
                return found.REPORT_TWICE
            elif take_in(s, wk, c):
                wk.pc = step.FINISH
            else:
                go_on(s, wk, c)
        elif pc == step.LEAVE:
            result = count_out(s, wk, c)
        elif pc == step.FINISH:  # the node's value is what its parent gets
            node = s.node[here]
            if node.open or s.visit[here].home != here or not is_right_home(s, s.visit[here]):
                return found.REUSED_FRAME
            if node.best < node.beta and node.reported != (1 << c.moves) - 1:
                return found.UNFINISHED
            wk.value = node.best
            wk.pc = step.POP
        elif wk.ply == 0:
            abort_root(s, wk, c)
        else:
            drop_frame(s, wk, c)
            visit = s.visit[frame_at(c, wk.stack, wk.ply)]
            if not is_right_home(s, visit):
                return found.REUSED_FRAME
            if s.node[visit.home].open:
                wk.home = visit.home
                wk.pc = step.U_STOP
        if result != found.DONE:
            return result
    return found.DONE


# -- all of it ---------------------------------------------------------------------------------------------------------


@inner
def first_step(s, wk, choice, c):
    pc = wk.pc
    if pc == step.IDLE:
        return idle(s, wk, choice, c)
    if pc == step.J_CLAIM:
        return claim_stack(s, wk, choice, c)
    if choice > 0 and pc not in (step.D_CLAIM, step.E_BODY, step.N_BEGIN, step.R_STOP):
        return found.BLOCKED  # it cannot go in several ways
    if pc <= step.J_FAIL_FREE:
        return join(s, wk, c)
    if pc <= step.S_ALPHA_AGAIN:
        return start(s, wk, c)
    if pc <= step.D_RELEASE:
        return put_off(s, wk, choice, c)
    if pc <= step.E_BODY:
        return enter(s, wk, choice, c)
    if pc <= step.N_RELEASE:
        return next_move(s, wk, choice, c)
    if pc <= step.O_OFFER:
        return open_node(s, wk, c)
    if pc <= step.C_RELEASE:
        return after_child(s, wk, c)
    if pc <= step.L_ADOPT:
        return leave(s, wk, c)
    if pc <= step.U_WITHDRAW:
        return unwind(s, wk, c)
    if pc <= step.X_DONE:
        return root(s, wk, choice, c)
    return found.BLOCKED


@entry
def advance(s, worker, choice, c):
    """One step of a worker, in one of the ways in which it can go; BLOCKED if there is no such way now."""
    wk = s.worker[worker]
    result = first_step(s, wk, choice, c)
    if result != found.DONE:
        return result
    return run_locally(s, wk, c)


@entry
def interrupt(s, c):
    """One step of `request_stop`, by the supervisor."""
    if not c.stops or s.supervisor == 2 or s.done:
        return found.BLOCKED
    if s.supervisor == 0:
        s.stop = 1
        s.supervisor = 2 if c.mutation == mutation.STOP_KEEPS_EPOCH else 1
    else:
        raise_epoch(s)
        s.supervisor = 2
    return found.DONE


@inner
def chooses_alone(s, worker):
    """Whether the worker's next step is a choice that is nobody else's business."""
    return s.worker[worker].pc in (step.E_BODY, step.N_BEGIN, step.D_CLAIM)


UNSEEN = (step.J_RELEASE, step.J_FAIL_RELEASE, step.N_RELEASE, step.C_RELEASE, step.D_RELEASE, step.O_CLOSED)
UNSEEN += (step.O_OPEN, step.L_OPEN, step.L_PARK, step.L_RELEASE, step.L_ADOPT)


@inner
def goes_unseen(s, worker):
    """Whether nobody can see, or be in the way of, the worker's next step, so that it may as well be made at once.

    To unlock: who waits for the lock cannot move before. `closed` and `open` of a node that is being opened, its first
    move, and `open` of one that nobody is inside of any more: read under the lock alone. That a stack is parked, and
    that it is active again: who looks for a free one passes over both.
    """
    return s.worker[worker].pc in UNSEEN


@inner
def broken(s, c):
    """A property of states that does not hold; DONE when all do."""
    for f in range(c.stacks * PLIES):
        node = s.node[f]
        if node.lock:
            continue
        visits = 0
        for v in range(c.stacks * PLIES):
            if s.visit[v].inside and s.visit[v].home == f:
                visits += 1
        if node.open and (visits != node.inside or visits == 0):
            return found.MISCOUNTED
        if not node.open and visits:
            return found.MISCOUNTED
        if node.offered != (1 if node.open and not node.closed and not node.out else 0):
            return found.WRONG_OFFER
    for stack in range(c.stacks):
        if (s.stack[stack] == ACTIVE) != (s.runner[stack] == 1):
            return found.WRONG_STACK
    return found.DONE


@inner
def is_over(s, c):
    """Every worker has seen that the search is done."""
    gone = 0
    for w in range(c.workers):
        gone += s.worker[w].pc == step.GONE
    return gone == c.workers


@inner
def leftover(s, c):
    """Return what is wrong with the end."""
    for f in range(c.stacks * PLIES):
        node = s.node[f]
        if node.lock or node.open or node.offered:
            return True
    for stack in range(c.stacks):
        if s.stack[stack] != FREE:
            return True
    return s.idle != c.workers


@entry
def begin(s, c, beta, side_beta):
    """`begin_search`: worker 0 has the main root, worker 1 the side root if there is one."""
    for f in range(STACKS * PLIES):
        s.node[f].parent = NONE
    s.leaf[:] = NONE
    s.low[:] = NONE
    s.high[:] = NONE
    for w in range(WORKERS):
        s.worker[w].stack = NONE
        s.worker[w].pc = step.IDLE if w < c.workers else step.GONE
    s.roots = c.roots
    s.idle = c.workers - c.roots
    for number in range(c.roots):
        wk = s.worker[number]
        wk.stack = number
        if c.mutation == mutation.ANSWER_OF_WORKER or c.mutation == mutation.MAIN_ROOT_OF_WORKER:
            wk.began = 1 + number
        s.stack[number] = ACTIVE
        s.runner[number] = 1
        s.node[frame_at(c, number, 0)].beta = side_beta if number else beta
        enter_root(s, wk, c)
        run_locally(s, wk, c)
