"""Completion scripts: complete, and understood by the shells themselves (those that are installed)."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest
from programs import run_here

from psearch.faces.cli.command_list import COMMANDS, SEARCH, load
from psearch.faces.cli.commands.completion_command import SHELLS


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
        (["startpos", "--mov"], {"--movetime", "--moves"}),
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
        words = [word, f"{tmp_path}/ga"]
        command = ["bash", "-c", BASH, "bash", str(scripts["bash"]), "psearch", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert {Path(line).name for line in done.stdout.split()} == expected


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
