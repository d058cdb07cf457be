"""Long work for a page, in a process of its own: it tells how far it is, can be stopped at any moment, and ends with
the program, or when it has taken too long.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

from psearch.processes.lifetime import end_if_orphan, is_orphan
from psearch.processes.starting.launcher import launch_process
from psearch.processes.worker_process import WorkerProcess
from psearch.results import PsearchError

_TARGET = "psearch.lab.watching.job:main"
LONGEST_S = 180.0
"""A job of more seconds is ended."""
_END_S = 2.0
_NICE = 5
"""More than the search that the same page shows."""
OnMessage = Callable[[str, dict[str, Any]], None]
"""Takes `progress`, {text, share}; at last one of `result`, `error` {text}, and `stopped` {}."""


def main(pipe: Connection, parent: int) -> None:
    """In the process: one job, then the end. parent: the number of the process that has forked this one."""
    if is_orphan(parent):
        return

    os.nice(_NICE)

    def tell(text: str, share: float) -> None:
        end_if_orphan(parent, pipe)
        pipe.send(("progress", {"text": text, "share": round(share, 3)}))

    try:
        task, arguments = pipe.recv()
        try:
            pipe.send(("result", _perform(task, arguments, tell)))
        except PsearchError as error:
            pipe.send(("error", {"text": str(error)}))
        except MemoryError:
            pipe.send(("error", {"text": "there is not enough memory for this"}))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _perform(task: str, arguments: Mapping[str, Any], tell: Callable[[str, float], None]) -> dict[str, Any]:
    """Imported only here: who starts jobs needs none of it."""
    if task == "experiment":
        from psearch.lab.watching.laboratory import Experiment, run

        return run(Experiment(**arguments), tell)
    if task == "trace":
        from psearch.lab.watching.trace_reading import read_trace

        return read_trace(arguments["text"], tell)
    raise PsearchError(f"no such work: {task[:40]!r}")


class BackgroundJob:
    """One job. What it says goes to `on_message`, in a thread of its own; the last message comes in any case.

    task: `experiment` or `trace`; arguments: those of `laboratory.Experiment`, or `text`.
    """

    def __init__(self, task: str, arguments: Mapping[str, Any], on_message: OnMessage) -> None:
        self._order = (task, dict(arguments))
        self._on_message = on_message
        self._process: WorkerProcess | None = None
        self._changing = threading.Lock()
        self._is_stopped = False
        self._timer = threading.Timer(LONGEST_S, self._time_is_up)
        self._timer.daemon = True
        self._ran_out = False
        self._thread = threading.Thread(target=self._run, name="psearch-job", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it now. May be called twice, and when it is over."""
        with self._changing:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()

    def join(self, timeout_s: float) -> None:
        """Wait for the last message."""
        self._thread.join(timeout_s)

    def _time_is_up(self) -> None:
        self._ran_out = True
        self.stop()

    def _run(self) -> None:
        kind: str
        last: dict[str, Any]
        try:
            process = launch_process(0, _TARGET)
            with self._changing:
                self._process = process
                if self._is_stopped:
                    process.kill()
            self._timer.start()
            try:
                process.pipe.send(self._order)
                kind, last = self._listen(process)
            except (EOFError, OSError):  # it was killed
                kind, last = self._ended()
            finally:
                self._timer.cancel()
                with self._changing:
                    self._process = None
                process.kill()
                process.join(_END_S)
                process.close()
        except PsearchError as error:
            kind, last = "error", {"text": str(error)}
        self._on_message(kind, last)

    def _ended(self) -> tuple[str, dict[str, Any]]:
        if self._ran_out:
            return "error", {"text": f"this took more than {LONGEST_S:.0f} seconds, and was ended"}
        if self._is_stopped:
            return "stopped", {}
        return "error", {"text": "the process that worked on this was killed"}

    def _listen(self, process: WorkerProcess) -> tuple[str, dict[str, Any]]:
        """Pass on how far it is; the last message."""
        watched: list[Any] = [process.pipe] if process.sentinel is None else [process.pipe, process.sentinel]
        while True:
            if process.pipe not in wait(watched):
                raise EOFError
            kind, payload = process.pipe.recv()
            if kind != "progress":
                return kind, payload
            self._on_message(kind, payload)
