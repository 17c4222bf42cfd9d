"""One R-MAT graph with features and labels, as our store and as DGL's graph."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import WrongResultError
from graphsys.storage import Graph
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

NUM_FEATURES = 100
NUM_CLASSES = 47
BATCH_SIZE = 1024
_NODES_AT_A_TIME = 1 << 18


class Labeled(Source):
    """A directed R-MAT graph; nodes have features or none, a class, the split train."""

    def __init__(
        self, scale: int, edge_factor: int, num_features: int = NUM_FEATURES
    ) -> None:
        from graphsys.datasets.generators import rmat

        self._edges = rmat(scale, edge_factor, directed=True)
        self.name, self._num_nodes = self._edges.name, 1 << scale
        self._num_features = num_features

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the nodes, then the edges."""
        for begin in range(0, self._num_nodes, _NODES_AT_A_TIME):
            ids = np.arange(begin, min(begin + _NODES_AT_A_TIME, self._num_nodes))
            rng = np.random.default_rng(begin)
            x = rng.random((len(ids), self._num_features), dtype=np.float32)
            columns = {
                "label": rng.integers(0, NUM_CLASSES, len(ids)),
                "split": np.full(len(ids), "train"),
            }
            features = {"x": x} if self._num_features else {}
            yield NodeChunk(ids=ids, columns=columns, features=features)
        yield from self._edges.chunks()


def make_graph(
    folder: Path, *, quick: bool, num_features: int = NUM_FEATURES
) -> tuple[Graph, str]:
    """Return a store of 1M nodes and 20M edges (quick: 131k and 2.6M), and its name."""
    scale, edge_factor = (17, 20) if quick else (20, 20)
    source = Labeled(scale, edge_factor, num_features)
    ingest(source, folder / "graph", order="original")
    num_edges = edge_factor << scale
    name = f"R-MAT {(1 << scale) / 1e6:.2g}M/{num_edges / 1e6:.3g}M"
    return Graph(folder / "graph"), name


def dgl_graph(graph: Graph) -> Any:
    """Return the same graph as DGL's, by its in-edges; int64 ids, as DGL has by default."""
    os.environ.setdefault("DGLBACKEND", "pytorch")
    import dgl
    import torch

    index = graph.in_index("edge", 0)
    arrays = (
        torch.from_numpy(index.indptr.astype(np.int64)),
        torch.from_numpy(index.indices.astype(np.int64)),
        torch.empty(0, dtype=torch.int64),
    )
    return dgl.graph(("csc", arrays), num_nodes=graph.num_nodes)


def seeds_with_edges(graph: Graph, count: int) -> list[np.ndarray[Any, Any]]:
    """Return batches of nodes that have in-edges, in random order."""
    degrees = np.diff(graph.in_index("edge", 0).indptr.astype(np.int64))
    rng = np.random.default_rng(0)
    nodes = rng.permutation(np.flatnonzero(degrees > 0))
    return [nodes[k * BATCH_SIZE : (k + 1) * BATCH_SIZE] for k in range(count)]


def about_equal(results: Mapping[str, Any]) -> None:
    """Verify that all systems did as much work, which is random: within 1 %."""
    amounts = {system: result["amount"] for system, result in results.items()}
    if max(amounts.values()) > 1.01 * min(amounts.values()):
        raise WrongResultError(f"the systems did not do equal work: {amounts}")
