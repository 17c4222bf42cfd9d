"""Stores of events: given ones, and streams with a pattern that can be learned."""

from pathlib import Path
from typing import Any

import numpy as np

import graphsys as gs
from graphsys.gnn import GnnConfig
from graphsys.storage import Graph

STREAMS = ("edgebank", "recency", "tgn", "jodie", "evolving")
LEARNED = ("tgn", "jodie", "evolving")
SIZE = 24
Events = list[tuple[int, int, int]]


def event_store(out: Path, events: Events, **options: Any) -> Graph:
    """Return a store of directed edges (src, dst, time); nodes are 0, 1, ... in number."""
    src, dst, time = (list(column) for column in zip(*events, strict=True))
    size = max(*src, *dst) + 1
    nodes = {"node": {"id": list(range(size))}}
    table = {"src": src, "dst": dst, "time": time}
    return gs.ingest(
        out=out, nodes=nodes, edges={("node", "edge", "node"): table}, **options
    ).graph


def favorites(num_events: int = 480, seed: int = 0) -> Events:
    """Return events of nodes that write to the next one of a ring, four in five times."""
    rng = np.random.default_rng(seed)
    src = rng.integers(0, SIZE, num_events)
    dst = np.where(rng.random(num_events) < 0.8, src + 1, src + rng.integers(2, 20))
    return [
        (int(s), int(d % SIZE), 10 * k)
        for k, (s, d) in enumerate(zip(src, dst, strict=True))
    ]


def config_of(model: str, **changes: Any) -> GnnConfig:
    """Return settings for small streams."""
    usual: dict[str, Any] = {
        "task": "temporal_link_prediction",
        "model": model,
        "batch_size": 20,
        "dim": 16,
        "layers": 1,
        "heads": 2,
        "loss": "softmax",
        "epochs": 2,
        "lr": 0.01,
        "num_negatives": 100,
        "deterministic": True,
        "fanouts": (5,),
    }
    if model not in STREAMS:
        usual |= {"num_negatives": 20}
    return GnnConfig(**{**usual, **changes})
