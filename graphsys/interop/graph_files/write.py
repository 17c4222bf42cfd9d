"""A store as a folder of files: which format, within which memory."""

from functools import partial
from pathlib import Path
from typing import Any, Final

from graphsys.core.budget import require_budget, stated_budget
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.memory import resident_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.interop.graph_files.blocks import (
    LARGEST_BLOCK,
    LEAST_BLOCK,
    EdgeRows,
    node_blocks,
)
from graphsys.interop.graph_files.csr import write_csr
from graphsys.interop.graph_files.graphar import write_graphar
from graphsys.interop.graph_files.icebug import write_icebug
from graphsys.interop.graph_files.new_folder import new_folder, require_free
from graphsys.storage.reader import GraphReader

FORMATS: Final = ("csr", "graphar", "networkit")
_IN_PYTHON: Final = {
    "pyg": "graphsys.open(GRAPH).to_pyg()",
    "dgl": "graphsys.open(GRAPH).to_dgl()",
}
_COPIES: Final = 6  # of a block: sorted, taken, cast, encoded
_WRITER_BYTES: Final = 64 << 20  # libraries at their first use, pages that are encoded


def check_format(name: str) -> None:
    """Refuse what is no format of graphs.

    Raises:
        UnknownNameError: There is none of that name.
        ConfigError: Its files would be pickles; the message names the call in Python.
    """
    if name in _IN_PYTHON:
        raise ConfigError(
            f"format {name!r}: its files would be pickles, which run code where they are "
            f"read; call {_IN_PYTHON[name]} in Python, or give --format csr"
        )
    if name not in FORMATS:
        raise unknown_name("format of graphs", name, FORMATS)


def write_graph(
    graph: GraphReader,
    out: Path | str,
    *,
    format: str = "csr",
    memory: int | str | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Write a graph as a folder of files of another system.

    Nodes are numbered as in the store. Of edges with splits the training ones are written,
    as every index holds them.

    Args:
        graph: An open graph.
        out: The folder to make.
        format: "csr" (NumPy arrays), "graphar" (GraphAr 1) or "networkit" (icebug-disk 1).
        memory: Most memory of the process; None: no limit. Rows are then written fewer
            at a time.
        overwrite: Replace a folder that an earlier call made.
        progress: Receives a stage for each type.

    Returns:
        What was written: ``output``, ``format``, ``num_nodes``, ``num_edges`` (as stored),
        and ``splits_left_out`` by edge type.

    Raises:
        UnknownNameError: There is no such format.
        ConfigError: PyG's and DGL's graphs, which are pickles; a column that the format has
            no type for; a folder that no export wrote.
        OutputExistsError: The folder exists.
        StorageFullError: It cannot be written; what was there stays.
        BudgetError: The memory is too small; the message names an amount that works.

    Complexity:
        O(N + E) time; memory for some rows, and what indexes of later changes take.
    """
    check_format(format)
    out = Path(out)
    require_free(out, overwrite=overwrite)
    rows = _rows_within(graph, format, stated_budget(memory))
    writers: dict[str, Any] = {
        "csr": write_csr,
        "graphar": partial(write_graphar, name=out.absolute().name),
        "networkit": write_icebug,
    }
    with new_folder(out, overwrite=overwrite) as folder:
        writers[format](graph, folder, rows, progress)
    progress.close()
    left = {
        name: [it for it in graph.splits(name) if it != graph.default_split(name)]
        for name in graph.manifest.edge_types
    }
    return {
        "output": str(out),
        "format": format,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "splits_left_out": {name: splits for name, splits in left.items() if splits},
    }


def _rows_within(graph: GraphReader, format: str, budget: int | None) -> int:
    """Return how many rows are written at a time within a budget.

    Raises:
        BudgetError: It is not enough for a few.
    """
    if budget is None:
        return LARGEST_BLOCK
    edges = [EdgeRows(graph, name).row_bytes for name in graph.manifest.edge_types]
    nodes = [_node_bytes(graph, name) for name in graph.node_types]
    row_bytes = _COPIES * max([*edges, *nodes, 1])
    beside = resident_bytes() + _WRITER_BYTES
    rows = min(max((budget - beside) // row_bytes, LEAST_BLOCK), LARGEST_BLOCK)
    require_budget(f"writing {format}", beside + rows * row_bytes, budget)
    return int(rows)


def _node_bytes(graph: GraphReader, name: str) -> int:
    """Return the bytes of a node of a type, by some of them."""
    block = next(node_blocks(graph, name, LEAST_BLOCK), None)
    if block is None or not block.table.num_rows:
        return 0
    features = sum(values.nbytes for values in block.features.values())
    return int((block.table.nbytes + features) // block.table.num_rows) + 16
