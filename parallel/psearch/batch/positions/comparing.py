"""Compares the move that was played in a game with the best move, and so decides whether it gets a mark.

The scores of the positions before and after a move come from two searches. Their depths differ, they are often bounds,
and they vary from run to run, so they only tell which moves may be mistakes. For such a suspect another search finds
exact scores of the best move and of the played one, to the same depths, with a table that knows how the game continued.
It has one thread, begins with an empty table and is limited by nodes or depth, so its result is the same on any machine
and in any run. If it leaves a doubt it is repeated, deeper.

With a limit of time the two scores vary, and sometimes miss a mistake. So every other move gets a small comparison,
which is the same in every run. Only where that finds nothing do the two scores decide about a mark
(docs/decisions/026-the-same-marks.md).
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
from psearch.text.marks import LEAST_LOSS, Scores
from psearch.text.report import uci_line
from psearch.text.wdl import material

LEAST_SEEMING_LOSS = 0.04
"""Least loss, by the scores of two positions, that makes a move a suspect."""
_LEAST_SMALL_LOSS = 0.07
"""Least loss, at one of the last two depths of a small comparison, that makes any other move a suspect."""
_DOUBTFUL_LOSS = 0.11
"""Least loss for which a comparison is repeated if it is smaller without noise."""
_NODES_PER_MS = 500
"""Approximate speed of a worker. Comparisons convert a limit of time to nodes, so that their result does not vary."""


_SMALL = (1 / 32, -4, 1 / 16, -3)
_WHOLE = (1 / 8, -2, 1 / 2, 0)
_DEEPER = (1 / 2, 0, 2, 2)
"""Limits of a comparison: the share of the position's limit of nodes and the change of its limit of depth in plies,
first for each position that followed, then for the position itself and again for the played move."""
_LEAST_NODES = 20_000
"""Least nodes of a comparison that decides about a mark: below depth 8 selective search misses too much. Each position
that followed has an eighth of them."""
MOST_BEHIND = 4
"""Most positions that followed in the game and are searched first, so that the table knows what the move led to."""
_HASH_MB = 16
_NOISE_CP = (55, 42, 27)
"""Centipawns by which a good move may seem worse than another at the last depth, at both of the last two, at all of the
last three. Measured on moves of known openings (docs/guides/analyse.md)."""
_NOISE_IN_OPENINGS_CP = 14
"""Additional noise while nearly all pieces are on the board, since the evaluation knows no openings."""
_OPENING_UNITS = 74
"""Least material of an opening (`psearch.text.wdl.material`; 78 in the initial position)."""
_NOISY_BELOW = 10
"""Depth below which noise grows."""
_MOST_PV_PLIES = 20


def scores_around(after: chess.Board, best: chess.engine.Score, reached: chess.engine.Score | None) -> Scores:
    """Return the scores of the best move and of the played one, by the scores of the positions before and after it,
    each for its side to move. reached: None where the game is over."""
    if reached is None:
        return Scores(best, chess.engine.MateGiven if after.is_checkmate() else chess.engine.Cp(0))
    return Scores(best, -reached)


def sure_scores(board: chess.Board, compared: Comparison) -> Scores:
    """Return both scores after subtracting the noise from the better one; half the noise if the played move gets
    mated, since a mate is no estimate."""
    best, played = compared.scores
    if (cp := best.score()) is not None:  # a mate has no noise
        noise = noise_cp(board, compared.depth, compared.depths)
        best = chess.engine.Cp(cp - (noise // 2 if played.is_mate() else noise))
    return Scores(best, played)


def noise_cp(board: chess.Board, depth: int, depths: int) -> int:
    """Return the centipawns by which an equally good move may seem worse, at each of the last `depths` depths up to
    `depth`."""
    noise = _NOISE_CP[depths - 1] + (_NOISE_IN_OPENINGS_CP if material(board) >= _OPENING_UNITS else 0)
    return round(noise * max(1.0, _NOISY_BELOW / max(1, depth)) ** 3)


class Comparer:
    """Compares moves by an engine with one thread in this process, which the first comparison starts."""

    def __init__(self, options: SearchOptions) -> None:
        self._options = options
        self._engine: Supervisor | None = None

    def close(self) -> None:
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
        """Search the positions that followed, the position, and then the played move alone to the same depths; repeat
        this deeper if it leaves a doubt. Return None when there are no exact scores of the same depth.

        line: the played move and those after it; limits: those of the position; on_live: called ten times a second;
        is_suspect: the scores before and after the move say that it may be a mistake. For any other move the result is
        also None when a small comparison finds no loss, and only the deeper comparison gives it a mark.
        """

        def compared(
            behind: float, behind_plies: int, own: float, own_plies: int, least: int = _LEAST_NODES
        ) -> list[Comparison]:
            behind_limits = _part(limits, behind, behind_plies, least // 8)
            return self._compare(board, line, behind_limits, _part(limits, own, own_plies, least), on_live)

        if not is_suspect:
            small = compared(*_SMALL, least=1)[:2]
            if small and max(pair.scores.seeming_loss(board) for pair in small) < _LEAST_SMALL_LOSS:
                return None
        found = _surest(board, compared(*_WHOLE))
        if found is not None:
            sure = sure_scores(board, found).seeming_loss(board)
            is_doubtful = sure < _DOUBTFUL_LOSS <= found.scores.seeming_loss(board)
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
        """Compare once, with an empty table. Return a comparison for each of the last depths that both searches have,
        the deepest first."""
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
    """Return the comparison with the largest sure loss. Of the last one, two and three depths each, the candidate is
    the one with the smallest loss."""
    least = [
        replace(min(pairs[:depths], key=lambda pair: pair.scores.seeming_loss(board)), depths=depths)
        for depths in range(1, len(pairs) + 1)
    ]
    return max(least, key=lambda pair: (sure_scores(board, pair).seeming_loss(board), pair.depths), default=None)


def _part(limits: Limits, part: float, more_plies: int, least: int) -> Limits:
    """Return limits with a share of the nodes, at least `least` (a limit of time is converted to nodes), and with more
    plies."""
    nodes: float | None = limits.nodes
    depth = limits.depth
    if limits.movetime_ms is not None and nodes is None:
        nodes = limits.movetime_ms * _NODES_PER_MS
    return Limits(
        None if depth is None else min(max(1, depth + more_plies), MAX_DEPTH),
        nodes=None if nodes is None else min(max(1, least, int(nodes * part)), MAX_NODES),
    )
