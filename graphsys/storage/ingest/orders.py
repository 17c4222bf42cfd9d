"""Orders of nodes that need the whole graph: reverse Cuthill-McKee and Rabbit order.

Both bring neighbors together, so that following edges stays in caches; what follows from
the numbers, such as results, is the same in every order. When which helps, and how much:
the guide of partitioners.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import BudgetError
from graphsys.core.memory import format_bytes
from graphsys.kernels.cpu.algorithms import rabbit
from graphsys.partitioners import NodeStream
from graphsys.partitioners.buckets import rcm_order
from graphsys.partitioners.rows import whole_rows

GRAPH_ORDERS: Final = ("rabbit", "rcm")
_MAX_ENDS = 2**31 - 1
_BYTES: Final = {"rabbit": (12, 64), "rcm": (9, 32)}  # per edge end, per node


def find_ranks(name: str, stream: NodeStream, memory_bytes: int) -> npt.NDArray[np.uint64]:
    """Return the place of every node in an order, uint64 ``[N]``.

    Args:
        name: "rabbit" or "rcm".
        stream: The graph.
        memory_bytes: Budget.

    Raises:
        BudgetError: the graph does not fit the budget, or 32 bits do not count its edges.
    """
    num_ends = int(stream.degrees.sum())
    needed = order_bytes(name, stream)
    if needed > memory_bytes or num_ends > _MAX_ENDS:
        raise BudgetError(
            f"order {name} needs the graph in memory: about {format_bytes(needed)} and "
            f"fewer than 2^31 edge ends, of which there are {num_ends}; the budget is "
            f"{format_bytes(memory_bytes)}; raise --memory or take --order degree"
        )
    if name == "rcm":
        return rcm_order(stream).astype(np.uint64)
    return rabbit_ranks(stream)


def order_bytes(name: str, stream: NodeStream) -> int:
    """Return about what finding an order takes, "rabbit" or "rcm"."""
    per_end, per_node = _BYTES[name]
    return per_end * int(stream.degrees.sum()) + per_node * stream.num_nodes


def rabbit_ranks(stream: NodeStream) -> npt.NDArray[np.uint64]:
    """Return the place of every node in Rabbit order, uint64 ``[N]``.

    Source and method: ``kernels/cpu/algorithms/rabbit.py``. Memory is 8 to 12 B per edge
    end and 64 B per node.
    """
    indptr, indices = whole_rows(stream)
    num_nodes = stream.num_nodes
    order = np.argsort(stream.degrees, kind="stable").astype(np.int32)
    first_child, next_child = np.empty(num_nodes, np.int32), np.empty(num_nodes, np.int32)
    parents = np.empty(num_nodes, np.int32)
    for size in (len(indices) // 2 + 1, len(indices) + 1):
        pool, pool_weights = np.empty(size, np.int32), np.empty(size, np.float32)
        if rabbit.merge_communities(
            indptr, indices, order, pool, pool_weights, first_child, next_child, parents
        ):
            break
    places = np.empty(num_nodes, dtype=np.uint64)
    is_root = parents == np.arange(num_nodes)
    rabbit.number_forest(first_child, next_child, is_root, places)
    return places


def mean_gap_bits(stream: NodeStream, places: npt.NDArray[np.uint64]) -> float:
    """Return the mean over all edges of log2(1 + distance of the ends).

    That is what a neighbor's number costs when gaps are coded, and it falls when
    neighbors share cache lines (Chierichetti et al., "On compressing social networks",
    KDD 2009).

    Args:
        stream: The graph.
        places: Place of every node, uint64 ``[N]``.
    """
    total = 0.0
    for first, indptr, indices in stream.blocks():
        total += rabbit.gap_bits(first, indptr, indices, places)
    return total / max(int(stream.degrees.sum()), 1)
