"""Raphtory's side of the case ``dynamic``, in its own environment; and what both read."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Outcome


def batches(folder: str, size: int, times: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches of edges that the store has not: ends, int64 ``[size]`` each."""
    ends = np.load(Path(folder) / "new.npy", mmap_mode="r")
    for k in range(times):
        begin = k * size % max(ends.shape[1] - size, 1)
        src, dst = (np.array(row[begin : begin + size]) for row in ends)
        yield src, dst


def load(folder: str, size: int, times: int) -> Outcome:
    """Load the batches into a graph in memory, which is not written anywhere."""
    began = time.perf_counter()
    import pyarrow as pa
    import raphtory

    load_s = time.perf_counter() - began
    graph, seconds = raphtory.Graph(), []
    for k, (src, dst) in enumerate(batches(folder, size, times)):
        table = pa.table({"src": src, "dst": dst, "time": np.full(len(src), k)})
        begin = time.perf_counter()
        graph.load_edges(table, time="time", src="src", dst="dst")
        seconds.append(time.perf_counter() - begin)
    result = {"edges": graph.count_temporal_edges(), "figures": percentiles(seconds)}
    return Outcome(seconds=sum(seconds), load_s=load_s, result=result)


def view(folder: str, times: list[int]) -> Outcome:
    """Find the weak components of the graph as it was at times."""
    began = time.perf_counter()
    import pyarrow as pa
    import raphtory
    from raphtory import algorithms

    src, dst, when = np.load(Path(folder) / "timed.npy")
    graph = raphtory.Graph()
    table = pa.table({"src": src, "dst": dst, "time": when})
    graph.load_edges(table, time="time", src="src", dst="dst")
    load_s = time.perf_counter() - began
    seconds, result = 0.0, []
    for moment in times:
        begin = time.perf_counter()
        then = graph.before(moment + 1)
        found = algorithms.weakly_connected_components(then)
        num_edges = then.count_temporal_edges()
        seconds += time.perf_counter() - begin
        labels = [value["component_id"] for value in found.values()]
        sizes = np.unique(labels, return_counts=True)[1]
        result.append([int(num_edges), *biggest(sizes)])
    return Outcome(seconds=seconds, load_s=load_s, result=result)


def biggest(sizes: Any) -> list[int]:
    """Return how many components have two nodes or more, and the nodes of the largest."""
    several = sizes[sizes > 1]
    return [len(several), int(several.max(initial=0)), int(several.sum())]


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return the median and the 99th percentile of times."""
    p50, p99 = np.percentile(seconds, [50, 99])
    return {"p50_s": float(p50), "p99_s": float(p99)}
