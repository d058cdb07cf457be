"""Long work for a page, in a process of its own: it tells how far it is, can be stopped at any moment, and ends with
the program, or when it has taken too long.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from psearch.api import LOG
from psearch.processes.tasks.task_main import Program
from psearch.processes.tasks.task_messages import Told
from psearch.processes.tasks.task_processes import TaskProcesses
from psearch.processes.tasks.task_sharing import share_out_to
from psearch.results import PsearchError, WorkerDied

LONGEST_S = 180.0
"""A job of more seconds is ended."""
_NICE = 5
"""More than the search that the same page shows."""
OnMessage = Callable[[str, dict[str, Any]], None]
"""Takes `progress`, {text, share}; at last one of `result`, `error` {text}, and `stopped` {}."""


def _begin(program: Program) -> Callable[[tuple[str, Mapping[str, Any]]], dict[str, Any]]:
    """In the process: what does the job."""
    os.nice(_NICE)

    def tell(text: str, share: float) -> None:
        program.look()
        program.tell({"text": text, "share": round(share, 3)})

    return partial(_perform, tell)


def _perform(tell: Callable[[str, float], None], order: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Imported only here: who starts jobs needs none of it."""
    task, arguments = order
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
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="psearch-job", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it now. May be called twice, and when it is over."""
        self._is_stopped = True

    def join(self, timeout_s: float) -> None:
        """Wait for the last message."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        last: tuple[str, dict[str, Any]] = "stopped", {}
        began_at = time.monotonic()
        try:
            with TaskProcesses(_begin, 1) as processes:
                job = share_out_to(
                    processes,
                    [self._order],
                    limit_s=LONGEST_S,
                    on_messages=self._pass_on,
                    is_stopped=lambda: self._is_stopped,
                )
                for _, result in job:
                    last = "result", result
        except WorkerDied:
            is_late = time.monotonic() - began_at > LONGEST_S
            text = f"this took more than {LONGEST_S:.0f} seconds, and was ended"
            last = "error", {"text": text if is_late else "the process that worked on this was killed"}
        except PsearchError as error:
            last = "error", {"text": str(error)}
        except MemoryError:
            last = "error", {"text": "there is not enough memory for this"}
        except Exception as error:
            LOG.exception("a job of the laboratory has failed")
            last = "error", {"text": f"this failed: {error!r}"}
        finally:
            self._on_message(*last)

    def _pass_on(self, messages: list[Any]) -> None:
        for message in messages:
            if isinstance(message, Told):
                self._on_message("progress", pickle.loads(message.answer))
