"""Runs the command line as `python -m psearch`."""

import sys

from psearch.faces.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
