"""The engine for Python programs, with python-chess's types and habits (docs/guides/api.md).

Begin with `blocking`, which has `psearch.Engine` and its background searches, and `asynchronous`, which has its methods
on asyncio. `question` checks the arguments of a search and converts its result. The options are those of
`psearch.options`; `psearch.searcher` runs the search. `counting` has perft and the static evaluation.
"""

from __future__ import annotations

import logging
import sys

LOG = logging.getLogger("psearch")
"""Logger of the API: reports problems that were solved, such as workers that were lost and replaced."""


class _Unconfigured(logging.Handler):
    """A handler for programs without logging, where Python would write the message without the name of psearch."""

    def emit(self, record: logging.LogRecord) -> None:
        if LOG.handlers == [self] and not logging.getLogger().handlers and sys.stderr is not None:
            print(f"psearch: {record.getMessage()}", file=sys.stderr)


LOG.addHandler(_Unconfigured(logging.WARNING))
