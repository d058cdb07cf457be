"""Whether the move that was played in a game is worse than another: what a mark is given by.

The scores of the positions before and after a move come from two searches: of other depths, often bounds, and not the
same ones each time. They say which moves may be mistakes. For such a move another search finds exact scores, of
the best move and of the one that was played, to the same depths, with a table that knows what followed in the game. It
is one thread that begins with an empty table and has a limit of nodes or depth, so it finds the same whatever else was
searched, on any machine and in any run. Where it leaves a doubt it is done once more, deeper.

With a limit of time the two scores are others each time, and now and then they see nothing in a mistake. So all other
moves are looked at by a comparison in small, which is the same each time: whether a move has a mark is left to the two
scores only where that one finds nothing (docs/decisions/026-the-same-marks.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import chess
import chess.engine

from psearch.batch.positions.task import Comparison
from psearch.defaults import MAX_DEPTH, MAX_NODES
from psearch.options import SearchOptions
from psearch.processes.pool import INLINE
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits
from psearch.text.report import uci_line
from psearch.text.wdl import expected_points, material

LEAST_LOSS = 0.05
"""Expected points (0 to 1) from which on a loss is worth a mark."""
LEAST_SEEMING_LOSS = 0.04
"""Loss by the scores of two positions from which on a move is suspected of a mistake."""
_LEAST_SMALL_LOSS = 0.07
"""Loss at one of the last two depths of a comparison in small from which on any other move is."""
_DOUBTFUL_LOSS = 0.11
"""A comparison is done again where a move lost at least this, and less without noise."""
_NODES_PER_MS = 500
"""About the speed of a worker. Comparisons count a time as nodes: of the same time each search makes another number."""


_SMALL = (1 / 32, -4, 1 / 16, -3)
_WHOLE = (1 / 8, -2, 1 / 2, 0)
_DEEPER = (1 / 2, 0, 2, 2)
"""What a comparison may cost, in parts of the position's limit of nodes, or with a limit of depth in plies more: for
each position that followed, and for the position, and once more for the move that was played."""
MOST_BEHIND = 4
"""Positions that followed: as in the whole game, they show what a move led to."""
_HASH_MB = 16
_NOISE_CP = (55, 42, 27)
"""How much a good move may seem worse than another at one depth, at each of the last two, of the last three: moves of
known openings do (docs/guides/analyse.md)."""
_NOISE_IN_OPENINGS_CP = 14
"""Noise is higher by this while nearly everything is on the board: the evaluation knows no openings."""
_OPENING_UNITS = 74
"""Material from which on it is an opening (`psearch.text.wdl.material`; 78 in the initial position)."""
_NOISY_BELOW = 10
"""Noise grows below this depth."""
_MOST_PV_PLIES = 20


def loss_of(
    board: chess.Board, after: chess.Board, best: chess.engine.Score, reached: chess.engine.Score | None
) -> float:
    """Return expected points that a move gave away, by the scores of the positions before and after it, each for its
    side to move. reached: None where the game is over."""
    if reached is not None:
        kept = 1 - expected_points(reached, after)
    else:
        kept = 1.0 if after.is_checkmate() else 0.5
    return max(0.0, expected_points(best, board) - kept)


def compared_loss(board: chess.Board, compared: Comparison) -> float:
    """Return expected points that a move gave away, by its score and the best move's at one depth."""
    return _loss(board, compared.best_score, compared.played_score)


def sure_loss(board: chess.Board, compared: Comparison) -> float:
    """Return what is left of it when the noise of such scores is taken off the better one; half of it where the move
    that was played is mated, which is no estimate."""
    best, played = compared.best_score, compared.played_score
    if (cp := best.score()) is not None:  # a mate stays what it is
        noise = noise_cp(board, compared.depth, compared.depths)
        best = chess.engine.Cp(cp - (noise // 2 if played.is_mate() else noise))
    return _loss(board, best, played)


def noise_cp(board: chess.Board, depth: int, depths: int) -> int:
    """Return centipawns by which a move may seem worse than another and is not, at each of this number of depths
    up to this one."""
    noise = _NOISE_CP[depths - 1] + (_NOISE_IN_OPENINGS_CP if material(board) >= _OPENING_UNITS else 0)
    return round(noise * max(1.0, _NOISY_BELOW / max(1, depth)) ** 3)


def _loss(board: chess.Board, best: chess.engine.Score, played: chess.engine.Score) -> float:
    return max(0.0, expected_points(best, board) - expected_points(played, board))


class Comparer:
    """Compares moves. Its engine, of one thread in this process, begins with the first comparison."""

    def __init__(self, options: SearchOptions) -> None:
        self._options = options
        self._engine: Supervisor | None = None

    def close(self) -> None:
        """Give the memory back."""
        if self._engine is not None:
            self._engine.close()

    def compare(
        self,
        board: chess.Board,
        line: Sequence[chess.Move],
        limits: Limits,
        on_live: Callable[[], None] | None,
        is_suspect: bool,
    ) -> Comparison | None:
        """Search what followed, the position, and then the move alone to the same depths, and once more where that
        leaves a doubt; None when both have no exact score of the same depth. line: the move that was played, and those
        after it; limits: those of the position; on_live: called ten times a second; is_suspect: the scores before and
        after the move say that it may be a mistake. Otherwise it is None, too, where a comparison in small finds no
        loss, and a mark needs the deeper one."""

        def compared(behind: float, behind_plies: int, own: float, own_plies: int) -> list[Comparison]:
            return self._compare(
                board, line, _part(limits, behind, behind_plies), _part(limits, own, own_plies), on_live
            )

        if not is_suspect:
            small = compared(*_SMALL)[:2]
            if small and max(compared_loss(board, pair) for pair in small) < _LEAST_SMALL_LOSS:
                return None
        found = _surest(board, compared(*_WHOLE))
        if found is not None:
            sure = sure_loss(board, found)
            is_doubtful = sure < _DOUBTFUL_LOSS <= compared_loss(board, found)
            if is_doubtful or (not is_suspect and sure >= LEAST_LOSS):
                return _surest(board, compared(*_DEEPER)) or found
        return found

    def _compare(
        self,
        board: chess.Board,
        line: Sequence[chess.Move],
        behind_limits: Limits,
        limits: Limits,
        on_live: Callable[[], None] | None,
    ) -> list[Comparison]:
        """Compare once, with an empty table; at each of the last depths that both have, the deepest first."""
        if self._engine is None:
            self._engine = Supervisor(1, _HASH_MB, INLINE, kernels=self._options.kernels)
        self._engine.forget()
        for count in range(min(len(line), MOST_BEHIND), 0, -1):
            behind = board.copy()
            for move in line[:count]:
                behind.push(move)
            self._iterations(behind, behind_limits, None, on_live)
        free = self._iterations(board, limits, None, on_live)
        if not free:
            return []
        own = self._iterations(board, Limits(max(free), nodes=limits.nodes), [line[0]], on_live)
        found = []
        for depth in sorted(free.keys() & own.keys(), reverse=True)[: len(_NOISE_CP)]:
            pv = uci_line(free[depth].pv[:_MOST_PV_PLIES])
            found.append(Comparison(depth, 1, pv[0], free[depth].score.relative, own[depth].score.relative, pv))
        return found

    def _iterations(
        self, board: chess.Board, limits: Limits, only: list[chess.Move] | None, on_live: Callable[[], None] | None
    ) -> dict[int, Info]:
        """Return the exact result of each depth."""
        found: dict[int, Info] = {}

        def take(info: Info) -> None:
            if info.is_live:
                if on_live is not None:
                    on_live()
            elif info.bound == "exact" and info.pv:
                found[info.depth] = info

        assert self._engine is not None
        interval_s = float("inf") if on_live is None else 0.1
        self._engine.search(
            SearchRequest(board, limits, self._options, only, on_info=take, live_from_s=0.1, live_interval_s=interval_s)
        )
        return found


def _surest(board: chess.Board, pairs: Sequence[Comparison]) -> Comparison | None:
    """Return of the last one, two, three depths the one that speaks least against the move: the surest of these."""
    least = [
        replace(min(pairs[:depths], key=lambda pair: compared_loss(board, pair)), depths=depths)
        for depths in range(1, len(pairs) + 1)
    ]
    return max(least, key=lambda pair: (sure_loss(board, pair), pair.depths), default=None)


def _part(limits: Limits, part: float, more_plies: int) -> Limits:
    """Return limits with a part of the nodes, which stand for a time, too, and some plies more."""
    nodes: float | None = limits.nodes
    depth = limits.depth
    if limits.movetime_ms is not None and nodes is None:
        nodes = limits.movetime_ms * _NODES_PER_MS
    return Limits(
        None if depth is None else min(max(1, depth + more_plies), MAX_DEPTH),
        nodes=None if nodes is None else min(max(1, int(nodes * part)), MAX_NODES),
    )
