"""System calls that a Python may have been built without, messages for refusals, and owners of shared objects.

A Python has `os.memfd_create` and the like only if its build machine had them: many conda builds lack them although the
kernel has them. So the C library is called; if it lacks a function too, OSError with ENOSYS is raised.
"""

from __future__ import annotations

import ctypes
import errno
import os

from psearch.results import PsearchError

_PIDFD_SEND_SIGNAL, _PIDFD_OPEN = 424, 434
"""Numbers of system calls, equal on all processors; C libraries before 2022 have no functions for them."""
_PR_SET_PDEATHSIG = 1
_MAP_PRIVATE, _MAP_FIXED, _MAP_ANONYMOUS, _MAP_NORESERVE = 0x02, 0x10, 0x20, 0x4000
_HINTS = {
    errno.ENOMEM: "see ulimit -v, or the limit of the control group",
    errno.EMFILE: "see ulimit -n",
    errno.EFBIG: "see ulimit -f",
    errno.EAGAIN: "see ulimit -u, or pids.max of the control group",
}


class Owner:
    """The process that made an object, which a fork of it must not use. what: name of the object in messages."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._pid = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this process is the owner."""
        return os.getpid() == self._pid

    def check(self) -> None:
        """Raise PsearchError if this process is not the owner."""
        if not self.is_here:
            raise PsearchError(f"this {self._what} belongs to another process: make one in each")


def refusal(error: OSError | MemoryError) -> str:
    """Return the system's error text, and the limit that may be its cause, for the end of a one-line message."""
    number = errno.ENOMEM if isinstance(error, MemoryError) else error.errno or 0
    words = os.strerror(number) if number else str(error)
    return f"{words} ({_HINTS[number]})" if number in _HINTS else words


def _call(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library that returns -1 on failure. Raises OSError."""
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    result = int(function(*(ctypes.c_long(word) if isinstance(word, int) else word for word in arguments)))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def memfd_create(name: str, flags: int) -> int:
    """Return a descriptor of anonymous memory, like `os.memfd_create`."""
    return _call("memfd_create", name.encode(), flags)


def pidfd_open(pid: int) -> int:
    """Return a descriptor that becomes readable when the process ends, like `os.pidfd_open`."""
    return _call("syscall", _PIDFD_OPEN, pid, 0)


def pidfd_send_signal(descriptor: int, number: int) -> None:
    """Send a signal, like `signal.pidfd_send_signal`."""
    _call("syscall", _PIDFD_SEND_SIGNAL, descriptor, number, 0, 0)


def set_parent_death_signal(number: int) -> None:
    """Have the kernel send this process a signal when the thread that forked it ends."""
    _call("prctl", _PR_SET_PDEATHSIG, number, 0, 0, 0)


def unmap_keeping_addresses(address: int, size: int) -> None:
    """Release the memory of a mapping but keep its addresses reserved: a later unmap must not hit another mapping."""
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    flags = _MAP_PRIVATE | _MAP_FIXED | _MAP_ANONYMOUS | _MAP_NORESERVE
    if function(*map(ctypes.c_long, (address, size, 0, flags, -1, 0))) != address:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
