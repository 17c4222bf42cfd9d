"""One graph stored in many ways, for tests that what is computed does not depend on it.

Use ``same_in_every_layout(folder, chunks, compute)``: it stores the chunks in every layout,
calls ``compute(graph)`` on each, and compares what comes back by ``==`` (or by ``equal``).
``compute`` must return what a user sees: keyed by ids, never by numbers, in an order that
follows from ids (``by_id`` turns an array or table column into a dictionary).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from graphsys.storage import EdgeChunk, Graph, NodeChunk
from graphsys.storage.info import info
from graphsys.storage.ingest.repartition import repartition
from tests.stores import make_store, read_edges

T = TypeVar("T")
Chunks = Sequence[EdgeChunk | NodeChunk]

LAYOUTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "whole": {"partitions": 1, "partitioner": "hash", "order": "original"},
    "hash, degree": {"partitions": 3, "partitioner": "hash", "order": "degree"},
    "random, rcm": {"partitions": 4, "partitioner": "random", "order": "rcm", "seed": 5},
    "range, rabbit": {"partitions": 2, "partitioner": "range", "order": "rabbit"},
    "reldg, auto": {"partitions": 3, "partitioner": "reldg", "order": "auto"},
    "buckets, original": {"partitions": 5, "partitioner": "buckets", "order": "original"},
}
"""Options of an ingest by the layout's name; all are compared to the first."""

REWRITTEN: Final = "written again"


@contextmanager
def stored(
    folder: Path,
    chunks: Chunks,
    *,
    is_directed: bool = True,
    only: Sequence[str] = (),
    **options: Any,
) -> Iterator[dict[str, Graph]]:
    """Store a graph in every layout, and once more from the last of the stores.

    Args:
        folder: Where the stores go.
        chunks: The graph.
        is_directed: Whether its edges have a direction.
        only: Names of layouts (``LAYOUTS``, ``REWRITTEN``) besides the first.
        **options: Further options of the ingest, the same for all.
    """
    graphs: dict[str, Graph] = {}
    whole = next(iter(LAYOUTS))
    chosen = [name for name in LAYOUTS if not only or name in (whole, *only)]
    try:
        for k, name in enumerate(chosen):
            layout = LAYOUTS[name]
            report = make_store(
                folder / str(k), *chunks, is_directed=is_directed, **{**options, **layout}
            )
            graphs[name] = report.graph
        if not only or REWRITTEN in only:
            repartition(
                graphs[chosen[-1]],
                folder / "again",
                partitioner="fennel",
                partitions=2,
                order="rcm",
            )
            graphs[REWRITTEN] = Graph(folder / "again")
        yield graphs
    finally:
        for graph in graphs.values():
            graph.close()


def same_in_every_layout(
    folder: Path,
    chunks: Chunks,
    compute: Callable[[Graph], T],
    *,
    is_directed: bool = True,
    only: Sequence[str] = (),
    equal: Callable[[T, T], bool] = lambda found, expected: bool(found == expected),
    **options: Any,
) -> T:
    """Compute on every layout, compare, and return what came of the first.

    Args:
        folder: Where the stores go.
        chunks: The graph.
        compute: What is computed, from the open graph to what a user sees.
        is_directed: Whether the edges have a direction.
        only: Names of layouts to compare with the first; all by default.
        equal: How two results are compared; floats of different orders of summation need
            a tolerance.
        **options: Further options of the ingest.

    Raises:
        AssertionError: a layout gives something else; the message names it.
    """
    with stored(folder, chunks, is_directed=is_directed, only=only, **options) as graphs:
        results = {name: compute(graph) for name, graph in graphs.items()}
    expected = next(iter(results.values()))
    for name, found in results.items():
        assert equal(found, expected), f"layout {name!r}: {found}, expected {expected}"
    return expected


def by_id(ids: Iterable[Any], values: Iterable[Any]) -> dict[Any, Any]:
    """Return values by the id of their node."""
    return dict(zip(ids, values, strict=True))


def node_facts(graph: Graph) -> dict[str, dict[Any, dict[str, Any]]]:
    """Return columns, features and degrees of every node, by type and id."""
    facts: dict[str, dict[Any, dict[str, Any]]] = {}
    for node_type in graph.node_types:
        rows = facts.setdefault(node_type, {})
        for part in range(graph.num_partitions(node_type)):
            table = graph.nodes(node_type, part).to_pylist()
            features = {
                name: graph.features(node_type, part, name).tolist()
                for name in graph.feature_names(node_type)
            }
            for k, row in enumerate(table):
                own = {name: values[k] for name, values in features.items()}
                rows[row["id"]] = {**row, **own}
        for kind in graph.edge_types:
            for direction, end in (("out", kind.src_type), ("in", kind.dst_type)):
                if end == node_type:
                    degrees = _degrees(graph, kind, direction)
                    name = f"{direction} of {graph.edge_type_name(kind)}"
                    for key, degree in by_id(
                        graph.node_ids(node_type).to_pylist(), degrees
                    ).items():
                        rows[key][name] = degree
    return facts


def edge_facts(graph: Graph) -> dict[tuple[str, str], Counter[Any]]:
    """Return the multiset of edges by type and split; undirected ends in one order."""
    facts = {}
    for kind in graph.edge_types:
        name = graph.edge_type_name(kind)
        is_symmetric = not graph.is_directed_type(kind) and kind.src_type == kind.dst_type
        for split in graph.splits(kind):
            edges = read_edges(graph, name, split)
            facts[name, split] = Counter(
                edge._replace(src=min(edge[:2]), dst=max(edge[:2]))
                if is_symmetric
                else edge
                for edge in edges
            )
    return facts


def counts(graph: Graph) -> dict[str, Any]:
    """Return what ``graphsys info`` counts, the layout's own figures left out."""
    found = info(graph.path)
    return {k: v for k, v in found.items() if k not in ("partitions", "bytes_per_edge")}


def _degrees(graph: Graph, kind: Any, direction: str) -> list[int]:
    read = graph.out_index if direction == "out" else graph.in_index
    end = kind.src_type if direction == "out" else kind.dst_type
    lengths = [
        np.diff(read(kind, part).indptr.astype(np.int64))
        for part in range(graph.num_partitions(end))
    ]
    return [int(n) for piece in lengths for n in piece]
