"""`psearch version`: print what a bug report needs about the program and the machine."""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import PackageNotFoundError, version

from psearch.faces.cli.arguments import add_json
from psearch.faces.cli.output import print_answer
from psearch.faces.cli.signals import Signals

DESCRIPTION = """\
Print what a bug report should contain: the versions of psearch (with commit and network),
Python and the libraries, the system, the processor, the usable cores and the memory.
Nothing is compiled or sent."""

EXAMPLES = """\
examples:
  psearch version
  psearch version --json"""

_LIBRARIES = ("numba", "llvmlite", "numpy", "chess", "filelock", "platformdirs", "rich")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def run(options: argparse.Namespace, signals: Signals) -> int:
    """Print one fact per line, or all facts as one JSON object."""
    from psearch.files.raw_log import machine, source_commit
    from psearch_core.chess.evaluation.network_file import NetworkError, default_network

    here = machine()
    try:
        network = default_network().name
    except NetworkError as error:
        network = str(error)
    facts = {
        "psearch": here["psearch"],
        "commit": source_commit(),
        "network": network,
        "python": f"{platform.python_implementation()} {here['python']}",
    }
    for library in _LIBRARIES:
        try:
            facts[library] = version(library)
        except PackageNotFoundError:
            facts[library] = "not installed"
    facts |= {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": here["cpu"],
        "cores": here["cores"],
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
    }
    width = max(map(len, facts))
    print_answer(options.json, facts, "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items()))
    return 0
