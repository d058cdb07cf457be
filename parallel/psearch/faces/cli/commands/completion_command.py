"""`psearch completion SHELL`: print a script that completes the command line in bash, zsh or fish.

shtab makes the script from the arguments that the commands declare, so a new option needs no change here.
"""

from __future__ import annotations

import argparse
from typing import Any

from psearch.faces.cli.command_list import COMMANDS, load
from psearch.faces.cli.commands import search_command
from psearch.faces.cli.signals import Signals
from psearch.settings import SPLITTING_POLICIES, Option

SHELLS = ("bash", "zsh", "fish")

DESCRIPTION = """\
Print a script that lets the shell complete psearch's commands, options and file names."""

EXAMPLES = """\
examples:
  eval "$(psearch completion bash)"            put this line into ~/.bashrc
  psearch completion zsh > ~/.zfunc/_psearch   a folder in $fpath
  psearch completion fish > ~/.config/fish/completions/psearch.fish"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


class _Tree(argparse.ArgumentParser):
    """Parser that tells shtab which values are file names, and which are policies, judging by the metavar."""

    def add_argument(self, *names: Any, **details: Any) -> argparse.Action:
        import shtab

        action = super().add_argument(*names, **details)
        if action.metavar in ("FILE", "PNG"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's own convention
        elif action.metavar == "PATH":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # shtab's own convention
        declared = getattr(action.type, "__self__", None)
        if isinstance(declared, Option) and declared.choices:  # other values are allowed, too
            action.choices = declared.choices
        elif action.metavar == "P,Q":
            action.choices = SPLITTING_POLICIES
        return action


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Print the script."""
    import shtab

    tree = _Tree(prog="psearch", description="parallel chess search")
    # without the search's FEN: its first word would hide the commands
    search_command.add_options(tree)
    branches = tree.add_subparsers(dest="command")
    for name, summary in COMMANDS.items():
        load(name).add_arguments(branches.add_parser(name, help=summary))
    # files, such as one with a policy, where no name matches
    print(shtab.complete(tree, shell=options.shell).replace("-o bashdefault", "-o bashdefault -o default"), end="")
    return 0
