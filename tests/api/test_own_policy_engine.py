"""A split policy from a file, from Python."""

from __future__ import annotations

from pathlib import Path

import chess
import chess.engine
import pytest
from paths import REPOSITORY

import psearch
from psearch.settings import SETTINGS

FILE = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
DEPTH = chess.engine.Limit(depth=3)


def test_an_engine_is_made_with_it_and_may_change_it() -> None:
    with psearch.Engine(policy=FILE, hash_mb=1) as engine:
        assert engine.analyse(chess.Board(), DEPTH)["depth"] == 3
        engine.configure({"Policy": "ybw"})
        assert engine.analyse(chess.Board(), DEPTH)["depth"] == 3
        with pytest.raises(psearch.PsearchError, match="a file as Policy are for all searches"):
            engine.analyse(chess.Board(), DEPTH, options={"Policy": FILE})
        engine.configure({"Policy": FILE})
        assert engine.analyse(chess.Board(), DEPTH)["depth"] == 3


def test_search_takes_it() -> None:
    assert psearch.search("startpos", policy=FILE, depth=3, hash_mb=1).info.depth == 3


def test_a_mistake_is_raised_before_there_are_workers(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import nothing_of_the_kind\n")
    with pytest.raises(psearch.PsearchError, match=r"broken\.py:1: ModuleNotFoundError"):
        psearch.Engine(policy=str(file), hash_mb=1)


@pytest.mark.slow
def test_a_file_that_was_mended_is_taken_when_it_is_named_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    with psearch.Engine(hash_mb=1) as engine:
        board = chess.Board()
        engine.analyse(board, chess.engine.Limit(depth=4))
        filled = engine._searcher.supervisor.arena.fill_permille()
        for _ in range(2):
            with pytest.raises(psearch.PsearchError, match="it replaces nothing"):
                engine.configure({"Policy": str(file)})
        assert engine._searcher.supervisor.arena.fill_permille() == filled, "the table is still there"
        file.write_text(Path(FILE).read_text())
        engine.configure({"Policy": str(file)})
        first = engine._searcher.supervisor.arena.kernels
        file.write_text(Path(FILE).read_text().replace("LARGE = 5", "LARGE = 7"))
        engine.configure({"SplitDepth": 2})
        assert engine._searcher.supervisor.arena.kernels == first, "nobody has named it"
        engine.configure({"Policy": str(file)})
        assert engine._searcher.supervisor.arena.kernels != first
        assert engine.analyse(board, chess.engine.Limit(depth=3))["depth"] == 3


def test_the_option_takes_names_and_files() -> None:
    assert SETTINGS["policy"].of_text("YBW") == "ybw"
    assert SETTINGS["policy"].of_text("/home/me/My_Policy.py") == "/home/me/My_Policy.py"
    with pytest.raises(ValueError, match=r"Policy must be one of serial, .*, or a file, not 'no'"):
        SETTINGS["policy"].of_text("no")
    assert SETTINGS["policy"].of_chess_engine().parse(FILE) == FILE
