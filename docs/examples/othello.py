"""Othello: a disc turns over all discs of the opponent that it encloses; who has more in the end wins.

Scores are hundredths of a disc; in the end empty squares count for the winner, as in published scores. Who has no move
passes: that is a move, too, written `pa`. In a list of moves it may be left out, as people mostly do.
"""

import numpy as np

NAME = "othello"
# A position is seen from the side to move. Bit 0 is a1 in the upper left corner, bit 1 is b1, bit 63 is h8. What is
# asked often may be kept in it: the legal moves, which three functions need. The colour is for people only.
POSITION = np.dtype([("own", "u8"), ("other", "u8"), ("legal", "u8"), ("white", "u8")])
MOST_MOVES = 60  # a game begins with 60 empty squares
PASS = 64  # all other moves are squares, 0 to 63
# Constants of bitboards are of the type uint64: of uint64 and int64 together numba, like NumPy, makes a float64.
NONE, ONE = np.uint64(0), np.uint64(1)
INNER = np.uint64(0x7E7E7E7E7E7E7E7E)  # columns b to g: what is enclosed sideways lies there, and no row wraps
# From a square to the next (down, right, down and left, down and right), and where discs can be enclosed that way.
LINES = ((np.uint64(8), ~NONE), (ONE, INNER), (np.uint64(7), INNER), (np.uint64(9), INNER))
CORNERS = np.uint64(0x8100000000000081)


def count(squares):
    number = 0
    while squares:  # the compiler knows this loop and makes one instruction of it
        squares &= squares - ONE
        number += 1
    return number


def rows(squares, inner, step):
    """Return the rows of inner discs that begin next to one of the squares, forwards and backwards."""
    ahead, back = inner & (squares << step), inner & (squares >> step)
    for _ in range(5):  # at most six discs are enclosed, and the first is there
        ahead |= inner & (ahead << step)
        back |= inner & (back >> step)
    return ahead, back


def legal_moves(own, other):
    found = NONE
    for step, where in LINES:
        ahead, back = rows(own, other & where, step)
        found |= (ahead << step) | (back >> step)  # the square after a row
    return found & ~(own | other)


def turned(own, other, disc):
    found = NONE
    for step, where in LINES:
        ahead, back = rows(disc, other & where, step)
        if own & (ahead << step):  # a row is enclosed if there is a disc of one's own after it
            found |= ahead
        if own & (back >> step):
            found |= back
    return found


def start(pos):
    pos["own"], pos["other"] = np.uint64(0x0000000810000000), np.uint64(0x0000001008000000)  # e4 d5, d4 e5
    pos["legal"] = legal_moves(pos["own"], pos["other"])


def moves(pos, found):
    own, other, left = pos["own"], pos["other"], pos["legal"]
    found[0] = PASS
    number = 0
    while left:
        disc = left & ~(left - ONE)  # the lowest bit
        left ^= disc
        # Alpha-beta lives on a good order: first what leaves the opponent the fewest moves, a corner counted twice.
        over = turned(own, other, disc)
        answers = legal_moves(other ^ over, own | disc | over)
        weight = 1 + count(answers) + count(answers & CORNERS) - count(disc & CORNERS)
        # A weight stands above the seven bits of its move while moves are inserted in order.
        place, move = number, weight << 7 | count(disc - ONE)
        while place > 0 and found[place - 1] > move:
            found[place] = found[place - 1]
            place -= 1
        found[place] = move
        number += 1
    for place in range(number):
        found[place] &= 127
    return max(number, 1)  # without a legal move it is the pass


def make(pos, move):
    own, other = pos["own"], pos["other"]
    if move != PASS:
        disc = ONE << np.uint64(move)
        over = turned(own, other, disc)
        own, other = own | disc | over, other ^ over
    pos["own"], pos["other"] = other, own  # from now on the position is seen from the opponent's side
    pos["legal"], pos["white"] = legal_moves(other, own), pos["white"] ^ ONE


def ended(pos):
    return not pos["legal"] and not legal_moves(pos["other"], pos["own"])  # neither side has a move


def result(pos):
    own, other = count(pos["own"]), count(pos["other"])
    empty = 64 - own - other
    return 100 * (own - other + (empty if own > other else -empty if own < other else 0))


def evaluate(pos):
    own, other = pos["own"], pos["other"]
    # Who has more moves has the choice, and a corner is never turned over. Near the end the search sees the discs.
    score = 80 * (count(pos["legal"]) - count(legal_moves(other, own)))
    score += 800 * (count(own & CORNERS) - count(other & CORNERS))
    return min(max(score, -6400), 6400)


def key(pos):
    # Each side is mixed (splitmix64, Steele, Lea, Flood 2014), the second with the first in it. A position with the
    # colours exchanged has the same key, as it has the same score for the side to move.
    bits = NONE
    for side in (pos["own"], pos["other"]):
        bits = (bits ^ side) + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    return bits


def move_text(pos, move):
    return "pa" if move == PASS else "abcdefgh"[move % 8] + str(move // 8 + 1)


def board_text(pos):
    x, o = (pos["other"], pos["own"]) if pos["white"] else (pos["own"], pos["other"])  # X is Black
    cells = ["X" if int(x) >> i & 1 else "O" if int(o) >> i & 1 else "-" for i in range(64)]
    return "\n".join(" ".join(cells[row : row + 8]) for row in range(0, 64, 8)) + f"\n{'XO'[pos['white']]} to move"


def read_position(pos, text):
    """Fill pos from the moves of a game (f5d6c3), or from 64 squares X, O or - in rows from a1 and the side to move."""
    words = "".join(text.split())
    if set(words) & {"X", "O"}:  # capital letters are no moves
        squares, side = words[:64], words[64:]
        if set(squares) - set("XO-") or side not in ("X", "O"):
            raise ValueError("a board is 64 squares, X, O or -, in rows from a1, and then X or O, the side to move")
        pos["own"] = sum(1 << i for i in range(64) if squares[i] == side)
        pos["other"] = sum(1 << i for i in range(64) if squares[i] not in (side, "-"))
        pos["legal"], pos["white"] = legal_moves(pos["own"], pos["other"]), side == "O"
        return
    start(pos)
    found = np.zeros(MOST_MOVES, np.uint16)
    for at in range(0, len(words), 2):
        if words[at : at + 2] != "pa" and not pos["legal"] and not ended(pos):
            make(pos, PASS)  # the pass was left out
        legal = [] if ended(pos) else [move_text(pos, move) for move in found[: moves(pos, found)]]
        if words[at : at + 2] not in legal:
            raise ValueError(f"{words[:at]} {words[at:]}: here one can play {' '.join(legal) or 'nothing'}")
        make(pos, found[legal.index(words[at : at + 2])])
