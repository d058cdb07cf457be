"""`bench/speed/together.py`, on a cluster that is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import run_bench


@pytest.mark.slow
def test_a_row_for_each_time_alone_and_together(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ray.write_text("here 1\nthere 1\n")
    monkeypatch.setenv("FAKE_RAY_OURS", "here")
    done = run_bench("speed/together.py", "--on", "auto", "--hash", "4", "--movetimes", "20,150")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("this machine with 1 threads; there (127.0.0.1) with 1\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows[2:]] == [[ms, kind] for ms in ("20", "150") for kind in ("alone", "together")]
    sent = rows[0].index("sent/s")
    assert [row[sent] == "0" for row in rows[4:]] == [True, False]


def test_where_there_is_no_cluster(fake_ray: Path) -> None:
    done = run_bench("speed/together.py", "--on", "127.0.0.1:9")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "no Ray cluster can be reached at 127.0.0.1:9: Connection refused\n"
