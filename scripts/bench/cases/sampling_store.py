"""Samples and their features from mapped files under a limit, and from arrays in memory.

The limit is RLIMIT_DATA: what the process had after its imports and with its kernels
loaded (a sample of one seed), and a quarter of the graph's bytes; 64 MiB at least, since
stacks and a batch do not shrink with the graph. Mapped pages are the page cache's and do
not count; they are warm.
"""

import dataclasses
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Outcome
from graphsys.core.threads import map_in_order, num_cores
from graphsys.graph.csr import Csr
from graphsys.sampling import FeatureTable, NeighborSampler
from graphsys.storage import Graph

MODULE = "bench.cases.sampling_store"
SHARE = 0.25
LEAST = 64 << 20


class CopiedGraph(Graph):
    """A graph whose index and features are copied into memory."""

    def in_index(self, edge_type: Any, part: int) -> Csr:
        """Return the rows of a partition as copies."""
        index = super().in_index(edge_type, part)
        indptr, indices = np.array(index.indptr), np.array(index.indices)
        return dataclasses.replace(index, indptr=indptr, indices=indices)

    def feature_rows(self, node_type: str, part: int, name: str) -> Any:
        """Return a feature as a copy."""
        rows, places = super().feature_rows(node_type, part, name)
        return np.array(rows), places


def sample(store: str, seeds: str, fanouts: list[int], *, is_copied: bool) -> Outcome:
    """Sample the batches of seeds and gather their features, a batch per core at a time."""
    batches = np.load(seeds)
    num_bytes = sum(f.stat().st_size for f in Path(store).rglob("*.arrow"))
    graph = (CopiedGraph if is_copied else Graph)(Path(store))
    sampler, features = NeighborSampler(graph, fanouts), FeatureTable(graph, "node")
    features.gather(sampler.sample(batches[0][:1]).input_nodes)
    limit = data_bytes() + max(int(SHARE * num_bytes), LEAST)
    if not is_copied:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    rooms: list[Any] = []

    def make(number: int) -> tuple[int, float]:
        with sampler.sample(batches[number], batch=number) as found:
            nodes = found.input_nodes
            room = rooms.pop() if rooms else np.empty((0, features.dim), np.float32)
            if len(room) < len(nodes):
                del room  # before there is another
                room = np.empty((len(nodes) * 11 // 10, features.dim), np.float32)
            total = float(features.gather(nodes, room)[:, 0].sum(dtype=np.float64))
            rooms.append(room)
            return found.num_edges, total

    threads = num_cores()
    list(map_in_order(make, range(threads + 1), num_threads=threads))  # kernels, pages
    began = time.perf_counter()
    done = list(map_in_order(make, range(len(batches)), num_threads=threads))
    figures = {} if is_copied else {"limit_bytes": limit, "graph_bytes": num_bytes}
    return Outcome(
        seconds=time.perf_counter() - began,
        result={
            "sum": sum(total for _, total in done),
            "figures": figures,
            "amount": sum(edges for edges, _ in done),
        },
    )


def data_bytes() -> int:
    """Return what of this process counts against RLIMIT_DATA."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmData")
