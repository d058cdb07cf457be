"""Completion of the command line in bash, zsh and fish: `psearch completion SHELL` prints the script.

The scripts are made by shtab from the parsers themselves, so that an option is completed as soon as it exists.
"""

from __future__ import annotations

import argparse
import re

import shtab

from psearch.cli.common import Commands

_FILES = ("FILE", "PNG")
_FOLDERS = ("PATH",)


def completion_script(shell: str, search: argparse.ArgumentParser, commands: Commands) -> str:
    """The script for one of `cli_common.SHELLS`.

    search: the parser of the search itself, whose options go without a command; commands: all others by name.
    """
    tree = argparse.ArgumentParser(prog="psearch", add_help=False, description=_first_sentence(search))
    _copy_options(search, tree)
    branches = tree.add_subparsers(dest="command")
    for name, (parser_of, _) in commands.items():
        parser = parser_of()
        branch = branches.add_parser(name, add_help=False, help=_first_sentence(parser))
        _copy_options(parser, branch)
        _copy_arguments(parser, branch)
    return shtab.complete(tree, shell=shell)


def _copy_options(source: argparse.ArgumentParser, target: argparse.ArgumentParser) -> None:
    """The options of a parser. The search's FEN is no argument here: its first word would hide the commands."""
    for action in source._actions:
        if action.option_strings:
            target._add_action(_with_files(action))


def _copy_arguments(source: argparse.ArgumentParser, target: argparse.ArgumentParser) -> None:
    for action in source._actions:
        if not action.option_strings:
            target._add_action(_with_files(action))


def _with_files(action: argparse.Action) -> argparse.Action:
    """Tell shtab which values are names of files; by the metavar, which says so to people."""
    if action.metavar in _FILES:
        action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's own convention
    elif action.metavar in _FOLDERS:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # shtab's own convention
    return action


def _first_sentence(parser: argparse.ArgumentParser) -> str:
    """What a command does, or the beginning of it: there is one line for it."""
    text = " ".join((parser.description or "").split())
    return re.split(r"[.:;] ", text)[0].rstrip(".")
