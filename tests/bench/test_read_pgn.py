"""bench/training/read_pgn.py and netdata/pgn.py: positions of published games, whose comments have scores and lines."""

from __future__ import annotations

import random
from pathlib import Path

import chess
import numpy as np
import pytest
from netdata.commands import EXIT_BAD_INPUT
from netdata.labelling import read_labels
from netdata.pgn import PgnReader, split_games
from netdata.reader import board_codes
from netdata.records import NO_RESULT
from programs import run_bench

GAME = """[Event "a cup"]
[FEN "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"]

{WhiteEngineOptions: Threads=1; pv=e4, wv=9.99;}
1. Nf3 {book, mb=+0,} 1... d5 {d=3, pd=d4, pv=d5 d4 f5, tb=0, wv=-0.75, R50=50,}
2. g3 {pv=g3 Nc6, wv=M12,} c6 {wv=1.5} 3. Bg2 {wv=31.00} Bh3 4. O-O {pv=O-O Bxg2 d3, wv=-.08,} Bxg2 {wv=0.2} 5. Zz9
a6 {wv=0.3}
"""


@pytest.fixture(scope="module")
def reader() -> PgnReader:
    return PgnReader()


def codes(board: chess.Board) -> bytes:
    """The board from the mover's side, as `board_codes` has it."""
    flip = 0 if board.turn else 56
    found = np.zeros(64, np.uint8)
    for square, piece in board.piece_map().items():
        found[square ^ flip] = piece.piece_type + 8 * (piece.color != board.turn)
    return found.tobytes()


def is_quiet(board: chess.Board, move: chess.Move) -> bool:
    return not board.is_check() and not board.is_capture(move) and not move.promotion


def test_scores_and_lines_of_comments(reader: PgnReader) -> None:
    ((headers, moves),) = split_games(GAME)
    samples = reader.game(headers, moves)
    board = chess.Board(headers["FEN"], chess960=True)
    wanted = {}
    for word, score in (
        ("Nf3", None),
        ("d5", 75),
        ("g3", None),
        ("c6", -150),
        ("Bg2", None),
        ("Bh3", None),
        ("O-O", -8),
    ):
        if score is not None:
            wanted[codes(board)] = score
        board.push_san(word)
    found = {text.tobytes(): int(score) for text, score in zip(board_codes(samples), samples["score"], strict=True)}
    assert {text: score for text, score in found.items() if text in wanted} == wanted
    assert len(found) <= len(wanted) + 3
    assert np.all(samples["result"] == NO_RESULT)


def test_random_games_are_read_as_python_chess_writes_them(reader: PgnReader) -> None:
    dice = random.Random(3)
    for number in range(40):
        board = chess.Board.from_chess960_pos(dice.randrange(960)) if number % 2 else chess.Board()
        fen = board.fen()
        words, wanted, expected = [], [], set()
        while not board.is_game_over() and len(words) < 200:
            line, after = [], board.copy(stack=False)
            for ply in range(6):
                legal = sorted(after.legal_moves, key=str)
                if not legal:
                    break
                move = dice.choice(legal)
                if ply and is_quiet(after, move):
                    expected.add(codes(after))
                line.append(after.san(move))
                after.push(move)
            move = board.parse_san(line[0])
            if is_quiet(board, move):
                wanted.append(codes(board))
            words.append(f"{line[0]} {{pv={' '.join(line)}, wv=0.10,}}")
            board.push(move)
        samples = reader.game({"FEN": fen}, " ".join(words))
        found = [text.tobytes() for text in board_codes(samples)]
        assert set(wanted) <= set(found) <= set(wanted) | expected
        assert 0.3 * len(expected) < len(found) - len(wanted) < 0.8 * len(expected)


def test_the_command_adds_files_once(tmp_path: Path) -> None:
    (tmp_path / "cup.pgn").write_text(GAME)
    for _ in range(2):
        done = run_bench("training/read_pgn.py", tmp_path / "some.samples", tmp_path / "cup.pgn")
        assert done.returncode == 0, done.stderr
    assert 3 <= len(read_labels(tmp_path / "some.samples")) <= 6
    done = run_bench("training/read_pgn.py", tmp_path / "some.samples", tmp_path / "none.pgn")
    assert done.returncode == EXIT_BAD_INPUT
    assert done.stderr.count("\n") == 1 and "none.pgn" in done.stderr
