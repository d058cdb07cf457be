"""`help` names every command."""

from __future__ import annotations

from psearch.faces.uci.go import _WORDS
from psearch.faces.uci.uci_conversation import HELP, Uci


def test_it_names_every_command_and_every_word_of_go() -> None:
    uci = Uci(print)
    said = HELP.replace(",", " ").split()
    protocol = {*uci._commands, *uci._own_commands} - {"uci", "register", "ponderhit", "help"}
    assert protocol <= set(said)
    assert set(_WORDS) <= set(said)


def test_it_is_printed_at_once() -> None:
    said: list[str] = []
    Uci(said.append).run(["help"])
    assert said == [HELP]
