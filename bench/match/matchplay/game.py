"""One game: the clock, the rules, what there is to complain about, its PGN; and a process that plays games."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import chess
import chess.engine
import chess.pgn

from .engines import Engine, EngineSpec, TimeControl
from .openings import Opening
from .scripts import MatchError

MATE_CP = 100_000
MOVETIME_MARGIN_S = 0.2
"""beyond a fixed time for a move: such a limit is a wish, a clock is a rule"""
_INFO = chess.engine.INFO_BASIC | chess.engine.INFO_SCORE
_FIFTY_MOVES = 100  # halfmoves
_THROWN_AWAY = ("repetition", "fifty moves", "stalemate")
WINNING_CP = 300


@dataclass(frozen=True)
class Rules:
    margin_s: float = 0.0
    """Seconds by which a clock may be overdrawn."""
    stall_s: float = 60.0
    """Seconds after which an engine without an answer is ended, counted from the end of its clock, or from `go` without
    one."""
    resign: tuple[int, int] | None = None
    """Centipawns and moves: a game is lost when both engines agree on such a score for that many moves each."""
    draw: tuple[int, int, int] | None = None
    """Centipawns, moves and a move number, from which on a game is drawn when both see no more for that many moves
    each."""
    most_moves: int = 400
    """Moves of each side after which a game is drawn."""


@dataclass(frozen=True)
class Pairing:
    number: int
    """Number of the game, from 0; games 2k and 2k + 1 are a pair."""
    white: int
    """Engine that has the white pieces: 0 the first, 1 the second."""
    opening: Opening
    round: str
    date: str


@dataclass
class Complaint:
    """A complaint about something that an engine must not do."""

    engine: int
    kind: str
    """Kind of the complaint: time, illegal, stall, died, no move, or mate claim."""
    text: str
    lines: list[str] = field(default_factory=list)
    """The last lines said to and by the engine."""


@dataclass
class Usage:
    """One engine's use of its time in a game."""

    moves: int = 0
    time_s: float = 0.0
    longest_s: float = 0.0
    least_left_s: float | None = None
    """Least time left on the clock after a move, in seconds, before the increment."""
    depth: int = 0
    """Sum of the depths over moves."""
    nodes: int = 0


@dataclass
class Record:
    number: int
    white: int
    result: str
    """1-0, 0-1 or 1/2-1/2"""
    reason: str
    plies: int = 0
    """Plies played, without the book's."""
    seconds: float = 0.0
    complaints: list[Complaint] = field(default_factory=list)
    thrown_away: list[str] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=lambda: [Usage(), Usage()])
    broken: list[int] = field(default_factory=list)
    """Engines that must be restarted."""
    pgn: str = ""

    @property
    def points(self) -> float:
        if self.result == "1/2-1/2":
            return 0.5
        return float((self.result == "1-0") == (self.white == 0))


@dataclass
class MateClaims:
    """Mates that one engine announced for itself in a game.

    "Mate in N" promises mate with its Nth move from then, against anything. The promise may be renewed by one that is
    as short or shorter before that move is due: whoever shuffles and goes on announcing is found out when the game is
    drawn. A longer announcement does not move that day.
    """

    moves: int = 0
    """Moves made so far."""
    claimed: int = 0
    """N of the promise that stands; 0 is none"""
    due: int = 0
    """Number of the move that must mate."""
    where: str = ""
    """Position of the claim, as a FEN."""

    def move(self, fen: str, mate: int | None) -> str | None:
        """A move is made in `fen` with "mate in `mate`" announced (None: not announced); what it proves wrong."""
        self.moves += 1
        broken = None
        if self.claimed and self.moves > self.due:
            broken = f"announced mate in {self.claimed} in {self.where} and did not mate"
            self.claimed = 0
        if mate is not None and mate > 0 and (not self.claimed or mate <= self.claimed):
            self.claimed, self.due, self.where = mate, self.moves + mate - 1, fen
        return broken

    def end(self, reason: str) -> str | None:
        """The game ends by the rules without this engine's having mated; what that proves wrong."""
        return f"announced mate in {self.claimed} in {self.where}: {reason}" if self.claimed else None


def thrown_away(reason: str, last_score_cp: int | None) -> bool:
    """Whether an engine that thought itself well ahead at its last move let the game end in a draw it could avoid."""
    return reason in _THROWN_AWAY and last_score_cp is not None and last_score_cp >= WINNING_CP


class _Clock:
    def __init__(self, limit: TimeControl) -> None:
        self.limit = limit
        self.left_s = limit.base_s
        self.moves_to_go = limit.moves

    def spend(self, used_s: float) -> None:
        if self.left_s is not None:
            self.left_s -= used_s

    def add(self) -> None:
        """After a move that was made in time."""
        if self.left_s is None or self.limit.base_s is None:
            return
        self.left_s += self.limit.increment_s
        if self.limit.moves:
            self.moves_to_go -= 1
            if not self.moves_to_go:
                self.moves_to_go = self.limit.moves
                self.left_s += self.limit.base_s


class Adjudication:
    """Counts of moves on which both engines have agreed."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.winning = [0, 0]
        self.losing = [0, 0]
        self.level = [0, 0]

    def move(self, engine: int, score: int | None, move_number: int) -> tuple[int | None, str] | None:
        """After a move: the winner (None: drawn) and the reason, or None while the game goes on."""

        def count(runs: list[int], goes_on: bool) -> None:
            runs[engine] = runs[engine] + 1 if goes_on else 0

        if self.rules.resign is not None:
            least, moves = self.rules.resign
            count(self.winning, score is not None and score >= least)
            count(self.losing, score is not None and score <= -least)
            for winner in (0, 1):
                if self.winning[winner] >= moves and self.losing[1 - winner] >= moves:
                    return winner, "adjudication"
        if self.rules.draw is not None:
            most, moves, first = self.rules.draw
            count(self.level, score is not None and abs(score) <= most)
            if move_number >= first and min(self.level) >= moves:
                return None, "adjudication"
        return None


def ending(board: chess.Board) -> tuple[bool, str] | None:
    """Whether the side that has just moved has won, and why the game is over; None while it goes on.

    Draws that a player could claim end the game, as match runners have it.
    """
    if not any(board.generate_legal_moves()):
        return (True, "checkmate") if board.is_check() else (False, "stalemate")
    if board.is_insufficient_material():
        return False, "insufficient material"
    if board.halfmove_clock >= _FIFTY_MOVES:
        return False, "fifty moves"
    if board.is_repetition(3):
        return False, "repetition"
    return None


class Game:
    """Two engines at one board."""

    def __init__(self, engines: Sequence[Engine], pairing: Pairing, rules: Rules) -> None:
        self.engines = engines
        self.pairing = pairing
        self.rules = rules
        self.board = pairing.opening.board()
        self.clocks = [_Clock(engine.spec.limit) for engine in engines]
        self.claims = [MateClaims(), MateClaims()]
        self.last_score: list[int | None] = [None, None]
        self.adjudication = Adjudication(rules)
        self.record = Record(pairing.number, pairing.white, "*", "")
        pgn = chess.pgn.Game.from_board(self.board)
        pgn.headers.update(Event="bench/match/match.py", Site="?", Date=pairing.date, Round=pairing.round)
        for colour, number in (("White", pairing.white), ("Black", 1 - pairing.white)):
            spec = self.engines[number].spec
            pgn.headers[colour], pgn.headers[f"{colour}TimeControl"] = spec.name, str(spec.limit)
        self.pgn = pgn
        self.node: chess.pgn.GameNode = pgn.end()

    @property
    def to_move(self) -> int:
        return self.pairing.white if self.board.turn == chess.WHITE else 1 - self.pairing.white

    def _limit(self, number: int) -> chess.engine.Limit:
        limit = self.engines[number].spec.limit
        if limit.base_s is None:
            return limit.of_a_move()
        own = self.clocks[number]
        other = self.clocks[1 - number] if self.clocks[1 - number].left_s is not None else own
        white, black = (own, other) if self.board.turn == chess.WHITE else (other, own)
        return chess.engine.Limit(
            white_clock=white.left_s,
            black_clock=black.left_s,
            white_inc=white.limit.increment_s,
            black_inc=black.limit.increment_s,
            remaining_moves=own.moves_to_go or None,
            clock_id=self,
        )

    def _complain(self, number: int, kind: str, text: str) -> None:
        lines = list(self.engines[number].protocol.lines)
        self.record.complaints.append(Complaint(number, kind, text, lines))

    def _over(self, winner: int | None, reason: str) -> None:
        self.record.reason = reason
        if winner is None:
            self.record.result = "1/2-1/2"
        else:
            self.record.result = "1-0" if winner == self.pairing.white else "0-1"

    async def play(self) -> Record:
        """Play the game to its end. Raises nothing that an engine causes."""
        begin = time.perf_counter()
        while self.record.result == "*":
            await self._move(self.to_move)
        self.record.seconds = time.perf_counter() - begin
        self.pgn.headers["Result"] = self.record.result
        self.pgn.headers["Termination"] = self.record.reason
        self.node.comment = f"{self.node.comment} {self.record.reason}".strip()
        self.record.pgn = self.pgn.accept(chess.pgn.StringExporter(columns=80)) + "\n\n"
        return self.record

    async def _ask(self, number: int) -> chess.engine.PlayResult | None:
        """The engine's answer; None when the game is over for lack of one."""
        engine, clock = self.engines[number], self.clocks[number]
        patience_s = self.rules.stall_s + (clock.left_s or engine.spec.limit.movetime_s or 0.0)
        engine.protocol.asked_s = engine.protocol.answered_s = 0.0
        try:
            return await asyncio.wait_for(
                engine.protocol.play(self.board, self._limit(number), game=self, info=_INFO), patience_s
            )
        except TimeoutError:
            self._complain(number, "stall", f"no answer within {patience_s:.1f} s in {self.board.fen()}")
            reason = "stall"
        except chess.engine.EngineTerminatedError as error:
            self._complain(number, "died", f"{error} in {self.board.fen()}{engine.last_words()}")
            reason = "engine died"
        except chess.engine.EngineError as error:  # python-chess refuses illegal moves
            if not engine.protocol.asked_s:  # and what the engine cannot play
                raise MatchError(f"{engine.spec.name}: {error}") from None
            self._complain(number, "illegal", f"{error} in {self.board.fen()}")
            reason = "illegal move"
        self.record.broken.append(number)
        self._over(1 - number, reason)
        return None

    async def _move(self, number: int) -> None:
        played = await self._ask(number)
        if played is None:
            return
        if not played.move:  # none, or the null move
            self._no_move(number, played)
            return
        protocol = self.engines[number].protocol
        used_s = protocol.answered_s - protocol.asked_s
        score = None if "score" not in played.info else played.info["score"].relative
        cp = None if score is None else score.score(mate_score=MATE_CP)
        mate = None if score is None or protocol.bounded else score.mate()
        if not self._count_time(number, used_s):
            return
        self._note_use(number, used_s, played.info)
        broken = self.claims[number].move(self.board.fen(), mate)
        if broken:
            self._complain(number, "mate claim", broken)
        self.last_score[number] = cp
        self._push(played.move, number, used_s, played.info)
        if played.resigned:
            self._over(1 - number, "resignation")
            return
        over = ending(self.board)
        if over is not None:
            self._finish(number, *over)
            return
        judged = self.adjudication.move(number, cp, self.board.fullmove_number)
        if judged is not None:
            self._over(*judged)
        elif self.record.plies >= 2 * self.rules.most_moves:
            self._over(None, "length")

    def _no_move(self, number: int, played: chess.engine.PlayResult) -> None:
        """An engine that ends the game itself: it may resign, and claim what the rules give."""
        if played.resigned:
            self._over(1 - number, "resignation")
        elif self.engines[number].spec.protocol == "xboard" and self.board.can_claim_draw():
            self._over(None, "draw claimed")
        else:
            self._complain(number, "no move", f"no move in {self.board.fen()}")
            self.record.broken.append(number)
            self._over(1 - number, "no move")

    def _count_time(self, number: int, used_s: float) -> bool:
        """Take a move's time off the clock; False when that ends the game."""
        clock, limit = self.clocks[number], self.engines[number].spec.limit
        before_s = clock.left_s if clock.left_s is not None else limit.movetime_s
        if before_s is None:
            return True
        clock.spend(used_s)
        margin_s = self.rules.margin_s if clock.left_s is not None else max(self.rules.margin_s, MOVETIME_MARGIN_S)
        if used_s <= before_s + margin_s:
            if clock.left_s is not None:
                clock.left_s = max(clock.left_s, 0.0)
            return True
        self._complain(number, "time", f"{used_s * 1000:.0f} ms of {before_s * 1000:.0f} in {self.board.fen()}")
        self._over(1 - number, "time")
        return False

    def _note_use(self, number: int, used_s: float, info: chess.engine.InfoDict) -> None:
        usage, left_s = self.record.usage[number], self.clocks[number].left_s
        usage.moves += 1
        usage.time_s += used_s
        usage.longest_s = max(usage.longest_s, used_s)
        usage.depth += info.get("depth", 0)
        usage.nodes += info.get("nodes", 0)
        if left_s is not None:
            usage.least_left_s = left_s if usage.least_left_s is None else min(usage.least_left_s, left_s)

    def _push(self, move: chess.Move, number: int, used_s: float, info: chess.engine.InfoDict) -> None:
        """Make the move on the board, on the clock and in the PGN."""
        clock = self.clocks[number]
        clock.add()
        self.board.push(move)
        self.node = self.node.add_variation(move)
        self.record.plies += 1
        if "score" in info:
            self.node.set_eval(info["score"], info.get("depth"))
        if clock.left_s is not None:
            self.node.set_clock(clock.left_s)
        self.node.set_emt(used_s)

    def _finish(self, mover: int, won: bool, reason: str) -> None:
        """The game is over by the rules."""
        self._over(mover if won else None, reason)
        for number in (0, 1):
            if won and number == mover:
                continue
            broken = self.claims[number].end(reason)
            if broken:
                self._complain(number, "mate claim", broken)
            if thrown_away(reason, self.last_score[number]):
                name, last = self.engines[number].spec.name, self.last_score[number]
                self.record.thrown_away.append(f"{name} at {(last or 0) / 100:+.2f}: {reason}, {self.board.fen()}")


class Seat:
    """Both engines, started when needed and started anew when broken; they end with the process."""

    def __init__(self, specs: tuple[EngineSpec, EngineSpec], rules: Rules) -> None:
        """Start both. Raises MatchError when an engine cannot be started."""
        chess.engine.LOGGER.setLevel(logging.CRITICAL + 1)  # what engines say amiss is kept with the complaint
        self._specs = specs
        self._rules = rules
        self._loop = asyncio.new_event_loop()
        self._running: dict[int, Engine] = {}
        self._deaths: list[Complaint] = []
        """Deaths between games, not yet reported."""
        first, second = self._loop.run_until_complete(self._engines())
        self._names = first.id_name, second.id_name

    def play(self, pairing: Pairing) -> tuple[tuple[str, str], Record]:
        """Return what the engines call themselves, and the game."""
        return self._names, self._loop.run_until_complete(self._play(pairing))

    async def _engines(self) -> list[Engine]:
        for number, spec in enumerate(self._specs):
            engine = self._running.get(number)
            if engine is not None and not await engine.is_alive():
                code = engine.protocol.returncode.result()
                text = f"ended between games (exit status {code}){engine.last_words()}"
                self._deaths.append(Complaint(number, "died", text, list(engine.protocol.lines)))
                await self._running.pop(number).end()
            if number not in self._running:
                self._running[number] = await Engine.start(spec)
        return [self._running[0], self._running[1]]

    async def _play(self, pairing: Pairing) -> Record:
        record = await Game(await self._engines(), pairing, self._rules).play()
        record.complaints += self._deaths
        self._deaths = []
        for number in set(record.broken):
            await self._running.pop(number).end()
        return record


def make_seat(
    specs: tuple[EngineSpec, EngineSpec], rules: Rules
) -> Callable[[Pairing], tuple[tuple[str, str], Record]]:
    """Return what a process does with each game."""
    return Seat(specs, rules).play
