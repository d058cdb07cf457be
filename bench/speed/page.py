"""What the page costs while a search goes on: processor time of the server, per update that it sends.

    python bench/speed/page.py [--seconds 20] [--threads 1] [--multipv 3] [--fast] [--workers]
    python bench/speed/page.py --paint 5

Starts `psearch serve`, opens a page's WebSocket and analyses the first position. Counted is the time of the server's
own process, which has the loop, the engine's reports and the messages, without that of the worker processes. The engine
reports some ten times a second; with --fast every 10 ms, so that there is something new for each of twenty updates.
With --workers the page shows the workers as well, and updates are what it is told of them.

With --paint: the time from the start of the program to the first picture in a Chromium that runs already (Playwright,
/usr/bin/chromium), and until the engine is ready, for so many starts.
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

PROGRAM = "from psearch.faces.cli.main import main\nraise SystemExit(main())"


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

        settings = {"policy": "calibrated", "pruning": "modern", "evaluation": "auto", "driver": "auto"}
        await say("analysis.configure", multipv=multipv, **settings)
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


def first_paints(starts: int) -> None:
    """Print for each start when the address was there, the first picture, the engine; in seconds."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        for _ in range(starts):
            page = browser.new_context(viewport={"width": 1600, "height": 900}).new_page()
            page.goto("about:blank")
            time.sleep(1.0)
            began = time.time()
            words = [sys.executable, "-c", PROGRAM, "serve", "--no-browser", "--port", "0", "--hash", "16"]
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
                assert server.stdout is not None
                address = server.stdout.readline().strip()
                there = time.time() - began
                page.goto(address, wait_until="commit")
                while not (entries := page.evaluate("performance.getEntriesByName('first-contentful-paint').length")):
                    time.sleep(0.01)
                assert entries == 1
                painted = page.evaluate(
                    "performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime"
                )
                while page.evaluate("document.documentElement.dataset.engine") != "ready":
                    time.sleep(0.01)
                ready = time.time() - began
                server.terminate()
            print(f"address {there:.2f}  first paint {painted / 1000 - began:.2f}  engine ready {ready:.2f}")
        browser.close()


def main() -> int:
    """Print one line, or one for each start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--multipv", type=int, default=3)
    parser.add_argument("--fast", action="store_true", help="a report of the engine every 10 ms")
    parser.add_argument("--workers", action="store_true", help="with the tab that shows the workers")
    parser.add_argument("--paint", type=int, default=0, metavar="STARTS", help="first pictures, and nothing else")
    options = parser.parse_args()
    if options.paint:
        first_paints(options.paint)
        return 0
    program = PROGRAM
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
