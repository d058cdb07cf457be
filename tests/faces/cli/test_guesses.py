"""What the command line makes of words that are nearly right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from psearch import __version__
from psearch.faces.cli.command_list import COMMANDS

MATED = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w - - 1 3"
Run = Callable[..., tuple[int, str, str]]
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["anlyse", "x.pgn"], "no command 'anlyse': did you mean `psearch analyse x.pgn`?"),
        (["Perft", "3", "startpos"], "no command 'Perft': did you mean `psearch perft 3 startpos`?"),
        (["simul", "--workers", "1,2"], "no command 'simul': did you mean `psearch simulate --workers 1,2`?"),
        (["--movetime", "9s", "anlyse", "a b"], "did you mean `psearch analyse --movetime 9s 'a b'`?"),
        (["anlyse", "x" * 500], f"did you mean `psearch analyse {'x' * 101}...`?"),
        (["help", "anlyse"], "did you mean `psearch help analyse`?"),
        (["hepl"], "did you mean `psearch help`?"),
        (["help", "chess"], "no command 'chess' (see psearch help)"),
        (["Startpos"], "no position 'Startpos': did you mean `psearch startpos`?"),
        (["--depth", "3", "start"], "did you mean `psearch --depth 3 startpos`?"),
        (
            ["--threads", "2", "perft", "3", "startpos"],
            "the command comes first: `psearch perft --threads 2 3 startpos`",
        ),
        (
            ["my.py", "--depth", "3"],
            "'my.py' is no position: did you mean `psearch game my.py`, `psearch --policy my.py startpos` or "
            "`psearch --with my.py startpos`?",
        ),
        (["--time", "5", "startpos"], "no option --time: did you mean --movetime?"),
        (["--movtime", "5", "startpos"], "no option --movtime: did you mean --movetime?"),
        (["--movtime=5", "startpos"], "no option --movtime: did you mean --movetime?"),
        (["-depth", "5", "startpos"], "no option -depth: did you mean --depth?"),
        (["--mul", "5", "startpos"], "no option --mul: did you mean --multipv?"),
        (["--mo", "5", "startpos"], "no option --mo: did you mean --movetime or --moves?"),
        (["--cores", "2", "startpos"], "no option --cores: did you mean --threads?"),
        (["--fen", START], "no option --fen: the position stands by itself"),
        (["--epd", "x.epd"], "no option --epd, which belongs to psearch perft"),
        (
            ["analyse", "--multipv", "2", "x.pgn"],
            "no option --multipv of psearch analyse, which belongs to psearch FEN",
        ),
        (["speedup", "--second", "2"], "no option --second of psearch speedup: did you mean --seconds?"),
        (["--hlep"], "no option --hlep: did you mean --help?"),
        (["analyse", "--infinite", "x.pgn"], "no option --infinite of psearch analyse: it is of UCI's go"),
        (["--mate", "3", "startpos"], "no option --mate: it is of UCI's go"),
        (["--depth", "–", "startpos"], "not '–'"),  # noqa: RUF001
        (["--depth", "a\\b", "startpos"], "not 'a\\b'"),
        (["startpos", "moves", "e2e4"], "did you mean `psearch --moves e2e4`?"),
        (["startpos moves e2e4 e7e5"], "did you mean `psearch --moves 'e2e4 e7e5'`?"),
        (["position", "startpos", "moves", "d2d4"], "did you mean `psearch --moves d2d4`?"),
        (["fen", *START.split(), "moves", "d2d4"], f"did you mean `psearch --moves d2d4 '{START}'`?"),
        (["startpos e2e4"], "did you mean `psearch --moves e2e4`?"),
        (["e4 e5"], "did you mean `psearch --moves 'e4 e5'`?"),
        (["1. e4 e5 2. Nf3"], "did you mean `psearch --moves '1. e4 e5 2. Nf3'`?"),
        (["d4"], "did you mean `psearch --moves d4`?"),
        (["e7e8Q"], "did you mean `psearch --moves e7e8Q`?"),
        (
            ["https://lichess.org/analysis/8/8/8/8/3k4/8/8/3K3R_w_-_-_0_1"],
            "is an address, which is not read: psearch takes the position, `psearch '8/8/8/8/3k4/8/8/3K3R w - - 0 1'`",
        ),
        (["https://lichess.org/abcdefgh"], "psearch takes the position, `psearch FEN`"),
        (["4k3/8/8/8/8/8/8/4K2 w - -"], "row 8 (rank 1), '4K2': 7 squares, not 8"),
        (["analyse", "--", "-gone.pgn"], "cannot read -gone.pgn: No such file"),
        (["perft", "--", "-3", "startpos"], "not '-3'"),
        (["game", "--", "-gone.py"], "'-gone.py'"),
        (["hello"], "bad FEN: 'hello' has 1 field, not 2 to 6"),
        (["-\x1b[31m", "startpos"], "no option '-\\x1b[31m' (see psearch --help)"),
    ],
)
def test_a_mistake_is_told_with_what_was_meant(run: Run, words: list[str], answer: str) -> None:
    status, out, err = run(*words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("psearch: ")
    assert answer in err


@pytest.mark.parametrize(
    "text",
    [
        f'"{MATED}"',
        f"fen {MATED}",
        f"position fen {MATED};",
        f'[FEN "{MATED}"]',
        MATED.replace(" ", "_"),
        MATED.replace("-", "–"),  # noqa: RUF001
        MATED.replace(" - ", " KQkq ", 1),
        f'{MATED} bm a1; id "x";',
    ],
)
def test_positions_as_other_programs_write_them(run: Run, text: str) -> None:
    for words in ([text], text.split()):
        assert run(*words) == (0, "checkmate: White is mated\n", "")


def test_moves_that_are_proposed_are_understood(run: Run) -> None:
    line = "f2f3 e7e5 g2g4 d8h4"
    proposed = run(*f"position startpos moves {line}".split())[2].split("`")[1]
    assert proposed == f"psearch --moves '{line}'"
    assert run("--moves", line) == (0, "checkmate: White is mated\n", "")


@pytest.mark.parametrize("words", [["-v"], ["-V"], ["--version"]])
def test_the_version_by_any_name(run: Run, words: list[str]) -> None:
    assert run(*words) == (0, f"psearch {__version__}\n", "")


@pytest.mark.parametrize(("words", "same"), [([], []), (["analyze"], ["analyse"]), *(([c], [c]) for c in COMMANDS)])
def test_help_is_a_command(run: Run, words: list[str], same: list[str]) -> None:
    assert run("help", *words) == run(*same, "--help")


def test_other_names_of_commands(run: Run) -> None:
    assert run("analyze") == run("analyse")
    assert run("search") == run("--depth", "1")
    assert "no position given" in run("search")[2]


@pytest.mark.parametrize("name", ["game.pgn", "suite.EPD", "positions.fen", "notes"])
def test_a_file_is_analysed(run: Run, tmp_path: Path, name: str) -> None:
    """So says a line; then it is as if the command had been given."""
    path = tmp_path / name
    path.write_text("# no positions in here\n")
    status, out, err = run("--depth", "3", str(path))
    said, answer = err.splitlines()
    assert (status, out, said) == (2, "", f"psearch: {path} is for psearch analyse: analysing")
    assert [answer] == run("analyse", "--depth", "3", str(path))[2].splitlines()


def test_files_named_like_fields_of_a_fen(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("w", "-", "startpos"):
        (tmp_path / name).write_text("")
    mated = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w - - 1 3"
    assert run(*mated.split()) == (0, "checkmate: White is mated\n", "")
    assert "move 1: 'Ke2'" in run("--moves", "Ke2", "startpos")[2]


def test_a_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    missing = str(tmp_path / "gone.pgn")
    said = run(missing)[2]
    assert said.startswith(f"psearch: cannot read {missing}: No such file") and said.count("\n") == 1
