"""Stores of many small graphs: rings and trees, which their structure alone tells apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from graphsys.gnn import GnnConfig
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store

FIRST = 500
"""Id of the first graph; nodes count from 0."""


class SmallGraph(NamedTuple):
    """A graph of nodes 0 to ``size - 1``."""

    size: int
    edges: Sequence[tuple[int, int]]
    label: Any
    split: str = "train"


def ring(size: int, split: str = "train") -> SmallGraph:
    return SmallGraph(size, [(k, (k + 1) % size) for k in range(size)], "ring", split)


def tree(size: int, split: str, rng: np.random.Generator) -> SmallGraph:
    edges = [(int(rng.integers(0, k)), k) for k in range(1, size)]
    return SmallGraph(size, edges, "tree", split)


def rings_and_trees(count: int = 60) -> list[SmallGraph]:
    """Return as many of each, of the same sizes; a fifth is valid, a fifth test."""
    rng = np.random.default_rng(3)
    found = []
    for k in range(count):
        split = ("train", "train", "valid", "train", "test")[k // 2 % 5]
        size = 4 + k // 2 % 6
        found.append(tree(size, split, rng) if k % 2 else ring(size, split))
    return found


def store_of(
    path: Path,
    graphs: Sequence[SmallGraph],
    *,
    x: Any = None,
    shift: int = 0,
    **options: Any,
) -> Graph:
    """Return the store of graphs; a node is of the graph whose id is ``graph_id``.

    Nodes of graphs alternate, so that those of one lie apart.

    Args:
        path: Where the store goes.
        graphs: The graphs.
        x: Features of nodes ``[N, F]``, or None.
        shift: How far ids of nodes are moved: others have another order in the store.
        options: Of the ingest.
    """
    sizes = np.array([graph.size for graph in graphs])
    order = np.argsort(np.concatenate([np.arange(size) for size in sizes]), kind="stable")
    number = np.empty(sizes.sum(), dtype=np.int64)
    number[order] = (np.arange(len(order)) + shift) % len(order)
    begins = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(graphs)) + FIRST, sizes)
    nodes = np.argsort(number)
    pairs = [
        (int(number[begin + a]), int(number[begin + b]))
        for begin, graph in zip(begins, graphs, strict=True)
        for a, b in graph.edges
    ]
    columns: dict[str, Any] = {"label": pa.array([graph.label for graph in graphs])}
    if any(graph.split for graph in graphs):
        columns["split"] = pa.array([graph.split for graph in graphs])
    ids = np.arange(len(graphs)) + FIRST
    return make_store(
        path,
        NodeChunk(ids=ids, node_type="graph", columns=columns),
        NodeChunk(
            ids=number[nodes],
            columns={"graph_id": owner[nodes]},
            features={} if x is None else {"x": np.asarray(x, np.float32)[nodes]},
        ),
        edge_chunk(pairs),
        is_directed=False,
        **options,
    ).graph


def graph_config(**changes: Any) -> GnnConfig:
    settings: dict[str, Any] = {
        "task": "graph_classification",
        "model": "gin",
        "dim": 16,
        "layers": 3,
        "epochs": 30,
        "batch_size": 8,
        "lr": 0.01,
        "threads": 1,
        "eval_every": 0,
        "keep": "last",
    }
    return GnnConfig(**{**settings, **changes})
