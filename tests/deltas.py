"""Stores with deltas for tests, and the same graph in a store without any."""

from pathlib import Path
from typing import Any

import numpy as np

from graphsys.storage import EdgeChunk, Graph, NodeChunk
from graphsys.storage.dynamic.append import append
from graphsys.storage.ids.id_mapping import Assignment
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.ingest.ingest import ingest
from tests.stores import ListSource, make_store


def append_chunks(
    store: Path,
    *chunks: EdgeChunk | NodeChunk,
    deletes: list[EdgeChunk] | None = None,
    is_directed: bool = True,
    **options: Any,
) -> None:
    """Append chunks, and delete others before."""
    source = ListSource(chunks, is_directed=is_directed) if chunks else None
    gone = [ListSource(deletes)] if deletes else []
    append(store, source, deletes=gone, **options).graph.close()


def same_numbers(graph: Graph, out: Path) -> Graph:
    """Write a graph as a store without deltas in which all nodes keep their numbers."""
    assigned = {}
    for name in graph.node_types:
        sizes = np.diff(graph.offsets(name))
        parts = np.repeat(np.arange(len(sizes)), sizes).astype(np.uint32)
        ranks = np.arange(len(parts), dtype=np.uint64)
        ids = graph.node_ids(name).combine_chunks()
        assigned[name] = Assignment(ids=ids, parts=parts, ranks=ranks)
    return ingest(
        GraphSource(graph),
        out,
        partitions={name: graph.num_partitions(name) for name in graph.node_types},
        order="original",
        assigned=assigned,
    ).graph


def changing_store(
    out: Path, *, is_directed: bool = True, partitions: int = 2, seed: int = 0, **more: Any
) -> Graph:
    """Write 60 nodes and some 400 weighted edges, of which three deltas add or remove some.

    Args:
        out: Where the store goes.
        is_directed: Whether edges have a direction.
        partitions: Of the first generation.
        seed: Of the edges.
        **more: ``nodes``: columns and features by the ids 0 .. 59.
    """
    rng = np.random.default_rng(seed)
    nodes = more.get("nodes")
    pieces = [_chunk(rng, 250, 45), _chunk(rng, 90, 50), _chunk(rng, 100, 60)]
    ids = [np.arange(45), np.arange(45, 50), np.arange(50, 60)]
    rows = [[nodes(it)] if nodes else [] for it in ids]
    kind: dict[str, Any] = {"is_directed": is_directed}
    make_store(out, *rows[0], pieces[0], partitions=partitions, **kind).graph.close()
    append_chunks(out, *rows[1], pieces[1], **kind)
    append_chunks(out, deletes=[_some(pieces[0], 20), _some(pieces[1], 5)], **kind)
    append_chunks(out, *rows[2], pieces[2], deletes=[_some(pieces[1], 12, 6)], **kind)
    return Graph(out)


def _chunk(rng: np.random.Generator, size: int, most: int) -> EdgeChunk:
    """Return a ring, so that every node has an edge, and edges at random."""
    src = np.concatenate([np.arange(most), rng.integers(0, most, size - most)])
    dst = np.concatenate([(np.arange(most) + 1) % most, rng.integers(0, most, size - most)])
    return EdgeChunk(
        src=src,
        dst=dst,
        columns={"weight": 1 + rng.integers(1, 9, size) / 2, "time": rng.permutation(size)},
    )


def _some(chunk: EdgeChunk, end: int, begin: int = 0) -> EdgeChunk:
    """Return pairs of the random edges of a chunk as deletions."""
    picked = slice(len(chunk.src) - end, len(chunk.src) - begin)
    pairs = np.unique(np.stack([chunk.src[picked], chunk.dst[picked]]), axis=1)
    return EdgeChunk(src=pairs[0], dst=pairs[1])


def assert_same_arrays(found: Graph, wanted: Graph) -> None:
    """Compare all that a reader hands out, number by number."""
    assert found.num_nodes == wanted.num_nodes
    assert found.num_edges == wanted.num_edges
    for name in found.node_types:
        assert found.node_ids(name).to_pylist() == wanted.node_ids(name).to_pylist()
        for part in range(found.num_partitions(name)):
            assert (
                found.nodes(name, part).to_pylist() == wanted.nodes(name, part).to_pylist()
            )
            for feature in found.feature_names(name):
                one, other = (g.features(name, part, feature) for g in (found, wanted))
                assert one.tolist() == other.tolist()
    for name, entry in found.manifest.edge_types.items():
        for split in found.splits(name):
            counts = found.bucket_counts(name, split)
            assert counts.tolist() == wanted.bucket_counts(name, split).tolist()
            for i, j in np.ndindex(counts.shape):
                one, other = (g.bucket(name, i, j, split) for g in (found, wanted))
                _same(one, other, ("src", "dst", "relation", "weight", "time"))
                columns = [
                    {k: v.to_pylist() for k, v in b.columns.items()} for b in (one, other)
                ]
                assert not one.num_edges or columns[0] == columns[1]
        for end, read in ((entry.src_type, "out_index"), (entry.dst_type, "in_index")):
            for part in range(found.num_partitions(end)):
                one, other = (getattr(g, read)(name, part) for g in (found, wanted))
                _same(
                    one, other, ("indptr", "indices", "relation", "weight", "time", "edge")
                )


def _same(one: Any, other: Any, names: tuple[str, ...]) -> None:
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        if a is None or b is None:  # where there are no edges, columns may be left out
            assert all(it is None or not len(it) for it in (a, b)), name
            continue
        assert a.dtype == b.dtype or not len(a), name
        assert a.tolist() == b.tolist(), name
