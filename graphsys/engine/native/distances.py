"""Closeness, exactly (a search per node), and the diameter, from below (a few searches)."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import ThreadTeam
from graphsys.engine.native.arguments import require_count
from graphsys.engine.native.traversal import search
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms.distances import sum_distances


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceSums:
    """What the searches from some nodes found, in the order of the nodes ``[S]``.

    Attributes:
        reached: How many nodes, the source too.
        total: Sum of the distances.
        farthest: The largest distance.
        harmonic: Sum of one over the distances above 0.
    """

    reached: npt.NDArray[np.int64]
    total: npt.NDArray[np.int64]
    farthest: npt.NDArray[np.int64]
    harmonic: npt.NDArray[np.float64]


def distance_sums(
    rows: Csr, sources: npt.NDArray[Any], num_threads: int | None = None
) -> DistanceSums:
    """Search along rows from every source (by number).

    Complexity:
        O(S (N + E)) time; 12 bytes per node and thread.
    """
    sources = np.asarray(sources, dtype=np.int64)
    reached, total, farthest = (np.zeros(len(sources), dtype=np.int64) for _ in range(3))
    harmonic = np.zeros(len(sources), dtype=np.float64)
    with ThreadTeam(num_threads) as team:
        shape = team.num_threads, rows.num_nodes
        team.run(
            sum_distances,
            rows.begins,
            rows.ends,
            rows.indices,
            sources,
            np.zeros(1, dtype=np.int64),
            np.full(shape, -1, dtype=np.int64),
            np.empty(shape, dtype=rows.indices.dtype),
            reached,
            total,
            farthest,
            harmonic,
        )
    return DistanceSums(reached=reached, total=total, farthest=farthest, harmonic=harmonic)


def closeness(topology: Topology, *, num_threads: int | None = None) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.closeness` tells of."""
    began = time.perf_counter()
    sums = _from_all(topology, num_threads)
    others = sums.reached - 1
    share = others / max(topology.num_nodes - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(sums.total > 0, others / sums.total * share, 0.0)
    return Result(
        source=lambda: topology.table({"value": values}),
        algorithm="closeness",
        supersteps=topology.num_nodes,
        seconds=time.perf_counter() - began,
    )


def harmonic(topology: Topology, *, num_threads: int | None = None) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.harmonic` tells of."""
    began = time.perf_counter()
    sums = _from_all(topology, num_threads)
    return Result(
        source=lambda: topology.table({"value": sums.harmonic}),
        algorithm="harmonic",
        supersteps=topology.num_nodes,
        seconds=time.perf_counter() - began,
    )


def diameter(
    topology: Topology, *, sweeps: int = 4, num_threads: int | None = None
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.diameter` tells of."""
    began = time.perf_counter()
    require_count("sweeps", sweeps)
    rows = topology.simple_in_place()
    longest = 0
    distance = np.ma.masked_array(np.zeros(0, dtype=np.int64), mask=np.zeros(0, dtype=bool))
    if rows.num_nodes:
        degree = rows.degrees()
        start = _first(topology, degree == degree.max())
        with ThreadTeam(num_threads) as team:
            for _ in range(sweeps):
                levels = search(rows, rows, start, team)
                is_reached = levels.distance > 0
                is_reached[start] = True
                distance = np.ma.masked_array(levels.distance, mask=~is_reached)
                farthest = int(levels.distance.max())
                longest = max(longest, farthest)
                start = _first(topology, is_reached & (levels.distance == farthest))
    return Result(
        source=lambda: topology.table({"value": distance.astype(np.int64)}),
        algorithm="diameter",
        supersteps=sweeps,
        seconds=time.perf_counter() - began,
        result=longest,
    )


def _from_all(topology: Topology, num_threads: int | None) -> DistanceSums:
    sources = np.arange(topology.num_nodes, dtype=np.int64)
    return distance_sums(topology.rows("in"), sources, num_threads)


def _first(topology: Topology, is_chosen: npt.NDArray[np.bool_]) -> int:
    """Return the chosen node with the smallest id."""
    chosen = np.flatnonzero(is_chosen)
    rank = topology.rank
    return int(chosen[0] if rank is None else chosen[np.argmin(rank[chosen])])
