"""Small graphs of several relations, and settings to learn them with."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from graphsys.core.types import EdgeType
from graphsys.gnn import GnnConfig
from graphsys.gnn.data.positive_pairs import read_pairs
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store

NUM = 40
RELATIONS = ("also/bought", "also/viewed")
ALSO = EdgeType("item", "also", "item")


def config_of(**changes: Any) -> GnnConfig:
    settings: dict[str, Any] = {
        "task": "link_prediction",
        "model": "gatne",
        "dim": 12,
        "edge_dim": 4,
        "layers": 1,
        "attention_dim": 5,
        "loss": "softmax",
        "num_negatives": 4,
        "negatives_of": "pair",
        "walk_length": 4,
        "batch_size": 20,
        "lr": 0.02,
        "epochs": 2,
        "threads": 1,
    }
    return GnnConfig(**{**settings, **changes})


def disagreeing(relation: str) -> list[tuple[int, int]]:
    """Bought together: equal remainders by 4; viewed together: of one ten."""
    return [
        (u, v)
        for v in range(NUM)
        for u in range(v)
        if (u % 4 == v % 4 if relation == "bought" else u // 10 == v // 10)
    ]


def shop_store(path: Path, features: npt.NDArray[np.float32] | None = None) -> Graph:
    """Users who click and buy items; items have features if those are given."""
    clicks = [(u, i) for u in range(8) for i in range(10) if (u + i) % 2 == 0]
    buys = [(u, i) for u in range(6) for i in range(9) if (u * i) % 3 == 1]
    make_store(
        path,
        NodeChunk(ids=np.arange(8), node_type="user"),
        NodeChunk(
            ids=np.arange(10),
            node_type="item",
            features={} if features is None else {"x": features},
        ),
        edge_chunk(clicks, EdgeType("user", "clicks", "item")),
        edge_chunk(buys, EdgeType("user", "buys", "item")),
        edge_chunk([(6, 0), (7, 1)], EdgeType("user", "buys", "item"), "test"),
    )
    return Graph(path)


def edges_of(graph: Graph) -> dict[str, list[tuple[int, int]]]:
    """Return the training edges of both relations of ``items``, by number."""
    names = graph.relations("also") or []
    return {
        f"also/{name}": list(map(tuple, read_pairs(graph, "also", relation=code).tolist()))
        for code, name in enumerate(names)
    }


def neighbors_of(graph: Graph) -> list[list[list[int]]]:
    found: list[list[list[int]]] = []
    for pairs in edges_of(graph).values():
        lists: list[list[int]] = [[] for _ in range(NUM)]
        for u, v in pairs:
            lists[u].append(v)
            lists[v].append(u)
        found.append(lists)
    return found


def items_store(path: Path) -> Graph:
    """Return items in two relations of one edge type that disagree; some edges held out."""
    rng = np.random.default_rng(3)
    chunks = []
    for relation in ("viewed", "bought"):
        pairs = disagreeing(relation)
        order = [pairs[k] for k in rng.permutation(len(pairs))]
        for split, part in (("train", order[:140]), ("valid", order[140:160])):
            names = pa.array([relation] * len(part))
            chunks.append(edge_chunk(part, ALSO, split, relation=names))
        names = pa.array([relation] * len(order[160:]))
        chunks.append(edge_chunk(order[160:], ALSO, "test", relation=names))
    nodes = NodeChunk(ids=np.arange(NUM), node_type="item")
    make_store(path, nodes, *chunks, is_directed=False, partitions=2)
    return Graph(path)


def numbers(model: torch.nn.Module) -> dict[str, npt.NDArray[np.float64]]:
    """Return the parameters of a model by name."""
    return {n: p.detach().double().numpy() for n, p in model.named_parameters()}
