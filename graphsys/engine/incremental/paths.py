"""Distances from a source from the last ones, or anew where most of them changed.

Kernels: kernels/cpu/incremental/paths.py.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms import shortest_paths, traversal
from graphsys.engine.last_result import AGAIN, LastResult
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.incremental import paths as kernels

UNSETTLED_SHARE = 1 / 64
"""Share of nodes without an explained distance from which on all is computed anew."""
_ONES = np.empty(0, dtype=np.float64)


def bfs(
    topology: Topology,
    *,
    source: Any,
    last: LastResult,
    parents: bool = False,
    num_threads: int | None = None,
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.bfs` tells of, without parents.

    Raises:
        ConfigError: parents are asked for.
    """
    _refuse_parents(parents)
    began = time.perf_counter()
    done = _repaired(topology, source, last, "bfs", is_weighted=False)
    if done is None:
        done = traversal.bfs.native(topology, source=source, num_threads=num_threads)
    return replace(done, seconds=time.perf_counter() - began)


def sssp(
    topology: Topology,
    *,
    source: Any,
    last: LastResult,
    parents: bool = False,
    num_threads: int | None = None,
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.sssp` tells of, without parents.

    Raises:
        ConfigError: parents are asked for.
    """
    _refuse_parents(parents)
    is_weighted = topology.has_weight
    if is_weighted:
        with ThreadTeam(num_threads) as team:
            shortest_paths.refuse_weights(topology, team)
    began = time.perf_counter()
    done = _repaired(topology, source, last, "sssp", is_weighted=is_weighted)
    if done is None:
        done = shortest_paths.sssp.native(topology, source=source, num_threads=num_threads)
    return replace(done, seconds=time.perf_counter() - began)


def _refuse_parents(parents: bool) -> None:
    if parents:
        raise ConfigError(f"parents are not followed from a last result; {AGAIN}")


def _repaired(
    topology: Topology, source: Any, last: LastResult, name: str, *, is_weighted: bool
) -> Result | None:
    """Return the repaired distances, or None where too many are to be found anew."""
    start = topology.number(source)
    distance = np.full(topology.num_nodes, np.inf)
    known = last.values.cast(pa.float64()).to_numpy()
    distance[: len(known)] = np.where(np.isnan(known), np.inf, known)
    ends = last.ends(topology.is_directed)
    most = int(UNSETTLED_SHARE * topology.num_nodes)
    unsettled = kernels.repair_distances(
        *_rows(topology, "out", is_weighted),
        *_rows(topology, "in", is_weighted),
        ends["removed_src"],
        ends["removed_dst"],
        distinct(ends["added_dst"]),
        start,
        most,
        distance,
    )
    if unsettled < 0:
        return None
    if is_weighted:
        with ThreadTeam(1) as team:
            shortest_paths.refuse_weights(topology, team, distance)
    values = distance
    if name == "bfs":
        values = np.where(np.isinf(distance), 0, distance).astype(np.int64)
    return Result(
        source=lambda: topology.table({"value": pa.array(values, mask=np.isinf(distance))}),
        algorithm=name,
        supersteps=1,
        seconds=0.0,
    )


def _rows(
    topology: Topology, direction: Any, is_weighted: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    rows = topology.csr(direction) if is_weighted else topology.rows(direction)
    weight: Any = rows.weight if is_weighted else _ONES
    return *rows.arrays, weight
