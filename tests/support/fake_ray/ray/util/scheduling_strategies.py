"""See `ray`."""

from __future__ import annotations


class NodeAffinitySchedulingStrategy:
    def __init__(self, node_id: str, soft: bool) -> None:
        self.node_id = node_id
