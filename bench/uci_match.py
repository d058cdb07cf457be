"""A match between two settings of the UCI engine on a real clock, for what a match runner would complain about.

    python bench/uci_match.py --games 20 --time 2 --increment 0.02 --first Threads=2 --second Threads=1

python-chess is the client and passes on what the engines say; the clock is kept here, without any margin. Counted are
time losses, illegal moves, stalls and engines that end. Openings are short lines of the project's own choice, each
played with both colours. The exit status is 1 when anything was complained about. The score is printed, but twenty
games say nothing about strength.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass, field

import chess
import chess.engine

COMMAND = [sys.executable, "-c", "import sys; from psearch.cli import main; sys.exit(main())", "uci"]
MOST_PLIES = 400
STALL_S = 20.0
OPENINGS = (
    "e2e4 e7e5 g1f3 b8c6",
    "d2d4 d7d5 c2c4 e7e6",
    "e2e4 c7c5 g1f3 d7d6",
    "d2d4 g8f6 c2c4 g7g6",
    "c2c4 e7e5 b1c3 g8f6",
    "e2e4 e7e6 d2d4 d7d5",
    "g1f3 d7d5 g2g3 g8f6",
    "e2e4 c7c6 d2d4 d7d5",
    "d2d4 f7f5 g2g3 g8f6",
    "e2e4 d7d6 d2d4 g8f6",
)


@dataclass
class Tally:
    """What happened in the match."""

    points: list[float] = field(default_factory=lambda: [0.0, 0.0])
    complaints: list[str] = field(default_factory=list)
    least_left_s: float = float("inf")
    longest_wait_s: float = 0.0
    """for one move"""
    moves: int = 0


async def play_game(
    engines: list[chess.engine.Protocol], white: int, opening: str, time_s: float, increment_s: float, tally: Tally
) -> None:
    """One game; `white` is the number of the engine that has the white pieces."""
    board = chess.Board()
    for word in opening.split():
        board.push_uci(word)
    clocks = {chess.WHITE: time_s, chess.BLACK: time_s}
    game = object()
    while not board.is_game_over(claim_draw=True) and board.ply() < MOST_PLIES:
        number = white if board.turn else 1 - white
        limit = chess.engine.Limit(
            white_clock=clocks[True], black_clock=clocks[False], white_inc=increment_s, black_inc=increment_s
        )
        start = time.perf_counter()
        try:
            played = await asyncio.wait_for(engines[number].play(board, limit, game=game), STALL_S)
        except TimeoutError:
            tally.complaints.append(f"engine {number} stalled in {board.fen()}")
            return
        except chess.engine.EngineError as error:  # python-chess refuses illegal moves
            tally.complaints.append(f"engine {number}: {error}")
            return
        used_s = time.perf_counter() - start
        clocks[board.turn] -= used_s
        tally.moves += 1
        tally.longest_wait_s = max(tally.longest_wait_s, used_s)
        tally.least_left_s = min(tally.least_left_s, clocks[board.turn])
        if clocks[board.turn] < 0:
            tally.complaints.append(
                f"engine {number} lost on time: {used_s * 1000:.0f} ms of {(clocks[board.turn] + used_s) * 1000:.0f}"
            )
            tally.points[1 - number] += 1
            return
        clocks[board.turn] += increment_s
        if played.move is None:
            tally.complaints.append(f"engine {number} gave no move in {board.fen()}")
            return
        board.push(played.move)
    outcome = board.outcome(claim_draw=True)
    if outcome is None or outcome.winner is None:
        tally.points[0] += 0.5
        tally.points[1] += 0.5
    else:
        tally.points[white if outcome.winner else 1 - white] += 1


async def match(options: argparse.Namespace) -> Tally:
    """All games, one after the other."""
    tally = Tally()
    engines = []
    for settings in (options.first, options.second):
        _, engine = await chess.engine.popen_uci(COMMAND)
        await engine.configure(dict(setting.split("=", 1) for setting in settings))
        await engine.ping()
        engines.append(engine)
    try:
        for number in range(options.games):
            opening = OPENINGS[number // 2 % len(OPENINGS)]
            await play_game(engines, number % 2, opening, options.time, options.increment, tally)
            print(f"game {number + 1}: {tally.points[0]} to {tally.points[1]}, {tally.complaints}", flush=True)
    finally:
        for engine in engines:
            await engine.quit()
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--time", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--increment", type=float, default=0.02, metavar="SECONDS")
    parser.add_argument("--first", nargs="*", default=["Threads=2"], metavar="OPTION=VALUE")
    parser.add_argument("--second", nargs="*", default=["Threads=1"], metavar="OPTION=VALUE")
    tally = asyncio.run(match(parser.parse_args()))
    print(
        f"{tally.moves} moves, score {tally.points[0]} to {tally.points[1]}, {len(tally.complaints)} complaints, "
        f"least time left {tally.least_left_s * 1000:.0f} ms, longest move {tally.longest_wait_s * 1000:.0f} ms"
    )
    return 1 if tally.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
