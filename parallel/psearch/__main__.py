"""Runs the command line: `psearch`, or `python -m psearch`."""

import sys


def main() -> int:
    """Run the command line and return its exit status. Ctrl-C ends it with a line even before it has been imported."""
    try:
        from psearch.faces.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("psearch: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
