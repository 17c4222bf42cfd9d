"""How good a partitioning is, every method beside every other, and which to take."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import GraphsysError
from graphsys.core.memory import parse_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.kernels.cpu import hashing
from graphsys.kernels.cpu.algorithms import partition as kernels
from graphsys.partitioners import (
    NodeStream,
    get_partitioner,
    get_stream_partitioner,
    is_stream_partitioner,
    partitioner_names,
)
from graphsys.partitioners.buckets import sweep_loads
from graphsys.storage.ids.string_ids import string_buffers
from graphsys.storage.ingest.node_stream import StoreNodeStream, check_memory
from graphsys.storage.reader import GraphReader

VERTEX_CUTS: Final = ("dbh", "grid", "hdrf")
_HDRF_BALANCE = 1.1
_EVEN = 1.1
_FEWER = 0.9
_ALIKE = 1.02


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionQuality:
    """One line of the comparison.

    Attributes:
        partitioner: Name of the method.
        edge_cut: Edges between partitions, as a fraction of all; 0 for a vertex cut.
        node_balance: Nodes of the largest partition over the mean; NaN for a vertex cut.
        edge_balance: Edge ends (edges, for a vertex cut) of the fullest one over the mean.
        replication_factor: (owned + ghost nodes) / nodes.
        halo: Nodes of the partition that holds most, ghosts included, over the mean of
            owned ones. NaN for a vertex cut.
        seconds: Time to assign.
        bucket_balance: Edges of the fullest bucket over the mean of all; a bucket holds
            the edges between two partitions, or inside one. NaN for a vertex cut.
        bucket_loads: Partitions that one epoch of embedding training loads, two at a time
            in memory, buckets without edges left out. NaN for a vertex cut.
        is_vertex_cut: Whether edges rather than nodes were assigned; for comparison only.
        problem: Why a method could not run, or empty.
    """

    partitioner: str
    edge_cut: float = 0.0
    node_balance: float = float("nan")
    edge_balance: float = float("nan")
    replication_factor: float = float("nan")
    halo: float = float("nan")
    seconds: float = 0.0
    bucket_balance: float = float("nan")
    bucket_loads: float = float("nan")
    is_vertex_cut: bool = False
    problem: str = ""


def compare(
    graph: GraphReader,
    num_partitions: int,
    *,
    seed: int = 0,
    memory: int | str = "4GB",
    progress: Progress = SILENT,
) -> Iterator[PartitionQuality]:
    """Run every method on a graph and measure it; vertex cuts come last.

    Args:
        graph: The graph, open.
        num_partitions: Partitions, of all node types together.
        seed: Seed of the methods.
        memory: Budget of methods that hold the graph in memory.
        progress: Told of every method.

    Yields:
        One line for each method.
    """
    stream = StoreNodeStream(graph)
    hashes, ranks = hashes_and_ranks(graph)
    load_kernels()
    budget = parse_bytes(memory)
    progress.stage("compare", len(partitioner_names()) + len(VERTEX_CUTS), "methods")
    for name in partitioner_names():
        began = time.perf_counter()
        try:
            if is_stream_partitioner(name):
                check_memory(name, stream, budget)
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
        yield vertex_cut(stream, hashes, num_partitions, name)
        progress.advance(1)


def advise(lines: list[PartitionQuality]) -> dict[str, str]:
    """Say which method to take for each kind of work, from a comparison.

    Embeddings hold the rows of two partitions and load one for nearly every bucket that
    has edges: the fewest loads among methods with even partitions. A low cut alone buys
    nothing, and negatives from a mixed partition are better, so unless a tenth of the
    loads is saved it is the best balanced method that looks at ids alone. Samplers and
    vertex programs fetch ghosts: the fewest copies among methods whose edges are balanced
    within a tenth; of those within a fiftieth of the fewest, the quickest.

    Args:
        lines: What :func:`compare` yielded.

    Returns:
        Method by kind of work: "embeddings", "GNN sampling", "vertex programs".
    """
    usable = [line for line in lines if not line.is_vertex_cut and not line.problem]
    by_id = [line for line in usable if not is_stream_partitioner(line.partitioner)]
    even = [line for line in usable if line.edge_balance <= _EVEN] or usable
    copies = min(line.replication_factor for line in even)
    few = [line for line in even if line.replication_factor <= _ALIKE * copies]
    fewest = min(few, key=lambda line: line.seconds)
    rows = min(by_id, key=lambda line: line.edge_balance * line.node_balance)
    balanced = [line for line in even if line.node_balance <= _EVEN] or [rows]
    swept = min(balanced, key=lambda line: (line.bucket_loads, line.edge_cut))
    if swept.bucket_loads <= _FEWER * rows.bucket_loads:
        rows = swept
    return {
        "embeddings": rows.partitioner,
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
    ends = np.zeros((num_partitions, num_partitions), dtype=np.int64)
    ghosts = np.zeros(num_partitions, dtype=np.int64)
    for first, indptr, indices in stream.blocks():
        kernels.measure_block(first, indptr, indices, parts, ends, ghosts)
    loads = ends.sum(axis=1)
    inside = np.diag(ends)
    sizes = np.bincount(parts, minlength=num_partitions)
    num_nodes = max(stream.num_nodes, 1)
    pairs = np.triu_indices(num_partitions, 1)
    return PartitionQuality(
        partitioner=name,
        edge_cut=int(loads.sum() - inside.sum()) / max(int(loads.sum()), 1),
        node_balance=_balance(sizes),
        edge_balance=_balance(loads),
        replication_factor=(stream.num_nodes + int(ghosts.sum())) / num_nodes,
        halo=num_partitions * int((sizes + ghosts).max()) / num_nodes,
        seconds=seconds,
        bucket_balance=_balance(np.concatenate([ends[pairs], inside / 2])),
        bucket_loads=sweep_loads(ends),
    )


def vertex_cut(
    stream: NodeStream, hashes: npt.NDArray[np.uint64], num_partitions: int, name: str
) -> PartitionQuality:
    """Assign edges rather than nodes, by one of ``VERTEX_CUTS``, and measure that."""
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


def load_kernels() -> None:
    """Compile or load the kernels, so that their first use is not timed."""
    stream = _OneEdge()
    measure(stream, get_stream_partitioner("ldg")(stream, 2, 0), 2, "", 0.0)
    vertex_cut(stream, np.arange(2, dtype=np.uint64), 2, "dbh")


def hashes_and_ranks(
    graph: GraphReader,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return hashes and ranks of all nodes, type after type, as ingest computes them.

    Returns:
        Hashes and ranks, uint64 ``[N]`` each; what by-id partitioners take.
    """
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


def _balance(loads: npt.NDArray[Any]) -> float:
    mean = float(loads.mean())
    return float(loads.max()) / mean if mean else 1.0
