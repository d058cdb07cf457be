"""`Closing`, the base of objects that end with a `with` block."""

from __future__ import annotations

from typing import Self


class Closing:
    """A context manager that calls its `close` at the end of the block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError
