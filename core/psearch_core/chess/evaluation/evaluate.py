"""Static evaluation: E = s/64 * (M + clamp(R, -B, +B)), in centipawns for the side to move.

M is the exact, incremental, tapered piece-square sum. R is everything else, including tempo, and bounded by
construction. s, at most 64, scales drawish endings towards zero. So `M + B`, if it is not negative, bounds the value of
a quiet position; sound futility relies on this. Mirrored positions must get mirrored values, so division rounds towards
zero.
"""

from psearch_core.chess.chess_entries import CHESS
from psearch_core.chess.evaluation.endgames import SCALING_PHASE, drive, has_bare_king, known_scale_of, scale, scaled
from psearch_core.chess.evaluation.network import network_value
from psearch_core.chess.evaluation.pawns import pawn_slot
from psearch_core.chess.evaluation.pieces import begin_attacks, piece_terms
from psearch_core.chess.evaluation.threats import danger_term, danger_units, passed_terms, space_terms, threat_terms
from psearch_core.constants import U0
from psearch_core.terms import PAIR_SHIFT, TEMPO
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Evaluation, Position, Tables, evaluation_at, i64, position_at, tables_at

PHASE_MAX = 24
_HALF = 1 << (PAIR_SHIFT - 1)


@kernel(i64(i64))
def middle_game(pair):
    return (pair + _HALF) >> PAIR_SHIFT


@kernel(i64(i64))
def end_game(pair):
    return pair - (middle_game(pair) << PAIR_SHIFT)


@kernel(i64(i64, i64, i64))
def taper(middle_game, end_game, phase):
    """Blend middle game and end game by phase (0 .. 24), rounding towards zero."""
    total = middle_game * phase + end_game * (PHASE_MAX - phase)
    return total // PHASE_MAX if total >= 0 else -(-total // PHASE_MAX)


@kernel(i64(Position))
def material(pos):
    """Return M, the tapered piece-square sum for the side to move."""
    value = taper(pos.psq_mg, pos.psq_eg, min(pos.phase, PHASE_MAX))
    return -value if pos.side else value


@kernel(i64(Tables, Evaluation, Position, i64))
def terms_of(tb, ev, pos, slot):
    """Return the sum of all terms, White minus Black, as a pair. slot: filled slot of the pawn hash."""
    begin_attacks(tb, ev, pos, 0)
    begin_attacks(tb, ev, pos, 1)
    passed_bb = ev.pawns[slot].passed
    sum = ev.pawns[slot].score
    sum += piece_terms(tb, ev, pos, 0, ev.pawns[slot].spans[1]) - piece_terms(tb, ev, pos, 1, ev.pawns[slot].spans[0])
    sum += danger_term(tb, danger_units(tb, ev, ev.pawns[slot], pos, 0))
    sum -= danger_term(tb, danger_units(tb, ev, ev.pawns[slot], pos, 1))
    sum += threat_terms(tb, ev, pos, 0) - threat_terms(tb, ev, pos, 1)
    sum += space_terms(tb, ev, pos, 0) - space_terms(tb, ev, pos, 1)
    if passed_bb != U0:
        sum += passed_terms(tb, ev, pos, 0, passed_bb) - passed_terms(tb, ev, pos, 1, passed_bb)
    tempo = tb.terms[TEMPO]
    return sum + (-tempo if pos.side else tempo)


@kernel(i64(Tables, Evaluation, Position, i64))
def _whole(tb, ev, pos, phase):
    """Return M + clamp(R), White minus Black, for positions with many pieces."""
    pair = terms_of(tb, ev, pos, pawn_slot(tb, ev, pos))
    rest = taper(middle_game(pair), end_game(pair), phase)
    return taper(pos.psq_mg, pos.psq_eg, phase) + min(max(rest, -tb.rest_bound), tb.rest_bound)


@kernel(i64(Tables, Evaluation, Position, i64))
def _scaled(tb, ev, pos, phase):
    """Return E, White minus Black, for positions with few pieces."""
    slot = pawn_slot(tb, ev, pos)
    rest = drive(tb, pos, 0) - drive(tb, pos, 1)
    if rest == 0:
        pair = terms_of(tb, ev, pos, slot)
        rest = taper(middle_game(pair), end_game(pair), phase)
    rest = min(max(rest, -tb.rest_bound), tb.rest_bound)
    value = taper(pos.psq_mg, pos.psq_eg, phase) + rest
    factor = scale(tb, pos, 0 if value >= 0 else 1, ev.pawns[slot].passed)
    return scaled(value, factor)


@kernel(i64(Tables, Evaluation, Position))
def evaluate(tb, ev, pos):
    """Return E for the side to move. ev: scratch memory and pawn hash, private to the worker."""
    phase = min(pos.phase, PHASE_MAX)
    value = _scaled(tb, ev, pos, phase) if phase <= SCALING_PHASE else _whole(tb, ev, pos, phase)
    return -value if pos.side else value


@kernel(i64(Tables, Evaluation, Position, i64))
def evaluate_by_network(tb, ev, pos, ply):
    """Return the network's value for the side to move, corrected by the theory of endings.

    ev, ply: see `network_value`.
    """
    if pos.phase > SCALING_PHASE:
        return network_value(tb, ev, pos, ply)
    if has_bare_king(pos):
        return evaluate(tb, ev, pos)
    value = network_value(tb, ev, pos, ply)
    return scaled(value, known_scale_of(tb, pos, value))


@entry(i64(i64, i64, i64), CHESS)
def evaluate_position_by_network(tables, evaluation, position):
    """Return `evaluate_by_network` of a position, for Python. Takes the arguments of `evaluate_position`."""
    return evaluate_by_network(tables_at(tables), evaluation_at(evaluation), position_at(position), 0)


@entry(i64(i64, i64, i64), CHESS)
def evaluate_position(tables, evaluation, position):
    """Return `evaluate` of a position, for Python. evaluation: scratch memory and pawn hash, private to the caller."""
    return evaluate(tables_at(tables), evaluation_at(evaluation), position_at(position))
