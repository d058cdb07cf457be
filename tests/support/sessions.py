"""What a program leaves running."""

from __future__ import annotations

from pathlib import Path


def processes_in_session(session: int) -> list[str]:
    """Command lines of what still runs in a session (its leader included)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # field 3 is the state, field 6 the session; the name in field 2 may contain blanks
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    found.append((entry / "cmdline").read_text(errors="replace"))
            except OSError:
                continue
    return found
