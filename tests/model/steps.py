"""Next step of a worker of the model, by number: `worker.pc`.

The first letter of a step says where in the program it is: Join, Start of a move, Deferred move, Enter, Next move,
Open, Child, Leave, Unwind, Root, eXit. Each is one access to memory that others share; what follows it until the next
one is done with it.
"""

from __future__ import annotations

(
    IDLE,
    J_CLAIM,
    J_EARLY_TAKE,
    J_LOCK,
    J_WITHDRAW,
    J_RELEASE,
    J_LATE_READ,
    J_LATE_WRITE,
    J_COPY,
    J_FAIL_RELEASE,
    J_FAIL_FREE,
    S_ALPHA,
    S_ALPHA_AGAIN,
    D_CLAIM,
    D_LOCK,
    D_RELEASE,
    E_EPOCH,
    E_STOP,
    E_WALK,
    E_BODY,
    N_BEGIN,
    N_LOCK,
    N_UNLOCKED_TAKE,
    N_WITHDRAW,
    N_RELEASE,
    O_LOCK,
    O_CLOSED,
    O_OPEN,
    O_OFFER,
    C_LOCK,
    C_UNLOCKED_REPORT,
    C_WITHDRAW,
    C_EARLY_EPOCH,
    C_CLOSE,
    C_EPOCH,
    C_RELEASE,
    L_WITHDRAW,
    L_OPEN,
    L_PARK,
    L_EARLY_FREE,
    L_RELEASE,
    L_LATE_READ,
    L_LATE_WRITE,
    L_LATE_PARK,
    L_FREE,
    L_ADOPT,
    U_STOP,
    U_WALK,
    U_LOCK,
    U_CLOSE,
    U_WITHDRAW,
    R_STOP,
    X_STOP,
    X_EPOCH,
    X_FREE,
    X_COUNT,
    X_LATE_READ,
    X_LATE_WRITE,
    X_DONE,
    GONE,
) = range(60)
"""EARLY, LATE and UNLOCKED are steps of mutations; GONE: the search is over and the worker has seen it."""

ENTER, START, NEXT, POP, CHILD, LEAVE, FINISH, UNWIND, REST = range(100, 109)
"""Steps that a worker does by itself, at once."""
LOCAL = ENTER

NAMES = {number: name for name, number in list(globals().items()) if name.isupper() and isinstance(number, int)}
NAMES[ENTER] = "ENTER"
