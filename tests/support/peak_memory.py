"""The most memory that a program has had, for programs that tests start."""

from __future__ import annotations

PEAK_KIB = """
def peak_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
"""
"""Source of a function. Of the program alone: `getrusage` remembers what the process had been before `exec`, a test."""
