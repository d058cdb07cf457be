"""What ends the match with one line."""

from __future__ import annotations

import argparse
from typing import NoReturn


class MatchError(Exception):
    """Bad input, or an engine that cannot be started."""


class Parser(argparse.ArgumentParser):
    """Raises MatchError instead of printing the usage; keeps the line breaks of the description."""

    def __init__(self, description: str | None) -> None:
        super().__init__(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )

    def error(self, message: str) -> NoReturn:
        raise MatchError(message)
