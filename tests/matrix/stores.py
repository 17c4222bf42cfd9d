"""A graph as stores of every layout, each with another history."""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from graphsys.storage import EdgeChunk, NodeChunk
from graphsys.storage.dynamic.compact import compact
from tests.deltas import append_chunks
from tests.stores import as_ids, edge_chunk, make_store
from tests.unit.engine.algorithms.small_graphs import SmallGraph

Edges = list[tuple[Any, Any, float]]


def _chunk(edges: Edges) -> EdgeChunk:
    weight = np.array([w for _, _, w in edges], dtype=np.float64)
    amounts, states = zip(*(edge_columns_of(*edge) for edge in edges), strict=True)
    return edge_chunk(
        [(a, b) for a, b, _ in edges],
        weight=weight,
        amount=np.array(amounts, dtype=np.int16),
        status=pa.array(states, pa.string()),
    )


def edge_columns_of(a: Any, b: Any, weight: float) -> tuple[int, str | None]:
    """Return an amount and a status of an edge, the same whichever end is first."""
    ends = sorted([str(a), str(b)])
    amount = zlib.crc32(f"{ends} {weight}".encode()) % 1000
    return amount, None if amount % 7 == 0 else ("paid", "owed", "lent")[amount % 3]


def _nodes(graph: SmallGraph, ids: list[Any]) -> NodeChunk:
    """Return some nodes with their columns, as :func:`columns_of` has them."""
    known = columns_of(graph)
    ages, heights, colors = (list(c) for c in zip(*(known[k] for k in ids), strict=True))
    columns = {"age": np.array(ages), "height": pa.array(heights, pa.float32())}
    columns["color"] = pa.array(colors, pa.string())
    return NodeChunk(ids=as_ids(ids), columns=columns)


def columns_of(graph: SmallGraph) -> dict[Any, tuple[int, float | None, str | None]]:
    """Return an age, a height and a color of each node; some of the latter are null."""
    return {
        node: (
            7 * place % 23,
            None if place % 9 == 4 else place / 4,
            None if place % 11 == 3 else ("red", "blue", "green")[place % 3],
        )
        for place, node in enumerate(graph.ids)
    }


def _whole(partitions: int) -> Callable[[Path, SmallGraph], None]:
    def build(out: Path, graph: SmallGraph) -> None:
        nodes = _nodes(graph, graph.ids)
        options: dict[str, Any] = {"is_directed": graph.is_directed}
        make_store(out, nodes, _chunk(graph.edges), partitions=partitions, **options)

    return build


def build_changed(
    out: Path, graph: SmallGraph, between: Callable[[Path], object] | None = None
) -> None:
    """Append a third of the edges and the last nodes; delete edges that do not belong.

    Args:
        out: Where the store goes.
        graph: What it is in the end.
        between: Called with the store before anything is appended.
    """
    kind: dict[str, Any] = {"is_directed": graph.is_directed}
    late = graph.edges[::3]
    first = [edge for place, edge in enumerate(graph.edges) if place % 3]
    old, new = graph.ids[:-6], graph.ids[-6:]
    known = {frozenset((a, b)) for a, b, _ in graph.edges}
    wrong = [(old[0], node, 1.0) for node in old if frozenset((old[0], node)) not in known]
    base = [edge for edge in first if not {edge[0], edge[1]} & set(new)]
    rest = [edge for edge in first if edge not in base]
    nodes = _nodes(graph, old)
    make_store(out, nodes, _chunk(base + wrong), partitions=4, **kind).graph.close()
    if between is not None:
        between(out)
    append_chunks(out, _nodes(graph, new), _chunk(late + rest), **kind)
    append_chunks(out, deletes=[edge_chunk([(a, b) for a, b, _ in wrong])], **kind)


def _compacted(out: Path, graph: SmallGraph) -> None:
    build_changed(out, graph)
    compact(out)


LAYOUTS: Final[dict[str, Callable[[Path, SmallGraph], None]]] = {
    "one partition": _whole(1),
    "four partitions": _whole(4),
    "appended and deleted": build_changed,
    "compacted": _compacted,
}
