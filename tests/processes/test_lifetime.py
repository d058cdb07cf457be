"""A process ends with its parent, whatever it is at."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from limits import open_files
from timing import has_ended, wait_for_ends, wait_until

from psearch.processes import lifetime
from psearch.processes.lifetime import ended_with_parent, is_orphan, open_pidfd, process_state

PROGRAM = """
import os, sys, time
from psearch.processes import lifetime
if sys.argv[1] == "without pidfd":
    lifetime.open_pidfd = lambda pid: None
parent = os.getpid()
if os.fork() == 0:
    with lifetime.ended_with_parent(parent):
        print(os.getpid(), flush=True)
        time.sleep(600)
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["with pidfd", "without pidfd"])
def test_it_ends_when_the_parent_is_killed(how: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, how], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(0.5)
        assert not has_ended(child)
        parent.kill()
        wait_for_ends([child])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_it_ends_when_the_other_end_of_the_link_is_closed() -> None:
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ours.close()
        with ended_with_parent(parent, theirs):
            time.sleep(600)
        os._exit(0)
    theirs.close()
    ours.close()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_one_that_begins_as_an_orphan_ends_at_once() -> None:
    child = os.fork()
    if child == 0:
        with ended_with_parent(os.getpid()):  # not its parent's number
            time.sleep(600)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_nothing_is_left_behind() -> None:
    before, threads = open_files(), threading.active_count()
    for _ in range(3):
        with ended_with_parent(os.getppid()):
            assert threading.active_count() == threads + 1
    assert (open_files(), threading.active_count()) == (before, threads)


def test_a_pidfd_tells_of_an_end() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        descriptor = open_pidfd(process.pid)
        if descriptor is None:
            pytest.skip("the system has no pidfds")
        assert select.select([descriptor], [], [], 0) == ([], [], [])
        process.kill()
        assert select.select([descriptor], [], [], 5)[0] == [descriptor]
        os.close(descriptor)


def test_orphans() -> None:
    assert not is_orphan(os.getppid())
    assert is_orphan(os.getpid())
    lifetime.end_if_orphan(os.getppid())


def test_the_state_of_a_process() -> None:
    def becomes(wanted: str) -> None:
        wait_until(lambda: process_state(process.pid) == wanted)

    # a name that looks like the fields behind it
    name = "import ctypes; ctypes.CDLL(None).prctl(15, b') R 1 (', 0, 0, 0); input()"
    with subprocess.Popen([sys.executable, "-c", name], stdin=subprocess.PIPE) as process:
        if process_state(os.getpid()) is None:
            pytest.skip("the system has no /proc")
        assert process_state(os.getpid()) == "R"
        becomes("S")
        process.send_signal(signal.SIGSTOP)
        becomes("T")
        process.send_signal(signal.SIGCONT)
        becomes("S")
        process.kill()
        becomes("Z")
    assert process_state(process.pid) is None
