"""Connect Four: seven columns of six cells; who first has four stones in a line wins.

Scores are hundredths of the published unit, which is the number of stones that the winner has left, and one: a win with
the 21st and last stone is worth 1 there and 100 here. From the empty board the first player wins with his 21st stone.
"""

import numpy as np

NAME = "connect four"
# A position is seen from the side to move: `own` are his stones, `other` those of the opponent. One bit for each cell:
# bits 0 to 5 are the first column from below, bit 6 is always 0 and keeps lines from wrapping, bit 7 begins the second.
POSITION = np.dtype([("own", "u8"), ("other", "u8")])
MOST_MOVES = 7  # a move is its column, 0 to 6
# Constants of bitboards are of the type uint64: of uint64 and int64 together numba, like NumPy, makes a float64.
ONE = np.uint64(1)
COLUMN = tuple(np.uint64(0b111111 << 7 * column) for column in range(7))
BOARD = np.uint64(sum(int(column) for column in COLUMN))  # all 42 cells
BOTTOM = np.uint64(int(BOARD) // 0b111111)  # the lowest cell of each column
ODD_ROWS = np.uint64(int(BOTTOM) * 0b010101)  # the first, third and fifth row from below
STEPS = (ONE, np.uint64(6), np.uint64(7), np.uint64(8))  # from a cell to the next: up, right and down, right, both up
MIDDLE_FIRST = (3, 2, 4, 1, 5, 0, 6)  # more lines of four go through the middle
A_STONE = 100  # leaves hundredths for the evaluation of undecided games


def count(cells):
    number = 0
    while cells:  # the compiler knows this loop and makes one instruction of it
        cells &= cells - ONE
        number += 1
    return number


def has_four(stones):
    for step in STEPS:
        pairs = stones & (stones >> step)  # stones with a neighbour in this direction
        if pairs & (pairs >> (step + step)):  # a pair, and another right behind it
            return True
    return False


def winning(stones, taken):
    """Return the empty cells in which one more of these stones makes a line of four."""
    cells = np.uint64(0)
    for step in STEPS:
        two, three = step + step, step + step + step
        before = (stones << step) & (stones << two)  # two stones next to the cell on one side
        behind = (stones >> step) & (stones >> two)  # two on the other side
        cells |= before & ((stones << three) | (stones >> step))  # and a third on either side
        cells |= behind & ((stones >> three) | (stones << step))
    return cells & BOARD & ~taken


def start(pos):
    pos["own"] = pos["other"] = np.uint64(0)


def moves(pos, found):
    taken = pos["own"] | pos["other"]
    free = (taken + BOTTOM) & BOARD  # the lowest empty cell of each column: a full one carries into bit 6, no cell
    wins, threats = winning(pos["own"], taken), winning(pos["other"], taken)
    number = 0
    # Alpha-beta lives on a good order: what wins; what the opponent would win with; what lets him not win right on top
    # of it; the rest. Within a group the middle comes first.
    for group in (free & wins, free & threats, free & ~(threats >> ONE), free):
        for column in MIDDLE_FIRST:
            if group & free & COLUMN[column]:
                found[number] = column
                number += 1
                free &= ~COLUMN[column]  # not again in a later group
    return number


def make(pos, move):
    own, column = pos["own"], COLUMN[move]
    # Adding its lowest cell to the stones of a column carries into the first empty cell, where the new stone stays.
    stone = ((own | pos["other"]) + (column & BOTTOM)) & column
    pos["own"] = pos["other"]  # from now on the position is seen from the opponent's side
    pos["other"] = own | stone


def ended(pos):
    return has_four(pos["other"]) or (pos["own"] | pos["other"]) == BOARD  # only who has just moved can have won


def result(pos):
    # The side to move has lost, unless the board is full: the fewer stones the winner took, the worse.
    return -A_STONE * (22 - count(pos["other"])) if has_four(pos["other"]) else 0


def evaluate(pos):
    own, other = pos["own"], pos["other"]
    mine, his = winning(own, own | other), winning(other, own | other)
    # At the end the first player gets the odd cells of the column that is left, the second player the even ones:
    # a threat there is worth more.
    good = ODD_ROWS if count(own) == count(other) else ~ODD_ROWS
    score = 6 * (count(mine) - count(his)) + 9 * (count(mine & good) - count(his & ~good))
    score += 2 * (count(own & COLUMN[3]) - count(other & COLUMN[3]))
    return min(max(score, 1 - A_STONE), A_STONE - 1)  # less than any win, more than any loss


def key(pos):
    # The sum is another for every position: in each column its highest bit is the top of the pile, below are the bits
    # of `own`. Who moves follows from the number of stones. The rest mixes it (splitmix64, Steele, Lea, Flood 2014).
    bits = pos["own"] + (pos["own"] | pos["other"]) + BOTTOM
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def move_text(pos, move):
    return str(int(move) + 1)  # people count columns from 1


def board_text(pos):
    x, o = int(pos["own"]), int(pos["other"])
    if x.bit_count() != o.bit_count():
        x, o = o, x  # X is the first player, who is to move when both have as many stones
    rows = [[1 << 7 * column + row for column in range(7)] for row in (5, 4, 3, 2, 1, 0)]
    return "\n".join(" ".join("X" if x & bit else "O" if o & bit else "." for bit in row) for row in rows)
