"""Asks several engines for moves along the same games, and a stronger engine which of them are better.

    python bench/match/judge.py moves --games FILE.pgn.xz --engine "name=eight option.Threads=8" \\
        --engine "name=lazy option.Threads=8 option.Policy=lazy" --movetime 0.1 --positions 1000 --out moves.jsonl
    python bench/match/judge.py verdict moves.jsonl --judge "cmd=stockfish option.UCI_ShowWDL=true" --nodes 300000 \\
        --out verdict.jsonl

`moves` takes every engine along each game and asks it for a move wherever one side of the game was to move, from
--from half-moves on. What the engine remembers of the positions before stays, as in a game. Games are taken from
--skip on: White's moves in the first, Black's in the next, and so on. `verdict` has the judge search each move that was
chosen where engines of one or more of such files differ, from an empty table, and prints what the moves of each are
worth beside those of the first: thousandths of the expected score a move, with 95% intervals by games.

Every line is kept as it is written; the same command goes on with what is missing. Exit status: 0, 2 bad input or an
engine that ends, 130 Ctrl-C.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import math
import sys
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import chess
import chess.engine
import numpy as np
from matchplay.engines import Engine, EngineSpec, parse_engine, parse_limit
from matchplay.journal import GameLog
from matchplay.scripts import MatchError, Parser, run_script

from psearch.faces.cli.arguments import whole_number
from psearch.files.raw_log import machine
from psearch.terminal.status import StatusLine
from psearch.text.pgn_text import read_games
from psearch.text.source import Source, read_source

_Z = 1.96


class Line(NamedTuple):
    """A game, and the numbers of the half-moves at which the engines are asked."""

    number: int
    board: chess.Board
    moves: tuple[chess.Move, ...]
    asked: range


class _Log(GameLog):
    """What engines answered, a line each, in a file that a run goes on with."""

    def __init__(self, path: Path, head: str, settings: dict[str, Any]) -> None:
        self.answers: list[dict[str, Any]] = []
        self._opening = {head: settings, "machine": machine()}
        super().__init__(path, head, settings, resume=path.exists())

    def begin(self, is_new: bool) -> None:
        super().begin(is_new)
        if is_new:
            self.append(self._opening)

    def take(self, entry: dict[str, Any]) -> None:
        self.answers.append(dict(entry))

    def keep(self, entry: dict[str, Any]) -> None:
        self.append(entry)
        self.answers.append(entry)


def _text(path: Path) -> str:
    """Return the text of a file, also of one that ends in .xz."""
    if not path.exists():
        raise MatchError(f"no file {path}")
    return lzma.decompress(path.read_bytes()).decode() if path.suffix == ".xz" else path.read_text("utf-8")


def lines(path: Path, skip: int, positions: int, first: int, most: int) -> Iterator[Line]:
    """Yield games until this many positions are asked: at most `most` of a game, from the half-move `first` on."""
    left = positions
    source = Source.of_text(str(path), _text(path)) if path.suffix == ".xz" else read_source(str(path))
    for work in read_games(source):
        if work.problem is not None:
            raise MatchError(f"{path}, game {work.number}: {work.problem.text}")
        if work.number <= skip:
            continue
        moves = tuple(work.game.mainline_moves())
        board = work.game.board()
        begin = first + (first + (board.turn == chess.BLACK) + work.number + 1) % 2
        asked = range(begin, len(moves), 2)[: min(most, left)]
        left -= len(asked)
        yield Line(work.number, board, moves, asked)
        if left <= 0:
            return
    raise MatchError(f"{path} has {positions - left} positions of the {positions} that are wanted")


async def _along(engine: Engine, line: Line, done: set[tuple[int, int, str]], keep: Callable[..., None]) -> None:
    spec = engine.spec
    board, limit = line.board.copy(), spec.limit.of_a_move()
    missing = {number for number in line.asked if (line.number, number, spec.name) not in done}
    if not missing:
        return
    for number, move in enumerate(line.moves[: max(missing) + 1]):
        if number in line.asked:  # also what was answered before a break, since the engine remembers it
            found = await engine.protocol.play(board, limit, game=line.number, info=chess.engine.INFO_ALL)
            if found.move is None:
                raise MatchError(f"{spec.name} has no move in {board.fen()}")
            score = found.info.get("score")
            answer = {
                "game": line.number,
                "ply": number,
                "fen": board.fen(),
                "engine": spec.name,
                "move": found.move.uci(),
                "seconds": round(engine.protocol.answered_s - engine.protocol.asked_s, 4),
                "depth": found.info.get("depth"),
                "nodes": found.info.get("nodes"),
                "cp": None if score is None else score.relative.score(mate_score=32000),
            }
            if number in missing:
                keep(answer)
        board.push(move)


async def _each(
    tasks: Iterable[tuple[EngineSpec, Any]], side_by_side: int, do: Callable[[Engine, Any], Awaitable[None]]
) -> None:
    """Do each task with its engine; every one of the tasks under way has engines of its own."""
    left = deque(tasks)

    async def work() -> None:
        async with AsyncExitStack() as ending:
            engines: dict[str, Engine] = {}
            while left:
                spec, task = left.popleft()
                if spec.name not in engines:
                    engines[spec.name] = await Engine.start(spec)
                    ending.push_async_callback(engines[spec.name].end)
                try:
                    await do(engines[spec.name], task)
                except chess.engine.EngineError as error:
                    raise MatchError(f"{spec.name}: {error}{engines[spec.name].last_words()}") from None

    async with asyncio.TaskGroup() as group:
        for _ in range(side_by_side):
            group.create_task(work())


def _run_each(*given: Any) -> None:
    try:
        asyncio.run(_each(*given))
    except* MatchError as errors:
        raise errors.exceptions[0] from None


def choose_moves(words: Sequence[str]) -> int:
    """Ask the engines for their moves."""
    parser = Parser(__doc__)
    parser.add_argument("--games", type=Path, required=True, metavar="FILE", help="PGN, also as .xz")
    parser.add_argument("--engine", action="append", required=True, metavar="ENGINE", help="as `match.py` takes it")
    limit = parser.add_mutually_exclusive_group()
    for kind in ("nodes", "depth", "movetime"):
        limit.add_argument(f"--{kind}", metavar="SECONDS" if kind == "movetime" else "N", help="for each move")
    parser.add_argument("--positions", type=whole_number(1, 10**6), default=1000, metavar="N", help="(1000)")
    parser.add_argument("--from", dest="first", type=whole_number(0, 1000), default=16, metavar="PLY", help="(16)")
    parser.add_argument("--of-a-game", type=whole_number(1, 1000), default=40, metavar="N", help="positions (40)")
    parser.add_argument("--skip", type=whole_number(0, 10**6), default=0, metavar="N", help="games (0)")
    parser.add_argument("--concurrency", type=whole_number(1, 256), default=1, metavar="N", help="games at a time (1)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(words)
    given = [(kind, getattr(options, kind)) for kind in ("nodes", "depth", "movetime") if getattr(options, kind)]
    default = parse_limit(*given[0]) if given else None
    specs = [parse_engine(text, default) for text in options.engine]
    if len({spec.name for spec in specs}) < len(specs):
        raise MatchError("two engines have one name")
    if any(spec.limit.base_s is not None for spec in specs):
        raise MatchError("a clock has no meaning along games: --nodes, --depth or --movetime")
    settings = {
        "games": str(options.games),
        **{key: getattr(options, key) for key in ("positions", "first", "of_a_game", "skip")},
        "engines": {spec.name: str(spec) for spec in specs},
    }
    games = list(lines(options.games, options.skip, options.positions, options.first, options.of_a_game))
    with _Log(options.out, "moves", settings) as log, StatusLine() as status:
        done = {(one["game"], one["ply"], one["engine"]) for one in log.answers}
        total = len(specs) * sum(len(line.asked) for line in games)

        def keep(entry: dict[str, Any]) -> None:
            log.keep(entry)
            status(f"{len(log.answers):,} of {total:,} moves", len(log.answers), total)

        _run_each(
            [(spec, line) for line in games for spec in specs],
            options.concurrency,
            lambda engine, line: _along(engine, line, done, keep),
        )
    return 0


def read_moves(paths: Sequence[Path]) -> tuple[list[str], dict[tuple[int, str], dict[str, dict[str, Any]]]]:
    """Return the engines of logs of `moves`, and by game and position their answers by engine."""
    engines: dict[str, None] = {}
    answers: dict[tuple[int, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for path in paths:
        try:
            # a last line without its end was cut by a kill
            whole = (line for line in _text(path).splitlines(keepends=True) if line.endswith("\n"))
            for one in map(json.loads, whole):
                if "moves" in one:
                    engines.update(dict.fromkeys(one["moves"]["engines"]))
                    continue
                answers[one["game"], one["fen"]][one["engine"]] = one
        except (ValueError, LookupError, TypeError):
            raise MatchError(f"{path} is no log of judge.py moves") from None
    if not answers:
        raise MatchError("these logs have no moves")
    return list(engines), answers


def table(
    engines: Sequence[str],
    answers: dict[tuple[int, str], dict[str, dict[str, Any]]],
    worth: dict[tuple[str, str], float],
) -> str:
    """Return a row for each engine, its moves beside those of the first where both were asked."""
    rows = [
        f"| engine | positions | the same move | depth | nodes | thousandths over {engines[0]} (95%) |",
        "|---|---|---|---|---|---|",
    ]
    for engine in engines:
        shared = [(key, by[engine], by[engines[0]]) for key, by in answers.items() if engine in by and engines[0] in by]
        if not shared:
            continue
        gains: dict[int, list[float]] = defaultdict(list)
        for (game, fen), mine, theirs in shared:
            moves = mine["move"], theirs["move"]
            gains[game].append(0.0 if moves[0] == moves[1] else worth[fen, moves[0]] - worth[fen, moves[1]])
        mean = math.fsum(map(math.fsum, gains.values())) / len(shared)
        # positions of one game are not independent: the games are what varies
        apart = math.fsum(math.fsum(gain - mean for gain in of_game) ** 2 for of_game in gains.values())
        error = _Z * math.sqrt(apart) / len(shared)
        same = np.mean([mine["move"] == theirs["move"] for _, mine, theirs in shared])
        depth, nodes = (np.median([mine[what] or 0 for _, mine, _ in shared]) for what in ("depth", "nodes"))
        difference = "" if engine == engines[0] else f"{1000 * mean:+.2f} +- {1000 * error:.2f}"
        rows.append(f"| {engine} | {len(shared):,} | {same:.0%} | {depth:.0f} | {nodes:,.0f} | {difference} |")
    return "\n".join(rows)


def give_verdict(words: Sequence[str]) -> int:
    """Have the judge search what the engines chose, and print the table."""
    parser = Parser(__doc__)
    parser.add_argument("moves", type=Path, nargs="+", metavar="MOVES.jsonl", help="logs of `moves`")
    parser.add_argument("--judge", required=True, metavar="ENGINE", help="as `match.py` takes it")
    parser.add_argument("--nodes", type=whole_number(1, 10**12), default=300_000, metavar="N", help="a move (300000)")
    parser.add_argument("--concurrency", type=whole_number(1, 256), default=1, metavar="N", help="judges (1)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(words)
    spec = parse_engine(options.judge, parse_limit("nodes", str(options.nodes)))
    engines, answers = read_moves(options.moves)
    missing = {
        (fen, one["move"]): None
        for (_, fen), by in answers.items()
        if len({one["move"] for one in by.values()}) > 1
        for one in by.values()
    }
    with _Log(options.out, "verdict", {"judge": str(spec)}) as log, StatusLine() as status:
        for one in log.answers:
            missing.pop((one["fen"], one["move"]), None)
        before = len(log.answers)

        async def search(engine: Engine, asked: tuple[str, str]) -> None:
            board, move = chess.Board(asked[0]), chess.Move.from_uci(asked[1])
            board.chess960 = board.has_chess960_castling_rights()
            # an object of its own is a game of its own: the table is emptied
            found = await engine.protocol.analyse(board, spec.limit.of_a_move(), game=object(), root_moves=[move])
            wdl = found.get("wdl") or found["score"].wdl(model="sf", ply=board.ply())
            log.keep({"fen": asked[0], "move": asked[1], "expected": wdl.relative.expectation()})
            status(f"{len(log.answers):,} moves judged", len(log.answers) - before, len(missing))

        _run_each([(spec, asked) for asked in missing], options.concurrency, search)
        worth = {(one["fen"], one["move"]): one["expected"] for one in log.answers}
    print(table(engines, answers, worth))
    return 0


def run(words: Sequence[str] | None = None) -> int:
    """Do the step that the first word names."""
    words = sys.argv[1:] if words is None else words
    steps = {"moves": choose_moves, "verdict": give_verdict}
    if not words or words[0] not in steps:
        Parser(__doc__).parse_args(words)
        raise MatchError("the first word is moves or verdict")
    return steps[words[0]](words[1:])


if __name__ == "__main__":
    sys.exit(run_script("judge"))
