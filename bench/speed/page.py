"""What the page costs while a search goes on: processor time of the server, per update that it sends.

    python bench/speed/page.py [--seconds 20] [--threads 1] [--multipv 3] [--fast] [--workers]

Starts `psearch serve`, opens a page's WebSocket and analyses the first position. Counted is the time of the server's
own process, which has the loop, the engine's reports and the messages, without that of the worker processes. The engine
reports some ten times a second; with --fast every 10 ms, so that there is something new for each of twenty updates.
With --workers the page shows the workers as well, and updates are what it is told of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import websockets


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(
    address: str, pid: int, seconds: float, multipv: int, workers: bool = False
) -> tuple[int, float, float]:
    """Updates, seconds, processor seconds."""
    base, _, token = address.partition("?token=")
    port = base.split(":")[2].strip("/")
    headers = {"Cookie": f"psearch-{port}={token}"}
    async with websockets.connect(
        base.replace("http", "ws") + "socket", origin=base.rstrip("/"), additional_headers=headers, max_size=None
    ) as socket:

        async def hear(type: str) -> dict[str, object]:
            while True:
                message = json.loads(await socket.recv())
                if message["type"] == type:
                    found: dict[str, object] = message["payload"]
                    return found

        async def say(type: str, **payload: object) -> None:
            await socket.send(json.dumps({"type": type, "payload": payload}))

        await say("analysis.configure", multipv=multipv, policy="calibrated", pruning="modern")
        await say("analysis.start")
        while (await hear("analysis.lines"))["depth"] < 8:  # type: ignore[operator]  # it is a number
            pass
        if workers:
            await say("workers.watch")
        count, began, cpu = 0, time.monotonic(), cpu_seconds(pid)
        while time.monotonic() < began + seconds:
            await hear("workers.look" if workers else "analysis.lines")
            if workers:
                await say("workers.seen")
            count += 1
        return count, time.monotonic() - began, cpu_seconds(pid) - cpu


def main() -> int:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--multipv", type=int, default=3)
    parser.add_argument("--fast", action="store_true", help="a report of the engine every 10 ms")
    parser.add_argument("--workers", action="store_true", help="with the tab that shows the workers")
    options = parser.parse_args()
    program = "from psearch.cli.main import main\nraise SystemExit(main())"
    if options.fast:
        program = (
            "from psearch.processes import request\n"
            "make = request.SearchRequest.__init__\n"
            "def fast(self, *a, **k): make(self, *a, **{'live_interval_s': 0.01, **k})\n"
            "request.SearchRequest.__init__ = fast\n" + program
        )
    words = ["serve", "--no-browser", "--port", "0", "--threads", str(options.threads), "--hash", "256"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        try:
            how = options.seconds, options.multipv, options.workers
            count, seconds, cpu = asyncio.run(measure(address, server.pid, *how))
        finally:
            server.terminate()
    print(
        f"{count / seconds:.1f} updates a second for {seconds:.0f} s: {100 * cpu / seconds:.1f}% of a core, "
        f"{1000 * cpu / count:.2f} ms an update (threads {options.threads}, lines {options.multipv})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
