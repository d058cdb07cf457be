"""Mutations of the protocol, one mistake each: the model has a switch for each of them."""

from __future__ import annotations

NOTHING = 0

(
    JOIN_KEEPS_EPOCH,
    JOIN_SKIPS_OPEN,
    JOIN_SKIPS_CLOSED,
    JOIN_TAKES_BEFORE_LOCK,
    JOIN_COUNTS_LATE,
    JOIN_KEEPS_STACK,
    JOIN_KEEPS_LOCK,
    LEAVE_COUNTS_LATE,
    LEAVE_STAYS_OPEN,
    LEAVE_NEVER_LAST,
    PARK_AFTER_RELEASE,
    FREE_INSTEAD_OF_PARK,
    ADOPT_STAYS_PARKED,
    ADOPT_NOTHING,
    EPOCH_BEFORE_CLOSED,
    CUTOFF_KEEPS_EPOCH,
    CUTOFF_NOT_CLOSED,
    CUTOFF_NOT_WITHDRAWN,
    EXHAUSTED_NOT_WITHDRAWN,
    OPEN_WITHOUT_LOCK,
    OPEN_STAYS_CLOSED,
    TAKE_WITHOUT_LOCK,
    TAKE_SKIPS_CLOSED,
    REPORT_WITHOUT_LOCK,
    REPORT_TO_CLOSED,
    UNWIND_NOT_CLOSED,
    UNWIND_LOOKS_AT_STOP_ONLY,
    ENTER_LOOKS_AT_PARENT_ONLY,
    ABORTED_IS_FINISHED,
    STOP_KEEPS_EPOCH,
    MAIN_ROOT_STOPS_NOBODY,
    MAIN_ROOT_OF_WORKER,
    ANY_ROOT_ENDS_SEARCH,
    ABORTED_ROOT_NOT_COUNTED,
    ROOTS_NOT_ATOMIC,
    ANSWER_OF_WORKER,
    VOTE_READS_COPIED_FIELD,
) = range(1, 38)

OF_ROOTS = range(MAIN_ROOT_STOPS_NOBODY, VOTE_READS_COPIED_FIELD + 1)
"""Mutations that only a world with two roots can show."""

FREE_BEFORE_RELEASE, ADOPT_KEEPS_EPOCH, ALPHA_READ_TWICE = 50, 51, 52

HARMLESS = {
    FREE_BEFORE_RELEASE: "a helper frees its stack before it unlocks the node: it has left the stack by then",
    ADOPT_KEEPS_EPOCH: "who adopts a stack was inside of the node: it has walked the same chain of open ancestors",
    ALPHA_READ_TWICE: "a null window from two reads of a rising alpha is wider, and searched again if need be",
}
"""Changes that no property notices, and why."""

NAMES = {number: name for name, number in list(globals().items()) if name.isupper() and isinstance(number, int)}
