"""Graphs of the case ``engine``: symmetric rows without loops, saved once, read by all."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

NUM_SOURCES = 3
BY_DEGREE = "-degree"
SHUFFLE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A saved graph.

    Attributes:
        folder: Where its arrays lie.
        name: For the works' names.
        num_edges: Entries of the rows: every edge counts twice.
    """

    folder: Path
    name: str
    num_edges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays:
    """A loaded graph.

    Attributes:
        indptr: Row offsets, uint32 ``[N + 1]``.
        indices: Neighbors, rows sorted, uint32 ``[E]``.
        weight: Whole numbers 1 to 255, the same both ways, float32 ``[E]``.
        sources: Nodes to start from, none isolated.
    """

    indptr: npt.NDArray[np.uint32]
    indices: npt.NDArray[np.uint32]
    weight: npt.NDArray[np.float32]
    sources: list[int]

    @property
    def num_nodes(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    def row_numbers(self) -> npt.NDArray[np.uint32]:
        """Return the row of every entry, uint32 ``[E]``."""
        numbers = np.arange(self.num_nodes, dtype=np.uint32)
        return np.repeat(numbers, np.diff(self.indptr.astype(np.int64)))


def save(name: str, folder: Path) -> Saved:
    """Generate a graph by name (kron20, urand18, grid2000) and save it.

    Nodes keep the labels that the generator drew; after ``-degree`` they come by descending
    degree, as a store numbers them by default.
    """
    from graphsys.graph.csr import csr_from_edges
    from graphsys.graph.simple_rows import simple_undirected
    from graphsys.storage.source import EdgeChunk

    source = _source(name.removesuffix(BY_DEGREE))
    chunks = [chunk for chunk in source.chunks() if isinstance(chunk, EdgeChunk)]
    src = np.concatenate([np.asarray(chunk.src) for chunk in chunks])
    dst = np.concatenate([np.asarray(chunk.dst) for chunk in chunks])
    num_nodes = int(max(src.max(), dst.max())) + 1
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    rows = simple_undirected(csr_from_edges(*both, num_nodes))
    if name.endswith(BY_DEGREE):
        degrees = np.diff(rows.indptr.astype(np.int64))
        rank = np.empty(num_nodes, dtype=np.uint32)
        rank[np.argsort(-degrees, kind="stable")] = np.arange(num_nodes, dtype=np.uint32)
        both = np.repeat(rank, degrees), rank[rows.indices]
        rows = simple_undirected(csr_from_edges(*both, num_nodes))
    target = folder / name
    target.mkdir()
    arrays = Arrays(
        indptr=rows.indptr,
        indices=rows.indices,
        weight=np.empty(0, dtype=np.float32),
        sources=[],
    )
    ends = arrays.row_numbers(), rows.indices
    random = np.random.default_rng(1)
    degrees = np.diff(rows.indptr.astype(np.int64))
    active = np.flatnonzero(degrees)
    np.save(target / "indptr.npy", rows.indptr)
    np.save(target / "indices.npy", rows.indices)
    np.save(target / "weight.npy", _weights(*ends))
    np.save(target / "sources.npy", random.choice(active, NUM_SOURCES, replace=False))
    return Saved(folder=target, name=name, num_edges=rows.num_edges)


def load(folder: str) -> Arrays:
    """Read a saved graph into memory."""
    read = {
        name: np.load(Path(folder) / f"{name}.npy")
        for name in ("indptr", "indices", "weight")
    }
    sources = np.load(Path(folder) / "sources.npy").tolist()
    return Arrays(**read, sources=sources)


def _source(name: str) -> Any:
    from graphsys.datasets import generators

    kind, size = name.rstrip("0123456789"), int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))
    if kind == "kron":
        return generators.rmat(size, 16, seed=1)
    if kind == "urand":
        return generators.uniform(2**size, 16 * 2**size, seed=1)
    return generators.grid(size, size)


def _weights(
    src: npt.NDArray[np.uint32], dst: npt.NDArray[np.uint32]
) -> npt.NDArray[np.float32]:
    """Hash the unordered pair to 1 .. 255."""
    low = np.minimum(src, dst).astype(np.uint64)
    word = low * SHUFFLE + np.maximum(src, dst)
    word = (word ^ (word >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(32)
    return (word % np.uint64(255) + np.uint64(1)).astype(np.float32)
