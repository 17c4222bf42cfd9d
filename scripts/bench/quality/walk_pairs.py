"""The corpus of DeepWalk as a graph: who comes near whom on random walks.

Walks go along the training edges of one relation after the other (Perozzi, Al-Rfou, Skiena,
"DeepWalk", KDD 2014, for one; Cen et al., "Representation learning for attributed multiplex
heterogeneous network", KDD 2019, for several). A node in the middle and one in its window
make an edge from a ``node`` to a ``context``, as skip-gram has rows of its own for each;
the window of every middle is drawn between 1 and the whole, as in word2vec.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

import graphsys as gs
from graphsys.core.rng import generator
from graphsys.core.types import DEFAULT_SPLIT, EDGE, EdgeType
from graphsys.datasets.array_source import ArraySource
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, NodeChunk

Ints = npt.NDArray[np.int64]
NEAR = EdgeType("node", "near", "context")


@dataclass(frozen=True, kw_only=True)
class Walks:
    """How many walks start at every node, their steps, and how far a window reaches."""

    per_node: int
    length: int
    window: int


def pair_graph(graph: gs.Graph, walks: Walks, folder: Path, *, seed: int = 0) -> gs.Graph:
    """Write the pairs of a graph of one node type and one edge type as a store.

    Args:
        graph: The graph.
        walks: The walks.
        folder: Receives the store ``pairs`` and one store per relation.
        seed: Of the walks and of the windows.
    """
    (kind,) = graph.edge_types
    (ids,) = [graph.node_ids(name).combine_chunks() for name in graph.node_types]
    chunks: list[EdgeChunk | NodeChunk] = [
        NodeChunk(ids=ids, node_type=name) for name in (NEAR.src_type, NEAR.dst_type)
    ]
    for number, name in enumerate(graph.relations(kind) or [None]):
        src, dst = edges_of(graph, kind, DEFAULT_SPLIT, number if name else None)
        part = ingest(
            ArraySource(
                f"relation {name}",
                [EdgeChunk(src=ids.take(src), dst=ids.take(dst), edge_type=EDGE)],
                is_directed=graph.is_directed,
            ),
            folder / f"relation-{number}",
            overwrite=True,
        ).graph
        found = gs.algorithms.random_walks(
            part, length=walks.length, walks_per_node=walks.per_node, seed=seed
        )
        for middle, near in _windows(found.table["nodes"], walks.window, seed, number):
            columns = {} if name is None else {"relation": _repeat(name, len(middle))}
            chunks.append(EdgeChunk(src=middle, dst=near, edge_type=NEAR, columns=columns))
    pairs = ArraySource("pairs of walks", chunks)
    with warnings.catch_warnings():  # a pair counts as often as walks meet it
        warnings.filterwarnings("ignore", message=".* repeat another")
        return ingest(pairs, folder / "pairs", overwrite=True).graph


def edges_of(
    graph: gs.Graph, kind: EdgeType, split: str, code: int | None
) -> tuple[Ints, Ints]:
    """Return the numbers of both ends of a split's edges, of one relation or of all."""
    ends: tuple[list[Ints], list[Ints]] = ([], [])
    for i, j in graph.buckets(kind, split):
        bucket = graph.bucket(kind, i, j, split)
        chosen: Any = slice(None)
        if code is not None and bucket.relation is not None:
            chosen = bucket.relation == code
        ends[0].append(bucket.src[chosen] + graph.offsets(kind.src_type)[i])
        ends[1].append(bucket.dst[chosen] + graph.offsets(kind.dst_type)[j])
    none = np.empty(0, np.int64)
    src, dst = (np.concatenate([none, *end]).astype(np.int64) for end in ends)
    return src, dst


def _windows(
    walks: pa.ChunkedArray, window: int, seed: int, number: int
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield the middles of windows and the nodes in them, distance by distance."""
    lengths = pa.compute.list_value_length(walks).to_numpy()
    nodes = pa.compute.list_flatten(walks.combine_chunks())
    walk = np.repeat(np.arange(len(lengths)), lengths)
    reach = generator(seed, "windows", number).integers(1, window + 1, len(nodes))
    for apart in range(1, window + 1):
        first = np.flatnonzero(walk[:-apart] == walk[apart:])
        for middle, near in ((first, first + apart), (first + apart, first)):
            chosen = reach[middle] >= apart
            yield nodes.take(middle[chosen]), nodes.take(near[chosen])


def _repeat(name: str, count: int) -> pa.DictionaryArray:
    codes = pa.array(np.zeros(count, np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([name]))
