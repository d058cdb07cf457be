"""Time odds that more workers are worth, by games in virtual time: against a side that has k times as much of it.

    python bench/match/odds.py --first 8 --second 1 --nodes 10000 --odds 3,4.5,6 --games 200 --book FILE --out LOG.jsonl
    python bench/match/odds.py --first 8 --second 8,lazy --odds 1,1.5 ...
    python bench/match/odds.py --first 8,calibrated,null,roots=2 --second 8 --odds 1 ...
    python bench/match/odds.py --from-log LOG.jsonl [LOG.jsonl.xz#RUN ...]

A side is WORKERS[,POLICY][,DRIVER][,NAME=NUMBER..], where NAME is a field of `SearchOptions`; without a driver it is
`auto`. For each move the first has the virtual time in which one worker searches so many nodes, the second k times
that, for each k of --odds; both are in this process, with a table and history each, kept from move to move. Nothing
depends on how fast the machine is, or on what else it does: the same games every time. Costs are those of `psearch
simulate`, or of --costs. A game takes the time of all its nodes on one core.

Every opening is played twice with colours changed; an opening is used once only with the same k. Games end as those of
`quick.py`. --games is for each k; they are played in turn, so that a run that is cut short has as many of each.

Every game that ends is a line of the log: position, odds, number of the pair, which side (0 the first) was white,
result, reason, plies. --resume goes on with a log; another list of odds and more games may be given then. --from-log
prints the result of logs, those of the same sides and nodes together: Elo at each k, and the k of an even score with
its 95% interval (pairs drawn again).

Exit status: 0, 2 bad input, 130 Ctrl-C (the log has every game that was finished).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import chess
from matchplay.elo import PAIR_SCORES
from matchplay.in_process import Finished, play
from matchplay.journal import GameLog
from matchplay.openings import Opening, read_books
from matchplay.scripts import EXIT_INTERRUPTED, MatchError, Parser, run_script, share
from matchplay.time_odds import report

from psearch.defaults import DEFAULT_DRIVER, DEFAULT_POLICY, DRIVERS, MAX_HASH_MB, MAX_THREADS, POLICY_NAMES
from psearch.faces.cli.arguments import whole_number
from psearch.files.raw_log import machine, read_log, source_commit
from psearch.options import SearchOptions
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator
from psearch_core.chess.board.bridge import to_chess_move

_MOST_ODDS = 1000.0
_PAIRS_A_REPORT = 10
_RESULTS = {0: ("1-0", "0-1"), 1: ("0-1", "1-0"), None: ("1/2-1/2", "1/2-1/2")}
"""Results in PGN by the winner: when the first side is white, and when it is black."""


@dataclass(frozen=True)
class Side:
    workers: int
    policy: str
    driver: str = "pvs"
    """Driver of the search; logs before November 2026 do not name it."""
    changes: str = ""
    """Changes to other options of the search, as on the command line: `NAME=NUMBER,..`."""

    def __str__(self) -> str:
        if self.workers == 1:
            return "1 worker"
        names = [] if self.policy == DEFAULT_POLICY else [self.policy]
        names += [] if self.driver == DEFAULT_DRIVER else [self.driver]
        names += [self.changes] if self.changes else []
        return f"{self.workers} workers" + (f" ({', '.join(names)})" if names else "")

    @property
    def options(self) -> SearchOptions:
        """Return the options of its searches. Raises PsearchError for a number that no option can hold."""
        changes = dict(word.split("=") for word in self.changes.split(",") if word)
        numbers: dict[str, Any] = {name: int(number) for name, number in changes.items()}
        return SearchOptions(policy=self.policy, driver=self.driver, **numbers)


@dataclass(frozen=True)
class Task:
    opening: Opening
    odds: float
    pair: int
    white: int
    """Side that has the white pieces: 0 the first."""


_OTHERS = ("costs", "hash_mb")
"""Settings besides sides and nodes whose games are not counted together."""


@dataclass(frozen=True)
class Game:
    """A game that was played; a line of the log."""

    position: str
    odds: float
    pair: int
    white: int
    result: str
    reason: str
    plies: int
    """Plies played, without the opening's."""

    @property
    def half_points(self) -> int:
        return 1 if self.result == "1/2-1/2" else 2 * int((self.result == "1-0") == (self.white == 0))


class VirtualPlayer:
    """Workers in virtual time at the board."""

    def __init__(self, side: Side, hash_mb: int, costs: Costs) -> None:
        self._simulator = Simulator(side.workers, hash_mb, costs)
        self._options = side.options
        self.nodes = 1.0
        """Nodes that one worker searches in the time for a move."""

    def new_game(self) -> None:
        self._simulator.forget()

    def move(self, board: chess.Board) -> tuple[chess.Move, int]:
        found = self._simulator.play(board, self._simulator.costs.seconds_of(self.nodes), self._options)
        return to_chess_move(found.bestmove, board), found.score


def _make(sides: Sequence[Side], nodes: int, hash_mb: int, costs: Costs) -> Callable[[Task], Finished]:
    players = [VirtualPlayer(side, hash_mb, costs) for side in sides]

    def play_game(task: Task) -> Finished:
        players[0].nodes = nodes
        players[1].nodes = nodes * task.odds
        return play(players, task.opening, task.white)

    return play_game


class OddsLog(GameLog):
    """The games of a run on disk, open and locked; a context manager."""

    def __init__(self, path: Path, settings: dict[str, Any], *, resume: bool) -> None:
        """Begin a run, or go on with one of the same settings. Raises MatchError."""
        self.games: list[Game] = []
        self._settings = settings
        super().__init__(path, "about", settings, resume=resume)

    def __enter__(self) -> OddsLog:
        return self

    def is_setting(self, key: str) -> bool:
        return key.partition(".")[0] in {*self._settings, "costs"}

    def take(self, entry: dict[str, Any]) -> None:
        if "resumed" not in entry:
            self.games.append(Game(**entry))

    def begin(self, is_new: bool) -> None:
        super().begin(is_new)
        facts = {"commit": source_commit(), "machine": machine(), "written": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        self.append({"about": {**self._settings, **facts}} if is_new else {"resumed": facts})

    def add(self, game: Game) -> None:
        self.games.append(game)
        self.append(asdict(game))


def pair_counts(games: Iterable[Game]) -> dict[float, list[int]]:
    """The numbers of pairs with 0, 1/2, 1, 3/2 and 2 points at each of the odds.

    Half a pair counts for nothing, nor does a game that another log has too: it was the same game.
    """
    pairs: dict[tuple[float, str], dict[int, int]] = {}
    for game in games:
        pairs.setdefault((game.odds, game.position), {}).setdefault(game.white, game.half_points)
    counts: dict[float, list[int]] = {}
    for (odds, _), points in pairs.items():
        if len(points) == 2:
            counts.setdefault(odds, [0] * len(PAIR_SCORES))[sum(points.values())] += 1
    return counts


def _side(text: str) -> Side:
    number, *words = text.split(",")
    workers = whole_number(1, MAX_THREADS)(number)
    changes = [word for word in words if "=" in word]
    drivers = [word for word in words if word in DRIVERS]
    policies = [word for word in words if word not in drivers and word not in changes]
    if len(policies) > 1 or len(drivers) > 1 or not set(policies) <= set(POLICY_NAMES):
        if len(drivers) > 1:
            raise argparse.ArgumentTypeError(f"one driver, not {' and '.join(drivers)}")
        raise argparse.ArgumentTypeError(f"the policy is one of {', '.join(POLICY_NAMES)}, not {policies[-1][:40]!a}")
    side = Side(workers, *(policies or [DEFAULT_POLICY]), *(drivers or [DEFAULT_DRIVER]), ",".join(changes))
    try:
        _ = side.options
    except (TypeError, ValueError, PsearchError) as error:
        raise argparse.ArgumentTypeError(f"{','.join(changes)[:40]!a}: {error}") from None
    return side


def _odds(text: str) -> list[float]:
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(1 / _MOST_ODDS <= one <= _MOST_ODDS for one in found) or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"must be different numbers with commas between them, not {text[:40]!a}")
    return found


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(description=__doc__)
    side = {"type": _side, "metavar": "WORKERS[,POLICY][,DRIVER][,NAME=NUMBER..]"}
    parser.add_argument("--first", default=_side("8"), help="(8)", **side)
    parser.add_argument("--second", default=_side("1"), help="(1)", **side)
    parser.add_argument("--odds", type=_odds, default=[3.0, 4.5, 6.0], metavar="K,K..", help="(3,4.5,6)")
    parser.add_argument("--nodes", type=whole_number(100, 10**9), default=10_000, metavar="N", help="(10000)")
    parser.add_argument("--games", type=whole_number(2, 10**6), default=200, metavar="N", help="for each k (200)")
    parser.add_argument("--book", nargs="+", type=Path, default=[], metavar="FILE", help="EPD, FEN or PGN")
    parser.add_argument("--hash", type=whole_number(1, MAX_HASH_MB), default=16, metavar="MIB", help="a side (16)")
    parser.add_argument("--costs", type=Path, metavar="FILE", help="of virtual time, as `psearch simulate` has it")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the order of the openings (1)")
    parser.add_argument("--jobs", type=whole_number(1, 256), default=1, metavar="N", help="processes (1)")
    parser.add_where()
    parser.add_argument("--out", type=Path, metavar="LOG.jsonl", help="where the games go")
    parser.add_argument("--resume", action="store_true", help="go on with --out")
    parser.add_argument("--from-log", nargs="+", type=Path, metavar="LOG.jsonl", help="play nothing")
    return parser.parse_args(words)


def _openings(options: argparse.Namespace) -> dict[float, list[Opening]]:
    """In their order, for each of the odds; they do not depend on what other odds there are."""
    book = read_books(options.book)
    wanted = options.games // 2
    if len(book) < wanted:
        raise MatchError(f"{2 * wanted} games need {wanted} different openings, and there are {len(book)}")
    orders = {odds: random.Random(f"{options.seed} {odds}").sample(book, len(book)) for odds in options.odds}
    return {odds: order[:wanted] for odds, order in orders.items()}


def _tasks(openings: dict[float, list[Opening]], played: Iterable[Game]) -> list[Task]:
    """The games that are not in the log yet, of all odds in turn."""
    done = {(game.odds, game.pair, game.white) for game in played}
    games = (
        Task(opening, odds, pair, white)
        for pair, row in enumerate(zip(*openings.values(), strict=True))
        for odds, opening in zip(openings, row, strict=True)
        for white in (0, 1)
    )
    return [task for task in games if (task.odds, task.pair, task.white) not in done]


def _settings(options: argparse.Namespace, costs: Costs) -> dict[str, Any]:
    """Return what must be the same in a run that goes on."""
    sides = {"first": options.first, "second": options.second}
    return {
        # logs name changes where there are any
        **{name: {key: value for key, value in asdict(side).items() if value != ""} for name, side in sides.items()},
        **({} if options.costs is None else {"costs": asdict(costs)}),
        "nodes": options.nodes,
        "hash_mb": options.hash,
        "seed": options.seed,
        "book": [path.name for path in options.book],
    }


def _play(options: argparse.Namespace) -> int:
    if options.out is None or not options.book:
        raise MatchError("--out LOG.jsonl and --book FILE are needed, or --from-log")
    first, second = options.first, options.second
    costs = Costs() if options.costs is None else Costs.load(options.costs)
    openings = _openings(options)
    status = 0
    with OddsLog(options.out, _settings(options, costs), resume=options.resume) as log:
        tasks = _tasks(openings, log.games)
        load_kernels(VIRTUAL)  # compiled once, not by every process
        make = partial(_make, (first, second), options.nodes, options.hash, costs)
        answers = share(make, tasks, options.jobs, options.on)
        try:
            for place, finished in answers if tasks else ():
                task = tasks[place]
                result = _RESULTS[finished.winner][task.white]
                position = task.opening.board().fen()
                log.add(Game(position, task.odds, task.pair, task.white, result, finished.reason, finished.plies))
                if len(log.games) % (2 * _PAIRS_A_REPORT) == 0:
                    print(report(str(first), str(second), pair_counts(log.games)), flush=True)
        except KeyboardInterrupt:
            status = EXIT_INTERRUPTED
        finally:
            answers.close()
        print(f"{first} against {second}, {options.nodes} nodes a move:")
        print(report(str(first), str(second), pair_counts(log.games)))
    return status


def _report(paths: Sequence[Path]) -> int:
    pools: dict[tuple[Side, Side, int, str], list[Game]] = {}
    for path in paths:
        games, facts = read_log(path, Game)
        try:
            about = facts["about"]
            others = json.dumps({name: about.get(name) for name in _OTHERS})
            key = Side(**about["first"]), Side(**about["second"]), int(about["nodes"]), others
        except (KeyError, TypeError, ValueError):
            raise MatchError(f"{path}: not a log of odds.py") from None
        pools.setdefault(key, []).extend(games)
    for (first, second, nodes, _), games in pools.items():
        print(f"{first} against {second}, {nodes} nodes a move:")
        print(report(str(first), str(second), pair_counts(games)))
    return 0


def run(words: Sequence[str] | None = None) -> int:
    """Play, or print what logs say."""
    options = _read(words)
    return _report(options.from_log) if options.from_log else _play(options)


if __name__ == "__main__":
    sys.exit(run_script("odds"))
