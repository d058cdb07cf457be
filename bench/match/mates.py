"""Whether mates are found, with their exact distance, at a fixed depth or within so many nodes.

    python bench/match/mates.py terjekir_mate_in_1.epd terjekir_mate_in_2.epd [--extra 3] [--threads 2]
    python bench/match/mates.py --engine "option.Hash=64 option.Threads=2" --extra 2 mates.epd
    python bench/match/mates.py terjekir_mate_in_2.epd --nodes 50000

Each line is an EPD position with a mate in N: `dm N` or `bm #N`, or else a main line (`pv` of moves in SAN, or `c3`,
"pv e2e4 ...", in UCI notation). A mate in N needs 2N - 1 plies; pruning and reductions may see it later, so each
position is searched 2N - 1 + E plies deep (--extra E), as a new game. It is found when the last score is mate in N, no
more and no less, when what is shown of the main line is legal and, where it is complete, ends in mate. Misses are
printed, and at which depth the others were first seen. With --nodes each search ends after so many nodes instead, or
with the mate, and the nodes until each was seen are summed up. The engine is given as for bench/match/match.py; no
other limit.

Exit status: 0 all found, 1 a miss, 2 bad input, 130 Ctrl-C (what is printed is what was found so far).
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import chess
import chess.engine
from matchplay.engines import Engine, EngineSpec, TimeControl, parse_engine
from matchplay.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, MatchError, Parser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from psearch.defaults import MAX_THREADS
from psearch.faces.cli.numbers import whole_number
from psearch.results import PsearchError
from psearch.text.epd_text import SuitePosition, parse_suite
from psearch.text.source import read_source

EXIT_MISSED = 1
STALL_S = 600.0
"""for one position"""
_MOST_EXTRA = 40
_MOST_MOVES = 60


@dataclass(frozen=True)
class Problem:
    """A position with a known mate."""

    name: str
    board: chess.Board
    moves: int
    """to mate, of the side to move"""


@dataclass
class Answer:
    """What the engine said of a problem."""

    problem: Problem
    score: chess.engine.Score | None = None
    pv: list[chess.Move] = field(default_factory=list)
    first_depth: int | None = None
    """from which on every iteration gave the exact distance"""
    depth: int = 0
    first_nodes: int = 0
    """searched until then"""

    @property
    def miss(self) -> str | None:
        """What is wrong with it, or None."""
        if self.score is None or self.score != chess.engine.Mate(self.problem.moves):
            return f"mate in {self.problem.moves}: {self.score} at depth {self.depth}"
        board = self.problem.board.copy(stack=False)
        for move in self.pv:
            if not board.is_legal(move):
                return f"mate in {self.problem.moves}: main line with illegal {move.uci()}"
            board.push(move)
        if len(self.pv) >= 2 * self.problem.moves - 1 and not board.is_checkmate():
            return f"mate in {self.problem.moves}: main line without mate: {self.problem.board.variation_san(self.pv)}"
        return None


def _distance(position: SuitePosition) -> int | None:
    """In moves, from the operations of an EPD line."""
    if position.mate is not None:
        return position.mate
    line = position.operations.get("pv", "").split()
    for comment in ("c3", "c0"):
        text = position.operations.get(comment, "")
        if not line and text.startswith("pv "):
            line = text.split()[1:]
    return (len(line) + 1) // 2 if line else None


def read_problems(path: Path) -> list[Problem]:
    """Every position of a file in which the side to move mates; a line on stderr counts the others. Raises MatchError
    naming the line."""
    try:
        positions = parse_suite(read_source(str(path)))
    except PsearchError as error:
        raise MatchError(str(error)) from None
    problems = []
    for position in positions:
        moves = _distance(position)
        if moves is None or abs(moves) > _MOST_MOVES:
            raise MatchError(f"{path}, line {position.line}: no `dm` or main line to mate")
        if moves > 0:
            name = position.operations.get("id") or f"{path.name}:{position.line}"
            problems.append(Problem(name, position.board, moves))
    if len(problems) < len(positions):
        print(f"{path}: {len(positions) - len(problems)} left out, where the side to move is mated", file=sys.stderr)
    if not problems:
        raise MatchError(f"{path}: no position in it")
    return problems


@dataclass(frozen=True)
class Effort:
    """How far a problem is searched."""

    extra: int
    """plies beyond 2N - 1 for a mate in N"""
    nodes: int | None = None
    """until the mate is found or so many nodes are searched, in place of plies"""

    def limit(self, moves: int) -> chess.engine.Limit:
        if self.nodes is not None:
            return chess.engine.Limit(nodes=self.nodes, mate=moves)
        return chess.engine.Limit(depth=2 * moves - 1 + self.extra)

    def text(self, moves: int) -> str:
        return f"depth {2 * moves - 1 + self.extra}" if self.nodes is None else f"{self.nodes:,} nodes"


async def _solve(engine: Engine, problem: Problem, effort: Effort) -> Answer:
    """Search a problem as a new game, and follow it."""
    answer = Answer(problem)
    exact = chess.engine.Mate(problem.moves)
    analysis = await engine.protocol.analysis(problem.board, effort.limit(problem.moves), game=problem)
    async for info in analysis:
        if "score" not in info or "depth" not in info or "lowerbound" in info or "upperbound" in info:
            continue
        answer.score, answer.depth, answer.pv = info["score"].relative, info["depth"], info.get("pv", [])
        if answer.score != exact:
            answer.first_depth = None
        elif answer.first_depth is None:
            answer.first_depth, answer.first_nodes = answer.depth, info.get("nodes", 0)
    return answer


async def solve_all(spec: EngineSpec, problems: list[Problem], effort: Effort, each: Callable[[Answer], None]) -> None:
    """Search every problem; `each` is called with the answers. Raises MatchError when the engine fails."""
    engine = await Engine.start(spec)
    done = False
    try:
        for problem in problems:
            try:
                async with asyncio.timeout(STALL_S):
                    answer = await _solve(engine, problem, effort)
            except TimeoutError:
                raise MatchError(f"{spec.name} does not answer within {STALL_S:g} s: {problem.name}") from None
            except chess.engine.EngineError as error:
                raise MatchError(f"{spec.name}: {error}: {problem.name}") from None
            each(answer)
        done = True
    finally:
        await engine.end(at_once=not done)


@dataclass(frozen=True)
class Row:
    """The mates of one distance."""

    mate: int
    positions: int
    found: int
    first_seen: dict[int, int]
    """found ones by the depth from which on they were"""
    nodes: dict[str, int]
    """of the found ones: `median`, `p99`, `most`; empty without any"""


def _row(moves: int, answers: list[Answer]) -> Row:
    these = [answer for answer in answers if answer.problem.moves == moves]
    found = [answer for answer in these if answer.miss is None]
    seen = Counter(answer.first_depth for answer in found if answer.first_depth is not None)
    nodes = sorted(answer.first_nodes for answer in found)
    places = {"median": len(nodes) // 2, "p99": len(nodes) * 99 // 100, "most": len(nodes) - 1}
    several = {name: nodes[place] for name, place in places.items()} if nodes else {}
    return Row(moves, len(these), len(found), dict(sorted(seen.items())), several)


def _report(answers: list[Answer], as_json: bool, effort: Effort, engine: str) -> None:
    """What was found, by distance."""
    rows = [_row(moves, answers) for moves in sorted({answer.problem.moves for answer in answers})]
    if as_json:
        misses = [{"id": answer.problem.name, "miss": answer.miss} for answer in answers if answer.miss is not None]
        mates = [asdict(row) for row in rows]
        print(json.dumps({"engine": engine, **asdict(effort), "mates": mates, "misses": misses}))
        return
    for answer in answers:
        if answer.miss is not None:
            print(f"MISS {answer.problem.name}: {answer.miss}: {answer.problem.board.fen()}")
    for row in rows:
        seen = ", ".join(f"{count} at {depth}" for depth, count in row.first_seen.items()) or "never"
        print(f"mate in {row.mate}, {effort.text(row.mate)}: {row.found} of {row.positions}; first seen: {seen}")
        if effort.nodes is not None and row.nodes:
            print("  nodes: " + ", ".join(f"{name} {count:,}" for name, count in row.nodes.items()))


def main() -> int:
    """Bad input is one line."""
    parser = Parser(__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.epd")
    parser.add_argument("--engine", default="", help="default: this psearch, one worker, 16 MiB")
    parser.add_argument("--threads", type=whole_number(1, MAX_THREADS), metavar="N", help="sets the option Threads")
    how_far = parser.add_mutually_exclusive_group()
    how_far.add_argument(
        "--extra", type=whole_number(0, _MOST_EXTRA), default=1, metavar="E", help="plies beyond 2N - 1 (1)"
    )
    how_far.add_argument("--nodes", type=whole_number(1, 10**12), metavar="N", help="nodes for each position")
    parser.add_argument("--json", action="store_true")
    answers: list[Answer] = []
    interrupted = False
    logging.getLogger("chess.engine").setLevel(logging.CRITICAL + 1)
    try:
        options = parser.parse_args()
        effort = Effort(options.extra, options.nodes)
        spec = parse_engine(options.engine, TimeControl(depth=1))
        settings = {"Threads": "1", "Hash": "16"} if "cmd=" not in options.engine else {}
        settings |= spec.options
        if options.threads is not None:
            settings["Threads"] = str(options.threads)
        spec = replace(spec, options=settings)
        problems = [problem for path in options.files for problem in read_problems(path)]
        columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("", total=len(problems))

            def each(answer: Answer) -> None:
                answers.append(answer)
                missed = sum(answer.miss is not None for answer in answers)
                progress.update(task, advance=1, description=f"{missed} missed")

            try:
                asyncio.run(solve_all(spec, problems, effort, each))
            except KeyboardInterrupt:
                interrupted = True
    except MatchError as error:
        print(f"mates.py: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    _report(answers, options.json, effort, str(spec))
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_MISSED if any(answer.miss is not None for answer in answers) else 0


if __name__ == "__main__":
    sys.exit(main())
