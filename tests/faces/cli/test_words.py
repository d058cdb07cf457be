"""Words of the command line: numbers, slips, and completion scripts, which the shells themselves run."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import run_here

from psearch import __version__
from psearch.faces.cli.arguments import decimal_number, duration, seconds, whole_number, worker_counts
from psearch.faces.cli.command_list import COMMANDS, SEARCH, load
from psearch.faces.cli.commands.completion_command import SHELLS

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
        (["--mo", "5", "startpos"], "no option --mo: did you mean --movetime or --movestogo or --moves?"),
        (["--cores", "2", "startpos"], "no option --cores: did you mean --threads?"),
        (["--fen", START], "no option --fen: give the position without an option"),
        (["--epd", "x.epd"], "no option --epd, which belongs to psearch perft"),
        (
            ["analyse", "--searchmoves", "2", "x.pgn"],
            "no option --searchmoves of psearch analyse, which belongs to psearch FEN",
        ),
        (["speedup", "--second", "2"], "no option --second of psearch speedup: did you mean --seconds?"),
        (["–depth", "3", "startpos"], "no option '–depth': did you mean `psearch --depth 3 startpos`?"),  # noqa: RUF001
        (["--hlep"], "no option --hlep: did you mean --help?"),
        (["analyse", "--infinite", "x.pgn"], "no option --infinite of psearch analyse, which belongs to psearch FEN"),
        (["--binc", "1s", "startpos"], "White is to move: give --wtime"),
        (["--nodes", "1.5", "startpos"], "argument --nodes: must be a whole number from 1 to"),
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
            "which psearch does not open: give the position itself, `psearch '8/8/8/8/3k4/8/8/3K3R w - - 0 1'`",
        ),
        (["https://lichess.org/abcdefgh"], "give the position itself, `psearch FEN`"),
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
    assert run(*f"position startpos moves {line}".split())[2].split("`")[1] == f"psearch --moves '{line}'"
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
    """A line says so; then it is as if the command had been given."""
    path = tmp_path / name
    path.write_text("# no positions in here\n")
    status, out, err = run("--depth", "3", str(path))
    said, answer = err.splitlines()
    assert (status, out, said) == (2, "", f"psearch: {path} is a file: running psearch analyse")
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


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("+7", 7), ("-3", -3), ("007", 7), ("1e1", 10)])
def test_whole_numbers(text: str, number: int) -> None:
    assert whole_number(-5, 10)(text) == number


@pytest.mark.parametrize("text", ["", "1_0", "٣", "1.0", "11", "-6", " 1", "2e1", "1e-1", "9" * 31])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="must be a whole number from -5 to 10, not "):
        whole_number(-5, 10)(text)


@pytest.mark.parametrize(("text", "number"), [("1", 1.0), (".5", 0.5), ("2.", 2.0), ("0.25", 0.25)])
def test_decimal_numbers(text: str, number: float) -> None:
    assert decimal_number(0, 2)(text) == number


@pytest.mark.parametrize("text", ["", ".", "nan", "inf", "1e0", "-0.5", "2.1", "1_0", "٣"])
def test_what_is_no_decimal_number(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="must be a number from 0 to 2, not "):
        decimal_number(0, 2)(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1500", 1500), ("5s", 5000), (".5s", 500), ("1.5s", 1500), ("500ms", 500), ("2m", 120_000), ("2min", 120_000)],
)
def test_times(text: str, milliseconds: int) -> None:
    """A number alone is milliseconds, or seconds where seconds are asked for."""
    assert duration(1, 10**6)(text) == (milliseconds, not text.isdigit())
    if not text.isdigit():
        assert seconds(0.01, 1000)(text) == milliseconds / 1000
    assert seconds(0.01, 10)("0.25") == 0.25
    assert duration(1, 10**7)("1h") == (3_600_000, True)


@pytest.mark.parametrize("text", ["", "s", "5 s", "5S", "1.5", "-5s", "1e3s", "5sec", "٣s", "nan", "0", "0.1ms", "2h"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"must be (a time like|from 1 to 1000000 milliseconds)"):
        duration(1, 10**6)(text)


@pytest.mark.parametrize("text", ["", "5x", "1ms", "1h", "11", "-1"])
def test_what_is_no_number_of_seconds(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"must be (a number )?from 0.01 to 10"):
        seconds(0.01, 10)(text)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("1", [1]),
        ("1,2,4", [1, 2, 4]),
        ("1,2,4,...,1024", [2**n for n in range(11)]),
        ("1,2,4,…,16", [1, 2, 4, 8, 16]),
        ("1, 2, ..., 8", [1, 2, 4, 8]),
        ("3,...,24,100", [3, 6, 12, 24, 100]),
        ("4,...,4", [4]),
        ("8,2,2", [2, 8]),
    ],
)
def test_worker_counts(text: str, counts: list[int]) -> None:
    assert worker_counts(text) == counts


@pytest.mark.parametrize(
    "text", ["", "0", "1025", "1,", "...", "1,...", "...,4", "1,...,...,8", "3,...,8", "8,...,2", "x", "1..8", "1-4"]
)
def test_bad_worker_counts(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        worker_counts(text)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One file for each shell, named by it."""
    folder = tmp_path_factory.mktemp("completion")
    made = {}
    for shell in SHELLS:
        made[shell] = folder / shell
        made[shell].write_text(run_here("completion", shell).stdout)
    return made


def declared() -> dict[str, list[argparse.Action]]:
    """Every argument that `main` knows, by command; the search's under an empty name."""

    class Recorder(argparse.ArgumentParser):
        """Keeps what `add_argument` made; groups hand theirs on to `_add_action`."""

        def __init__(self) -> None:
            self.actions: list[argparse.Action] = []
            super().__init__()

        def _add_action(self, action: argparse.Action) -> argparse.Action:
            self.actions.append(action)
            return super()._add_action(action)

    found = {}
    for name in ("", *COMMANDS):
        recorder = Recorder()
        load(name or SEARCH).add_arguments(recorder)
        found[name] = recorder.actions
    return found


@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_is_left_out(scripts: dict[str, Path], shell: str) -> None:
    script = scripts[shell].read_text()
    for name, actions in declared().items():
        assert name in script
        for action in actions:
            for option in action.option_strings:
                assert (option.lstrip("-") if shell == "fish" else option) in script, (name, option)
            for choice in action.choices or ():
                assert str(choice) in script


BASH = r"""
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_shtab_psearch psearch "${@: -1}" "${@: -2:1}"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ana"], {"analyse"}),
        (["--multi"], {"--multipv"}),
        (["--policy", "k"], {"knuth", "kannan"}),
        (["simulate", "--policy", "k"], {"knuth", "kannan"}),
        (["startpos", "--mov"], {"--movetime", "--moves", "--movestogo"}),
        (["analyse", "--js"], {"--json"}),
        (["completion", ""], set(SHELLS)),
        (["simulate", "--vali"], {"--validate"}),
        ([""], set(COMMANDS)),
    ],
)
def test_bash(scripts: dict[str, Path], words: list[str], expected: set[str]) -> None:
    command = ["bash", "-c", BASH, "bash", str(scripts["bash"]), "psearch", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()) == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_files_in_bash(scripts: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "games.pgn").touch()
    (tmp_path / "gambit").mkdir()
    for word, expected in (("analyse", {"games.pgn", "gambit"}), ("--syzygy", {"gambit"})):
        command = ["bash", "-c", BASH, "bash", str(scripts["bash"]), "psearch", *[word, f"{tmp_path}/ga"]]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert {Path(line).name for line in done.stdout.split()} == expected
    assert "complete -o bashdefault -o default -F _shtab_psearch psearch" in scripts["bash"].read_text()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_it(scripts: dict[str, Path]) -> None:
    subprocess.run(["zsh", "-n", str(scripts["zsh"])], check=True, timeout=60)
    assert scripts["zsh"].read_text().startswith("#compdef psearch\n")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ana", {"analyse"}),
        ("--multi", {"--multipv"}),
        ("--policy k", {"knuth", "kannan"}),
        ("analyse --js", {"--json"}),
    ],
)
def test_fish(scripts: dict[str, Path], line: str, expected: set[str]) -> None:
    command = ["fish", "-c", f"source {scripts['fish']}; complete -C 'psearch {line}'"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert {row.split("\t")[0] for row in done.stdout.splitlines()} == expected
