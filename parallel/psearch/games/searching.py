"""Searches positions of a user's game with worker processes, and writes results as text and as JSON.

Scores are in the game's unit, for the side to move.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from psearch.defaults import DEFAULT_HASH_MB, DEFAULT_MOVETIME_MS, DEFAULT_POLICY
from psearch.games.own_game import Game, GamePosition
from psearch.options import Own, SearchOptions, kernels_of
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.search_reports import centipawns
from psearch.processes.supervisor import Supervisor
from psearch.results import BOUND_MARKS, Info, Limits, PsearchError, WorkerStats
from psearch.settings import HASH, THREADS, checked_limits
from psearch.text.report import effort_object, effort_rows, labelled
from psearch.text.values import shown
from psearch_core.toolchain.kernel_sets import KernelSet

ASPIRATION = 0
"""Width of the first window: it is open, since psearch does not know a game's unit."""


@dataclass(frozen=True)
class GameResult:
    """The result of a search of a user's game.

    - bestmove: the best move; None when the game is over.
    - score: score for the side to move; bound: `lower` if a stopped search had just found a better move, so that the
      score is at least this, else `exact`.
    - depth: depth of the last finished iteration, in moves.
    - nodes: nodes searched by all workers; time_s: duration in seconds.
    - line: expected moves, the best move first.
    - solved: True if the score is that of the whole game, played to its end.
    - workers: counters of each worker.
    - interrupted: True when the caller stopped the search, not a limit.
    - notes: problems that were solved during the search, one line each: workers that were lost and replaced.
    """

    bestmove: str | None
    score: int
    depth: int
    nodes: int
    line: list[str] = field(default_factory=list)
    time_s: float = 0.0
    solved: bool = False
    bound: str = "exact"
    workers: list[WorkerStats] = field(default_factory=list)
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def nps(self) -> int:
        """Nodes per second over all workers."""
        return round(self.nodes / self.time_s) if self.time_s > 0 else 0


def options_for(game: Game, policy: str) -> SearchOptions:
    """Return the options of a game's search with a policy, of the package or from a file. Raises PsearchError for an
    unknown policy."""
    own = Own(policy, "", game.kernels_with(kernels_of(policy)))
    return SearchOptions(policy=policy, aspiration=ASPIRATION, mate_distance=False, own=own)


def search(
    game: Game | str | os.PathLike[str],
    position: str | GamePosition = "",
    *,
    depth: int | None = None,
    movetime_ms: float | None = None,
    nodes: int | None = None,
    threads: int = 1,
    hash_mb: int = DEFAULT_HASH_MB,
    policy: str = DEFAULT_POLICY,
    on_info: Callable[[GameResult], None] | None = None,
) -> GameResult:
    """Search a position of a user's game and return its `GameResult`.

    - game: the path of a file (docs/guides/own-game.md), or a `Game`.
    - position: the moves played, `""` for the beginning.
    - depth, movetime_ms, nodes: limits in moves, milliseconds and nodes of all workers; without any limit 5 seconds.
    - threads: number of worker processes; hash_mb: size of the transposition table in MiB.
    - policy: one of the package, or the path of a file (docs/guides/own-policy.md).
    - on_info: called after every iteration.

    The search also ends when it has searched the whole game: `solved`. Raises PsearchError for a bad file, position or
    argument, WorkerDied when workers die repeatedly.
    """
    limits = checked_limits(depth, movetime_ms, nodes)
    workers, size = THREADS.of_value(threads, "threads"), HASH.of_value(hash_mb, "hash_mb")
    game = game if isinstance(game, Game) else Game(game)
    if isinstance(position, str):
        position = game.read(position)
    options = options_for(game, policy)
    with supervisor_for(position, workers, size, options) as supervisor:
        return search_with(supervisor, position, limits, options, on_info)


def supervisor_for(
    position: GamePosition,
    threads: int,
    hash_mb: int,
    options: SearchOptions | None = None,
    trace: bool = False,
    watched: bool = False,
) -> Supervisor:
    """Return workers for searches with these options (`options_for`); none are started if the game is over. Raises
    PsearchError."""
    if position.is_over:
        return Supervisor(1, 1, "inline")
    return Supervisor(threads, hash_mb, trace=trace, watched=watched, kernels=(options or position).kernels)


def search_with(
    supervisor: Supervisor,
    position: GamePosition,
    limits: Limits,
    options: SearchOptions | None = None,
    on_info: Callable[[GameResult], None] | None = None,
    control: SearchControl | None = None,
    on_note: Callable[[str], None] | None = None,
) -> GameResult:
    """Search with workers that have the kernels of these options. Returns and raises what `search` does."""
    if position.is_over:
        return GameResult(None, position.result(), 0, 0, solved=True)
    if limits == Limits():
        limits = Limits(movetime_ms=DEFAULT_MOVETIME_MS)

    def show(info: Info) -> None:
        if on_info is not None and not info.is_live:
            on_info(_result(position, info))

    request = SearchRequest(
        position,
        limits,
        options or options_for(position.game, DEFAULT_POLICY),
        on_info=show,
        control=control or SearchControl(),
        on_note=on_note,
    )
    found = supervisor.search(request)
    word = int(supervisor.arena.plug_in[-1])
    if word:
        raise position.game.mistake(word)
    return replace(
        _result(position, found.info),
        solved=bool(supervisor.arena.header[0]["exhausted"]),
        interrupted=found.interrupted,
        notes=found.notes,
    )


def _result(position: GamePosition, info: Info) -> GameResult:
    moves: list[Any] = list(info.pv)
    line = position.line_text([int(move) - 1 for move in moves])
    return GameResult(
        bestmove=line[0] if line else None,
        score=centipawns(info.score),
        depth=info.depth,
        nodes=info.nodes,
        line=line,
        time_s=info.time_s,
        bound=info.bound,
        workers=info.workers,
    )


class GameSuitePosition(NamedTuple):
    """A position of a study of a user's game, as `SuitePosition` is for chess."""

    name: str
    board: GamePosition


def game_suite(game: Game, texts: Sequence[str]) -> list[GameSuitePosition]:
    """Return the positions of these texts; `""` is the beginning. Raises PsearchError, also if a game is over."""
    suite = [GameSuitePosition(text or game.name, game.read(text)) for text in texts]
    for text, position in zip(texts, suite, strict=True):
        if position.board.is_over:
            raise PsearchError(f"position {shown(text)}: the game is over")
    return suite


def game_kernels(suite: Sequence[GameSuitePosition], policies: Sequence[str]) -> dict[str, KernelSet]:
    """Return the kernels of a game's searches by policy, including `serial`. Raises PsearchError for an unknown
    policy."""
    game = suite[0].board.game
    return {policy: options_for(game, policy).kernels for policy in ("serial", *policies)}


def _score_text(result: GameResult) -> str:
    return BOUND_MARKS[result.bound] + (f"{result.score:+d}" if result.score else "0")


def iteration_text(result: GameResult) -> str:
    return (
        f"depth {result.depth}  score {_score_text(result)}  nodes {result.nodes:,}  nps {result.nps:,}  "
        f"time {result.time_s:.2f}  line {' '.join(result.line)}"
    ).rstrip()


def final_text(position: GamePosition, result: GameResult) -> str:
    if result.bestmove is None:
        return f"the game is over: score {_score_text(result)} for the side to move"
    end = ", solved: the whole game was searched" if result.solved else ""
    return labelled(
        ("game", position.game.name),
        ("best move", result.bestmove + (", interrupted" if result.interrupted else "")),
        ("score", f"{_score_text(result)} for the side to move"),
        ("line", " ".join(result.line)),
        ("depth", f"{result.depth}{end}"),
        *effort_rows(result),
    )


def json_object(position: GamePosition, result: GameResult, threads: int) -> dict[str, Any]:
    """Return the object that `--json` prints; `bestmove` and `line` are in the game's notation."""
    return {
        "game": position.game.name,
        "bestmove": result.bestmove,
        "score": result.score,
        **({} if result.bound == "exact" else {"bound": result.bound}),
        "line": result.line,
        "depth": result.depth,
        "solved": result.solved,
        "over": result.bestmove is None,
        **effort_object(result, threads, result.interrupted),
    }
