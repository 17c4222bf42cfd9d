"""graphsys: graph processing and graph learning on graphs larger than memory.

``import graphsys as gs`` is light: what is heavy loads when it is first used.

Examples:
    ``gs.ingest("edges.txt", "graph")`` makes a store, ``gs.open("graph")`` opens one,
    ``gs.embedding.train(graph, config, "run")`` trains embeddings on it.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from graphsys import datasets as datasets
    from graphsys import embedding as embedding
    from graphsys import partitioners as partitioners
    from graphsys import storage as storage
    from graphsys.core.types import EdgeType as EdgeType
    from graphsys.datasets import ingest as ingest
    from graphsys.storage.reader import Graph as Graph
    from graphsys.storage.reader import open_graph as open

_LAZY = {
    "EdgeType": ("graphsys.core.types", "EdgeType"),
    "Graph": ("graphsys.storage.reader", "Graph"),
    "open": ("graphsys.storage.reader", "open_graph"),
    "ingest": ("graphsys.datasets", "ingest"),
}
_ROOMS = ("datasets", "embedding", "partitioners", "storage")

__all__ = ["EdgeType", "Graph", "__version__", "ingest", "open", *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(importlib.import_module(module), attribute)
    if name in _ROOMS:
        return importlib.import_module(f"graphsys.{name}")
    raise AttributeError(f"module 'graphsys' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
