"""Forks of the test's program, and what they say."""

from __future__ import annotations

import os
import signal
import traceback
import warnings
from collections.abc import Callable

from timing import wait_until


def in_fork(function: Callable[[], object]) -> str:
    """What a function returns in a fork of this program, as text; what it raises as `Type: message`.

    The fork ends as programs do that are not careful: everything it has is collected.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads
        pid = os.fork()
    if pid == 0:
        try:
            said = str(function())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    ended: list[int] = []

    def has_ended() -> bool:
        ended[:] = os.waitpid(pid, os.WNOHANG)
        return ended[0] == pid

    try:
        wait_until(has_ended)
    except AssertionError:  # it hangs
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    with open(reader, "rb") as pipe:
        return pipe.read().decode()
