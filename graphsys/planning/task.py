"""What is to be planned, what is told of a verb, and how large a store is."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from graphsys.core.types import number_dtype
from graphsys.graph.csr import offset_dtype
from graphsys.planning.sized_graph import SizedGraph

_FILE_BYTES: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is to be planned.

    Attributes:
        num_nodes: Nodes.
        num_edges: Edges, directed.
        machines: How many machines there are.
        memory: Bytes of memory that a verb may take on each.
        partitions: Partitions of the store.
        dim: Length of an embedding.
        supersteps: Of PageRank.
    """

    num_nodes: int
    num_edges: int
    machines: int
    memory: int
    partitions: int
    dim: int
    supersteps: int

    @property
    def graph(self) -> SizedGraph:
        """The graph."""
        return SizedGraph(self.num_nodes, self.num_edges, self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a verb would take; bytes and seconds of one machine.

    Attributes:
        verb: As it is typed.
        memory_bytes: Peak of anonymous memory; where it does not fit, the least that works.
        fits: Whether it fits.
        disk_bytes: What it leaves on disk, scratch files included.
        read_bytes: What it reads.
        written_bytes: What it writes.
        network_bytes: What a machine sends to others.
        cpu_seconds: User and system time.
        seconds: Wall time, disk and network included.
        machines: How many machines share the work.
        notes: What to know about it.
    """

    verb: str
    memory_bytes: int
    fits: bool = True
    disk_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    network_bytes: int = 0
    cpu_seconds: float = 0.0
    seconds: float = 0.0
    machines: int = 1
    notes: tuple[str, ...] = ()


def index_bytes(task: Workload) -> int:
    """Return the bytes of the rows of one direction."""
    rows = task.num_nodes + task.partitions
    offsets = np.dtype(offset_dtype(task.num_edges // task.partitions)).itemsize
    width = number_dtype(task.num_nodes).itemsize
    return int(rows * offsets + task.num_edges * width + task.partitions * _FILE_BYTES)


def bucket_bytes(task: Workload) -> int:
    """Return the bytes of the buckets: both ends of every edge, by number."""
    width = number_dtype(-(-task.num_nodes // task.partitions)).itemsize
    most = min(task.partitions**2, task.num_edges)
    return int(2 * width * task.num_edges + most * _FILE_BYTES)


def store_bytes(task: Workload) -> int:
    """Return the bytes of a store: ids, buckets, rows of both directions."""
    ids = 8 * task.num_nodes + task.partitions * _FILE_BYTES
    return ids + bucket_bytes(task) + 2 * index_bytes(task)
