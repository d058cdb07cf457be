"""Games for training: generated, kept in blocks; and the training of a network."""

from __future__ import annotations

import hashlib
import json
import math
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import chess
import numpy as np
import pytest
from matchplay.scripts import EXIT_BAD_INPUT
from netdata import playing
from netdata.blocks import Appender, Block, Game, Torn, pack, read_blocks, read_headers, read_packed
from netdata.manifest import FOLDER
from netdata.playing import (
    HASH_MB,
    NEAR_SCORE,
    RULES,
    Book,
    Played,
    Settings,
    Start,
    Table,
    board_of,
    digest_of,
    draw_start,
    options_of,
    rank_game,
    read_books,
    read_played,
)
from netdata.reader import Filter, Followed, Reader, board_codes, read, shuffled, with_later
from netdata.records import ADJUDICATED, decoder_dtype, game_dtype, sample_dtype
from netfit.gradients import Gradient, values
from netfit.lessons import COMMON_SHARE, Epoch, Errors, Plan, errors, expected, order_of, search_errors
from netfit.lessons import train as fit
from netfit.network import UNIT, Net, bucket, dequantised, features, load, random_net, unit_of, value, write_network
from paths import REPOSITORY
from paths import REPOSITORY as ROOT
from programs import run_bench

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import network_named
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import work
from psearch_core.chess.board.bridge import from_chess_move, set_position, to_chess_move
from psearch_core.chess.chess_entries import evaluate_position_by_network
from psearch_core.chess.evaluation.network_file import read_network
from psearch_core.chess.tables import make_tables
from psearch_core.records import NETWORK_HIDDEN, evaluation_dtype, position_dtype, tables_dtype

SETTINGS = Settings(seed=3, nodes=150, games=3, commit="none", book="")
NO_BOOK = Book()
BOOKS = sorted((ROOT / "bench/training/books").glob("*.epd"))


@pytest.fixture(scope="module")
def table() -> Table:
    return Table(SETTINGS, NO_BOOK)


@pytest.fixture(scope="module")
def block(table: Table) -> Block:
    return table.play(2)


@pytest.fixture(scope="module")
def path(block: Block, table: Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("games") / "three.games"
    target = Appender(path)
    for number in range(3):
        target.append(block if number == 2 else table.play(number))
    target.close()
    return path


def same(mine: Block, theirs: Block) -> bool:
    return pack(mine) == pack(theirs)


def moves_of(game: Game) -> list[chess.Move]:
    """Replay a game with python-chess: the rank of a move is its place among the legal moves sorted by their codes."""
    board = board_of(game.fen)
    moves = []
    for rank in game.ranks:
        legal = sorted(board.legal_moves, key=lambda move: from_chess_move(move, board))
        moves.append(legal[rank])
        board.push(legal[rank])
    return moves


def test_a_block_is_the_same_again_in_another_arena(block: Block) -> None:
    assert same(block, Table(SETTINGS, NO_BOOK).play(2))


def test_a_game_does_not_depend_on_those_before_it(block: Block) -> None:
    other = Table(SETTINGS, NO_BOOK)
    other.play(0)
    assert same(block, other.play(2))


def test_another_seed_plays_other_games(block: Block) -> None:
    other = Table(SETTINGS._replace(seed=4), NO_BOOK).play(2)
    assert [game.ranks.tolist() for game in other.games] != [game.ranks.tolist() for game in block.games]


def test_a_game_is_what_the_search_plays_move_by_move() -> None:
    """The compiled game against a loop over python-chess boards; with so many nodes both count them as often."""
    arena = Arena(workers=1, hash_mb=HASH_MB)
    settings = SETTINGS._replace(nodes=1000, games=2)
    for game in Table(settings, NO_BOOK).play(2).games:
        arena.forget()
        moves = moves_of(game)
        board = board_of(game.fen)
        for move in moves[: game.opening]:
            board.push(move)
        board = chess.Board(board.fen(shredder=True), chess960=True)  # the opening repeats nothing
        for move, score in zip(moves[game.opening :], game.scores, strict=True):
            write_search(arena, board, Limits(nodes=10 * settings.nodes), options_of(settings.pruning, None, ""))
            header = arena.header[0]
            while not work(arena.context, 0, 1):
                if arena.worker[0]["nodes"] >= settings.nodes:
                    header["max_depth"] = min(int(header["max_depth"]), int(header["depth"]))
            assert to_chess_move(int(header["best_move"]), board) == move
            assert int(header["score"]) * (1 if board.turn else -1) == score
            board.push(move)
        outcome = board.outcome(claim_draw=False)
        if game.ending != ADJUDICATED and outcome is not None and outcome.winner is not None:
            assert game.result == 2 * outcome.winner


def test_a_followed_game_has_the_scores_with_which_it_was_played(
    block: Block, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for game in block.games:
        monkeypatch.setattr(playing, "FOLLOWED_FROM", game.opening)
        others = [Played(Start(game.fen, tuple(moves_of(game))), game.result)]
        found = table.follow(others, 0)
        assert found.header["followed"] and len(found.games) == 1
        for mine, theirs in zip(found.games[0][:-1], game[:-1], strict=True):
            assert np.array_equal(mine, theirs)


MOVES = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O 9. h3 Nb8 10. d4 Nbd7 11. c4"
SHUFFLED = '[Variant "Chess960"]\n[SetUp "1"]\n[FEN "nrbkbqrn/pppppppp/8/8/8/8/PPPPPPPP/NRBKBQRN w KQkq - 0 1"]\n'
KNIGHTS = " ".join(f"{n}. Nb3 Nb6 {n + 1}. Na1 Na8" for n in range(1, 13, 2))


def test_games_to_follow_are_finished_chess_each_once(tmp_path: Path) -> None:
    file = tmp_path / "games.pgn"
    file.write_text(
        f'[Result "1/2-1/2"]\n\n{MOVES} 1/2-1/2\n\n[White "Again"]\n[Result "1/2-1/2"]\n\n{MOVES} 1/2-1/2\n\n'
        f'[Result "*"]\n\n{MOVES} *\n\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 1-0\n\n'
        f'[Variant "Atomic"]\n[Result "1-0"]\n\n{MOVES} 1-0\n\n'
        f'{SHUFFLED}[Result "0-1"]\n\n{KNIGHTS} 0-1\n'
    )
    games, digest = read_played([file]), digest_of([file])
    assert digest == hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    assert [(game.start.fen[:8], len(game.start.moves), game.result) for game in games] == [
        ("", 21, 1),
        ("nrbkbqrn", 24, 0),
    ]
    target = tmp_path / "followed.games"
    for _ in range(2):  # a block that is there stays as it is
        done = run_bench("training/generate.py", target, "--follow", file, "--nodes", "100", "--jobs", "1")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("2 games, 29 positions with a score"), done.stdout
    empty = tmp_path / "empty.pgn"
    empty.write_text("1. e4 *\n")
    for words in (["--follow", empty], ["--starts", empty], ["--follow", file, "--starts", file]):
        done = run_bench("training/generate.py", tmp_path / "none.games", *words)
        assert (done.returncode, done.stderr.count("\n")) == (EXIT_BAD_INPUT, 1)


def test_later_scores_count_by_their_distance() -> None:
    dice = np.random.default_rng(5)
    scores = dice.integers(-900, 900, 30).astype(np.int16)
    scores[7] = 31_000
    now = expected(scores.astype(float).clip(-3000, 3000))
    for share, decay in ((0.0, 0.9), (0.7, 0.9), (0.8, 0.96), (1.0, 0.5)):
        found = with_later(scores, share, decay)
        for ply in range(30):
            later = now[ply + 1 :]
            weights = decay ** np.arange(len(later))
            mean = (later @ weights) / weights.sum() if len(later) else now[ply]
            target = (1 - share) * now[ply] + share * mean
            if ply == 7:
                assert found[ply] == 31_000
            else:
                assert expected(found[ply : ply + 1])[0] == pytest.approx(target, abs=1e-3)
    assert np.array_equal(with_later(scores, 0.0, 0.9), scores)


def test_followed_games_have_their_weight_and_their_later_scores(path: Path, block: Block, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.games"
    target = Appender(mixed)
    target.append(block)
    target.append(block._replace(header={**block.header, "followed": True}))
    target.close()
    one, both = read([mixed], every=99), read([mixed], every=99, followed=Followed(0.7, 3))
    half = len(one.training) // 2
    assert len(both.training) == 4 * half and np.array_equal(both.training[:half], one.training[:half])
    blended = both.training[half : 2 * half]
    for part in (both.training[2 * half : 3 * half], both.training[3 * half :]):
        assert np.array_equal(part, blended)
    assert (blended["score"] != one.training["score"][half:]).any()
    assert np.array_equal(blended["occupied"], one.training["occupied"][half:])


def test_adjudicated_games_follow_the_rules_written_down(table: Table) -> None:
    endings = set()
    first = []
    for number in range(12):
        for game in table.play(number).games:
            endings.add((game.ending, game.result))
            last = game.scores[-RULES["won_plies"] :]
            if game.ending == ADJUDICATED and game.result != 1:
                sign = game.result - 1
                assert len(last) == RULES["won_plies"] and min(sign * last) > RULES["won_score"]
            elif game.ending == ADJUDICATED:
                assert max(abs(game.scores[-RULES["dead_plies"] :])) <= RULES["dead_score"]
                assert len(game.ranks) > RULES["dead_from"]
            elif game.ending == 0:
                board = board_of(game.fen)
                for move in moves_of(game):
                    board.push(move)
                over = board.is_checkmate() or board.is_stalemate() or board.is_insufficient_material()
                assert over or board.halfmove_clock >= 100 or board.is_repetition(3)
            first.append(abs(game.scores[0]))
    near = sum(score <= NEAR_SCORE for score in first)
    assert max(first) <= RULES["fit_score"] and len(first) / 2 < near < len(first)
    assert (ADJUDICATED, 2) in endings and (ADJUDICATED, 0) in endings


def test_starts_are_of_all_kinds_and_both_parities() -> None:
    dice = random.Random(1)
    book = read_books(BOOKS)
    starts = [draw_start(book, dice) for _ in range(300)]
    plain = [start for start in starts if not start.fen]
    assert 100 < len(plain) < 200
    assert {len(start.moves) for start in plain} == {8, 9, 10, 11, 12}
    assert {start.board().turn for start in starts} == {True, False}
    boards = [board_of(start.fen) for start in starts]
    assert any(len(board.piece_map()) in (30, 31) for board in boards)  # something is missing
    assert any(len(board.piece_map()) < 12 for board in boards)  # endings
    assert len({board.board_fen().split("/")[0] for board in boards if len(board.piece_map()) == 32}) > 10  # Chess960
    assert all(not start.board().is_game_over() for start in starts)


def test_games_begin_in_the_games_of_others(tmp_path: Path) -> None:
    file = tmp_path / "played.pgn"
    file.write_text(f'[Result "1/2-1/2"]\n\n{MOVES} 1/2-1/2\n')
    book = read_books((), [file])
    board = board_of("")
    reached = set()
    for ply, move in enumerate(book.played[0].start.moves):
        if ply >= 8:
            reached.add(board.board_fen())
        board.push(move)
    dice = random.Random(1)
    starts = [draw_start(book, dice) for _ in range(400)]
    inside = [start for start in starts if start.fen and board_of(start.fen).board_fen() in reached]
    assert 240 < len(inside) < 340
    assert {board_of(start.fen).board_fen() for start in inside} == reached
    assert {len(start.moves) for start in inside} == {0, 1, 2}
    assert all(board_of(start.fen).fullmove_number == 1 and not start.board().is_game_over() for start in inside)
    assert {len(start.moves) for start in starts if not start.fen} == {8, 9, 10, 11, 12}  # the others are as before


def test_games_begin_in_the_endings_of_others(tmp_path: Path) -> None:
    file = tmp_path / "played.pgn"
    exchanges = "1. e4 d5 2. exd5 Qxd5 3. Nc3 Qxg2 4. Bxg2 Bh3 5. Bxb7 Bf1 6. Bxa8 Bh3"
    quiet = " ".join(f"{n}. Nge2 Bg2 {n + 1}. Ng1 Bh3" for n in range(7, 27, 2))
    file.write_text(f'[Result "0-1"]\n\n{exchanges} {quiet} 0-1\n\n[Result "1/2-1/2"]\n\n{MOVES} 1/2-1/2\n')
    book = read_books((), [file], 27)
    assert len(book.played) == 1  # the other game never has so few men
    assert book.digest == read_books((), [file]).digest + ", 27 men"
    dice = random.Random(1)
    starts = [draw_start(book, dice) for _ in range(400)]
    endings = [board_of(start.fen) for start in starts if start.fen and len(start.moves) <= 2]
    reached = [board for board in endings if board.piece_at(chess.A8) == chess.Piece.from_symbol("B")]
    assert 240 < len(reached) < 340
    assert all(len(board.piece_map()) <= 27 for board in reached)
    assert {board.turn for board in reached} == {True, False}


def test_what_is_written_is_read(path: Path, block: Block) -> None:
    blocks = list(read_blocks(path))
    assert [found.header["block"] for found in blocks] == [0, 1, 2]
    assert same(blocks[2], block)
    assert blocks[2].header["commit"] == "none" and blocks[2].header["rules"] == RULES


def test_a_file_cut_anywhere_keeps_its_whole_blocks(path: Path, tmp_path: Path, block: Block) -> None:
    whole = path.read_bytes()
    ends = []
    for number in range(1, 4):
        text = b"".join(pack(found) for found in list(read_blocks(path))[:number])
        ends.append(len(text))
    torn = tmp_path / "torn.games"
    dice = random.Random(5)
    for cut in [0, 1, ends[0] - 1, ends[0], ends[0] + 1, ends[1] + 15, *dice.sample(range(len(whole)), 20)]:
        torn.write_bytes(whole[:cut])
        headers, end = read_headers(torn)
        assert end == max([0, *(place for place in ends if place <= cut)])
        assert [header["block"] for header in headers] == list(range(len(headers)))
        target = Appender(torn)
        assert target.cut == cut - end
        target.append(block)
        target.close()
        assert len(list(read_blocks(torn))) == len(headers) + 1


def test_a_block_whose_moves_are_none_is_refused(block: Block) -> None:
    game = block.games[0]
    ranks = game.ranks.copy()
    ranks[-1] = 250
    with pytest.raises(Torn, match="no move of rank 250"):
        Reader().game(game._replace(ranks=ranks))


def test_two_programs_cannot_append_at_once(path: Path) -> None:
    target = Appender(path)
    with pytest.raises(BlockingIOError, match="another program"):
        Appender(path)
    target.close()


def by_python_chess(game: Game, chosen: Filter) -> list[tuple[list[tuple[int, int]], int, int]]:
    """Pieces from the mover's side, score and result of each position wanted."""
    board = board_of(game.fen)
    found = []
    for ply, move in enumerate(moves_of(game)):
        place = ply - game.opening
        is_quiet = board.is_castling(move) or not (board.is_capture(move) or move.promotion)
        is_wanted = chosen.noisy or (is_quiet and not board.is_check())
        if place >= chosen.skipped and is_wanted and abs(int(game.scores[place])) <= chosen.most_score:
            flip, sign = (0, 1) if board.turn else (56, -1)
            pieces = sorted(
                (square ^ flip, piece.piece_type - 1 + 8 * (piece.color != board.turn))
                for square, piece in board.piece_map().items()
            )
            found.append((pieces, sign * int(game.scores[place]), 1 + sign * (game.result - 1)))
        board.push(move)
    return found


def pieces_of(sample: np.void) -> list[tuple[int, int]]:
    codes = board_codes(np.array([sample]))[0]
    return [(square, int(codes[square]) - 1) for square in np.flatnonzero(codes).tolist()]


@pytest.mark.parametrize("chosen", [Filter(), Filter(noisy=True, most_score=32767), Filter(skipped=5, most_score=300)])
def test_positions_are_those_that_python_chess_finds(block: Block, chosen: Filter) -> None:
    reader = Reader(chosen)
    for game in block.games:
        found = [(pieces_of(one), int(one["score"]), int(one["result"])) for one in reader.game(game)]
        assert found == by_python_chess(game, chosen)


def test_every_tenth_game_is_kept_for_testing(path: Path, tmp_path: Path) -> None:
    """Whatever the order in which blocks were finished."""
    everything = read([path], every=10**6)
    parts = read([path], every=3)
    assert parts.games == 9 and len(everything.test) == 0
    assert len(parts.training) + len(parts.test) == len(everything.training)
    third = [game for found in read_blocks(path) for game in found.games][2::3]
    assert parts.test.tobytes() == b"".join(Reader().game(game).tobytes() for game in third)
    other = tmp_path / "other.games"
    other.write_bytes(b"".join(block.text for block in reversed(list(read_packed(path)))))
    assert sorted(one.tobytes() for one in read([other], every=7).test) == sorted(
        one.tobytes() for one in read([path], every=7).test
    )
    mixed = shuffled(everything.training, 1)
    assert sorted(one.tobytes() for one in mixed) == sorted(one.tobytes() for one in everything.training)
    assert mixed.tobytes() != everything.training.tobytes()


def test_moves_that_are_not_legal_are_not_ranked() -> None:
    arena = Arena(workers=1, hash_mb=1)
    game, decoder = np.zeros(1, game_dtype), np.zeros(1, decoder_dtype)
    moves = [chess.Move.from_uci("e2e4"), chess.Move.from_uci("e7e4")]
    with pytest.raises(ValueError, match="ply 1: e7e4 is not legal"):
        rank_game(arena.tables, decoder, game, chess.Board(), moves)


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.games"
    words = [str(path), "--nodes", "100", "--jobs", "2", "--games", "256"]
    script = ROOT / "bench/training/generate.py"
    with subprocess.Popen([sys.executable, script, *words], stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (path.exists() and read_headers(path)[0]):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    before = path.read_bytes()
    kept = {header["block"] for header in read_headers(path)[0]}
    assert kept and {header["network"] for header in read_headers(path)[0]} == {network_named("").name}
    done = run_bench("training/generate.py", *words)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(before[: read_headers(path)[1]][: len(before)])
    assert sorted(header["block"] for header in read_headers(path)[0]) == [0, 1, 2, 3]
    assert "256 games" in run_bench("training/generate.py", "--report", path).stdout
    blocks = list(read_blocks(path))
    path.unlink()
    with closing(Appender(path)) as target:  # as if HASH_MB had been another
        for block in blocks:
            target.append(block._replace(header={**block.header, "hash_mb": 8}))
    done = run_bench("training/generate.py", *words[:-1], "512")
    assert done.returncode == EXIT_BAD_INPUT and "rules" in done.stderr


def test_bad_input_is_one_line(tmp_path: Path, path: Path) -> None:
    torn = tmp_path / "torn.games"
    torn.write_bytes(path.read_bytes()[:-1])
    book = tmp_path / "book.epd"
    book.write_text("8/8/8/8/8/8/8/8 w - -\n")
    for words in (
        ["--report", torn],
        ["--report", tmp_path / "none.games"],
        [path, "--nodes", "100", "--network", "none"],  # played with other nodes
        [tmp_path / "new.games", "--book", book],
        [tmp_path / "no" / "folder.games"],
    ):
        done = run_bench("training/generate.py", *words)
        assert done.returncode == EXIT_BAD_INPUT, words
        assert done.stderr.startswith("generate.py: ") and done.stderr.count("\n") == 1, done.stderr


BOOK = REPOSITORY / "bench/training/books/2moves_v1.epd"


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("games") / "few.games"
    target = Appender(path)
    table = Table(Settings(seed=5, nodes=100, games=12, commit="none", book=""), Book())
    for number in range(2):
        target.append(table.play(number))
    target.close()
    return path


@pytest.fixture(scope="module")
def samples(games: Path) -> np.ndarray:
    return read([games]).training


def test_the_fast_value_is_the_one_by_definition(samples: np.ndarray) -> None:
    net = random_net(24, 3)
    found = values(net, samples, 2)
    for i in range(0, len(samples), 7):
        assert found[i] == pytest.approx(value(net, samples[i]), abs=1e-5)


def seen(pieces: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The features of a board, square and nibble of each piece, from both sides."""
    sample = np.zeros((), sample_dtype)
    sample["occupied"] = sum(1 << square for square, _ in pieces)
    for i, (_, nibble) in enumerate(sorted(pieces)):
        sample["pieces"][i >> 1] |= nibble << (4 * (i & 1))
    mine, others = features(sample[()])
    return sorted(mine), sorted(others)


def test_a_mirrored_board_has_the_same_features_and_an_exchange_of_sides_exchanges_them(samples: np.ndarray) -> None:
    for sample in samples[::11]:
        squares = [square for square in range(64) if int(sample["occupied"]) >> square & 1]
        pieces = [(square, int(sample["pieces"][i >> 1]) >> (4 * (i & 1)) & 15) for i, square in enumerate(squares)]
        plain = seen(pieces)
        assert seen([(square ^ 7, nibble) for square, nibble in pieces]) == plain
        assert seen([(square ^ 56, nibble ^ 8) for square, nibble in pieces]) == plain[::-1]


def test_buckets() -> None:
    assert [bucket(men) for men in (2, 4, 5, 8, 9, 28, 29, 32)] == [0, 0, 1, 1, 2, 6, 7, 7]


def test_the_gradient_is_that_of_the_error(samples: np.ndarray) -> None:
    net = Net(*(array.astype(np.float32) for array in random_net(8, 2)))
    order = np.arange(len(samples))
    found, squared = Gradient(8, 2).of(net, samples, order, COMMON_SHARE)
    mean = squared / len(samples)
    assert mean == pytest.approx(errors(net, samples, 2).common, rel=1e-4)
    dice = np.random.default_rng(1)
    row = features(samples[0])[0][2]
    for name, place in (("out", (7, 3)), ("out", (5, 11)), ("rows", (row, 5)), ("bias", (2,)), ("out_bias", (6,))):
        step = 0.005  # units clip, so a wide step measures another slope
        found_at = []
        for sign in (1, -1):
            moved = Net(*(array.copy() for array in net))
            getattr(moved, name)[place] += sign * step
            found_at.append(errors(moved, samples, 2).common)
        slope = (found_at[0] - found_at[1]) / (2 * step) / 2
        assert found[Net._fields.index(name)][place] == pytest.approx(slope, rel=0.03, abs=2e-6), name
    # the order of positions, and how many threads share them, change nothing but roundings
    other, _ = Gradient(8, 1).of(net, samples, dice.permutation(order), COMMON_SHARE)
    for one, two in zip(found, other, strict=True):
        assert np.allclose(one, two, atol=1e-6)


def test_the_gradient_is_that_of_the_twin(samples: np.ndarray) -> None:
    """One position after the other, by definition, in double precision; more of them than are taken at once."""
    net = random_net(8, 3)
    dice = np.random.default_rng(2)
    order = dice.permutation(len(samples))[:700]
    wanted = [np.zeros(array.shape) for array in net]
    rows, bias, out, out_bias = wanted
    squared = 0.0
    for i in order:
        sides = features(samples[i])
        sums = np.concatenate([net.bias + net.rows[side].astype(float).sum(axis=0) for side in sides])
        units = np.clip(sums, 0, 1)
        chosen = bucket(len(sides[0]))
        found = 1 / (1 + np.exp(-(net.out[chosen] @ units**2 + net.out_bias[chosen])))
        score = float(expected(samples[i]["score"]))
        off = found - (score + 0.3 * (samples[i]["result"] / 2 - score))
        squared += off * off
        slope = off * found * (1 - found)
        out[chosen] += slope * units**2
        out_bias[chosen] += slope
        back = slope * net.out[chosen] * 2 * units * (sums < 1)
        for side, part in zip(sides, np.split(back, 2), strict=True):
            bias += part
            np.add.at(rows, side, part)
    for threads in (1, 3):
        fast, error = Gradient(8, threads).of(net, samples, order, 0.3)
        assert error == pytest.approx(squared, rel=1e-5)
        for one, two in zip(fast, wanted, strict=True):
            assert np.allclose(one, two / len(order), rtol=1e-4, atol=1e-7)


def same_net(one: Net, two: Net) -> bool:
    return all(np.array_equal(mine, other) for mine, other in zip(one, two, strict=True))


def test_training_learns_and_is_the_same_again(samples: np.ndarray) -> None:
    plan = Plan(epochs=6, batch=128, rate=5e-3)
    begin = random_net(8, 1)
    seen: list[Epoch] = []
    net, epochs = fit(begin, samples, samples, plan, threads=1, on_epoch=seen.append)
    assert errors(net, samples, 1).common < 0.6 * errors(begin, samples, 1).common
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4, 5, 6] and seen == epochs
    assert epochs[-1].errors == errors(net, samples, 1)
    assert same_net(net, fit(begin, samples, samples, plan, threads=1)[0])


def test_a_step_is_that_of_adamw(samples: np.ndarray) -> None:
    """Two steps by the textbook, in double precision; weights shrink by a hundredth of the rate beside them."""
    rate = 0.01
    fast = random_net(8, 2)
    slow = [array.astype(float) for array in fast]
    means = [np.zeros_like(array) for array in slow]
    squares = [np.zeros_like(array) for array in slow]
    gradient = Gradient(8, 2)
    order = np.arange(len(samples))
    for step in (1, 2):
        slopes, _ = gradient.of(fast, samples, order, 0.1)
        gradient.follow(fast, rate)
        for i, slope in enumerate(slopes):
            means[i] += 0.1 * (slope - means[i])
            squares[i] += 0.001 * (slope.astype(float) ** 2 - squares[i])
            moved = means[i] / (np.sqrt(squares[i]) + 1e-8) * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            slow[i] = slow[i] * (1 - 0.01 * rate) - rate * moved
    for one, two, still in zip(fast, slow, random_net(8, 2), strict=True):
        assert np.allclose(one, two, atol=0.03 * rate)
        assert not np.allclose(one, still, atol=0.03 * rate)


def test_passes_see_the_same_positions_in_other_orders() -> None:
    first, again, second = order_of(100, 30, 1, 1), order_of(100, 30, 1, 1), order_of(100, 30, 1, 2)
    assert first.tolist() == again.tolist() != second.tolist()
    assert sorted(first) == sorted(second) and len(set(first.tolist())) == 30
    assert sorted(order_of(100, 100, 1, 3)) == list(range(100))


def test_the_state_of_another_run_is_refused(samples: np.ndarray, tmp_path: Path) -> None:
    state = tmp_path / "a.state.npz"
    begin, plan = random_net(4, 1), Plan(epochs=1, batch=128)
    fit(begin, samples, samples, plan, 1, state=state)
    for net, positions, other in (
        (begin, samples[1:], plan),
        (begin, samples, plan._replace(epochs=2)),
        (random_net(4, 2), samples, plan),
    ):
        with pytest.raises(ValueError, match="other positions or settings"):
            fit(net, positions, samples, other, 1, state=state)
    state.write_bytes(state.read_bytes()[:-100])
    with pytest.raises(ValueError, match="cannot go on"):
        fit(begin, samples, samples, plan, 1, state=state)


def test_training_that_is_killed_goes_on_to_the_same_weights(games: Path, tmp_path: Path) -> None:
    words = [str(games), "--hidden", "16", "--epochs", "100", "--batch", "100", "--threads", "1", "--save"]
    script = ROOT / "bench/training/train.py"
    state = tmp_path / "killed"
    with subprocess.Popen([sys.executable, script, *words, state], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("pass 3 "):
                process.send_signal(signal.SIGKILL)
                break
    assert list(state.glob("*.state.npz"))
    assert not list(state.glob("16-*[0-9].npz")), "it was killed before it had written the net"
    done = run_bench("training/train.py", *words, state)
    assert done.returncode == 0, done.stderr
    whole = run_bench("training/train.py", *words, tmp_path / "whole")
    passes = [[line.split(", held")[0] for line in out.stdout.splitlines() if "pass" in line] for out in (done, whole)]
    assert passes[0] == passes[1] and len(passes[0]) == 100
    nets = [load(next(folder.glob("16-*[0-9].npz"))) for folder in (state, tmp_path / "whole")]
    assert same_net(*nets)


def test_expected_scores_and_errors() -> None:
    assert expected(np.array([0, 400, -400])) == pytest.approx([0.5, 0.731059, 0.268941], abs=1e-6)
    sample = np.zeros(1, sample_dtype)
    sample["score"], sample["result"], sample["occupied"] = 400, 2, 1
    even = Net(*(np.zeros_like(array) for array in random_net(4, 1)))
    wanted = Errors((0.75 * 0.731059 + 0.25 - 0.5) ** 2, 0.231059**2, 0.25)
    assert errors(even, sample, 1) == pytest.approx(wanted, abs=1e-6)
    assert search_errors(sample).common < 1e-4, "a factor of its own makes a score fit"


def test_a_net_survives_its_file(tmp_path: Path) -> None:
    net = random_net(5, 1)
    net.save(tmp_path / "net.npz", made_by="a test")
    assert all(np.array_equal(one, two) for one, two in zip(load(tmp_path / "net.npz"), net, strict=True))
    (tmp_path / "other.npz").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match="is no net"):
        load(tmp_path / "other.npz")
    net._replace(bias=np.zeros(4, np.float32)).save(tmp_path / "wrong.npz")
    with pytest.raises(ValueError, match="other shapes"):
        load(tmp_path / "wrong.npz")


def test_the_search_evaluates_by_the_net(samples: np.ndarray, tmp_path: Path) -> None:
    net = random_net(NETWORK_HIDDEN, 4)
    write_network(net, tmp_path / "some.net", {})
    network = read_network(tmp_path / "some.net")
    rounded = dequantised(network.record)
    assert same_net(load(tmp_path / "some.net"), rounded)
    tables = np.zeros(1, tables_dtype)
    make_tables(tables, network)
    position, scratch = np.zeros(1, position_dtype), np.zeros(1, evaluation_dtype)
    compared = 0
    for sample, codes in zip(samples[::40], board_codes(samples[::40]), strict=True):
        board = chess.Board(None)
        for square in range(64):
            if codes[square]:
                board.set_piece_at(square, chess.Piece(int(codes[square]) & 7, not codes[square] & 8))
        if not all(board.pieces(chess.PAWN, color) for color in chess.COLORS):
            continue  # what is known of endings scales these
        compared += 1
        set_position(tables, position, board)
        found = evaluate_position_by_network(*(array.ctypes.data for array in (tables, scratch, position)))
        assert found == pytest.approx(UNIT * value(rounded, sample), abs=1.01), "but for the division"
        assert found == pytest.approx(UNIT * value(net, sample), abs=0.1 * UNIT), "random outputs are coarse in 1/64"
    assert compared > 10


@pytest.mark.slow
def test_the_command_trains_saves_and_reports(games: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    done = run_bench(
        "training/train.py", games, "--hidden", f"4,{NETWORK_HIDDEN}", "--epochs", "2", "--positions", "300,600",
        "--save", tmp_path / "nets", "--json", rows, "--batch", "100",
        "--picture", tmp_path / "curves.png",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "24 games" in done.stdout and "the search's own scores" in done.stdout
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [(row["hidden"], row["positions"]) for row in found] == [
        (4, 300),
        (4, 600),
        (NETWORK_HIDDEN, 300),
        (NETWORK_HIDDEN, 600),
    ]
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    net = load(tmp_path / f"nets/{NETWORK_HIDDEN}-600.npz")
    assert errors(net, read([games]).test, 1).common == pytest.approx(found[-1]["error"], rel=1e-4)
    more = run_bench(
        "training/train.py", games, "--epochs", "1", "--batch", "100", "--rate", "0.0001",
        "--start", tmp_path / f"nets/{NETWORK_HIDDEN}-600.net", "--save", tmp_path / "more",
    )  # fmt: skip
    assert more.returncode == 0, more.stderr
    assert "pass 1 of 1" in more.stdout
    starts = [tmp_path / f"nets/{NETWORK_HIDDEN}-600.net", *(tmp_path / "more").glob("*[0-9].npz")]
    done = run_bench("training/train.py", games, "--epochs", "0", "--start", *starts, "--save", tmp_path / "mean")
    assert done.returncode == 0, done.stderr
    ends = [load(path) for path in (*starts, *(tmp_path / "mean").glob("*.npz"))]
    for begin, end, mean in zip(*ends, strict=True):
        assert np.allclose(mean, (begin + end) / 2, atol=1e-6)
    # the values of both networks are as large as the start's
    made = [*(tmp_path / "more").glob("*.net"), *(tmp_path / "mean").glob("*.net")]
    assert len(made) == 2 and all(abs(unit_of(path) - UNIT) < UNIT / 10 for path in made)
    played = run_bench(
        "match/quick.py", "--first-evaluation", tmp_path / f"nets/{NETWORK_HIDDEN}-600.net", "--second", "modern",
        "--book", BOOK, "--games", "12", "--nodes", "150", "--jobs", "2",
    )  # fmt: skip
    assert played.returncode == 0, played.stderr
    assert "12 games, pairs" in played.stdout and "pairs [0, 0, 6, 0, 0]" not in played.stdout


def test_bad_training_is_one_line(games: Path, tmp_path: Path) -> None:
    random_net(5, 1).save(tmp_path / "narrow.npz")
    mine = tmp_path / f"{NETWORK_HIDDEN}-100.npz"
    random_net(NETWORK_HIDDEN, 1).save(mine)
    for words, name in (
        ([games, "--positions", "999999999"], "positions to train on"),
        ([tmp_path / "none.games"], "none.games"),
        ([games, "--start", tmp_path / "none.npz"], "none.npz"),
        ([games, "--start", tmp_path / "narrow.npz"], "5 hidden units, not"),
        ([games, "--epochs", "0"], "name them at --start"),
        ([games, "--positions", "100", "--start", mine, "--save", tmp_path], "would be replaced"),
    ):
        done = run_bench("training/train.py", *words)
        assert done.returncode == EXIT_BAD_INPUT
        assert done.stderr.count("\n") == 1 and name in done.stderr, done.stderr


def test_a_manifest_describes_files_and_its_blocks_are_played_again(tmp_path: Path) -> None:
    path, folder = tmp_path / "some.games", tmp_path / "kept"
    folder.mkdir()
    words = ["--nodes", "100", "--jobs", "1", "--games", "128"]
    assert run_bench("training/generate.py", path, *words).returncode == 0
    for _ in range(2):  # a file that is there already is replaced
        done = run_bench("training/generate.py", "--manifest", path, "--into", folder)
        assert done.returncode == 0 and "some.games: 128 games" in done.stdout, done.stderr
    (row,) = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    assert row["blocks"] == {header["commit"]: [[0, 1]] for header in read_headers(path)[0]}
    assert row["bytes"] == path.stat().st_size and row["usable"] == len(read([path], every=10**6).training)
    assert row["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest() and row["nodes"] == 100
    (kept,) = read_blocks(folder / "manifest.games")
    first, second = read_blocks(path)
    assert same(kept, first)

    done = run_bench("training/generate.py", "--again", "--into", folder)
    assert done.returncode == 0 and "1 blocks the same, 0 different, 0 not played" in done.stdout, done.stderr
    other = tmp_path / "other.games"
    shorter = first.games[0]._replace(ranks=first.games[0].ranks[:-1], scores=first.games[0].scores[:-1])
    older = {**second.header, "hash_mb": 8}
    other.write_bytes(pack(first._replace(games=[shorter, *first.games[1:]])) + pack(second._replace(header=older)))
    done = run_bench("training/generate.py", "--again", other)
    assert done.returncode == 1 and "0 blocks the same, 1 different, 1 not played" in done.stdout, done.stderr
    done = run_bench("training/generate.py", "--manifest", other, "--into", folder)
    assert done.returncode == EXIT_BAD_INPUT and "not of one run" in done.stderr


def test_of_each_file_of_the_manifest_one_block_in_a_thousand_is_kept() -> None:
    rows = [json.loads(line) for line in (FOLDER / "manifest.jsonl").read_text().splitlines()]
    blocks = list(read_blocks(FOLDER / "manifest.games"))
    assert len(rows) > 5 and all(len(Reader().block(block)[0]) for block in blocks)
    assert (FOLDER / "manifest.games").stat().st_size < 12_000 * len(blocks)
    found = 0
    for row in (row for row in rows if "seed" in row):  # no block of another file can be compared
        ranges = [pair for pairs in row["blocks"].values() for pair in pairs]
        own = sum(
            all(row[name] == block.header[name] for name in row.keys() & block.header.keys())
            and any(low <= block.header["block"] <= high for low, high in ranges)
            for block in blocks
        )
        assert own == math.ceil(sum(high - low + 1 for low, high in ranges) / 1000), row["file"]
        found += own
    assert found == len(blocks)
