"""Where the API tells what went wrong and was mended: the logger `psearch`."""

from __future__ import annotations

import logging
import sys

LOG = logging.getLogger("psearch")


class _Unconfigured(logging.Handler):
    """For programs that have set up no logging: Python would write the bare line, and nobody knew whose it is."""

    def emit(self, record: logging.LogRecord) -> None:
        if LOG.handlers == [self] and not logging.getLogger().handlers and sys.stderr is not None:
            print(f"psearch: {record.getMessage()}", file=sys.stderr)


LOG.addHandler(_Unconfigured(logging.WARNING))
