"""Partitioning a graph that is stored: writing it again, and comparing methods."""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import GraphsysError
from graphsys.core.memory import parse_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.kernels.cpu import hashing
from graphsys.kernels.cpu import partition as kernels
from graphsys.partitioners import (
    NodeStream,
    get_partitioner,
    get_stream_partitioner,
    is_stream_partitioner,
    partitioner_names,
)
from graphsys.storage.graph_source import GraphSource
from graphsys.storage.ingest import ingest
from graphsys.storage.node_stream import StoreNodeStream, assign_nodes
from graphsys.storage.options import IngestOptions
from graphsys.storage.reader import Graph
from graphsys.storage.string_ids import string_buffers

VERTEX_CUTS: Final = ("dbh", "grid", "hdrf")
_HDRF_BALANCE = 1.1
_EVEN = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionQuality:
    """One line of the comparison.

    Attributes:
        partitioner: Name of the method.
        edge_cut: Edges between partitions, as a fraction of all; 0 for a vertex cut.
        node_balance: Nodes of the largest partition over the mean; NaN for a vertex cut.
        edge_balance: Edge ends (edges, for a vertex cut) of the fullest one over the mean.
        replication_factor: (owned + ghost nodes) / nodes.
        seconds: Time to assign.
        is_vertex_cut: Whether edges rather than nodes were assigned; for comparison only.
        problem: Why a method could not run, or empty.
    """

    partitioner: str
    edge_cut: float = 0.0
    node_balance: float = float("nan")
    edge_balance: float = float("nan")
    replication_factor: float = float("nan")
    seconds: float = 0.0
    is_vertex_cut: bool = False
    problem: str = ""


def repartition(
    graph: Graph,
    out: str | os.PathLike[str],
    *,
    partitioner: str,
    partitions: int | Mapping[str, int],
    seed: int = 0,
    memory: int | str = "4GB",
    order: str = "auto",
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> PartitionQuality:
    """Write a stored graph again with other partitions.

    Args:
        graph: The graph, open; stays as it is.
        out: Folder of the new store.
        partitioner: Name of the method.
        partitions: Partitions of every node type, or of each by name.
        seed: Seed of the method.
        memory: Budget of anonymous memory.
        order: Order of the nodes inside a partition.
        overwrite: Whether a graph in ``out`` may be replaced.
        progress: Told of every stage.

    Returns:
        Quality of the new partitioning; ``seconds`` is that of the whole work.
    """
    began = time.perf_counter()
    options = IngestOptions(
        partitions=partitions,
        partitioner=partitioner,
        order=order,
        seed=seed,
        memory_bytes=parse_bytes(memory),
    )
    assigned = None
    if options.needs_structure:
        progress.stage("partition")
        assigned = assign_nodes(
            graph,
            partitioner=partitioner,
            num_partitions=options.num_partitions,
            order=order,
            seed=seed,
            memory_bytes=options.memory_bytes,
        )
    report = ingest(
        GraphSource(graph),
        out,
        partitions=partitions,
        partitioner=partitioner,
        seed=seed,
        memory=memory,
        order=order,
        overwrite=overwrite,
        progress=progress,
        assigned=assigned,
    )
    with report.graph as new:
        stream = StoreNodeStream(new)
        parts, num_parts = _stored_parts(new), _largest(new)
        seconds = time.perf_counter() - began
        return measure(stream, parts, num_parts, partitioner, seconds)


def compare(
    graph: Graph, num_partitions: int, *, seed: int = 0, progress: Progress = SILENT
) -> Iterator[PartitionQuality]:
    """Run every method on a graph and measure it; vertex cuts come last.

    Args:
        graph: The graph, open.
        num_partitions: Partitions, of all node types together.
        seed: Seed of the methods.
        progress: Told of every method.

    Yields:
        One line for each method.
    """
    stream = StoreNodeStream(graph)
    hashes, ranks = _hashes(graph)
    _load_kernels()
    progress.stage("compare", len(partitioner_names()) + len(VERTEX_CUTS), "methods")
    for name in partitioner_names():
        began = time.perf_counter()
        try:
            if is_stream_partitioner(name):
                parts = get_stream_partitioner(name)(stream, num_partitions, seed)
            else:
                parts = get_partitioner(name)(hashes, ranks, num_partitions, seed)
        except GraphsysError as err:
            yield PartitionQuality(partitioner=name, problem=str(err))
        else:
            seconds = time.perf_counter() - began
            yield measure(stream, parts, num_partitions, name, seconds)
        progress.advance(1)
    for name in VERTEX_CUTS:
        yield _vertex_cut(stream, hashes, num_partitions, name)
        progress.advance(1)


def advise(lines: list[PartitionQuality]) -> dict[str, str]:
    """Say which method to take for each kind of work, from a comparison.

    Embeddings visit every pair of partitions, so buckets should be even and a low cut
    buys nothing: the best balanced method that looks at ids alone. Samplers and vertex
    programs fetch ghosts: the fewest copies among methods whose edges are balanced
    within a tenth; the quicker one where copies differ by less than a hundredth.

    Args:
        lines: What :func:`compare` yielded.

    Returns:
        Method by kind of work: "embeddings", "GNN sampling", "vertex programs".
    """
    usable = [line for line in lines if not line.is_vertex_cut and not line.problem]
    by_id = [line for line in usable if not is_stream_partitioner(line.partitioner)]
    even = [line for line in usable if line.edge_balance <= _EVEN] or usable
    fewest = min(even, key=lambda line: (round(line.replication_factor, 2), line.seconds))
    balanced = min(by_id, key=lambda line: line.edge_balance * line.node_balance)
    return {
        "embeddings": balanced.partitioner,
        "GNN sampling": fewest.partitioner,
        "vertex programs": fewest.partitioner,
    }


def measure(
    stream: NodeStream,
    parts: npt.NDArray[np.uint32],
    num_partitions: int,
    name: str,
    seconds: float,
) -> PartitionQuality:
    """Measure an assignment of nodes, uint32 ``[N]``, by one pass over the stream."""
    loads = np.zeros(num_partitions, dtype=np.int64)
    cut = ghosts = 0
    for first, indptr, indices in stream.blocks():
        found = kernels.measure_block(first, indptr, indices, parts, num_partitions, loads)
        cut, ghosts = cut + found[0], ghosts + found[1]
    sizes = np.bincount(parts, minlength=num_partitions)
    num_nodes = max(stream.num_nodes, 1)
    return PartitionQuality(
        partitioner=name,
        edge_cut=cut / max(int(loads.sum()), 1),
        node_balance=_balance(sizes),
        edge_balance=_balance(loads),
        replication_factor=(stream.num_nodes + ghosts) / num_nodes,
        seconds=seconds,
    )


def _vertex_cut(
    stream: NodeStream, hashes: npt.NDArray[np.uint64], num_partitions: int, name: str
) -> PartitionQuality:
    began = time.perf_counter()
    loads = np.zeros(num_partitions, dtype=np.int64)
    copies = np.zeros((stream.num_nodes, -(-num_partitions // 64)), dtype=np.uint64)
    for first, indptr, indices in stream.blocks():
        kernels.vertex_cut_block(
            VERTEX_CUTS.index(name),
            first,
            indptr,
            indices,
            stream.degrees,
            hashes,
            _HDRF_BALANCE,
            loads,
            copies,
        )
    seconds = time.perf_counter() - began
    isolated = int(np.count_nonzero(stream.degrees == 0))
    return PartitionQuality(
        partitioner=name,
        edge_balance=_balance(loads),
        replication_factor=(kernels.count_bits(copies) + isolated) / max(len(copies), 1),
        seconds=seconds,
        is_vertex_cut=True,
    )


class _OneEdge:
    """The smallest stream: it makes the kernels load before a method is timed."""

    num_nodes = 2
    degrees = np.ones(2, dtype=np.int64)

    def blocks(self) -> Iterator[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]:
        yield 0, np.array([0, 1, 2]), np.array([1, 0])


def _load_kernels() -> None:
    stream = _OneEdge()
    measure(stream, get_stream_partitioner("ldg")(stream, 2, 0), 2, "", 0.0)
    _vertex_cut(stream, np.arange(2, dtype=np.uint64), 2, "dbh")


def _hashes(graph: Graph) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return hashes and ranks of all nodes, type after type, as ingest computes them."""
    hashes = np.empty(graph.num_nodes, dtype=np.uint64)
    ranks = np.arange(graph.num_nodes, dtype=np.uint64)
    base = 0
    for node_type in graph.node_types:
        ids = graph.node_ids(node_type).combine_chunks()
        piece = slice(base, base + len(ids))
        if graph.manifest.node_types[node_type].id_type == "int64":
            numbers = ids.to_numpy()
            hashing.hash_integers(numbers, hashes[piece])
            order = np.argsort(numbers, kind="stable")
            ranks[piece][order] = np.arange(base, base + len(ids), dtype=np.uint64)
        else:
            hashing.hash_strings(*string_buffers(ids), hashes[piece])
        base += len(ids)
    return hashes, ranks


def _stored_parts(graph: Graph) -> npt.NDArray[np.uint32]:
    pieces = [np.diff(graph.offsets(name)) for name in graph.node_types]
    return np.concatenate(
        [np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes) for sizes in pieces]
    )


def _largest(graph: Graph) -> int:
    return max((graph.num_partitions(name) for name in graph.node_types), default=1)


def _balance(loads: npt.NDArray[Any]) -> float:
    mean = float(loads.mean())
    return float(loads.max()) / mean if mean else 1.0
