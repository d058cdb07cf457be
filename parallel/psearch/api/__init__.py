"""The engine for Python programs, with python-chess's types and habits (docs/guides/api.md).

Begin with `blocking`: `psearch.Engine` and its searches in the background, and `asynchronous`: its methods on asyncio.
What callers give becomes a checked `question`, which also makes what they get back; options are those of
`psearch.options`, the way to an answer is that of `psearch.searcher`. `counting` needs no search: perft and the static
evaluation.
"""

from __future__ import annotations

import logging
import sys

LOG = logging.getLogger("psearch")
"""Where the API reports what went wrong and was mended."""


class _Unconfigured(logging.Handler):
    """Names psearch in programs that have set up no logging, where Python would write the bare line."""

    def emit(self, record: logging.LogRecord) -> None:
        if LOG.handlers == [self] and not logging.getLogger().handlers and sys.stderr is not None:
            print(f"psearch: {record.getMessage()}", file=sys.stderr)


LOG.addHandler(_Unconfigured(logging.WARNING))
