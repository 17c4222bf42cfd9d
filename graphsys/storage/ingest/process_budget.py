"""A budget of the whole process, and what of it an ingest has for what it keeps.

``ingest(memory=...)`` bounds what is kept beside the process and the chunks under way. The
command line's ``--memory`` bounds all of it: the interpreter, the readers' chunks in their
threads, the ranges of edges being sorted. These were measured on inputs of up to 40M edges
of integers (peaks grow no more from some megabytes of input on) and are subtracted here. Of
a graph that is stored the nodes are known, and what is held of each is subtracted too.
"""

from graphsys.core.memory import keep_to_budget, parse_bytes, resident_bytes, too_small
from graphsys.partitioners import is_stream_partitioner
from graphsys.storage.ingest.node_stream import StoreNodeStream, held_bytes
from graphsys.storage.ingest.options import MIN_MEMORY
from graphsys.storage.ingest.orders import GRAPH_ORDERS
from graphsys.storage.reader import GraphReader

_LOADED_BYTES = 56 << 20
_TEXT_BYTES = 36 << 20  # of these for ids of text: pyarrow imports pandas, if it is there
_UNDER_WAY_BYTES = 120 << 20
_UNDER_WAY_SHARE = 16  # bytes under way for a byte of a small input, unpacked
_STORED_UNDER_WAY_BYTES = 64 << 20  # no text is read
_BLOCK_BYTES = 48 << 20  # of rows that are streamed to a partitioner, and kernels
_NODE_BYTES = 48  # of a node: its id, as read and as found, its partition and number
_ASSIGNED_NODE_BYTES = 44  # where partitions are found beforehand, besides
_COMPARED_NODE_BYTES = 56
_WHY = ", the process included"


def kept_bytes(
    memory: int | str,
    total_bytes: int | None = None,
    whole_bytes: int = 0,
    *,
    has_text: bool = True,
) -> int:
    """Return what an ingest may keep, so that the process stays within a budget.

    Args:
        memory: Budget of the whole process, as ``"4GB"`` or in bytes.
        total_bytes: Size of the input, unpacked, where known.
        whole_bytes: What the reader holds of the input all the time.
        has_text: Whether there may be text: not in files of arrays.

    Raises:
        ConfigError: not an amount of memory.
        BudgetError: less than the process, what is held, and the least ingest take; the
            message names an amount that works.
    """
    budget = parse_bytes(memory)
    keep_to_budget()
    under_way = _UNDER_WAY_BYTES
    if total_bytes is not None:
        most = max(_UNDER_WAY_SHARE * total_bytes, whole_bytes)
        under_way = min(under_way, most)
    loaded = _LOADED_BYTES - (0 if has_text else _TEXT_BYTES)
    beside = resident_bytes() + loaded + under_way + whole_bytes
    if budget - beside >= MIN_MEMORY:
        return budget - beside
    raise too_small("reading a graph", beside + MIN_MEMORY, budget, _WHY)


def kept_of_stored(
    memory: int | str,
    graph: GraphReader,
    partitioner: str,
    order: str,
    source_bytes: int = 0,
) -> tuple[int, int]:
    """Return what writing a stored graph again may keep within a budget of the process.

    Args:
        memory: Budget of the whole process, as ``"4GB"`` or in bytes.
        graph: The graph, open.
        partitioner: Name of the method.
        order: Order of the nodes.
        source_bytes: What the source of its edges holds of what may be kept.

    Returns:
        Bytes to keep while it is written, the source's included, and before that for the
        graph's structure.

    Raises:
        ConfigError: not an amount of memory.
        BudgetError: less than the process, what is held of the nodes, and the structure
            that the partitioner or the order holds; the message names an amount that works.
    """
    budget = parse_bytes(memory)
    keep_to_budget()
    base = resident_bytes() + _LOADED_BYTES
    per_node, held = _NODE_BYTES, 0
    if is_stream_partitioner(partitioner) or order in GRAPH_ORDERS:
        per_node += _ASSIGNED_NODE_BYTES
        held = held_bytes(StoreNodeStream(graph), partitioner, order)
    nodes = per_node * graph.num_nodes + 2 * _string_bytes(graph)
    writing = base + _STORED_UNDER_WAY_BYTES + nodes
    finding = base + _BLOCK_BYTES + held
    needed = max(writing + source_bytes + MIN_MEMORY, finding if held else 0)
    if needed <= budget:
        return budget - writing, budget - base - _BLOCK_BYTES
    what = f"writing {graph.num_nodes} nodes again"
    raise too_small(f"{what} with partitioner {partitioner}", needed, budget, _WHY)


def compared_bytes(memory: int | str, graph: GraphReader) -> int:
    """Return what a method of a comparison may hold of a graph's structure.

    Args:
        memory: Budget of the whole process, as ``"4GB"`` or in bytes.
        graph: The graph, open.

    Raises:
        ConfigError: not an amount of memory.
        BudgetError: less than the process and what every method holds of the nodes; the
            message names an amount that works.
    """
    budget = parse_bytes(memory)
    keep_to_budget()
    nodes = _COMPARED_NODE_BYTES * graph.num_nodes + _string_bytes(graph)
    beside = resident_bytes() + _LOADED_BYTES + _BLOCK_BYTES + nodes
    if beside <= budget:
        return budget - beside
    raise too_small(f"comparing on {graph.num_nodes} nodes", beside, budget, _WHY)


def _string_bytes(graph: GraphReader) -> int:
    """Return the bytes of ids that are strings."""
    entries = graph.manifest.node_types.items()
    texts = [name for name, entry in entries if entry.id_type != "int64"]
    return sum(graph.node_ids(name).nbytes for name in texts)
