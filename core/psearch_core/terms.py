"""Terms of the handcrafted evaluation: name, place in the table of weights, and what is counted.

Every weight is a pair (middle game, end game) in centipawns. The kernels read `tb.terms[NAME + i]`, `weights.py` has
the values under the same names, and `bench/tuning/tune.py` fits them; all three use this list. A term is counted for
each side, and the opponent's count is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

PAIR_SHIFT = 16
"""Bits of the end game value, which may be negative, in the integer that holds a pair; the middle game is above."""
REST_BOUND = 1000
"""Bound B of soundness.md, in centipawns: the most that all terms except material and piece-square tables may add up
to. Kernels read it as `rest_bound` in the tables."""


@dataclass(frozen=True)
class Term:
    """A run of weights in the table."""

    name: str
    first: int
    """Index of the first weight."""
    count: int
    note: str
    """Description of one unit of the term."""


TERMS: list[Term] = []
UNITS: list[Term] = []
"""Units of danger to a king: integers, not pairs, whose sum is looked up in DANGER."""


def _add(to: list[Term], name: str, count: int, note: str) -> int:
    first = to[-1].first + to[-1].count if to else 0
    to.append(Term(name, first, count, note))
    return first


_term, _unit = partial(_add, TERMS), partial(_add, UNITS)

# -- pawns and kings: kept in the pawn hash --------------------------------------------------------------------------

ISOLATED = _term("ISOLATED", 2, "a pawn without own pawns on the files beside it; no enemy pawn ahead on its file, one")
DOUBLED = _term("DOUBLED", 1, "a pawn with an own pawn ahead on its file")
BACKWARD = _term(
    "BACKWARD",
    2,
    "a pawn whose neighbours are all ahead and whose next square an enemy pawn attacks; not opposed, opposed",
)
PHALANX = _term("PHALANX", 6, "a pawn with an own pawn beside it, by rank 2 to 7")
SUPPORTED = _term("SUPPORTED", 6, "a pawn that an own pawn defends, by rank 2 to 7")
CANDIDATE = _term(
    "CANDIDATE", 6, "no enemy pawn ahead on its file, and as many helpers as sentries on those beside, by rank 2 to 7"
)
PASSED = _term("PASSED", 6, "a passed pawn, the foremost of its file, by rank 2 to 7")
PASSED_OWN_KING = _term(
    "PASSED_OWN_KING", 4, "steps of the own king to the square in front of a passed pawn, 5 at most, by rank 4 to 7"
)
PASSED_ENEMY_KING = _term("PASSED_ENEMY_KING", 4, "the same for the enemy king")
SHELTER = _term(
    "SHELTER",
    28,
    "three files at the king: rank of the nearest own pawn not behind it, 0 none, 2 to 7; files a/h, b/g, c/f, d/e",
)
STORM = _term(
    "STORM", 14, "the same for the nearest enemy pawn; free to advance, then right in front of the nearest own pawn"
)

# -- pieces ----------------------------------------------------------------------------------------------------------

MOBILITY_KNIGHT = _term(
    "MOBILITY_KNIGHT",
    9,
    "a knight, by number of attacked squares that no enemy pawn attacks, nor own king or low pawn holds",
)
MOBILITY_BISHOP = _term("MOBILITY_BISHOP", 14, "a bishop, likewise; it sees through queens")
MOBILITY_ROOK = _term("MOBILITY_ROOK", 15, "a rook, likewise; it sees through queens and own rooks")
MOBILITY_QUEEN = _term("MOBILITY_QUEEN", 28, "a queen, likewise")
BISHOP_PAIR = _term("BISHOP_PAIR", 1, "two bishops or more")
BISHOP_PAWNS = _term("BISHOP_PAWNS", 2, "an own pawn on the colour of a bishop; not blocked, blocked by anything")
OUTPOST_KNIGHT = _term(
    "OUTPOST_KNIGHT",
    2,
    "a knight on ranks 4 to 6 where no enemy pawn can ever attack it; not defended by a pawn, defended",
)
OUTPOST_BISHOP = _term("OUTPOST_BISHOP", 2, "a bishop, likewise")
OUTPOST_REACHABLE = _term(
    "OUTPOST_REACHABLE", 1, "a knight, not on an outpost, that can go to one which a pawn defends"
)
MINOR_BEHIND_PAWN = _term("MINOR_BEHIND_PAWN", 1, "a knight or bishop right behind a pawn of either side")
KING_DISTANCE = _term("KING_DISTANCE", 2, "steps from the own king to a knight, to a bishop")
ROOK_OPEN = _term("ROOK_OPEN", 1, "a rook on a file without pawns")
ROOK_SEMI_OPEN = _term("ROOK_SEMI_OPEN", 1, "a rook on a file with enemy pawns only")
ROOK_SEVENTH = _term(
    "ROOK_SEVENTH", 1, "a rook on the seventh rank with the enemy king on the eighth or pawns to attack"
)
ROOK_TRAPPED = _term("ROOK_TRAPPED", 1, "a rook with at most three squares, shut in by its king")

# -- what needs the attacks of both sides ----------------------------------------------------------------------------

DANGER = _term("DANGER", 64, "the enemy king's danger, see UNITS, in steps")
THREAT_BY_PAWN = _term("THREAT_BY_PAWN", 4, "an enemy knight, bishop, rook, queen attacked by a pawn on a safe square")
THREAT_BY_PUSH = _term("THREAT_BY_PUSH", 1, "an enemy piece that a safe pawn move would attack")
THREAT_BY_MINOR = _term(
    "THREAT_BY_MINOR", 5, "an enemy pawn (weak), knight, bishop, rook, queen attacked by a minor piece"
)
THREAT_BY_ROOK = _term("THREAT_BY_ROOK", 5, "a weak enemy pawn, knight, bishop, rook, and any queen attacked by a rook")
THREAT_BY_KING = _term("THREAT_BY_KING", 1, "a weak enemy piece or pawn attacked by the king")
HANGING = _term("HANGING", 1, "a weak enemy piece or pawn that nothing defends, or a piece attacked twice")
RESTRICTED = _term("RESTRICTED", 1, "a square that both attack and the enemy does not hold firmly")
QUEEN_THREAT = _term("QUEEN_THREAT", 2, "a safe square from which a knight, a slider would attack the enemy queen")
PASSED_BLOCKED = _term(
    "PASSED_BLOCKED", 8, "a passed pawn stopped by an own piece, by rank 4 to 7; by an enemy piece, by rank 4 to 7"
)
PASSED_FREE = _term("PASSED_FREE", 4, "all squares to promotion empty and not attacked, by rank 4 to 7")
PASSED_SAFE = _term("PASSED_SAFE", 4, "otherwise, the next square not attacked, by rank 4 to 7")
PASSED_DEFENDED = _term("PASSED_DEFENDED", 4, "the next square empty and defended, by rank 4 to 7")
PASSED_ROOK_BEHIND = _term("PASSED_ROOK_BEHIND", 2, "a rook behind the passed pawn: an own one, an enemy one")
UNSTOPPABLE = _term("UNSTOPPABLE", 1, "a passed pawn that the enemy, without pieces, cannot catch")
SPACE = _term("SPACE", 2, "a safe square on files c to f, ranks 2 to 4; the same behind an own pawn")
TEMPO = _term("TEMPO", 1, "the side to move")

TERM_COUNT = TERMS[-1].first + TERMS[-1].count

# -- units of danger to the enemy king -------------------------------------------------------------------------------

DANGER_BASE = _unit("DANGER_BASE", 1, "always")
DANGER_NO_QUEEN = _unit("DANGER_NO_QUEEN", 1, "the attacker has no queen")
DANGER_ATTACKER = _unit("DANGER_ATTACKER", 4, "a knight, bishop, rook, queen that attacks the king's ring")
DANGER_RING = _unit("DANGER_RING", 1, "an attack on a square beside the king, by a piece")
DANGER_WEAK = _unit("DANGER_WEAK", 1, "an attacked square of the ring that only king or queen defends")
DANGER_CHECK = _unit(
    "DANGER_CHECK", 4, "a square from which a knight, bishop, rook, queen can safely give check; 2 at most"
)
DANGER_UNSAFE_CHECK = _unit("DANGER_UNSAFE_CHECK", 1, "a square from which a piece can give check, at some risk")
DANGER_FLANK = _unit("DANGER_FLANK", 1, "an attacked square on the king's flank and own half of the board")
DANGER_FLANK_DEFENCE = _unit("DANGER_FLANK_DEFENCE", 1, "a square there that the defender attacks")
DANGER_KNIGHT_DEFENCE = _unit("DANGER_KNIGHT_DEFENCE", 1, "a knight of the defender attacks the ring")
DANGER_OPEN_FILE = _unit("DANGER_OPEN_FILE", 1, "one of the three files at the king without an own pawn in front")
DANGER_PAWN_RING = _unit("DANGER_PAWN_RING", 1, "a square of the ring that a pawn attacks")

UNIT_COUNT = UNITS[-1].first + UNITS[-1].count
DANGER_STEP = 8
"""Number of units of danger for one step of the DANGER table."""
DANGER_STEPS = 64
