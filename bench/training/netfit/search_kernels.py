"""The search's evaluation by a net, from nothing at every position: for games at a fixed number of nodes."""

from __future__ import annotations

import numba
import numpy as np

from netfit.search_record import OUT_ONE, ROW_ONE, net_dtype
from psearch.core.constants import KING, U0, U1
from psearch.core.toolchain.intrinsics import lowest_bit, popcount, view
from psearch.core.toolchain.jit import kernel
from psearch.core.views import Evaluation, Position, Tables, i64, void

NetRecord = numba.from_dtype(net_dtype)
net_at = view(NetRecord)

UNIT = 290
"""Centipawns of the search's margins to a natural unit: there the evaluation by hand has its least error"""
_ONE = ROW_ONE * ROW_ONE * OUT_ONE
_MOST = 20000


@kernel(void(NetRecord, Position))
def _sum_up(net, pos):
    """Write the sums of both sides' hidden units."""
    hidden = net.hidden
    side = np.int64(pos.side)
    mine_flip = 56 * side
    his_flip = 56 - mine_flip
    if lowest_bit(pos.piece_bb[KING] & pos.color_bb[side]) & 4 != 0:
        mine_flip ^= 7
    if lowest_bit(pos.piece_bb[KING] & pos.color_bb[1 - side]) & 4 != 0:
        his_flip ^= 7
    for j in range(hidden):
        net.first[j] = net.bias[j]
        net.second[j] = net.bias[j]
    men_bb = pos.color_bb[0] | pos.color_bb[1]
    while men_bb != U0:
        square = lowest_bit(men_bb)
        men_bb &= men_bb - U1
        code = np.int64(pos.board[square])
        is_his = (code >> 3) ^ side
        kind = 64 * ((code & 7) - 1)
        mine = hidden * (384 * is_his + kind + (square ^ mine_flip))
        his = hidden * (384 * (1 - is_his) + kind + (square ^ his_flip))
        for j in range(hidden):
            net.first[j] += net.rows[mine + j]
            net.second[j] += net.rows[his + j]


@kernel(i64(Tables, Evaluation, Position))
def evaluate_by_net(tb, ev, pos):
    """E for the side to move, by the net whose address stands in `rest_bound`, which nothing else asks for then."""
    net = net_at(tb.rest_bound)
    _sum_up(net, pos)
    hidden = net.hidden
    bucket = (np.int64(popcount(pos.color_bb[0] | pos.color_bb[1])) - 1) >> 2
    at = bucket * 2 * hidden
    total = np.int64(net.out_bias[bucket])
    for j in range(hidden):
        unit = min(max(net.first[j], 0), ROW_ONE)
        total += unit * unit * np.int64(net.out[at + j])
        unit = min(max(net.second[j], 0), ROW_ONE)
        total += unit * unit * np.int64(net.out[at + hidden + j])
    return min(max(total * UNIT // _ONE, -_MOST), _MOST)
