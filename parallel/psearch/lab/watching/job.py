"""Runs long work for a page in a separate process: it reports progress, can be stopped, and has a time limit."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from psearch.api import LOG
from psearch.lab.watching.laboratory import Experiment, run
from psearch.processes.task_processes import TaskProcesses, share_out_to
from psearch.processes.tasks import Program, Told
from psearch.results import PsearchError, WorkerDied

LONGEST_S = 180.0
"""Time limit of a job, in seconds."""
_NICE = 5
"""Niceness of the process, above that of the search that the page shows."""
OnMessage = Callable[[str, dict[str, Any]], None]
"""Takes messages `progress` {text, share}, and at the end one of `result`, `error` {text} and `stopped` {}."""


def _begin(program: Program) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    os.nice(_NICE)

    def report(text: str, share: float) -> None:
        program.look()
        program.tell({"text": text, "share": round(share, 3)})

    return lambda arguments: run(Experiment(**arguments), report)


class BackgroundJob:
    """Runs one job. A thread passes its messages to `on_message`; a final message always comes. arguments: fields of
    `laboratory.Experiment`."""

    def __init__(self, arguments: Mapping[str, Any], on_message: OnMessage) -> None:
        self._order = dict(arguments)
        self._on_message = on_message
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="psearch-job", daemon=True).start()

    def stop(self) -> None:
        """End the job now. May be called again, and after its end."""
        self._stopped.set()

    def _run(self) -> None:
        last: tuple[str, dict[str, Any]] = "stopped", {}
        began_at = time.monotonic()
        orders, is_stopped = [self._order], self._stopped.is_set
        try:
            with TaskProcesses(_begin, 1) as processes:
                for _, result in share_out_to(processes, orders, 1, LONGEST_S, self._pass_on, is_stopped):
                    last = "result", result
        except WorkerDied:
            is_late = time.monotonic() - began_at > LONGEST_S
            text = f"stopped: it took more than {LONGEST_S:.0f} seconds"
            last = "error", {"text": text if is_late else "the process that computed this was killed"}
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
