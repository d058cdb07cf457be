"""Whether an analysis on several machines loses nothing while they are killed, stopped, cut off and added.

    sudo python bench/study/cluster_faults.py suite.epd --nodes 20000 --out faults
    sudo python bench/study/cluster_faults.py suite.epd --out faults --events kill@20,add@30,stop@45,cut@60

Each machine is a network namespace of this one, with an address of its own (10.77.0.N), a folder /tmp of its own, its
own Ray node of one core, and a cable to a switch, which is one more namespace: nothing here touches the network of the
computer. Machine 1 is the head, and machine 100, which is no node, runs `psearch analyse --on ray://10.77.0.1`. Tokens
are on. Needs root, `ip` and `unshare`, and `pip install '.[cluster]'`.

Events are KIND@PERCENT of the positions done, on the machine that joined last of those that are well and search:

    kill   every process of the machine at once, as when its power fails
    stop   every process halts (SIGSTOP), and goes on 120 s later
    task   one process that searches halts, and goes on 120 s later
    cut    its cable is pulled; it knows nothing of that
    add    one more machine joins
    busy   the same, and another program has its core for 30 s

The same positions are searched on this machine first, and every answer must be the same: one worker with a limit in
nodes always finds the same. Results and times go to PREFIX.json; exit status 1 if a position is missing, doubled or
another.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psearch.files.raw_log import machine

KINDS = ("kill", "stop", "task", "cut", "add", "busy")
_PSEARCH = [sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())"]
_STORE_BYTES = 80 * 2**20
_PORT = 6399
_PROGRAM = 100
"""the machine of the program, which is no node"""
_SWITCH = "psearch-switch"
_HALTED_S = 120.0
_BUSY_S = 30.0
_TAKER = """
import ray, sys, time
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
taken = ray.remote(num_cpus=1)(type("Taker", (), {"take": lambda self: None})).remote()
ray.get(taken.take.remote(), timeout=60)
time.sleep(float(sys.argv[2]))
"""
"""A program that waits for a core, and keeps it."""
_PATIENCE_S = 1800.0
_ACTOR = "ray::TaskActor"
"""the name of a process that searches"""


def _do(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@dataclass
class Machine:
    """A network namespace with a cable to the switch."""

    number: int
    folder: Path

    @property
    def space(self) -> str:
        """Its name."""
        return f"psearch-{self.number}"

    @property
    def address(self) -> str:
        """In the network of the switch."""
        return f"10.77.0.{self.number}"

    def build(self) -> None:
        """The namespace, the cable, the folder."""
        self.folder.mkdir(parents=True)
        space, port = self.space, f"port{self.number}"
        _do("ip", "netns", "add", space)
        _do("ip", "-n", space, "link", "set", "lo", "up")
        _do("ip", "link", "add", "cable", "netns", space, "type", "veth", "peer", "name", port, "netns", _SWITCH)
        _do("ip", "-n", space, "addr", "add", f"{self.address}/24", "dev", "cable")
        _do("ip", "-n", space, "link", "set", "cable", "up")
        _do("ip", "-n", _SWITCH, "link", "set", port, "master", "bridge")
        _do("ip", "-n", _SWITCH, "link", "set", port, "up")

    def command(self, words: Sequence[str]) -> list[str]:
        """What runs these words there."""
        mount = 'mount --bind "$0" /tmp && exec "$@"'
        return ["ip", "netns", "exec", self.space, "unshare", "-m", "sh", "-c", mount, str(self.folder), *words]

    def processes(self, name: str = "") -> list[int]:
        """Those whose command line has this in it."""
        numbers = []
        for word in _do("ip", "netns", "pids", self.space).split():
            with contextlib.suppress(OSError):
                if name in Path(f"/proc/{word}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                    numbers.append(int(word))
        return numbers

    def send(self, number: signal.Signals, name: str = "") -> None:
        """A signal to all of them."""
        for process in self.processes(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def start_ray(self, head: Machine) -> None:
        """Its Ray node."""
        words = ["ray", "start", "--node-ip-address", self.address, "--num-cpus", "1"]
        words += ["--object-store-memory", str(_STORE_BYTES)]
        if self is head:
            words += ["--head", "--port", str(_PORT), "--include-dashboard=false"]
        else:
            words += ["--address", f"{head.address}:{_PORT}"]
        words[0] = str(Path(sys.executable).with_name("ray"))
        subprocess.run(self.command(words), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def remove(self) -> None:
        """With everything that runs there."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.send(signal.SIGKILL)
            _do("ip", "netns", "del", self.space)


@dataclass
class Network:
    """The machines and their switch; a context manager that leaves nothing of them."""

    folder: Path
    machines: list[Machine] = field(default_factory=list)
    well: list[Machine] = field(default_factory=list)
    """nodes to which nothing has happened, the latest last"""
    later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    """what ends, and when: processes that halt"""
    takers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """programs that have a core for a while"""

    def __enter__(self) -> Network:
        _do("ip", "netns", "add", _SWITCH)
        _do("ip", "-n", _SWITCH, "link", "add", "bridge", "type", "bridge")
        _do("ip", "-n", _SWITCH, "link", "set", "bridge", "up")
        return self

    def __exit__(self, *exception: object) -> None:
        for one in self.machines:
            one.remove()
        for taker in self.takers:
            taker.wait()
        _do("ip", "netns", "del", _SWITCH)

    def add(self, number: int | None = None) -> Machine:
        """One more machine."""
        number = number or len(self.machines) + 1
        one = Machine(number, self.folder / str(number))
        self.machines.append(one)
        one.build()
        return one

    def node(self) -> Machine:
        """One more machine with a Ray node on it."""
        one = self.add()
        one.start_ray(self.machines[0])
        self.well.append(one)
        return one

    def cause(self, kind: str) -> str:
        """Have an event happen; where."""
        if kind == "add":
            return self.node().address
        if kind == "busy":
            head = self.machines[0]
            words = [sys.executable, "-W", "ignore", "-c", _TAKER, f"{head.address}:{_PORT}", str(_BUSY_S)]
            taker = subprocess.Popen(head.command(words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.takers.append(taker)
            return self.node().address
        if len(self.well) < 2:
            raise SystemExit("cluster_faults.py: no machine is left to which something may happen")
        one = next(one for one in reversed(self.well) if one is self.well[0] or one.processes(_ACTOR))
        self.well.remove(one)
        if kind == "kill":
            one.send(signal.SIGKILL)
        elif kind == "cut":
            _do("ip", "-n", _SWITCH, "link", "set", f"port{one.number}", "down")
        else:
            self._halt(one, _ACTOR if kind == "task" else "", _HALTED_S)
        return one.address

    def _halt(self, one: Machine, name: str, seconds: float) -> None:
        processes = one.processes(name)
        one.send(signal.SIGSTOP, name)

        def go_on() -> None:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

        self.later.append((time.monotonic() + seconds, go_on))

    def look(self) -> None:
        """End what has lasted long enough."""
        for entry in list(self.later):
            if time.monotonic() > entry[0]:
                self.later.remove(entry)
                entry[1]()


def _events(text: str) -> list[tuple[str, float]]:
    events = []
    for word in text.split(","):
        found = re.fullmatch(rf"({'|'.join(KINDS)})@([0-9]{{1,2}})", word)
        if found is None:
            raise argparse.ArgumentTypeError(f"{word!r} is not KIND@PERCENT with a kind of {', '.join(KINDS)}")
        events.append((found[1], int(found[2]) / 100))
    return sorted(events, key=lambda event: event[1])


def _answers(path: Path) -> Iterator[dict[str, Any]]:
    """The answers of a result, without what depends on the clock and on who searched."""
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if "summary" not in row:
            yield {key: row.get(key) for key in ("line", "fen", "bestmove", "score", "depth", "nodes", "pv")}


def _positions_done(journal: Path) -> int:
    with contextlib.suppress(OSError):
        return max(0, journal.read_bytes().count(b"\n") - 1)
    return 0


def _run_there(network: Network, words: list[str], out: Path, total: int, events: list[tuple[str, float]]) -> list[Any]:
    """The analysis on the cluster, with the events; what happened when."""
    program = network.add(_PROGRAM)
    begin = time.monotonic()
    happened: list[Any] = []
    process = subprocess.Popen(program.command(words), stderr=subprocess.PIPE, text=True)
    waiting = list(events)
    while process.poll() is None:
        done = _positions_done(Path(f"{out}.journal"))
        if waiting and done >= waiting[0][1] * total:
            kind, _ = waiting.pop(0)
            where = network.cause(kind)
            happened.append({"event": kind, "machine": where, "s": round(time.monotonic() - begin, 1), "done": done})
            print(f"{happened[-1]['s']:6.1f} s  {done:5} positions  {kind} {where}", file=sys.stderr)
        network.look()
        if time.monotonic() - begin > _PATIENCE_S:
            process.kill()
        time.sleep(0.1)
    said = process.communicate()[1]
    print(said, end="", file=sys.stderr)
    happened.append({"event": "end", "status": process.returncode, "s": round(time.monotonic() - begin, 1)})
    return [*happened, {"said": [line for line in said.splitlines() if line.startswith("psearch:")]}]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--nodes", type=int, default=20_000, help="of each search (20000)")
    parser.add_argument("--machines", type=int, default=3, help="at the beginning (3)")
    parser.add_argument("--events", type=_events, default=_events("kill@20,task@35,add@40,stop@50,add@60,cut@75"))
    parser.add_argument("--out", type=Path, required=True, metavar="PREFIX")
    options = parser.parse_args(arguments)
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_USAGE_STATS_ENABLED="0")
    words = [*_PSEARCH, "analyse", "--json", "--threads", "1", "--hash", "16", "--nodes", str(options.nodes)]
    here, there = (options.out.with_name(f"{options.out.name}-{place}.jsonl").resolve() for place in ("here", "there"))
    for path in (here, there):
        path.unlink(missing_ok=True)
    begin = time.monotonic()
    subprocess.run(
        [*words, "--jobs", "1", "--out", str(here), str(options.suite)], check=True, stderr=subprocess.DEVNULL
    )
    alone_s = time.monotonic() - begin
    expected = list(_answers(here))
    with tempfile.TemporaryDirectory(prefix="psearch-faults-") as folder, Network(Path(folder)) as network:
        for _ in range(options.machines):
            network.node()
        suite = options.suite.resolve()
        command = [*words, "--on", f"ray://{network.machines[0].address}", "--out", str(there), str(suite)]
        happened = _run_there(network, command, there, len(expected), options.events)
    found = list(_answers(there)) if there.exists() else []
    lines = [row["line"] for row in found]
    figures = {
        "positions": len(expected),
        "missing": len({row["line"] for row in expected} - set(lines)),
        "doubled": len(lines) - len(set(lines)),
        "different": sum(row not in found for row in expected),
        "alone_s": round(alone_s, 1),
        "happened": happened,
        "machine": machine(),
    }
    options.out.with_name(options.out.name + ".json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(json.dumps({key: figures[key] for key in ("positions", "missing", "doubled", "different")}))
    return int(any(figures[key] for key in ("missing", "doubled", "different")))


if __name__ == "__main__":
    sys.exit(main())
