"""An engine: as described on the command line, and as a process that says when it was asked and when it answered."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import chess
import chess.engine

from .scripts import MatchError

PSEARCH = (sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())", "uci")
PROTOCOLS = ("uci", "xboard")
START_S = 300.0
"""for the answer to the first `isready`: kernels may have to be compiled"""
PING_S = 10.0
"""for an answer between two games"""
QUIT_S = 5.0
_LINES_KEPT = 60
_BUTTONS = ("button", "reset", "save")
"""Types of options without a value."""
_PR_SET_PDEATHSIG = 1
_TIME_CONTROL = re.compile(r"(?:(?P<moves>[1-9][0-9]{0,2})/)?(?P<base>[0-9.]{1,9})(?:\+(?P<increment>[0-9.]{1,9}))?")
_LIMITS = ("tc", "nodes", "depth", "movetime")


@dataclass(frozen=True)
class TimeControl:
    """Time that an engine may use: a clock, or the same limit for every move."""

    base_s: float | None = None
    """Seconds on the clock at the start; None: no clock."""
    increment_s: float = 0.0
    moves: int = 0
    """`base_s` is added again after each so many moves; 0 is never"""
    nodes: int | None = None
    depth: int | None = None
    movetime_s: float | None = None

    def of_a_move(self) -> chess.engine.Limit:
        """Return the limit that is the same for every move, for an engine without a clock."""
        return chess.engine.Limit(nodes=self.nodes, depth=self.depth, time=self.movetime_s)

    def __str__(self) -> str:
        if self.base_s is not None:
            return f"{f'{self.moves}/' if self.moves else ''}{self.base_s:g}+{self.increment_s:g}"
        if self.movetime_s is not None:
            return f"{self.movetime_s:g} s a move"
        return f"depth {self.depth}" if self.nodes is None else f"{self.nodes} nodes"


def _number(text: str, what: str, *, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise MatchError(f"{what} is {text!r}: a number from {least:g} to {most:g} is needed")
    return number


def parse_limit(key: str, text: str) -> TimeControl:
    """`tc=5+0.05`, `tc=40/60+0.5` (seconds), `nodes=N`, `depth=N` or `movetime=SECONDS`. Raises MatchError."""
    if key == "tc":
        found = _TIME_CONTROL.fullmatch(text)
        if found is None:
            raise MatchError(f"time control {text!r}: not like 5+0.05 or 40/60+0.5 (seconds)")
        return TimeControl(
            base_s=_number(found["base"], "the time", least=0.01, most=86400),
            increment_s=_number(found["increment"] or "0", "the increment", least=0, most=3600),
            moves=int(found["moves"] or 0),
        )
    if key == "movetime":
        return TimeControl(movetime_s=_number(text, "movetime (seconds)", least=0.001, most=86400))
    number = _number(text, key, least=1, most=250 if key == "depth" else 10**15)
    if number != int(number):
        raise MatchError(f"{key} is {text!r}: a whole number is needed")
    return TimeControl(nodes=int(number)) if key == "nodes" else TimeControl(depth=int(number))


@dataclass(frozen=True)
class EngineSpec:
    name: str
    command: tuple[str, ...]
    protocol: str
    limit: TimeControl
    options: dict[str, str] = field(default_factory=dict)
    directory: str | None = None
    """Folder where the engine is started; None: the current one."""

    def settings(self) -> dict[str, Any]:
        """Return the fields as a match keeps them: this psearch is called that, wherever its interpreter is."""
        return {**asdict(self), "command": ("psearch", "uci") if self.command == PSEARCH else self.command}

    def __str__(self) -> str:
        settings = "".join(f" {key}={value}" for key, value in self.options.items())
        return f"{self.name} ({shlex.join(self.command)}{settings}, {self.limit})"


def parse_engine(text: str, default: TimeControl | None) -> EngineSpec:
    """`name=NAME cmd='COMMAND ARGUMENTS' proto=uci|xboard dir=DIR option.NAME=VALUE` and tc, nodes, depth or movetime.

    Without `cmd` it is this psearch, without a limit the `default`. Raises MatchError.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise MatchError(f"engine {text!r}: {error}") from None
    given: dict[str, str] = {}
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        known = key in ("name", "cmd", "proto", "dir", *_LIMITS) or key.startswith("option.")
        if not equals or not known:
            raise MatchError(f"engine {text!r}: {word!r} is not name=, cmd=, proto=, dir=, option.NAME= or a limit")
        if key in given or key.removeprefix("option.") in options:
            raise MatchError(f"engine {text!r}: {key} is given twice")
        if key.startswith("option."):
            options[key.removeprefix("option.")] = value
        else:
            given[key] = value
    limits = [key for key in _LIMITS if key in given]
    if len(limits) > 1:
        raise MatchError(f"engine {text!r}: both {limits[0]} and {limits[1]}")
    limit = parse_limit(limits[0], given[limits[0]]) if limits else default
    if limit is None:
        raise MatchError(f"engine {text!r}: no limit; give --tc, --nodes, --depth or --movetime")
    protocol = given.get("proto", "uci")
    if protocol not in PROTOCOLS:
        raise MatchError(f"engine {text!r}: proto is uci or xboard")
    if protocol == "xboard" and limit.nodes is not None:
        raise MatchError(f"engine {text!r}: the xboard protocol has no limit of nodes")
    command = tuple(shlex.split(given["cmd"])) if "cmd" in given else PSEARCH
    directory = given.get("dir")
    if directory is not None and not Path(directory).is_dir():
        raise MatchError(f"engine {text!r}: no directory {directory}")
    if not command or shutil.which(command[0]) is None:
        raise MatchError(f"engine {text!r}: no program {command[0] if command else ''!r}")
    name = given.get("name") or ("psearch" if "cmd" not in given else Path(command[0]).name)
    return EngineSpec(name, command, protocol, limit, options, directory)


class _Watched(chess.engine.Protocol):
    """Takes the time where a line goes out and comes in, so that a clock counts nothing but the engine."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=_LINES_KEPT)
        """The last lines, `<` to and `>` from the engine."""
        self.asked_s = 0.0
        self.answered_s = 0.0
        self.bounded = False
        """Whether the last score was only a bound."""

    def send_line(self, line: str) -> None:
        super().send_line(line)
        self.lines.append(f"< {line}")
        if line == "go" or line.startswith("go "):
            self.asked_s = time.perf_counter()

    def line_received(self, line: str) -> None:
        if line.startswith(("bestmove", "move ")):
            self.answered_s = time.perf_counter()
        elif " score " in line:
            self.bounded = "lowerbound" in line or "upperbound" in line
        self.lines.append(f"> {line}")

    def error_line_received(self, line: str) -> None:
        self.lines.append(f"! {line}")


class _Uci(_Watched, chess.engine.UciProtocol):
    pass


class _Xboard(_Watched, chess.engine.XBoardProtocol):
    pass


def _end_with_parent() -> None:
    """Have the kernel end the engine that this process becomes when the match is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _pass_over_late_lines(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle what is raised in a loop: python-chess gives a command its result though it was cancelled, for want of
    time, before the engine's line came."""
    if not isinstance(context.get("exception"), asyncio.InvalidStateError):
        loop.default_exception_handler(context)


class Engine:
    def __init__(self, spec: EngineSpec, transport: asyncio.SubprocessTransport, protocol: _Watched) -> None:
        self.spec = spec
        self.transport = transport
        self.protocol = protocol
        self.id_name = spec.name
        """Name by which the engine calls itself."""

    @classmethod
    async def start(cls, spec: EngineSpec) -> Engine:
        """Ready to play. Raises MatchError."""
        asyncio.get_running_loop().set_exception_handler(_pass_over_late_lines)
        kind = _Uci if spec.protocol == "uci" else _Xboard
        preexec = _end_with_parent if sys.platform.startswith("linux") else None
        settings: dict[str, Any] = {"cwd": spec.directory, "preexec_fn": preexec}
        try:
            # a group of its own: Ctrl-C is this program's to handle, and what the engine has started ends in `end`
            transport, protocol = await kind.popen(list(spec.command), setpgrp=True, **settings)
        except OSError as error:
            raise MatchError(f"{spec.name} does not start: {error.strerror}") from None
        engine = cls(spec, transport, protocol)
        try:
            async with asyncio.timeout(START_S):
                await protocol.initialize()
                buttons = [name for name in spec.options if name in protocol.options]
                buttons = [name for name in buttons if protocol.options[name].type in _BUTTONS]
                # without a value python-chess presses them once, else before every move
                await protocol.configure({**spec.options, **dict.fromkeys(buttons)})
                await protocol.ping()
        except (chess.engine.EngineError, TimeoutError) as error:
            await engine.end()
            said = f"no answer within {START_S:g} s" if isinstance(error, TimeoutError) else str(error)
            raise MatchError(f"{spec.name} does not start: {said}{engine.last_words()}") from None
        engine.id_name = protocol.id.get("name", spec.name)
        return engine

    def last_words(self) -> str:
        errors = [line[2:] for line in self.protocol.lines if line.startswith("! ") and line[2:].strip()]
        return f" ({errors[-1]})" if errors else ""

    async def is_alive(self) -> bool:
        """Tell whether it has not ended; one that does not answer has not."""
        try:
            await asyncio.wait_for(self.protocol.ping(), PING_S)
        except chess.engine.EngineTerminatedError:
            await self.protocol.returncode
        except (chess.engine.EngineError, TimeoutError):
            pass
        return not self.protocol.returncode.done()

    async def end(self) -> None:
        """End it: nothing of its process group is left."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.transport.get_pid(), signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.protocol.returncode), QUIT_S)
        self.transport.close()
