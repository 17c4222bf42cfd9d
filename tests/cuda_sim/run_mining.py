"""Count in numba's CUDA simulator and on the CPU; print one JSON line for each graph.

The simulator is chosen by ``NUMBA_ENABLE_CUDASIM=1`` before numba is imported, so this
runs in a process of its own: ``python -m tests.cuda_sim.run_mining`` from the root.
"""

import json
import sys
import warnings
from types import FunctionType
from typing import Any

import networkx as nx
import numpy as np
from numba import cuda

from graphsys.core.cuda.device import LaunchShape
from graphsys.core.events import recording
from graphsys.kernels.cpu.mining.big_counts import wide_totals
from graphsys.kernels.cuda import mining
from graphsys.mining.census.device import DeviceKernels
from graphsys.mining.census.sums import kernels_of
from graphsys.mining.counting import count, count_all
from graphsys.mining.motifs import motif_census
from graphsys.mining.simple_graph import SimpleGraph
from tests.cuda_sim import warp_shim
from tests.cuda_sim.garbage import leave_garbage

PATTERNS = ("triangle", "4-clique", "4-cycle", "diamond", "4-star")
LARGE = np.int64(1 << 62)
SIZES = {"loop": (5,), "karate": (3, 4, 5), "hub": (3,), "dense": (5,)}


def make_graph(kind: str) -> Any:
    """Return a small graph."""
    rng = np.random.default_rng(3)
    if kind == "karate":
        return nx.karate_club_graph()
    if kind == "loop":  # so that no edge is left
        return np.array([0]), np.array([0])
    if kind == "dense":  # rows of more than a warp
        ends = np.triu_indices(35, 1)
        kept = rng.random(len(ends[0])) < 0.5
        return ends[0][kept], ends[1][kept]
    src, dst = rng.integers(0, 40, 60), rng.integers(0, 40, 60)
    src[:39] = 40  # a hub, whose row is longer than a warp
    dst[:39] = np.arange(39)
    return src, dst


def compare(kind: str, num_blocks: int) -> dict[str, Any]:
    """Count on both devices."""
    graph = SimpleGraph.of(make_graph(kind))
    shape = LaunchShape(block=32 * num_blocks, max_blocks=num_blocks)
    on_device = DeviceKernels(graph, shape=shape)
    with kernels_of(graph, 1) as kernels:
        pairs = {
            f"cliques {size}": (kernels.clique_counts(size), on_device.clique_counts(size))
            for size in SIZES[kind]
        }
        with recording() as recorder:
            pairs["small"] = (kernels.small_sums(), on_device.small_sums())
    copied = [it.value for it in recorder.events if it.name == "bytes_copied"]
    return {"case": kind, "pairs": pairs, "largest_copy": max(copied)}


def ask() -> dict[str, Any]:
    """Count as users do, on both devices."""
    rng = np.random.default_rng(1)
    graph = SimpleGraph.of((rng.integers(0, 9, 20), rng.integers(0, 9, 20)))
    with recording() as recorder:
        pairs: dict[str, Any] = {
            "one": tuple(count(graph, "5-clique", device=it) for it in ("cuda", "cpu"))
        }
    pairs["all"] = tuple(
        list(count_all(graph, PATTERNS, device=it).values()) for it in ("cpu", "cuda")
    )
    for size in (3, 4):
        found = [motif_census(graph, size, device=it) for it in ("cpu", "cuda")]
        pairs[f"motifs {size}"] = tuple(list(it.values()) for it in found)
    launches = [it.attributes.get("kernel") for it in recorder.events]
    return {"case": "asked", "pairs": pairs, "launches": launches}


def _add_large(totals: Any) -> None:
    add_lanes(totals, 0, LARGE, LARGE >> np.int64(32))  # type: ignore[name-defined] # noqa: F821


def add_up() -> dict[str, Any]:
    """Add up more than 64 bits hold."""
    vars(mining)["LARGE"] = LARGE  # the simulator exchanges ``cuda`` in these globals
    kernel = cuda.jit(FunctionType(_add_large.__code__, vars(mining)))
    totals = cuda.to_device(np.zeros(2, dtype=np.int64))
    kernel[1, 64](totals)
    [found] = wide_totals(totals.copy_to_host()[np.newaxis])
    return {"case": "large", "pairs": {"sum": (str(64 * (2 << 62)), str(found))}}


if __name__ == "__main__":
    warp_shim.install()
    leave_garbage()
    warnings.simplefilter("ignore")
    for kind, blocks in (("loop", 1), ("karate", 2), ("hub", 1), ("dense", 1)):
        sys.stdout.write(json.dumps(compare(kind, blocks)) + "\n")
    for case in (ask, add_up):
        sys.stdout.write(json.dumps(case()) + "\n")
