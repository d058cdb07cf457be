"""Fuzzing: mutated inputs for everything that reads files, words or positions, in this process.

    python bench/study/fuzz.py [--cases 100000] [--seed 1] [--targets fen,pgn] [--log FAILURES.jsonl]

A case fails when anything but a `PsearchError` comes out of it, when it takes more processor time than its limit (a
second, and one more for each 16 KiB of input) or 30 times that by the clock, or when it raises the memory of this
process by more than 64 MiB and 4 KiB for each byte. Every case depends on seed and number alone: --only N runs that one
again. Ctrl-C ends with what was found. The exit status is 1 when a case failed.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import time
import traceback
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from types import FrameType

from fuzz_targets import Target, kernel_targets, targets

from psearch.results import PsearchError
from psearch.terminal.status import StatusLine
from psearch_core.toolchain.kernel_cache import PlugInError

_LIMIT_S = 1.0
_WAITING = 30
"""Other processes may have the cores."""
_BYTES_PER_LIMIT = 1 << 14
_MOST_MEMORY = 64 << 20
_MEMORY_PER_BYTE = 1 << 12
_MOST_ADDRESS_SPACE = 8 << 30


@dataclass(frozen=True)
class Failure:
    number: int
    target: str
    reason: str
    """The exception, and where it was raised."""
    data: str
    """The input, in base 64."""


class TimeLimit(BaseException):
    """A case takes too long. Not an Exception, so that nothing catches it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimit inside after so much processor time, or `_WAITING` times that by the clock."""

    def expired(number: int, frame: FrameType | None) -> None:
        raise TimeLimit

    clocks = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, _WAITING * seconds))
    former = [signal.signal(number, expired) for number, _, _ in clocks]
    for _, clock, limit in clocks:
        signal.setitimer(clock, limit)
    try:
        yield
    finally:
        for _, clock, _ in clocks:
            signal.setitimer(clock, 0)
        for (number, _, _), handler in zip(clocks, former, strict=True):
            signal.signal(number, handler)


class Fuzzer:
    """Runs cases and counts them. patience: what the time limit is multiplied by, for a machine under load."""

    def __init__(self, seed: int, chosen: Sequence[Target], patience: float = 1.0) -> None:
        self.seed = seed
        self.targets = list(chosen)
        self.patience = patience
        self.done: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.failures: list[Failure] = []
        self.slowest_s = 0.0
        self.most_memory = 0
        """Greatest number of bytes that a case has taken."""

    def case(self, number: int) -> tuple[Target, bytes]:
        """Return target and input of a case: the same for the same seed, number and targets."""
        dice = Random(f"{self.seed} {number}")
        target = dice.choices(self.targets, [target.weight for target in self.targets])[0]
        return target, target.case(dice)

    def run(self, number: int) -> Failure | None:
        target, data = self.case(number)
        self.done[target.name] += 1
        reason = self._fault(target, data)
        if reason is None:
            return None
        failure = Failure(number, target.name, reason, b64encode(data).decode())
        self.failures.append(failure)
        return failure

    def _fault(self, target: Target, data: bytes) -> str | None:
        before, began = _begin_peak(), time.process_time()
        try:
            with time_limit(self.patience * target.patience * _LIMIT_S * (1 + len(data) / _BYTES_PER_LIMIT)):
                target.run(data)
            self.accepted[target.name] += 1
        except (PsearchError, PlugInError) as error:
            if "\n" in str(error):
                return f"a message of several lines: {str(error)[:200]!a}"
        except TimeLimit:
            return f"{len(data)} bytes took too long, {time.process_time() - began:.2f} s of it by the processor"
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return f"{type(error).__name__}: {str(error)[:300]!a} {_where(error)}"
        self.slowest_s = max(self.slowest_s, time.process_time() - began)
        grown = _peak_memory() - before
        self.most_memory = max(self.most_memory, grown)
        if grown > _MOST_MEMORY + _MEMORY_PER_BYTE * len(data):
            return f"{len(data)} bytes took {grown >> 20} MiB"
        return None


def _begin_peak() -> int:
    """Forget the peak of the memory in use so far, where Linux can; the bytes that are the peak now."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    return _peak_memory()


def _peak_memory() -> int:
    """Most bytes that were in memory at a time."""
    with suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " <- ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:]))


def main() -> int:
    """Run the cases, write the failures, print what was done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this one case, with its traceback")
    parser.add_argument("--targets", help="names, with commas between them")
    parser.add_argument("--log", type=Path, help="failures, one JSON object a line; a new file")
    options = parser.parse_args()
    usual = targets()
    known = {target.name: target for target in [*usual, *kernel_targets()]}
    names = options.targets.split(",") if options.targets else [target.name for target in usual]
    if not set(names) <= set(known):
        parser.error(f"there are the targets {', '.join(known)}")
    fuzzer = Fuzzer(options.seed, [known[name] for name in names])
    if options.only is not None:
        target, data = fuzzer.case(options.only)
        print(target.name, data[:2000])
        target.run(data)
        return 0
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESS_SPACE, _MOST_ADDRESS_SPACE))
    log = options.log.open("x", encoding="utf-8") if options.log else None
    began = time.perf_counter()
    number = -1
    try:
        with StatusLine() as status:
            for number in range(options.cases):
                failure = fuzzer.run(number)
                if failure is not None:
                    print(f"case {number}, {failure.target}: {failure.reason}", file=sys.stderr)
                    if log is not None:
                        print(json.dumps(asdict(failure)), file=log, flush=True)
                status(f"{number + 1:,} cases, {len(fuzzer.failures)} failed", number + 1, options.cases)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    took = time.perf_counter() - began
    for name in names:
        print(f"{name:<13} {fuzzer.done[name]:>8,} cases, {fuzzer.accepted[name]:>7,} accepted")
    print(
        f"seed {options.seed}: {sum(fuzzer.done.values()):,} cases in {took:.0f} s, {len(fuzzer.failures)} failed; "
        f"the slowest took {fuzzer.slowest_s:.2f} s, the largest {fuzzer.most_memory >> 20} MiB"
    )
    return 1 if fuzzer.failures else 0


if __name__ == "__main__":
    sys.exit(main())
