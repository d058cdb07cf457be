"""`bench/study/same_depth.py`: answers of one worker and of more at the same depth, and of one with more nodes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import chess
import pytest
from programs import run_bench

from psearch.core.chess.board.bridge import from_chess_move

MATE_IN_1 = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - -"
QUEEN_HANGS = "4k3/8/8/3q4/8/4N3/8/4K3 w - -"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "suite.epd"
    path.write_text(f'{MATE_IN_1} bm Rd8; id "one";\n{QUEEN_HANGS} bm Nxd5; id "two";\n', "utf-8")
    return path


def write_log(path: Path, serial: tuple[str, str], parallel: tuple[str, str]) -> None:
    lines: list[dict[str, object]] = [{"about": {}}]
    for policy, threads, moves in (("serial", 1, serial), ("ybw", 8, parallel)):
        for fen, uci in zip((MATE_IN_1, QUEEN_HANGS), moves, strict=True):
            board = chess.Board(f"{fen} 0 1")
            code = from_chess_move(chess.Move.from_uci(uci), board)
            sample = {"position": "p", "fen": board.fen(), "depth": 3, "policy": policy, "threads": threads}
            lines.append(sample | {"nodes": 2000, "bestmove": code})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def test_the_table(tmp_path: Path, suite: Path) -> None:
    log = tmp_path / "log.jsonl"
    write_log(log, ("d1c1", "e3d5"), ("d1d8", "e3d5"))
    done = run_bench("study/same_depth.py", "--log", str(log), "--suite", str(suite), "--more", "2")
    assert done.returncode == 0, done.stderr
    cells = [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()[2:]]
    rows = {name: [solved, *difference.split()] for name, solved, difference in cells}
    assert done.stdout.startswith("2 positions\n")
    assert rows["serial"][:2] == ["1", "+0.00"]
    assert rows["ybw, 8"][:2] == ["2", "+50.00"]
    assert rows["serial, nodes x2"][:2] == ["2", "+50.00"], "4,000 nodes see a mate in one and a queen that hangs"


def test_nothing_in_common(tmp_path: Path, suite: Path) -> None:
    log = tmp_path / "log.jsonl"
    write_log(log, ("d1c1", "e3d5"), ("d1d8", "e3d5"))
    suite.write_text(f"{chess.STARTING_FEN} bm e4;\n", "utf-8")
    done = run_bench("study/same_depth.py", "--log", str(log), "--suite", str(suite))
    assert done.returncode == 1 and done.stderr.startswith("same_depth: no position of ")
    assert done.stderr.count("\n") == 1


def test_more_of_what(tmp_path: Path, suite: Path) -> None:
    log = tmp_path / "log.jsonl"
    write_log(log, ("d1c1", "e3d5"), ("d1d8", "e3d5"))
    done = run_bench("study/same_depth.py", "--log", str(log), "--suite", str(suite), "--more", "twice")
    assert done.returncode == 1 and done.stderr == "same_depth: --more wants numbers, not 'twice'\n"
