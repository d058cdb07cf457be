"""Outcomes of a step of the model: done, not possible now, or a property that does not hold."""

from __future__ import annotations

BLOCKED, DONE = 0, 1

(
    MOVE_TWICE,
    REPORT_TWICE,
    AFTER_THE_END,
    NOT_INSIDE,
    NOT_PARKED,
    TWO_RUNNERS,
    REUSED_FRAME,
    NOT_LOCKED,
    UNFINISHED,
    WRONG_VALUE,
    MISSED_ABORT,
    MISCOUNTED,
    WRONG_OFFER,
    OPENED_TWICE,
    WRONG_STACK,
    ENDED_TWICE,
    SEARCHES_ON,
    DONE_WRONGLY,
    WRONG_VOTE,
    LEFTOVER,
    DEADLOCK,
    LIVELOCK,
) = range(2, 24)

PROPERTIES = {
    MOVE_TWICE: "a move is taken once",
    REPORT_TWICE: "the value of a move is taken in once",
    AFTER_THE_END: "at a node that is closed or has failed high no move is taken, and no value is taken in",
    NOT_INSIDE: "who leaves a node was inside, and it is left for the last time once",
    NOT_PARKED: "only a parked stack is adopted",
    TWO_RUNNERS: "a stack is run by one worker at a time",
    REUSED_FRAME: "nobody works on a frame that holds another node than it did",
    NOT_LOCKED: "`open`, `closed`, `inside`, the moves and the bit change under the node's lock",
    UNFINISHED: "a node that did not fail high is finished when the value of every move has been taken in",
    WRONG_VALUE: "a root's value is that of minimax",
    MISSED_ABORT: "who has seen the abort epoch runs below no closed node, and not after a stop",
    MISCOUNTED: "`inside` is the number of visits",
    WRONG_OFFER: "the bit is set exactly while the node is open, not closed, and not known to be out of moves",
    OPENED_TWICE: "only a node that is not open is opened",
    WRONG_STACK: "a stack is active while a worker runs it, and only then",
    ENDED_TWICE: "a root ends once",
    SEARCHES_ON: "when the main root has ended no root is searched again",
    DONE_WRONGLY: "`done` is set once, when every root has ended and nobody is inside a node",
    WRONG_VOTE: "the vote finds what each root has shown, whoever has run its stack since",
    LEFTOVER: "at the end every stack is free and every worker idle, and nothing is open, locked or offered",
    DEADLOCK: "until the search is over somebody can go on",
    LIVELOCK: "from everywhere the end can be reached",
}
