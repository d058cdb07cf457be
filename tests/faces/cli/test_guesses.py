"""What the command line makes of words that are nearly right."""

from __future__ import annotations

from pathlib import Path

import pytest

from psearch import __version__
from psearch.faces.cli import main as cli
from psearch.faces.cli.command_list import COMMANDS

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


def outcome(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    """Status, stdout, stderr."""
    try:
        status: object = cli.main(words)
    except SystemExit as leaving:
        status = leaving.code
    return status, *capsys.readouterr()


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
        (["hello"], "bad FEN: 'hello' has 1 field, not 2 to 6"),
        (["-\x1b[31m", "startpos"], "no option '-\\x1b[31m' (see psearch --help)"),
    ],
)
def test_a_mistake_is_told_with_what_was_meant(
    capsys: pytest.CaptureFixture[str], words: list[str], answer: str
) -> None:
    status, out, err = outcome(capsys, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("psearch: ")
    assert answer in err


@pytest.mark.parametrize("words", [["-v"], ["-V"], ["--version"]])
def test_the_version_by_any_name(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert outcome(capsys, *words) == (0, f"psearch {__version__}\n", "")


@pytest.mark.parametrize(("words", "same"), [([], []), (["analyze"], ["analyse"]), *(([c], [c]) for c in COMMANDS)])
def test_help_is_a_command(capsys: pytest.CaptureFixture[str], words: list[str], same: list[str]) -> None:
    assert outcome(capsys, "help", *words) == outcome(capsys, *same, "--help")


def test_other_names_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, "analyze") == outcome(capsys, "analyse")
    assert outcome(capsys, "search") == outcome(capsys, "--depth", "1")
    assert "no position given" in outcome(capsys, "search")[2]


@pytest.mark.parametrize("name", ["game.pgn", "suite.EPD", "positions.fen", "notes"])
def test_a_file_is_analysed(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    """So says a line; then it is as if the command had been given."""
    path = tmp_path / name
    path.write_text("# no positions in here\n")
    status, out, err = outcome(capsys, "--depth", "3", str(path))
    said, answer = err.splitlines()
    assert (status, out, said) == (2, "", f"psearch: {path} is for psearch analyse: analysing")
    assert [answer] == outcome(capsys, "analyse", "--depth", "3", str(path))[2].splitlines()


def test_files_named_like_fields_of_a_fen(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("w", "-", "startpos"):
        (tmp_path / name).write_text("")
    mated = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w - - 1 3"
    assert outcome(capsys, *mated.split()) == (0, "checkmate: White is mated\n", "")
    assert "move 1: 'Ke2'" in outcome(capsys, "--moves", "Ke2", "startpos")[2]


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = str(tmp_path / "gone.pgn")
    said = outcome(capsys, missing)[2]
    assert said.startswith(f"psearch: cannot read {missing}: No such file") and said.count("\n") == 1
