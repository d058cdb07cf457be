"""Several Ray nodes on this machine: a program that starts and kills them as it is told, and ends with its input.

`add NAME` says `NAME PIDS`, the processes that make up the node; `kill NAME` says `NAME` when it is done. The first
line it prints is the address. Each node has one core to give away.
"""

from __future__ import annotations

import sys
from typing import Any

from ray.cluster_utils import Cluster

_NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1"}


def main() -> None:
    """Do what standard input says."""
    cluster = Cluster(initialize_head=True, head_node_args={**_NODE, "include_dashboard": False})
    nodes: dict[str, Any] = {}
    print(cluster.address, flush=True)
    try:
        for line in sys.stdin:
            what, name = line.split()
            if what == "add":
                nodes[name] = cluster.add_node(wait=False, **_NODE)
                processes = [info.process.pid for infos in nodes[name].all_processes.values() for info in infos]
                print(name, *processes, flush=True)
            else:
                cluster.remove_node(nodes.pop(name), allow_graceful=False)
                print(name, flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
