"""One R-MAT graph with held-out edges, as our store and as PyTorch-BigGraph's files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.storage.source import EdgeChunk, NodeChunk, Source


class HeldOut(Source):
    """A directed R-MAT graph, all its nodes listed; its last edges are the split test."""

    def __init__(self, scale: int, edge_factor: int, num_test: int) -> None:
        from graphsys.datasets.generators import rmat

        self._edges = rmat(scale, edge_factor, directed=True, isolated=True)
        self.name = self._edges.name
        self.num_nodes = 1 << scale
        self.num_train = (edge_factor << scale) - num_test

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the nodes, then the edges."""
        done = 0
        for chunk in self._edges.chunks():
            if isinstance(chunk, NodeChunk):
                yield chunk
                continue
            cut = min(max(self.num_train - done, 0), len(chunk.src))
            done += len(chunk.src)
            for split, some in (("train", slice(cut)), ("test", slice(cut, None))):
                src, dst = chunk.src[some], chunk.dst[some]
                if len(src):
                    yield EdgeChunk(src=src, dst=dst, split=split)


def write_pbg(source: HeldOut, folder: Path, partitions: int) -> None:
    """Write the training edges as PyTorch-BigGraph's importer does.

    Entity k is row ``k % size`` of partition ``k // size``; the labels of R-MAT are
    scrambled, so that this is a random partition in a random order, as PBG's importer
    makes it.
    """
    import h5py

    size = -(-source.num_nodes // partitions)
    folder.mkdir(parents=True)
    for part in range(partitions):
        count = min(size, source.num_nodes - part * size)
        (folder / f"entity_count_node_{part}.txt").write_text(f"{count}\n")
    (folder / "edges").mkdir()
    chunks = [
        (chunk.src, chunk.dst)
        for chunk in source.chunks()
        if isinstance(chunk, EdgeChunk) and chunk.split == "train"
    ]
    src, dst = (np.concatenate([chunk[k] for chunk in chunks]) for k in range(2))
    bucket = (src // size) * partitions + dst // size
    order = np.argsort(bucket, kind="stable")
    bounds = np.searchsorted(bucket[order], np.arange(partitions**2 + 1))
    for i, j in np.ndindex(partitions, partitions):
        k = i * partitions + j
        chosen = order[bounds[k] : bounds[k + 1]]
        with h5py.File(folder / "edges" / f"edges_{i}_{j}.h5", "w") as file:
            file.attrs["format_version"] = 1
            file["lhs"], file["rhs"] = src[chosen] % size, dst[chosen] % size
            file["rel"] = np.zeros(len(chosen), dtype=np.int64)


def pbg_config(
    folder: Path, out: Path, *, partitions: int, dim: int, chunk: int, workers: int
) -> dict[str, Any]:
    """Return the config of PyTorch-BigGraph for the work; nothing is held out of it."""
    return {
        "entity_path": str(folder),
        "edge_paths": [str(folder / "edges")],
        "checkpoint_path": str(out),
        "entities": {"node": {"num_partitions": partitions}},
        "relations": [{"name": "edge", "lhs": "node", "rhs": "node", "operator": "none"}],
        "dimension": dim,
        "global_emb": False,
        "comparator": "dot",
        "loss_fn": "softmax",
        "lr": 0.1,
        "num_epochs": 1,
        "batch_size": 1000,
        "num_batch_negs": chunk,
        "num_uniform_negs": chunk,
        "workers": workers,
        "eval_fraction": 0.0,
        "hogwild_delay": 0,
    }


def write_config(folder: Path, config: dict[str, Any]) -> Path:
    """Write a config beside the data; return the file."""
    path = folder / f"config-{config['num_batch_negs']}.json"
    path.write_text(json.dumps(config))
    return path
