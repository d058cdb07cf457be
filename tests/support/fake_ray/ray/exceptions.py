"""Those that psearch knows."""

from __future__ import annotations


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__("a traceback")
        self.cause = cause


class RayActorError(RayError):
    pass


class ActorDiedError(RayActorError):
    pass


class ActorUnavailableError(RayActorError):
    pass


class WorkerCrashedError(RayError):
    pass


class OutOfMemoryError(RayError):
    pass
