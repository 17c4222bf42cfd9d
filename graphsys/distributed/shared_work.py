"""Native algorithms whose loop workers share: triangles and local clustering.

Every worker maps the store, orients the simple graph as one machine does, and counts over
its chunks of the oriented rows, dealt out in turn, as the first ones have the hubs. What it
found for nodes of others leaves for their owners, one number a node that has any; the
owners add up, so that counts are those of one machine. Rows are put into a file where a
worker's share of its machine's memory has no room for them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.compiling import CompileWatch
from graphsys.core.threads import ThreadTeam
from graphsys.core.types import number_dtype
from graphsys.distributed.mining_work import share_of_memory
from graphsys.distributed.ownership import Ownership
from graphsys.distributed.transport.exchange import Exchange, Payload
from graphsys.engine.algorithms import get, triangles
from graphsys.engine.execute.executor import Position
from graphsys.engine.memory_plan import placed
from graphsys.engine.native_plan import NativeRun
from graphsys.engine.result import marked, parameters_of
from graphsys.engine.topology import Topology
from graphsys.graph.slices import Slice

Counts = npt.NDArray[np.int64]
Count = Callable[[Topology, ThreadTeam, Slice], Counts]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWork:
    """A native algorithm on a store, by path and name.

    Attributes:
        graph: Folder of the store, which every machine sees.
        algorithm: One of :data:`SHARED`.
        threads: Of a worker; all cores of its machine by default.
        neighbors: Workers on a machine, which share its memory; as many as it has cores
            by default.
        is_profiled: Whether the worker records itself.
    """

    graph: str
    algorithm: str
    threads: int | None = None
    neighbors: int | None = None
    is_profiled: bool = False


def _triangles(topology: Topology, team: ThreadTeam, share: Slice) -> Counts:
    rows = topology.simple_rows()
    return triangles.count(rows, team, topology.allocate, share)[0]


SHARED: Final[Mapping[str, Count]] = {
    "triangle_count": _triangles,
    "lcc": triangles.arcs_between,
}
"""What counts a share, by the algorithm's name."""


def run_share(exchange: Exchange, work: SharedWork) -> dict[str, Any]:
    """Count a share together with the other workers.

    Returns:
        What :meth:`graphsys.distributed.worker.Worker.run` does; a single superstep.

    Raises:
        ClusterError: a worker's share of its machine's memory is too small.
    """
    topology = _placed(work)
    ownership = Ownership.of(topology, exchange.size)
    spans = ownership.spans[exchange.rank]
    share, begin = Slice(exchange.rank, exchange.size), time.perf_counter()
    with CompileWatch() as compiling, ThreadTeam(work.threads) as team:
        found = SHARED[work.algorithm](topology, team, share)
    counts, bound = added_up(exchange, ownership, found)
    values: list[npt.NDArray[Any]] = counts
    if work.algorithm == "lcc":
        degrees = topology.simple_in_place().degrees()
        values = [
            triangles.shares_of(own, degrees[low:high])
            for own, (low, high) in zip(counts, spans, strict=True)
        ]
    took = time.perf_counter() - begin - compiling.seconds
    return {
        "spans": spans,
        "states": {"value": values},
        "position": Position(superstep=1, is_done=True, converged=True),
        "seconds": took,
        "compile_seconds": compiling.seconds,
        "setup_bytes": 0,
        "bytes": [exchange.sent_bytes],
        "bound": bound,
        "waited_s": exchange.waited_s,
        "nodes": ownership.num_nodes(exchange.rank),
    }


def added_up(
    exchange: Exchange, ownership: Ownership, found: Counts
) -> tuple[list[Counts], int]:
    """Return what all workers found for the own nodes, by span, and the least bytes.

    Args:
        exchange: With the other workers.
        ownership: Who owns which nodes.
        found: What this one found for all nodes ``[N]``.
    """
    outgoing: list[Payload] = []
    bound = 0
    for other in exchange.others:
        pieces = [_packed(found[low:high]) for low, high in ownership.spans[other]]
        outgoing.append(tuple(pieces))
        bound += sum(int(np.count_nonzero(it)) * it.itemsize for _, it in pieces)
    own = [found[low:high].copy() for low, high in ownership.spans[exchange.rank]]
    for arrived in exchange.all_to_all(outgoing):
        for counts, (places, values) in zip(own, arrived, strict=True):
            if len(places):
                counts[places] += values
            elif len(values):
                counts += values
    return own, bound


def _packed(counts: Counts) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the places of counts and the counts; no places mean all."""
    most = int(counts.max(initial=0))
    narrow = counts.astype(np.min_scalar_type(most))
    places = np.flatnonzero(counts).astype(number_dtype(max(len(counts), 1)))
    # Places pay where few nodes have any; else the counts alone are shorter.
    if len(places) * (places.itemsize + narrow.itemsize) >= narrow.nbytes:
        return places[:0], narrow
    return places, narrow[places]


def _placed(work: SharedWork) -> Topology:
    """Return the graph, whose arrays are where a share of the memory has room for them."""
    with share_of_memory(work.algorithm, work.neighbors) as memory:
        prepared = get(work.algorithm).prepare(
            work.graph, implementation="native", memory=memory, num_threads=work.threads
        )
    assert isinstance(prepared, NativeRun)  # it was asked for
    return placed(prepared.choice, prepared.topology)


def result_of(
    prepared: NativeRun, parts: Sequence[Mapping[str, Any]], states: Mapping[str, Any]
) -> tuple[Any, int | None]:
    """Return the table and the number that one machine gives.

    Args:
        prepared: What one machine would run.
        parts: What workers gave back.
        states: The same as arrays of all nodes, by name.
    """
    table = marked(
        prepared.topology.table({"value": states["value"]}),
        prepared.name,
        parameters_of(prepared.function, prepared.options),
        prepared.topology,
    )
    total = None
    if prepared.name == "triangle_count":  # every triangle is at three nodes
        total = sum(int(piece.sum()) for part in parts for piece in part["states"]["value"])
        total //= 3
    return table, total
