"""A UCI engine for tests of the match runner: plays the first legal move in order, and misbehaves as told.

    python fake_engine.py [--name NAME] [--fault KIND] [--at N] [--say "score cp 20"] [--leave N] [--heard FILE]

The fault happens at its Nth move of every game: `illegal`, `null`, `none`, `die`, `hang`, `slow` (1.5 s), or `claim`
(announces mate in 2 there). After its move number --leave, of all games, it ends; --heard gets every line it reads.
Its opponent in the other process behaves by default.
"""

from __future__ import annotations

import argparse
import sys
import time

import chess


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="fake")
    parser.add_argument("--fault", default="")
    parser.add_argument("--at", type=int, default=3)
    parser.add_argument("--say", default="score cp 20")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds for each move")
    parser.add_argument("--leave", type=int, default=0)
    parser.add_argument("--heard", default="/dev/null")
    options = parser.parse_args()
    heard = open(options.heard, "a", buffering=1)  # noqa: SIM115
    board = chess.Board()
    moves = of_all_games = 0
    for line in sys.stdin:
        heard.write(line)
        words = line.split()
        if not words:
            continue
        if words[0] == "uci":
            print(f"id name {options.name}\noption name Hash type spin default 1 min 1 max 8")
            print("option name Clear Hash type button\nuciok")
        elif words[0] == "isready":
            print("readyok")
        elif words[0] == "ucinewgame":
            moves = 0
        elif words[0] == "position":
            at = words.index("moves") if "moves" in words else len(words)
            board = chess.Board() if words[1] == "startpos" else chess.Board(" ".join(words[2:at]))
            for move in words[at + 1 :]:
                board.push_uci(move)
        elif words[0] == "go":
            moves += 1
            play(board, options.fault if moves == options.at else "", options)
            of_all_games += 1
            if of_all_games == options.leave:
                return
        elif words[0] == "quit":
            return
        sys.stdout.flush()


def play(board: chess.Board, fault: str, options: argparse.Namespace) -> None:
    time.sleep(options.wait)
    if fault == "die":
        print("out of luck", file=sys.stderr)
        sys.exit(7)
    if fault == "hang":
        time.sleep(600)
    if fault == "slow":
        time.sleep(1.5)
    score = "score mate 2" if fault == "claim" else options.say
    move = min(board.legal_moves, key=lambda move: move.uci()).uci()
    move = {"illegal": "e1e5", "null": "0000", "none": "(none)"}.get(fault, move)
    print(f"info depth 3 {score} nodes 100 time 1 pv {move}\nbestmove {move}")


main()
