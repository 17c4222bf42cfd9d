"""What each task keeps in memory besides a graph's rows, so that a budget can be planned.

Upper bounds, by the arrays that live at the same time; ``tests/e2e/test_mine_memory.py``
looks whether a command stays within the least budget that is named from them.
"""

from typing import Final

from graphsys.mining.simple_graph import TaskMemory

CENSUS_OF_5: Final = TaskMemory(per_node=32, per_entry=48, has_lists=True)
"""Numbers, triangles, owners, ends of all edges; their third nodes are listed in a file."""
NODE_ORBITS: Final = TaskMemory(per_node=240, per_entry=48)
"""15 counts of a node, twice, and sums of an edge."""
NODE_FEATURES: Final = TaskMemory(per_node=340, per_entry=48)
EDGE_ORBITS: Final = TaskMemory(per_entry=136)
"""12 counts, two ids and sums of an edge."""
LABELED: Final = TaskMemory(per_node=64, per_entry=56)
"""Ends, labels and keys of all edges, labels of nodes."""
HOUSES: Final = TaskMemory(per_entry=24)
"""Numbers and triangles of all edges."""

BATCH: Final = 1 << 18
"""Matches of a batch of a listing."""


def listed(num_nodes: int) -> TaskMemory:
    """Return what listing a pattern keeps: a dozen batches, and ids of three."""
    return TaskMemory(
        num_bytes=60_000_000 + 24 * BATCH * num_nodes, num_ids=3 * BATCH * num_nodes
    )
