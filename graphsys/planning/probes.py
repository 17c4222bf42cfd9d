"""Every verb run once on a small graph: what rates are measured by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

DIM: Final = 64
ITERATIONS: Final = 10
QUERIES: Final = 256
"""Edges that an evaluation ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A small graph in all forms that verbs read.

    Attributes:
        folder: Where outputs may go.
        path: The store.
        text: The same edges as text.
        num_nodes: Nodes, those without edges too.
        num_edges: Edges.
    """

    folder: Path
    path: Path
    text: Path
    num_nodes: int
    num_edges: int


def make_store(folder: Path, scale: int) -> Store:
    """Generate a directed R-MAT graph with 16 edges a node, and write it as text too."""
    import pyarrow as pa
    import pyarrow.csv as csv

    from graphsys.datasets.generators.kronecker import rmat
    from graphsys.storage import EdgeChunk, ingest

    own = folder / f"scale-{scale}"
    own.mkdir()
    source = rmat(scale, directed=True, isolated=True)
    graph = ingest(source, own / "graph").graph
    edges = [
        pa.table({"src": chunk.src, "dst": chunk.dst})
        for chunk in rmat(scale, directed=True).chunks()
        if isinstance(chunk, EdgeChunk)
    ]
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    csv.write_csv(pa.concat_tables(edges), own / "edges.tsv", options)
    return Store(
        folder=own,
        path=own / "graph",
        text=own / "edges.tsv",
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
    )


def _ingest(store: Store) -> None:
    from graphsys.datasets import ingest

    ingest(store.text, store.folder / "again", overwrite=True)


def _verify(store: Store) -> None:
    from graphsys.storage.verify.verify import verify

    verify(store.path)


def _algorithm(name: str, **options: Any) -> Callable[[Store], None]:
    def probe(store: Store) -> None:
        from graphsys.engine.algorithms import ALGORITHMS

        given: dict[str, Any] = {}
        if name in ("bfs", "sssp"):
            given["source"] = _source(store)
        ALGORITHMS[name](store.path, **given, **options)

    return probe


def _source(store: Store) -> int:
    """Return the node with the most edges out."""
    from graphsys.storage import Graph

    graph = Graph(store.path)
    [kind] = graph.edge_types
    indptr = graph.out_index(kind, 0).indptr
    [node] = (
        graph.node_ids(kind.src_type).take([int(np.argmax(np.diff(indptr)))]).to_pylist()
    )
    return int(node)


def _mine(store: Store) -> None:
    from graphsys.mining import count

    count(store.path, "triangle")


def _embedding(store: Store) -> float:
    """Return the seconds that an epoch would take: of the training's own dry run."""
    from graphsys.embedding.config import EmbeddingConfig
    from graphsys.embedding.training.api import train

    config = EmbeddingConfig(dim=DIM, epochs=1)
    report = train(store.path, config, store.folder / "e", dry_run=True)
    return float(report.metrics["estimated_seconds_per_epoch"])


def _gnn(store: Store) -> float:
    """Return the seconds that an epoch of link prediction would take."""
    from graphsys.gnn.config import GnnConfig
    from graphsys.gnn.training.api import train

    config = GnnConfig(task="link_prediction", dim=DIM, epochs=1, num_negatives=50)
    report = train(store.path, config, store.folder / "g", dry_run=True)
    return float(report.metrics["estimated_seconds_per_epoch"])


def _run_of(store: Store) -> Path:
    """Train once, for what is asked of a run."""
    from graphsys.embedding.config import EmbeddingConfig
    from graphsys.embedding.training.api import train

    out = store.folder / "run"
    if not out.exists():
        train(store.path, EmbeddingConfig(dim=DIM, epochs=1), out)
    return out


def _evaluate(store: Store) -> None:
    from graphsys.embedding.evaluation.evaluate import evaluate

    evaluate(_run_of(store), split="train", queries=QUERIES, breakdown=False)


def _nearest(store: Store) -> None:
    from graphsys.embedding.inference.nearest import nearest

    nearest(_run_of(store), _source(store))


def _export(store: Store) -> None:
    from graphsys.embedding.files.export import export

    export(_run_of(store), store.folder / "rows.parquet", overwrite=True)


PROBES: Final[Mapping[str, Callable[[Store], float | None]]] = {
    "ingest": _ingest,
    "verify": _verify,
    "run pagerank": _algorithm("pagerank", iterations=ITERATIONS),
    "run bfs": _algorithm("bfs"),
    "run wcc": _algorithm("wcc"),
    "run sssp": _algorithm("sssp"),
    "run triangle_count": _algorithm("triangle_count"),
    "mine --pattern triangle": _mine,
    "train embedding": _embedding,
    "train gnn": _gnn,
    "evaluate": _evaluate,
    "nearest": _nearest,
    "export": _export,
}
"""What is measured; a training's seconds are those of its own dry run."""
